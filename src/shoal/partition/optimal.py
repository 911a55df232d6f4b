"""One attribute in, its clusters of least expected error out: sizes vary, the best partition is found exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.partition import double_double as dd
from shoal.partition.base import Partition, check_k
from shoal.partition.interval_costs import Costs, Number, compiled, costs_of

# Relative error of a path's cost in plain doubles, generously; what is closer is computed with pairs of doubles.
ROUGH = 2.0**-47
# Paths that differ by less, relative to their cost or to the squares added up, cost the same: rounding of pairs, about
# 2^-104 for each of up to a million clusters, is far below, and costs that really differ are far above.
PATH_TIE = 2.0**-84
SUMS_TIE = 2.0**-100


def optimal(x: ArrayLike, width: Number, epsilon: Number, k: int = 3) -> Partition:
    """The partition with the least expected squared error of noisy cluster means, of all with clusters of k or more.

    A cluster C costs Σ (x - mean)² + 2 (W/ε)² / |C|: each of its records is off by its distance from the mean and by
    noise of variance 2 (W/(|C|ε))². The best clusters are runs of sorted values (ties in record order), larger where
    values are dense. Of several best partitions the one is taken whose last cluster starts lowest, then the
    last but one, and so on; costs count as equal where they agree to 25 digits. Clusters are numbered in order of
    value.

    Args:
        x: values of one attribute, integers or floats.
        width: W, the width of the attribute's public domain, in the units of x.
        epsilon: ε, the attribute's share of the budget.
        k: minimum cluster size. With 1 an isolated record can be a cluster of its own and stand out in a release.

    Guarantee: none by itself. The clusters depend on the values, so noise added to their means protects given the
        partition only.
    Cost: O(n log n) time, about 12 arrays of n words. The first large column of an installation waits some seconds
        for compilation, later ones do not.
    Reference: answers the open question of MDAI-2017 (variable size, k = 1).

    >>> optimal([0, 1, 2, 3, 50, 51, 52, 90, 91, 92], width=100, epsilon=10).sizes.tolist()
    [4, 3, 3]
    """
    costs = costs_of(x, width, epsilon)
    least = check_k(k, costs.n)
    previous = shortest_path(costs, least) if compiled(costs.n) else scanned_path(costs, least)
    ends = [costs.n]
    while (start := int(previous[ends[-1]])) > 0:
        ends.append(start)
    sizes: NDArray[np.int64] = np.diff([0, *reversed(ends)]).astype(np.int64)
    labels = np.empty(costs.n, dtype=np.int64)
    labels[costs.order] = np.repeat(np.arange(sizes.size), sizes)
    return Partition(labels, sizes)


def shortest_path(costs: Costs, k: int) -> NDArray[np.int64]:
    """Where the last cluster starts in the best partition of the first j values, for every j ≥ k: O(n log n)."""
    from shoal.partition import _kernels_optimal as kernels

    return kernels.shortest_path(costs.sums, k, *costs.noise)


def scanned_path(costs: Costs, k: int) -> NDArray[np.int64]:
    """The same by trying every start for every j, O(n²): the definition, and quick for small inputs."""
    n, noise = costs.n, costs.noise
    sums = costs.sums
    listed: list[list[float]] = sums.tolist()
    cost = np.zeros(n + 1)
    pairs: list[tuple[float, float]] = [(0.0, 0.0)] * (n + 1)
    previous = np.zeros(n + 1, dtype=np.int64)
    possible = np.arange(n + 1)
    # nothing ends below k except the empty path
    possible = np.concatenate([possible[:1], possible[k:]])
    for j in range(k, n + 1):
        starts = possible[: max(j - 2 * k + 2, 1)]
        lengths = (j - starts).astype(np.float64)
        difference = sums[j] - sums[starts]
        s, q = difference[:, 0] + difference[:, 1], difference[:, 2] + difference[:, 3]
        roughly = cost[starts] + (q - (s * s - noise[0]) / lengths)
        doubt = ROUGH * (cost[starts] + q + noise[0] / lengths) + SUMS_TIE * sums[j, 4]
        near = starts[roughly - doubt <= (roughly + doubt).min()].tolist()
        closely = [_path_cost(pairs[i], listed[i], listed[j], j - i, noise) for i in near]
        least, least_low = min(closely)
        tie = PATH_TIE * least + SUMS_TIE * listed[j][4]
        chosen = next(at for at, (c, low) in enumerate(closely) if (c - least) + (low - least_low) <= tie)
        previous[j] = near[chosen]
        pairs[j] = closely[chosen]
        cost[j] = pairs[j][0]
    return previous


def _path_cost(
    before: tuple[float, float], start: list[float], end: list[float], length: int, noise: tuple[float, float]
) -> tuple[float, float]:
    s = dd.add(end[0], end[1], -start[0], -start[1])
    q = dd.add(end[2], end[3], -start[2], -start[3])
    mean = dd.divide(*dd.add(*dd.square(*s), -noise[0], -noise[1]), float(length))
    return dd.add(*before, *dd.add(*q, -mean[0], -mean[1]))
