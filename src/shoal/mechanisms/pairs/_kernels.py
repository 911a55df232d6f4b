"""Compiled loops over synthetic rows: draw bins from a mixture, fit them to goals, place values inside bins.

Randomness is a counter hashed by splitmix64, from a seed drawn by the caller; no records are involved.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.kernels import compiled
from shoal.numbers import Floats, Integers

Codes = NDArray[np.uint8]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_ONE, _TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@compiled
def turned(state: Any) -> Any:
    """A pseudorandom word for a counter."""
    word = (state ^ (state >> np.uint64(30))) * _ONE
    word = (word ^ (word >> np.uint64(27))) * _TWO
    return word ^ (word >> np.uint64(31))


@compiled
def uniform(state: Any) -> float:
    """A pseudorandom number in (0, 1) for a counter."""
    return (float(turned(state) >> np.uint64(11)) + 0.5) * 2.0**-53


@compiled
def draw_rows(sizes: Integers, bins: Floats, starts: Integers, seed: Any) -> Codes:
    """Bins of all rows, class by class: in each class every attribute's bins in proportion, in random order."""
    rows, attributes = int(sizes.sum()), starts.size - 1
    found = np.zeros((rows, attributes), dtype=np.uint8)
    state = seed
    first = 0
    for c in range(sizes.size):
        size = sizes[c]
        if size == 0:
            continue
        for a in range(attributes):
            low, high = starts[a], starts[a + 1]
            state += _STEP
            offset = uniform(state)
            running = bins[c, low]
            code = 0
            for i in range(size):
                wanted = (i + offset) / size
                while running < wanted and low + code < high - 1:
                    code += 1
                    running += bins[c, low + code]
                found[first + i, a] = code
            for i in range(size - 1, 0, -1):
                state += _STEP
                j = int(uniform(state) * (i + 1))
                kept = found[first + i, a]
                found[first + i, a] = found[first + j, a]
                found[first + j, a] = kept
        first += size
    return found


@compiled
def polish(
    codes: Codes,
    starts: Integers,
    middles: Integers,
    goals: Floats,
    stride: int,
    sweeps: int,
    triples: Integers,
    products: Floats,
) -> int:
    """Change single values of rows while that brings the counts of pairs and of single attributes closer to goals.

    The objective is the sum over all cells of (count - goal)² / (goal + 1), ignoring cells without a goal (below
    0), plus the sum over all triples of (sum of products of signs - goal)² / rows: as much as the same of their eight
    cells would be, if pairs are right. Rows are visited `stride` apart, attributes in turn, and a value becomes the one
    with the largest improvement.

    Args:
        codes: bins of the rows; changed.
        middles: the first bin of the second half of each attribute.
        goals: (all bins, all bins), symmetric, of single attributes on the diagonal.
        triples: three attributes each or more, filled up with -1.
        products: target sums of the products of their signs.

    Returns:
        The number of changes.
    """
    rows, attributes = codes.shape
    total = starts[attributes]
    # the cost of one more row in a cell; one less costs 2·weight - that
    more = np.zeros((total, total))
    weight = np.zeros((total, total))
    for i in range(total):
        for j in range(total):
            if goals[i, j] >= 0:
                weight[i, j] = 1 / (goals[i, j] + 1)
                more[i, j] = weight[i, j] * (1 - 2 * goals[i, j])
    here = np.zeros(attributes, dtype=np.int64)
    for r in range(rows):
        for a in range(attributes):
            here[a] = starts[a] + codes[r, a]
        for a in range(attributes):
            for b in range(a + 1):
                more[here[a], here[b]] += 2 * weight[here[a], here[b]]
    for i in range(total):
        for j in range(i):
            more[j, i] = more[i, j]
    # of single attributes, in one piece that is read faster than the diagonal
    single = np.diag(more).copy()
    # excess of the sums of products over their goals, and the products of the current row
    above, own = -products, np.zeros(products.size)
    among = np.zeros((products.size, attributes), dtype=np.bool_)
    for t in range(products.size):
        for a in triples[t]:
            if a >= 0:
                among[t, a] = True
    for r in range(rows if products.size else 0):
        for t in range(products.size):
            above[t] += _product(codes, r, middles, triples[t])
    cost = np.zeros(total)
    changes = 0
    r = 0
    for _ in range(sweeps):
        moved = 0
        for _ in range(rows):
            r = (r + stride) % rows
            for a in range(attributes):
                here[a] = starts[a] + codes[r, a]
            for a in range(attributes):
                low, high = starts[a], starts[a + 1]
                if high - low < 2:
                    continue
                old = here[a]
                bins = high - low
                for i in range(bins):
                    cost[i] = single[low + i]
                leaving = 2 * weight[old, old] - single[old]
                for b in range(attributes):
                    if b != a:
                        j = here[b]
                        leaving += 2 * weight[j, old] - more[j, old]
                        # indices without a sign need no check, and the additions are vectorised
                        line, base = np.uint64(j), np.uint64(low)
                        for i in range(bins):
                            cost[i] += more[line, base + np.uint64(i)]
                half = low + middles[a]
                for t in range(products.size):
                    if among[t, a]:
                        own[t] = _product(codes, r, middles, triples[t])
                        flipped = 4 * (1 - own[t] * above[t]) / rows
                        for i in range(bins):
                            if (low + i < half) != (old < half):
                                cost[i] += flipped
                best, least = old, -leaving - 1e-9
                cost[old - low] = np.inf
                for i in range(bins):
                    if cost[i] < least:
                        best, least = low + i, cost[i]
                if best != old:
                    moved += 1
                    if (best < half) != (old < half):
                        for t in range(products.size):
                            if among[t, a]:
                                above[t] -= 2 * own[t]
                    single[old] -= 2 * weight[old, old]
                    single[best] += 2 * weight[best, best]
                    for b in range(attributes):
                        if b != a:
                            j = here[b]
                            more[j, old] -= 2 * weight[j, old]
                            more[old, j] = more[j, old]
                            more[j, best] += 2 * weight[j, best]
                            more[best, j] = more[j, best]
                    here[a] = best
                    codes[r, a] = best - low
        changes += moved
        if moved * 200 < rows:
            break
    return changes


