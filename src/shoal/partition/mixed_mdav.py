"""MDAV on mixed records: numbers and concepts of taxonomies come in, a `Partition` leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.display import internal
from shoal.errors import InputError
from shoal.partition.base import Partition, as_matrix, check_k

if TYPE_CHECKING:
    from shoal.taxonomy import Taxonomy

Matrix = NDArray[np.float64]
Codes = NDArray[np.int64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Concepts:
    """One nominal attribute: its tree, and the squared distances to the concepts asked for so far.

    No table of all pairs: a row of distances is made when a concept is first a reference point.
    """

    tree: Taxonomy
    known: dict[int, Matrix] = field(default_factory=dict)

    def squared_to(self, code: int) -> Matrix:
        if code not in self.known:
            self.known[code] = (self.tree.distances_to(code) / (self.tree.width or 1.0)) ** 2
        return self.known[code]


def mdav_mixed(
    numbers: ArrayLike | None,
    codes: Sequence[Codes],
    trees: Sequence[Taxonomy],
    k: int,
    progress: Callable[[int, int], None] | None = None,
) -> Partition:
    """Fixed-size clusters of similar mixed records, by the same rule as `mdav`.

    The squared distance of two records is the sum over attributes of squared differences, numbers as they are given
    (divide them by their public widths) and concepts by their semantic distance over the distance of the two ends of
    the domain. The average record has the mean of every number and the least marginal value of every nominal attribute.

    Args:
        numbers: the numeric attributes, one column each, or None.
        codes: for each nominal attribute the concept of every record.
        trees: their taxonomies.
        k: minimum cluster size; all clusters but the last one have exactly k records.

    Cost:
        Time n²/k per attribute, memory n per attribute; no loop over records.

    Reference:
        The thesis, Equation 6.7 (distance) and section 2.2 (MDAV).

    >>> from shoal.taxonomy import Taxonomy
    >>> tree = Taxonomy.flat(["a", "b"])
    >>> mdav_mixed([[0.0], [0.1], [0.0], [0.1]], [tree.encode(["a", "b", "a", "b"])], [tree], 2).labels.tolist()
    [1, 0, 1, 0]
    """
    found = [np.asarray(column, dtype=np.int64) for column in codes]
    if numbers is None and not found:
        raise InputError("there-no-attribute-group")
    n = found[0].size if numbers is None else as_matrix(numbers).shape[0]
    matrix = np.zeros((n, 0)) if numbers is None else as_matrix(numbers)
    check_k(k, n)
    work = _Remaining(
        np.arange(n), np.ascontiguousarray(matrix.T), found, [_Concepts(tree) for tree in trees]
    )
    labels = np.empty(n, dtype=np.int64)
    cluster = 0
    while work.size >= 2 * k:
        several = work.size >= 3 * k
        far = int(np.argmax(work.distances_to_average()))
        reference = work.record(far)
        cluster = _take(work, work.distances(*reference), k, labels, cluster)
        if several:
            opposite = work.record(int(np.argmax(work.distances(*reference))))
            cluster = _take(work, work.distances(*opposite), k, labels, cluster)
        if progress is not None:
            progress(n - work.size, n)
    labels[work.members] = cluster
    return Partition(labels, np.bincount(labels, minlength=cluster + 1).astype(np.int64))


class _Remaining:
    """The records without a cluster yet, held together so that every pass is over contiguous numbers."""

    def __init__(
        self, members: Codes, numbers: Matrix, codes: list[Codes], concepts: list[_Concepts]
    ) -> None:
        self.members, self.numbers, self.codes, self.concepts = members, numbers, codes, concepts
        self.counts = [
            np.bincount(column, minlength=known.tree.size)
            for column, known in zip(codes, concepts, strict=True)
        ]

    @property
    def size(self) -> int:
        return int(self.members.size)

    def record(self, place: int) -> tuple[Matrix, list[int]]:
        return self.numbers[:, place].copy(), [int(column[place]) for column in self.codes]

    def distances(self, numbers: Matrix, codes: list[int]) -> Matrix:
        """Squared distances of all remaining records to one."""
        total = np.zeros(self.size)
        for column, value in zip(self.numbers, numbers, strict=True):
            total += (column - value) ** 2
        for column, known, code in zip(self.codes, self.concepts, codes, strict=True):
            total += known.squared_to(code)[column]
        return total

    def distances_to_average(self) -> Matrix:
        middles = []
        for known, counts in zip(self.concepts, self.counts, strict=True):
            candidates = known.tree.candidates(generalise=False)
            marginal = known.tree.marginalities(counts)[candidates]
            middles.append(int(candidates[np.argmin(marginal)]))
        return self.distances(self.numbers.mean(axis=1), middles)

    def remove(self, places: NDArray[np.intp]) -> None:
        keep = np.ones(self.size, dtype=np.bool_)
        keep[places] = False
        for number, column in enumerate(self.codes):
            self.counts[number] -= np.bincount(column[places], minlength=self.counts[number].size)
            self.codes[number] = column[keep]
        self.members, self.numbers = self.members[keep], self.numbers[:, keep]


def _take(work: _Remaining, distances: Matrix, k: int, labels: Codes, cluster: int) -> int:
    """Give the k nearest records the next cluster; ties go to the lowest record."""
    # records stand in input order, so that a stable choice among the nearest is a choice by index
    bound = np.partition(distances, k - 1)[k - 1]
    closer = np.flatnonzero(distances < bound)
    tied = np.flatnonzero(distances == bound)[: k - closer.size]
    places = np.concatenate([closer, tied])
    labels[work.members[places]] = cluster
    work.remove(places)
    return cluster + 1
