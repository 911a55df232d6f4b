"""Local suppression as a mechanism: quasi-identifiers come in, the same with a few cells emptied leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns.describe import Described
from shoal.display import internal
from shoal.errors import ClaimError, OptionError, closest
from shoal.io import Table
from shoal.mechanisms.base import Rebuilt
from shoal.mechanisms.forms import columns_of_combination
from shoal.mechanisms.kanonymity.columns import columns_of, or_none, quasi_identifiers, refuse_masked_weight
from shoal.mechanisms.kanonymity.verify import persons_hold, reached
from shoal.mechanisms.strata import (
    Stratum,
    check_persons,
    check_strata,
    counted_message,
    strata_of,
    strata_terms,
)
from shoal.mechanisms.suppression.keys import Integers
from shoal.mechanisms.suppression.method import Suppress
from shoal.mechanisms.suppression.several import Combination, emptied_for_all
from shoal.mechanisms.suppression.wildcard import Wish, emptied
from shoal.partition.groups import places
from shoal.partition.patterns import coded
from shoal.privacy import Accountant
from shoal.privacy.budget import Plan
from shoal.progress import Progress
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.evaluation.measured import Check

_SLACK = 1e-9


def settle(method: Suppress, described: Described) -> tuple[Suppress, tuple[Message, ...]]:
    """A risk as the k that keeps it, where an empty cell is a value of its own."""
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
    """The columns that cells are emptied in: the quasi-identifiers but the strata, which stay."""
    found = tuple(name for name in quasi_identifiers(described) if name not in (method.strata or ()))
    if not found:
        raise OptionError("mechanism-strata-names-all-quasi-identifiers", option="strata")
    return found


def _combinations(method: Suppress, quasi: tuple[str, ...]) -> list[Combination]:
    """What has to occur how often, small combinations first and all quasi-identifiers last."""
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
    """No budget; what is emptied, and how an empty cell counts."""
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
    """What cells are emptied for, where an empty one fits any value."""
    if method.risk is not None:
        return Message.of("no-risk-above", risk=float(method.risk))
    unit = described.circumstances.unit
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
    # of the whole table, so that all strata give up the same columns first
    sizes = tuple(np.unique(column[column > 0]).size for column in codes.T)
    strata = strata_of(method, described)
    gone = np.zeros(codes.shape, dtype=np.bool_)
    facts = []
    for number, stratum in enumerate(strata):

        def report(done: int, total: int, number: int = number) -> None:
            progress("emptying cells", number * total + done, len(strata) * total)

        report(0, 1)
        own = _Work(
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
    """What the internal report says about a stratum; the bound is about the cost, by importance where some is given."""
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
class _Work:
    """The keys of one stratum, 0 for an empty cell, and how many values each has in the whole table."""

    method: Suppress
    quasi: tuple[str, ...]
    codes: Integers
    weights: NDArray[np.float64] | None
    sizes: tuple[int, ...]
    units: Integers | None = None

    def check(self, gone: NDArray[np.bool_]) -> None:
        """Count persons, who are in no released table, before one is written."""
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
        """Which cells to empty, and a lower bound of their cost where there is one."""
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
        # many categories go first, as offices have it, where no importance is given
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
    """Measure what was written: every combination, with the strata that are there."""
    quasi = keys_of(method, described)
    strata = [name for name in method.strata or () if name in table.names]
    for wish in _combinations(method, quasi):
        names = [quasi[column] for column in wish.columns]
        if method.missing_as == "wildcard":
            _compatible(method, table, names, strata, wish.k)
        else:
            reached(check, table, [*names, *strata], [], described, k=wish.k)


def _compatible(method: Suppress, table: Table, names: list[str], strata: list[str], k: int) -> None:
    """Count compatible rows; the risk by weights cannot be measured without them."""
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
