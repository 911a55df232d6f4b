"""Keys of suppression, and lower bounds on its cost: linear and integer programs and their prices.

Rows are encoded as single numbers, under any set of blanked columns. Such a set (a mask) is an integer, bit j for
column j. A blank has the digit 0, so a released row is itself a number: two rows are equal exactly if their numbers
are, with a blank as a separate value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix

from shoal.display import internal
from shoal.kernels import compiled
from shoal.numbers import Floats, Integers

# maximum number of masks tried, small ones first
MOST_MASKS = 1023


@internal()
@dataclass(frozen=True)
class Keys:
    """Rows of keys.

    Attributes:
        codes: (rows, columns), 1 and up for values, 0 for a cell that is empty from the start.
        costs: cost of an emptied cell of each column.
    """

    codes: Integers
    costs: NDArray[np.float64]

    @property
    def n(self) -> int:
        return int(self.codes.shape[0])

    @property
    def m(self) -> int:
        return int(self.codes.shape[1])

    @cached_property
    def radix(self) -> Integers:
        """The place value of each column's digit.

        If the rows do not fit into one number, place values are constant odd numbers, sums wrap around, and two
        different rows have the same number with a probability of 2^-64; released tables are verified anyway.
        """
        total, found = 1, []
        for most in self.codes.max(axis=0, initial=0).tolist():
            found.append(total)
            total *= most + 1
        if total < 2**62:
            return np.array(found, dtype=np.int64)
        drawn = np.random.Generator(np.random.PCG64(23)).integers(-(2**62), 2**62, self.m)
        return np.asarray(drawn | 1, dtype=np.int64)

    @cached_property
    def listed(self) -> bool:
        """Whether all masks are tried."""
        return len(self.masks) == (1 << self.m) - 1

    @cached_property
    def whole(self) -> Integers:
        """Every unmasked row, as one number."""
        return np.asarray(self.codes @ self.radix, dtype=np.int64)

    @cached_property
    def gaps(self) -> Integers:
        """The mask of initially empty cells of each row."""
        return self.masks_of(self.codes == 0)

    def masks_of(self, blank: NDArray[np.bool_]) -> Integers:
        return blank @ (1 << np.arange(self.m, dtype=np.int64))

    def cells(self, masks: Integers) -> NDArray[np.bool_]:
        """Masks as a table of cells."""
        return np.asarray((masks[:, None] >> np.arange(self.m)) & 1 == 1)

    def projected(self, mask: int, rows: Integers | slice = slice(None)) -> Integers:
        """Released rows with the columns of the mask blanked."""
        gone = self.columns_of(mask)
        return self.whole[rows] - self.codes[rows][:, gone] @ self.radix[gone]

    def columns_of(self, mask: int) -> list[int]:
        return [j for j in range(self.m) if mask >> j & 1]

    def cost(self, mask: int) -> float:
        return float(self.costs[self.columns_of(mask)].sum())

    @cached_property
    def masks(self) -> list[int]:
        """All nonempty masks, cheap ones first; for many columns only the smallest masks and the full one.

        Ties are ordered with later columns first.
        """
        found: list[int] = []
        for size in range(1, self.m + 1):
            if len(found) + comb(self.m, size) > MOST_MASKS:
                found.append((1 << self.m) - 1)
                break
            found += [sum(1 << column for column in chosen) for chosen in combinations(range(self.m), size)]
        return sorted(found, key=lambda mask: (self.cost(mask), -mask))


# programs up to this size are solved to optimality, or nearly so
FEW_PAIRS = 2_500
# node limit of the solver's search tree: a time limit would make results depend on the machine
_NODES = 200
_SLACK = 1e-6


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The integer program: rare rows, and the released rows they can become.

    Attributes:
        rows: one record of each rare distinct row.
        counts: number of records of each.
        names: the released rows, as numbers.
        masks: the blanks of each of them, including those that some rows have from the start.
        prices: cost for a record of a frequent row to become each of them.
        spare: maximum number of such records; k or more are equivalent.
        row, name: pairs of a rare row and a released row, by their index above.
        paid: cost of a record, pair by pair.
        k: minimum frequency of a released row.
    """

    rows: Integers
    counts: Integers
    names: Integers
    masks: Integers
    prices: Floats
    spare: Integers
    row: Integers
    name: Integers
    paid: Floats
    k: int

    @property
    def pairs(self) -> int:
        return int(self.row.size)

    @property
    def rare(self) -> Integers:
        """Number of rare records that can become each released row."""
        return np.bincount(self.name, self.counts[self.row], minlength=self.names.size).astype(np.int64)

    def only(self, kept: NDArray[np.bool_]) -> Program:
        """The program with some of its pairs."""
        used, name = np.unique(self.name[kept], return_inverse=True)
        return replace(
            self,
            names=self.names[used],
            masks=self.masks[used],
            prices=self.prices[used],
            spare=self.spare[used],
            row=self.row[kept],
            name=name,
            paid=self.paid[kept],
        )

    def of_rows(self, keys: Keys, rare: Integers) -> Program:
        """The program of some of its rare records; equal records must be selected together."""
        own = np.isin(keys.whole[self.rows], keys.whole[rare])
        kept = self.only(own[self.row])
        made = replace(kept, rows=self.rows[own], counts=self.counts[own], row=(np.cumsum(own) - 1)[kept.row])
        return made.only(~_needless(made, keys)[made.name])


