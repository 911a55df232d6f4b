"""Labels made elsewhere in, the same clusters as a checked `Partition` out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shoal.errors import InputError
from shoal.partition.base import Partition, check_k


def given(labels: ArrayLike, k: int | None = None) -> Partition:
    """The partition that the caller's labels describe.

    Args:
        labels: one label per record (integers or text); clusters are numbered in order of their label.
        k: refuse the labels when a cluster has fewer records than this.

    >>> given(["b", "a", "b", "a"], k=2).labels.tolist()
    [1, 0, 1, 0]
    """
    raw = np.asarray(labels)
    if raw.dtype.kind == "f" and not np.isfinite(raw).all():
        raise InputError("labels-not-missing")
    partition = Partition.from_labels(raw)
    if k is not None:
        smallest = int(np.argmin(partition.sizes))
        least = check_k(k, partition.n)
        if partition.sizes[smallest] < least:
            label = np.unique(raw)[smallest].item()
            raise InputError(
                "cluster-records-fewer-than-k", cluster=label, found=partition.sizes[smallest], least=least
            )
    return partition
