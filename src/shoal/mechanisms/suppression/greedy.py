"""A good way to blank cells so that every released row occurs k times: keys come in, a mask per row leaves.

Rows that are rare are brought together where that costs least for each of them: with each other, with a released row
that is frequent already, or with rows that others can spare. What is found is then improved step by step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.suppression.keys import Integers, Keys

_ROUNDS = 8
# rows times masks that other groups are looked for: there is little to find after the first choice
_MOST_TRIES = 10_000
# below this two costs are the same
_SLACK = 1e-9


def finished(found: Assignment) -> Integers:
    """A mask for every row such that every released row occurs at least k times; needs k rows at least.

    Cost:
        About 2^m sorts of the distinct rare rows for m columns, and a few passes over the rows that are blanked.
    """
    _gather(found)
    _add_left_over(found)
    _improve(found)
    return found.masks


class Assignment:
    """Which mask every row has at the moment, and which rows are released together."""

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
        """Nothing is blanked yet; groups are the rows that are frequent as they are."""
        found = cls(keys, k, keys.gaps.copy())
        found.rare = np.array(
            sorted(row for group in found.groups.values() if len(group) < k for row in group), dtype=np.int64
        )
        found.groups = {key: group for key, group in found.groups.items() if len(group) >= k}
        return found

    rare: Integers

    def cost_of(self, row: int, mask: int) -> float:
        """What blanking a row so far costs; what was empty from the start is free."""
        return self.keys.cost(mask & ~int(self.keys.gaps[row]))

    def key_of(self, row: int, mask: int) -> int:
        return int(self.keys.projected(mask, np.array([row]))[0])

    def move(self, row: int, mask: int, key: int) -> None:
        """Release a row under another mask; a group that loses its last row is gone."""
        old = self.groups.get(int(self.released[row]))
        if old is not None:
            old.discard(row)
            if not old:
                del self.groups[int(self.released[row])]
        self.groups.setdefault(key, set()).add(row)
        self.masks[row], self.released[row] = mask, key

    def surplus(self) -> tuple[Integers, Integers]:
        """Released rows that occur more than k times, and how many of each can be spared."""
        spare = [(key, len(group) - self.k) for key, group in self.groups.items() if len(group) > self.k]
        made = np.array(spare, dtype=np.int64).reshape(-1, 2)
        return made[:, 0], made[:, 1]

    def digits(self, released: Integers) -> Integers:
        """Released rows as codes."""
        rows = np.array([next(iter(self.groups[key])) for key in released.tolist()], dtype=np.int64)
        return np.where(self.keys.cells(self.masks[rows]), 0, self.keys.codes[rows])


def _gather(found: Assignment) -> None:
    """Open groups of rare rows, those that cost least for each rare row first."""
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
    """Open the groups under one mask that cost no more than `limit` for each rare row."""
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
    """Take rows that other groups can spare into new groups; says for which groups there were enough."""
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
    """Rows for which nobody had a row to spare join the group that has to give up least for them."""
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
    """The mask under which rows are released alike."""
    own = keys.codes[rows]
    return int(keys.masks_of(((own != own[0]).any(axis=0) | (own[0] == 0))[None])[0])


def _improve(found: Assignment) -> None:
    """Blank less, step by step, until nothing more is found."""
    touched = int((found.masks != found.keys.gaps).sum())
    for _ in range(_ROUNDS):
        changes = _close(found) + _split(found)
        if touched * len(found.keys.masks) <= _MOST_TRIES:
            changes += _move(found) + _dissolve(found)
        if not changes:
            return


def _blanked_groups(found: Assignment) -> Iterator[tuple[int, list[int]]]:
    """Groups with a row that was blanked, the most expensive ones first."""
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
    """Give back cells in which all rows of a group agree."""
    changes = 0
    for _, rows in list(_blanked_groups(found)):
        mask = _shared(found.keys, rows)
        if mask != int(found.masks[rows[0]]):
            changes += 1
            for row in rows:
                found.move(row, mask, found.key_of(row, mask))
    return changes


def _split(found: Assignment) -> int:
    """Let k rows of a group that agree in a blanked column go by themselves, where k others stay."""
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
    """Other groups that a row could be in for less than a limit, cheap ones first."""
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
    """Move single rows that their group can spare to a group that costs less."""
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
    """Give up a group whose rows cost less in other groups that are there."""
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
