"""Sources of random bits and the exact uniform primitives built on them.

A source reads the operating system's entropy, a seed or a key. A keyed stream is determined by the key, a label and the
content it is drawn for: a task repeated on the same content draws the same noise, and different content gets different
noise, so that equal noise is never added to different data.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError

Shape = int | tuple[int, ...]
Picked = TypeVar("Picked", NDArray[np.uint64], NDArray[np.int64])
IntegersLike = int | np.integer[Any] | NDArray[np.integer[Any]] | Sequence[int]

# A rational coin is decided digit by digit; numerator << digit bits must stay below 2^64.
LARGEST_DENOMINATOR = 1 << 56
_WIDE_DIGIT, _NARROW_DIGIT = 16, 8
# number of words handled at once, so that intermediate arrays stay small
_PIECE = 1 << 18
KEY_BYTES = 32
# minimum number of bytes of key stream generated at once
_LEAST = 1 << 12
_NONCE = bytes(16)


class Source(ABC):
    """A stream of uniform bits. Subclasses supply `words`; every other method is exact given uniform words.

    Attributes:
        reproducible: True if the stream can be recomputed from a seed, so that nothing drawn from it may be published.
    """

    reproducible: bool

    @abstractmethod
    def words(self, n: int) -> NDArray[np.uint64]:
        """n independent uniform 64-bit words."""

    def child(self, label: str, *parts: int | bytes) -> Source:
        """A source for one piece of work, identified by a label and numbers or bytes.

        If this source is reproducible, so are its children, in any order and in other processes: different
        labels or parts give independent streams, and none takes a word from this one. Any other source serves all
        pieces of work directly.
        """
        return self

    def digits(self, bits: int, n: int) -> NDArray[np.unsignedinteger[Any]]:
        """n independent uniform integers below 2^bits, for bits 1, 8, 16, 32 or 64; a word serves several.

        >>> Seeded(1).digits(8, 5).dtype, bool((Seeded(1).digits(1, 100) < 2).all())
        (dtype('uint8'), True)
        """
        little = self.words(-(-n * bits // 64)).astype("<u8", copy=False)
        if bits == 1:
            return np.unpackbits(little.view(np.uint8), count=n, bitorder="little")
        return little.view(f"<u{bits // 8}")[:n]

    def below(self, bound: IntegersLike, size: Shape | None = None) -> NDArray[np.int64]:
        """Exactly uniform integers in [0, bound), without modulo bias.

        Args:
            bound: one bound, or an array of them, each from 1 to 2^63 - 1.
            size: shape of the result; the shape of `bound` when absent.

        >>> Seeded(7).below([1, 1, 1]).tolist()
        [0, 0, 0]
        """
        bounds = np.asarray(bound)
        if bounds.size and (bounds.dtype.kind not in "iu" or bounds.min() < 1 or bounds.max() >= 1 << 63):
            raise OptionError("bound-whole-numbers-from-1-2", option="bound", found=bound)
        shape = shape_with(bounds.shape, size)
        n = int(np.prod(shape, dtype=np.int64))
        if n == 0:
            return np.empty(shape, dtype=np.int64)
        largest = int(bounds.max())
        if largest == 1:
            return np.zeros(shape, dtype=np.int64)
        # Words so wide that at most one in 256 is rejected, except for bounds above 2^56.
        bits = 16 if largest <= 1 << 8 else 32 if largest <= 1 << 24 else 64
        flat = bounds if bounds.ndim == 0 else np.broadcast_to(bounds, shape).ravel()
        drawn, fits = uniform_below(self.digits(bits, n), flat, bits)
        pending = np.flatnonzero(~fits)
        while pending.size:
            some = flat if flat.ndim == 0 else flat[pending]
            again, fits = uniform_below(self.digits(bits, pending.size), some, bits)
            drawn[pending] = again
            pending = pending[~fits]
        return drawn.reshape(shape)

    def bernoulli(
        self, numerator: IntegersLike, denominator: IntegersLike, size: Shape | None = None
    ) -> NDArray[np.bool_]:
        """Coin flips that are True with probability exactly numerator / denominator.

        A uniform real number is compared with the ratio digit by digit; most flips need one 16-bit digit.

        Args:
            numerator: 0 <= numerator <= denominator.
            denominator: at least 1, at most 2^56 - 1.
            size: shape of the result; the broadcast shape of the ratio when absent.

        >>> Seeded(3).bernoulli([0, 5], [5, 5]).tolist()
        [False, True]
        """
        above, under = np.asarray(numerator), np.asarray(denominator)
        if above.dtype.kind not in "iu" or under.dtype.kind not in "iu":
            raise OptionError("probability-ratio-whole-numbers")
        if above.size and under.size and (above.min() < 0 or under.min() < 1 or (above > under).any()):
            raise OptionError("probability-satisfy-0-numerator-denominator-denominator")
        if under.size and under.max() >= LARGEST_DENOMINATOR:
            raise OptionError("denominator-too-large", found=under.max())
        ratio_shape = np.broadcast_shapes(above.shape, under.shape)
        shape = shape_with(ratio_shape, size)
        above_flat, under_flat = (
            side.astype(np.uint64)
            if side.ndim == 0
            else np.broadcast_to(side, shape).ravel().astype(np.uint64)
            for side in (above, under)
        )
        n = int(np.prod(shape, dtype=np.int64))
        return self.flip(above_flat, under_flat, n).reshape(shape)

    def flip(self, above: NDArray[np.uint64], under: NDArray[np.uint64], n: int) -> NDArray[np.bool_]:
        """`bernoulli` for trusted one-dimensional or scalar unsigned arguments."""
        if n == 0:
            return np.zeros(0, dtype=np.bool_)
        bits = _WIDE_DIGIT if int(under.max()) < 1 << (64 - _WIDE_DIGIT) else _NARROW_DIGIT
        return flip_by_digits(self, above, under, n, bits)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """An exactly uniform permutation of 0 .. n - 1.

        Records are sorted by independent uniform keys packed above their index; ties are broken by further
        keys, as if every key had been longer from the start.

        >>> sorted(Seeded(5).permutation(4).tolist())
        [0, 1, 2, 3]
        """
        if n < 0:
            raise OptionError("length-permutation-least-0", found=n)
        return permute_by_keys(self, n, key_bits=64 - max(int(n - 1).bit_length(), 1))


def stream_key(key: bytes, label: str, parts: Sequence[int | bytes]) -> bytes:
    """32 bytes determined by the key, the label and the parts: keyed BLAKE2b.

    >>> stream_key(b"k", "rows", [1]) == stream_key(b"k", "rows", [1]), stream_key(b"k", "rows", [b"1"])[:2].hex()
    (True, '2a44')
    """
    made = hashlib.blake2b(key=key, digest_size=32)
    # every part is encoded with its type and length, so that different lists of parts never coincide
    for part in (label.encode(), *parts):
        kind, content = (b"b", part) if isinstance(part, bytes) else (b"i", str(int(part)).encode())
        made.update(kind + len(content).to_bytes(8, "little") + content)
    return made.digest()


def uniform_below(
    digits: NDArray[np.unsignedinteger[Any]], bound: NDArray[np.integer[Any]], bits: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Digits below 2^bits divided into `bound` runs of equal length: the run of each digit, and whether it is in one.

    Every value below the bound has the same number of digits, so an accepted value is exactly uniform.
    """
    limit = bound.astype(np.uint64)
    run = np.uint64((1 << bits) - 1) // limit
    value = digits // run.astype(digits.dtype)
    return value.astype(np.int64), value < limit


