"""Local suppression: blank cells until every combination of quasi-identifiers is shared by k records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns import Described
from shoal.display import internal
from shoal.errors import ClaimError, OptionError, closest
from shoal.io import Table
from shoal.mechanisms.kanonymity.columns import (
    columns_of,
    or_none,
    persons_hold,
    quasi_identifiers,
    reached,
    refuse_masked_weight,
)
from shoal.mechanisms.method import Rebuilt
from shoal.mechanisms.parameter_fields import columns_of_combination
from shoal.mechanisms.strata import (
    Stratum,
    check_persons,
    check_strata,
    counted_message,
    strata_of,
    strata_terms,
)
from shoal.mechanisms.suppression.bound import Keys
from shoal.mechanisms.suppression.method import Suppress
from shoal.mechanisms.suppression.search import fewest, lower_bound
from shoal.mechanisms.suppression.wildcard import Wish, emptied
from shoal.numbers import Integers
from shoal.partition import coded, places, row_groups, units_of_groups
from shoal.privacy import Accountant, Plan
from shoal.progress import Progress
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.evaluation import Check


Report = Callable[[int, int], None]

# number of rounds over the requirements: emptying cells for one of them can make another combination rare
_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Combination:
    """A set of quasi-identifiers, by index, and the minimum frequency of each of its combinations."""

    columns: tuple[int, ...]
    k: int


def emptied_for_all(
    codes: Integers,
    wishes: Sequence[Combination],
    costs: NDArray[np.float64],
    order: Sequence[int],
    report: Report | None = None,
    units: Integers | None = None,
) -> tuple[Integers, float]:
    """Codes that satisfy all requirements, 0 for an empty cell, and a lower bound of the cost of any solution.

    A single requirement is solved as well as possible. Several are solved in turns until all hold, or all their
    columns together with the largest k, which implies every one: the cheaper result is used, after restoring needless
    cells.

    Args:
        order: the columns, important ones and those with few values first.
        units: the person of each row, if a combination must occur for that many persons. Equal rows of a person
            count as one, and requirements still open because of persons with unequal rows are solved afterwards.
    """
    if units is not None:
        return _for_persons(codes, wishes, costs, order, report, units)
    if len(wishes) == 1:
        return _done(codes, wishes[0], costs, order, report)
    together = Combination(
        tuple(sorted({column for wish in wishes for column in wish.columns})), max(wish.k for wish in wishes)
    )
    in_turns = codes
    for _ in range(_ROUNDS):
        before = in_turns
        for wish in wishes:
            in_turns, _ = _done(in_turns, wish, costs, order, report)
        if (in_turns == before).all():
            break
    else:
        in_turns, _ = _done(in_turns, together, costs, order, report)
    at_once, _ = _done(codes, together, costs, order, report)
    found = [given_back(codes, one, wishes, costs) for one in (in_turns, at_once)]
    best = min(found, key=lambda one: float(((one == 0) & (codes > 0)).sum(axis=0) @ costs))
    return best, _bound(codes, wishes, costs, order)


def _done(
    codes: Integers,
    wish: Combination,
    costs: NDArray[np.float64],
    order: Sequence[int],
    report: Report | None,
) -> tuple[Integers, float]:
    chosen = [column for column in order if column in wish.columns]
    keys = Keys(codes[:, chosen], costs[chosen])
    found = fewest(keys, wish.k, report)
    after = codes.copy()
    after[:, chosen] = np.where(keys.cells(found.masks), 0, codes[:, chosen])
    return after, found.bound


def _bound(
    codes: Integers, wishes: Sequence[Combination], costs: NDArray[np.float64], order: Sequence[int]
) -> float:
    """Lower bound of the cost of all requirements: each alone is a bound, and those without a common column add up."""
    alone = []
    for wish in wishes:
        chosen = [column for column in order if column in wish.columns]
        alone.append((lower_bound(Keys(codes[:, chosen], costs[chosen]), wish.k), set(wish.columns)))
    total, taken = 0.0, set[int]()
    for bound, columns in sorted(alone, key=lambda one: -one[0]):
        if not columns & taken:
            total += bound
            taken |= columns
    return total


def _for_persons(
    codes: Integers,
    wishes: Sequence[Combination],
    costs: NDArray[np.float64],
    order: Sequence[int],
    report: Report | None,
    units: Integers,
) -> tuple[Integers, float]:
    """As `emptied_for_all`; the bound counts a person's equal rows as one, and so is not above the true cost."""
    once = row_groups([units, *codes.T])
    before, own = codes[once.first], units[once.first]
    after, bound = emptied_for_all(before, wishes, costs, order, report)
    together = Combination(
        tuple(sorted({column for wish in wishes for column in wish.columns})), max(wish.k for wish in wishes)
    )
    # solving one requirement can break another one; all columns together imply every one
    for wish in (*(list(wishes) * _ROUNDS), together):
        if all(_holds(after, one, own) for one in wishes):
            break
        after = _joined(after, wish, costs, own)
    return given_back(before, after, wishes, costs, own)[once.labels], bound


