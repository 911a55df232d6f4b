"""Exact sums of products inside clusters: lattice positions come in, Python integers leave, of any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.partition import Partition

Whole = NDArray[np.int64]
Objects = NDArray[np.object_]

_WORD = 63


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Centred:
    """Records in cluster order, each attribute measured from a whole number near its cluster's mean.

    Central moments do not depend on where one measures from, and products of small numbers fit into a machine word.

    Attributes:
        columns: deviations of each attribute, records of a cluster side by side.
        starts: where each cluster begins.
        sizes: number of records of each cluster.
        totals: sum of each attribute's own positions in each cluster.
        counts: how many records each entry stands for, where equal ones are one entry.
    """

    columns: tuple[Whole, ...]
    starts: Whole
    sizes: Whole
    totals: tuple[Whole, ...]
    counts: Whole | None = None

    @classmethod
    def of_runs(cls, labels: Whole, positions: Whole, counts: Whole, totals: Whole, sizes: Whole) -> Centred:
        """One attribute, equal positions of a cluster as one entry with their number; labels ascend.

        >>> made = Centred.of_runs(*map(np.array, ([0, 0, 1], [4, 6, 9], [2, 1, 5], [14, 45], [3, 5])))
        >>> made.sums(0, 0).tolist()
        [4, 0]
        """
        starts = np.searchsorted(labels, np.arange(sizes.size))
        return cls((positions - (totals // sizes)[labels],), starts, sizes, (totals,), counts)

    @classmethod
    def of(cls, positions: Sequence[Whole], partition: Partition) -> Centred:
        order = cluster_order(partition.labels)
        starts = np.cumsum(partition.sizes) - partition.sizes
        columns, totals = [], []
        for column in positions:
            ordered = column[order]
            totals.append(np.add.reduceat(ordered, starts))
            columns.append(ordered - np.repeat(totals[-1] // partition.sizes, partition.sizes))
        return cls(tuple(columns), starts, partition.sizes, tuple(totals))

    def sums(self, *attributes: int) -> Objects:
        """Σ of the product of these attributes over the records of each cluster, exact whatever its size.

        >>> made = Centred.of([np.array([0, 2**52, 7])], Partition.from_labels([0, 0, 1]))
        >>> made.sums(0, 0).tolist() == [2 * (2**51) ** 2, 0]
        True
        """
        factors = [self.columns[number] for number in attributes]
        if self.counts is not None:
            factors.append(self.counts)
        return _product_sums(factors, self.starts, self.sizes)


def cluster_order(labels: Whole) -> NDArray[np.intp]:
    """Records cluster by cluster, in input order inside each.

    >>> cluster_order(np.array([1, 0, 1, 0])).tolist()
    [1, 3, 0, 2]
    """
    # short integers are sorted by their digits, in a fraction of the time
    short = labels.astype(np.uint16) if labels.size and int(labels.max()) < 1 << 16 else labels
    return np.argsort(short, kind="stable")


def _product_sums(factors: Sequence[Whole], starts: Whole, sizes: Whole) -> Objects:
    """Every factor is cut into digits so short that a cluster of products of digits fits into a word."""
    room = _WORD - int(sizes.max()).bit_length()
    widths = [int(np.abs(factor).max()).bit_length() + 1 for factor in factors]
    if sum(widths) <= room:
        return np.add.reduceat(reduce(np.multiply, factors), starts).astype(object)
    bits = room // len(factors)
    total = np.zeros(sizes.size, dtype=object)
    digits = [_digits(factor, width, bits) for factor, width in zip(factors, widths, strict=True)]
    for chosen in product(*(range(len(parts)) for parts in digits)):
        piece = reduce(np.multiply, [parts[place] for parts, place in zip(digits, chosen, strict=True)])
        total = total + (np.add.reduceat(piece, starts).astype(object) << (bits * sum(chosen)))
    return total


def _digits(values: Whole, width: int, bits: int) -> list[Whole]:
    """values = Σ digit · 2^(bits · place), the last digit signed; every digit is below 2^bits in size."""
    parts = []
    while width > bits:
        parts.append(values & ((1 << bits) - 1))
        values = values >> bits
        width -= bits
    return [*parts, values]