def flip_by_digits(
    source: Source, above: NDArray[np.uint64], under: NDArray[np.uint64], n: int, bits: int
) -> NDArray[np.bool_]:
    """True where a uniform real, revealed `bits` bits at a time, is below above / under.

    A digit equal to the ratio's own digit decides nothing: the remainder of the division then takes the place of
    the numerator. A remainder of 0 means the ratio ends here and the uniform real is not below it.
    """
    shift = np.uint64(bits)
    shifted = above << shift
    ratio_digit = shifted // under
    digit = source.digits(bits, n)
    compared = ratio_digit
    if ratio_digit.ndim == 0 and ratio_digit <= np.iinfo(digit.dtype).max:
        compared = ratio_digit.astype(digit.dtype)  # avoids widening every digit
    result: NDArray[np.bool_] = digit < compared
    pending = (digit == compared).nonzero()[0]
    if not pending.size:
        return result
    remainder = pick(shifted, pending) - pick(ratio_digit, pending) * pick(under, pending)
    while pending.size:
        remainder = np.broadcast_to(remainder, pending.shape)
        open_ended = remainder > 0
        pending, remainder = pending[open_ended], remainder[open_ended]
        if not pending.size:
            break
        shifted = remainder << shift
        ratio_digit = shifted // pick(under, pending)
        digit = source.digits(bits, pending.size)
        result[pending] = digit < ratio_digit
        tied = digit == ratio_digit
        remainder = (shifted - ratio_digit * pick(under, pending))[tied]
        pending = pending[tied]
    return result


def permute_by_keys(source: Source, n: int, key_bits: int) -> NDArray[np.int64]:
    """The order of n records under uniform keys of key_bits bits, ties broken by fresh keys."""
    index_bits = np.uint64(64 - key_bits)
    packed = np.empty(n, dtype=np.uint64)
    for start in range(0, n, _PIECE):
        piece = packed[start : start + _PIECE]
        piece[:] = source.digits(64, piece.size)
        piece >>= index_bits
        piece <<= index_bits
        piece |= np.arange(start, start + piece.size, dtype=np.uint64)
    packed.sort()
    order = (packed & np.uint64((1 << int(index_bits)) - 1)).view(np.int64)
    packed >>= index_bits
    same_as_next = packed[1:] == packed[:-1]
    if same_as_next.any():
        tied = np.zeros(n, dtype=np.bool_)
        tied[1:] |= same_as_next
        tied[:-1] |= same_as_next
        positions = np.flatnonzero(tied)
        order[positions] = order[positions][_order_within(source, packed[positions])]
    return order


