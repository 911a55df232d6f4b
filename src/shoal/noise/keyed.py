"""Words that a secret key gives again: for work that an engine may run twice. In: a key. Out: a source.

A stream is known by the key, a label and the content it is drawn for. Run again on the same content, a task draws the
same noise; on other content it draws other noise, so that equal noise never lies on different data.
"""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.noise.entropy import Source, stream_key

KEY_BYTES = 32
# bytes of key stream made at a time, at least
_LEAST = 1 << 12
_NONCE = bytes(16)


class Keyed(Source):
    """The key stream of ChaCha20 under a key of 32 bytes, word by word.

    Whoever has the key can compute the noise: it is drawn from the operating system for one release, travels to tasks
    inside of their code, and is forgotten.

    Guarantee:
        Words are uniform and independent to everybody who cannot tell ChaCha20 and BLAKE2b from random functions.

    >>> first, again = (Keyed(bytes(32)).child("rows", 3).words(4) for _ in range(2))
    >>> bool((first == again).all()), bool((first == Keyed(bytes(32)).child("rows", 4).words(4)).any())
    (True, False)
    """

    reproducible = False

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise OptionError("key-of-wrong-length", key_bytes=KEY_BYTES, found=len(key))
        self._key = key
        self._used = False
        self._start()

    def _start(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

        self._stream = Cipher(ChaCha20(self._key, _NONCE), mode=None).encryptor()
        self._left = np.empty(0, dtype=np.uint64)

    def __repr__(self) -> str:
        return "Keyed(...)"

    def __getstate__(self) -> bytes:
        # a stream that went on elsewhere would hand out the same words in both places
        if self._used:
            raise TypeError(
                "a keyed source that was drawn from cannot be sent elsewhere: send a child of it."
            )
        return self._key

    def __setstate__(self, key: bytes) -> None:
        self.__init__(key)  # type: ignore[misc]

    def child(self, label: str, *parts: int | bytes) -> Source:
        return Keyed(stream_key(self._key, label, parts))

    def words(self, n: int) -> NDArray[np.uint64]:
        self._used = True
        if n > self._left.size:
            more = self._stream.update(bytes(max(8 * (n - self._left.size), _LEAST)))
            drawn = np.frombuffer(more, dtype="<u8").astype(np.uint64, copy=False)
            self._left = np.concatenate((self._left, drawn)) if self._left.size else drawn
        taken, self._left = self._left[:n].copy(), self._left[n:]
        return taken


def fresh_key() -> Keyed:
    """A source under a new key of the operating system: one for each release."""
    return Keyed(secrets.token_bytes(KEY_BYTES))
