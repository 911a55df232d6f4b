"""Audit trials: neighbouring data sets and repeated releases of them.

A run here is a run of `shoal.protect`: the same mechanism, the same shuffling and rounding, the same noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import reduce
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described
from shoal.display import internal
from shoal.errors import OptionError
from shoal.io import read
from shoal.mechanisms import Method, Rebuilt
from shoal.noise import Source
from shoal.numbers import Floats, Integers
from shoal.partition import Partition
from shoal.privacy import Accountant, Plan
from shoal.progress import silent
from shoal.release import published_columns
from shoal.text import Message

Columns = Mapping[str, NDArray[Any]]
Point = tuple[float, ...]

# Distances to all clusters are computed only up to this many numbers.
_BORDER_LIMIT = 2_000_000


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """Everything that one run publishes: the table and, where a method keeps them, the statistics of its clusters."""

    columns: Columns
    statistics: Columns = field(default_factory=dict)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """The published results of many runs.

    Attributes:
        tables: shape (runs, rows, columns); rows missing from a run are NaN.
        statistics: name -> values of shape (runs, clusters), in the published order of clusters.
    """

    tables: Floats
    statistics: Mapping[str, Floats]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class PositionedTable(Described):
    """A described table with cached lattice positions: finding them would take most of a short run."""

    settled: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def positions(self, name: str) -> tuple[NDArray[np.int64], int]:
        return self.settled[name], 0


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """One data set and everything needed to release it repeatedly.

    Attributes:
        frozen: what the view holds fixed, computed by the method on the actual data set; None re-runs everything.
        run: makes one release; the broken mechanisms of `tools.broken_mechanisms` are substituted here.
    """

    method: Method
    described: Described
    plan: Plan
    frozen: Any
    run: Callable[[World, Source], Released]

    def outputs(self, runs: int, source: Source) -> Outputs:
        """The given number of releases."""
        made = [self.run(self, source) for _ in range(runs)]
        tables = [_as_numbers(self.described, one.columns) for one in made]
        rows = max(table.shape[0] for table in tables)
        stacked = np.full((runs, rows, len(self.described.columns)), np.nan)
        for table, place in zip(tables, stacked, strict=True):
            place[: table.shape[0]] = table
        names = [name for name, values in made[0].statistics.items() if values.dtype.kind == "f"]
        return Outputs(stacked, {name: np.stack([one.statistics[name] for one in made]) for name in names})


def _as_numbers(described: Described, columns: Columns) -> Floats:
    """A released table as numbers: an ordered value by its position, a day by its number, a missing one as NaN."""
    found = []
    for name, values in columns.items():
        attribute = described.attribute(name)
        if values.dtype.kind == "M":
            days = values.astype("datetime64[D]")
            found.append(np.where(np.isnat(days), np.nan, days.astype(np.float64)))
        elif values.dtype.kind in "OU":
            place = {text: float(number) for number, text in enumerate(attribute.ordered or ())}
            found.append(np.array([_place(value, place) for value in values.tolist()]))
        else:
            found.append(values.astype(np.float64))
    return np.column_stack(found)


def _place(value: Any, place: Mapping[str, float]) -> float:
    if value is None or value != value:
        return np.nan
    if isinstance(value, date):
        return float(value.toordinal() - date(1970, 1, 1).toordinal())
    return place[str(value)] if str(value) in place else float(value)


def release(world: World, source: Source, account: Accountant | None = None) -> Released:
    """One release, as `shoal.protect` makes it, charged to what its plan reserves; a broken one has another account."""
    method = world.method
    account = account or method.account(world.plan, source)
    settled = (world.described, world.plan, account, silent)
    rebuilt = method.run(*settled) if world.frozen is None else method.run_frozen(*settled, world.frozen)
    return published(world, rebuilt, account.free("order of the released rows"))


def published(world: World, rebuilt: Rebuilt, source: Source) -> Released:
    """The published part of a protected table."""
    columns = published_columns(world.method, world.described, rebuilt, source)
    return Released(columns, rebuilt.statistics or {})


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class AuditSetup:
    """The actual data set and the method under audit, from which neighbouring worlds are made.

    Attributes:
        records: values of the released columns, one row per participating record.
        frozen: None in the original view.
    """

    method: Method
    described: Described
    records: Floats
    frozen: Any
    run: Callable[[World, Source], Released]

    def world(self, records: Floats) -> World:
        """The world with these records."""
        described = with_records(self.described, records)
        return World(self.method, described, self.method.plan(described), self.frozen, self.run)


def make_stage(
    method: Method, described: Described, view: str, run: Callable[[World, Source], Released] = release
) -> AuditSetup:
    """Freeze what the view holds fixed, computed on the actual data set.

    Raises:
        OptionError: the method has nothing to freeze, but the view requires it.
    """
    records = np.column_stack([described.original(name) for name in described.columns])
    settled = with_records(described, records)
    frozen = None
    if view != "original":
        if not method.freezes:
            raise OptionError("method-no-clusters-hold-fixed", method=method.name)
        frozen = method.freeze(settled, method.plan(settled), silent)
    return AuditSetup(method, settled, records, frozen, run)


def with_records(described: Described, records: Floats) -> PositionedTable:
    """The same description with other records, stored in the columns' own types."""
    import pyarrow as pa

    types = described.table.frame.select(list(described.columns)).to_arrow().schema
    columns = {
        name: pa.array(records[:, number]).cast(types.field(name).type)
        for number, name in enumerate(described.columns)
    }
    settled = {name: described.lattices[name].positions(records[:, i]) for i, name in enumerate(columns)}
    return PositionedTable(
        table=read(pa.table(columns)),
        attributes=described.attributes,
        lattices=described.lattices,
        provenance=described.provenance,
        kept=None,
        notes=(),
        outside="clip",
        rules=described.rules,
        settled=settled,
    )


