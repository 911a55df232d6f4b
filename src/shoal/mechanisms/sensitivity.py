"""Sensitivities of cluster sums: global, and local to the actual records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.errors import OptionError
from shoal.noise import laplace_scale, round_up_scale
from shoal.numbers import Integers
from shoal.partition import Partition

# Sums of shares are computed in floating point; this margin is far above their rounding errors.
_ROUNDING = Fraction(1, 2**40)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Records of one attribute sorted inside their clusters, with the values at both ends of each cluster.

    Attributes:
        rank: position of each record in its own cluster, in input order.
        low: smallest, second and third smallest value of each cluster, shape (3, clusters).
        high: largest, second and third largest value of each cluster.
    """

    rank: Integers
    low: Integers
    high: Integers


def edges(positions: Integers, partition: Partition) -> Edges:
    """Sort every cluster of at least three records; ties keep the input order."""
    if int(partition.sizes.min()) < 3:
        raise OptionError("a-cluster-has-records", found=int(partition.sizes.min()))
    order = np.lexsort((positions, partition.labels))
    ends = np.cumsum(partition.sizes)
    starts = ends - partition.sizes
    rank = np.empty(partition.n, dtype=np.int64)
    rank[order] = np.arange(partition.n) - np.repeat(starts, partition.sizes)
    ordered = positions[order]
    return Edges(
        rank,
        np.stack([ordered[starts + place] for place in range(3)]),
        np.stack([ordered[ends - 1 - place] for place in range(3)]),
    )


def plain_sums(positions: Integers, partition: Partition) -> Integers:
    """Exact cluster sums."""
    return partition.sums(positions)


def inner_sums(positions: Integers, partition: Partition) -> Integers:
    """Cluster sums with one smallest value replaced by the second smallest, and one largest by the second largest.

    >>> inner_sums(np.array([0, 4, 5, 9]), Partition.from_labels([0, 0, 0, 0])).tolist()
    [18]
    """
    found = edges(positions, partition)
    inner: Integers = partition.sums(positions) - found.low[0] + found.low[1] - found.high[0] + found.high[1]
    return inner


def changes_of_sums(positions: Integers, steps: int, partition: Partition) -> Integers:
    """For each record, the maximum change of its cluster's sum when it is replaced by any value of the domain.

    Reference:
        the iDP paper, section 3 (local sensitivity of the mean); docs/proofs/clusters.md#individual.

    >>> changes_of_sums(np.array([1, 9]), 10, Partition.from_labels([0, 0])).tolist()
    [9, 9]
    """
    return np.maximum(steps - positions, positions)


def changes_of_inner_sums(positions: Integers, steps: int, partition: Partition) -> Integers:
    """The same for sums without their extremes, where a replaced record can only reach its neighbours' values.

    Without the record, let t be the others in ascending order: its most extreme values are beyond both ends, which
    gives Σt + t[-1] - t[0] + t[1] and Σt + t[0] - t[-1] + t[-2].

    Reference:
        the iDP paper, Proposition 3 (its maximum over the records of a cluster); docs/proofs/clusters.md#individual.

    >>> changes_of_inner_sums(np.array([0, 4, 5, 9]), 10, Partition.from_labels([0, 0, 0, 0])).tolist()
    [10, 10, 10, 10]
    """
    found = edges(positions, partition)
    label, rank = partition.labels, found.rank
    low, high = found.low[:, label], found.high[:, label]
    last = partition.sizes[label] - 1
    others_low = np.where(rank == 0, low[1], low[0])
    others_second_low = np.where(rank <= 1, low[2], low[1])
    others_high = np.where(rank == last, high[1], high[0])
    others_second_high = np.where(rank >= last - 1, high[2], high[1])
    inner = low[1] - low[0] + high[1] - high[0]
    up = others_high - others_low + others_second_low - positions - inner
    down = inner + positions - (others_low - others_high + others_second_high)
    most: Integers = np.maximum(up, down)
    return most


@dataclass(frozen=True, slots=True)
class Calibration:
    """The summed quantity of a cluster, and its sensitivity to one record.

    Attributes:
        sums: exact sums of lattice positions per cluster.
        changes: for each record the maximum change of its cluster's sum; None if the public width is used instead.
        additive: r replaced records change a sum by at most r such changes, so that a person can own several rows.
        public: noise follows from public widths alone.
        can_vanish: records without spread get no noise at all, unless a floor is set.
        smallest: the minimum cluster size for which the quantity is defined.
    """

    sums: Callable[[Integers, Partition], Integers]
    changes: Callable[[Integers, int, Partition], Integers] | None
    additive: bool = True
    public: bool = False
    can_vanish: bool = False
    smallest: int = 1


