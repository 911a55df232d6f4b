"""Rendering of messages: code branches on codes and facts, and this package turns them into English."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