@dataclass(frozen=True, slots=True)
class Domain:
    """The public box in which a replaced record may take any value; integers where columns have integers."""

    lo: Point
    hi: Point
    step: Point
    whole: tuple[bool, ...]

    def fit(self, values: Sequence[float] | Floats) -> Point:
        """The nearest point that a record can take."""
        inside = np.clip(np.asarray(values, dtype=np.float64), self.lo, self.hi)
        rounded = np.clip(np.rint(inside), np.ceil(self.lo), np.floor(self.hi))
        return tuple(float(v) for v in np.where(self.whole, rounded, inside))


@internal()
@dataclass(frozen=True, slots=True)
class NeighbourPair:
    """Two data sets that differ in one record: its value on the left and on the right, None for absent.

    Attributes:
        others: further records of the same unit, which have the same values, or are absent together.
    """

    record: int
    left: Point | None
    right: Point | None
    why: Message
    others: tuple[int, ...] = ()

    def sides(self, records: Floats) -> tuple[Floats, Floats]:
        rows = [self.record, *self.others]
        return _with(records, rows, self.left), _with(records, rows, self.right)

    def words(self, *, individual: bool = False) -> str:
        left = Message("as-it-is") if individual else _point(self.left)
        facts = {"record": self.record + 1, "why": self.why, "left": left, "right": _point(self.right)}
        if self.others:
            return str(Message.of("pair-of-units", rows=1 + len(self.others), **facts))
        return str(Message.of("pair-of-records", **facts))


def find_pairs(
    records: Floats,
    domain: Domain,
    partitions: Sequence[Partition],
    *,
    individual: bool,
    removal: bool,
    limit: int,
    units: Integers | None = None,
    rows: int = 1,
) -> list[NeighbourPair]:
    """Candidate pairs, the most promising kinds first, at most `limit` of them.

    Args:
        partitions: clusters of the actual records, used to find cluster borders; may be empty.
        individual: one side of every pair is the actual data set.
        removal: neighbouring data sets lack one record instead of having another in its place.
        units: the unit of each record, where units have several rows. A pair then differs in a whole unit: in as many
            rows as it may have, its own first. The method does not see which rows belong together.
        rows: the most rows of a unit.
    """
    lists = [
        list(_pairs_of(record, why, records, domain, individual=individual, removal=removal))
        for record, why in _suspects(records, partitions, domain).items()
    ]
    # one pair for each suspicious record before a second for any
    chosen: dict[tuple[int, Point | None, Point | None], NeighbourPair] = {}
    for turn in zip_longest(*lists):
        for pair in turn:
            if pair is not None and pair.left != pair.right:
                pair = replace(pair, others=_others(pair.record, units, rows, len(records)))
                chosen.setdefault((pair.record, pair.left, pair.right), pair)
    return list(chosen.values())[:limit]


def _others(record: int, units: Integers | None, rows: int, n: int) -> tuple[int, ...]:
    """The rows beside a record that make it a unit of so many rows.

    >>> _others(1, np.array([5, 7, 5, 7]), 3, 4)
    (3, 0)
    """
    if rows == 1:
        return ()
    own = () if units is None else np.flatnonzero(units == units[record]).tolist()
    order = dict.fromkeys((*own, *range(n)))
    return tuple(row for row in order if row != record)[: rows - 1]