def program_of(keys: Keys, k: int, rare: Integers) -> Program:
    """The program for some rare records of a table; equal records must be selected together.

    Released rows that fewer than k records can become are omitted, and those dominated by a finer one.
    """
    _, rows, counts = np.unique(keys.whole[rare], return_index=True, return_counts=True)
    rows = rare[rows]
    # equal rows are processed once
    _, every_row, times = np.unique(keys.whole, return_index=True, return_counts=True)
    parts = []
    for mask in keys.masks:
        columns = keys.columns_of(mask)
        helpers = keys.projected(mask, every_row)
        released = keys.projected(mask, rows)
        found, place = np.unique(released, return_inverse=True)
        at = np.minimum(np.searchsorted(found, helpers), found.size - 1)
        same = np.flatnonzero(found[at] == helpers)
        support = np.bincount(at[same], times[same], minlength=found.size)
        cheapest = np.full(found.size, np.inf)
        # a helper that has gaps pays only for the other blanks
        own = (keys.codes[every_row[same]][:, columns] > 0) @ keys.costs[columns]
        np.minimum.at(cheapest, at[same], own)
        fits = support[place] >= k
        paid = (keys.codes[rows][fits][:, columns] > 0) @ keys.costs[columns]
        spare = np.full(paid.size, k)
        parts.append(
            (
                released[fits],
                keys.gaps[rows][fits] | mask,
                np.flatnonzero(fits),
                cheapest[place][fits],
                spare,
                paid,
            )
        )
    made = assembled(rows, counts, parts, k)
    return made.only(~_needless(made, keys)[made.name])


def assembled(rows: Integers, counts: Integers, parts: Sequence[tuple[NDArray[Any], ...]], k: int) -> Program:
    """The program of the possible results of rows under several masks.

    Args:
        rows, counts: distinct rows, and the frequency of each.
        parts: for every mask, arrays with an entry for every row that can be blanked so: the released row, its
            gaps, the index of the row, the price of a helper, helpers to spare, the cost of the row.
    """
    names, masks, row, prices, spares, paid = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    every, first, name = np.unique(names, return_index=True, return_inverse=True)
    # a row with gaps becomes the same under several masks
    _, once = np.unique(row * every.size + name, return_index=True)
    return Program(
        rows,
        counts.astype(np.int64),
        every,
        masks[first],
        prices[first],
        spares[first].astype(np.int64),
        row[once],
        name.astype(np.int64)[once],
        paid[once],
        k,
    )


def _needless(program: Program, keys: Keys) -> NDArray[np.bool_]:
    """Released rows dominated by a finer one: the same rare rows can become it."""
    size = program.names.size
    needless = np.zeros(size, dtype=np.bool_)
    if not size:
        return needless
    for column in range(keys.m):
        code = keys.codes[program.rows[program.row], column]
        least, most = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
        np.minimum.at(least, program.name, code)
        np.maximum.at(most, program.name, code)
        alike = (program.masks >> column & 1 == 1) & (least == most) & (least > 0)
        finer = program.names + np.where(alike, least, 0) * keys.radix[column]
        place = np.minimum(np.searchsorted(program.names, finer), size - 1)
        needless |= alike & (program.names[place] == finer)
    # of those that a single rare row can become, the cheapest suffices
    alone = np.flatnonzero((np.bincount(program.name, minlength=size) == 1) & ~needless)
    owner = np.zeros(size, dtype=np.int64)
    owner[program.name] = program.row
    alone = alone[np.lexsort((program.prices[alone], owner[alone]))]
    needless[alone[1:][owner[alone[1:]] == owner[alone[:-1]]]] = True
    return needless


