"""Records in, clusters of k similar records out: MDAV, maximum distance to average vector."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shoal.errors import OptionError, did_you_mean
from shoal.partition.base import Partition, as_matrix, check_k
from shoal.partition.reference import Progress, mdav_numpy

_ALGORITHMS = ("auto", "numpy")


def mdav(X: ArrayLike, k: int, *, algorithm: str = "auto", progress: Progress | None = None) -> Partition:
    """Fixed-size multivariate microaggregation.

    While at least 3k records remain: the record farthest from their mean and its k-1 nearest are a cluster;
    then the record farthest from that one among the rest and its k-1 nearest are the next. If at least 2k
    remain, one more cluster around the record farthest from the mean. The rest, k to 2k-1 records, is the
    last cluster. Ties go to the lowest record index; fewer than 2k records are one cluster. Clusters are
    numbered in order of creation. Distances are Euclidean on the values as given: see `normalise`.

    Args:
        X: records, shape (n, d), finite.
        k: minimum cluster size.
        algorithm: `auto`, or one way to compute the same clusters.
        progress: called with (records done, records in all) from time to time.

    Guarantee: none by itself; noise added to the cluster means protects given the partition.
    Cost: O(n^2 d / k) time, O(n d) memory.
    Reference: MDAI-2017, Algorithm 1.

    >>> mdav([[0.0], [1.0], [5.0], [6.0], [20.0], [21.0]], k=2).labels.tolist()
    [1, 1, 2, 2, 0, 0]
    """
    if algorithm not in _ALGORITHMS:
        raise OptionError(
            f"algorithm = {algorithm!r} is not known: use one of {', '.join(_ALGORITHMS)}."
            f"{did_you_mean(algorithm, _ALGORITHMS)}"
        )
    values = as_matrix(X)
    labels = mdav_numpy(values, check_k(k, values.shape[0]), progress)
    return Partition(labels, np.bincount(labels))
