"""Suppression of a small table as one program without any simplification: keys come in, the fewest cells leave.

All rows take part, frequent ones too, so what is solved to the end is as good as any way to blank. It has an unknown
for every different row and everything that it can become, which only small tables can afford.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix

from shoal.display import internal
from shoal.mechanisms.suppression.keys import Integers, Keys

# pairs of a different row and what it can become
MOST_PAIRS = 1_200
# nodes of the solver's search: a limit in seconds would make results depend on the machine
_NODES = 200


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Different rows, and every released row that they can become.

    Attributes:
        rows: a record of each different row.
        counts: how many records each has.
        row, name: pairs, by the place of the row and of the released row.
        mask: what is blanked of the row, pair by pair.
        paid: what that costs a record.
    """

    rows: Integers
    counts: Integers
    row: Integers
    name: Integers
    mask: Integers
    paid: NDArray[np.float64]


def pairs_of(keys: Keys, k: int, most: int = MOST_PAIRS) -> Pairs | None:
    """Every pair that can be of use; None where there are too many."""
    _, rows, counts = np.unique(keys.whole, return_index=True, return_counts=True)
    if not keys.listed or rows.size * (len(keys.masks) + 1) > 8 * most:
        return None
    row, released, masks, paid = [], [], [], []
    for mask in (0, *keys.masks):
        columns = keys.columns_of(mask)
        _, place = np.unique(keys.projected(mask, rows), return_inverse=True)
        useful = np.bincount(place, counts) >= k
        for column in columns:
            # where all agree in a value, the released row that keeps it does the same for less
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
    return Pairs(
        rows,
        counts.astype(np.int64),
        flat[once],
        name[once].astype(np.int64),
        np.concatenate(masks)[once],
        np.concatenate(paid)[once],
    )


def best_masks(keys: Keys, k: int, pairs: Pairs, limit: float) -> tuple[Integers | None, float]:
    """Masks at least cost and a lower bound; no masks where none was found for less than `limit`."""
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


def _assigned(keys: Keys, pairs: Pairs, amounts: Integers) -> Integers:
    """A mask for every record, in the order of the rows among those that are equal."""
    masks = keys.gaps.copy()
    order = np.argsort(keys.whole, kind="stable")
    # different rows are in the order of their numbers
    start = np.cumsum(pairs.counts) - pairs.counts
    for pair in np.flatnonzero(amounts).tolist():
        row = int(pairs.row[pair])
        own = order[start[row] : start[row] + amounts[pair]]
        masks[own] |= pairs.mask[pair]
        start[row] += amounts[pair]
    return masks
