"""Exact integer noise for vectors of blocks that all change with one record: block and elliptope noise.

One record changes every block a little, and all of them at once: an indicator that changes one entry of each block. The
density of the noise falls with the largest L1 norm of a block, not with their sum, so the cost does not grow with the
number of blocks.

A record with signs s adds the matrix s·sᵀ to the sums of products. All such matrices are correlation matrices (the
elliptope), a set far smaller than the cube they are corners of, and the noise is shaped to it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.errors import OptionError
from shoal.noise.discrete import Epsilon, check_staircase, discrete_staircase
from shoal.noise.entropy import Source
from shoal.noise.entropy import source as source_for
from shoal.noise.exact import (
    LARGEST_NUMERATOR,
    WORD,
    Exponentials,
    Uniforms,
    WeightedChoice,
    enclose_exp,
    exponentials,
    joined,
)

_ONE = Fraction(1)
_WORD = 64
# words of every real that are compared first; more follow until every entry is decided
_FIRSTWORDS = 2


def block_noise(
    sizes: Sequence[int],
    epsilon: Epsilon,
    source: Source | None = None,
    *,
    steps: Sequence[int] | None = None,
    draws: int | None = None,
) -> NDArray[np.int64]:
    """Integer noise with P(x) proportional to exp(-ε · max over blocks of ⌈‖x_b‖₁ / steps_b⌉), exactly.

    Args:
        sizes: the number of entries of each block.
        epsilon: the privacy budget of all blocks together; a Fraction of any size above 0 is exact.
        source: source of the bits; the operating system's entropy when absent.
        steps: L1 sensitivity of each block to one record; 1 when absent, 0 for a block that records cannot change.
        draws: number of independent vectors, one per row; absent: one vector.

    Returns:
        The entries of the blocks one after another.

    Raises:
        OptionError: a size or a step is invalid, or the noise would overflow the integers.

    Guarantee:
        Added to integer blocks of which block b changes by at most steps_b in L1 norm between neighbouring data
        sets, possibly all blocks at once, the result is ε-DP for that adjacency, with pure ε and no floating-point gap.

    Cost:
        Per vector, linear in the number of entries and in the longest block.

    Reference:
        docs/proofs/noise.md#record-noise; the thesis of CITATION.cff, chapter 4, for blocks of one entry.

    >>> block_noise([1, 1, 4], "0.5").shape, block_noise([2, 3], 1, steps=[0, 0]).tolist()
    ((6,), [0, 0, 0, 0, 0])
    """
    widths = [1] * len(sizes) if steps is None else list(steps)
    exact = _checked(sizes, widths, epsilon)
    bits = source_for(None) if source is None else source
    n = 1 if draws is None else draws
    places = np.cumsum([0, *sizes])
    found = np.zeros((n, int(places[-1])), dtype=np.int64)
    groups: dict[tuple[int, int], list[int]] = {}
    for number, (size, step) in enumerate(zip(sizes, widths, strict=True)):
        if size and step:
            groups.setdefault((int(size), int(step)), []).append(number)
    if groups:
        radius = _radius(tuple((size, step, len(blocks)) for (size, step), blocks in groups.items()), exact)
        levels = radius.draw(n, bits)
        for level in np.unique(levels).tolist():
            rows = np.flatnonzero(levels == level)[:, None, None]
            for (size, step), blocks in groups.items():
                entries = places[blocks][:, None] + np.arange(size)
                points = ball_points(size, step * level, rows.size * len(blocks), bits)
                found[rows, entries] = points.reshape(rows.size, len(blocks), size)
    return found[0] if draws is None else found


def block_deviations(
    sizes: Sequence[int], epsilon: float | Fraction, steps: Sequence[int] | None = None
) -> tuple[float, ...]:
    """The standard deviation of an entry of each block, by the limiting density of the integer noise as ε → 0.

    >>> [round(deviation, 2) for deviation in block_deviations([1, 1, 2], 0.5)]
    [6.32, 6.32, 4.47]
    """
    widths = [1] * len(sizes) if steps is None else steps
    entries = sum(size for size, step in zip(sizes, widths, strict=True) if step)
    spread = 2 * (entries + 1) * (entries + 2)
    return tuple(
        step * math.sqrt(spread / ((size + 1) * (size + 2))) / float(epsilon)
        for size, step in zip(sizes, widths, strict=True)
    )


def _checked(sizes: Sequence[int], steps: Sequence[int], epsilon: Epsilon) -> Fraction:
    if len(sizes) != len(steps) or any(size < 0 for size in sizes):
        raise OptionError("block-noise-needs-sizes-least-0")
    exact = check_staircase(0, epsilon)
    for step in steps:
        check_staircase(step, exact)
    # the largest norm is a sum of about `entries` exponential draws of scale step/ε
    if (sum(sizes) + 1) * max(steps, default=0) > LARGEST_NUMERATOR * exact:
        raise OptionError("block-noise-too-wide", entries=sum(sizes), epsilon=float(exact))
    return exact


def ball_size(size: int, radius: int) -> int:
    """Number of integer vectors of `size` entries with an L1 norm of at most `radius`.

    >>> ball_size(1, 5), ball_size(2, 2), ball_size(3, 1)
    (11, 13, 7)
    """
    return sum(_by_nonzeros(size, radius))


def _by_nonzeros(size: int, radius: int) -> list[int]:
    """Number of them with 0, 1, 2, ... nonzero entries: 2^j · C(size, j) · C(radius, j)."""
    counts, count = [1], 1
    for j in range(min(size, radius)):
        count = count * 2 * (size - j) * (radius - j) // (j + 1) ** 2
        counts.append(count)
    return counts


@dataclass(frozen=True)
class Radius:
    """The level R of a draw, with weight Π_b |ball of block b at R| · exp(-ε·R): a log-concave sequence.

    Attributes:
        groups: size, step and number of equal blocks.
        mode: the level of the largest weight.
        centre, reach: the weight at distance above `centre` from the mode is at most 1/e of the largest, and at
            most 1/e of that for every `reach` further: parameters of the proposal distribution.
    """

    groups: tuple[tuple[int, int, int], ...]
    epsilon: Fraction
    mode: int
    centre: int
    reach: int

    def draw(self, n: int, source: Source) -> NDArray[np.int64]:
        """n independent levels."""
        found = np.empty(n, dtype=np.int64)
        missing = np.arange(n)
        while missing.size:
            levels, kept = self.attempt(missing.size, source)
            found[missing[kept]] = levels[kept]
            missing = missing[~kept]
        return found

    def attempt(self, n: int, source: Source) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """n proposals, and which of them are accepted."""
        offsets = discrete_staircase(self.reach, _ONE, n, source, centre=self.centre)
        kept = offsets == 0
        for offset in np.unique(offsets[(offsets >= -self.mode) & ~kept]).tolist():
            places = np.flatnonzero(offsets == offset)
            kept[places] = _acceptance(self, offset).draw(places.size, source) == 0
        return self.mode + offsets, kept


@lru_cache(maxsize=1 << 12)
def _acceptance(radius: Radius, offset: int) -> WeightedChoice:
    """Acceptance coin: the weight at this offset over that of the mode, times e for every step of the staircase."""
    stair = max(-((radius.centre - abs(offset)) // radius.reach), 0)
    here, best = volume(radius.groups, radius.mode + offset), volume(radius.groups, radius.mode)
    return WeightedChoice(lambda bits: _cumulative(here, best, radius.epsilon * offset - stair, bits))


def _cumulative(here: int, best: int, exponent: Fraction, bits: int) -> tuple[list[int], list[int]]:
    """Bounds of here · exp(-exponent) and of best, in common units, in the form `WeightedChoice` takes."""
    # if the two are about equal, that many digits of the factor are 0
    bits += abs(here.bit_length() - best.bit_length())
    below, above = enclose_exp(abs(exponent), bits)
    if exponent >= 0:
        return [here * below, best << bits], [here * above, best << bits]
    return [here << bits, best * below], [here << bits, best * above]


@lru_cache(maxsize=1 << 12)
def volume(groups: tuple[tuple[int, int, int], ...], level: int) -> int:
    """Number of integer vectors at or below a level."""
    return math.prod(ball_size(size, step * level) ** count for size, step, count in groups)


@lru_cache(maxsize=256)
def _radius(groups: tuple[tuple[int, int, int], ...], epsilon: Fraction) -> Radius:
    """The mode of the weights and their decay, by exact comparisons; log-concavity implies the rest."""

    def falls(start: int, end: int, by: int) -> bool:
        """Whether the weight of `end` is at most exp(-by) times that of `start`; there are no levels below 0."""
        return end < 0 or _at_most(volume(groups, end), volume(groups, start), epsilon * (end - start) - by)

    mode = _first(lambda level: falls(level, level + 1, 0))
    centre = _first(lambda d: falls(mode, mode + d + 1, 1) and falls(mode, mode - d - 1, 1))
    right, left = mode + centre + 1, mode - centre - 1
    reach = 1 + _first(
        lambda d: falls(right, right + d + 1, 1) and (left < 0 or falls(left, left - d - 1, 1))
    )
    return Radius(groups, epsilon, mode, centre, reach)


def _first(holds: Callable[[int], bool]) -> int:
    """Smallest n >= 0 for which a monotone predicate holds."""
    high = 1
    while not holds(high - 1):
        high *= 2
    low = high // 2  # the predicate is false below
    high -= 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _at_most(here: int, best: int, exponent: Fraction) -> bool:
    """Whether here · exp(-exponent) <= best, to as many digits as needed, since exp of a rational is irrational."""
    if exponent == 0:
        return here <= best
    bits = _WORD
    while True:
        lower, upper = _cumulative(here, best, exponent, bits)
        if upper[0] <= lower[1]:
            return True
        if lower[0] > upper[1]:
            return False
        bits *= 2


def ball_points(size: int, radius: int, n: int, source: Source) -> NDArray[np.int64]:
    """n uniform integer vectors of `size` entries with an L1 norm of at most `radius`, exactly.

    The number of nonzero entries is drawn first, then their positions, then their magnitudes: the gaps of a uniform
    subset of 1 .. radius. Then their signs.
    """
    if size == 1:
        return (source.below(2 * radius + 1, n) - radius)[:, None]
    sums = np.cumsum(np.array(_by_nonzeros(size, radius), dtype=object)).tolist()
    count = np.array([bisect_right(sums, place) for place in _below(sums[-1], n, source)], dtype=np.int64)
    places, marks = subsets(size, count, source), subsets(radius, count, source)
    used = np.arange(places.shape[1]) < count[:, None]
    gaps = np.diff(marks, axis=1, prepend=0)[used]
    signs = 1 - 2 * source.digits(1, gaps.size).astype(np.int64)
    points = np.zeros((n, size), dtype=np.int64)
    points[np.nonzero(used)[0], places[used] - 1] = signs * gaps
    return points


def subsets(top: int, counts: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
    """A uniform subset of 1 .. top for every requested size, in increasing order, padded with top + 1.

    Floyd's algorithm: the i-th of c numbers is drawn below top - c + i; if already present, the bound itself is added.
    """
    width = int(counts.max(initial=0))
    found = np.full((counts.size, width), top + 1, dtype=np.int64)
    for i in range(width):
        rows = np.flatnonzero(counts > i)
        bound = top - counts[rows] + 1 + i
        drawn = source.below(bound, rows.size) + 1
        taken = (found[rows] == drawn[:, None]).any(axis=1)
        found[rows, i] = np.where(taken, bound, drawn)
    return np.sort(found, axis=1)


def _below(bound: int, n: int, source: Source) -> list[int]:
    """n uniform integers below a bound of any size."""
    if bound < 1 << 63:
        return [int(value) for value in source.below(bound, n)]
    words = -(-bound.bit_length() // _WORD)
    surplus = words * _WORD - bound.bit_length()
    found: list[int] = []
    while len(found) < n:
        drawn = source.words((n - len(found)) * words).astype("<u8")
        whole = (int.from_bytes(row.tobytes(), "little") >> surplus for row in drawn.reshape(-1, words))
        found += [value for value in whole if value < bound]
    return found


def elliptope_noise(signs: int, epsilon: Epsilon, source: Source | None = None) -> NDArray[np.int64]:
    """The matrix t₁R₁ - t₂R₂, rounded: t is Gamma distributed, R uniform over correlation matrices.

    Args:
        signs: d, the number of signs of a record.
        epsilon: the privacy budget of all products together; a Fraction of any size above 0 is exact.
        source: source of the bits; the operating system's entropy when absent.

    Returns:
        A symmetric d x d matrix. All entries of the diagonal are the same number, noise for the number of records.

    Raises:
        OptionError: ε is not above 0, or d is not at least 1, or the noise would overflow the integers.

    Guarantee:
        Added to Σ s·sᵀ over records with signs s in {-1, 1}^d, the result is ε-DP under add-remove (2ε under
        replace-one): every entry is the rounding of the ideal real number, computed to as many digits as that takes.

    Cost:
        d³ products of 128-bit integers: a tenth of a second for d = 60.

    Reference:
        docs/proofs/noise.md#record-noise.

    >>> noise = elliptope_noise(4, "0.5")
    >>> noise.shape, bool((noise == noise.T).all()), len(set(noise.diagonal().tolist()))
    ((4, 4), True, 1)
    """
    exact = check_staircase(0, epsilon)
    if isinstance(signs, bool) or not isinstance(signs, int | np.integer) or signs < 1:
        raise OptionError("elliptope-noise-needs-whole-number-signs", found=signs)
    d = int(signs)
    products = d * (d - 1) // 2
    if products + 2 > LARGEST_NUMERATOR * exact:
        raise OptionError("elliptope-noise-signs-epsilon-larger-than", signs=d, epsilon=float(exact))
    bits = source_for(None) if source is None else source
    plus, minus = (_Half.draw(d, products + 1, bits) for _ in range(2))
    words = _FIRSTWORDS
    while (found := _rounded(plus, minus, exact, words)) is None:
        words *= 2
    return found


def elliptope_deviation(signs: int, epsilon: float | Fraction) -> float:
    """The standard deviation of a product's noise before rounding.

    >>> round(elliptope_deviation(10, 1), 1)
    19.8
    """
    products = signs * (signs - 1) // 2
    return math.sqrt(2 * (products + 1) * (products + 2) / (signs + 1)) / float(epsilon)


@internal()
@dataclass(frozen=True, eq=False)
class _Half:
    """ε·t and the vectors behind R: d uniform unit vectors in d + 1 dimensions, whose products are R.

    A unit vector consists of points of circles, two coordinates each. The squared radii are the gaps between sorted
    uniform reals, and the position on the circle is the direction of a uniform point of the disc. For an odd number of
    dimensions, the last coordinate is dropped and the rest normalised again.
    """

    d: int
    size: Exponentials
    cuts: Uniforms
    across: Uniforms
    up: Uniforms
    signs: NDArray[np.bool_]

    @classmethod
    def draw(cls, d: int, shape: int, source: Source) -> _Half:
        circles = (d + 2) // 2
        across, up = disc_points(d * circles, source)
        return cls(
            d,
            exponentials(shape, source),
            Uniforms(d * (circles - 1), source),
            across,
            up,
            source.digits(1, d * circles * 2).astype(np.bool_),
        )

    def matrix(self, words: int) -> tuple[NDArray[Any], int] | None:
        """ε·t·R as integers in units of 2^-(64·words), with a bound of their error.

        None if so few words determine nothing.
        """
        unit = words * WORD
        one = 1 << unit
        circles = (self.d + 2) // 2
        cuts = np.array(self.cuts.leading(words), dtype=object).reshape(self.d, circles - 1)
        across, up = self.across.leading(words), self.up.leading(words)
        entries: list[int] = []
        widest = 1
        for row in range(self.d):
            # the sorted lower ends are lower ends of the sorted reals
            marks = [0, *sorted(cuts[row].tolist()), one]
            for circle in range(circles):
                gap = marks[circle + 1] - marks[circle]
                place = row * circles + circle
                x, y = across[place], up[place]
                low, high = x * x + y * y, (x + 1) ** 2 + (y + 1) ** 2
                for side in (x, y):
                    # sqrt(gap · side² / (x² + y²)), between the worst ends of all three
                    lower = math.isqrt((max(gap - 1, 0) * side * side << unit) // high)
                    upper = (
                        min(math.isqrt(((gap + 1) * (side + 1) ** 2 << unit) // low) + 1, one) if low else one
                    )
                    entries.append(lower)
                    widest = max(widest, upper - lower)
        signed = np.where(self.signs, -np.array(entries, dtype=object), np.array(entries, dtype=object))
        vectors = signed.reshape(self.d, 2 * circles)[:, : self.d + 1]
        # every coordinate is at most 1, with an error of at most `widest`
        wrong = (self.d + 1) * (2 * widest * one + widest * widest)
        return _scaled(vectors.dot(vectors.T), wrong, self.size.total(words), unit)


def _scaled(
    gram: NDArray[Any], wrong: int, size: tuple[int, int], unit: int
) -> tuple[NDArray[Any], int] | None:
    """Products of vectors, in units of 2^-(2·unit) with error at most `wrong`, over their lengths, times a size."""
    squares = [int(square) for square in gram.diagonal()]
    shortest = math.isqrt(max(min(squares) - wrong, 0))
    if shortest == 0:
        return None
    lengths = np.array([math.isqrt(square) for square in squares], dtype=object)
    total, missing = size
    scaled = ((gram << unit) // np.outer(lengths, lengths)) * total >> unit
    np.fill_diagonal(scaled, total)
    # the error of a length is wrong / (sum of the true and the computed one), plus less than 1 from the square root
    off = wrong // shortest + 2
    product = off * (2 * int(lengths.max()) + off)
    # a'/b' - a/b = ((a' - a) + (a/b)(b - b'))/b', and |a/b| is at most 1
    ratio = ((wrong + product) << unit) // shortest**2 + 2
    return scaled, (ratio * total >> unit) + missing + 2


def _rounded(plus: _Half, minus: _Half, epsilon: Fraction, words: int) -> NDArray[np.int64] | None:
    """Integers nearest to the difference over ε, or None if an entry is not decided yet."""
    known, also_known = plus.matrix(words), minus.matrix(words)
    if known is None or also_known is None:
        return None
    (first, wrong), (second, also_wrong) = known, also_known
    one = 1 << words * WORD
    slack = wrong + also_wrong
    above, under = epsilon.denominator, 2 * one * epsilon.numerator
    # ⌊z/ε + 1/2⌋ at both ends of the interval that contains z
    difference = first - second
    low = ((difference - slack) * (2 * above) + one * epsilon.numerator) // under
    high = ((difference + slack) * (2 * above) + one * epsilon.numerator) // under
    return low.astype(np.int64) if (low == high).all() else None


def disc_points(n: int, source: Source) -> tuple[Uniforms, Uniforms]:
    """n uniform points of the quarter of the unit disc with coordinates in [0, 1), by rejection from the square."""
    kept: list[tuple[Uniforms, Uniforms]] = []
    missing = n
    while missing:
        across, up = Uniforms(missing, source), Uniforms(missing, source)
        inside = np.flatnonzero(_inside(across, up))
        kept.append((across.picked(inside), up.picked(inside)))
        missing -= inside.size
    return joined([x for x, _ in kept]), joined([y for _, y in kept])


def _inside(across: Uniforms, up: Uniforms) -> NDArray[np.bool_]:
    """Which points are inside the unit circle, compared to as many words as needed."""
    result = np.zeros(across.n, dtype=np.bool_)
    open_ended, words = list(range(across.n)), 1
    while open_ended:
        x, y = across.leading(words), up.leading(words)
        one = 1 << 2 * words * WORD
        for i in open_ended:
            result[i] = (x[i] + 1) ** 2 + (y[i] + 1) ** 2 <= one
        open_ended = [i for i in open_ended if not result[i] and x[i] ** 2 + y[i] ** 2 < one]
        words += 1
    return result
