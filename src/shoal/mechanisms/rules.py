"""Rules between columns in a synthetic release: what is measured in their place, and rows that satisfy them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.numbers import Bools, Floats, Integers
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns import CodedByRules, Described
    from shoal.noise import Source
    from shoal.privacy import Plan

# which of two columns' positions rules allow in one row
Possible: TypeAlias = "Callable[[Sequence[Integers]], Bools]"

# Positions of a column, and of one of its bins, for which rules are tried. What a rule allows seldom changes more often
# than that along a column; where it does (one column is the bound of the other), its bins are not split.
_TRIED, _OF_A_BIN, _MOST_CHANGES = 257, 16, 4
# Pairs of positions tried at once; rules of columns with more names are left to the exchange of values.
_MOST_TRIED = 1 << 22


def ruled_plan(described: Described, plan: Plan, strata: Sequence[str] = ()) -> Plan:
    """The plan of a method that keeps rules, with statement messages and the cost of a change in one column alone.

    Args:
        strata: columns with the same value in all rows of a stratum; rules are applied inside it.

    Guarantee:
        A change in one column changes the coordinates of its rules at most, so it costs at most what these cost
        together, and never more than everything.
    """
    book = described.rules
    if not book:
        return plan
    costs = dict(plan.per_attribute or {})
    if costs:
        everything = sum(plan.spending.values(), Fraction(0))
        for names in book.groups:
            together = sum((costs[name] for name in names if name in costs), Fraction(0))
            costs |= dict.fromkeys(names, min(together, everything))
    per_attribute = None if plan.per_attribute is None else costs
    return replace(
        plan, conditions=(*plan.conditions, *rule_terms(described, strata)), per_attribute=per_attribute
    )


def rule_terms(described: Described, strata: Sequence[str] = ()) -> tuple[Message, ...]:
    """Statement messages about rules that released rows satisfy, and about columns that are not measured."""
    book = described.rules
    if not book:
        return ()
    found = [Message.of("rows-keep-rules", count=len(book.numbered))]
    if derived := tuple(name for name in book.derived if name not in strata):
        found.append(Message.of("columns-derived", columns=derived))
    if joint := [one for one in book.joint.values() if not set(one.columns) & set(strata)]:
        together = tuple(Message.of("columns-together", columns=one.columns) for one in joint)
        found.append(Message.of("columns-measured-together", groups=together))
    if distances := tuple(name for name in book.coordinates if name not in strata):
        found.append(Message.of("columns-as-distances", columns=distances))
    return tuple(found)


def under_rules(described: Described, column: str) -> dict[str, Any]:
    """What a measured column is under the rules, as `measurements.json` states it."""
    from shoal.columns import CodedByRules

    if not isinstance(described, CodedByRules):
        return {}
    assert described.book is not None
    if column in described.book.joint:
        return {"together": list(described.book.joint[column].columns)}
    if column in described.book.coordinates:
        return {"above": [order.low for order in described.book.coordinates[column][0]]}
    return {}


def rules_withheld(described: Described) -> bool:
    """Whether a rule was read off the records, so that it is not published."""
    from shoal.columns import CodedByRules

    book = described.book if isinstance(described, CodedByRules) else described.rules
    return book is not None and any(rule.from_records for _, rule in book.numbered)


def keeping_rules(described: Described, drawn: dict[str, Floats], source: Source) -> dict[str, Floats]:
    """Rows of all columns that satisfy the rules, from rows in the coordinates that were measured.

    Guarantee:
        A function of drawn rows and fresh chance, so post-processing: docs/proofs/trees.md#rules.
    """
    from shoal.columns import CodedByRules

    if not isinstance(described, CodedByRules):
        return drawn
    random = np.random.Generator(np.random.Philox(int(source.child("rules").words(1)[0])))
    return described.decoded(drawn, random)


def broken_rules(described: Described) -> dict[str, Any]:
    """How many records break each rule: a private fact for the internal report."""
    from shoal.columns import CodedByRules, coded

    here = coded(described)
    if not isinstance(here, CodedByRules):
        return {}
    assert here.book is not None
    found = here.book.broken(here.values())
    return {"rules_broken": {rule.words: found[number] for number, rule in here.book.numbered}}


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """The bins of a column, by the positions of each.

    Attributes:
        edges: bin i contains the positions edges[i] .. edges[i+1] - 1; None for names.
        groups: the bin of each position, for names, in place of edges.
        flag: the index of the missing-value flag of the column, if it has one.
        gap: the last position is that of missing values.
    """

    edges: Integers | None
    groups: NDArray[np.integer[Any]] | None = None
    flag: int | None = None
    gap: bool = False

    @property
    def number(self) -> int:
        if self.groups is not None:
            return int(self.groups.max()) + 1
        assert self.edges is not None
        return self.edges.size - 1

    @property
    def points(self) -> int:
        if self.groups is not None:
            return int(self.groups.size)
        assert self.edges is not None
        return int(self.edges[-1])

    def places(self) -> tuple[Integers, Integers]:
        """Some positions of every bin, and the bin of each; -1 for a missing value, after the last bin."""
        if self.edges is None:
            assert self.groups is not None
            places, bins = np.arange(self.groups.size), self.groups.astype(np.int64)
        else:
            each = [
                np.unique(np.linspace(low, high - 1, min(high - low, _OF_A_BIN)).round())
                for low, high in zip(self.edges[:-1].tolist(), self.edges[1:].tolist(), strict=True)
            ]
            places = np.concatenate(each).astype(np.int64)
            bins = np.repeat(np.arange(len(each)), [own.size for own in each])
        if self.gap:
            places = np.where(places == self.points - 1, -1, places)
        if self.flag is not None:
            places, bins = np.append(places, -1), np.append(bins, self.number)
        return places, bins

    def some(self) -> Integers:
        """Positions from the first to the last, and that of a missing value."""
        found = np.arange(self.points) if self.edges is None else _spread(self.points)
        return found if self.flag is None else np.append(found, -1)


def _spread(points: int) -> Integers:
    return np.unique(np.linspace(0, points - 1, min(points, _TRIED)).round()).astype(np.int64)


def changes_of_rules(described: Described, bins: Sequence[Bins]) -> dict[int, Integers]:
    """By column, the positions at which what rules allow changes, where these are few."""
    found: dict[int, Integers] = {}
    for numbers, possible in _bound(described, bins):
        for own, other in ((0, 1), (1, 0)):
            if bins[numbers[own]].edges is None:
                continue
            allowed = partial(_beside, possible, bins[numbers[other]].some(), own)
            cuts = _changes(allowed, bins[numbers[own]].points)
            if cuts.size:
                before = found.get(numbers[own], cuts)
                found[numbers[own]] = np.unique(np.concatenate((before, cuts)))
    return {number: cuts for number, cuts in found.items() if cuts.size <= _MOST_CHANGES}


def _beside(possible: Possible, others: Integers, own: int, places: Integers) -> Bools:
    """For each position of a column, which positions of the other one are possible."""
    both = np.meshgrid(places, others, indexing="ij")
    return possible(both if own == 0 else both[::-1])


def _changes(allowed: Callable[[Integers], Bools], points: int) -> Integers:
    tried = _spread(points)
    seen = allowed(tried)
    where = np.flatnonzero((seen[1:] != seen[:-1]).any(axis=1))
    low, high, left = tried[where], tried[where + 1], seen[where]
    if where.size > _MOST_CHANGES:
        return high[:0]
    while (high - low > 1).any():
        middle = (low + high) // 2
        same = (allowed(middle) == left).all(axis=1)
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return high


def possible_cells(described: Described, bins: Sequence[Bins]) -> dict[tuple[int, int], Bools]:
    """By pair of columns or their missing-value flags, the cells of bins that rules allow, where not all are.

    Guarantee:
        No record is in a cell that is not allowed, so its count is 0 in every table: docs/proofs/trees.md#rules.
    """
    found: dict[tuple[int, int], Bools] = {}
    for numbers, possible in _bound(described, bins):
        (first, one), (second, other) = (bins[number].places() for number in numbers)
        sizes = [bins[number].number for number in numbers]
        cells = np.zeros((sizes[0] + 1, sizes[1] + 1), dtype=np.bool_)
        fits = possible(np.meshgrid(first, second, indexing="ij"))
        np.logical_or.at(cells, (one[:, None], other[None]), fits)
        # present ones by bin; a flag tells present from missing
        views: list[list[tuple[int, list[slice]]]] = []
        for number, size in zip(numbers, sizes, strict=True):
            flag = bins[number].flag
            views.append([(number, [slice(i, i + 1) for i in range(size)])])
            if flag is not None:
                views[-1].append((flag, [slice(size), slice(size, size + 1)]))
        for a, rows in views[0]:
            for b, columns in views[1]:
                own = np.array([[cells[row, column].any() for column in columns] for row in rows])
                # a bin that holds no rows at all, or only rows without the other value, says nothing here
                own[~own.any(axis=1)] = True
                own[:, ~own.any(axis=0)] = True
                if not own.all():
                    key, own = ((a, b), own) if a < b else ((b, a), own.T)
                    found[key] = found[key] & own if key in found else own
    return found


def _bound(described: Described, bins: Sequence[Bins]) -> Iterator[tuple[tuple[int, int], Possible]]:
    """The pairs of columns that rules bind, if there are not too many names to try."""
    from shoal.columns import CodedByRules

    if not isinstance(described, CodedByRules):
        return
    for pair in described.bound_pairs:
        first, second = (described.columns.index(name) for name in pair)
        tried = [max(bins[number].places()[0].size, bins[number].some().size) for number in (first, second)]
        if min(bins[first].points, bins[second].points) > 1 and math.prod(tried) <= _MOST_TRIED:
            yield (first, second), partial(_possible, described, pair)


def _possible(described: CodedByRules, pair: tuple[str, str], places: Sequence[Integers]) -> Bools:
    shape = places[0].shape
    return described.possible(pair, [own.ravel() for own in places]).reshape(shape)
