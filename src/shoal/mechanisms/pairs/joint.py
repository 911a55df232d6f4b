"""Joint tails. In: single attributes that are measured, a share of the budget. Out: rows whose tails go together.

Bins of equal counts say nothing about which large values stand beside which, and correlations of numbers with heavy
tails depend on just that. For pairs with a heavy attribute one more number is measured, the sum of products of values
about their means; values are then exchanged between rows of one bin until the rows have these sums, which leaves
marginals and tables of bins as they are. All but `exact_products` is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from shoal.display import internal
from shoal.mechanisms.pairs._kernels import exchange
from shoal.mechanisms.pairs.currency import Currency, Shape
from shoal.mechanisms.pairs.gaps import ABSENT
from shoal.mechanisms.pairs.marginal import Marginal
from shoal.mechanisms.pairs.plan import OF_TWO
from shoal.noise import Source
from shoal.privacy import Accountant

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# What it gets of the budget of pairs, where a column is heavy.
SHARE = Fraction(1, 5)
# Values are measured in so many parts of the reach of their attribute.
_PARTS = 1 << 10
# A distribution is heavy where its quantiles follow normal ones with a smaller correlation than this.
_NORMAL = 0.9
# Reaches that are tried, the widest first: quantiles of the distance from the mean.
_REACHES = (1.0, 0.998, 0.995, 0.99)
# Noise on a correlation: this much is wanted, and with more than that nothing is measured.
_WANTED, TOO_MUCH = 0.03, 0.06
_LEVELS = (np.arange(4096) + 0.5) / 4096
_SWEEPS = 20
# Values are exchanged in bins with more than this part of all that values of an attribute vary inside bins.
_WIDE = 0.1
# Records that are multiplied at a time; their sums are whole numbers that floats hold exactly.
_RUN = 1 << 16


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Clipped:
    """Which products are measured, from what is released already.

    Attributes:
        columns: attributes that take part.
        heavy: places among them of those whose values are exchanged.
        middles, reaches: where the values of each are clipped: middle ± reach.
        spreads: root of the mean square of the clipped values, of the released distribution.
        firsts, seconds: places of the attributes of every pair.
        share: what they cost.
        noise: standard deviation of a mean product.
    """

    columns: tuple[int, ...]
    heavy: tuple[int, ...]
    middles: Floats
    reaches: Floats
    spreads: Floats
    firsts: Integers
    seconds: Integers
    share: Fraction
    noise: float

    @property
    def shape(self) -> Shape:
        return Shape(1, self.firsts.size, 1, unit=_PARTS**2)

    def values(self, positions: Floats | Integers, place: int) -> Floats:
        """Values from -1 to 1; missing ones are 0."""
        inside = np.clip((positions - self.middles[place]) / self.reaches[place], -1.0, 1.0)
        return np.where(positions == ABSENT, 0.0, inside)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """Measured products: means over rows."""

    clipped: Clipped
    products: Floats


def tails_possible(currency: Currency, ordered: int, pairs: Fraction, rows: float) -> bool:
    """Whether products may be measured at all, from public facts: not where noise is too large for any values."""
    if ordered < 2 or not pairs:
        return False
    # one heavy column at least, and a mean square of 1 at most
    return currency.deviation(Shape(1, ordered - 1, 1), pairs * SHARE) <= TOO_MUCH * rows


def lay_out_tails(
    marginals: Sequence[Marginal], flags: Mapping[int, int], currency: Currency, pairs: Fraction, rows: float
) -> Clipped | None:
    """Which pairs have a heavy attribute; None where noise on their correlations would be too large."""
    gaps = set(flags.values())
    columns = tuple(number for number, own in enumerate(marginals) if own.levels and number not in gaps)
    drawn = [marginals[a].fine.positions(_LEVELS) for a in columns]
    heavy = tuple(
        place for place, own in enumerate(drawn) if not marginals[columns[place]].exact_bins and _heavy(own)
    )
    both = [(i, j) for j in range(len(columns)) for i in range(j) if i in heavy or j in heavy]
    share = pairs * SHARE
    if not both or not share:
        return None
    noise = currency.deviation(Shape(1, len(both), 1), share) / rows
    middles = np.array([own.mean() for own in drawn])
    chosen = [_reach(np.abs(own - middle), noise) for own, middle in zip(drawn, middles, strict=True)]
    reaches, spreads = (np.array(part) for part in zip(*chosen, strict=True))
    firsts, seconds = (np.array(part, dtype=np.int64) for part in zip(*both, strict=True))
    if noise > TOO_MUCH * float(np.median(spreads[firsts] * spreads[seconds])):
        return None
    return Clipped(columns, heavy, middles, reaches, spreads, firsts, seconds, share, noise)


def _heavy(positions: Floats) -> bool:
    spread = float(positions.std())
    if not spread:
        return False
    scores = ndtri(_LEVELS)
    return float(np.mean((positions - positions.mean()) * scores)) / (spread * float(scores.std())) < _NORMAL


def _reach(distances: Floats, noise: float) -> tuple[float, float]:
    """The widest reach at which noise is small beside the mean square, and the root of that."""
    found = (1.0, 1e-9)
    for level in _REACHES:
        reach = max(float(np.quantile(distances, level)), 1.0)
        square = float(np.mean(np.minimum(distances / reach, 1.0) ** 2))
        found = (reach, max(square, 1e-18) ** 0.5)
        if noise <= _WANTED * square:
            break
    return found


def exact_products(positions: Sequence[Integers], clipped: Clipped) -> Integers:
    """Sums over records of products of two whole numbers of at most `_PARTS` in size. Private."""
    size, number = positions[0].size, len(clipped.columns)
    found = np.zeros((number, number), dtype=np.int64)
    for first in range(0, size, _RUN):
        parts = np.stack(
            [
                np.rint(clipped.values(positions[a][first : first + _RUN], place) * _PARTS)
                for place, a in enumerate(clipped.columns)
            ]
        )
        # whole numbers below 2^53: no rounding depends on the order of the records
        found += (parts @ parts.T).astype(np.int64)
    return found[clipped.firsts, clipped.seconds]


def measure_tails(
    exact: Integers, clipped: Clipped, currency: Currency, rows: float, account: Accountant
) -> Tails:
    """Spend the share on products.

    Guarantee:
        Pairs and reaches are functions of what was measured before; given them, a record adds to every sum a whole
        number of at most the unit.

    Reference:
        docs/proofs/pairs.md, section 5.
    """
    spend = account.spend(OF_TWO, clipped.share, "products of values")
    noisy = currency.measure(exact, clipped.shape, spend)
    return Tails(clipped, noisy / (_PARTS**2 * rows))


def _wide_bins(codes: NDArray[np.uint8], values: Floats) -> Integers:
    """The bins of rows, -1 where values are so alike that exchanging them changes ranks and no correlation."""
    sizes = np.maximum(np.bincount(codes), 1)
    means = np.bincount(codes, values) / sizes
    inside = np.bincount(codes, (values - means[codes]) ** 2)
    wide = inside > _WIDE * float(inside.sum())
    return np.where(wide[codes], codes.astype(np.int64), -1)


def exchanged(
    placed: Sequence[Floats],
    tails: Tails,
    marginals: Sequence[Marginal],
    flags: Mapping[int, int],
    source: Source,
) -> list[Floats]:
    """Positions of a block of rows, with values of heavy attributes exchanged between rows of one bin."""
    clipped, found = tails.clipped, list(placed)
    rows, number = placed[0].size, len(clipped.columns)
    values, codes = np.zeros((rows, number)), np.zeros((rows, number), dtype=np.int64)
    for place, a in enumerate(clipped.columns):
        values[:, place] = clipped.values(placed[a], place) / clipped.spreads[place]
        codes[:, place] = _wide_bins(marginals[a].codes(placed[a].astype(np.int64)), values[:, place])
        if a in flags:
            missing = placed[flags[a]] > 0
            values[missing, place], codes[missing, place] = 0.0, -1
    firsts, seconds = clipped.firsts, clipped.seconds
    own = (values.T @ values / rows)[firsts, seconds]
    both = clipped.spreads[firsts] * clipped.spreads[seconds]
    missed = tails.products / both - own
    noise = clipped.noise / both
    variance = float(np.mean(missed**2))
    # what noise explains of all that is missed is no aim
    trust = max(0.0, 1 - float(np.mean(noise**2)) / variance) if variance else 0.0
    wanted = np.zeros((number, number))
    weights = np.zeros((number, number))
    wanted[firsts, seconds] = wanted[seconds, firsts] = own + trust * missed
    weights[firsts, seconds] = weights[seconds, firsts] = 1.0
    moved = np.stack([placed[a] for a in clipped.columns], axis=1)
    exchange(values, moved, codes, np.array(clipped.heavy), wanted, weights, _SWEEPS, source.words(1)[0])
    for place in clipped.heavy:
        found[clipped.columns[place]] = moved[:, place].copy()
    return found