@compiled
def _product(codes: Codes, row: int, middles: Integers, triple: Integers) -> float:
    """The product of the signs of some attributes in a row."""
    found = 1.0
    for a in triple:
        if a >= 0 and int(codes[row, a]) >= middles[a]:
            found = -found
    return found


@compiled
def fit_table(
    table: Floats,
    rows: Floats,
    columns: Floats,
    levels: Integers,
    blocks: Integers,
    contrasts: Floats,
    least: Floats,
    passes: int,
    rakes: int,
) -> None:
    """Tilt a table of two attributes until it has these contrasts, block by block, raking to the shares in between.

    In every node of a block (a node of one attribute and one of the other) the cells in which both functions have
    the same sign grow by one factor and the others shrink by another, so that the node keeps its sum. A node of which
    one half is smaller than the noise is left out: coarser contrasts have determined its own already, with less noise.

    Args:
        table: changed.
        levels: of the trees of both attributes.
        blocks: for each, the levels of its functions (-1 for names, whose function is 1) and where its contrasts begin.
        least: for each, the smallest half whose contrasts are followed.
    """
    first, second = table.shape
    for _ in range(passes):
        for k in range(len(blocks)):
            level, depth, begin = blocks[k, 0], blocks[k, 1], blocks[k, 2]
            above = first if level < 0 else 1 << level
            below = second if depth < 0 else 1 << depth
            if level < 0 and depth < 0:
                for i in range(first):
                    for j in range(second):
                        table[i, j] = max(contrasts[begin + i * second + j], 1e-9)
            else:
                inner = _smaller_halves(rows, levels[0], level, above)
                outer = _smaller_halves(columns, levels[1], depth, below)
                alike, unlike = np.zeros((above, below)), np.zeros((above, below))
                for i in range(first):
                    node, side = _node(i, levels[0], level)
                    for j in range(second):
                        other, turn = _node(j, levels[1], depth)
                        if side == turn:
                            alike[node, other] += table[i, j]
                        else:
                            unlike[node, other] += table[i, j]
                for node in range(above):
                    for other in range(below):
                        plus, minus = alike[node, other], unlike[node, other]
                        if (
                            min(inner[node, 1] * outer[other, 0], inner[node, 0] * outer[other, 1])
                            <= least[k]
                        ):
                            alike[node, other] = unlike[node, other] = 1.0
                            continue
                        if plus <= 1e-9 or minus <= 1e-9:
                            # cells of one sign only: the other cannot grow
                            alike[node, other] = unlike[node, other] = 1.0
                            continue
                        both = plus + minus
                        wanted = (both + contrasts[begin + node * below + other]) / 2
                        wanted = min(max(wanted, 0.005 * both), 0.995 * both)
                        alike[node, other] = wanted / plus
                        unlike[node, other] = (both - wanted) / minus
                for i in range(first):
                    node, side = _node(i, levels[0], level)
                    for j in range(second):
                        other, turn = _node(j, levels[1], depth)
                        factor = alike[node, other] if side == turn else unlike[node, other]
                        table[i, j] = max(table[i, j] * factor, 1e-12)
            rake_table(table, rows, columns, rakes)


