"""Probabilistic k-anonymity: swap sensitive values among the records of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns import Described
from shoal.errors import OptionError, closest
from shoal.mechanisms.kanonymity import centroids
from shoal.mechanisms.kanonymity.centroids import internal_facts
from shoal.mechanisms.kanonymity.columns import (
    Columns,
    check_unit_columns,
    classes_of_units,
    columns_of,
    confidential_columns,
    diversity_term,
    even_term,
    groups_hold,
    groups_of_rows,
    named,
    or_none,
    rows_of_units,
    survey_weights,
    table_of_units,
    weight_name,
    with_role,
)
from shoal.mechanisms.kanonymity.grouping_algorithms import (
    any_of,
    diversify,
    lacks_persons,
    lacks_values,
    merge_until,
    value_numbers,
)
from shoal.mechanisms.kanonymity.methods import SwapMdav, SwapMethod, SwapRanking
from shoal.mechanisms.kanonymity.swap_algorithms import Refine, Swap, swap_mdav, swap_ranking
from shoal.mechanisms.method import Rebuilt
from shoal.mechanisms.strata import Stratum, counted_message, strata_of, strata_terms, units_of
from shoal.noise import Source
from shoal.partition import Partition, check_k
from shoal.privacy import Accountant, Plan
from shoal.progress import Progress
from shoal.text import Message, listed


def settle(
    method: SwapRanking | SwapMdav, described: Described
) -> tuple[SwapRanking | SwapMdav, tuple[Message, ...]]:
    """Minimum group sizes of all swapped columns, the smallest of them as the k of the claim."""
    names = confidential_columns(method, described)
    given = dict(method.sizes or ())
    for name in given:
        if name not in names:
            raise OptionError(
                "sizes-names-column-not-swapped", column=name, option="sizes", hint=closest(name, names)
            )
    if not given:
        return method, _weight_notes(method, described)
    sizes = tuple((name, given.get(name, method.size)) for name in names)
    settled = replace(method, sizes=sizes, k=min(size for _, size in sizes))
    return settled, _weight_notes(settled, described)


def _weight_notes(method: SwapMethod, described: Described) -> tuple[Message, ...]:
    """Notes for the custodian about weighted totals."""
    weight = weight_name(described)
    if weight is None or _by_weight(method, described) is not None:
        return ()
    return (
        Message.of(
            "weighted-totals-move", weight=weight, least=_largest(method), counted=counted_message(described)
        ),
    )


def check(method: SwapMethod, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what a run would raise."""
    names = confidential_columns(method, described)
    sizes = _checked_sizes(method, names, described.n)
    classes = _classes(method, described)
    # attributes of units are swapped unit by unit, however many rows one has
    by_row = [
        size for name, size in zip(names, sizes, strict=True) if name not in (method.unit_columns or ())
    ]
    least = max(by_row or sizes)
    centroids.check_groups(method, described, plan, labels, even=bool(by_row), least=least, classes=classes)
    check_unit_columns(method, described, classes, max(sizes))


def plan(method: SwapRanking | SwapMdav, described: Described) -> Plan:
    """No budget; statement messages about the intruder and the swapped columns."""
    found = _conditions(method, described)
    if isinstance(method, SwapRanking):
        found.append(Message("neighbours-in-rank"))
    return Plan({}, {}, tuple(found))


def _conditions(method: SwapMethod, described: Described) -> list[Message]:
    found = [Message.of("swapped-inside-groups", columns=confidential_columns(method, described))]
    if method.sizes:
        each = tuple(Message.of("one-in", column=name, size=size) for name, size in method.sizes)
        found.append(Message.of("largest-probabilities", each=each))
    if method.l is not None:
        found.append(diversity_term("group-has-swapped-values", method, described))
    if described.provenance.unit is not None:
        found.append(even_term("k" if method.sizes else method.size))
    if method.unit_columns is not None:
        of_units = tuple(
            name for name in confidential_columns(method, described) if name in method.unit_columns
        )
        unit = described.provenance.unit or ""
        found.append(Message.of("swapped-between-units", columns=or_none(of_units), unit=unit))
    weight = weight_name(described)
    if weight is not None:
        # which of the two applied is a fact about the records, and a note for the custodian
        enough = "enough-rows" if described.provenance.unit is None else "enough-persons"
        in_each = "-in-each-stratum" if method.strata else ""
        least = Message.of(f"{enough}{in_each}", least=_largest(method))
        found.append(Message.of("swapped-within-weight", weight=weight, enough=least))
    return [
        *found,
        *strata_terms(method),
        _intruder(method.intruder, described),
        Message("permutations-alike"),
    ]


def _intruder(kind: str, described: Described) -> Message:
    if kind == "informed":
        return Message("intruder-knows-all-but-one")
    known = tuple(name for name in described.columns if name not in with_role(described, "confidential"))
    return Message.of("intruder-knows", columns=or_none(known))


