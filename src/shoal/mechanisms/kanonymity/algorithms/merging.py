"""Make every group satisfy a condition by joining it with its neighbour: groups come in, fewer groups leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.display import internal
from shoal.partition import Partition
from shoal.partition.base import as_matrix

# a partition comes in, which of its groups do not satisfy the condition leaves
Lacking = Callable[[Partition], NDArray[np.bool_]]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """Groups that satisfy a condition, and what that cost.

    Attributes:
        partition: the groups after joining.
        groups_before: how many groups there were.
        sse_before: squared distances of the records to the mean of their group, before joining.
        sse: the same afterwards.
    """

    partition: Partition
    groups_before: int
    sse_before: float
    sse: float

    @property
    def cost(self) -> dict[str, float]:
        """How many groups were lost, and how much more records differ from the mean of their group."""
        return {
            "groups_before": self.groups_before,
            "groups": len(self.partition),
            "sse_before": self.sse_before,
            "sse": self.sse,
        }


def merge_until(partition: Partition, X: ArrayLike, lacking: Lacking) -> Merged:
    """Join groups that lack something with the group whose mean is nearest, until none lacks it.

    Groups that lack it are joined round by round, smallest first; a group that another one joined already waits for
    the next round. Groups only grow, so k stays, and one group of everything is where it ends at the latest.

    Args:
        partition: the groups to start from.
        X: the quasi-identifiers, scaled for distances.
        lacking: says which groups do not satisfy the condition; the whole table as one group must satisfy it.

    Cost: one search among group means and one count of the records per round; few rounds as a rule, because all
        groups that lack something are joined in each.
    """
    values = as_matrix(X)
    current = partition
    while len(current) > 1:
        lacks = lacking(current)
        if not lacks.any():
            break
        joined = _joined(current.centroids(values), current.sizes, lacks)
        current = Partition.from_labels(joined[current.labels], partition.columns)
    return Merged(current, len(partition), squared_error(partition, values), squared_error(current, values))


def squared_error(partition: Partition, values: NDArray[np.float64]) -> float:
    """Sum of squared distances of all records to the mean of their group."""
    return float(((values - partition.centroids(values)[partition.labels]) ** 2).sum())


def _joined(
    means: NDArray[np.float64], sizes: NDArray[np.int64], lacks: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """New group number of each group after one round."""
    from scipy.spatial import cKDTree

    wanting = np.flatnonzero(lacks)
    wanting = wanting[np.argsort(sizes[wanting], kind="stable")]
    found = np.asarray(cKDTree(means).query(means[wanting], k=2)[1])
    # a group with an equal mean may come before the group itself
    nearest = np.where(found[:, 0] == wanting, found[:, 1], found[:, 0])
    target = np.arange(sizes.size)
    touched = np.zeros(sizes.size, dtype=np.bool_)
    for group, neighbour in zip(wanting.tolist(), nearest.tolist(), strict=True):
        if not touched[group]:
            target[group] = target[neighbour]
            touched[group] = touched[neighbour] = True
    return target
