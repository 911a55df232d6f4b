"""Search for cheap local suppression: a greedy start, refinement, and exact search where it is small enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.suppression import bound as programs
from shoal.mechanisms.suppression.bound import Keys, Program, best_masks, pairs_of, priced_bound
from shoal.numbers import Integers

_ROUNDS = 8
# maximum rows times masks for which other groups are searched: there is little to gain after the first choice
_MOST_TRIES = 10_000
# tolerance for equal costs
_SLACK = 1e-9


def finished(found: Assignment) -> Integers:
    """A mask for every row such that every released row occurs at least k times; needs at least k rows.

    Cost:
        About 2^m sorts of the distinct rare rows for m columns, and a few passes over the rows that are blanked.
    """
    _gather(found)
    _add_left_over(found)
    _improve(found)
    return found.masks


class Assignment:
    """The current mask of every row, and the groups of equal released rows."""

    def __init__(self, keys: Keys, k: int, masks: Integers) -> None:
        self.keys, self.k, self.masks = keys, k, masks
        self.radix = keys.radix
        released = keys.whole.copy()
        for mask in np.unique(masks & ~keys.gaps).tolist():
            own = np.flatnonzero(masks & ~keys.gaps == mask)
            released[own] = keys.projected(mask, own)
        self.released = released
        self.groups: dict[int, set[int]] = {}
        order = np.argsort(released, kind="stable")
        starts = np.flatnonzero(released[order][1:] != released[order][:-1]) + 1
        for members in np.split(order, starts):
            self.groups[int(released[members[0]])] = set(members.tolist())

    @classmethod
    def start(cls, keys: Keys, k: int) -> Assignment:
        """The initial assignment without blanks; groups are the rows that are frequent already."""
        found = cls(keys, k, keys.gaps.copy())
        found.rare = np.array(
            sorted(row for group in found.groups.values() if len(group) < k for row in group), dtype=np.int64
        )
        found.groups = {key: group for key, group in found.groups.items() if len(group) >= k}
        return found

    rare: Integers

    def cost_of(self, row: int, mask: int) -> float:
        """The cost of blanking a row with a mask; initially empty cells are free."""
        return self.keys.cost(mask & ~int(self.keys.gaps[row]))

    def key_of(self, row: int, mask: int) -> int:
        return int(self.keys.projected(mask, np.array([row]))[0])

    def move(self, row: int, mask: int, key: int) -> None:
        """Release a row under another mask; a group that loses its last row is removed."""
        old = self.groups.get(int(self.released[row]))
        if old is not None:
            old.discard(row)
            if not old:
                del self.groups[int(self.released[row])]
        self.groups.setdefault(key, set()).add(row)
        self.masks[row], self.released[row] = mask, key

    def surplus(self) -> tuple[Integers, Integers]:
        """Released rows that occur more than k times, and the number of spare records of each."""
        spare = [(key, len(group) - self.k) for key, group in self.groups.items() if len(group) > self.k]
        made = np.array(spare, dtype=np.int64).reshape(-1, 2)
        return made[:, 0], made[:, 1]

    def digits(self, released: Integers) -> Integers:
        """Released rows as codes."""
        rows = np.array([next(iter(self.groups[key])) for key in released.tolist()], dtype=np.int64)
        return np.where(self.keys.cells(self.masks[rows]), 0, self.keys.codes[rows])


def _gather(found: Assignment) -> None:
    """Open groups of rare rows, those with the lowest cost per rare row first."""
    keys, k = found.keys, found.k
    limits = sorted({keys.cost(mask) * k / rare for mask in keys.masks for rare in range(1, k + 1)})
    if len(limits) > 64:
        limits = np.geomspace(limits[0], limits[-1], 64).tolist()
    for limit in limits:
        for mask in keys.masks:
            if not found.rare.size:
                return
            if keys.cost(mask) <= limit + _SLACK and (
                limit <= keys.cost(mask) * k + _SLACK or limit == limits[-1]
            ):
                _open(found, mask, limit)


def _open(found: Assignment, mask: int, limit: float) -> None:
    """Open the groups under one mask that cost at most `limit` per rare row."""
    keys, k = found.keys, found.k
    released = keys.projected(mask, found.rare)
    names, place, count = np.unique(released, return_inverse=True, return_counts=True)
    columns = keys.columns_of(mask)
    each = (keys.codes[found.rare][:, columns] > 0) @ keys.costs[columns]
    paid = np.bincount(place, each, minlength=names.size)
    there = np.array([name in found.groups for name in names.tolist()], dtype=np.bool_)
    needed = np.where(there, 0, np.maximum(k - count, 0))
    good = (paid + needed * keys.cost(mask)) / count <= limit + _SLACK
    helped = good & (needed > 0)
    if helped.any():
        good[helped] = lend(found, mask, names[helped], needed[helped])
    taken = good[place]
    for row, key in zip(found.rare[taken].tolist(), released[taken].tolist(), strict=True):
        found.move(row, mask | int(keys.gaps[row]), key)
    found.rare = found.rare[~taken]


def lend(found: Assignment, mask: int, names: Integers, needed: Integers) -> NDArray[np.bool_]:
    """Move spare rows of other groups into new groups; returns the groups for which there were enough."""
    keys = found.keys
    rows, spare = found.surplus()
    digits = found.digits(rows)
    columns = keys.columns_of(mask)
    extra = (digits[:, columns] > 0) @ keys.costs[columns]
    projected = rows - digits[:, columns] @ found.radix[columns]
    place = np.minimum(np.searchsorted(names, projected), names.size - 1)
    fits = np.flatnonzero(names[place] == projected)
    offers: dict[int, list[int]] = defaultdict(list)
    for number in fits[np.argsort(extra[fits], kind="stable")].tolist():
        offers[int(place[number])].append(number)
    enough = np.zeros(names.size, dtype=np.bool_)
    for number, offered in offers.items():
        want = int(needed[number])
        if int(spare[offered].sum()) < want:
            continue
        enough[number] = True
        for giver in offered:
            take = min(want, int(spare[giver]))
            group = found.groups[int(rows[giver])]
            for row in sorted(group)[:take]:
                found.move(row, int(found.masks[row]) | mask, int(names[number]))
            want -= take
            if not want:
                break
    return enough


def _add_left_over(found: Assignment) -> None:
    """Add the remaining rows to the group that has to give up least for them."""
    keys = found.keys
    if found.rare.size and not found.groups:
        rows = range(keys.n)
        shared = _shared(keys, list(rows))
        for row in rows:
            found.move(row, shared, found.key_of(row, shared))
        found.rare = found.rare[:0]
    for row in found.rare.tolist():
        best: tuple[float, int, int] | None = None
        for key, group in found.groups.items():
            digits = found.digits(np.array([key]))[0]
            mask = int(keys.masks_of((digits != keys.codes[row])[None] | (digits == 0)[None])[0])
            member = next(iter(group))
            more = keys.cost(mask & ~int(found.masks[member])) * len(group) + found.cost_of(row, mask)
            best = min(best or (more, key, mask), (more, key, mask))
        assert best is not None
        _, key, mask = best
        for member in [*sorted(found.groups[key]), row]:
            found.move(member, mask, found.key_of(member, mask))
    found.rare = found.rare[:0]


def _shared(keys: Keys, rows: list[int]) -> int:
    """The mask under which rows become equal."""
    own = keys.codes[rows]
    return int(keys.masks_of(((own != own[0]).any(axis=0) | (own[0] == 0))[None])[0])


def _improve(found: Assignment) -> None:
    """Reduce blanks step by step until no improvement is found."""
    touched = int((found.masks != found.keys.gaps).sum())
    for _ in range(_ROUNDS):
        changes = _close(found) + _split(found)
        if touched * len(found.keys.masks) <= _MOST_TRIES:
            changes += _move(found) + _dissolve(found)
        if not changes:
            return


def _blanked_groups(found: Assignment) -> Iterator[tuple[int, list[int]]]:
    """Groups with a blanked row, the most expensive ones first."""
    gaps, masks = found.keys.gaps, found.masks
    touched = np.flatnonzero(masks != gaps)
    names = np.unique(found.released[touched])
    price = {
        int(name): found.keys.cost(int(found.masks[next(iter(found.groups[int(name)]))])) for name in names
    }
    for name in sorted(price, key=lambda name: (-price[name], name)):
        if name in found.groups:
            yield name, sorted(found.groups[name])


def _close(found: Assignment) -> int:
    """Restore cells in which all rows of a group agree."""
    changes = 0
    for _, rows in list(_blanked_groups(found)):
        mask = _shared(found.keys, rows)
        if mask != int(found.masks[rows[0]]):
            changes += 1
            for row in rows:
                found.move(row, mask, found.key_of(row, mask))
    return changes


def _split(found: Assignment) -> int:
    """Split off k rows of a group that agree in a blanked column, if at least k others remain."""
    keys, k = found.keys, found.k
    changes = 0
    for _, rows in list(_blanked_groups(found)):
        left = np.array(rows)
        mask = int(found.masks[rows[0]])
        for column in keys.columns_of(mask):
            while left.size >= 2 * k:
                counts = np.bincount(keys.codes[left, column])
                counts[0] = 0
                if not counts.size or counts.max() < k:
                    break
                same = left[keys.codes[left, column] == int(counts.argmax())][: left.size - k]
                smaller = mask & ~(1 << column)
                for row in same.tolist():
                    found.move(row, smaller, found.key_of(row, smaller))
                left = np.setdiff1d(left, same)
                changes += 1
    return changes


def _alternatives(found: Assignment, row: int, limit: float) -> Iterator[tuple[float, int, int]]:
    """Other groups that a row could join below a cost limit, cheap ones first."""
    gaps, own = int(found.keys.gaps[row]), int(found.released[row])
    for mask in (0, *found.keys.masks):
        if mask & gaps:
            continue
        cost = found.keys.cost(mask)
        if cost >= limit - _SLACK:
            return
        key = found.key_of(row, mask)
        if key != own and key in found.groups:
            yield cost, mask | gaps, key


def _move(found: Assignment) -> int:
    """Move spare rows of a group to a cheaper group."""
    changes = 0
    for name, rows in list(_blanked_groups(found)):
        for row in rows:
            if len(found.groups.get(name, ())) <= found.k:
                break
            cost = found.cost_of(row, int(found.masks[row]))
            for _, mask, key in _alternatives(found, row, cost):
                found.move(row, mask, key)
                changes += 1
                break
    return changes


def _dissolve(found: Assignment) -> int:
    """Dissolve a group whose rows cost less in other existing groups."""
    changes = 0
    for name, rows in list(_blanked_groups(found)):
        if set(rows) != found.groups.get(name):
            continue
        paid = sum(found.cost_of(row, int(found.masks[row])) for row in rows)
        best = []
        for row in rows:
            offer = next(_alternatives(found, row, paid), None)
            if offer is None or paid <= _SLACK:
                break
            paid -= offer[0]
            best.append((row, offer))
        else:
            if paid > _SLACK:
                for row, (_, mask, key) in best:
                    found.move(row, mask, key)
                changes += 1
    return changes


# number of distinct rows of a part, and of released rows each of them may become
_PART, _OFFERS = 40, 14
_PASSES, _FEW = 4, 10
# node limit of the solver's search for a part
_NODES = 40
# number of distinct rows blanked again, over all parts, for a table of this many rows and this k; fewer for larger
# tables and for a larger k, which takes the solver longer
_MOST_ROWS, _FOR_ROWS, _FOR_K = 2_000, 8_000, 3


def refined(found: Assignment, tell: Callable[[int, int], None] | None = None) -> None:
    """Improve the assignment part by part, until no improvement is found or the limit is reached.

    Cost: a few thousand rows are tried, for any table; about a millisecond each.
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
    """The released rows of an assignment as arrays, kept up to date while rows move."""

    def __init__(self, found: Assignment) -> None:
        self.found = found
        self.names = np.array(sorted(found.groups), dtype=np.int64)
        self.digits = found.digits(self.names)
        self.sizes = np.array([len(found.groups[name]) for name in self.names.tolist()], dtype=np.int64)
        self._place = {name: place for place, name in enumerate(self.names.tolist())}

    def renew(self, names: set[int]) -> None:
        """Update some released rows."""
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
    """Groups with a blank, in parts of similar ones: one not in a part yet, and those that differ least from it.

    The starting groups change from turn to turn.
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
        # among ties, those already in a part come last
        near = np.lexsort((names, done, loose, apart))
        taken = near[np.cumsum(different[near]) <= max(_PART, different[first])]
        done[taken] = True
        done[first] = True
        yield [row for place in taken.tolist() for row in members[place]]


def _blanked_anew(groups: _Groups, rows: Integers) -> bool:
    """Blank a part as well as possible; returns whether that is an improvement."""
    found, keys = groups.found, groups.found.keys
    free = set(np.unique(found.released[rows]).tolist())
    # an earlier part may have used some of them as helpers
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
    """Spare rows moved into a group, with their previous state; None if there were too few."""
    there = set(found.groups[key])
    before = (found.masks.copy(), found.released.copy())
    if not lend(found, mask, np.array([key]), np.array([needed]))[0]:
        return None
    return [(row, int(before[0][row]), int(before[1][row])) for row in sorted(found.groups[key] - there)]


def _undone(found: Assignment, done: list[tuple[int, int, int]]) -> None:
    for row, mask, key in reversed(done):
        found.move(row, mask, key)


def _program(groups: _Groups, rows: Integers, free: set[int]) -> Program:
    """The program of a part with all other rows fixed."""
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
        # an existing released row needs no helpers
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


# number of distinct rare rows of a block: the solver is fast up to this size
_BLOCK = 700
# number of released rows that a rare row may become in a block
_SEARCH_OFFERS = 12
# node limit of the solver's search for a program solved to optimality
_SEARCH_NODES = 2000
# thresholds: a nonzero part of a record, and a released row that is mostly open
_SOME, _MOSTLY = 0.05, 0.4
# an achievable cost is rarely above the simplest bound by more
_NEARLY = 1.15


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A solution.

    Attributes:
        masks: mask of every row, including initially empty cells.
        cost: cost of the blanked cells.
        bound: lower bound of the cost of reaching k.
    """

    masks: Integers
    cost: float
    bound: float


