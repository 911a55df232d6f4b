"""Describe a table as integer positions on public lattices, from records in memory or from an engine's totals."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import Attribute, missing_codes_hint, settle_gaps
from shoal.columns.bound import bounded_rows, fresh_key
from shoal.columns.column import labels_of, numbers, releasable, stored_numbers
from shoal.columns.declaration import (
    Declaration,
    as_declared,
    beyond_bounds,
    chosen_columns,
    declared_facts,
    facts_from_records,
    stated_facts,
    steps_from_records,
    with_steps,
    without_guessed_type,
)
from shoal.columns.kinds import Lattice, outside
from shoal.columns.provenance import Provenance
from shoal.columns.rulebook import Rulebook, applied_rules, not_applied
from shoal.columns.schema import Schema, weight_words
from shoal.display import internal
from shoal.errors import InputError, OptionError, Problems
from shoal.io import Table, check_doubts, first_row
from shoal.numbers import Bools, Floats, Integers, exact
from shoal.taxonomy import Taxonomy
from shoal.text import Message


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Absent:
    """The missing values of a column.

    Attributes:
        count: their number.
        first: number of the first row without a value, from 0.
        rows: which rows lack a value; None if the records are elsewhere.
    """

    count: int
    first: int
    rows: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class KeptElsewhere:
    """The number of rows that take part, where row numbers are not known here."""

    size: int


class Records(Protocol):
    """Questions about the records, answered for all rows or for those that `kept` selects."""

    @property
    def n(self) -> int:
        """Number of rows."""

    def look(
        self, table: Table, chosen: Sequence[Attribute], policies: Mapping[str, str], na: Sequence[str]
    ) -> None:
        """Called once the columns are chosen, before any further question."""

    def labels(self, attribute: Attribute) -> list[str]:
        """The distinct values of a nominal column as text, sorted."""

    def absent(self, attribute: Attribute) -> Absent:
        """Its missing values; values the column cannot have raise an error that names the row."""

    def kept(self, dropping: Iterable[str]) -> Any:
        """Numbers of the rows that have a value in all of these columns."""

    def ends(self, attribute: Attribute, kept: Any) -> tuple[float, float]:
        """Smallest and largest value."""

    def unit(self, name: str, kept: Any) -> tuple[bool, int]:
        """Whether the unit is missing in a row, and the maximum number of rows of one unit."""

    def bounded(
        self, table: Table, schema: Schema, kept: Any, most: int, key: bytes, na: Sequence[str]
    ) -> Any:
        """The rows that take part if each unit has at most `most` of them, as `bounded_rows` chooses them."""

    def outside(self, attribute: Attribute, lo: float, hi: float, kept: Any) -> int:
        """Number of values outside a domain."""


class InMemory:
    """Answers for a table in memory, or one that is read column by column."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._absent: dict[str, NDArray[np.bool_]] = {}

    @property
    def n(self) -> int:
        return self._table.n

    def look(
        self, table: Table, chosen: Sequence[Attribute], policies: Mapping[str, str], na: Sequence[str]
    ) -> None:
        self._table = table

    def labels(self, attribute: Attribute) -> list[str]:
        return sorted({label for label in labels_of(self._table, attribute) if label is not None})

    def absent(self, attribute: Attribute) -> Absent:
        gaps = gaps_of(numbers(self._table, attribute), attribute)
        self._absent[attribute.name] = gaps
        return Absent(int(gaps.sum()), int(np.argmax(gaps)) if gaps.size else 0, gaps)

    def kept(self, dropping: Iterable[str]) -> Integers | None:
        dropped = np.zeros(self.n, dtype=np.bool_)
        for name in dropping:
            dropped |= self._absent[name]
        return np.flatnonzero(~dropped) if dropped.any() else None

    def ends(self, attribute: Attribute, kept: Integers | None) -> tuple[float, float]:
        values = numbers(self._table, attribute)
        values = values if kept is None else values[kept]
        if not values.size:
            return np.inf, -np.inf
        return float(np.nanmin(values)), float(np.nanmax(values))

    def unit(self, name: str, kept: Integers | None) -> tuple[bool, int]:
        column: Any = self._table.series(name)
        if column.null_count():
            return True, 0
        values = column.to_numpy()
        _, counts = np.unique(values if kept is None else values[kept], return_counts=True)
        return False, int(counts.max(initial=0))

    def bounded(
        self,
        table: Table,
        schema: Schema,
        kept: Integers | None,
        most: int,
        key: bytes,
        na: Sequence[str],
    ) -> Integers | None:
        return bounded_rows(table, schema, kept, most, key, na)

    def outside(self, attribute: Attribute, lo: float, hi: float, kept: Integers | None) -> int:
        values = numbers(self._table, attribute)
        values = values if kept is None else values[kept]
        # a missing value has no position
        return int(((values < lo) | (values > hi)).sum())


