"""The registry of partition stages: each turns the lattice values of an attribute group into a `Partition`.

Each stage also declares what happens to its clusters when one record is replaced. The privacy claim is computed from
that fact, so a new stage cannot be added without declaring it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal import partition as algorithms
from shoal.columns import Lattice, patterns
from shoal.display import internal
from shoal.errors import OptionError, closest
from shoal.origin import Outside
from shoal.partition import (
    CornerAxis,
    Partition,
    insensitive_mixed,
    mdav_mixed,
    nominal_ends,
    numeric_ends,
    prepares_kernels,
)
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.mechanisms.method import Method
    from shoal.taxonomy import Taxonomy


# record: the record's own cluster of one and no other; rank: intervals of ranks fixed in advance;
# data: any cluster may change; caller: labels are given by the caller, nothing is known about them;
# private: any box may change, and the budget covers that; each: any cluster may change, each by one record at most.
Stability = Literal["record", "rank", "data", "caller", "private", "each"]
Progress = Callable[[int, int], None]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The attributes that are partitioned together, as positions on their public lattices.

    Attributes:
        labels: clusters supplied by the caller, for the stage that uses them.
        progress: called with the amount done and the total.
        shares: ε of each attribute, for stages that take the expected noise into account.
        notice: called before a step that takes a while.
        trees: taxonomy of each nominal attribute, whose positions are places among its values; None for other kinds.
        gaps: which records have no value, for columns whose missing values stay missing.
        strata: the records of each stratum, which are grouped separately; empty for one table as a whole.
    """

    columns: tuple[str, ...]
    lattices: tuple[Lattice, ...]
    positions: tuple[NDArray[np.int64], ...]
    labels: NDArray[np.int64] | None = None
    progress: Progress | None = None
    shares: tuple[Fraction, ...] = ()
    notice: Callable[[str], None] | None = None
    trees: tuple[Taxonomy | None, ...] = ()
    gaps: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    strata: tuple[NDArray[np.int64], ...] = ()

    @property
    def n(self) -> int:
        return int(self.positions[0].size)

    def tree(self, number: int) -> Taxonomy | None:
        """The taxonomy of an attribute, None if its values are ordered."""
        return self.trees[number] if self.trees else None

    @property
    def ordered(self) -> list[int]:
        """Indices of the attributes whose positions can be added and subtracted."""
        return [number for number in range(len(self.columns)) if self.tree(number) is None]

    def nominal(self) -> list[tuple[NDArray[np.int64], Taxonomy]]:
        """Concepts and taxonomy of each nominal attribute."""
        found = []
        for number, positions in enumerate(self.positions):
            tree = self.tree(number)
            if tree is not None:
                found.append((np.asarray(tree.domain, dtype=np.int64)[positions], tree))
        return found

    def values(self) -> NDArray[np.float64]:
        """The ordered attributes, in their own units."""
        found = [self.lattices[number].values(self.positions[number]) for number in self.ordered]
        return np.stack(found, axis=1) if found else np.empty((self.n, 0))

    def normalised(self, how: str) -> NDArray[np.float64]:
        widths = [float(self.lattices[number].width) for number in self.ordered]
        return algorithms.normalise(self.values(), how, widths)

    def rows(self, which: NDArray[np.int64], columns: Sequence[int]) -> Group:
        """Some records and attributes of the group, without gaps."""
        return replace(
            self,
            columns=tuple(self.columns[number] for number in columns),
            lattices=tuple(self.lattices[number] for number in columns),
            positions=tuple(self.positions[number][which] for number in columns),
            labels=None if self.labels is None else self.labels[which],
            shares=tuple(self.shares[number] for number in columns) if self.shares else (),
            trees=tuple(self.trees[number] for number in columns) if self.trees else (),
            gaps={},
            strata=(),
        )


