"""A way to blank comes in, a better one leaves: a part of the rows at a time is blanked anew, as well as can be.

The rest of the table stays as it is. Rows of the part may join any released row that is there already, open new ones
together, and borrow rows that others can spare: a small program, which the solver does to the end or nearly so. What
costs less is taken. Parts are blocks of rows that agree in some columns, by other columns in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from shoal.mechanisms.suppression import program as programs
from shoal.mechanisms.suppression.greedy import Assignment, lend
from shoal.mechanisms.suppression.keys import Integers
from shoal.mechanisms.suppression.program import Program

# different rows of a part, and released rows that each of them may become
_PART, _OFFERS = 40, 14
_PASSES, _FEW = 4, 10
# nodes of the solver's search for a part
_NODES = 40
# different rows that are blanked anew, all parts together, for a table of so many rows and such a k; fewer for larger
# tables and for a larger k, which the solver takes longer with
_MOST_ROWS, _FOR_ROWS, _FOR_K = 2_000, 8_000, 3


def refined(found: Assignment, tell: Callable[[int, int], None] | None = None) -> None:
    """Blank less, part by part, until nothing is found or enough was tried.

    Cost: a few thousand rows are tried, whatever the table; about a millisecond each.
    """
    left = most = _MOST_ROWS * _FOR_ROWS * _FOR_K // (max(found.keys.n, _FOR_ROWS) * max(found.k, _FOR_K))
    if most < _FEW * _PART:
        # a few parts of a large table make no difference
        return
    groups = _Groups(found)
    for number in range(_PASSES):
        better = False
        for part in list(_parts(found, number)):
            if left <= 0:
                return
            left -= int(np.unique(found.keys.whole[part]).size)
            better |= _blanked_anew(groups, np.array(part, dtype=np.int64))
            if tell is not None:
                tell(most - max(left, 0), most)
        if not better:
            return


class _Groups:
    """The released rows of an assignment side by side, kept up to date while rows move."""

    def __init__(self, found: Assignment) -> None:
        self.found = found
        self.names = np.array(sorted(found.groups), dtype=np.int64)
        self.digits = found.digits(self.names)
        self.sizes = np.array([len(found.groups[name]) for name in self.names.tolist()], dtype=np.int64)
        self._place = {name: place for place, name in enumerate(self.names.tolist())}

    def renew(self, names: set[int]) -> None:
        """Look at some released rows again."""
        new = np.array(sorted(name for name in names if name not in self._place), dtype=np.int64)
        new = new[[name in self.found.groups for name in new.tolist()]]
        if new.size:
            self._place |= {name: self.names.size + place for place, name in enumerate(new.tolist())}
            self.names = np.concatenate([self.names, new])
            self.digits = np.concatenate([self.digits, self.found.digits(new)])
            self.sizes = np.concatenate([self.sizes, np.zeros(new.size, dtype=np.int64)])
        for name in names & self._place.keys():
            self.sizes[self._place[name]] = len(self.found.groups.get(name, ()))


def _parts(found: Assignment, turn: int) -> Iterator[list[int]]:
    """Groups with a blank, in parts that are alike: one that is in no part yet, and those that differ least from it.

    From turn to turn other groups come first.
    """
    keys = found.keys
    blanked = np.flatnonzero(found.masks != keys.gaps)
    names = np.unique(found.released[blanked])
    if not names.size:
        return
    digits = found.digits(names)
    members = [sorted(found.groups[name]) for name in names.tolist()]
    different = np.array([np.unique(keys.whole[rows]).size for rows in members])
    cost = np.array([sum(found.cost_of(row, int(found.masks[row])) for row in rows) for rows in members])
    order = np.lexsort((names, -cost if turn % 2 == 0 else cost))
    done = np.zeros(names.size, dtype=np.bool_)
    for first in order.tolist():
        if done[first]:
            continue
        own = digits[first]
        apart = ((digits != own) & (digits > 0) & (own > 0)) @ keys.costs
        loose = ((digits == 0) != (own == 0)) @ keys.costs
        # those that are in a part already last, among equals
        near = np.lexsort((names, done, loose, apart))
        taken = near[np.cumsum(different[near]) <= max(_PART, different[first])]
        done[taken] = True
        done[first] = True
        yield [row for place in taken.tolist() for row in members[place]]


def _blanked_anew(groups: _Groups, rows: Integers) -> bool:
    """Blank a part as well as can be; says whether that is better than it was."""
    found, keys = groups.found, groups.found.keys
    free = set(np.unique(found.released[rows]).tolist())
    # an earlier part may have borrowed some of them
    rows = np.array(sorted(row for name in free for row in found.groups[name]), dtype=np.int64)
    program = _program(groups, rows, free)
    before = sum(found.cost_of(row, int(found.masks[row])) for row in rows.tolist())
    gap = 0.9 / max(1.0, before)
    best = programs.solved(program, whole=True, nodes=_NODES, gap=gap)
    if best is None or best.cost >= before - 1e-6:
        return False
    amounts = np.rint(best.amounts).astype(np.int64)
    if (np.bincount(program.row, amounts, minlength=program.rows.size) != program.counts).any():
        return False
    done: list[tuple[int, int, int]] = []
    own: dict[int, list[int]] = {}
    for row in rows.tolist():
        own.setdefault(int(keys.whole[row]), []).append(row)
    chosen = np.flatnonzero(amounts)
    for pair in chosen.tolist():
        name = int(program.name[pair])
        same = own[int(keys.whole[program.rows[program.row[pair]]])]
        for row in [same.pop() for _ in range(int(amounts[pair]))]:
            done.append((row, int(found.masks[row]), int(found.released[row])))
            found.move(row, int(program.masks[name]) | int(keys.gaps[row]), int(program.names[name]))
    for name in np.unique(program.name[chosen]).tolist():
        key, mask = int(program.names[name]), int(program.masks[name])
        needed = found.k - len(found.groups[key])
        if needed > 0:
            borrowed = _borrowed(found, mask, key, needed)
            if borrowed is None:
                _undone(found, done)
                return False
            done += borrowed
    groups.renew({name for _, _, name in done} | {int(found.released[row]) for row, _, _ in done})
    return True


def _borrowed(found: Assignment, mask: int, key: int, needed: int) -> list[tuple[int, int, int]] | None:
    """Rows that others spared for a group, with what they were before; None where there were too few."""
    there = set(found.groups[key])
    before = (found.masks.copy(), found.released.copy())
    if not lend(found, mask, np.array([key]), np.array([needed]))[0]:
        return None
    return [(row, int(before[0][row]), int(before[1][row])) for row in sorted(found.groups[key] - there)]


def _undone(found: Assignment, done: list[tuple[int, int, int]]) -> None:
    for row, mask, key in reversed(done):
        found.move(row, mask, key)


def _program(groups: _Groups, rows: Integers, free: set[int]) -> Program:
    """What the rows of a part can become while all others stay."""
    found, keys, k = groups.found, groups.found.keys, groups.found.k
    _, first, counts = np.unique(keys.whole[rows], return_index=True, return_counts=True)
    rows = rows[first]
    stays = (groups.sizes > 0) & ~np.isin(groups.names, np.array(sorted(free), dtype=np.int64))
    outside = groups.names[stays]
    gives = stays & (groups.sizes > k)
    givers, spare, digits = groups.names[gives], groups.sizes[gives] - k, groups.digits[gives]
    parts = []
    for mask in (0, *keys.masks):
        columns = keys.columns_of(mask)
        released = keys.projected(mask, rows)
        each, place = np.unique(released, return_inverse=True)
        support = np.bincount(place, counts, minlength=each.size)
        lent = givers - digits[:, columns] @ found.radix[columns]
        at = np.minimum(np.searchsorted(each, lent), each.size - 1)
        fits = np.flatnonzero(each[at] == lent)
        offered = np.bincount(at[fits], spare[fits], minlength=each.size)
        price = np.full(each.size, np.inf)
        np.minimum.at(price, at[fits], (digits[fits][:, columns] > 0) @ keys.costs[columns])
        there = np.isin(each, outside)
        # a released row that is there already needs nobody's help
        offered, price = np.where(there, k, offered), np.where(there, 0.0, price)
        possible = (support + offered >= k)[place]
        helped = np.where(np.isinf(price), keys.costs.sum(), price)[place][possible]
        paid = (keys.codes[rows][possible][:, columns] > 0) @ keys.costs[columns]
        gaps = keys.gaps[rows][possible] | mask
        parts.append(
            (released[possible], gaps, np.flatnonzero(possible), helped, offered[place][possible], paid)
        )
    made = programs.assembled(rows, counts, parts, k)
    return programs.promising(made, _OFFERS)
