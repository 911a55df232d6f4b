"""Distances, bounds and extremes of all lanes of a block at once, uncompiled: the specification of `_kernels_llvm`.

Every lane has the bits of a plain loop: operations are in the same order, and ties are broken the same way. Rows of a
block: one per attribute, then one more for the distance to a reference point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.numbers import Bools, Floats

LEAF = 32
FAN = 16
# Bounds by radii are not exact to the bit: widened by far more than the rounding errors of d terms.
SLACK = 1e-10


def distances_within(values: Floats, leaf: int, point: Floats, limit: float, out: Floats) -> int:
    """Lanes of a leaf with a squared distance, in `out`, of at most a limit.

    Args:
        values: (leaves, d + 1, LEAF).
    """
    _distances(values, leaf, point, out)
    return _lanes(out <= limit)


def distances_beyond(values: Floats, leaf: int, point: Floats, limit: float, out: Floats) -> int:
    """Lanes of a leaf with a squared distance, in `out`, of at least a limit."""
    _distances(values, leaf, point, out)
    return _lanes(out >= limit)


def _distances(values: Floats, leaf: int, point: Floats, out: Floats) -> None:
    out[:] = 0.0
    for j in range(point.size):
        difference = values[leaf, j] - point[j]
        out += difference * difference


# Both bounds below are the better of two. The first is the near or far corner of the box, computed with the operations
# of the exact distance and so valid to the last bit. The second also uses the reach r, the largest distance of the
# records below to the reference point, from which x and p are measured here: for any weight w >= 0
#   |x-p|^2 >= min over the box of |x-p|^2 + w (|x|^2 - r^2), attained at x = p / (1+w) clipped to the box,
#   -2 x.p  <= max over the box of -2 x.p - w (|x|^2 - r^2), attained at x = -p / w clipped to the box;
# w is chosen so that the unclipped x has length r. It is widened by SLACK for rounding.
def near_bounds(
    low: Floats, high: Floats, group: int, point: Floats, reference: Floats, limit: float, out: Floats
) -> int:
    """Boxes of a group whose least squared distance, in `out`, is at most a limit; infinite for empty boxes.

    Args:
        low, high: (groups, d + 1, FAN).
    """
    length = _length(point, reference)
    reach = _larger(high[group, point.size], 0.0)
    shrink = _smaller(_quotient(reach, length), 1.0)
    weight = _larger(_quotient(length, reach) - 1.0, 0.0)
    total, inside = np.zeros(FAN), np.zeros(FAN)
    for j in range(point.size):
        a, b = low[group, j], high[group, j]
        gap = _larger(_larger(a - point[j], point[j] - b), 0.0)
        total = total + gap * gap
        v = point[j] - reference[j]
        x = _clipped(v * shrink, a - reference[j], b - reference[j])
        away = x - v
        inside = inside + (away * away + weight * (x * x))
    both = reach + length
    ball = (inside - weight * (reach * reach)) - SLACK * (both * both)
    out[:] = _larger(ball, total)
    return _lanes(out <= limit)


def far_bounds(
    low: Floats, high: Floats, group: int, point: Floats, reference: Floats, limit: float, out: Floats
) -> int:
    """Boxes of a group whose largest squared distance, in `out`, is at least a limit; 0 for empty boxes."""
    length = _length(point, reference)
    reach = _larger(high[group, point.size], 0.0)
    stretch, weight = _quotient(reach, length), _quotient(length, reach)
    corner, along, inside = np.zeros(FAN), np.zeros(FAN), np.zeros(FAN)
    for j in range(point.size):
        a, b = low[group, j], high[group, j]
        side = _larger(_larger(point[j] - a, b - point[j]), 0.0)
        corner = corner + side * side
        # From here on relative to the reference, and with the point mirrored in it.
        v = reference[j] - point[j]
        a, b = a - reference[j], b - reference[j]
        along = along + (a if v < 0.0 else b) * v
        x = _clipped(v * stretch, a, b)
        inside = inside + x * (v - 0.5 * (weight * x))
    square = reach * reach
    opposite = _smaller(inside + 0.5 * (weight * square), along)
    both = reach + length
    ball = ((square + length * length) + 2.0 * opposite) + SLACK * (both * both)
    out[:] = _smaller(ball, corner)
    return _lanes(out >= limit)


def fit_leaf(
    inner_low: Floats,
    inner_high: Floats,
    leaf: int,
    live: int,
    low: Floats,
    high: Floats,
    group: int,
    slot: int,
) -> bool:
    """Store the box of the live lanes of a leaf at its place in a group; returns whether it changed."""
    changed = False
    for j in range(inner_low.shape[1]):
        changed |= _fitted(inner_low[leaf, j, :live], np.inf, _smaller, low, (group, j, slot))
        changed |= _fitted(inner_high[leaf, j, :live], -np.inf, _larger, high, (group, j, slot))
    return changed


# the same for the bounding box of a group's boxes
fit_group = fit_leaf


def _fitted(
    lanes: Floats, empty: float, pick: Callable[[Any, Any], Floats], ends: Floats, place: tuple[int, int, int]
) -> bool:
    """Store the minimum or maximum of some lanes, found by halving; returns whether it changed."""
    found = np.full(LEAF, empty)
    found[: lanes.size] = lanes
    while found.size > 1:
        half = found.size // 2
        found = pick(found[:half], found[half:])
    changed = bool(found[0] != ends[place])
    ends[place] = found[0]
    return changed


def borrowed(arrays: Any) -> Any:
    """The same arrays; compiled code uses them without reference counting."""
    return arrays


def lowest_bit(mask: int) -> int:
    """Index of the lowest set bit."""
    found = int(mask)
    return (found & -found).bit_length() - 1


def _lanes(holds: Bools) -> int:
    """One bit for each lane."""
    return int.from_bytes(np.packbits(holds, bitorder="little").tobytes(), "little")


def _length(point: Floats, reference: Floats) -> Any:
    """Distance of the point to the reference."""
    square = np.float64(0.0)
    for j in range(point.size):
        v = point[j] - reference[j]
        square = square + v * v
    return np.sqrt(square)


def _larger(a: Any, b: Any) -> Floats:
    found: Floats = np.where(a > b, a, b)
    return found


def _smaller(a: Any, b: Any) -> Floats:
    found: Floats = np.where(a < b, a, b)
    return found


def _clipped(value: Any, low: Floats, high: Floats) -> Floats:
    return _smaller(_larger(value, low), high)


def _quotient(a: Any, b: Any) -> Floats:
    """a / b, and 0 where b is 0."""
    found: Floats = np.where(b > 0.0, a / b, 0.0)
    return found
