"""Records in, clusters of k similar records out: MDAV, maximum distance to average vector."""

from __future__ import annotations

import os
import sys

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import OptionError, closest
from shoal.partition.base import Partition, as_matrix, check_k, rows_stood_for
from shoal.partition.reference import Progress, mdav_numpy

_ALGORITHMS = ("auto", "numpy", "brute", "tree")

# Compiling the kernels takes longer than numpy needs for this many seconds of work.
_NUMPY_SECONDS = 1.0
_NUMPY_SECONDS_ONCE_COMPILED = 0.02
# Beyond this many attributes boxes hardly ever exclude anything; below it the tree itself finds out.
_TREE_ATTRIBUTES = 40


def mdav(
    X: ArrayLike,
    k: int,
    *,
    algorithm: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Partition:
    """Fixed-size multivariate microaggregation.

    While at least 3k records remain: the record farthest from their mean and its k-1 nearest are a cluster;
    then the record farthest from that one among the rest and its k-1 nearest are the next. If at least 2k
    remain, one more cluster around the record farthest from the mean. The rest, k to 2k-1 records, is the
    last cluster. Ties go to the lowest record index; fewer than 2k records are one cluster. Clusters are
    numbered in order of creation. Distances are Euclidean on the values as given: see `normalise`.

    Args:
        X: records, shape (n, d), finite.
        k: minimum cluster size.
        algorithm: how the clusters are found; they are the same to the last record. `numpy` needs no
            compilation, `brute` scans all records with compiled code, `tree` searches a tree of boxes, `auto`
            takes numpy for small tables, brute in high dimension, and the tree otherwise, which goes over to
            scanning when its boxes turn out not to exclude enough.
        threads: at most this many for scanning large tables; all processors by default.
        progress: called with (records done, records in all) from time to time; may raise to stop.

    Guarantee: none by itself; noise added to the cluster means protects given the partition.
    Cost: O(n d) memory; O(n^2 d / k) time by scanning, near O(n log n) by the tree in few dimensions. The
        first large table of an installation waits some seconds for compilation, later ones do not.
    Reference: MDAI-2017, Algorithm 1.

    >>> mdav([[0.0], [1.0], [5.0], [6.0], [20.0], [21.0]], k=2).labels.tolist()
    [1, 1, 2, 2, 0, 0]
    """
    if algorithm not in _ALGORITHMS:
        raise OptionError(
            "algorithm-not-known",
            option="algorithm",
            found=algorithm,
            allowed=tuple(_ALGORITHMS),
            hint=closest(algorithm, _ALGORITHMS),
        )
    if threads is not None and threads < 1:
        raise OptionError("threads-least-1", option="threads", found=threads)
    values = as_matrix(X)
    least = check_k(k, values.shape[0])
    labels = _labels(values, least, algorithm, threads or os.cpu_count() or 1, progress)
    return Partition(labels, np.bincount(labels))


def _labels(
    values: NDArray[np.float64], k: int, algorithm: str, threads: int, progress: Progress | None
) -> NDArray[np.int64]:
    n, d = values.shape
    if algorithm == "auto":
        algorithm = _choice(n, d, k)
        may_scan = True
    else:
        may_scan = False
    if algorithm == "numpy":
        return mdav_numpy(values, k, progress)
    if algorithm == "brute":
        from shoal.partition.brute import mdav_brute

        return mdav_brute(values, k, threads, progress)
    from shoal.partition.tree import mdav_tree

    return mdav_tree(values, k, progress, scan_threads=threads if may_scan else None)


def prepares_kernels(n: int, d: int, k: int) -> bool:
    """Whether `mdav` will have to load compiled code first, which takes some seconds once per installation."""
    return "shoal.partition.tree" not in sys.modules and _choice(n, d, k) != "numpy"


def _choice(n: int, d: int, k: int) -> str:
    """The algorithm to start with; depends on the shape of the table and on what is compiled already."""
    n = rows_stood_for(n)
    compiled = "shoal.partition.tree" in sys.modules
    limit = _NUMPY_SECONDS_ONCE_COMPILED if compiled else _NUMPY_SECONDS
    if numpy_seconds(n, d, k) <= limit:
        return "numpy"
    return "brute" if d > _TREE_ATTRIBUTES else "tree"


def numpy_seconds(n: int, d: int, k: int) -> float:
    """Rough time of the numpy algorithm: n/2k rounds, each with some fixed cost and four scans."""
    return n / (2 * k) * (2e-4 + 2.5e-9 * n * (d + 4))
