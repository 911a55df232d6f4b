"""Tables measured in parts under differential privacy: declared strata, and units of several rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Attribute, Described, target_column
from shoal.display import internal
from shoal.errors import OptionError, closest
from shoal.mechanisms.method import Rebuilt, gap_terms
from shoal.numbers import Bools, Floats, Integers
from shoal.partition import column_codes, places
from shoal.privacy import Accountant, Currency, Plan, moved, row_budget
from shoal.progress import Progress, silent
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns import Rulebook
    from shoal.mechanisms.pairs.method import PairsDP
    from shoal.mechanisms.tree.method import TreeDP

    Dividing: TypeAlias = PairsDP | TreeDP

# every stratum is measured, empty or not
MOST_STRATA = 1000
# Above this noise on the numbers of rows of all strata, the table could fill the memory.
MOST_NOISE = 1_000_000
OF_STRATA = "measurements within strata"
_NO_ROWS: Integers = np.zeros(0, dtype=np.int64)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class DeclaredStratum:
    """One combination of declared values.

    Attributes:
        values: the released number of each column of the strata.
        rows: the records that have these values, among those that take part. Private.
        rules: the rules as they are there; None if there are none.
        possible: whether rules allow rows there; public.
    """

    values: tuple[float, ...]
    rows: Integers
    rules: Rulebook | None = None
    possible: bool = True


def of_stratum(method: Dividing) -> Dividing:
    """The method as it works inside a stratum.

    Under add-remove, or with public membership, a record affects one stratum as it would affect a table. Otherwise
    the sizes of the strata are private under replace-one: each stratum is measured under add-remove, with the part of
    the budget that a replaced record leaves (`shoal.privacy.moved`).
    """
    if method.adjacency.hides_size or method.membership is not None:
        return replace(method, strata=None, membership=None)
    return method.within_replaced()


def _share(method: Dividing) -> tuple[Fraction, Fraction]:
    """The whole budget, and that of one stratum."""
    rho = method.rho
    whole = method.budget if rho is None else rho
    if method.adjacency.hides_size or method.membership is not None:
        return whole, whole
    return whole, whole / moved(Currency.EPSILON if rho is None else Currency.RHO)


def rest_of(method: Dividing, described: Described, stratum: DeclaredStratum) -> Described:
    """The described table of one stratum: its rows, the columns that are measured, and the rules about these."""
    strata = method.strata or ()
    attributes = tuple(one for one in described.attributes if one.name not in strata)
    return replace(
        described,
        attributes=attributes,
        lattices={one.name: described.lattices[one.name] for one in attributes},
        kept=stratum.rows if described.kept is None else described.kept[stratum.rows],
        rules=stratum.rules,
    )


def within_strata(method: Dividing, described: Described) -> tuple[Dividing, Described]:
    """The method as it works inside a stratum, and what it measures in the first one that rules allow: no row."""
    every = _combinations(method, described, _checked(method, described))
    return of_stratum(method), rest_of(method, described, next(one for one in every if one.possible))


def _declared(described: Described, column: str) -> Floats:
    """The numbers that a column of the strata can have in a release, "missing" last."""
    tree, lattice = described.tree(column), described.lattices[column]
    if tree is not None:
        return np.array(tree.domain, dtype=np.float64)
    points = int(lattice.width / lattice.step) + 1
    if points > MOST_STRATA:
        raise OptionError("too-many-strata", option="strata", count=points, most=MOST_STRATA)
    gap = [np.nan] if column in described.flagged else []
    return np.append(lattice.values(np.arange(points)), gap)


def _checked(method: Dividing, described: Described) -> list[Floats]:
    """The declared values of each column of the strata, by public facts.

    Raises:
        OptionError: they are not released columns, or there are too many strata.
    """
    strata = method.strata or ()
    for column in strata:
        if column not in described.columns:
            raise OptionError(
                "setting-names-column-not-released",
                column=column,
                option="strata",
                hint=closest(column, described.columns),
            )
    target = getattr(method, "target", None)
    if target is not None and target_column(target, described.columns) in strata:
        raise OptionError(
            "target-is-a-stratum", option="target", column=target_column(target, described.columns)
        )
    if len(strata) == len(described.columns):
        raise OptionError("strata-leave-no-column", option="strata")
    found = [_declared(described, column) for column in strata]
    count = math.prod(one.size for one in found)
    if count > MOST_STRATA:
        raise OptionError("too-many-strata", option="strata", count=count, most=MOST_STRATA)
    return found


def declared_strata(method: Dividing, described: Described) -> Iterator[DeclaredStratum]:
    """All combinations of declared values with their records, in the order of the declarations."""
    every = _checked(method, described)
    number = np.zeros(described.n, dtype=np.int64)
    for column, values in zip(method.strata or (), every, strict=True):
        found, _ = described.positions(column)
        last = values.size - 1
        if column in described.flagged:
            found = np.where(described.absent(column), last, np.minimum(found, last - 1))
        number = number * values.size + np.minimum(found, last)
    for place, stratum in enumerate(_combinations(method, described, every)):
        yield replace(stratum, rows=np.flatnonzero(number == place))


def _combinations(
    method: Dividing, described: Described, every: Sequence[Floats]
) -> Iterator[DeclaredStratum]:
    """All combinations of declared values, without their records, each with its rules: public."""
    book, sizes = described.rules, [one.size for one in every]
    known: dict[tuple[str, ...], Rulebook | None] = {}
    for place in range(math.prod(sizes)):
        which = np.unravel_index(place, sizes)
        values = tuple(float(one[int(own)]) for one, own in zip(every, which, strict=True))
        if not book:
            yield DeclaredStratum(values, _NO_ROWS)
            continue
        fixed = {
            name: float(book.fields[name].of_drawn(np.array([value]))[0])
            for name, value in zip(method.strata or (), values, strict=True)
            if name in book.fields
        }
        key = tuple(map(str, fixed.values()))
        if key not in known:
            known[key] = book.within(fixed)
        here = known[key]
        # where all columns of the rules are fixed, nothing is left to apply
        rules = here if here is not None and here.steps else None
        yield DeclaredStratum(values, _NO_ROWS, rules, possible=here is not None)


def plan_in_strata(method: Dividing, described: Described) -> Plan:
    """One reservation for all strata; what it is spent on inside is planned stratum by stratum."""
    every = _checked(method, described)
    count = math.prod(one.size for one in every)
    strata = tuple(method.strata or ())
    whole, _ = _share(method)
    conditions = [Message.of("strata-declared", strata=strata, count=count)]
    possible = [one for one in _combinations(method, described, every) if one.possible]
    if len(possible) < count:
        conditions.append(Message.of("strata-without-rows", count=count - len(possible)))
    if method.membership is not None:
        conditions.append(Message.of("strata-membership-public", strata=strata))
    else:
        of_stratum(method).plan(rest_of(method, described, possible[0]))
        code = "strata-sizes-drawn" if method.adjacency.hides_size else "strata-may-be-left"
        conditions.append(Message(code))
    conditions.append(Message("rows-are-no-sample"))
    unmeasured = () if described.rules is None else described.rules.unmeasured
    measured = [name for name in described.columns if name in strata or name not in unmeasured]
    shares = dict.fromkeys(measured, whole / len(measured))
    # a record that changes in one attribute may change its stratum
    costs = {} if method.adjacency.hides_size else dict.fromkeys(described.columns, whole)
    return Plan({OF_STRATA: whole}, shares, tuple(conditions), costs)


def check_in_strata(method: Dividing, described: Described) -> None:
    """Raise what a run would raise in any stratum."""
    own = of_stratum(method)
    if method.membership is None:
        # sizes are private, so that nothing depends on them; without rules all strata are alike
        every = _combinations(method, described, _checked(method, described))
        possible = [one for one in every if one.possible]
        for stratum in possible if described.rules else possible[:1]:
            within = rest_of(method, described, stratum)
            own.refuse(within, own.plan(within))
        if len(possible) * own.rows_noise > MOST_NOISE:
            raise OptionError(
                "strata-noise-on-rows",
                option="strata",
                count=len(possible),
                noise=own.rows_noise,
                budget=float(method.unit_epsilon or method.budget),
            )
        return
    for stratum in declared_strata(method, described):
        if stratum.rows.size and not stratum.possible:
            raise OptionError("strata-rows-against-rules", option="strata")
        if stratum.rows.size:
            within = rest_of(method, described, stratum)
            own.refuse(within, own.plan(within))


def run_in_strata(method: Dividing, described: Described, account: Accountant, progress: Progress) -> Rebuilt:
    """Run the method in every declared stratum.

    Guarantee:
        That of the method: a record that is added or removed affects one stratum, and one that is replaced one or
        two of them; docs/proofs/trees.md#strata.

    Cost:
        That of the method for each stratum.
    """
    own = of_stratum(method)
    _, share = _share(method)
    parts = account.parallel("strata", {OF_STRATA: share}, own.adjacency)
    values: dict[str, list[Floats]] = {column: [] for column in described.columns}
    clipped = dict.fromkeys(described.columns, 0)
    strata = list(declared_strata(method, described))
    for number, stratum in enumerate(strata):
        # under public membership an empty stratum is a public fact, and has no rows to release
        if stratum.possible and (method.membership is None or stratum.rows.size):
            within = rest_of(method, described, stratum)
            planned = own.plan(within)
            part = parts.part()
            part.divide(OF_STRATA, planned.spending)
            made = own.run(within, planned, part, silent)
            rows = next(iter(made.values.values())).size
            for column, drawn in made.values.items():
                values[column].append(drawn)
                clipped[column] += made.internal["values_clipped"].get(column, 0)
            for column, value in zip(method.strata or (), stratum.values, strict=True):
                values[column].append(np.full(rows, value))
        progress("measuring strata", number + 1, len(strata))
    together = {column: np.concatenate(drawn) for column, drawn in values.items()}
    released = next(iter(together.values())).size
    internal = {"values_clipped": clipped, "rows_released": int(released), "clusters": []}
    return Rebuilt(together, [], aligned=False, internal=internal)


# --- units of several rows

OF_FIRST, OF_NEXT, OF_EACH = "units with their first rows", "consecutive rows of units", "columns of all rows"
# shares of the budget
SHARES: Mapping[str, Fraction] = {
    OF_FIRST: Fraction(3, 10),
    OF_NEXT: Fraction(9, 20),
    OF_EACH: Fraction(1, 4),
}
# the most records that stand for one unit among consecutive rows; whole numbers of them for 1, 2, 3, 4, 6 and 12 pairs
_MOST_COPIES = 12
# numbers that a predicted row is compared in, and how many similar rows one is taken from
_SCORES, _NEAREST = 6, 25
# rounds in which weights follow the distributions of single columns, the most of one step, and intervals of a column
_TURNS, _STEP, _BINS = 7, 3.0, 12
# and of units on which they are tried
_MOST_TRIED = 20_000
# intervals of an ordered column, and names of a nominal one, that a prediction can use
_INTERVALS, _NAMES = 6, 30


def copies_of(rows: int) -> int:
    """The number of records that stand for a unit with several rows among consecutive rows; it has at most `rows`.

    >>> [copies_of(rows) for rows in (2, 3, 4, 5, 30)]
    [1, 2, 6, 12, 12]
    """
    return min(math.lcm(*range(1, rows)), _MOST_COPIES) if rows <= _MOST_COPIES else _MOST_COPIES


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class UnitTable(Described):
    """A table in which every unit has a public number of records, made of rows of another table.

    Attributes:
        whole: the other table.
        places: for each column of this table: a column of the other one, and its row for every record.
        numbers: positions of columns that are no columns of the other table.
    """

    whole: Described | None = None
    places: Mapping[str, tuple[str, Integers]] = field(default_factory=dict)
    numbers: Mapping[str, Integers] = field(default_factory=dict)

    def absent(self, name: str) -> Bools:
        if name in self.numbers:
            return np.zeros(self.numbers[name].size, dtype=np.bool_)
        assert self.whole is not None
        source, rows = self.places[name]
        found: Bools = self.whole.absent(source)[rows]
        return found

    def positions(self, name: str) -> tuple[Integers, int]:
        if name in self.numbers:
            return self.numbers[name], 0
        assert self.whole is not None
        source, rows = self.places[name]
        found, clipped = self.whole.positions(source)
        return found[rows], clipped


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """The columns of the tables that are measured.

    Attributes:
        unit: attributes of a unit.
        row: the others.
        size: the column with the number of rows.
        before: by column of a row, the column with the value in the row before.
    """

    unit: tuple[str, ...]
    row: tuple[str, ...]
    size: str
    before: Mapping[str, str]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """The rows of each unit in their order. Private.

    Attributes:
        rows: all rows, unit by unit.
        starts: where the rows of each unit begin; one more for the end.
    """

    rows: Integers
    starts: Integers

    @property
    def sizes(self) -> Integers:
        return np.diff(self.starts)


def _names(method: Dividing, described: Described) -> Names:
    """The columns that are measured, by public facts.

    Raises:
        OptionError: the settings do not fit the columns or the declared unit.
    """
    unit, columns = method.unit_columns or (), described.columns
    provenance = described.provenance
    if provenance.unit is None:
        raise OptionError("unit-columns-need-a-unit", option="unit_columns")
    if provenance.rows_per_unit < 2:
        raise OptionError("unit-columns-need-rows", option="unit_columns", unit=provenance.unit)
    for name in unit:
        if name not in columns:
            raise OptionError(
                "setting-names-column-not-released",
                column=name,
                option="unit_columns",
                hint=closest(name, columns),
            )
    row = tuple(name for name in columns if name not in unit)
    if not row:
        raise OptionError("unit-columns-leave-no-column", option="unit_columns")
    if method.unit_order is not None and method.unit_order not in row:
        raise OptionError(
            "unit-order-not-a-row-column",
            column=method.unit_order,
            option="unit_order",
            hint=closest(method.unit_order, row),
        )
    if method.unit_order is not None and not described.attribute(method.unit_order).kind_facts.ordered:
        raise OptionError("unit-order-is-nominal", column=method.unit_order, option="unit_order")

    def free(name: str) -> str:
        while name in columns:
            name += " "
        return name

    return Names(unit, row, free("number of rows"), {name: free(f"previous {name}") for name in row})


def _whole_numbers(name: str, lo: int, hi: int) -> Attribute:
    return Attribute(name, lo=Fraction(lo), hi=Fraction(hi), step=Fraction(1))


def _measured(
    described: Described,
    attributes: Sequence[Attribute],
    places: Mapping[str, tuple[str, Integers]],
    numbers: Mapping[str, Integers],
    records: int,
) -> UnitTable:
    lattices = {
        one.name: described.lattices[places[one.name][0]] if one.name in places else one.lattice(integer=True)
        for one in attributes
    }
    return UnitTable(
        table=described.table,
        attributes=tuple(attributes),
        lattices=lattices,
        provenance=described.provenance,
        kept=np.arange(records),
        notes=(),
        outside=described.outside,
        schema=described.schema,
        whole=described,
        places=places,
        numbers=numbers,
    )


def first_table(method: Dividing, described: Described, chains: Chains) -> UnitTable:
    """One record for each unit: its attributes, its number of rows, and its first row."""
    names, most = _names(method, described), described.provenance.rows_per_unit
    first = chains.rows[chains.starts[:-1]]
    columns = [described.attribute(name) for name in (*names.unit, *names.row)]
    return _measured(
        described,
        [*columns, _whole_numbers(names.size, 1, most)],
        {one.name: (one.name, first) for one in columns},
        {names.size: chains.sizes - 1},
        first.size,
    )


def next_table(method: Dividing, described: Described, chains: Chains) -> UnitTable:
    """For each unit of several rows the same number of records, each of a row and the one before it.

    The pairs of consecutive rows of a unit share its records as evenly as possible, in order.
    """
    names, most = _names(method, described), described.provenance.rows_per_unit
    copies = copies_of(most)
    several = np.flatnonzero(chains.sizes > 1)
    pairs = np.repeat(chains.sizes[several] - 1, copies)
    place = np.tile(np.arange(copies), several.size) * pairs // copies + 1
    unit = np.repeat(several, copies)
    own, first = chains.rows[chains.starts[unit] + place], chains.rows[chains.starts[unit]]
    before = chains.rows[chains.starts[unit] + place - 1]
    attributes = [described.attribute(name) for name in (*names.unit, *names.row)]
    places = {name: (name, first) for name in names.unit} | {name: (name, own) for name in names.row}
    for name, lagged in names.before.items():
        attributes.append(replace(described.attribute(name), name=lagged))
        places[lagged] = (name, before)
    numbers: dict[str, Integers] = {}
    if most > 2:
        attributes.append(_whole_numbers(names.size, 2, most))
        numbers = {names.size: pairs - 1}
    return _measured(described, attributes, places, numbers, unit.size)


def column_table(name: str, method: Dividing, described: Described, chains: Chains) -> UnitTable:
    """One column of all rows."""
    own = described.attribute(name)
    return _measured(described, [own], {name: (name, chains.rows)}, {}, chains.rows.size)


def chains_of(method: Dividing, described: Described, key: int) -> Chains:
    """The rows of each unit in their order: by the column that orders them, then by a keyed hash of their content.

    Guarantee:
        The order of a unit's rows depends on these rows and the key, not on other units and not on positions in the
        table; rows that are equal in all released columns are interchangeable. Proof:
        docs/proofs/units.md#5-units-as-records.
    """
    assert described.provenance.unit is not None
    codes = column_codes(described.table, described.provenance.unit)
    units = places(codes if described.kept is None else codes[described.kept])
    content = np.full(units.size, key & _WORD, dtype=np.uint64)
    for name in described.columns:
        own = described.positions(name)[0].astype(np.uint64) * np.uint64(2)
        content = _mixed(content ^ _mixed(own + described.absent(name).astype(np.uint64)))
    sorting: list[NDArray[Any]] = [content, units]
    if method.unit_order is not None:
        # rows without a value come last
        sorting[1:1] = [described.positions(method.unit_order)[0], described.absent(method.unit_order)]
    rows = np.lexsort(sorting)
    sizes = np.bincount(units, minlength=0)
    return Chains(rows, np.concatenate(([0], np.cumsum(sizes))).astype(np.int64))


_WORD = (1 << 64) - 1


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64-bit words that spreads every bit (the finaliser of SplitMix64)."""
    found = values + np.uint64(0x9E3779B97F4A7C15)
    found = (found ^ found >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ found >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return found ^ found >> np.uint64(31)


_NO_UNITS = Chains(_NO_ROWS, np.zeros(1, dtype=np.int64))


def _of_units(method: Dividing, described: Described) -> tuple[tuple[str, int, Any], ...]:
    """The measured tables: purpose, records of one unit, and how the table is made."""
    most = described.provenance.rows_per_unit
    return (
        (OF_FIRST, 1, first_table),
        (OF_NEXT, copies_of(most), next_table),
        *(
            (f"{OF_EACH}: {name}", most, partial(column_table, name))
            for name in _names(method, described).row
        ),
    )


def _shares(method: Dividing, described: Described) -> dict[str, Fraction]:
    """The share of the budget of each measured table, by purpose."""
    row = _names(method, described).row
    each = {f"{OF_EACH}: {name}": SHARES[OF_EACH] / len(row) for name in row}
    return {OF_FIRST: SHARES[OF_FIRST], OF_NEXT: SHARES[OF_NEXT], **each}


def _of_part(method: Dividing, share: Fraction, copies: int) -> Dividing:
    """The method for a table in which a unit has so many records, with a share of its budget."""
    currency = Currency.EPSILON if method.rho is None else Currency.RHO
    return method.for_part(row_budget(share, copies, currency))


def plan_units(method: Dividing, described: Described) -> Plan:
    """The reservations for both tables, from public facts."""
    names = _names(method, described)
    rho = method.rho
    whole = method.budget if rho is None else rho
    unit, most = described.provenance.unit, described.provenance.rows_per_unit
    conditions = [
        Message.of(
            "units-measured",
            unit=unit,
            rows=most,
            first=float(SHARES[OF_FIRST]),
            pairs=float(SHARES[OF_NEXT]),
        ),
        Message.of("units-in-random-order", unit=unit),
        Message.of("unit-columns-of-first-row", columns=names.unit),
        Message("unit-order-random")
        if method.unit_order is None
        else Message.of("unit-order-by-column", column=method.unit_order),
        *gap_terms(described),
        Message("units-are-no-sample"),
    ]
    spending = {purpose: whole * share for purpose, share in _shares(method, described).items()}
    shares = dict.fromkeys(described.columns, whole / len(described.columns))
    check_units(method, described)
    return Plan(spending, shares, tuple(conditions), {})


def check_units(method: Dividing, described: Described) -> None:
    """Raise what a run would raise for any number of units."""
    shares = _shares(method, described)
    for purpose, copies, table in _of_units(method, described):
        within = table(method, described, _NO_UNITS)
        own = _of_part(method, shares[purpose], copies)
        own.refuse(within, own.plan(within))


def run_units(method: Dividing, described: Described, account: Accountant, progress: Progress) -> Rebuilt:
    """Measure units with their first rows, and consecutive rows; draw units row by row.

    Guarantee:
        That of the method, for whole units under add-remove: docs/proofs/units.md#5-units-as-records.

    Cost:
        That of the method for both tables; then a search among drawn rows for each row.
    """
    names = _names(method, described)
    chains = chains_of(method, described, int(account.free("order of rows within units").words(1)[0]))
    clipped = {name: described.positions(name)[1] for name in described.columns}
    shares, tables = _shares(method, described), _of_units(method, described)
    first: dict[str, Floats] = {}
    pool: dict[str, Floats] = {}
    every: dict[str, Floats] = {}
    size = first_rows = 0
    for number, (purpose, copies, table) in enumerate(tables):
        own, within = _of_part(method, shares[purpose], copies), table(method, described, chains)
        if number > 1:
            # the number of rows is known from the drawn units
            own = replace(own, rows=max(size, 1))
        planned = own.plan(within)
        part = account.of_records(purpose, copies)
        part.divide(purpose, planned.spending)
        learned = own.learn(within, planned, part, silent)
        source = account.free(f"rows drawn from {purpose}")
        if number == 0:
            first_rows = learned.rows
            first = own.draw(learned, within, learned.rows, source, silent)
            size = int(np.rint(first[names.size]).sum())
        elif number == 1:
            rows = _pool_size(size - first_rows)
            pool = own.draw(learned, within, rows, source, silent)
        else:
            every |= own.draw(learned, within, learned.rows, source, silent)
        progress("measuring units", number + 1, len(tables) + 1)
    source = account.free("rows of drawn units")
    random = np.random.Generator(np.random.Philox(int(source.words(1)[0])))
    values, units = assembled(method, described, names, first, pool, every, random)
    progress("measuring units", len(tables) + 1, len(tables) + 1)
    internal = {
        "values_clipped": clipped,
        "rows_released": int(units.size),
        "clusters": [],
        "units": int(chains.sizes.size),
        "unit_columns_that_differ": _differing(described, names.unit, chains),
    }
    return Rebuilt(values, [], aligned=False, internal=internal, units=units)


def _differing(described: Described, columns: Sequence[str], chains: Chains) -> dict[str, int]:
    """The number of units whose rows differ in an attribute of the unit. Private."""
    owner = np.repeat(np.arange(chains.sizes.size), chains.sizes)
    first = chains.rows[chains.starts[:-1]]
    found = {}
    for name in columns:
        own, absent = described.positions(name)[0], described.absent(name)
        here = (own[chains.rows] != own[first][owner]) | (absent[chains.rows] != absent[first][owner])
        found[name] = int(np.unique(owner[here]).size)
    return found


def _pool_size(needed: int) -> int:
    """The number of records to draw for so many further rows: many for few, since similar ones are searched for.

    >>> [_pool_size(needed) for needed in (10, 5_000, 40_000, 1_000_000)]
    [1200, 50000, 120000, 200000]
    """
    return min(20 * needed + 1_000, max(50_000, 3 * needed), 200_000)


def assembled(
    method: Dividing,
    described: Described,
    names: Names,
    first: Mapping[str, Floats],
    pool: Mapping[str, Floats],
    every: Mapping[str, Floats],
    random: np.random.Generator,
) -> tuple[dict[str, Floats], Integers]:
    """Rows of drawn units, and the unit of each row: post-processing.

    Every further row is taken from a drawn record whose unit and previous row predict a similar row (predictive mean
    matching). Records are weighted so that all rows together have the distribution of single columns in `every`.

    Reference:
        Little (1988), Missing-Data Adjustments in Large Surveys, Journal of Business & Economic Statistics 6(3).
    """
    sizes = np.rint(first[names.size]).astype(np.int64)
    chain = _Chain(described, names, first, pool, sizes, method.unit_order)
    weights = np.ones(next(iter(pool.values())).size)
    cells: dict[str, Integers] = {}
    wanted: dict[str, Floats] = {}
    for name, own in every.items():
        bins = _Bins(own, name in described.nominal)
        cells[name] = bins.of(pool[name])
        counts = bins.counts(own) * (sizes.sum() / max(own.size, 1)) - bins.counts(first[name])
        wanted[name] = np.maximum(counts, 0.0)
    some = np.arange(sizes.size)
    if some.size > _MOST_TRIED:
        some = np.sort(random.choice(some, _MOST_TRIED, replace=False))
    for _ in range(_TURNS):
        found = chain.drawn(weights, random, some)
        if not found:
            break
        there = np.concatenate(found)
        for name, cell in cells.items():
            counts = np.bincount(cell[there], minlength=wanted[name].size).astype(np.float64)
            goal = wanted[name] * (there.size / max(wanted[name].sum(), 1.0))
            ratio = (goal + 1) / (counts + 1)
            weights *= np.clip(ratio, 1 / _STEP, _STEP)[cell]
        weights = np.clip(weights / weights.mean(), 1e-3, 1e3)
    taken = chain.drawn(weights, random, np.arange(sizes.size))
    owners = [np.arange(sizes.size), *(np.flatnonzero(sizes >= place + 2) for place in range(len(taken)))]
    units = np.concatenate(owners)
    place = np.repeat(np.arange(len(owners)), [one.size for one in owners])
    values = {name: first[name][units] for name in names.unit}
    values |= {name: np.concatenate([first[name], *(pool[name][one] for one in taken)]) for name in names.row}
    ordering: list[Any] = [place, units]
    if method.unit_order is not None:
        ordering.insert(1, values[method.unit_order])
    order = np.lexsort(ordering)
    return {name: values[name][order] for name in described.columns}, units[order]


class _Chain:
    """Draw the further rows of units one after the other from a pool of records."""

    def __init__(
        self,
        described: Described,
        names: Names,
        first: Mapping[str, Floats],
        pool: Mapping[str, Floats],
        sizes: Integers,
        order: str | None,
    ) -> None:
        from scipy.spatial import KDTree

        self._names, self._first, self._pool, self._sizes = names, first, pool, sizes
        self._order = order
        self._predictor = _Predictor(described, names, pool)
        self._tree = KDTree(self._predictor.scores(pool))

    def drawn(self, weights: Floats, random: np.random.Generator, which: Integers) -> list[Integers]:
        """For the second rows of these units, and for further ones: the record that each is taken from."""
        names, first = self._names, self._first
        before = {name: first[name][which] for name in names.row}
        owners = which
        found = []
        many = min(_NEAREST, weights.size)
        for place in range(2, int(self._sizes.max(initial=1)) + 1):
            here = which[self._sizes[which] >= place]
            known = np.searchsorted(owners, here)
            question = {name: first[name][here] for name in names.unit}
            question |= {names.before[name]: before[name][known] for name in names.row}
            if names.size in self._pool:
                question[names.size] = first[names.size][here]
            near = np.asarray(self._tree.query(self._predictor.scores(question), k=[*range(1, many + 1)])[1])
            chances = weights[near]
            if self._order is not None:
                # a row that would come before the last one is taken only if there is no other
                earlier = self._pool[self._order][near] < before[self._order][known][:, np.newaxis]
                chances = np.where(earlier, chances * 1e-9, chances)
            running = np.cumsum(chances, axis=1)
            level = random.random(here.size) * running[:, -1]
            taken = near[np.arange(here.size), (running < level[:, np.newaxis]).sum(axis=1)]
            found.append(taken)
            before, owners = {name: self._pool[name][taken] for name in names.row}, here
        return found


class _Bins:
    """Names, or intervals of an ordered column with about as many values each; missing values are the last."""

    def __init__(self, values: Floats, nominal: bool) -> None:
        there = values[~np.isnan(values)]
        self._nominal = nominal
        levels = np.arange(1, _BINS) / _BINS
        self._ends = np.unique(there if nominal or not there.size else np.quantile(there, levels))

    def of(self, values: Floats) -> Integers:
        found = np.searchsorted(self._ends, values, side="left" if self._nominal else "right")
        return np.where(np.isnan(values), self._ends.size + 1, found).astype(np.int64)

    def counts(self, values: Floats) -> Floats:
        return np.bincount(self.of(values), minlength=self._ends.size + 2).astype(np.float64)


class _Predictor:
    """Predict a row from its unit and the previous row, linearly in intervals and names, fitted to drawn records."""

    def __init__(self, described: Described, names: Names, pool: Mapping[str, Floats]) -> None:
        self._columns: list[tuple[str, Floats, Floats]] = []
        named = {described.attribute(name).name for name in described.nominal}
        lagged = {other: name for name, other in names.before.items()}
        for name in pool:
            if name not in names.row:
                self._columns.append((name, *_scale(pool[name], lagged.get(name, name) in named)))
        targets = [_coded(pool[name], *_scale(pool[name], name in named)) for name in names.row]
        wanted = np.hstack(targets)
        wanted = (wanted - wanted.mean(axis=0)) / np.maximum(wanted.std(axis=0), 1e-9)
        given = self._coded(pool)
        self._mean = given.mean(axis=0)
        given = given - self._mean
        ridge = np.eye(given.shape[1]) * (1e-3 * len(given))
        weights = np.linalg.solve(given.T @ given + ridge, given.T @ wanted)
        _, _, turned = np.linalg.svd(given @ weights, full_matrices=False)
        self._weights = weights @ turned[:_SCORES].T

    def _coded(self, values: Mapping[str, Floats]) -> Floats:
        return np.hstack([_coded(values[name], *scale) for name, *scale in self._columns])

    def scores(self, values: Mapping[str, Floats]) -> Floats:
        found: Floats = (self._coded(values) - self._mean) @ self._weights
        return found


def _scale(values: Floats, nominal: bool) -> tuple[Floats, Floats]:
    """The most frequent names, or the sorted values and the ends of intervals of an ordered column."""
    there = values[~np.isnan(values)]
    if nominal:
        names, counts = np.unique(there, return_counts=True)
        return names[np.argsort(-counts, kind="stable")[:_NAMES]], np.zeros(0)
    if not there.size:
        return np.zeros(0), np.zeros(1)
    return np.sort(there), np.unique(np.quantile(there, np.arange(1, _INTERVALS) / _INTERVALS))


def _coded(values: Floats, known: Floats, ends: Floats) -> Floats:
    """Indicators of names, or rank, value and indicators of intervals; and whether a value is missing."""
    missing = np.isnan(values)
    if not ends.size:
        return np.column_stack([values[:, np.newaxis] == known, missing]).astype(np.float64)
    filled = np.where(missing, known[known.size // 2] if known.size else 0.0, values)
    low, high = np.searchsorted(known, filled), np.searchsorted(known, filled, side="right")
    rank = (low + high) / (2 * max(known.size, 1)) - 0.5
    spread = float(known.std()) if known.size else 0.0
    value = (filled - (float(known.mean()) if known.size else 0.0)) / (spread or 1.0)
    above = filled[:, np.newaxis] > ends
    return np.column_stack([3 * rank, value, above, missing]).astype(np.float64)