def _holds(codes: Integers, wish: Combination, units: Integers) -> bool:
    groups = row_groups(codes[:, wish.columns].T)
    return int(units_of_groups(groups.labels, units).min()) >= wish.k


def _joined(codes: Integers, wish: Combination, costs: NDArray[np.float64], units: Integers) -> Integers:
    """Codes in which every combination of a requirement has enough persons: rare ones are merged at least cost.

    A combination with too few persons is merged with another one into what both have in common. If the other one
    has persons to spare, only as many of them as needed are merged.
    """
    found = codes.copy()
    columns = np.array(wish.columns)
    while True:
        groups = row_groups(found[:, columns].T)
        persons = units_of_groups(groups.labels, units)
        if persons.min() >= wish.k:
            return found
        rare = int(np.argmin(persons))
        heads = found[groups.first][:, columns]
        apart = heads != heads[rare]
        mine = (apart & (heads[rare] > 0)) @ costs[columns]
        theirs = (apart & (heads > 0)) @ costs[columns]
        own = np.flatnonzero(groups.labels == rare)
        there = np.unique(units[own])
        needed = wish.k - there.size
        # estimated cost: the rows of as many persons as must be merged
        moved = np.where(
            persons >= wish.k + needed, needed * groups.sizes / np.maximum(persons, 1), groups.sizes
        )
        price = mine * own.size + theirs * moved
        price[rare] = np.inf
        other = int(np.argmin(price))
        members = np.flatnonzero(groups.labels == other)
        fresh = np.setdiff1d(np.unique(units[members]), there)
        spare = int(persons[other]) - needed >= wish.k and fresh.size >= needed
        coming = members[np.isin(units[members], fresh[:needed])] if spare else members
        common = np.where(apart[other], 0, heads[rare])
        found[np.ix_(np.concatenate([own, coming]), columns)] = common


class _Occurrences:
    """The frequency of combinations, in rows or in persons."""

    def __init__(self, rows: Sequence[tuple[int, ...]], units: Sequence[int]) -> None:
        self._of: dict[tuple[int, ...], Counter[int]] = {}
        for row, unit in zip(rows, units, strict=True):
            self.add(row, unit)

    def after(self, row: tuple[int, ...], unit: int, change: int) -> int:
        """The frequency of a combination after a row of a person is added (1) or removed (-1)."""
        own = self._of.get(row, Counter())
        if change > 0:
            return len(own) + (unit not in own)
        return len(own) - (own[unit] == 1)

    def add(self, row: tuple[int, ...], unit: int) -> None:
        self._of.setdefault(row, Counter())[unit] += 1

    def remove(self, row: tuple[int, ...], unit: int) -> None:
        own = self._of[row]
        own[unit] -= 1
        if not own[unit]:
            del own[unit]


