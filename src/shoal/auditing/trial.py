"""Repeated releases of one data set by one method, for an audit, without frames in between.

A run here is a run of `shoal.protect`: the same mechanism, the same shuffling and rounding, the same noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.display import internal
from shoal.errors import OptionError
from shoal.io import read
from shoal.mechanisms.base import Rebuilt
from shoal.method.budget import Plan
from shoal.method.method import Method
from shoal.noise import Source
from shoal.privacy import Accountant
from shoal.progress import silent
from shoal.release.leaving import published_columns

Columns = Mapping[str, NDArray[Any]]
Matrix = NDArray[np.float64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """All that one run publishes: the table and, where a method keeps them, the statistics of its clusters."""

    columns: Columns
    statistics: Columns = field(default_factory=dict)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """What many runs published.

    Attributes:
        tables: shape (runs, rows, columns); rows that a run does not have are NaN.
        statistics: name -> values of shape (runs, clusters), in the published order of clusters.
    """

    tables: Matrix
    statistics: Mapping[str, Matrix]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Settled(Described):
    """A described table with its lattice positions at hand: finding them would be most of a short run."""

    settled: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def positions(self, name: str) -> tuple[NDArray[np.int64], int]:
        return self.settled[name], 0


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """One data set and all that is needed to release it again and again.

    Attributes:
        frozen: what the view holds fixed, made by the method on the actual data set; None re-runs everything.
        run: makes one release; the broken mechanisms of `tools.broken_mechanisms` put theirs here.
    """

    method: Method
    described: Described
    plan: Plan
    frozen: Any
    run: Callable[[World, Source], Released]

    def outputs(self, runs: int, source: Source) -> Outputs:
        """So many releases."""
        made = [self.run(self, source) for _ in range(runs)]
        tables = [_as_numbers(self.described, one.columns) for one in made]
        rows = max(table.shape[0] for table in tables)
        stacked = np.full((runs, rows, len(self.described.columns)), np.nan)
        for table, place in zip(tables, stacked, strict=True):
            place[: table.shape[0]] = table
        names = [name for name, values in made[0].statistics.items() if values.dtype.kind == "f"]
        return Outputs(stacked, {name: np.stack([one.statistics[name] for one in made]) for name in names})


def _as_numbers(described: Described, columns: Columns) -> Matrix:
    """A released table as numbers: an ordered value by its place, a day by its number, a missing one as NaN."""
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
    """One release, as `shoal.protect` makes it, paid from what its plan reserves; a broken one has another account."""
    method = world.method
    account = account or method.account(world.plan, source)
    settled = (world.described, world.plan, account, silent)
    rebuilt = method.run(*settled) if world.frozen is None else method.run_frozen(*settled, world.frozen)
    return published(world, rebuilt, account.free("order of the released rows"))


def published(world: World, rebuilt: Rebuilt, source: Source) -> Released:
    """What leaves of a protected table."""
    columns = published_columns(world.method, world.described, rebuilt, source)
    return Released(columns, rebuilt.statistics or {})


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """The actual data set and the method under audit, from which the worlds of neighbours are made.

    Attributes:
        records: values of the released columns, one row per record that takes part.
        frozen: None in the original view.
    """

    method: Method
    described: Described
    records: Matrix
    frozen: Any
    run: Callable[[World, Source], Released]

    def world(self, records: Matrix) -> World:
        """The world in which these are the records."""
        described = with_records(self.described, records)
        return World(self.method, described, self.method.plan(described), self.frozen, self.run)


def make_stage(
    method: Method, described: Described, view: str, run: Callable[[World, Source], Released] = release
) -> Stage:
    """Freeze at the actual data set what the view holds fixed.

    Raises:
        OptionError: the method has nothing to freeze, and the view asks for it.
    """
    records = np.column_stack([described.original(name) for name in described.columns])
    settled = with_records(described, records)
    frozen = None
    if view != "original":
        if not method.freezes:
            raise OptionError("method-no-clusters-hold-fixed", method=method.name)
        frozen = method.freeze(settled, method.plan(settled), silent)
    return Stage(method, settled, records, frozen, run)


def with_records(described: Described, records: Matrix) -> Settled:
    """The same description of other records, stored in the columns' own types."""
    import pyarrow as pa

    types = described.table.frame.select(list(described.columns)).to_arrow().schema
    columns = {
        name: pa.array(records[:, number]).cast(types.field(name).type)
        for number, name in enumerate(described.columns)
    }
    settled = {name: described.lattices[name].positions(records[:, i]) for i, name in enumerate(columns)}
    return Settled(
        table=read(pa.table(columns)),
        attributes=described.attributes,
        lattices=described.lattices,
        circumstances=described.circumstances,
        kept=None,
        notes=(),
        outside="clip",
        settled=settled,
    )
