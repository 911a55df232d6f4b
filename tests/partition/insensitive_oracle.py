"""Insensitive microaggregation as in the thesis, one record at a time: the reference for the kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

Record = tuple[float, ...]


def rounded_square(distance: float, bits: int) -> int:
    return round(distance * distance * 2**bits)


def textbook_hamming(attributes: int) -> list[int]:
    """The thesis' rule, word by word: farthest from the last corner, then from the one before, and so on."""
    chosen = [0]
    free = set(range(1, 2**attributes))
    while free:
        chosen.append(
            min(free, key=lambda corner: ([-(corner ^ one).bit_count() for one in reversed(chosen)], corner))
        )
        free.remove(chosen[-1])
    return chosen


def textbook_alternate(attributes: int) -> list[int]:
    half = 2 ** (attributes - 1)
    return [corner for a in range(half) for corner in (a, 2**attributes - 1 - a)]


def corner_bits(corner: int, attributes: int) -> list[int]:
    return [int(digit) for digit in f"{corner:0{attributes}b}"]


def textbook_insensitive(
    distances: Sequence[Sequence[tuple[float, float]]],
    records: Sequence[Record],
    k: int,
    corners: Sequence[int],
    bits: int | None,
) -> list[int]:
    """Cluster of each record. `distances[i][j]` is how far record i is in attribute j from the low and the high end.

    With `bits` squares are rounded as the library does; without, they are exact fractions.
    """
    m = len(records[0])
    labels = [-1] * len(records)
    remaining = list(range(len(records)))
    cluster = 0
    while len(remaining) >= 2 * k:
        ends = corner_bits(corners[cluster % len(corners)], m)

        def key(i: int, ends: list[int] = ends) -> tuple[object, Record, int]:
            parts = [distances[i][j][end] for j, end in enumerate(ends)]
            if bits is None:
                return sum(Fraction(part) ** 2 for part in parts), records[i], i
            return sum(rounded_square(part, bits) for part in parts), records[i], i

        remaining.sort(key=key)
        for i in remaining[:k]:
            labels[i] = cluster
        del remaining[:k]
        cluster += 1
    for i in remaining:
        labels[i] = cluster
    return labels


def textbook_single(
    distances: Sequence[Sequence[tuple[float, float]]], records: Sequence[Record], k: int, bits: int
) -> list[int]:
    """One order, clusters from the low and the high end in turn; they are numbered from low to high."""
    order = sorted(
        range(len(records)),
        key=lambda i: (sum(rounded_square(low, bits) for low, _ in distances[i]), records[i], i),
    )
    below: list[list[int]] = []
    above: list[list[int]] = []
    while len(order) >= 3 * k:
        below.append(order[:k])
        above.append(order[-k:])
        order = order[k:-k]
    if len(order) >= 2 * k:
        below.append(order[:k])
        order = order[k:]
    labels = [-1] * len(records)
    for cluster, members in enumerate([*below, order, *reversed(above)]):
        for i in members:
            labels[i] = cluster
    return labels


def unit_bits(reaches: Sequence[float]) -> int:
    return 60 - sum(math.ceil(reach) ** 2 for reach in reaches).bit_length()
