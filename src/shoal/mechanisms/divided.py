"""Strata under differential privacy: every declared stratum is measured by itself, whether or not it has records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from shoal.columns import Declared, target_column
from shoal.display import internal
from shoal.errors import OptionError, closest
from shoal.mechanisms.method import Rebuilt
from shoal.numbers import Floats, Integers
from shoal.privacy import Accountant, Currency, MethodTerms, Plan, moved
from shoal.progress import Progress, silent
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns import Described, Rulebook
    from shoal.mechanisms.pairs.method import PairsDP
    from shoal.mechanisms.tree.method import TreeDP

    Dividing: TypeAlias = PairsDP | TreeDP

# every stratum is measured, empty or not
MOST_STRATA = 1000
OF_STRATA = "measurements within strata"


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


def check_membership(method: Dividing) -> None:
    """Refuse combinations of settings that do not fit strata."""
    if method.membership is not None and (method.strata is None or method.adjacency.hides_size):
        raise OptionError("membership-needs-strata-under-replace-one", option="membership")
    if method.strata is not None and method.rows is not None:
        raise OptionError("rows-of-strata-are-drawn", option="rows")


def membership_terms(method: Dividing) -> MethodTerms:
    """What public membership makes public."""
    if method.membership is None:
        return MethodTerms()
    return MethodTerms(invariants=(Declared("sizes-of-strata", {"strata": list(method.strata or ())}),))


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


_NO_ROWS: Integers = np.zeros(0, dtype=np.int64)


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
        possible = (one for one in every if one.possible)
        for stratum in possible if described.rules else islice(possible, 1):
            within = rest_of(method, described, stratum)
            own.refuse(within, own.plan(within))
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