CALIBRATIONS: Mapping[str, Calibration] = {
    "global": Calibration(plain_sums, None, public=True),
    "local": Calibration(plain_sums, changes_of_sums),
    "cluster": Calibration(inner_sums, changes_of_inner_sums, additive=False, can_vanish=True, smallest=3),
    "none": Calibration(plain_sums, None),
}


def cluster_scales(
    changes: Sequence[Integers],
    steps: Sequence[int],
    shares: Sequence[Fraction],
    partition: Partition,
    floors: Sequence[Fraction],
    sizes: Integers | None = None,
) -> list[NDArray[np.object_]]:
    """Noise scales of the sums of every cluster, one array of exact fractions per attribute, in lattice steps.

    `sizes` are the cluster sizes if the partition holds only some of their records.

    Attribute j's noise is λ_C·W_j/ε_j, where λ_C is the largest loss Σ_j ε_j·c_ij/W_j that replacing a record i of
    the cluster causes at the full scale W_j/ε_j, divided by Σ_j ε_j. For one attribute that is max_i c_i/ε.

    Guarantee:
        Replacing one record of the actual table, clusters and scales held fixed, costs at most Σ_j ε_j: scales are only
        ever rounded up.

    Reference:
        docs/proofs/clusters.md#individual.
    """
    if len(changes) == 1:
        (found,), (share,) = changes, shares
        per_cluster = [_fractions(clusterwise_maximum(found, partition), lambda most: Fraction(most) / share)]
    else:
        total = sum(shares, Fraction(0))
        weights = [float(share / total / width) for share, width in zip(shares, steps, strict=True)]
        loss = np.sum([weight * found for weight, found in zip(weights, changes, strict=True)], axis=0)
        worst = clusterwise_maximum(loss, partition)
        per_cluster = [
            _fractions(worst, partial(_part_of, Fraction(width) / share))
            for width, share in zip(steps, shares, strict=True)
        ]
    return [
        _at_least(scales, floor, partition.sizes if sizes is None else sizes)
        for scales, floor in zip(per_cluster, floors, strict=True)
    ]


def _part_of(full: Fraction, part: int | float) -> Fraction:
    return Fraction(part) * (1 + _ROUNDING) * full


def clusterwise_maximum(values: NDArray[np.number], partition: Partition) -> NDArray[np.number]:
    """The largest value of each cluster; values are not negative."""
    most = np.zeros(len(partition), dtype=values.dtype)
    np.maximum.at(most, partition.labels, values)
    return most


def _fractions(
    values: NDArray[np.number], scale_of: Callable[[int | float], Fraction]
) -> NDArray[np.object_]:
    """Scales of all clusters; equal values are computed once."""
    distinct, places = np.unique(values, return_inverse=True)
    scales = np.empty(distinct.size, dtype=object)
    scales[:] = [round_up_scale(scale_of(value)) for value in distinct.tolist()]
    return scales[places]


def _at_least(scales: NDArray[np.object_], floor: Fraction, sizes: Integers) -> NDArray[np.object_]:
    """Scales of sums, at least those of a floor for the mean, in lattice steps."""
    if not floor:
        return scales
    least = _fractions(sizes, lambda size: floor * Fraction(size))
    return np.where(scales < least, least, scales)


def cluster_sum_scale(steps: int, epsilon: Fraction) -> Fraction:
    """Scale, in lattice steps, of the Laplace noise on every cluster sum of one attribute.

    Dividing a sum with noise of this scale by |C| afterwards is the same as noise of scale W/(|C|·ε) on the
    mean, and stays exact on integers.

    Guarantee:
        Replacing one record changes the sums of one attribute by at most W = `steps` in L1 norm, over all
        clusters together, in three situations: the clusters are held fixed (one sum moves by at most W); every
        record is a cluster of its own; the clusters are intervals of ranks fixed in advance (the changes
        telescope). Discrete Laplace noise of scale W/ε then costs at most ε. Proof: docs/proofs/clusters.md#sums.

    Reference:
        MDAI-2017, Proposition 2; PSD-2014, Lemma 1.

    >>> cluster_sum_scale(12000, Fraction(1, 2))
    Fraction(24000, 1)
    """
    return laplace_scale(steps, epsilon)
