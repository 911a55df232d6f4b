"""A lower bound of the fewest cells for programs that are too large for a solver: a program comes in, a number leaves.

Every rare row offers a price for being taken care of. At given prices every released row decides for itself whether it
is worth opening, so what all rows offer, less what released rows gain, is a lower bound (Lagrangian relaxation of the
condition that every record is released once). Prices are raised where a row is taken by none and lowered where it is
taken more than once; the best bound on the way is kept. Its limit is the optimum of the linear program.

Reference: Held, Wolfe and Crowder (1974), Validation of subgradient optimization.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.mechanisms.suppression.keys import Integers
from shoal.mechanisms.suppression.program import Program

Floats = NDArray[np.float64]

# passes over the pairs: more of them hardly raise the bound; fewer where there are many pairs
ROUNDS, _MOST_VISITS = 400, 250_000_000
# the step is halved after so many passes without a better bound
_PATIENCE = 12


def priced_bound(program: Program, known: float, rounds: int = ROUNDS) -> float:
    """A cost that no way to blank is below.

    Args:
        known: the cost of a way that was found.

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


@njit(cache=True, nogil=True)
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
    """The best bound on the way; prices are changed in place."""
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
            # a better bound by next to nothing is none
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
            length += (counts[one] - taken[one]) ** 2
        if length == 0.0 or best >= known:
            break
        size = step * (known - bound) / length
        for one in range(prices.size):
            prices[one] += size * (counts[one] - taken[one])
    return best


@njit(cache=True, nogil=True)
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
    """What a released row gains at these prices, below 0 or 0; whom it takes is added up."""
    total, records, waiting = 0.0, 0, 0
    for pair in range(starts[name], starts[name + 1]):
        cost = paid[pair] - prices[row[pair]]
        if cost < 0.0:
            total += counts[row[pair]] * cost
            records += counts[row[pair]]
        elif cost < helper:
            # those that cost less than a helper, cheapest first, k of them at most
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