@dataclass(frozen=True, slots=True)
class PartitionStage:
    """An algorithm that groups records, and the stability of its clusters when one record is replaced.

    Attributes:
        columnwise: an attribute's clusters do not depend on other attributes, so columns can be treated separately.
        unbounded: clusters can have any size above k, so that k = 1 does not make every record its own cluster.
        run: computes the clusters of a group; a stage reads its own parameters (`gamma`, `corners`) from the
            method, which has them if it offers the stage.
        check: raises what `run` would raise for a group.
        flags: "missing" can be a separate state in ordered columns (docs/missing.md).
        scaled: the scaling of columns before distances affects the clusters.
        outside: the third party that registered it, None for Shoal's own.
        in_parts: how an engine adds noise to the means of such clusters; empty if none can.
        noisy: the clusters depend on the noise, so that with a larger ε fewer rows share a cluster.
        sorts: time grows like that of sorting the rows.
        scans: with nominal columns every cluster is searched in all records, in time n²/k.
    """

    stability: Stability
    about: Message | str
    run: Callable[[Group, Any], Partition]
    columnwise: bool = False
    unbounded: bool = False
    check: Callable[[Group, Any], object] | None = None
    flags: bool = False
    scaled: bool = True
    outside: Outside | None = None
    in_parts: str = ""
    noisy: bool = False
    sorts: bool = False
    scans: bool = False


def _alone(group: Group, method: Method) -> Partition:
    return Partition(np.arange(group.n, dtype=np.int64), np.ones(group.n, dtype=np.int64))


def _ranking(group: Group, method: Any) -> Partition:
    (positions,) = group.positions
    return algorithms.ranking(positions, method.size, method.remainder)


def _optimal(group: Group, method: Method) -> Partition:
    # in lattice steps, as the noise is
    (positions,), (lattice,), (share,) = group.positions, group.lattices, group.shares
    return algorithms.optimal(positions, lattice.steps, share, method.size)


def _mdav(group: Group, method: Any) -> Partition:
    nominal = group.nominal()
    if nominal:
        numbers = group.normalised(method.normalise) if group.ordered else None
        codes, trees = zip(*nominal, strict=True)
        return mdav_mixed(numbers, codes, trees, method.size, group.progress)
    if group.notice and prepares_kernels(group.n, len(group.columns), method.size):
        group.notice("preparing kernels (once)")
    return algorithms.mdav(group.normalised(method.normalise), method.size, progress=group.progress)


def _only_ordered(group: Group, method: Method) -> None:
    if group.nominal():
        raise OptionError("partition-vmdav-columns-order")


def _vmdav(group: Group, method: Any) -> Partition:
    _only_ordered(group, method)
    values = group.normalised(method.normalise)
    return algorithms.vmdav(values, method.size, float(method.gamma), progress=group.progress)


def _ends(group: Group, number: int) -> CornerAxis:
    """One attribute's distances to the corners of the domain."""
    tree = group.tree(number)
    if tree is None:
        return numeric_ends(group.positions[number], 0, group.lattices[number].steps)
    low, high = tree.boundaries
    domain = np.asarray(tree.domain)
    to_low, to_high = (tree.distances_to(end)[domain] for end in (low, high))
    return nominal_ends(group.positions[number], to_low, to_high, tree.width)


def _insensitive(group: Group, method: Any) -> Partition:
    ends = [_ends(group, number) for number in range(len(group.columns))]
    return insensitive_mixed(
        ends, method.size, order=method.order, corners=method.corners, progress=group.progress
    )


def _given(group: Group, method: Method) -> Partition:
    if group.labels is None:
        raise OptionError("partition-given-needs-labels-cluster-label")
    if group.labels.size != group.n:
        raise OptionError("labels-entries-records", size=group.labels.size, n=group.n)
    return algorithms.given(group.labels, method.size)


def _boxes(group: Group, method: Method) -> Partition:
    raise OptionError("boxes-private-tree-hold-no-clusters")