def _order_within(source: Source, group: NDArray[np.uint64]) -> NDArray[np.intp]:
    """A uniform order inside each run of equal group numbers; all keys are redrawn when two of a group tie."""
    while True:
        keys = source.digits(64, group.size)
        order = np.lexsort((keys, group))
        again = (group[order][1:] == group[order][:-1]) & (keys[order][1:] == keys[order][:-1])
        if not again.any():
            return order


def pick(values: Picked, index: NDArray[np.intp]) -> Picked:
    """The entries at `index`, or the single value that stands for all of them."""
    return values if values.ndim == 0 else values[index]


def shape_with(values_shape: tuple[int, ...], size: Shape | None) -> tuple[int, ...]:
    """The requested shape, broadcast with the shape of the values, or an error that names both."""
    if size is None:
        return values_shape
    wanted = size if isinstance(size, tuple) else (size,)
    try:
        return np.broadcast_shapes(values_shape, wanted)
    except (ValueError, TypeError):
        raise OptionError("size-does-not-fit-values-shape", found=size, shape=values_shape) from None


class SystemEntropy(Source):
    """Words from the operating system's cryptographic generator.

    Small requests are served from a buffer. Every word is returned once: the buffer is guarded by a lock between
    threads, and a forked child discards it before its first word.

    >>> SystemEntropy().words(3).shape
    (3,)
    """

    reproducible = False
    _BUFFER_WORDS = 1 << 13

    def __init__(self) -> None:
        self._forget()
        _forkable.add(self)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._buffer = np.empty(0, dtype=np.uint64)

    def words(self, n: int) -> NDArray[np.uint64]:
        """n words, each never returned before.

        Raises:
            RuntimeError: inside a task that may be repeated (`computed_again`), which would then draw other words.
        """
        if getattr(_running, "again", False):
            raise RuntimeError(
                "a task that may be run again asked for the operating system's entropy: probably a bug, please report."
            )
        if n >= self._BUFFER_WORDS:
            return _system_words(n)
        # A fork that bypasses the interpreter's hooks still changes the process number.
        if self._process != os.getpid():
            self._forget()
        with self._lock:
            if n > self._buffer.size:
                self._buffer = _system_words(self._BUFFER_WORDS)
            taken, self._buffer = self._buffer[:n].copy(), self._buffer[n:]
        return taken


# whether this thread runs work that may be repeated
_running = threading.local()


@contextmanager
def computed_again() -> Iterator[None]:
    """Marks work that an engine may repeat: the operating system's entropy is not available in it.

    Noise drawn again would differ, and averaging two releases of one cluster would reduce it.
    """
    before = getattr(_running, "again", False)
    _running.again = True
    try:
        yield
    finally:
        _running.again = before


def _system_words(n: int) -> NDArray[np.uint64]:
    drawn = np.empty(n, dtype="<u8")
    for start in range(0, n, _PIECE):
        piece = drawn[start : start + _PIECE]
        piece[:] = np.frombuffer(os.urandom(8 * piece.size), dtype="<u8")
    return drawn.astype(np.uint64, copy=False)


_forkable: weakref.WeakSet[SystemEntropy] = weakref.WeakSet()


def _forget_all_in_child() -> None:
    for entropy in list(_forkable):
        entropy._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all_in_child)


class Seeded(Source):
    """Reproducible words of the counter-based Philox generator: for experiments, never for publication.

    The same seed gives the same words on every platform. A forked child continues the same stream as its parent.

    >>> bool((Seeded(1).words(4) == Seeded(1).words(4)).all())
    True
    """

    reproducible = True

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool | np.bool_) or not isinstance(seed, int | np.integer) or seed < 0:
            raise OptionError("seed-whole-number-least-0-none", option="seed", found=seed)
        self.seed = int(seed)
        self._generator = np.random.Philox(self.seed)

    def child(self, label: str, *parts: int | bytes) -> Source:
        """An independent reproducible source."""
        return Seeded(int.from_bytes(stream_key(str(self.seed).encode()[:64], label, parts)))

    def words(self, n: int) -> NDArray[np.uint64]:
        """The next n words of the stream."""
        with self._generator.lock:
            raw: NDArray[np.uint64] = self._generator.random_raw(n)
        return raw


_shared = SystemEntropy()


def source(seed: int | None) -> Source:
    """The source for a seed: reproducible for an integer, the shared system entropy for None.

    >>> source(None).reproducible, source(3).reproducible
    (False, True)
    """
    return _shared if seed is None else Seeded(seed)


class Keyed(Source):
    """The key stream of ChaCha20 under a key of 32 bytes, word by word.

    With the key, the noise can be recomputed: the key is drawn from the operating system for one release, sent to
    tasks inside their code, and then discarded.

    Guarantee:
        Words are computationally uniform and independent, if ChaCha20 and BLAKE2b are pseudorandom functions.

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
        # a stream continued elsewhere would return the same words in both places
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
    """A source under a new key from the operating system: one for each release."""
    return Keyed(secrets.token_bytes(KEY_BYTES))