def gaps_of(values: NDArray[np.float64], attribute: Attribute) -> NDArray[np.bool_]:
    """Which values are missing; infinite values and those with more decimals than the bounds raise an error."""
    wrong = np.isinf(values)
    if not wrong.any() and attribute.type == "decimal" and (attribute.places or 0) > 0:
        scaled = values * 10.0 ** (attribute.places or 0)
        # tolerance for float rounding, also after a few sums
        wrong = np.abs(scaled - np.rint(scaled)) > np.maximum(1e-6, np.abs(scaled) * 2.0**-48)
    if wrong.any():
        row = first_row(wrong)
        raise beyond_bounds(attribute, float(values[row - 1]), row)
    return np.isnan(values)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """A table ready to be protected: its columns, their lattices and the rows that take part.

    Attributes:
        attributes: the columns to release, in column order, with their public facts.
        lattices: their lattices, by name.
        kept: numbers of the input rows that take part, or None for all of them.
        gaps: for columns whose missing values stay missing, which of these rows have one.
        notes: notes for the custodian (columns left out and why); not published.
        left_out: the columns of the table that are not released.
        gapped: columns that may have missing values in the release, by their declarations.
        schema: all declarations about the table, after its steps; None if there is no table.
        rules: the rules between its columns, ready to be applied; None or empty if there are none.
    """

    table: Table
    attributes: tuple[Attribute, ...]
    lattices: dict[str, Lattice]
    provenance: Provenance
    kept: NDArray[np.int64] | None
    notes: tuple[Message, ...]
    outside: str
    gaps: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    gapped: frozenset[str] = frozenset()
    schema: Schema | None = None
    rules: Rulebook | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    def attribute(self, name: str) -> Attribute:
        return next(attribute for attribute in self.attributes if attribute.name == name)

    @property
    def nominal(self) -> tuple[str, ...]:
        """The columns whose values are unordered."""
        return tuple(attribute.name for attribute in self.attributes if not attribute.kind_facts.ordered)

    @property
    def flagged(self) -> tuple[str, ...]:
        """The ordered columns for which "missing" is a separate state, by their declarations."""
        return tuple(attribute.name for attribute in self.attributes if attribute.flagged)

    @property
    def plain(self) -> bool:
        """Whether every column is numeric and without gaps, so that columns can be treated separately."""
        return not (self.nominal or self.gaps or self.flagged)

    def absent(self, name: str) -> NDArray[np.bool_]:
        """Which of the participating rows have no value (a private fact)."""
        return np.isnan(self.original(name))

    def tree(self, name: str) -> Taxonomy | None:
        """The taxonomy of a nominal column, None for any other kind."""
        return self.attribute(name).tree

    def without_records(self) -> Described:
        """The declarations and decisions about the columns, without any row."""
        return replace(self, table=replace(self.table.without_rows(), records=None), kept=None, gaps={})

    def codes(self, name: str) -> NDArray[np.int64]:
        """Concepts of a nominal column; a missing value that stays missing gets the first of the domain."""
        tree = self.attribute(name).tree
        assert tree is not None
        return np.asarray(tree.domain, dtype=np.int64)[self.positions(name)[0]]

    @property
    def n(self) -> int:
        return self.table.n if self.kept is None else int(self.kept.size)

    def original(self, name: str) -> NDArray[np.float64]:
        """The original values of the column, for the participating rows."""
        values = numbers(self.table, self.attribute(name))
        return values if self.kept is None else values[self.kept]

    def stored(
        self, name: str, values: NDArray[np.float64], *, clip: bool, computed: bool = True
    ) -> NDArray[Any]:
        """Values as the column stores them, rounded; values that were not `computed` keep their decimals."""
        return stored_numbers(
            self.table, self.attribute(name), self.lattices[name], values, clip=clip, computed=computed
        )

    def released_frame(
        self, columns: Mapping[str, NDArray[Any]], *, generalise: bool, emptied: Collection[str] = ()
    ) -> Any:
        """A frame of the caller's library, whose types follow from the declarations.

        `emptied` are columns of which a method may suppress cells.
        """
        chosen = [attribute for attribute in self.attributes if attribute.name in columns]
        listed = {
            attribute.name: found
            for attribute in chosen
            if attribute.name not in self.provenance.private_domains
            and (found := releasable(self.table, attribute, generalise=generalise)) is not None
        }
        nullable = {
            attribute.name
            for attribute in chosen
            if attribute.name in self.gapped or attribute.name in emptied
        }
        return self.table.like(columns, keep_dtypes=True, categories=listed, nullable=nullable)

    def positions(self, name: str) -> tuple[NDArray[np.int64], int]:
        """Lattice positions of one column, and the number of clipped values (a private fact)."""
        values = self._present(name)
        clipped = self._outside(name, values)
        return self.lattices[name].positions(values), clipped

    def check(self, problems: Problems) -> None:
        """Collect now the errors that `positions` would raise after the budget was charged."""
        records: Records = self.table.records or InMemory(self.table)
        for name in self.columns:
            with problems.collected():
                lattice = self.lattices[name]
                ends = float(lattice.lo), float(lattice.hi)
                count = records.outside(self.attribute(name), *ends, self.kept)
                codes = None
                if count and self.table.records is None:
                    values = self.original(name)
                    codes = missing_codes_hint(name, values[(values < ends[0]) | (values > ends[1])])
                self._check_outside(name, count, self.n, codes)

    def _present(self, name: str) -> NDArray[np.float64]:
        values = self.original(name)
        if name in self.gaps:
            # such a row has a separate cluster, in which this number is never used
            values = np.where(self.gaps[name], float(self.lattices[name].lo), values)
        if self.attribute(name).flagged:
            # a public value, independent of the records: the middle of the domain is never far off
            lattice = self.lattices[name]
            values = np.where(
                np.isnan(values), float(lattice.lo + lattice.step * (lattice.steps // 2)), values
            )
        return values

    def _outside(self, name: str, values: NDArray[np.float64]) -> int:
        """Number of values outside the domain, if that is not an error."""
        lattice = self.lattices[name]
        count = int(((values < float(lattice.lo)) | (values > float(lattice.hi))).sum())
        self._check_outside(name, count, values.size)
        return count

    def _check_outside(self, name: str, count: int, n: int, codes: Message | None = None) -> None:
        """Refuse values outside the domain; stating their number would answer a query about any range tried."""
        lattice = self.lattices[name]
        if count and self.outside == "error":
            raise InputError.saying(outside(name, lattice, codes))
        if lattice.steps * n >= 2**62:
            raise OptionError("column-sums-values-lattice-steps-do", column=name, n=n, steps=lattice.steps)


def describe(
    table: Table,
    declared: Declaration,
    kinds: Sequence[str] = ("numeric",),
    *,
    free: bool = False,
    flags: bool = False,
    empty: bool = False,
    may_stay: Collection[str] = (),
    problems: Problems,
) -> Described:
    """Determine the released columns, their lattices and the participating rows.

    Args:
        table: the table.
        declared: the declarations about it.
        kinds: column kinds that the method accepts.
        free: the method's claim does not need domains known in advance: undeclared ones come from the data.
        flags: the method supports "missing" as a separate state in ordered columns.
        empty: the number of rows is private, so a table without rows is described like any other.
        may_stay: column kinds whose values may stay missing in their rows under the method's claim.
        problems: collects columns that cannot be released as they are; they are left out of the result.
    """
    if table.n == 0 and not empty:
        raise InputError("table-no-rows")
    texts = tuple(dict.fromkeys((*declared.na, *declared.file.na)))
    table = with_steps(table, declared.schema, texts)
    schema, chosen, notes = chosen_columns(table, declared, kinds, free)
    # texts in a numeric column are reported with their row
    doubtful = [a for a in chosen if not a.type_declared]
    check_doubts(table, [a.name for a in doubtful if not a.kind_facts.measured or table.is_numeric(a.name)])
    table = as_declared(table, chosen, texts)
    chosen = [without_guessed_type(table, attribute.with_declared_type()) for attribute in chosen]
    left_out = tuple(name for name in table.names if name not in {a.name for a in chosen})
    tainted = [] if free else [*steps_from_records(schema), *facts_from_records(table, schema, chosen)]
    guessed = declared.schema is None and declared.columns is None and table.reads_cells
    if guessed and not free and not table.inferred.isdisjoint(left_out):
        tainted.append(Message.of("columns-by-types-read-off"))
    policies = {
        attribute.name: _policy(attribute, declared.missing, flags=flags, may_stay=may_stay)
        for attribute in chosen
    }
    chosen = [_with_policy(attribute, policies[attribute.name]) for attribute in chosen]
    undeclared: list[str] = []
    records: Records = table.records or InMemory(table)
    chosen = _without_problems(chosen, lambda one: _with_values(table, records, one, undeclared), problems)
    if not free:
        tainted += [Message.of("values-from-records", column=name) for name in undeclared]
    records.look(table, chosen, policies, texts)
    if table.records is not None and table.steps:
        table = replace(table, steps=table.records.steps())
    absent: dict[str, Absent] = {}

    def present(attribute: Attribute) -> Attribute:
        if (gone := records.absent(attribute)).count:
            absent[attribute.name] = gone
        return attribute

    chosen = _without_problems(chosen, present, problems)
    gaps = settle_gaps(absent, policies, records, problems)
    kept = gaps.kept
    if gaps.dropping:
        tainted.append(Message.of("rows-left-out"))
    lattices: dict[str, Lattice] = {}
    taken: list[str] = []

    def settle(attribute: Attribute) -> Attribute:
        settled = attribute
        if free and attribute.lo is None and attribute.kind_facts.ranged:
            settled = _range_in_data(records, attribute, kept)
            undeclared.append(attribute.name)
        if attribute.kind_facts.measured and attribute.lo is None and declared.domain_from_data is not None:
            settled = _domain_from_data(records, attribute, declared.domain_from_data, kept)
            taken.append(attribute.name)
        lattices[attribute.name] = _lattice(table, settled)
        return settled

    attributes = _without_problems(chosen, settle, problems)
    # if a column has gaps it must not have, its other values are not checked
    attributes = [a for a in attributes if not (policies[a.name] == "error" and a.name in absent)]
    if taken:
        factor = float(declared.domain_from_data or 0)
        tainted.append(Message.of("range-from-data", factor=factor, columns=tuple(taken)))
    private = (*taken, *undeclared, *(a.name for a in attributes if _private_domain(schema, a)))
    stated = {a.name: stated_facts(table, a, lattices[a.name]) for a in attributes}
    book: Rulebook | None = None
    if schema.rules:
        notes = [*notes, *not_applied(schema.rules, [a.name for a in attributes])]
        with problems.collected():
            integers = [a.name for a in attributes if table.is_integer(a.name)]
            book = applied_rules(schema.rules, attributes, lattices, integers)
        tainted += [] if book is None else rules_from_records(book)
    raked = schema.weight is not None and schema.weight.release == "raked"
    provenance = _unit_circumstances(records, schema, kept)
    separate = gaps.separate
    if provenance.bounded:
        most, key = provenance.rows_per_unit, declared.bound_key or fresh_key()
        # without the caller's domains and types, so that other releases and answers choose the same rows
        own = schema if declared.schema is None else declared.schema.stepped
        bounded = records.bounded(table, own, kept, most, key, texts)
        if separate and bounded is not kept:
            places = bounded if kept is None else np.searchsorted(kept, bounded)
            separate = {name: here[places] for name, here in separate.items()}
        kept = bounded
    provenance = replace(
        provenance,
        data_dependent=tuple(tainted),
        private_domains=private,
        domains=stated,
        declared=declared_facts(schema, attributes, stated, private),
        margins=tuple(margin.column for margin in schema.margins) if raked else (),
        publication=schema.publication.to_dict(),
        separated=gaps.separating,
        nominal=sum(not attribute.kind_facts.ordered for attribute in attributes),
        steps=tuple(step.message for step in schema.declared.steps),
        weight=None if declared.schema is None else weight_words(schema),
        weighted=schema.weight is not None and schema.weight.release in ("masked", "raked"),
    )
    return Described(
        table,
        tuple(attributes),
        lattices,
        provenance,
        kept,
        tuple(notes),
        declared.outside,
        separate,
        left_out,
        frozenset(name for name, policy in policies.items() if policy in ("category", "separate")),
        schema,
        book,
    )


def rules_from_records(book: Rulebook) -> list[Message]:
    """Rules that are known only from these records."""
    found = tuple(number for number, rule in book.numbered if rule.from_records)
    return [Message.of("rules-read-off", numbers=found)] if found else []


def _private_domain(schema: Schema, attribute: Attribute) -> bool:
    """Whether the domain of a column, or the step that creates it, was taken from the records."""
    stepped = {step.column for step in schema.declared.steps if step.from_records}
    return "domain" in attribute.from_records or attribute.name in stepped


def _policy(attribute: Attribute, default: str, *, flags: bool, may_stay: Collection[str]) -> str:
    """The policy for missing values; most methods support a category for names only."""
    policy = attribute.missing or default
    if policy == "keep":
        # one declaration serves all methods: a category of its own, or a gap where the claim allows it
        if flags:
            return "category"
        if attribute.kind in may_stay:
            return "separate"
        return "error" if attribute.kind_facts.ordered else "category"
    if policy != "category" or flags or not attribute.kind_facts.ordered:
        return policy
    if attribute.flagged:
        raise OptionError(
            "column-declared-missing-category-takes-method", column=attribute.name, found=attribute.kind
        )
    # under a policy for the whole table, other kinds of columns may have no gaps
    return "error"


def _with_policy(attribute: Attribute, policy: str) -> Attribute:
    """The attribute with a category for missing values, if that is the policy, and without one otherwise."""
    settled = "category" in (attribute.missing, policy) or attribute.missing == "keep"
    return replace(attribute, missing=policy) if settled else attribute


def _with_values(table: Table, records: Records, attribute: Attribute, undeclared: list[str]) -> Attribute:
    """A nominal attribute with its values: from its type, declared, or from the records, a private fact."""
    if attribute.kind_facts.ordered or attribute.tree is not None:
        return attribute
    if isinstance(table.dtype(attribute.name), nw.Boolean):
        return replace(attribute, values=("False", "True"))
    found = records.labels(attribute)
    if not found:
        raise InputError("column-no-value-all", column=attribute.name)
    undeclared.append(attribute.name)
    return replace(attribute, values=tuple(found))


def _without_problems(
    attributes: Sequence[Attribute], work: Callable[[Attribute], Attribute], problems: Problems
) -> list[Attribute]:
    """The attributes without columns that have problems, as changed by the work."""
    found: list[Attribute] = []
    for attribute in attributes:
        with problems.collected():
            found.append(work(attribute))
    return found


def _domain_from_data(
    records: Records, attribute: Attribute, factor: Fraction, kept: NDArray[np.int64] | None
) -> Attribute:
    _, largest = records.ends(attribute, kept)
    if largest <= 0:
        raise InputError("column-no-positive-value-so-0", column=attribute.name, factor=float(factor))
    return attribute.with_domain(
        (0, factor * exact(largest, Message.of("column-named", column=attribute.name)))
    )


def _range_in_data(records: Records, attribute: Attribute, kept: NDArray[np.int64] | None) -> Attribute:
    what = Message.of("column-named", column=attribute.name)
    lo, hi = (exact(end, what) for end in records.ends(attribute, kept))
    return replace(attribute, lo=lo, hi=hi if hi > lo else lo + 1)


def _lattice(table: Table, attribute: Attribute) -> Lattice:
    integer = table.is_integer(attribute.name)
    lattice = attribute.lattice(integer=integer)
    if integer and attribute.kind_facts.measured:
        lo, hi = table.integer_limits(attribute.name)
        if max(lo, math.ceil(lattice.lo)) > min(hi, math.floor(lattice.hi)):
            raise OptionError(
                "column-stored-domain-holds-no-such",
                column=attribute.name,
                stored=table.dtype(attribute.name),
            )
    return lattice


def _unit_circumstances(records: Records, schema: Schema, kept: NDArray[np.int64] | None) -> Provenance:
    unit = schema.unit
    if unit is None:
        return Provenance()
    missing, most = records.unit(unit.name, kept)
    if missing:
        raise InputError("unit-column-missing-values", column=unit.name)
    if unit.max_rows is not None and most > unit.max_rows:
        raise InputError("unit-column-somebody-more-rows-than", column=unit.name, max_rows=unit.max_rows)
    return Provenance(
        unit=unit.name,
        unit_word=unit.called or "",
        rows_per_unit=unit.unit_rows,
        bounded=unit.bound is not None,
        rows_declared=unit.max_rows is not None or unit.bound is not None,
        unit_repeats=unit.max_rows is None and unit.bound is None and most > 1,
    )


# --- a table as it is measured


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class CodedByRules(Described):
    """A described table in the coordinates of its rules.

    Attributes:
        whole: the table with all its columns.
        book: the rules.
        known: the coordinates, once computed.
    """

    whole: Described | None = None
    book: Rulebook | None = None
    known: dict[str, Floats] = field(default_factory=dict)

    def coordinate(self, name: str) -> Floats:
        """Values of a coordinate, missing ones as NaN (private)."""
        assert self.book is not None
        if not self.known:
            self.known.update(self.book.encoded(self.values()))
        return self.known[name]

    def values(self) -> dict[str, Floats]:
        """The records as the rules see them (private)."""
        assert self.whole is not None
        assert self.book is not None
        found = {}
        for name, own in self.book.fields.items():
            if name in self.book.fixed:
                found[name] = np.full(self.whole.n, self.book.fixed[name])
                continue
            absent = self.whole.absent(name) if own.can_miss and own.gap is None else None
            found[name] = own.of_positions(self.whole.positions(name)[0], absent)
        return found

    @property
    def ruled_columns(self) -> tuple[str, ...]:
        """The released columns that rules are about."""
        assert self.book is not None
        return tuple(self.book.fields)

    def made_of(self, name: str) -> tuple[str, ...]:
        """What a released column follows from: itself if it was measured, and other released columns."""
        assert self.book is not None
        for _, derived, _ in self.book.steps:
            for one in derived:
                if one.column == name:
                    return one.parts
        for last, joint in self.book.joint.items():
            if name in joint.columns:
                return (last,)
        orders = self.book.coordinates[name][0] if name in self.book.coordinates else ()
        return (name, *(order.low for order in orders))

    def plain_column(self, name: str) -> bool:
        """Whether a released column was measured itself."""
        assert self.book is not None
        return self.made_of(name) == (name,) and name not in self.book.joint

    def coordinates_of(self, positions: Mapping[str, Integers]) -> dict[str, tuple[Integers, Bools]]:
        """Positions of coordinates, and which are missing, of rows with these positions in the columns of rules.

        Args:
            positions: negative where a value is missing.
        """
        assert self.book is not None
        values = {}
        for name, own in self.book.fields.items():
            absent = positions[name] < 0 if own.can_miss and own.gap is None else None
            values[name] = own.of_positions(np.maximum(positions[name], 0), absent)
        found = self.book.encoded(values)
        return {name: (self._placed(name, own), np.isnan(own)) for name, own in found.items()}

    def ruled(self, name: str) -> bool:
        """Whether a column is measured as its rules require, not as it is stored."""
        return self.book is not None and name in self.book.measured and name not in self.book.unmeasured

    def absent(self, name: str) -> Bools:
        if not self.ruled(name):
            # a subclass of a dataclass with slots does not know its own class in `super()`
            return Described.absent(self, name)
        return np.isnan(self.coordinate(name))

    def positions(self, name: str) -> tuple[Integers, int]:
        assert self.whole is not None
        assert self.book is not None
        if not self.ruled(name):
            return self.whole.positions(name)
        return self._placed(name, self.coordinate(name)), self.whole.positions(name)[1]

    def _placed(self, name: str, found: Floats) -> Integers:
        """Positions of values of a coordinate."""
        assert self.book is not None
        if name in self.book.joint:
            return found.astype(np.int64)
        if name in self.book.coordinates:
            return self.lattices[name].positions(np.where(np.isnan(found), 0.0, found))
        return self.book.fields[name].to_positions(found)

    @property
    def bound_pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs of measured columns that rules bind; public."""
        assert self.book is not None
        return tuple(self.book.bound_pairs)

    def possible(self, pair: tuple[str, str], places: Sequence[Integers]) -> Bools:
        """Whether rules allow the positions of a bound pair in one row; below 0 for a missing value. Public.

        Guarantee:
            The coordinates of every record are possible: docs/proofs/trees.md#rules.
        """
        assert self.book is not None
        given = {
            name: np.where(own < 0, np.nan, self._coordinate_at(name, np.maximum(own, 0)))
            for name, own in zip(pair, places, strict=True)
        }
        return self.book.possible(given, self.book.bound_pairs[pair])

    def _coordinate_at(self, name: str, positions: Integers) -> Floats:
        assert self.book is not None
        if name in self.book.joint:
            return positions.astype(np.float64)
        if name in self.book.coordinates:
            return self.lattices[name].values(positions)
        return self.book.fields[name].of_positions(positions, None)

    def decoded(self, drawn: Mapping[str, Floats], random: np.random.Generator) -> dict[str, Floats]:
        """Rows of all columns that satisfy every rule, from drawn coordinates."""
        assert self.whole is not None
        assert self.book is not None
        fields, coordinates, joint = self.book.fields, self.book.coordinates, self.book.joint
        given = {}
        for name in self.book.measured:
            if name in joint:
                given[name] = joint[name].field.of_drawn(drawn[name])
            elif name not in self.book.unmeasured:
                given[name] = drawn[name] if name in coordinates else fields[name].of_drawn(drawn[name])
        made = self.book.decoded(given, random)
        return {
            name: fields[name].to_drawn(made[name]) if name in made else drawn[name]
            for name in self.whole.columns
        }


def coded(described: Described) -> Described:
    """The table as it is measured: in the coordinates of its rules, or itself if there are none."""
    book = described.rules
    if not book or isinstance(described, CodedByRules):
        return described
    lattices: dict[str, Lattice] = {}
    attributes = []
    for attribute in described.attributes:
        name = attribute.name
        if name in book.unmeasured:
            continue
        lattices[name] = described.lattices[name]
        if name in book.coordinates:
            lattices[name] = lattice = book.coordinates[name][1]
            ends = Attribute(name, lo=lattice.lo, hi=lattice.hi, step=lattice.step, missing=attribute.missing)
            attribute = ends
        elif name in book.joint:
            attribute, lattices[name] = book.joint[name].attribute, book.joint[name].field.lattice
        attributes.append(attribute)
    return CodedByRules(
        table=described.table,
        attributes=tuple(attributes),
        lattices=lattices,
        provenance=described.provenance,
        kept=described.kept,
        notes=described.notes,
        outside=described.outside,
        gaps=described.gaps,
        left_out=described.left_out,
        gapped=described.gapped,
        schema=described.schema,
        rules=None,
        whole=described,
        book=book,
    )