_PARTITIONS: dict[str, PartitionStage] = {
    "alone": PartitionStage(
        "record",
        Message("partition-alone"),
        _alone,
        columnwise=True,
        flags=True,
        scaled=False,
        in_parts="by_record",
        sorts=True,
    ),
    "mdav": PartitionStage("data", Message("partition-mdav"), _mdav, scans=True),
    "vmdav": PartitionStage("data", Message("partition-vmdav"), _vmdav, check=_only_ordered),
    "ranking": PartitionStage(
        "rank",
        Message("partition-ranking"),
        _ranking,
        columnwise=True,
        scaled=False,
        in_parts="by_rank",
        sorts=True,
    ),
    "optimal": PartitionStage(
        "data",
        Message("partition-optimal"),
        _optimal,
        columnwise=True,
        unbounded=True,
        in_parts="by_rank",
        noisy=True,
        sorts=True,
    ),
    "given": PartitionStage(
        "caller",
        Message("partition-given"),
        _given,
        unbounded=True,
        check=_given,
        scaled=False,
        sorts=True,
    ),
    "insensitive": PartitionStage("each", Message("partition-insensitive"), _insensitive),
    "boxes": PartitionStage(
        "private",
        Message("partition-boxes"),
        _boxes,
        flags=True,
        noisy=True,
        sorts=True,
    ),
}
PARTITIONS: Mapping[str, PartitionStage] = _PARTITIONS


def add_partition(name: str, stage: PartitionStage) -> None:
    """Register a partition stage under a name, for `shoal.extend`."""
    _PARTITIONS[name] = stage


def check_stage(chosen: str, own: str, offered: Sequence[str]) -> None:
    """Refuse a partition stage that a method does not offer.

    Args:
        own: the method's default stage, which a recipe names, too.
    """
    known = tuple(dict.fromkeys((own, *offered)))
    if chosen not in known:
        raise OptionError(
            "unknown-partition",
            option="partition",
            name=chosen,
            allowed=known,
            hint=closest(chosen, known),
        )


def partition_group(group: Group, method: Method) -> Partition:
    """Run the method's partition stage on one attribute group.

    Records with the same missing values are grouped separately, by the values they have. If every record is a
    cluster on its own the stage has nothing to decide, and clusters are numbered as the records are.
    """
    stage = PARTITIONS["alone"] if method.stability == "record" else method.stage
    labels = np.empty(group.n, dtype=np.int64)
    clusters = 0
    for which, present in _alike(group, method):
        if which.size == group.n and len(present) == len(group.columns) and not group.strata:
            return replace(stage.run(group, method), columns=group.columns)
        # if nothing is released about a record's values, its group has no minimum size
        made = stage.run(group.rows(which, present), method) if present else None
        labels[which] = clusters if made is None else made.labels + clusters
        clusters += 1 if made is None else len(made)
    return replace(Partition.from_labels(labels), columns=group.columns)


def check_group(group: Group, method: Method) -> None:
    """Raise what `partition_group` would raise, without making clusters."""
    check = method.stage.check
    if check is None and not group.gaps:
        return
    for which, present in _alike(group, method):
        if check is not None and present:
            check(group.rows(which, present), method)


def _alike(group: Group, method: Method) -> Iterator[tuple[NDArray[np.int64], list[int]]]:
    """Records with the same missing values, and the indices of the attributes they have."""
    alike = patterns(group.gaps, group.columns)
    if group.strata and alike is None:
        for rows in group.strata:
            yield rows, list(range(len(group.columns)))
        return
    if group.strata:
        raise OptionError("strata-together-missing-separate-would-leave")
    if alike is None:
        yield np.arange(group.n, dtype=np.int64), list(range(len(group.columns)))
        return
    for pattern in range(int(alike.max()) + 1):
        which = np.flatnonzero(alike == pattern)
        if not which.size:
            continue
        missed = [column in group.gaps and bool(group.gaps[column][which[0]]) for column in group.columns]
        present = [number for number, missing in enumerate(missed) if not missing]
        names = [group.columns[number] for number, missing in enumerate(missed) if missing]
        check_alike(which.size, names, method, empty=not present)
        yield which, present


def check_alike(rows: int, missed: Sequence[str], method: Method, *, empty: bool) -> None:
    """Refuse too few rows with the same missing columns; `empty` if these are all columns of their group."""
    # rows without any value need no minimum, but a cluster of them is summarised like all others
    least = method.smallest if empty else method.size
    if rows >= least:
        return
    words = Message.of("rows-that-miss", columns=tuple(missed)) if missed else Message("rows-without-gaps")
    needed = Message.of("rows-needed", least=least) if empty else Message.of("rows-for-k", k=method.size)
    raise OptionError("there-too-few-rows-use-missing", words=words, rows=rows, needed=needed)
