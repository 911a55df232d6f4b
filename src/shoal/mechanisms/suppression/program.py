"""Suppression as a linear program: distinct rare rows come in, which of them to blank how and a lower bound leave.

Unknowns are, for every rare row and every released row that it can become, how many of its records do; which released
rows are opened; and how many records of frequent rows help out. That helpers are plentiful is the one thing that the
program takes for granted, so its optimum is a lower bound of the fewest cells, and the optimum itself wherever
the helpers are there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix

from shoal.display import internal
from shoal.mechanisms.suppression.keys import Integers, Keys

Floats = NDArray[np.float64]

# programs of this size are solved to the end, or nearly so
FEW_PAIRS = 2_500
# nodes of the solver's search tree: a limit in seconds would make results depend on the machine
_NODES = 200
_SLACK = 1e-6


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Rare rows, and what they can become.

    Attributes:
        rows: a record of each rare distinct row.
        counts: how many records each has.
        names: the released rows, as numbers.
        masks: the blanks of each of them, those that some rows have from the start included.
        prices: what a record of a frequent row pays to become each of them.
        spare: how many such records there are at most; k or more is as good as any number.
        row, name: pairs of a rare row and a released row, by their place above.
        paid: what a record pays, pair by pair.
        k: how often a released row must occur.
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
        """How many rare records can become each released row."""
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
        """The program of some of its rare records, all of those that are equal together."""
        own = np.isin(keys.whole[self.rows], keys.whole[rare])
        kept = self.only(own[self.row])
        made = replace(kept, rows=self.rows[own], counts=self.counts[own], row=(np.cumsum(own) - 1)[kept.row])
        return made.only(~_needless(made, keys)[made.name])


def program_of(keys: Keys, k: int, rare: Integers) -> Program:
    """The program for some rare records of a table, all of those that are equal together.

    Released rows that no k records can become are left out, and those for which a finer one does the same.
    """
    _, rows, counts = np.unique(keys.whole[rare], return_index=True, return_counts=True)
    rows = rare[rows]
    # equal rows are looked at once
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
        # a helper that has gaps pays for the rest only
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
    """The program of what rows can become under several masks.

    Args:
        rows, counts: different rows, and how often each occurs.
        parts: for every mask, arrays with an entry for every row that can be blanked so: the released row, its gaps,
            the place of the row, the price of a helper, helpers to spare, what the row pays.
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
    """Released rows that a finer one makes needless: the same rare rows can become it."""
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
    # of those that a single rare row can become, the cheapest will do
    alone = np.flatnonzero((np.bincount(program.name, minlength=size) == 1) & ~needless)
    owner = np.zeros(size, dtype=np.int64)
    owner[program.name] = program.row
    alone = alone[np.lexsort((program.prices[alone], owner[alone]))]
    needless[alone[1:][owner[alone[1:]] == owner[alone[:-1]]]] = True
    return needless


def share_bound(program: Program) -> float:
    """A lower bound without a solver: what a rare record pays at least, with its part of the helpers.

    A group of the released row P with q rare records, out of R that can become P, has at least k records; so each of
    the q stands for its own cells and for (k - q)/q helpers, of which there are the fewest when q = R.
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
    """What the solver found.

    Attributes:
        amounts: records of each pair.
        opened: how much of each released row is opened, 0 to 1.
        bound: a lower bound of the objective.
    """

    amounts: Floats
    opened: Floats
    cost: float
    bound: float


def solved(program: Program, *, whole: bool, nodes: int = _NODES, gap: float = 0.0) -> Solution | None:
    """The program's optimum, or nearly so; None where the solver found nothing.

    Args:
        whole: released rows are opened or not; otherwise in part, which is quicker and gives a lower bound.
        nodes: after so many nodes of the search the best solution so far is taken.
        gap: relative distance to the bound that is good enough.
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
    """For each rare row the few released rows that cost it least, counting its part of the helpers."""
    rare = program.rare[program.name]
    price = program.paid + np.maximum(program.k - rare, 0) / rare * program.prices[program.name]
    order = np.lexsort((program.name, program.paid, price, program.row))
    starts = np.searchsorted(program.row[order], np.arange(program.rows.size))
    rank = np.arange(order.size) - starts[program.row[order]]
    kept = np.zeros(program.pairs, dtype=np.bool_)
    kept[order[rank < most]] = True
    return program.only(kept)


def rounded_up(bound: float, costs: Floats) -> float:
    """A bound on the cost, up to the next whole number where costs are whole."""
    if np.all(costs == np.round(costs)):
        return float(math.ceil(bound - 1e-4))
    return bound
