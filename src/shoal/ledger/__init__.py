"""The budget ledger: requests to spend come in, receipts or refusals leave, and nothing written is ever changed.

SQLAlchemy is loaded when a ledger is opened, not before.
"""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