def _suspects(records: Floats, partitions: Sequence[Partition], domain: Domain) -> dict[int, Message]:
    """Records worth replacing, with the reason."""
    width = np.asarray(domain.hi) - np.asarray(domain.lo)
    scaled = (records - np.asarray(domain.lo)) / width
    distance = np.abs(scaled - scaled.mean(axis=0)).sum(axis=1)
    reasons: dict[int, list[Message]] = {}

    def suspect(record: int, code: str) -> None:
        reasons.setdefault(record, []).append(Message(code))

    suspect(int(np.argmin(distance)), "in-the-middle")
    suspect(int(np.argmax(distance)), "an-outlier")
    for partition in partitions:
        border = _border_record(scaled, partition)
        if border is not None:
            suspect(border, "at-a-cluster-border")
    for column in scaled.T:
        suspect(int(np.argmin(column)), "the-smallest-value")
        suspect(int(np.argmax(column)), "the-largest-value")
    _, first, counts = np.unique(records, axis=0, return_index=True, return_counts=True)
    if counts.max() > 1:
        suspect(int(first[np.argmax(counts)]), "one-of-several-equal-records")
    return {record: reduce(_and_also, dict.fromkeys(why)) for record, why in reasons.items()}


def _and_also(first: Message, second: Message) -> Message:
    return Message.of("and-also", first=first, second=second)


def _border_record(scaled: Floats, partition: Partition) -> int | None:
    if len(partition) < 2 or scaled.shape[0] * len(partition) * scaled.shape[1] > _BORDER_LIMIT:
        return None
    centroids = partition.centroids(scaled)
    distances = np.abs(scaled[:, None, :] - centroids[None, :, :]).sum(axis=2)
    own = distances[np.arange(scaled.shape[0]), partition.labels]
    distances[np.arange(scaled.shape[0]), partition.labels] = np.inf
    return int(np.argmin(distances.min(axis=1) - own))


def _pairs_of(
    record: int, why: Message, records: Floats, domain: Domain, *, individual: bool, removal: bool
) -> Iterator[NeighbourPair]:
    actual: Point = tuple(float(v) for v in records[record])
    places = _places(record, records, domain)

    def moved(code: str) -> Message:
        return Message.of("suspected-and-moved", why=why, move=Message(code))

    if removal:
        yield NeighbourPair(record, actual, None, why)
        if not individual:
            yield from (NeighbourPair(record, place, None, moved(name)) for name, place in places)
        return
    low, high = domain.fit(domain.lo), domain.fit(domain.hi)
    if individual:
        yield from (NeighbourPair(record, actual, place, moved(name)) for name, place in places)
        return
    yield NeighbourPair(record, low, high, moved("from-corner-to-corner"))
    for name, place in places:
        yield NeighbourPair(record, actual, place, moved(name))
    for (_, one), (_, other) in zip(places[2::2], places[3::2], strict=False):
        yield NeighbourPair(record, one, other, moved("between-two-places"))


def _places(record: int, records: Floats, domain: Domain) -> list[tuple[str, Point]]:
    """Where a record may be moved, worst positions first."""
    lo, hi, step = (np.asarray(side) for side in (domain.lo, domain.hi, domain.step))
    actual = records[record]
    places = [("to-a-corner", domain.fit(lo)), ("to-a-corner", domain.fit(hi))]
    if lo.size > 1:
        odd = np.arange(lo.size) % 2 == 1
        places += [
            ("to-a-corner", domain.fit(np.where(odd, lo, hi))),
            ("to-a-corner", domain.fit(np.where(odd, hi, lo))),
        ]
        for j in range(min(lo.size, 3)):
            for side in (lo, hi):
                moved = actual.copy()
                moved[j] = side[j]
                places.append(("one-value-to-the-end-of-its-domain", domain.fit(moved)))
    distance = (np.abs(records - actual) / (hi - lo)).sum(axis=1)
    distance[record] = np.inf
    near = records[int(np.argmin(distance))]
    distance[record] = -np.inf
    far = records[int(np.argmax(distance))]
    unit = np.where(domain.whole, np.maximum(step, 1.0), step)
    places += [
        ("onto-another-record", domain.fit(far)),
        ("onto-another-record", domain.fit(near)),
        ("half-way-to-another-record", domain.fit((actual + far) / 2)),
        ("one-step-up", domain.fit(actual + unit)),
        ("one-step-down", domain.fit(actual - unit)),
        ("to-the-middle-of-the-domain", domain.fit((lo + hi) / 2)),
    ]
    return places


def _with(records: Floats, rows: Sequence[int], point: Point | None) -> Floats:
    if point is None:
        return np.delete(records, rows, axis=0)
    changed = records.copy()
    changed[rows] = point
    return changed


def _point(point: Point | None) -> Message:
    if point is None:
        return Message("absent")
    return Message.of("at-point", values=tuple(f"{value:.6g}" for value in point))