@compiled
def _smaller_halves(shares: Floats, levels: int, level: int, nodes: int) -> Floats:
    """Shares of nodes and of the smaller half of each; names are not halved, and count as a whole."""
    halves = np.zeros((nodes, 2))
    for place in range(shares.size):
        node, side = _node(place, levels, level)
        halves[node, side] += shares[place]
    found = np.empty((nodes, 2))
    for node in range(nodes):
        left, right = halves[node, 0], halves[node, 1]
        found[node, 0] = left + right
        found[node, 1] = left + right if level < 0 else min(left, right)
    return found


@compiled
def _node(place: int, levels: int, level: int) -> tuple[int, int]:
    """The node of a level that contains a bin, and which half of it; for names, the name itself."""
    if level < 0:
        return place, 0
    return place >> (levels - level), place >> (levels - level - 1) & 1


@compiled
def rake_table(table: Floats, rows: Floats, columns: Floats, rounds: int) -> None:
    """Scale a table alternately to the shares of its rows and columns; changed."""
    first, second = table.shape
    for _ in range(rounds):
        for i in range(first):
            total = 0.0
            for j in range(second):
                total += table[i, j]
            for j in range(second):
                table[i, j] *= rows[i] / max(total, 1e-300)
        for j in range(second):
            total = 0.0
            for i in range(first):
                total += table[i, j]
            for i in range(first):
                table[i, j] *= columns[j] / max(total, 1e-300)


