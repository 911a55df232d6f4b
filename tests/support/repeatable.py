"""Seeded words in place of the operating system's entropy, derived from the running test, so that runs are repeatable.

A test that hangs on luck then fails every time or never, and not once in a hundred runs on somebody else's machine.
Processes that a test starts, forked ones too, still ask the operating system.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from shoal.noise import entropy

_lock = threading.Lock()
_process = os.getpid()
# of the main thread, and of all others: a server's thread may still be busy when the next test begins
_current: dict[bool, np.random.Generator] | None = None


def _stream(name: str) -> np.random.Generator:
    return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()))


@contextmanager
def words_of(name: str) -> Iterator[None]:
    """Inside, the system's entropy is the stream of this name, from its beginning."""
    global _current
    before, _current = _current, {main: _stream(f"{name} {main}") for main in (True, False)}
    entropy._forget_all_in_child()  # words of another stream that are still buffered
    try:
        yield
    finally:
        _current = before
        entropy._forget_all_in_child()


def _bytes(n: int) -> bytes:
    # a fork would continue its parent's stream
    if _current is None or _process != os.getpid():
        return os.urandom(n)
    with _lock:
        return _current[threading.current_thread() is threading.main_thread()].bytes(n)


def _words(n: int) -> NDArray[np.uint64]:
    return np.frombuffer(_bytes(8 * n), dtype="<u8").astype(np.uint64)


def install() -> None:
    """Put these words in the place of the system's; outside of `words_of` they are the system's all the same.

    Not done by importing this module: pytest imports it once more, under another name, when it looks for doctests.
    """
    entropy._system_words = _words
    entropy.secrets = SimpleNamespace(token_bytes=_bytes)  # type: ignore[assignment]
