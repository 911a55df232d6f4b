"""Private cut points. In: sorted positions of an attribute, a spend per level. Out: edges of 2^levels intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.noise import Source, exponential_choice
from shoal.privacy import Spend


def rank_intervals(
    ordered: NDArray[np.int64], lo: int, hi: int, counts: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All cuts of the box lo..hi by rank: how many cuts there are of each rank, and how far from the median it is.

    A cut s in lo+1 .. hi leaves lo .. s-1 to its left; its rank is the number of records there. The penalty
    |2·rank - size| is twice the distance from the median rank, so that it is a whole number. With `counts` the
    positions are different ones, and each is that of so many records: the same but for the ranks of which there is no
    cut.

    Guarantee:
        A record replaced inside the box changes every penalty by at most 2, a record gained or lost by at most 1.

    >>> [part.tolist() for part in rank_intervals(np.array([2, 2, 7]), 0, 9)]
    [[2, 0, 5, 2], [3, 1, 1, 3]]
    >>> [part.tolist() for part in rank_intervals(np.array([2, 7]), 0, 9, np.array([2, 1]))]
    [[2, 5, 2], [3, 1, 3]]
    """
    # the cuts of rank r lie above the r-th record and not above the next one
    edges = np.concatenate(([lo], ordered, [hi]))
    each = np.ones(ordered.size, dtype=np.int64) if counts is None else counts
    ranks = np.concatenate(([0], np.cumsum(each)))
    return np.diff(edges), np.abs(2 * ranks - ranks[-1])


def draw_cut(
    ordered: NDArray[np.int64],
    lo: int,
    hi: int,
    rate: Fraction,
    source: Source,
    counts: NDArray[np.int64] | None = None,
) -> int:
    """One cut of the box lo..hi near the median of its records, by the exponential mechanism.

    Guarantee:
        Weights exp(-rate · penalty): costs 4·rate for a record replaced inside the box and 2·rate for one gained or
        lost. A box of one point, or of none, is public and is left whole at no cost.

    Cost:
        Linear in the number of records of the box.

    Reference:
        docs/proofs/tree.md, section 2.
    """
    if hi <= lo:
        return hi + 1
    lengths, penalties = rank_intervals(ordered, lo, hi, counts)
    rank = exponential_choice(lengths, penalties, rate, source)
    below = lo if rank == 0 else int(ordered[rank - 1])
    return below + 1 + int(source.below(int(lengths[rank]), 1)[0])


def draw_edges(
    ordered: NDArray[np.int64],
    first: Sequence[int],
    levels: Sequence[Spend],
    rate_of: Callable[[Fraction], Fraction],
    counts: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Edges e of intervals e[i] .. e[i+1]-1: every level halves every interval, beginning with those of `first`.

    Args:
        ordered: the records' positions, or, with `counts`, the different ones and how many records have each.
        levels: what each level may spend.
        rate_of: the rate of a level, by what it spends.

    Guarantee:
        A level costs what one cut of its rate costs under replace-one (4·rate) and add/remove (2·rate): a record
        is in one interval of a level, and a replaced record is either replaced inside one or moves between two.

    >>> from shoal.noise import Seeded
    >>> from shoal.privacy import Accountant
    >>> account = Accountant.of({"cut points": Fraction(4)}, Fraction(4), Seeded(1))
    >>> levels = [account.spend("cut points", Fraction(2)) for _ in range(2)]
    >>> draw_edges(np.array([1, 1, 8, 8]), [0, 10], levels, lambda amount: 25 * amount).size
    5
    """
    edges = np.array(first, dtype=np.int64)
    for level in levels:
        amount, source = level.take()
        rate = rate_of(amount)
        places = np.searchsorted(ordered, edges)
        cuts = []
        for i in range(edges.size - 1):
            inside = slice(places[i], places[i + 1])
            box = (ordered[inside], int(edges[i]), int(edges[i + 1]) - 1, rate, source)
            cuts.append(draw_cut(*box) if counts is None else draw_cut(*box, counts[inside]))
        refined = np.empty(2 * edges.size - 1, dtype=np.int64)
        refined[::2], refined[1::2] = edges, cuts
        edges = refined
    return edges