def share_bound(program: Program) -> float:
    """A lower bound without a solver: the minimum cost of each rare record, including its part of the helpers.

    A group of the released row P with q rare records, out of R that can become P, has at least k records; so each
    of the q covers its own cells and (k - q)/q helpers, of which there are the fewest if q = R.
    """
    rare = program.rare[program.name]
    helpers = np.maximum(program.k - rare, 0) / rare
    least = np.full(program.rows.size, np.inf)
    np.minimum.at(least, program.row, program.paid + helpers * program.prices[program.name])
    least[np.isinf(least)] = 0.0
    return float(least @ program.counts)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A solution of the program.

    Attributes:
        amounts: number of records of each pair.
        opened: how far each released row is opened, 0 to 1.
        bound: a lower bound of the objective.
    """

    amounts: Floats
    opened: Floats
    cost: float
    bound: float


def solved(program: Program, *, whole: bool, nodes: int = _NODES, gap: float = 0.0) -> Solution | None:
    """The program's optimum, or nearly so; None if the solver found nothing.

    Args:
        whole: released rows are opened or not; otherwise fractionally, which is faster and gives a lower bound.
        nodes: maximum number of nodes of the search, after which the best solution so far is used.
        gap: sufficient relative distance to the bound.
    """
    pairs, names, rows = program.pairs, program.names.size, program.rows.size
    number, opened = np.arange(pairs), pairs + np.arange(names)
    helpers = opened + names
    counts = program.counts.astype(np.float64)
    matrix = coo_matrix(
        (
            np.concatenate(
                [
                    np.ones(pairs),
                    np.ones(pairs),
                    np.full(names, -program.k),
                    np.ones(names),
                    np.ones(pairs),
                    -counts[program.row],
                ]
            ),
            (
                np.concatenate(
                    [
                        program.row,
                        rows + program.name,
                        rows + np.arange(names),
                        rows + np.arange(names),
                        rows + names + number,
                        rows + names + number,
                    ]
                ),
                np.concatenate([number, number, opened, helpers, number, opened[program.name]]),
            ),
        ),
        shape=(rows + names + pairs, pairs + 2 * names),
    )
    low = np.concatenate([counts, np.zeros(names), np.full(pairs, -np.inf)])
    high = np.concatenate([counts, np.full(names, np.inf), np.zeros(pairs)])
    found = milp(
        np.concatenate([program.paid, np.zeros(names), program.prices]),
        constraints=LinearConstraint(matrix.tocsr(), low, high),
        integrality=np.concatenate([np.zeros(pairs), np.full(names, int(whole)), np.zeros(names)]),
        bounds=Bounds(
            0.0, np.concatenate([counts[program.row], np.ones(names), np.minimum(program.spare, program.k)])
        ),
        options={"node_limit": nodes, "mip_rel_gap": gap} if whole else {},
    )
    if found.x is None:
        return None
    bound = found.mip_dual_bound if whole and found.mip_dual_bound is not None else found.fun
    return Solution(found.x[:pairs], found.x[pairs : pairs + names], float(found.fun), float(bound))


def promising(program: Program, most: int) -> Program:
    """The few released rows that cost each rare row least, counting its part of the helpers."""
    rare = program.rare[program.name]
    price = program.paid + np.maximum(program.k - rare, 0) / rare * program.prices[program.name]
    order = np.lexsort((program.name, program.paid, price, program.row))
    starts = np.searchsorted(program.row[order], np.arange(program.rows.size))
    rank = np.arange(order.size) - starts[program.row[order]]
    kept = np.zeros(program.pairs, dtype=np.bool_)
    kept[order[rank < most]] = True
    return program.only(kept)


def rounded_up(bound: float, costs: Floats) -> float:
    """A bound on the cost, rounded up to an integer if costs are integers."""
    if np.all(costs == np.round(costs)):
        return float(math.ceil(bound - 1e-4))
    return bound


# number of passes over the pairs: more hardly raise the bound; fewer if there are many pairs
ROUNDS, _MOST_VISITS = 400, 250_000_000
# the step is halved after this many passes without a better bound
_PATIENCE = 12


def priced_bound(program: Program, known: float, rounds: int = ROUNDS) -> float:
    """A lower bound of the cost of any blanking, by dual prices.

    Args:
        known: the cost of a known solution.

    Cost: `rounds` passes over the pairs of the program.
    """
    if not program.pairs:
        return 0.0
    rounds = min(rounds, max(50, _MOST_VISITS // program.pairs))
    order = np.argsort(program.name, kind="stable")
    starts = np.searchsorted(program.name[order], np.arange(program.names.size + 1))
    rare = program.rare[program.name]
    paid = program.paid + np.maximum(program.k - rare, 0) / rare * program.prices[program.name]
    prices = np.full(program.rows.size, np.inf)
    np.minimum.at(prices, program.row, paid)
    return float(
        _ascent(
            program.row[order],
            program.paid[order],
            starts,
            program.prices,
            program.counts,
            program.k,
            np.where(np.isinf(prices), 0.0, prices),
            known,
            rounds,
        )
    )


@compiled
def _ascent(
    row: Integers,
    paid: Floats,
    starts: Integers,
    helper: Floats,
    counts: Integers,
    k: int,
    prices: Floats,
    known: float,
    rounds: int,
) -> float:
    """The best bound of the ascent; prices are changed in place."""
    best, step, waited = -np.inf, 1.0, 0
    taken = np.empty(prices.size)
    own_cost = np.empty(k)
    own_place = np.empty(k, dtype=np.int64)
    for _ in range(rounds):
        taken[:] = 0.0
        bound = 0.0
        for one in range(prices.size):
            bound += counts[one] * prices[one]
        for name in range(helper.size):
            bound += _gain(
                row, paid, starts, name, helper[name], counts, k, prices, taken, own_cost, own_place
            )
        if bound > best + 1e-9:
            # a negligible improvement does not count
            waited = 0 if bound > best + 1e-4 * abs(best) else waited + 1
            best = bound
        else:
            waited += 1
        if waited >= _PATIENCE:
            step, waited = step / 2, 0
            if step < 1e-5:
                break
        length = 0.0
        for one in range(prices.size):
            short = counts[one] - taken[one]
            length += short * short
        if length == 0.0 or best >= known:
            break
        size = step * (known - bound) / length
        for one in range(prices.size):
            prices[one] += size * (counts[one] - taken[one])
    return best


@compiled
def _gain(
    row: Integers,
    paid: Floats,
    starts: Integers,
    name: int,
    helper: float,
    counts: Integers,
    k: int,
    prices: Floats,
    taken: Floats,
    own_cost: Floats,
    own_place: Integers,
) -> float:
    """The gain of a released row at these prices, at most 0; the records it takes are added up."""
    total, records, waiting = 0.0, 0, 0
    for pair in range(starts[name], starts[name + 1]):
        cost = paid[pair] - prices[row[pair]]
        if cost < 0.0:
            total += counts[row[pair]] * cost
            records += counts[row[pair]]
        elif cost < helper:
            # those that cost less than a helper, cheapest first, at most k of them
            for _ in range(min(counts[row[pair]], k)):
                place = waiting if waiting < k else k
                while place > 0 and own_cost[place - 1] > cost:
                    if place < k:
                        own_cost[place], own_place[place] = own_cost[place - 1], own_place[place - 1]
                    place -= 1
                if place < k:
                    own_cost[place], own_place[place] = cost, row[pair]
                    waiting = min(waiting + 1, k)
    missing = max(k - records, 0)
    used = min(missing, waiting)
    for one in range(used):
        total += own_cost[one]
    total += (missing - used) * helper
    if total >= 0.0:
        return 0.0
    for pair in range(starts[name], starts[name + 1]):
        if paid[pair] < prices[row[pair]]:
            taken[row[pair]] += counts[row[pair]]
    for one in range(used):
        taken[own_place[one]] += 1
    return total


# pairs of a distinct row and a released row it can become
MOST_PAIRS = 1_200


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class RowPairs:
    """Distinct rows, and every released row that they can become.

    Attributes:
        rows: one record of each distinct row.
        counts: number of records of each.
        row, name: pairs, by the index of the row and of the released row.
        mask: the blanks of the row, pair by pair.
        paid: their cost for one record.
    """

    rows: Integers
    counts: Integers
    row: Integers
    name: Integers
    mask: Integers
    paid: NDArray[np.float64]


def pairs_of(keys: Keys, k: int, most: int = MOST_PAIRS) -> RowPairs | None:
    """Every useful pair; None if there are too many."""
    _, rows, counts = np.unique(keys.whole, return_index=True, return_counts=True)
    if not keys.listed or rows.size * (len(keys.masks) + 1) > 8 * most:
        return None
    row, released, masks, paid = [], [], [], []
    for mask in (0, *keys.masks):
        columns = keys.columns_of(mask)
        _, place = np.unique(keys.projected(mask, rows), return_inverse=True)
        useful = np.bincount(place, counts) >= k
        for column in columns:
            # if all agree in a value, the released row that keeps it is cheaper and equivalent
            code = keys.codes[rows, column]
            least, most_ = np.full(useful.size, np.iinfo(np.int64).max), np.zeros(useful.size, np.int64)
            np.minimum.at(least, place, code)
            np.maximum.at(most_, place, code)
            useful &= (least != most_) | (least == 0)
        kept = np.flatnonzero(useful[place])
        row.append(kept)
        released.append(keys.projected(mask, rows[kept]))
        masks.append(np.full(kept.size, mask))
        paid.append((keys.codes[rows[kept]][:, columns] > 0) @ keys.costs[columns])
    every, name = np.unique(np.concatenate(released), return_inverse=True)
    flat = np.concatenate(row)
    # a row with gaps becomes the same under several masks
    _, once = np.unique(flat * every.size + name, return_index=True)
    if once.size > most:
        return None
    return RowPairs(
        rows,
        counts.astype(np.int64),
        flat[once],
        name[once].astype(np.int64),
        np.concatenate(masks)[once],
        np.concatenate(paid)[once],
    )


def best_masks(keys: Keys, k: int, pairs: RowPairs, limit: float) -> tuple[Integers | None, float]:
    """Masks with minimum cost and a lower bound; no masks if none was found below `limit`."""
    size, names, rows = pairs.row.size, int(pairs.name.max()) + 1, pairs.rows.size
    number, opened = np.arange(size), size + np.arange(names)
    counts = pairs.counts.astype(np.float64)
    matrix = coo_matrix(
        (
            np.concatenate(
                [np.ones(size), np.ones(size), np.full(names, -k), np.ones(size), -counts[pairs.row]]
            ),
            (
                np.concatenate(
                    [
                        pairs.row,
                        rows + pairs.name,
                        rows + np.arange(names),
                        rows + names + number,
                        rows + names + number,
                    ]
                ),
                np.concatenate([number, number, opened, number, opened[pairs.name]]),
            ),
        ),
        shape=(rows + names + size, size + names),
    )
    low = np.concatenate([counts, np.zeros(names), np.full(size, -np.inf)])
    high = np.concatenate([counts, np.full(names, np.inf), np.zeros(size)])
    found = milp(
        np.concatenate([pairs.paid, np.zeros(names)]),
        constraints=LinearConstraint(matrix.tocsr(), low, high),
        integrality=np.ones(size + names, dtype=np.int64),
        bounds=Bounds(0.0, np.concatenate([counts[pairs.row], np.ones(names)])),
        options={"node_limit": _NODES, "mip_rel_gap": 0.0},
    )
    bound = 0.0 if found.mip_dual_bound is None else float(found.mip_dual_bound)
    if found.x is None or found.fun >= limit - 1e-6:
        return None, bound
    return _assigned(keys, pairs, np.rint(found.x[:size]).astype(np.int64)), bound


def _assigned(keys: Keys, pairs: RowPairs, amounts: Integers) -> Integers:
    """A mask for every record, in row order among equal records."""
    masks = keys.gaps.copy()
    order = np.argsort(keys.whole, kind="stable")
    # distinct rows are in the order of their numbers
    start = np.cumsum(pairs.counts) - pairs.counts
    for pair in np.flatnonzero(amounts).tolist():
        row = int(pairs.row[pair])
        own = order[start[row] : start[row] + amounts[pair]]
        masks[own] |= pairs.mask[pair]
        start[row] += amounts[pair]
    return masks