def fewest(
    keys: Keys,
    k: int,
    progress: Callable[[int, int], None] | None = None,
) -> Found:
    """Minimum-cost masks such that every released row, with blanks as values, occurs at least k times.

    Args:
        keys: at least k rows.

    Cost:
        2^m sorts for m columns, a linear program for every block of rare rows, and small programs for parts of
        the solution, fewer of them for larger tables.

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
    # a bound over all possible released rows, if they are enumerated
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
            _carried_out(guided, programs.promising(part, _SEARCH_OFFERS), exact=False)
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
    """Lower bound of the cost of reaching k, without searching for a solution."""
    rare = Assignment.start(keys, k).rare
    if not rare.size:
        return 0.0
    program = programs.program_of(keys, k, rare)
    # the target of the prices is a cost that can be reached, or nearly so
    known = _NEARLY * programs.share_bound(program)
    return programs.rounded_up(_bound(keys, program, rare, known), keys.costs)


def _cost(keys: Keys, masks: Integers) -> float:
    return float((keys.cells(masks) & (keys.codes > 0)).sum(axis=0) @ keys.costs)


def _bound(keys: Keys, program: Program, rare: Integers, known: float) -> float:
    if not keys.listed:
        # every rare row loses at least one cell
        return float(keys.costs.min()) * rare.size
    return max(programs.share_bound(program), priced_bound(program, known))


def _blocks(keys: Keys, rare: Integers) -> Iterator[Integers]:
    """Rare rows in blocks of few distinct ones: rows of a block agree in the columns by which it was split."""
    if np.unique(keys.whole[rare]).size <= _BLOCK:
        yield rare
        return
    found = [np.unique(keys.codes[rare, column]).size for column in range(keys.m)]
    several = [column for column in range(keys.m) if found[column] > 1]
    column = min(several, key=lambda column: (found[column], column))
    for code in np.unique(keys.codes[rare, column]):
        yield from _blocks(keys, rare[keys.codes[rare, column] == code])


def _carried_out(found: Assignment, program: Program, *, exact: bool) -> float:
    """Blank by the solution of a program, as far as there are helpers; returns the bound of the program.

    A program that is not solved to optimality opens released rows fractionally: the most open ones are applied
    first, and the remaining rows are left to other steps.
    """
    if not program.pairs:
        return 0.0
    # integer costs: a distance below one cell means optimality
    gap = 0.9 / max(1.0, programs.share_bound(program))
    best = programs.solved(program, whole=exact, nodes=_SEARCH_NODES, gap=gap)
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