@compiled
def normal_quantile(p: float) -> float:
    """The standard normal quantile, to about nine digits (Acklam's rational functions)."""
    if p < 0.02425:
        q = math.sqrt(-2 * math.log(p))
        above = ((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838) * q - 2.549732539343734) * q + 4.374664141464968) * q + 2.938163982698783  # fmt: skip # noqa: E501
        under = (((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996) * q + 3.754408661907416) * q + 1  # fmt: skip # noqa: E501
        return above / under
    if p > 1 - 0.02425:
        return -normal_quantile(1 - p)
    q = p - 0.5
    r = q * q
    above = (((((-3.969683028665376e01 * r + 2.209460984245205e02) * r - 2.759285104469687e02) * r + 1.383577518672690e02) * r - 3.066479806614716e01) * r + 2.506628277459239) * q  # fmt: skip # noqa: E501
    under = ((((-5.447609879822406e01 * r + 1.615858368580409e02) * r - 1.556989798598866e02) * r + 6.680131188771972e01) * r - 1.328068155288572e01) * r + 1  # fmt: skip # noqa: E501
    return above / under


@compiled
def normal_below(x: float) -> float:
    return 0.5 * math.erfc(-x * 0.7071067811865476)


@compiled
def truncated_normal(mean: float, spread: float, low: float, high: float, level: float) -> float:
    """The quantile at a level of a normal variable conditioned on lying between two bounds."""
    lower, upper = (low - mean) / spread, (high - mean) / spread
    mirrored = lower > 0
    if mirrored:
        # small probabilities are exact, those near one are not
        lower, upper = -upper, -lower
        level = 1 - level
    begin, end = normal_below(lower), normal_below(upper)
    p = begin + level * (end - begin)
    # numerically out of reach: the end nearest to the mean
    reached = p >= 1e-300 and end - begin >= 1e-300
    found = normal_quantile(min(p, 1 - 1e-16)) if reached else upper
    found = min(max(found, lower), upper)
    return mean + spread * (-found if mirrored else found)


# The normal distribution function at points from -_REACH to _REACH, between which its density is taken as constant, and
# for each of many levels the last point below it.
_REACH, _FINE, _GUIDES = 8, 64, 4096
_BELOW = np.array(
    [0.5 * math.erfc(-(i / _FINE - _REACH) * math.sqrt(0.5)) for i in range(2 * _REACH * _FINE + 1)]
)
_GUIDE = np.maximum(np.searchsorted(_BELOW, np.arange(_GUIDES + 1) / _GUIDES, side="right") - 1, 0).astype(
    np.uint64
)
# indices without a sign need no check
_LAST, _NEXT = np.uint64(_BELOW.size - 2), np.uint64(1)
# Intervals that begin further out are placed by the exact quantile.
_FAR_OUT = 5.0
# Rows that are placed together, so that their arithmetic is vectorised.
_TILE = 256


@compiled(inline=True)
def _in_table(x: float) -> float:
    """The place of a number in the table: a point and a part of the way to the next one."""
    return (min(max(x, -8.0), 8.0) + _REACH) * _FINE


@compiled(inline=True)
def between(lower: Floats, upper: Floats, levels: Floats, found: Floats) -> None:
    """Quantiles at these levels of standard normal variables conditioned on lying between two bounds, from a table.

    Args:
        levels: changed where the table is used.
        found: gets the quantiles.
    """
    # without a branch, so that it is vectorised
    for r in range(found.size):
        low, high = _in_table(lower[r]), _in_table(upper[r])
        first, last = min(np.uint64(low), _LAST), min(np.uint64(high), _LAST)
        begin = _BELOW[first] + (low - first) * (_BELOW[first + _NEXT] - _BELOW[first])
        end = _BELOW[last] + (high - last) * (_BELOW[last + _NEXT] - _BELOW[last])
        reached = lower[r] <= _FAR_OUT and upper[r] >= -_FAR_OUT
        levels[r] = begin + levels[r] * (end - begin) if reached else levels[r]
    for r in range(found.size):
        if lower[r] > _FAR_OUT or upper[r] < -_FAR_OUT:
            found[r] = truncated_normal(0.0, 1.0, lower[r], upper[r], levels[r])
            continue
        p = levels[r]
        last = min(np.uint64(_in_table(upper[r])), _LAST)
        place = max(min(np.uint64(_in_table(lower[r])), _LAST), _GUIDE[np.uint64(p * _GUIDES)])
        while place < last and _BELOW[place + _NEXT] <= p:
            place += _NEXT
        width = _BELOW[place + _NEXT] - _BELOW[place]
        inside = (p - _BELOW[place]) / width if width > 0 else 0.5
        found[r] = min(max((place + inside) / _FINE - _REACH, lower[r]), upper[r])


@compiled
def place_latent(
    codes: Codes, columns: Integers, cuts: Floats, root: Floats, precision: Floats, sweeps: int, seed: Any
) -> Floats:
    """Latent normals of the rows, inside the bins of their attributes: one after the other, then by Gibbs sampling.

    Args:
        columns: the attributes that have a latent normal.
        cuts: (attributes, most bins + 1) bin boundaries of each of them.
        root: lower triangular Cholesky factor of the correlations of the latent normals.
        precision: inverse of the correlations.
    """
    rows, number = codes.shape[0], columns.size
    found = np.zeros((rows, number))
    low, high = np.zeros((number, _TILE)), np.zeros((number, _TILE))
    placed, own = np.zeros((number, _TILE)), np.zeros((number, _TILE))
    mean, lower, upper = np.zeros(_TILE), np.zeros(_TILE), np.zeros(_TILE)
    level, score = np.zeros(_TILE), np.zeros(_TILE)
    state = seed
    for first in range(0, rows, _TILE):
        size = min(_TILE, rows - first)
        for k in range(number):
            for r in range(size):
                code = codes[first + r, columns[k]]
                low[k, r], high[k, r] = cuts[k, code], cuts[k, code + 1]
        for sweep in range(sweeps + 1):
            for k in range(number):
                mean[:] = 0.0
                # at first given those before, by independent normals; then given all others
                spread = root[k, k] if sweep == 0 else 1 / math.sqrt(precision[k, k])
                for j in range(k if sweep == 0 else number):
                    if j != k:
                        weight = root[k, j] if sweep == 0 else -precision[k, j] / precision[k, k]
                        line = own[j] if sweep == 0 else placed[j]
                        for r in range(_TILE):
                            mean[r] += weight * line[r]
                for r in range(_TILE):
                    lower[r], upper[r] = (low[k, r] - mean[r]) / spread, (high[k, r] - mean[r]) / spread
                for r in range(_TILE):
                    level[r] = uniform(state + np.uint64(r + 1) * _STEP)
                state += np.uint64(size) * _STEP
                between(lower, upper, level, score)
                if sweep == 0:
                    own[k] = score
                for r in range(_TILE):
                    placed[k, r] = min(max(mean[r] + spread * score[r], low[k, r]), high[k, r])
        for r in range(size):
            for k in range(number):
                found[first + r, k] = placed[k, r]
    return found


def _products_by_blas(values: Floats) -> Floats:
    """The same by the BLAS library that numba calls; numpy uses another one, whose sums differ in the last bits."""
    from scipy.linalg.blas import dgemm

    found: Floats = dgemm(1.0, values.T, values.T, trans_b=True).T
    return found


@compiled(uncompiled=_products_by_blas)
def products_of(values: Floats) -> Floats:
    """Sums over the rows of the products of all pairs of columns."""
    return values.T @ values


@compiled
def order_of(codes: Integers) -> Integers:
    """Indices that sort the codes in ascending order, ties in an order determined by the codes alone.

    Quicksort with the median of three as pivot, the smaller part first, and short parts by insertion.
    """
    order = np.arange(codes.size)
    waiting = np.empty((128, 2), dtype=np.int64)
    waiting[0, 0], waiting[0, 1] = 0, codes.size - 1
    number = 1
    while number > 0:
        number -= 1
        low, high = waiting[number, 0], waiting[number, 1]
        while high - low >= 15:
            at = _parted(codes, order, low, high)
            if high - at > at - low:
                if high > at:
                    waiting[number, 0], waiting[number, 1] = at + 1, high
                    number += 1
                high = at - 1
            else:
                if at > low:
                    waiting[number, 0], waiting[number, 1] = low, at - 1
                    number += 1
                low = at + 1
        for place in range(low + 1, high + 1):
            moved = order[place]
            while place > low and codes[moved] < codes[order[place - 1]]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = moved
    return order


@compiled
def _parted(codes: Integers, order: Integers, low: int, high: int) -> int:
    """Move the median of the first, middle and last code to its place, smaller codes before and larger ones after."""
    middle = (low + high) >> 1
    for first, second in ((low, middle), (middle, high), (low, middle)):
        if codes[order[second]] < codes[order[first]]:
            order[first], order[second] = order[second], order[first]
    pivot = codes[order[middle]]
    order[high], order[middle] = order[middle], order[high]
    up, down = low, high - 1
    while True:
        while up < high and codes[order[up]] < pivot:
            up += 1
        while down >= low and pivot < codes[order[down]]:
            down -= 1
        if up >= down:
            break
        order[up], order[down] = order[down], order[up]
        up += 1
        down -= 1
    order[up], order[high] = order[high], order[up]
    return up


@compiled
def exchange(
    values: Floats,
    positions: Floats,
    codes: Integers,
    columns: Integers,
    wanted: Floats,
    weights: Floats,
    sweeps: int,
    seed: Any,
) -> None:
    """Exchange values between rows of one bin while that brings mean products of columns closer to their targets.

    The objective is the sum over all pairs of columns of weight · (mean product - target)².

    Args:
        values: numbers that are multiplied; changed.
        positions: moved together with the values; changed.
        codes: bins; below 0 where a row has no value.
        columns: those whose values are exchanged.
    """
    rows, number = values.shape
    missed = products_of(values) / rows - wanted
    change = np.zeros(number)
    state = seed
    for _ in range(sweeps):
        moved = 0
        for a in columns:
            order = order_of(codes[:, a])
            first = 0
            while first < rows:
                code = codes[order[first], a]
                last = first
                while last < rows and codes[order[last], a] == code:
                    last += 1
                size = last - first
                for place in range(first, last if code >= 0 and size > 1 else first):
                    state += _STEP
                    i, j = order[place], order[first + int(uniform(state) * size)]
                    step = (values[j, a] - values[i, a]) / rows
                    if step == 0.0:
                        continue
                    gain = 0.0
                    for b in range(number):
                        if b != a:
                            change[b] = step * (values[i, b] - values[j, b])
                            gain += weights[a, b] * change[b] * (2 * missed[a, b] + change[b])
                    if gain < 0:
                        moved += 1
                        for b in range(number):
                            if b != a:
                                missed[a, b] += change[b]
                                missed[b, a] = missed[a, b]
                        values[i, a], values[j, a] = values[j, a], values[i, a]
                        positions[i, a], positions[j, a] = positions[j, a], positions[i, a]
                first = last
        if moved * 1000 < rows:
            break
