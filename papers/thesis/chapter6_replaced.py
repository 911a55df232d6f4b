"""Replace one record of Census: the largest changes of clusters, rows and likelihoods over many records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from papers.desk import Desk, Task
from papers.thesis.chapter6_census import FILE, census, clusters, insensitive_from, widths
from papers.thesis.chapter6_effort import Effort
from shoal.partition import Partition, mdav
from shoal.partition.multivariate import corner_sequence

K = 5
# clusters as behind the printed figures; from the corners of the domain of section 6.4.1; from those in the sequence
# of section 6.3.3
BOXES = ("insensitive", "wide", "text")
_TOGETHER = 20


@dataclass(frozen=True)
class Replaced:
    """The most that one replaced record changed, over all records and corners that it was replaced by.

    Attributes:
        clusters: number of clusters whose sums changed, of `of`.
        own: movement of the replaced record's own row in units of W/k; `others`: of any other row.
        loss: of the published noise, in units of its ε.
        tables: how many replacements were looked at.
    """

    clusters: int
    of: int
    own: float
    others: float
    loss: float
    tables: int


def replace(folder: Path, box: str, numbers: Sequence[int], corners: int) -> list[float]:
    """The most over some records, each replaced by the first corners of the box."""
    records, tops = census(folder), widths(folder)
    high = records.max(axis=0) if box == "insensitive" else tops.astype(np.int64)
    before = clusters(folder, box, K)
    sums, rows = before.sums(records), before.centroids(records)[before.labels]
    most = np.zeros(4)
    for number in numbers:
        for corner in islice(corner_sequence(records.shape[1]), corners):
            after = records.copy()
            after[number] = [top if corner >> (3 - j) & 1 else 0 for j, top in enumerate(high)]
            made = insensitive_from(after, box, K, records.max(axis=0))
            moved = np.abs(made.sums(after) - sums)
            shifts = (np.abs(made.centroids(after)[made.labels] - rows) / tops * K).max(axis=1)
            own, shifts[number] = shifts[number], 0.0
            here = (float((moved > 0).any(axis=1).sum()), own, shifts.max(), (moved / tops).sum() * K)
            most = np.maximum(most, here)
    return [float(value) for value in most]


def matched(before: Partition, after: Partition, replaced: int) -> bool:
    """Whether some bijection pairs clusters that differ in one record at most: Definition 12 for large tables.

    Records are all different here, so they are known by their row; the replaced one is another record afterwards.

    >>> one, two = Partition.from_labels([0, 0, 1, 1] * 2), Partition.from_labels([0] * 4 + [1] * 4)
    >>> matched(one, one, 0), matched(one, two, 0)
    (True, False)
    """
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if len(before) != len(after) or before.n != after.n:
        return False
    kept = np.arange(before.n) != replaced
    shared = coo_array(
        (np.ones(before.n - 1, dtype=np.int64), (before.labels[kept], after.labels[kept])),
        shape=(len(before), len(after)),
    )
    shared.sum_duplicates()
    rows, columns = shared.coords
    near = np.maximum(before.sizes[rows], after.sizes[columns]) - shared.data <= 1
    # clusters of one record that share nothing still differ in one record only
    if before.sizes.max() == after.sizes.max() == 1:
        return True
    edges = csr_array((np.ones(near.sum()), (rows[near], columns[near])), shape=shared.shape)
    return bool((maximum_bipartite_matching(edges) >= 0).all())


def mdav_breaks(folder: Path, numbers: Sequence[int], k: int) -> int:
    """For how many records, replaced by the low corner, the clusters of MDAV violate Definition 12."""
    records, scale = census(folder), widths(folder)
    before = clusters(folder, "MDAV", k)
    broken = 0
    for number in numbers:
        after = records.copy()
        after[number] = 0
        broken += not matched(before, mdav(after / scale, k), number)
    return broken


def hardly_changed(folder: Path, numbers: Sequence[int], k: int) -> float:
    """Share of MDAV's clusters that differ in one record at most from some cluster after a record is replaced."""
    records, scale = census(folder), widths(folder)
    before = clusters(folder, "MDAV", k)
    near = total = 0
    for number in numbers:
        after = records.copy()
        after[number] = 0
        made = mdav(after / scale, k)
        kept = np.arange(before.n) != number
        shared = np.zeros((len(before), len(made)), dtype=np.int64)
        np.add.at(shared, (before.labels[kept], made.labels[kept]), 1)
        apart = np.maximum(before.sizes[:, np.newaxis], made.sizes) - shared
        near += int((apart.min(axis=1) <= 1).sum())
        total += len(before)
    return near / total


def measure(desk: Desk, effort: Effort) -> tuple[dict[str, Replaced], dict[int, tuple[int, int]]]:
    """Insensitive clusters by box, and for how many of how many records MDAV breaks, by k."""
    folder = desk.file(FILE).parent
    numbers = list(effort.replaced)
    parts = [numbers[start : start + _TOGETHER] for start in range(0, len(numbers), _TOGETHER)]
    tasks: dict[str, Task] = {
        f"replaced {box} {effort.into} {part[0]} {part[-1]} {len(part)}": partial(
            replace, folder, box, part, effort.into
        )
        for box in BOXES
        for part in parts
    }
    found = desk.measure("Census, one record replaced", tasks)
    count = len(clusters(folder, "insensitive", K))
    most = {
        box: np.max([point for key, point in found.items() if key.split()[1] == box], axis=0) for box in BOXES
    }
    sample = numbers[:: max(1, len(numbers) // 60)][:60]
    broken: dict[str, Task] = {
        f"mdav {k} {len(sample)} {sample[-1]}": partial(mdav_breaks, folder, sample, k)
        for k in (2, 5, 15, 30)
    }
    return (
        {
            box: Replaced(
                int(one[0]), count, float(one[1]), float(one[2]), float(one[3]), len(numbers) * effort.into
            )
            for box, one in most.items()
        },
        {
            int(key.split()[1]): (value, len(sample))
            for key, value in desk.measure("Census, MDAV with one record replaced", broken).items()
        },
    )
