"""Several combinations of columns with a k each: codes and wishes come in, emptied cells and a bound leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.suppression.keys import Integers, Keys
from shoal.mechanisms.suppression.search import fewest, lower_bound
from shoal.partition.groups import row_groups, units_of_groups

Report = Callable[[int, int], None]

# rounds over the wishes: what is emptied for one of them can make another one rare
_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Combination:
    """Quasi-identifiers, by their place, every combination of which is to occur so often."""

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
    """Codes that fulfil all wishes, 0 for an empty cell, and what any way to do so costs at least.

    One wish is done as well as can be. Several are done in turns until all hold, or all columns of them together with
    the largest k, which implies every one: whatever costs less, after needless cells were given back.

    Args:
        order: the columns, important ones and those with few values first.
        units: the person of each row, where a combination has to occur for so many persons. Equal rows of a person
            count as one, and what persons with unequal rows leave open is done afterwards.
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
    """What all wishes together cost at least: each alone is a bound, and those without a common column add up."""
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
    """As `emptied_for_all`; the bound is that of a person's equal rows counted as one, which is below."""
    once = row_groups([units, *codes.T])
    before, own = codes[once.first], units[once.first]
    after, bound = emptied_for_all(before, wishes, costs, order, report)
    together = Combination(
        tuple(sorted({column for wish in wishes for column in wish.columns})), max(wish.k for wish in wishes)
    )
    # what is emptied for one wish can leave another one open; all columns together imply every one
    for wish in (*(list(wishes) * _ROUNDS), together):
        if all(_holds(after, one, own) for one in wishes):
            break
        after = _joined(after, wish, costs, own)
    return given_back(before, after, wishes, costs, own)[once.labels], bound


def _holds(codes: Integers, wish: Combination, units: Integers) -> bool:
    groups = row_groups(codes[:, wish.columns].T)
    return int(units_of_groups(groups.labels, units).min()) >= wish.k


def _joined(codes: Integers, wish: Combination, costs: NDArray[np.float64], units: Integers) -> Integers:
    """Codes in which every combination of a wish occurs for enough persons: rare ones join what costs least.

    A combination with too few persons becomes, with another one, what both have in common. Where the other one has
    persons to spare, only as many of them come along as are needed.
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
        # a guess of the cost: rows of as many persons as have to come along
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
    """How often a combination occurs: for how many rows, or for how many persons."""

    def __init__(self, rows: Sequence[tuple[int, ...]], units: Sequence[int]) -> None:
        self._of: dict[tuple[int, ...], Counter[int]] = {}
        for row, unit in zip(rows, units, strict=True):
            self.add(row, unit)

    def after(self, row: tuple[int, ...], unit: int, change: int) -> int:
        """For how many it occurs once a row of a person has come (1) or gone (-1)."""
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
    """Codes with emptied cells filled again, those of important columns first, as long as every wish holds.

    A cell is filled where its row leaves enough rows behind, or none, and finds enough rows to join, for every
    wish about its column.

    >>> wishes = [Combination((0,), 2), Combination((1,), 2)]
    >>> codes = np.array([[1, 1], [1, 1], [2, 2], [2, 2]])
    >>> given_back(codes, np.array([[0, 1], [1, 1], [2, 2], [2, 2]]), wishes, np.ones(2)).tolist()
    [[1, 1], [1, 1], [2, 2], [2, 2]]
    """
    found = after.copy()
    # without persons, every row is one of its own
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
