"""The released rows as positions on their public lattices, and as columns that statistics are computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns import CodedByRules, Described, Schema, read_as_asked, with_gaps
from shoal.display import internal
from shoal.errors import OptionError, closest
from shoal.mechanisms import ABSENT, Method
from shoal.numbers import Bools, Floats, Integers
from shoal.privacy import Measurements, PrivacyStatement
from shoal.release import Bundle, Preparation, Release, prepare

# Share of the weight of support rows, and their number as a share of the rows, at least the third number of them.
_MASS, _PART, _LEAST = 0.02, 0.1, 1000
# A cell of fewer rows than these can have been emptied by noise; chance that a support row is put into one of them.
_FEW, _INTO_EMPTY = 5, 0.25
# Above this number of rows, or of values of all measured functions, a random part of the rows is calibrated: at least
# these, and these for each function.
MOST_ROWS, _MOST_VALUES, _FEWEST, _PER_FUNCTION = 50_000, 12_000_000, 5000, 1.5
_SEED = 7


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class PublicRelease:
    """A release as a reader has it.

    Attributes:
        margins: known totals by column and value, of the published schema.
        prepared: the released rows, described by the public schema; its method is the public recipe.
    """

    prepared: Preparation
    statement: PrivacyStatement
    measurements: Measurements | None
    margins: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Any, most: int | None = None) -> PublicRelease:
        """A release, a bundle, or the folder of one; of many rows a random part, if `most` is given."""
        if isinstance(source, Release):
            method, columns = source.method, source.columns
            asked: dict[str, Any] = {"missing": source.declared.missing, "na": source.declared.na}
            schema, data = source.schema.stepped, source.data
            found = (source.statement, source.measurements)
        else:
            bundle = source if isinstance(source, Bundle) else Bundle.load(source)
            method, schema, data = bundle.method, bundle.schema, bundle.data
            columns = tuple(bundle.statement.attributes)
            asked = {name: bundle.recipe[name] for name in ("missing", "na") if name in bundle.recipe}
            found = (bundle.statement, bundle.measurements)
        if method.measures_units:
            raise OptionError("no-intervals-for-units")
        kept = Schema(tuple(a for a in schema.attributes if a.name in columns), rules=schema.rules)
        request = {"schema": kept, "columns": list(columns), "outside": "clip", **asked}
        if most is not None and (frame := nw.from_native(data, eager_only=True)).shape[0] > most:
            chosen = np.random.default_rng(_SEED).permutation(frame.shape[0])[:most]
            data = frame[np.sort(chosen).tolist()].to_native()
        table = read_as_asked(data, request, empty=True)
        margins = {
            margin.column: {value: float(total) for value, total in margin.totals}
            for margin in schema.margins
            if margin.column in columns
        }
        return cls(prepare(table, method=method, **request), *found, margins)

    @property
    def method(self) -> Method:
        return self.prepared.method

    @property
    def described(self) -> Described:
        return self.prepared.described

    @property
    def coded(self) -> CodedByRules | None:
        """The columns as they were measured, if rules make these other ones than the released columns."""
        found = self.method.ruled(self.described)
        return found if isinstance(found, CodedByRules) else None

    def measured_for(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The measured columns that these released ones are functions of."""
        coded = self.coded
        found: dict[str, None] = {}

        def follow(name: str) -> None:
            of = (name,) if coded is None else coded.made_of(name)
            for part in of:
                if part == name or part in found:
                    found.setdefault(part)
                else:
                    follow(part)

        for name in columns:
            follow(name)
        return tuple(found)

    def as_measured(self, column: str) -> bool:
        """Whether a released column was measured itself."""
        coded = self.coded
        return coded is None or coded.plain_column(column)

    def column(self, name: str) -> str:
        """A released column of this name.

        Raises:
            OptionError: there is none.
        """
        if name not in self.described.columns:
            columns = self.described.columns
            raise OptionError("no-such-released-column", column=name, hint=closest(name, columns))
        return name


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class WeightedRows:
    """WeightedRows with base weights, whose mean is 1.

    Attributes:
        positions: of every column, by name; `ABSENT` where the value is missing.
        measured: the same of the columns that were measured, which rules can make other ones.
        released: how many of them, the first ones, were released; the others are support.
        count: the number of rows of the release that they stand for.
        entries: how many rows there were before equal ones were counted as one.
    """

    described: Described
    positions: Mapping[str, Integers]
    measured: Mapping[str, Integers]
    weights: Floats
    released: int
    count: int
    entries: int = 0

    @property
    def size(self) -> int:
        return self.weights.size

    def without_support(self) -> WeightedRows:
        """The released rows only, all of one weight."""
        kept = {name: own[: self.released] for name, own in self.positions.items()}
        measured = {name: own[: self.released] for name, own in self.measured.items()}
        return WeightedRows(self.described, kept, measured, np.ones(self.released), self.released, self.count)


