"""Several combinations of columns with a k each: codes and wishes come in, emptied cells and a bound leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.suppression.keys import Integers, Keys
from shoal.mechanisms.suppression.search import fewest, lower_bound

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
) -> tuple[Integers, float]:
    """Codes that fulfil all wishes, 0 for an empty cell, and what any way to do so costs at least.

    One wish is done as well as can be. Several are done in turns until all hold, or all columns of them together with
    the largest k, which implies every one: whatever costs less, after needless cells were given back.

    Args:
        order: the columns, important ones and those with few values first.
    """
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


def given_back(
    before: Integers, after: Integers, wishes: Sequence[Combination], costs: NDArray[np.float64]
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
    counts = [Counter(map(tuple, found[:, wish.columns].tolist())) for wish in wishes]
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
                left = count[old] - 1
                if 0 < left < wish.k or count[new] + 1 < wish.k:
                    break
                moves.append((count, old, new))
            else:
                for count, old, new in moves:
                    count[old] -= 1
                    count[new] += 1
                found[row, column] = before[row, column]
                again = True
    return found
