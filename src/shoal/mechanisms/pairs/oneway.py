"""Single attributes. In: positions of the records that have one, and a `OneWay` layout. Out: a `Marginal` each.

With `cuts` of the tree and the gate of `currency.py` this is where the budget of single attributes is spent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.histogram import Histogram
from shoal.mechanisms.pairs.currency import Currency, Shape
from shoal.mechanisms.pairs.gaps import flags_of
from shoal.mechanisms.pairs.marginal import Fine, Marginal, constant, points, slopes_for
from shoal.mechanisms.pairs.names import merged
from shoal.mechanisms.pairs.plan import OF_ONE, PAIR_LEVELS, SUM_PARTS, Facts, OneWay
from shoal.mechanisms.pairs.tails import with_tails
from shoal.mechanisms.pairs.thresholds import least_known, likely, places, settled, where
from shoal.mechanisms.tree.counts import nearest_counts
from shoal.mechanisms.tree.cuts import draw_edges
from shoal.mechanisms.tree.intervals import ends_of, steadied
from shoal.mechanisms.tree.values import halved
from shoal.privacy import Accountant
from shoal.taxonomy import Taxonomy

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# A cut drawn near the median leaves about half on either side, but for ties: this is how often and how far.
_TIED, _NEAR = 0.2, 0.02
# No bin is taken to be quite empty, or quite full.
_LEAST = 1e-4
# What the first rounds of joint bisection ask for.
_QUANTILES = (0.5, 0.5, 0.2, 0.8)


def measure_oneway(
    positions: Sequence[Histogram],
    attributes: Sequence[Facts],
    trees: Sequence[Taxonomy | None],
    layout: OneWay,
    currency: Currency,
    rows: float,
    account: Accountant,
) -> list[Marginal]:
    """Spend the shares of single attributes.

    Guarantee:
        Two-valued attributes, each round of bisection, each level of contrasts and the sums are one measurement
        each in which a record changes one number per attribute by at most its unit; values counted one by one are
        one measurement per attribute; cut points cost what `draw_edges` says. Adaptive composition adds them up.

    Reference:
        docs/proofs/pairs.md, section 4.
    """
    found: dict[int, Marginal] = {}
    if layout.signs:
        found |= _two_valued(positions, attributes, layout, currency, rows, account)
    flags = flags_of(attributes)
    # of an attribute that can be missing, only the records that have it are measured
    rows_of = [
        max(rows * float(found[flags[a]].shares[0]), 1.0) if a in flags else float(rows)
        for a in range(len(attributes))
    ]
    for number in layout.counted:
        counts = positions[number].of_each(attributes[number].points)
        spend = account.spend(OF_ONE, layout.each, f"values of {attributes[number].name}", over="values")
        noisy = currency.measure(counts, Shape(1, 1, counts.size), spend)
        shares = _shares(nearest_counts(noisy, rows_of[number]))
        deviation = currency.deviation(Shape(1, 1, counts.size), layout.each)
        if attributes[number].ordered:
            found[number] = _of_counts(shares)
        else:
            found[number] = merged(shares, deviation / rows, trees[number])
    if layout.rounds:
        found |= _bisected(positions, attributes, layout, currency, rows_of, account)
    elif layout.cut:
        found |= _cut(positions, attributes, layout, currency, rows_of, account)
    return [found.get(number, constant()) for number in range(len(attributes))]


def _two_valued(
    positions: Sequence[Histogram],
    attributes: Sequence[Facts],
    layout: OneWay,
    currency: Currency,
    rows: float,
    account: Accountant,
) -> dict[int, Marginal]:
    """Differences of the two counts, of all attributes at once; flags among them say how many have a value."""
    exact = np.array([positions[a].size - 2 * positions[a].total for a in layout.signs], dtype=np.int64)
    spend = account.spend(OF_ONE, layout.sign_share, "two-valued attributes")
    noisy = currency.measure(exact, Shape(1, exact.size, 1), spend)
    first = np.clip((1 + noisy / rows) / 2, _LEAST, 1 - _LEAST)
    for a, flag in flags_of(attributes).items():
        if a in layout.signs:
            mean = noisy[layout.signs.index(a)] / (rows * first[layout.signs.index(flag)])
            first[layout.signs.index(a)] = np.clip((1 + mean) / 2, _LEAST, 1 - _LEAST)
    return {a: _of_counts(np.array([share, 1 - share])) for a, share in zip(layout.signs, first, strict=True)}


def _of_counts(shares: Floats) -> Marginal:
    """An ordered attribute whose values were counted."""
    levels = min(PAIR_LEVELS, int(shares.size - 1).bit_length())
    edges = halved(shares, levels, [0, shares.size])
    running = np.concatenate(([0.0], np.cumsum(shares)))
    return Marginal(points(shares), np.diff(running[edges]), levels, edges)


def _bisected(
    positions: Sequence[Histogram],
    attributes: Sequence[Facts],
    layout: OneWay,
    currency: Currency,
    rows_of: Sequence[float],
    account: Accountant,
) -> dict[int, Marginal]:
    """Thresholds found by asking all attributes at once how many records are below and above.

    The first rounds ask where the answers so far put a quantile, later ones halve what is least known; what was
    answered on the way is a distribution function.
    """
    sizes = [attributes[a].points for a in layout.cut]
    rows = np.array([rows_of[a] for a in layout.cut])
    noise = currency.deviation(Shape(1, len(sizes), 1), layout.rounds[0]) / (2 * rows)
    asked = np.zeros((len(layout.rounds), len(sizes)), dtype=np.int64)
    answers = np.zeros(asked.shape)
    for turn, share in enumerate(layout.rounds):
        if turn < len(_QUANTILES):
            curves = likely((asked[:turn] / sizes).T, answers[:turn].T, noise)
            wanted = [where(curve, _QUANTILES[turn]) for curve in curves]
        else:
            wanted = [
                least_known(asked[:turn, place] / size, answers[:turn, place], float(noise[place]))
                for place, size in enumerate(sizes)
            ]
        for place, size in enumerate(sizes):
            asked[turn, place] = min(max(round(wanted[place] * size), 1), size - 1)
        exact = np.array(
            [
                2 * positions[a].below(cut) - positions[a].size
                for a, cut in zip(layout.cut, asked[turn].tolist(), strict=True)
            ],
            dtype=np.int64,
        )
        spend = account.spend(OF_ONE, share, f"thresholds, round {turn + 1}")
        noisy = currency.measure(exact, Shape(1, exact.size, 1), spend)
        answers[turn] = (1 + noisy / rows) / 2
    return {
        a: _of_thresholds(asked[:, place], answers[:, place], attributes[a].points, float(noise[place]))
        for place, a in enumerate(layout.cut)
    }


def _of_thresholds(asked: Integers, answers: Floats, size: int, noise: float) -> Marginal:
    curve = settled(asked / size, answers, noise)
    known = places()
    edges = np.unique(np.concatenate((np.rint(known * size).astype(np.int64), asked)))
    running = np.interp(edges / size, known, curve)
    running[0], running[-1] = 0.0, 1.0
    fine = Fine(edges[:-1], edges[1:] - 1, np.diff(running), np.zeros(edges.size - 1))
    # pairs use a threshold that was asked for, whose share is known best
    level = np.interp(asked, edges, running)
    cut = int(np.argmin(np.abs(level - 0.5)))
    first = float(np.clip(level[cut], _LEAST, 1 - _LEAST))
    return Marginal(fine, np.array([first, 1 - first]), 1, np.array([0, asked[cut], size]))


def _cut(
    positions: Sequence[Histogram],
    attributes: Sequence[Facts],
    layout: OneWay,
    currency: Currency,
    rows_of: Sequence[float],
    account: Accountant,
) -> dict[int, Marginal]:
    """Private cut points, then contrasts of all trees level by level, then sums inside the finest intervals."""
    levels, number = layout.levels, len(layout.cut)
    rows = np.array([rows_of[a] for a in layout.cut])[:, None]
    own = [positions[a] for a in layout.cut]
    edges = [
        _edges(found, attributes[a], layout, currency, account)
        for found, a in zip(own, layout.cut, strict=True)
    ]
    places = [np.searchsorted(found.ordered, cuts) for found, cuts in zip(own, edges, strict=True)]
    counts = np.stack([found.between(place) for found, place in zip(own, places, strict=True)])
    running = np.ones((number, 1))
    for level, share in enumerate(layout.counts):
        both = counts.reshape(number, 1 << level, 2, -1).sum(axis=3)
        shape = Shape(1, number, 1 << level)
        spend = account.spend(OF_ONE, share, f"halves of intervals, level {level + 1}", over="intervals")
        noisy = currency.measure(both[:, :, 0] - both[:, :, 1], shape, spend) / rows
        # half a node is what a cut misses the median by, besides ties
        doubt = _NEAR + 1 / (float(currency.rate(layout.cuts[level])) * np.maximum(rows / 2**level, 1.0))
        running = _refined(running, noisy, currency.deviation(shape, share) / rows, doubt, edges, level)
    means = _means(own, places, edges, running, layout, currency, rows, account)
    return {
        a: _of_tree(edges[place], running[place], *means[place], levels) for place, a in enumerate(layout.cut)
    }


def _edges(
    found: Histogram, facts: Facts, layout: OneWay, currency: Currency, account: Accountant
) -> Integers:
    """Private cut points of one attribute; a record is in one interval of a level."""
    spends = [
        account.spend(OF_ONE, share, f"cut points of {facts.name}, level {level + 1}", over="intervals")
        for level, share in enumerate(layout.cuts)
    ]
    return draw_edges(found.ordered, [0, facts.points], spends, currency.rate, found.counts)


def _refined(
    parents: Floats, contrasts: Floats, noise: Floats, doubt: Floats, edges: Sequence[Integers], level: int
) -> Floats:
    """Shares of the halves of all nodes: mostly about even, as a cut near the median leaves them, sometimes not."""
    near = (doubt * parents) ** 2
    spread = near + noise**2
    even = np.exp(-(contrasts**2) / (2 * spread)) / np.sqrt(2 * np.pi * spread) * (1 - _TIED)
    tied = _TIED / (2 * np.maximum(parents, noise))
    steady = contrasts * (even * near / spread + tied) / (even + tied)
    left = np.clip((parents + steady) / 2, 0.0, parents)
    for place, own in enumerate(edges):
        # nothing lies in a half without positions
        sizes = np.diff(own[:: own.size >> (level + 1)]).reshape(-1, 2)
        left[place] = np.where(sizes[:, 1] == 0, parents[place], np.where(sizes[:, 0] == 0, 0.0, left[place]))
    return np.stack((left, parents - left), axis=2).reshape(len(parents), -1)


def _means(
    positions: Sequence[Histogram],
    places: Sequence[NDArray[np.intp]],
    edges: Sequence[Integers],
    shares: Floats,
    layout: OneWay,
    currency: Currency,
    rows: Floats,
    account: Accountant,
) -> list[tuple[Floats, Floats]]:
    """Noisy offsets of the means of the finest intervals from their middles, and their noise."""
    exact = []
    for column, place, cuts in zip(positions, places, edges, strict=True):
        lows, highs = ends_of(cuts)
        which = np.repeat(np.arange(lows.size), np.diff(place))
        width = np.maximum(highs - lows, 1)[which]
        terms = np.rint((2 * column.ordered - (lows + highs)[which]) / width * SUM_PARTS)
        terms = np.clip(terms, -SUM_PARTS, SUM_PARTS)
        if column.counts is not None:
            terms = terms * column.counts
        exact.append(np.bincount(which, terms, minlength=lows.size).astype(np.int64))
    shape = Shape(1, len(exact), exact[0].size, unit=SUM_PARTS)
    spend = account.spend(OF_ONE, layout.sums, "sums inside intervals", over="intervals")
    noisy = currency.measure(np.stack(exact), shape, spend) / SUM_PARTS
    deviation = currency.deviation(shape, layout.sums) / SUM_PARTS
    found = []
    for own, sums, cuts, total in zip(shares, noisy, edges, rows, strict=True):
        weights = np.maximum(own * total, 1.0)
        lows, highs = ends_of(cuts)
        half = (highs - lows) / 2
        found.append((sums / weights * half, deviation / weights * half))
    return found


def _of_tree(edges: Integers, shares: Floats, offsets: Floats, noise: Floats, levels: int) -> Marginal:
    """An attribute from the shares of its intervals and noisy offsets of their means from their middles."""
    lows, highs = ends_of(edges)
    shares = shares / shares.sum()
    steady = steadied(offsets, noise, edges) / np.maximum(highs - lows, 1)
    fine = Fine(lows, highs, shares, slopes_for(0.5 + np.clip(steady, -0.5, 0.5)))
    kept = min(levels, PAIR_LEVELS)
    span = 1 << (levels - kept)
    tails = with_tails(fine, edges, (lows + highs) / 2 + offsets, noise)
    return Marginal(tails, shares.reshape(-1, span).sum(axis=1), kept, edges[::span])


def _shares(counts: Floats) -> Floats:
    lifted: Floats = counts + _LEAST
    return lifted / float(lifted.sum())
