"""One attribute in, its records in ascending order out: ties by record index, at the cost of a value sort."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_SMALL = 4096
_WORD = 64
# elements handled at a time, so that intermediate arrays stay in the processor's cache
_PIECE = 1 << 15


def stable_order(values: NDArray[Any]) -> NDArray[np.int64]:
    """Record numbers in ascending order of value, equal values in input order: a stable argsort.

    Sorting plain integers is several times faster than sorting an index by them, so value and index are packed
    into one 64-bit word. Where both do not fit, the lowest bits of the value are left out and the few neighbours
    that end up in the wrong order are sorted afterwards.

    Cost: one value sort of n words; n words of memory besides the input, up to 4n where values and index do not fit.

    >>> stable_order(np.array([3.5, -1.0, 3.5, 0.0])).tolist()
    [1, 3, 0, 2]
    """
    n = values.size
    if n < _SMALL:
        return np.argsort(values, kind="stable").astype(np.int64, copy=False)
    low, high = (int(_keys(np.array([bound]))[0]) for bound in (values.min(), values.max()))
    index_bits = int(n - 1).bit_length()
    dropped = max((high - low).bit_length() + index_bits - _WORD, 0)
    packed = np.empty(n, dtype=np.uint64)
    index = np.arange(min(_PIECE, n), dtype=np.uint64)
    for start in range(0, n, _PIECE):
        piece = _keys(values[start : start + _PIECE])
        piece -= np.uint64(low)
        piece >>= np.uint64(dropped)
        piece <<= np.uint64(index_bits)
        piece |= index[: piece.size] + np.uint64(start)
        packed[start : start + _PIECE] = piece
    packed.sort()
    packed &= np.uint64((1 << index_bits) - 1)
    order = packed.view(np.int64)
    return _repaired(order, values, low, dropped) if dropped else order


def _keys(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Unsigned 64-bit integers in the order of the values."""
    if values.dtype.kind == "u":
        return values.astype(np.uint64)
    if values.dtype.kind == "f":
        # + 0.0 makes one zero of two; negative numbers have all their bits flipped, others only the sign
        bits = (values.astype(np.float64) + 0.0).view(np.int64)
        return (bits ^ ((bits >> 63) | np.int64(-(2**63)))).view(np.uint64)
    return (values.astype(np.int64) ^ np.int64(-(2**63))).view(np.uint64)


def _repaired(order: NDArray[np.int64], values: NDArray[Any], low: int, dropped: int) -> NDArray[np.int64]:
    """Put records right that differ only in the bits left out of the sort."""
    ordered = values[order]
    wrong = np.flatnonzero(ordered[1:] < ordered[:-1])
    if wrong.size == 0:
        return order
    if wrong.size > order.size // 64:
        return np.argsort(values, kind="stable").astype(np.int64, copy=False)
    kept = (_keys(ordered) - np.uint64(low)) >> np.uint64(dropped)
    runs = np.unique(kept[wrong])
    starts = np.searchsorted(kept, runs, side="left").tolist()
    ends = np.searchsorted(kept, runs, side="right").tolist()
    for start, end in zip(starts, ends, strict=True):
        run = order[start:end]
        order[start:end] = run[np.argsort(values[run], kind="stable")]
    return order