def given_back(
    before: Integers,
    after: Integers,
    wishes: Sequence[Combination],
    costs: NDArray[np.float64],
    units: Integers | None = None,
) -> Integers:
    """Codes with emptied cells restored, important columns first, as long as every requirement holds.

    A cell is restored if its row leaves enough rows behind, or none, and finds enough rows to join, for every
    requirement on its column.

    >>> wishes = [Combination((0,), 2), Combination((1,), 2)]
    >>> codes = np.array([[1, 1], [1, 1], [2, 2], [2, 2]])
    >>> given_back(codes, np.array([[0, 1], [1, 1], [2, 2], [2, 2]]), wishes, np.ones(2)).tolist()
    [[1, 1], [1, 1], [2, 2], [2, 2]]
    """
    found = after.copy()
    # without persons, every row is a person
    whose = np.arange(found.shape[0]).tolist() if units is None else units.tolist()
    counts = [_Occurrences([tuple(row) for row in found[:, wish.columns].tolist()], whose) for wish in wishes]
    cells = np.argwhere((before > 0) & (after == 0))
    cells = cells[np.argsort(-costs[cells[:, 1]], kind="stable")]
    again = True
    while again:
        again = False
        for row, column in cells.tolist():
            if found[row, column]:
                continue
            moves = []
            for wish, count in zip(wishes, counts, strict=True):
                if column not in wish.columns:
                    continue
                old = tuple(found[row, wish.columns].tolist())
                new = tuple(
                    int(before[row, one]) if one == column else int(found[row, one]) for one in wish.columns
                )
                left = count.after(old, whose[row], -1)
                if 0 < left < wish.k or count.after(new, whose[row], 1) < wish.k:
                    break
                moves.append((count, old, new))
            else:
                for count, old, new in moves:
                    count.remove(old, whose[row])
                    count.add(new, whose[row])
                found[row, column] = before[row, column]
                again = True
    return found


_SLACK = 1e-9


def settle(method: Suppress, described: Described) -> tuple[Suppress, tuple[Message, ...]]:
    """Convert a risk limit to the k that satisfies it, if an empty cell is a separate value."""
    quasi = keys_of(method, described)
    _combinations(method, quasi)
    for name, _ in method.importance or ():
        if name not in quasi:
            raise OptionError(
                "importance-names-column-no-quasi-identifier",
                column=name,
                option="importance",
                hint=closest(name, quasi),
            )
    if method.missing_as == "category" and method.alpha != 1:
        raise OptionError("alpha-missing-wildcard", option="alpha")
    if method.risk is None or method.missing_as == "wildcard":
        return method, ()
    return replace(method, k=max(method.size, math.ceil(1 / method.risk))), ()


def keys_of(method: Suppress, described: Described) -> tuple[str, ...]:
    """The columns in which cells are emptied: the quasi-identifiers without the strata, which are kept."""
    found = tuple(name for name in quasi_identifiers(described) if name not in (method.strata or ()))
    if not found:
        raise OptionError("mechanism-strata-names-all-quasi-identifiers", option="strata")
    return found


def _combinations(method: Suppress, quasi: tuple[str, ...]) -> list[Combination]:
    """The requirements, small combinations first and all quasi-identifiers last."""
    found = []
    for text, k in method.combinations or ():
        names = columns_of_combination(text)
        for name in names:
            if name not in quasi:
                raise OptionError(
                    "combinations-names-column-no-quasi-identifier",
                    column=name,
                    option="combinations",
                    hint=closest(name, quasi),
                )
        found.append(Combination(tuple(sorted({quasi.index(name) for name in names})), k))
    if method.size > 1 or not found:
        found.append(Combination(tuple(range(len(quasi))), method.size))
    return sorted(found, key=lambda one: (len(one.columns), one.columns))


def plan(method: Suppress, described: Described) -> Plan:
    """No budget; statement messages about the emptied columns and the meaning of an empty cell."""
    quasi = keys_of(method, described)
    every = quasi_identifiers(described)
    kept = tuple(name for name in described.columns if name not in quasi)
    counted = counted_message(described)
    if method.missing_as == "wildcard":
        conditions = [
            Message.of("emptied-as-wildcards", columns=or_none(quasi), goal=_goal(method, described))
        ]
    else:
        conditions = [Message.of("emptied-as-values", columns=or_none(every))]
        conditions += [
            Message.of("combination-shared", columns=columns_of_combination(text), k=k, counted=counted)
            for text, k in method.combinations or ()
        ]
    if kept:
        conditions.append(Message.of("released-as-they-are", columns=kept))
    return Plan({}, {}, (*conditions, *strata_terms(method)))


