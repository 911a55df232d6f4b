"""Elliptope noise on sums of sign products. In: a number of signs, one ε and a source. Out: an exact int64 matrix.

One record with signs s adds the matrix s·sᵀ to the sums of products. All such matrices are correlation matrices (the
elliptope), a set far smaller than the cube they are corners of, and the noise is fitted to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.errors import OptionError
from shoal.noise.entropy import Source
from shoal.noise.entropy import source as source_for
from shoal.noise.reals import WORD, Exponentials, Uniforms, exponentials, joined
from shoal.noise.scale import LARGEST_NUMERATOR
from shoal.noise.staircase import Epsilon, check_staircase

# words of every real that are looked at first; more follow until every entry is decided
_FIRSTWORDS = 2


def elliptope_noise(signs: int, epsilon: Epsilon, source: Source | None = None) -> NDArray[np.int64]:
    """The matrix t₁R₁ - t₂R₂, rounded: t is Gamma distributed, R uniform over correlation matrices.

    Args:
        signs: d, the number of signs of a record.
        epsilon: the privacy budget of all products together; a Fraction of any size above 0 is exact.
        source: where the bits come from; the operating system's entropy when absent.

    Returns:
        A symmetric d x d matrix. All entries of the diagonal are the same number, noise for the number of records.

    Raises:
        OptionError: ε is not above 0, or d is not at least 1, or the noise would leave the range of whole numbers.

    Guarantee:
        Added to Σ s·sᵀ over records with signs s in {-1, 1}^d, the result is ε-DP where a record is added or removed
        (2ε where one is replaced): every entry is the rounding of the ideal real number, as many digits of it are
        computed as that takes.

    Cost:
        d³ products of whole numbers of 128 bits: a tenth of a second for d = 60.

    Reference:
        docs/proofs/record-noise.md.

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
    """ε·t and what R is made of: d uniform unit vectors in d + 1 dimensions, whose products are R.

    A unit vector is made of points of circles, two coordinates each. The squared radii are the gaps between sorted
    uniform reals, and the place on the circle is the direction of a uniform point of the disc. Where the number of
    dimensions is odd, the last coordinate is left out and the rest made a unit vector again.
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
        """ε·t·R in units of 2^-(64·words): whole numbers, and by how much any of them may be wrong.

        None where so few words tell nothing.
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
        # every coordinate is at most 1 and wrong by `widest` at most
        wrong = (self.d + 1) * (2 * widest * one + widest * widest)
        return _scaled(vectors.dot(vectors.T), wrong, self.size.total(words), unit)


def _scaled(
    gram: NDArray[Any], wrong: int, size: tuple[int, int], unit: int
) -> tuple[NDArray[Any], int] | None:
    """Products of vectors, in units of 2^-(2·unit) and wrong by at most `wrong`, over their lengths, times a size."""
    squares = [int(square) for square in gram.diagonal()]
    shortest = math.isqrt(max(min(squares) - wrong, 0))
    if shortest == 0:
        return None
    lengths = np.array([math.isqrt(square) for square in squares], dtype=object)
    total, missing = size
    scaled = ((gram << unit) // np.outer(lengths, lengths)) * total >> unit
    np.fill_diagonal(scaled, total)
    # a length is off by wrong / (sum of the true and the computed one) and less than 1 from the square root
    off = wrong // shortest + 2
    product = off * (2 * int(lengths.max()) + off)
    # a'/b' - a/b = ((a' - a) + (a/b)(b - b'))/b', and |a/b| is at most 1
    ratio = ((wrong + product) << unit) // shortest**2 + 2
    return scaled, (ratio * total >> unit) + missing + 2


def _rounded(plus: _Half, minus: _Half, epsilon: Fraction, words: int) -> NDArray[np.int64] | None:
    """Whole numbers nearest to the difference over ε, or None where an entry is not decided yet."""
    known, also_known = plus.matrix(words), minus.matrix(words)
    if known is None or also_known is None:
        return None
    (first, wrong), (second, also_wrong) = known, also_known
    one = 1 << words * WORD
    slack = wrong + also_wrong
    above, under = epsilon.denominator, 2 * one * epsilon.numerator
    # ⌊z/ε + 1/2⌋ at both ends of what z may be
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
    """Which points are nearer to the origin than 1; as many words are looked at as it takes."""
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
