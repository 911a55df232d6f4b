"""The fewest blanked cells: keys and k come in, a mask per row and a lower bound of the cost leave.

Small tables, and tables whose rare rows are few, are solved as one program to the end. Larger ones are split into
blocks of rare rows that agree in some columns, each block as a program of its own; what is left open is done step by
step, and then parts of it are done anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from shoal.display import internal
from shoal.mechanisms.suppression import program as programs
from shoal.mechanisms.suppression.greedy import Assignment, finished, lend
from shoal.mechanisms.suppression.keys import Integers, Keys
from shoal.mechanisms.suppression.prices import priced_bound
from shoal.mechanisms.suppression.program import Program
from shoal.mechanisms.suppression.refine import refined
from shoal.mechanisms.suppression.whole import best_masks, pairs_of

# different rare rows of a block: the solver is quick with so many
_BLOCK = 700
# released rows that a rare row may become in a block
_OFFERS = 12
# nodes of the solver's search for a program that is solved to the end
_NODES = 2000
# what counts as a part of a record, and as a released row that is open for the most
_SOME, _MOSTLY = 0.05, 0.4
_SLACK = 1e-9
# a cost that is reached is rarely above the simplest bound by more
_NEARLY = 1.15


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """How to blank.

    Attributes:
        masks: of every row, what is empty from the start included.
        cost: of what was blanked.
        bound: what no way to reach k costs less than.
    """

    masks: Integers
    cost: float
    bound: float


def fewest(
    keys: Keys,
    k: int,
    progress: Callable[[int, int], None] | None = None,
) -> Found:
    """Masks such that every released row, a blank counted as a value, occurs at least k times, at least cost.

    Args:
        keys: at least k rows.

    Cost:
        2^m sorts for m columns, a linear program for every block of rare rows, and small programs for parts of what was
        found, fewer of them for larger tables.

    >>> keys = Keys(np.array([[1, 1], [1, 1], [1, 2], [2, 2]]), np.ones(2))
    >>> found = fewest(keys, 2)
    >>> keys.cells(found.masks).astype(int).tolist(), found.cost, found.bound
    ([[0, 0], [0, 0], [1, 0], [1, 0]], 2.0, 2.0)
    """
    plain = Assignment.start(keys, k)
    if not plain.rare.size:
        return Found(plain.masks, 0.0, 0.0)
    rare = plain.rare
    whole = programs.program_of(keys, k, rare)
    # a bound over all that rows can become, where it is listed
    bound = programs.share_bound(whole) if keys.listed else 0.0
    guided = Assignment.start(keys, k)
    if keys.listed and whole.pairs <= programs.FEW_PAIRS:
        bound = max(bound, _carried_out(guided, whole, exact=True))
    else:
        blocks = list(_blocks(keys, rare))
        for number, block in enumerate(blocks):
            if progress is not None:
                progress(number, len(blocks))
            part = whole if len(blocks) == 1 else whole.of_rows(keys, block)
            _carried_out(guided, programs.promising(part, _OFFERS), exact=False)
    best = min((finished(guided), finished(plain)), key=lambda masks: _cost(keys, masks))
    if programs.rounded_up(bound, keys.costs) >= _cost(keys, best) - _SLACK:
        return Found(best, _cost(keys, best), programs.rounded_up(bound, keys.costs))
    pairs = pairs_of(keys, k)
    if pairs is not None:
        better, found = best_masks(keys, k, pairs, _cost(keys, best))
        best = best if better is None else better
        bound = max(bound, found)
    elif keys.listed:
        better_still = Assignment(keys, k, best)
        refined(better_still, progress)
        best = better_still.masks
    bound = max(bound, _bound(keys, whole, rare, _cost(keys, best)))
    return Found(best, _cost(keys, best), programs.rounded_up(bound, keys.costs))


def lower_bound(keys: Keys, k: int) -> float:
    """What no way to reach k costs less than, without looking for one."""
    rare = Assignment.start(keys, k).rare
    if not rare.size:
        return 0.0
    program = programs.program_of(keys, k, rare)
    # the goal of the prices is a cost that can be reached, or nearly so
    known = _NEARLY * programs.share_bound(program)
    return programs.rounded_up(_bound(keys, program, rare, known), keys.costs)


def _cost(keys: Keys, masks: Integers) -> float:
    return float((keys.cells(masks) & (keys.codes > 0)).sum(axis=0) @ keys.costs)


def _bound(keys: Keys, program: Program, rare: Integers, known: float) -> float:
    if not keys.listed:
        # every rare row loses one cell at least
        return float(keys.costs.min()) * rare.size
    return max(programs.share_bound(program), priced_bound(program, known))


def _blocks(keys: Keys, rare: Integers) -> Iterator[Integers]:
    """Rare rows in blocks of few different ones: rows of a block agree in the columns that it was split by."""
    if np.unique(keys.whole[rare]).size <= _BLOCK:
        yield rare
        return
    found = [np.unique(keys.codes[rare, column]).size for column in range(keys.m)]
    several = [column for column in range(keys.m) if found[column] > 1]
    column = min(several, key=lambda column: (found[column], column))
    for code in np.unique(keys.codes[rare, column]):
        yield from _blocks(keys, rare[keys.codes[rare, column] == code])


def _carried_out(found: Assignment, program: Program, *, exact: bool) -> float:
    """Blank as the solution of a program says, as far as helpers are there; leaves the bound of the program.

    A program that is not solved to the end opens released rows in part: those that are open for the most come first,
    and what they leave is left to others.
    """
    if not program.pairs:
        return 0.0
    # whole costs: nearer to the optimum than one cell is at it
    gap = 0.9 / max(1.0, programs.share_bound(program))
    best = programs.solved(program, whole=exact, nodes=_NODES, gap=gap)
    if best is None:
        return 0.0
    members: dict[int, list[int]] = {}
    for row in found.rare.tolist():
        members.setdefault(int(found.keys.whole[row]), []).append(row)
    owner = found.keys.whole[program.rows]
    pairs_of: dict[int, list[int]] = {}
    for pair in np.flatnonzero(best.amounts > _SOME).tolist():
        pairs_of.setdefault(int(program.name[pair]), []).append(pair)
    for name in sorted(pairs_of, key=lambda name: (-best.opened[name].round(6), name)):
        key, mask = int(program.names[name]), int(program.masks[name])
        rows: list[int] = []
        for pair in pairs_of[name]:
            own = members[int(owner[program.row[pair]])]
            rows += own[: round(best.amounts[pair])] if exact else own
        needed = found.k - len(rows) - len(found.groups.get(key, ()))
        if not rows or (needed > 0 and best.opened[name] < _MOSTLY):
            continue
        if needed > 0 and not lend(found, mask, np.array([key]), np.array([needed]))[0]:
            continue
        for row in rows:
            members[int(found.keys.whole[row])].remove(row)
            found.move(row, mask, key)
    found.rare = np.array(sorted(row for own in members.values() for row in own), dtype=np.int64)
    return best.bound if exact else 0.0