def _goal(method: Suppress, described: Described) -> Message:
    """The goal of emptying cells, if an empty one matches any value."""
    if method.risk is not None:
        return Message.of("no-risk-above", risk=float(method.risk))
    unit = described.provenance.unit
    if unit is None:
        return Message.of("compatible-with-rows", k=method.size)
    return Message.of("compatible-with-persons", k=method.size, unit=unit)


def check(method: Suppress, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what `run` would raise."""
    if labels is not None:
        raise OptionError("method-makes-no-clusters", method=method.name)
    most = max(one.k for one in _combinations(method, keys_of(method, described)))
    if most > described.n:
        raise OptionError("k-larger-than-number-records", option="k", most=most, n=described.n)
    refuse_masked_weight(method, described)
    check_strata(method, described, most)
    check_persons(method, described, most, even=False)


def run(
    method: Suppress,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> Rebuilt:
    """Empty cells of quasi-identifiers until every combination of them is frequent, stratum by stratum.

    Guarantee:
        k-anonymity: at least k released rows share every combination of quasi-identifiers, an empty cell counted as a
        value; rows of at least k persons where a unit is declared. With missing_as=wildcard none.

    Reference: docs/suppression.md.
    """
    quasi = keys_of(method, described)
    columns = columns_of(described)
    codes = np.stack([_codes(columns.values[name], described.gaps.get(name)) for name in quasi], axis=1)
    # over the whole table, so that all strata give up the same columns first
    sizes = tuple(np.unique(column[column > 0]).size for column in codes.T)
    strata = strata_of(method, described)
    gone = np.zeros(codes.shape, dtype=np.bool_)
    facts = []
    for number, stratum in enumerate(strata):

        def report(done: int, total: int, number: int = number) -> None:
            progress("emptying cells", number * total + done, len(strata) * total)

        report(0, 1)
        own = _StratumKeys(
            method,
            quasi,
            codes[stratum.rows],
            None if columns.weights is None else columns.weights[stratum.rows],
            sizes,
            None if columns.units is None else places(columns.units[stratum.rows]),
        )
        gone[stratum.rows], bound = own.emptied(report)
        own.check(gone[stratum.rows])
        facts.append(_facts(method, stratum, quasi, gone[stratum.rows], bound))
    return Rebuilt(
        values=dict(columns.values),
        partitions=[],
        aligned=True,
        internal={"values_clipped": dict(columns.clipped), "cells_emptied": facts},
        unchanged=frozenset(described.columns),
        gaps={name: (codes[:, place] == 0) | gone[:, place] for place, name in enumerate(quasi)},
    )


def _codes(values: NDArray[np.float64], gaps: NDArray[np.bool_] | None) -> Integers:
    codes = np.unique(values, return_inverse=True)[1].ravel().astype(np.int64) + 1
    return codes if gaps is None else np.where(gaps, 0, codes)


def _facts(
    method: Suppress,
    stratum: Stratum,
    quasi: tuple[str, ...],
    gone: NDArray[np.bool_],
    bound: float | None,
) -> dict[str, Any]:
    """Facts about a stratum for the internal report; the bound is on the cost, weighted by importance if given."""
    given = dict(method.importance or ())
    cost = float(sum(gone[:, place].sum() * float(given.get(name, 1)) for place, name in enumerate(quasi)))
    return {
        **({"stratum": stratum.name} if stratum.name else {}),
        "rows": int(stratum.rows.size),
        "cells": int(gone.sum()),
        "rows_with_emptied_cells": int(gone.any(axis=1).sum()),
        "by_column": {name: int(gone[:, place].sum()) for place, name in enumerate(quasi)},
        **({"cost": cost} if given else {}),
        **({} if bound is None else {"lower_bound": bound}),
    }


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _StratumKeys:
    """The keys of one stratum, 0 for an empty cell, and the number of values of each in the whole table."""

    method: Suppress
    quasi: tuple[str, ...]
    codes: Integers
    weights: NDArray[np.float64] | None
    sizes: tuple[int, ...]
    units: Integers | None = None

    def check(self, gone: NDArray[np.bool_]) -> None:
        """Count persons before the table is written, since released tables do not show them."""
        if self.units is None:
            return
        codes = np.where(gone, 0, self.codes)
        everything = (Stratum("", np.arange(codes.shape[0])),)
        for wish in _combinations(self.method, self.quasi):
            own = codes[:, wish.columns]
            if self.method.missing_as == "category":
                persons_hold(list(own.T), everything, self.units, wish.k)
            elif self.method.risk is None:
                counts, _ = Wish(wish.k, float(self.method.alpha), units=self.units).frequencies(own)
                _enough(counts, wish.k, Message("in-persons"))

    def emptied(self, report: Any) -> tuple[NDArray[np.bool_], float | None]:
        """The cells to empty, and a lower bound of their cost if there is one."""
        wishes = _combinations(self.method, self.quasi)
        if self.method.missing_as == "wildcard":
            return self._as_wildcard(wishes, report), None
        # important columns and those with few values first
        order = sorted(
            range(len(self.quasi)), key=lambda place: (-self._costs[place], self.sizes[place], place)
        )
        codes, bound = emptied_for_all(self.codes, wishes, self._costs, order, report, self.units)
        return (codes == 0) & (self.codes > 0), bound

    @property
    def _costs(self) -> NDArray[np.float64]:
        given = dict(self.method.importance or ())
        return np.array([float(given.get(name, 1)) for name in self.quasi])

    def _as_wildcard(self, wishes: list[Combination], report: Any) -> NDArray[np.bool_]:
        codes = self.codes.copy()
        risk = None if self.method.risk is None else float(self.method.risk)
        # columns with many categories go first, as is usual, if no importance is given
        costs, sizes = self._costs, self.sizes
        ranked = sorted(range(len(sizes)), key=lambda column: (costs[column], -sizes[column], -column))
        for _ in range(1 + codes.size):
            before = int((codes == 0).sum())
            for wish in wishes:
                own = list(wish.columns)
                order = np.array([own.index(column) for column in ranked if column in own])
                weights = self.weights if risk is not None else None
                aim = Wish(wish.k, float(self.method.alpha), risk, weights, self.units)
                block = codes[:, own]
                block[emptied(block, aim, order, report)] = 0
                codes[:, own] = block
            if len(wishes) == 1 or int((codes == 0).sum()) == before:
                break
        found: NDArray[np.bool_] = (codes == 0) & (self.codes > 0)
        return found


def verify(
    method: Suppress,
    described: Described,
    table: Table,
    linked: Mapping[str, Table],
    check: Callable[..., Check],
) -> None:
    """Measure the written table: every combination, within the strata."""
    quasi = keys_of(method, described)
    strata = [name for name in method.strata or () if name in table.names]
    for wish in _combinations(method, quasi):
        names = [quasi[column] for column in wish.columns]
        if method.missing_as == "wildcard":
            _compatible(method, table, names, strata, wish.k)
        else:
            reached(check, table, [*names, *strata], [], described, k=wish.k)


def _compatible(method: Suppress, table: Table, names: list[str], strata: list[str], k: int) -> None:
    """Count compatible rows; the risk by weights cannot be measured without the weights."""
    if method.risk is not None or (method.strata and not strata):
        return
    # 0 for an empty cell
    codes = np.stack([coded(table, name).codes + 1 for name in names], axis=1)
    places = np.zeros(codes.shape[0], dtype=np.int64)
    if strata:
        own = np.stack([coded(table, name).codes for name in strata], axis=1)
        places = np.unique(own, axis=0, return_inverse=True)[1].ravel()
    for place in range(int(places.max()) + 1):
        counts, _ = Wish(k, float(method.alpha)).frequencies(codes[places == place])
        _enough(counts, k, Message("rows-read-back"))


def _enough(counts: NDArray[np.float64], k: int, what: Message) -> None:
    if counts.min() < k - _SLACK:
        raise ClaimError("row-compatible-instead-so-nothing-kept", counts=counts.min(), what=what, k=k)
