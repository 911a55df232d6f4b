"""Records in, clusters of k to 2k-1 records out: MDAV whose clusters grow where the data are dense."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import OptionError
from shoal.partition.base import Partition, as_matrix, check_k
from shoal.partition.exact_sum import cutters, pieces_sum, rounded
from shoal.partition.reference import Progress, squared_distances


def vmdav(X: ArrayLike, k: int, gamma: float = 0.2, *, progress: Progress | None = None) -> Partition:
    """Variable-size multivariate microaggregation.

    While at least k records are free: the free record farthest from the mean of the whole table and its k-1
    nearest free records are a cluster. Then, as long as it has fewer than 2k-1 records, the cluster may grow:
    take the free record whose distance d_in to its nearest member is least, and let d_out be its distance to
    the nearest other free record; it joins if d_in < gamma d_out, else the cluster is finished. With one free
    record left d_out is infinite, so it joins unless gamma is 0. Fewer than k records that are free at the
    end join, in record order, the cluster whose mean (of its members before this step) is nearest.

    Ties go to the lowest record index, and to the cluster made first. Clusters are numbered in order of
    creation. Sizes are k to 2k-1, except that clusters near leftovers may be larger. gamma = 0 gives
    clusters of exactly k and leftovers.

    Args:
        X: records, shape (n, d), finite.
        k: minimum cluster size.
        gamma: gain factor, at least 0; about 0.2 for scattered data, about 1.1 for clustered data.
        progress: called with (records done, records in all) after every cluster; may raise to stop.

    Guarantee: none by itself; noise added to the cluster means protects given the partition.
    Cost: O(n^2 d) time at worst, O(n d) memory.
    Reference: the gain factor of variable-size MDAV (V-MDAV).

    >>> vmdav([[0.0], [0.1], [0.2], [9.0], [9.1], [20.0]], k=2, gamma=1.0).labels.tolist()
    [1, 1, 1, 0, 0, 0]
    """
    if not np.isfinite(gamma) or gamma < 0:
        raise OptionError("gamma-number-least-0", option="gamma", found=gamma)
    values = as_matrix(X)
    n = values.shape[0]
    least = check_k(k, n)
    columns = np.ascontiguousarray(values.T)
    centre = rounded(pieces_sum(columns, cutters(columns))) / n
    labels = np.full(n, -1, dtype=np.int64)
    free = np.arange(n)
    by_distance = squared_distances(columns, centre)
    cluster = 0
    while free.size >= least:
        pole = free[np.argmax(by_distance[free])]
        members = _grown(columns, free, int(pole), least, gamma)
        labels[members] = cluster
        cluster += 1
        free = free[labels[free] < 0]
        if progress is not None:
            progress(n - free.size, n)
    if free.size:
        means = Partition.from_labels(labels[labels >= 0]).centroids(values[labels >= 0])
        for record in free:
            labels[record] = np.argmin(squared_distances(means.T, values[record]))
        if progress is not None:
            progress(n, n)
    return Partition(labels, np.bincount(labels))


def _grown(
    columns: NDArray[np.float64], free: NDArray[np.int64], pole: int, k: int, gamma: float
) -> list[int]:
    """The pole, its k-1 nearest free records, and those that the gain factor lets in."""
    nearby = columns[:, free]
    to_pole = squared_distances(nearby, columns[:, pole])
    to_pole[np.searchsorted(free, pole)] = -1.0
    limit = np.partition(to_pole, k - 1)[k - 1]
    positions = np.flatnonzero(to_pole < limit).tolist()
    positions += np.flatnonzero(to_pole == limit)[: k - len(positions)].tolist()
    if k == 1 or free.size == k:
        return [int(free[position]) for position in positions]
    inside = np.zeros(free.size, dtype=bool)
    inside[positions] = True
    to_cluster = np.full(free.size, np.inf)
    for position in positions:
        np.minimum(to_cluster, squared_distances(nearby, nearby[:, position]), out=to_cluster)
    while len(positions) < min(2 * k - 1, free.size):
        to_cluster[inside] = np.inf
        candidate = int(np.argmin(to_cluster))
        from_candidate = squared_distances(nearby, nearby[:, candidate])
        others = ~inside
        others[candidate] = False
        out = np.sqrt(from_candidate[others].min()) if others.any() else np.inf
        if not np.sqrt(to_cluster[candidate]) < gamma * out:
            break
        positions.append(candidate)
        inside[candidate] = True
        np.minimum(to_cluster, from_candidate, out=to_cluster)
    return [int(free[position]) for position in positions]