def released_rows(
    published: PublicRelease, columns: Sequence[str], functions: int | None = None
) -> WeightedRows:
    """The released rows, in these columns; a random part of them if there are many for so many functions of each."""
    described, coded = published.described, published.coded
    wanted = published.measured_for(columns)
    ruled = None if all(map(published.as_measured, columns)) else coded
    n = described.n
    few = max(functions or 1, 1)
    wanted_rows = max(_MOST_VALUES // few, _FEWEST, int(_PER_FUNCTION * few))
    most = n if functions is None else min(MOST_ROWS, wanted_rows)
    chosen = np.sort(np.random.default_rng(_SEED).permutation(n)[:most]) if n > most else None
    positions: dict[str, Integers] = {}
    for column in dict.fromkeys((*columns, *(ruled.ruled_columns if ruled else ()))):
        own, _ = described.positions(column)
        own = np.where(described.absent(column), ABSENT, own)
        positions[column] = own if chosen is None else own[chosen]
    n = min(n, most)
    measured = {**positions, **(_coordinates(ruled, positions) if ruled else {})}
    return WeightedRows(
        described,
        {name: positions[name] for name in columns},
        {name: measured[name] for name in wanted},
        np.ones(n),
        n,
        described.n,
    )


def positions_of(described: Described, values: Mapping[str, Floats]) -> dict[str, Integers]:
    """Positions of drawn values: numbers, or concepts of names; `ABSENT` where they are missing."""
    positions = {}
    for column, own in values.items():
        missing, tree = np.isnan(own), described.tree(column)
        if tree is None:
            lattice = described.lattices[column]
            found = lattice.positions(np.where(missing, float(lattice.lo), own))
        else:
            found = np.searchsorted(np.asarray(tree.domain), np.where(missing, 0.0, own).astype(np.int64))
        positions[column] = np.where(missing, ABSENT, found)
    return positions


def _coordinates(coded: CodedByRules, positions: Mapping[str, Integers]) -> dict[str, Integers]:
    """Positions of the columns of rules as they were measured."""
    return {
        name: np.where(absent, ABSENT, own) for name, (own, absent) in coded.coordinates_of(positions).items()
    }


def supported(
    published: PublicRelease, rows: WeightedRows, cells: Mapping[str, Cells], *, empty: bool
) -> WeightedRows:
    """The rows and further ones of little weight in all measured cells, so that emptied cells can be corrected.

    Args:
        cells: the measured cells of each measured column.
        empty: also rows in the empty intervals between cuts: for shares and means only, because values far from all
            others would dominate variances.
    """
    random = np.random.default_rng(_SEED)
    n = rows.released
    number = max(_LEAST, int(_PART * n))
    measured: dict[str, Integers] = {}
    for column, own in rows.measured.items():
        drawn = own[random.integers(0, n, number)]
        found = cells.get(column)
        if found is not None and found.counted:
            every = random.integers(0, found.edges[-1], number)
            drawn = np.where(random.random(number) < 0.5, every, drawn)
        elif found is not None and found.tree and empty:
            counts = np.bincount(found.codes(own[own != ABSENT]), minlength=found.edges.size - 1)
            bare = np.flatnonzero((counts < _FEW) & (np.diff(found.edges) > 0))
            if bare.size:
                which = bare[random.integers(0, bare.size, number)]
                low, width = found.edges[which], np.diff(found.edges)[which]
                inside = low + np.floor(random.random(number) * width).astype(np.int64)
                drawn = np.where(random.random(number) < _INTO_EMPTY, inside, drawn)
        measured[column] = drawn
    positions: Mapping[str, Integers] = measured
    if not all(map(published.as_measured, rows.positions)):
        positions, measured = _under_rules(published, rows, measured, random)
    weights = np.concatenate((np.full(n, 1 - _MASS), np.full(number, _MASS * n / number)))
    return WeightedRows(
        rows.described,
        {name: np.concatenate((own, positions[name])) for name, own in rows.positions.items()},
        {name: np.concatenate((own, measured[name])) for name, own in rows.measured.items()},
        weights * (weights.size / weights.sum()),
        n,
        rows.count,
    )


def _under_rules(
    published: PublicRelease,
    rows: WeightedRows,
    drawn: Mapping[str, Integers],
    random: np.random.Generator,
) -> tuple[dict[str, Integers], dict[str, Integers]]:
    """Support rows that satisfy the rules, from columns drawn one by one: as released, and as measured."""
    coded, number = published.coded, next(iter(drawn.values())).size
    assert coded is not None
    values: dict[str, Floats] = {}
    whole = released_rows(published, coded.ruled_columns, 1)
    among = random.integers(0, whole.released, number)
    known = {**{name: own[among] for name, own in whole.measured.items()}, **drawn}
    for name, own in known.items():
        tree, lattice = coded.tree(name), coded.lattices[name]
        safe = np.maximum(own, 0)
        found = (
            lattice.values(safe.astype(np.float64))
            if tree is None
            else np.asarray(tree.domain)[safe].astype(np.float64)
        )
        values[name] = np.where(own == ABSENT, np.nan, found)
    nothing = {name: np.zeros(number) for name in published.described.columns if name not in values}
    made = coded.decoded({**nothing, **values}, random)
    kept = {name: made[name] for name in (*rows.positions, *coded.ruled_columns)}
    positions = positions_of(published.described, kept)
    measured = {**positions, **_coordinates(coded, positions)}
    return positions, {name: measured[name] for name in rows.measured}


def compressed(rows: WeightedRows) -> WeightedRows:
    """Equal rows as one with the sum of their weights, if that at least halves their number."""
    own = rows.positions
    more = [at for name, at in rows.measured.items() if name not in own or not np.array_equal(at, own[name])]
    every = np.stack([*own.values(), *more], axis=1)
    distinct, first, which = np.unique(every, axis=0, return_index=True, return_inverse=True)
    if distinct.shape[0] > every.shape[0] // 2:
        return rows
    weights = np.bincount(which.ravel(), rows.weights)
    return WeightedRows(
        rows.described,
        {name: own[first] for name, own in rows.positions.items()},
        {name: own[first] for name, own in rows.measured.items()},
        weights * (weights.size / weights.sum()),
        weights.size,
        rows.count,
        rows.size,
    )


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of one column whose shares are measured: positions edges[i] .. edges[i+1] - 1.

    Attributes:
        tree: the cells come from private cuts, and sums inside of them are measured.
    """

    edges: Integers
    tree: bool = False

    @property
    def counted(self) -> bool:
        """Whether every cell is one value."""
        return bool(self.edges[-1] == self.edges.size - 1)

    def codes(self, positions: Integers) -> NDArray[np.intp]:
        return np.searchsorted(self.edges[1:-1], positions, side="right")


def cells_of(measurements: Measurements, published: PublicRelease, column: str) -> Cells | None:
    """The cells of a measured column; None if nothing is known of it alone."""
    place = measurements.number(column)
    described = published.coded or published.described
    tree = described.tree(column)
    points = described.lattices[column].steps + 1 if tree is None else len(tree.domain)
    asked: list[int] = []
    for one in measurements.measured:
        if place not in one.columns:
            continue
        own = one.columns.index(place)
        if one.kind in ("count", "sign"):
            return Cells(np.arange(points + 1))
        if one.kind == "cuts":
            return Cells(np.unique(np.array(one.where["edges"], dtype=np.int64)), tree=True)
        if one.kind == "below":
            asked.append(int(one.where["cuts"][own]))
    return Cells(np.unique([0, *asked, points])) if asked else None


class Frame:
    """Columns of rows by name, as statistics use them: numbers as float64, names as text; NaN or None if missing."""

    def __init__(self, rows: WeightedRows) -> None:
        self.rows = rows
        self._found: dict[str, NDArray[Any]] = {}

    @property
    def size(self) -> int:
        return self.rows.size

    def present(self, column: str) -> Bools:
        found: Bools = self.rows.positions[column] != ABSENT
        return found

    def texts(self, column: str) -> tuple[str, ...] | None:
        """The values of a column of names, in their public order; None for numbers and days."""
        attribute = self.rows.described.attribute(column)
        if attribute.tree is not None:
            return tuple(attribute.tree.labels[code] for code in attribute.tree.domain)
        return tuple(attribute.ordered) if attribute.kind_facts.listed else None

    def __getitem__(self, column: str) -> NDArray[Any]:
        if column not in self._found:
            own, labels = self.rows.positions[column], self.texts(column)
            missing = own == ABSENT
            found: NDArray[Any]
            if labels is None:
                lattice = self.rows.described.lattices[column]
                found = np.minimum(
                    lattice.values(np.where(missing, 0, own).astype(np.float64)), float(lattice.hi)
                )
                found = np.where(missing, np.nan, found)
            else:
                found = np.array([*labels, None], dtype=object)[np.where(missing, len(labels), own)]
            self._found[column] = found
        return self._found[column]

    @cached_property
    def native(self) -> Any:
        """The rows as a frame of the caller's library."""
        described = self.rows.described
        columns: dict[str, NDArray[Any]] = {}
        for name, own in self.rows.positions.items():
            missing, tree = own == ABSENT, described.tree(name)
            safe = np.where(missing, 0, own)
            values = (
                described.lattices[name].values(safe.astype(np.float64))
                if tree is None
                else np.asarray(tree.domain)[safe].astype(np.float64)
            )
            made = described.stored(name, values, clip=True)
            columns[name] = with_gaps(made, missing) if missing.any() else made
        return described.released_frame(columns, generalise=False, emptied=tuple(columns))
