"""The table of partition stages: lattice values of an attribute group come in, a `Partition` leaves.

Each stage also says what happens to its clusters when one record is replaced. The privacy claim is computed
from that fact, so a new stage cannot be added without stating it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from shoal import partition as algorithms
from shoal.errors import OptionError
from shoal.lattice import Lattice
from shoal.partition import Partition
from shoal.partition.insensitive import insensitive_mixed
from shoal.partition.mdav import prepares_kernels
from shoal.partition.mixed_distance import numeric_ends

if TYPE_CHECKING:
    from shoal.method import Method

# record: the record's own cluster of one and no other; rank: intervals of ranks fixed in advance;
# data: any cluster may change; caller: labels came from outside, nothing is known about them;
# private: any box may change, and the budget pays for that; each: any cluster may change, each by one record at most.
Stability = Literal["record", "rank", "data", "caller", "private", "each"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The attributes that are partitioned together, as positions on their public lattices.

    Attributes:
        labels: clusters supplied by the caller, for the stage that takes them.
        progress: called with how much is done and how much there is.
        shares: ε of each attribute, for stages that weigh the noise to come.
        notice: called with what is about to be done where that takes a while.
    """

    columns: tuple[str, ...]
    lattices: tuple[Lattice, ...]
    positions: tuple[NDArray[np.int64], ...]
    labels: NDArray[np.int64] | None = None
    progress: Progress | None = None
    shares: tuple[Fraction, ...] = ()
    notice: Callable[[str], None] | None = None

    @property
    def n(self) -> int:
        return int(self.positions[0].size)

    def values(self) -> NDArray[np.float64]:
        return np.stack(
            [lattice.values(p) for lattice, p in zip(self.lattices, self.positions, strict=True)], axis=1
        )

    def normalised(self, how: str) -> NDArray[np.float64]:
        return algorithms.normalise(self.values(), how, [float(lattice.width) for lattice in self.lattices])


@dataclass(frozen=True, slots=True)
class PartitionStage:
    """A way to group records, and how stable its clusters are when one record is replaced.

    Attributes:
        columnwise: an attribute's clusters do not depend on other attributes, so columns can be treated one by one.
        unbounded: clusters can be of any size above k, so that k = 1 does not mean every record by itself.
    """

    stability: Stability
    about: str
    run: Callable[[Group, Method], Partition]
    columnwise: bool = False
    unbounded: bool = False


def _alone(group: Group, method: Method) -> Partition:
    return Partition(np.arange(group.n, dtype=np.int64), np.ones(group.n, dtype=np.int64))


def _ranking(group: Group, method: Method) -> Partition:
    (positions,) = group.positions
    return algorithms.ranking(positions, method.size, method.remainder)


def _optimal(group: Group, method: Method) -> Partition:
    # in lattice steps, as the noise is
    (positions,), (lattice,), (share,) = group.positions, group.lattices, group.shares
    return algorithms.optimal(positions, lattice.steps, share, method.size)


def _mdav(group: Group, method: Method) -> Partition:
    if group.notice and prepares_kernels(group.n, len(group.columns), method.size):
        group.notice("preparing kernels (once)")
    return algorithms.mdav(group.normalised(method.normalise), method.size, progress=group.progress)


def _vmdav(group: Group, method: Method) -> Partition:
    values = group.normalised(method.normalise)
    return algorithms.vmdav(values, method.size, float(method.gamma), progress=group.progress)


def _insensitive(group: Group, method: Method) -> Partition:
    ends = [
        numeric_ends(p, 0, lattice.steps) for p, lattice in zip(group.positions, group.lattices, strict=True)
    ]
    return insensitive_mixed(
        ends, method.size, order=method.order, corners=method.corners, progress=group.progress
    )


def _given(group: Group, method: Method) -> Partition:
    if group.labels is None:
        raise OptionError("partition='given' needs labels=, one cluster label per record.")
    if group.labels.size != group.n:
        raise OptionError(
            f"labels has {group.labels.size} entries for {group.n} records: give one per record."
        )
    return algorithms.given(group.labels, method.size)


def _boxes(group: Group, method: Method) -> Partition:
    raise OptionError("the boxes of a private tree hold no clusters of records: use method='tree-dp'.")


PARTITIONS: Mapping[str, PartitionStage] = {
    "alone": PartitionStage("record", "every record by itself", _alone, columnwise=True),
    "mdav": PartitionStage("data", "fixed-size clusters of records that are close in all attributes", _mdav),
    "vmdav": PartitionStage("data", "clusters of k to 2k-1 records, larger where records are dense", _vmdav),
    "ranking": PartitionStage(
        "rank", "one attribute at a time, k consecutive ranks", _ranking, columnwise=True
    ),
    "optimal": PartitionStage(
        "data",
        "one attribute at a time, runs of values with the least expected error",
        _optimal,
        columnwise=True,
        unbounded=True,
    ),
    "given": PartitionStage("caller", "labels supplied by the caller", _given, unbounded=True),
    "insensitive": PartitionStage(
        "each", "the k records nearest to a corner of the domain, in turn", _insensitive
    ),
    "boxes": PartitionStage("private", "boxes of a tree that is drawn under the budget", _boxes),
}


def partition_group(group: Group, method: Method) -> Partition:
    """Run the method's partition stage on one attribute group."""
    made = PARTITIONS[method.partition].run(group, method)
    return replace(made, columns=group.columns)