def run(
    method: SwapRanking | SwapMdav,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> Rebuilt:
    """Swap sensitive columns inside groups, which each method makes in its own way."""
    source = account.free("values swapped inside groups")
    if isinstance(method, SwapRanking):
        return _in_rank(method, described, source, progress)
    return _among_close(method, described, source, progress)


def _in_rank(method: SwapRanking, described: Described, source: Source, progress: Progress) -> Rebuilt:
    """Swap each sensitive column among its neighbours in rank.

    Guarantee:
        Probabilistic k-anonymity, see `shoal.mechanisms.kanonymity.swap_algorithms.swap_ranking`.

    Reference: the thesis, section 3.3.3 (IR-SWAP).
    """
    # column by column, a table may have nothing to swap
    names = with_role(described, "confidential")
    columns = columns_of(described, method.normalise)
    cost: dict[str, Any] = {}

    def swapped(own: Columns, number: int, chosen: Sequence[str], source: Source) -> Swap:
        made = swap_ranking(
            [own.ranks(name) for name in chosen],
            _checked_sizes(method, tuple(chosen), own.n),
            remainder=method.remainder,
            refine=_refine(method, own, chosen, cost),
            # classes must not share a random stream
            source=source.child("class", number),
            progress=lambda done, total: progress("swapping", done, total),
        )
        return _numbered(made, [names.index(name) for name in chosen])

    made, of_units = _passes(method, described, columns, names, swapped, source)
    return _rebuilt(method, columns, names, made, cost, shown=True, of_units=of_units)


def _among_close(method: SwapMdav, described: Described, source: Source, progress: Progress) -> Rebuilt:
    """Swap sensitive columns among records that are close in what an intruder knows.

    Guarantee:
        Probabilistic k-anonymity, see `shoal.mechanisms.kanonymity.swap_algorithms.swap_mdav`.

    Reference: the thesis, sections 3.3.1 and 3.3.2 (MDAV-SWAP).
    """
    names = confidential_columns(method, described)
    columns = columns_of(described, method.normalise)
    # the last attribute is for a table in which an intruder knows nothing else
    every = [*described.columns, ""]
    cost: dict[str, Any] = {}

    def swapped(own: Columns, number: int, chosen: Sequence[str], source: Source) -> Swap:
        return swap_mdav(
            [*(own.coordinates(name) for name in described.columns), np.zeros(own.n)],
            _checked_sizes(method, tuple(chosen), own.n),
            [every.index(name) for name in chosen],
            intruder=method.intruder,
            cluster=lambda known, owners, size: own.clusters(
                [every[j] for j in known if every[j]],
                size,
                {every[j]: order for j, order in owners.items()},
            ),
            refine=_refine(method, own, every, cost),
            source=source,
            progress=lambda done, total: progress("swapping", done, total),
        )

    made, of_units = _passes(method, described, columns, names, swapped, source)
    # groups made on previously swapped values are not facts about the records
    shown = method.intruder == "uninformed" and not of_units
    return _rebuilt(method, columns, every, made, cost, shown=shown, of_units=of_units)


# swaps some columns of the records of one class
Swapped = Callable[[Columns, int, Sequence[str], Source], Swap]


def _numbered(made: Swap, numbers: Sequence[int]) -> Swap:
    """A swap of some columns, by their numbers among all of them."""
    return Swap(
        {numbers[j]: order for j, order in made.owners.items()},
        made.groups,
        [tuple(numbers[j] for j in moved) for moved in made.swaps],
    )


def _passes(
    method: SwapMethod,
    described: Described,
    columns: Columns,
    names: Sequence[str],
    swapped: Swapped,
    source: Source,
) -> tuple[Swap, int]:
    """A swap of the table: first the attributes of units, unit by unit, then all others, row by row.

    Returns:
        The swap, and how many of its swaps are of units; their groups have at least k units.
    """
    classes = _classes(method, described)
    own = [name for name in names if name in (method.unit_columns or ())]
    if not own or columns.units is None:
        return _by_class(classes, columns, lambda part, number: swapped(part, number, names, source)), 0
    table, first, units = table_of_units(columns)
    of_units = classes_of_units(classes, first, units)
    stream = source.child("units")
    made = _by_class(of_units, table, lambda part, number: swapped(part, number, own, stream))
    every = list(described.columns) if isinstance(method, SwapMdav) else list(names)
    for group, moved in zip(made.groups, made.swaps, strict=True):
        groups_hold(group, np.arange(first.size), _most(method, [every[j] for j in moved]), even=True)
    owners = {j: rows_of_units(order, first, units) for j, order in made.owners.items()}
    groups = [groups_of_rows(group, units) for group in made.groups]
    rest = [name for name in names if name not in own]
    if not rest:
        return Swap(owners, groups, made.swaps), len(made.swaps)
    values = dict(columns.values)
    for j, order in owners.items():
        values[every[j]] = values[every[j]][order]
    after = replace(columns, values=values)
    more = _by_class(classes, after, lambda part, number: swapped(part, number, rest, source))
    both = Swap({**owners, **more.owners}, [*groups, *more.groups], [*made.swaps, *more.swaps])
    return both, len(made.swaps)


def _classes(method: SwapMethod, described: Described) -> tuple[Stratum, ...]:
    """The records among which values are swapped: of a stratum and, where possible, of equal survey weight."""
    return _by_weight(method, described) or strata_of(method, described)


def _by_weight(method: SwapMethod, described: Described) -> tuple[Stratum, ...] | None:
    """The records of each stratum and weight; None without weights, or if some are fewer than a group needs."""
    weights = survey_weights(described)
    # public declarations alone come without rows
    if weights is None or not weights.size:
        return None
    units = units_of(described)
    found: list[Stratum] = []
    for stratum in strata_of(method, described):
        _, place, counts = np.unique(weights[stratum.rows], return_inverse=True, return_counts=True)
        if counts.min() < _largest(method):
            return None
        classes = Partition(place.ravel().astype(np.int64), counts)
        if (
            units is not None
            and lacks_persons(units[stratum.rows], _largest(method), even=True)(classes).any()
        ):
            return None
        order = np.argsort(place.ravel(), kind="stable")
        found += [Stratum(stratum.name, stratum.rows[own]) for own in np.split(order, np.cumsum(counts)[:-1])]
    return tuple(found)


def _largest(method: SwapMethod) -> int:
    """The largest minimum group size of any column."""
    return max((size for _, size in method.sizes or ()), default=method.size)


def _by_class(classes: Sequence[Stratum], columns: Columns, swapped: Callable[[Columns, int], Swap]) -> Swap:
    """A swap of every class, as one swap of the table."""
    if len(classes) == 1:
        return swapped(columns, 0)
    made = [swapped(columns.rows(one.rows), number) for number, one in enumerate(classes)]
    owners = {j: np.arange(columns.n, dtype=np.int64) for j in made[0].owners}
    for one, own in zip(classes, made, strict=True):
        for j, order in own.owners.items():
            owners[j][one.rows] = one.rows[order]
    groups = [
        centroids.joined(classes, [own.groups[turn] for own in made], columns.n)
        for turn in range(len(made[0].groups))
    ]
    return Swap(owners, groups, made[0].swaps)


def _checked_sizes(method: SwapMethod, names: tuple[str, ...], n: int) -> list[int]:
    own = dict(method.sizes or ())
    return [check_k(own.get(name, method.size), n) for name in names]


def _refine(
    method: SwapMethod, columns: Columns, names: Sequence[str], cost: dict[str, Any]
) -> Refine | None:
    """Merges groups until they are diverse in the swapped values, if requested, and until no person has more than
    one row in k, if persons have several."""
    units = columns.units
    if units is not None:
        return _refine_for_persons(method, columns, names, units, cost)
    if method.l is None:
        return None
    least = method.l

    def refine(partition: Partition, points: NDArray[np.float64], moved: tuple[int, ...]) -> Partition:
        own = [names[j] for j in moved]
        merged = diversify(partition, points, [columns.values[name] for name in own], least)
        cost[f"l_diversity of {listed(own)}"] = merged.cost
        return merged.partition

    return refine


def _most(method: SwapMethod, names: Sequence[str]) -> int:
    """The largest minimum group size of some columns that are swapped together."""
    sizes: dict[str, int] = dict(method.sizes or ())
    return max(sizes.get(name, method.size) for name in names)


def _refine_for_persons(
    method: SwapMethod, columns: Columns, names: Sequence[str], units: NDArray[np.int64], cost: dict[str, Any]
) -> Refine:

    def refine(partition: Partition, points: NDArray[np.float64], moved: tuple[int, ...]) -> Partition:
        own = [names[j] for j in moved]
        conditions = [lacks_persons(units, _most(method, own), even=True)]
        if method.l is not None:
            coded = [value_numbers(columns.values[name], columns.n) for name in own]
            conditions.append(lacks_values(coded, method.l, units))
        merged = merge_until(partition, points, any_of(conditions))
        cost[f"persons of {listed(own)}"] = merged.cost
        return merged.partition

    return refine


def _rebuilt(
    method: SwapMethod,
    columns: Columns,
    names: Sequence[str],
    made: Swap,
    cost: dict[str, Any],
    *,
    shown: bool,
    of_units: int,
) -> Rebuilt:
    values = dict(columns.values)
    for j, owners in made.owners.items():
        values[names[j]] = columns.values[names[j]][owners]
    groups = [
        named(group, [names[j] for j in moved]) for group, moved in zip(made.groups, made.swaps, strict=True)
    ]
    for group in groups[of_units:]:
        groups_hold(group, columns.units, _most(method, group.columns), even=True)
    return Rebuilt(
        values=values,
        partitions=groups if shown else [],
        aligned=True,
        internal=internal_facts(columns, groups, cost),
        unchanged=frozenset(values),
    )
