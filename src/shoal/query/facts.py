"""Facts that answers need about a prepared table, computed before any query.

Every error that depends on the records is raised here, to the custodian. Once a table is prepared, a query is
refused for public reasons only.

Every array has one entry per row, whatever the rows hold: repeated and missing values make nothing shorter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from shoal._moved import renamed
from shoal.arguments import renamed_arguments, renamed_attributes
from shoal.columns import (
    Attribute,
    Lattice,
    Schema,
    as_declared,
    labels_of,
    numbers,
    public_facts,
    read_declared,
    unit_words,
    without_guessed_type,
)
from shoal.display import internal
from shoal.errors import ClaimError, InputError, OptionError, closest
from shoal.io import Table, check_doubts
from shoal.numbers import Integers, decimal_text
from shoal.privacy import Adjacency

Neighbours = Literal["replace-one", "add-remove"]
# the code of a missing value among positions and labels
MISSING = -1
# the code of a label that no record has
NOBODY = -2
# maximum number of points kept for each column where the number of rows is private
_FEW_POINTS = 1 << 16


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class RowOrder:
    """The rows in order of their positions, smallest first; rows without a value, at -1, come before all others.

    Attributes:
        rows: row numbers.
        values: their positions.
        ranks: number of rows below each position, and in total; only where there are few positions.

    >>> order = RowOrder.of(np.array([5, -1, 2, 5]), 7)
    >>> order.rows.tolist(), order.values.tolist(), order.ranks.tolist()
    ([1, 2, 0, 3], [-1, 2, 5, 5], [1, 1, 1, 2, 2, 2, 4, 4])
    """

    rows: NDArray[np.intp]
    values: Integers
    ranks: Integers | None = None

    @classmethod
    def of(cls, positions: Integers, points: int = 0, mixed: NDArray[np.intp] | None = None) -> RowOrder:
        """The order of the given positions.

        Args:
            positions: of all rows.
            points: the number of possible positions, to keep the rank of each; 0 not to.
            mixed: the order of rows with equal positions.
        """
        mixed = np.arange(positions.size) if mixed is None else mixed
        rows = mixed[np.argsort(positions[mixed], kind="stable")]
        values = positions[rows]
        ranks = np.searchsorted(values, np.arange(points + 1)).astype(np.int64) if points else None
        return cls(rows, values, ranks)

    def upto(self, chosen: NDArray[np.bool_]) -> Integers:
        """The number of chosen rows with a value among the first rows, for every number of rows: private."""
        counted = np.cumsum(chosen[self.rows] & (self.values >= 0), dtype=np.int64)
        return np.concatenate((np.zeros(1, dtype=np.int64), counted))

    def rank(self, points: Integers) -> Integers:
        """The number of rows with a position below each of these public points: private.

        Looked up, or a binary search with as many steps as the number of rows has bits, the same for every point.
        """
        if self.ranks is not None:
            # an empty interval may begin after the last point
            found: Integers = self.ranks[np.minimum(points, self.ranks.size - 1)]
            return found
        found = np.zeros(points.size, dtype=np.int64)
        for step in reversed([1 << bit for bit in range(self.values.size.bit_length())]):
            further = np.minimum(found + step, self.values.size)
            below = (found + step <= self.values.size) & (self.values[further - 1] < points)
            found += step * below
        return found

    def between(self, chosen: NDArray[np.bool_], lows: Integers, highs: Integers) -> Integers:
        """The number of chosen rows in each interval, both ends included: private."""
        upto = self.upto(chosen)
        found: Integers = upto[self.rank(highs + 1)] - upto[self.rank(lows)]
        return found

    def inside(self, lows: Integers, highs: Integers) -> NDArray[np.bool_]:
        """The rows in any of several disjoint intervals: private.

        However many intervals there are, one pass over all rows.
        """
        changes = np.zeros(self.values.size + 1, dtype=np.int32)
        np.add.at(changes, self.rank(lows), 1)
        np.add.at(changes, self.rank(highs + 1), -1)
        found = np.empty(self.values.size, dtype=np.bool_)
        found[self.rows] = np.cumsum(changes[:-1]) > 0
        return found


@renamed_attributes(neighbours="adjacency")
@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """The public facts about a data set: a query is checked and priced from these alone.

    Attributes:
        schema: the described columns.
        adjacency: the relation for all claims about this data set.
        rows: the number of records, public under replace-one; None under add-remove.
        integer_columns: columns stored as integers, for which a step of 1 is the default.
        refused: columns with facts known only from the records, such as the type of a file's cells: nothing
            may be disclosed about them.
    """

    schema: Schema
    adjacency: Neighbours = "replace-one"
    rows: int | None = None
    integer_columns: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.adjacency not in get_args(Neighbours):
            raise OptionError(
                "unknown-neighbours",
                option="adjacency",
                neighbours=self.adjacency,
                allowed=tuple(get_args(Neighbours)),
            )
        if (self.rows is None) == (self.adjacency == "replace-one"):
            raise OptionError("number-rows-public-under-replace-only")
        if self.rows is not None and self.rows < 1:
            raise InputError("facts-table-no-rows")

    @property
    def replace_one(self) -> bool:
        return self.adjacency == "replace-one"

    @property
    def relation(self) -> str:
        """The adjacency as text."""
        return Adjacency(self.adjacency).words

    @property
    def rows_per_unit(self) -> int:
        """The most rows a person can have: a query costs a person this many times its cost for a row."""
        unit = self.schema.unit
        return unit.max_rows or 1 if unit is not None else 1

    @property
    def unit(self) -> str:
        unit = self.schema.unit
        return unit_words(None if unit is None else unit.name, self.rows_per_unit)

    def attribute(self, name: object) -> Attribute:
        if not isinstance(name, str) or name not in self.schema:
            if isinstance(name, str) and name in self.refused:
                raise OptionError("column-cannot-asked-about", column=name)
            hint = closest(name, self.schema.names)
            raise OptionError("data-set-no-column", column=str(name)[:60], hint=hint)
        return self.schema[name]

    def has_lattice(self, attribute: Attribute) -> bool:
        """Whether the values of a column are positions on a public lattice; otherwise they are only labels."""
        if attribute.role in ("identifier", "unit") or not attribute.kind_facts.ordered:
            return False
        return len(attribute.ordered) > 1 if attribute.kind_facts.listed else attribute.lo is not None

    def labels(self, attribute: Attribute) -> tuple[str, ...]:
        """The public labels of a column, in their order if they have one; empty if the schema does not list them."""
        if attribute.kind_facts.listed:
            return attribute.ordered
        return () if attribute.tree is None else attribute.tree.values

    def lattice(self, name: object) -> Lattice:
        """The public lattice of a column; raises an error if it has none."""
        attribute = self.attribute(name)
        if not self.has_lattice(attribute):
            raise OptionError("column-no-public-domain", column=attribute.name)
        return attribute.lattice(integer=attribute.name in self.integer_columns)

    def ranked(self, name: str) -> int:
        """The number of lattice points of a column if they are few compared with the rows, as far as public, or 0.

        Computations by rank then go through these points, otherwise through the rows.
        """
        points = self.lattice(name).steps + 1
        return points if points <= (_FEW_POINTS if self.rows is None else 2 * self.rows) else 0

    def describe(self) -> dict[str, Any]:
        """The public facts for analysts: columns with their kinds and domains, and the adjacency."""
        columns = []
        for attribute in self.schema.attributes:
            found: dict[str, Any] = {
                "name": attribute.name,
                "kind": attribute.kind,
                "role": attribute.role,
            }
            if self.has_lattice(attribute):
                found |= public_facts(attribute, self.lattice(attribute.name))
            if labels := self.labels(attribute):
                found["values"] = list(labels)
            columns.append(found)
        return {
            "neighbours": self.adjacency,
            "relation": self.relation,
            "rows": self.rows,
            "unit": self.unit,
            "rows_per_unit": self.rows_per_unit,
            "columns": columns,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, from which `from_dict` restores the facts."""
        return {
            "neighbours": self.adjacency,
            "rows": self.rows,
            "integer_columns": sorted(self.integer_columns),
            "refused": sorted(self.refused),
            "schema": _plain(self.schema.to_dict()),
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> DatasetFacts:
        return cls(
            Schema.from_dict(raw["schema"]),
            raw["neighbours"],
            raw["rows"],
            frozenset(raw["integer_columns"]),
            frozenset(raw.get("refused", ())),
        )


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class QueryTable:
    """The records, ready for queries. They leave this object only through a mechanism.

    Attributes:
        positions: lattice positions of each column that has them, clipped to the domain; -1 for a missing value.
        codes: codes of the labels of the other columns; -1 for a missing value.
        labels: the code of each label, by column.
        names: the labels in the order of their codes, by column.
        orders: the row order of each column except those that identify persons, smallest position or code first.
    """

    facts: DatasetFacts
    n: int
    positions: Mapping[str, NDArray[np.int64]]
    codes: Mapping[str, NDArray[np.int64]]
    labels: Mapping[str, Mapping[str, int]]
    names: Mapping[str, Sequence[str]]
    orders: Mapping[str, RowOrder]

    def code(self, column: str, label: str) -> int:
        """The code of a label; one that no row has if there is no such label."""
        return self.labels[column].get(label, NOBODY)

    def only_row(self, column: str, label: str) -> tuple[int, bool]:
        """The one row with this label, and whether it is unique: the work is the same if there is none."""
        same = self.codes[column] == self.code(column, label)
        place = int(np.multiply(same, np.arange(self.n)).sum())
        return min(place, max(self.n - 1, 0)), int(np.count_nonzero(same)) == 1

    def shuffled(self) -> QueryTable:
        """The same records in an order that reveals nothing about them.

        The order of the rows determines which parts of the memory a question reads in sequence, and so
        how long it takes. Here the rows are in random order, and so are rows of equal value in the order of a column.
        """
        entropy = np.random.default_rng()
        places, mixed = entropy.permutation(self.n), entropy.permutation(self.n)
        positions = {name: found[places] for name, found in self.positions.items()}
        codes = {name: found[places] for name, found in self.codes.items()}
        orders = _orders(self.facts, positions, codes, mixed)
        return replace(self, positions=positions, codes=codes, orders=orders)


@renamed_arguments(neighbours="adjacency")
def prepare(data: Any, schema: Schema, adjacency: Neighbours = "replace-one") -> QueryTable:
    """Read every described column once, map it to its lattice, and fix the public facts.

    Values outside a domain count as its nearer end, missing values are marked.

    Raises:
        InputError: a column does not hold what the schema says; meant for the custodian.
        ClaimError: a person has several rows and no maximum is declared.

    >>> import pyarrow as pa
    >>> schema = Schema((Attribute("age", lo=Fraction(0), hi=Fraction(120)),))
    >>> table = prepare(pa.table({"age": [30, 41, None, 999]}), schema)
    >>> table.facts.rows, table.positions["age"].tolist()
    (4, [30, 41, -1, 120])
    """
    table = read_declared(data, schema)
    chosen_on_records = {step.column for step in schema.declared.steps if step.from_records}
    schema = schema.stepped
    for attribute in schema.attributes:
        table.known(attribute.name)
    check_doubts(table, [a.name for a in schema.attributes if a.has_domain and not a.type_declared])
    table = as_declared(table, schema.attributes, ())
    settled = [without_guessed_type(table, attribute.with_declared_type()) for attribute in schema.attributes]
    schema = Schema(tuple(replace(attribute, places=None) for attribute in settled))
    _check_unit(table, schema)
    refused = frozenset(
        a.name for a in schema.attributes if a.name in chosen_on_records or _is_refused(table, a)
    )
    schema = Schema(tuple(a for a in schema.attributes if a.name not in refused))
    if refused and not schema.attributes:
        raise InputError("no-column-can-asked-about-because")
    integers = frozenset(name for name in schema.names if table.is_integer(name))
    facts = DatasetFacts(
        schema, adjacency, table.n if adjacency == "replace-one" else None, integers, refused
    )
    positions: dict[str, NDArray[np.int64]] = {}
    codes: dict[str, NDArray[np.int64]] = {}
    labels: dict[str, Mapping[str, int]] = {}
    for attribute in schema.attributes:
        name = attribute.name
        if facts.has_lattice(attribute):
            values, lattice = numbers(table, attribute), facts.lattice(name)
            absent = np.isnan(values)
            inside = np.clip(np.where(absent, 0.0, values), float(lattice.lo), float(lattice.hi))
            positions[name] = np.where(absent, MISSING, lattice.positions(inside))
        elif not attribute.kind_facts.ordered and facts.labels(attribute):
            values = numbers(table, attribute)
            codes[name] = np.where(np.isnan(values), MISSING, np.nan_to_num(values)).astype(np.int64)
            labels[name] = {label: code for code, label in enumerate(facts.labels(attribute))}
        else:
            codes[name], labels[name] = _coded(table, attribute)
    names = {column: tuple(found) for column, found in labels.items()}
    return QueryTable(facts, table.n, positions, codes, labels, names, _orders(facts, positions, codes))


def _orders(
    facts: DatasetFacts,
    positions: Mapping[str, NDArray[np.int64]],
    codes: Mapping[str, NDArray[np.int64]],
    mixed: NDArray[np.intp] | None = None,
) -> dict[str, RowOrder]:
    """The row orders of all columns except those that identify persons, which cannot be counted by."""
    asked = [name for name in codes if facts.attribute(name).role not in ("identifier", "unit")]
    return {name: RowOrder.of(found, facts.ranked(name), mixed) for name, found in positions.items()} | {
        name: RowOrder.of(codes[name], 0, mixed) for name in asked
    }


def _is_refused(table: Table, attribute: Attribute) -> bool:
    """Whether an answer about a column, or its description, would depend on a fact known only from the records."""
    if attribute.role in ("identifier", "unit"):
        return False
    if attribute.kind_facts.measured and attribute.lo is not None and not table.is_numeric(attribute.name):
        # texts where numbers are declared are reported with their row
        return False
    return attribute.name in table.inferred | table.guessed or bool(attribute.from_records)


def _coded(table: Table, attribute: Attribute) -> tuple[NDArray[np.int64], dict[str, int]]:
    found: dict[str, int] = {}
    texts = labels_of(table, attribute)
    codes = [MISSING if text is None else found.setdefault(text, len(found)) for text in texts]
    return np.array(codes, dtype=np.int64), found


def _check_unit(table: Table, schema: Schema) -> None:
    unit = schema.unit
    if unit is None:
        return
    codes, _ = _coded(table, unit)
    if (codes == MISSING).any():
        raise InputError("unit-column-missing-values", column=unit.name)
    if "max_rows" in unit.from_records:
        raise ClaimError("max-rows-unit-column-source-these", column=unit.name)
    most = int(np.bincount(codes).max(initial=0))
    if unit.max_rows is None and most > 1:
        raise ClaimError("facts-value-unit-column-occurs-several-rows", column=unit.name)
    if unit.max_rows is not None and most > unit.max_rows:
        raise InputError("unit-column-somebody-more-rows-than", column=unit.name, max_rows=unit.max_rows)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return decimal_text(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


__getattr__ = renamed(__name__, Facts="DatasetFacts")
