"""What a measurement costs and how noisy it is. In: exact sums and what is spent on them. Out: noisy sums.

All measurements of `pairs-dp` have one shape: cells of which a record is in one, blocks in each cell, and in each block
a few sums, one of which a record changes by at most one. No other number about records passes, but cut points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.noise import (
    block_noise,
    choice_rate,
    discrete_gaussian,
    discrete_laplace,
    elliptope_noise,
    round_up_scale,
)
from shoal.privacy import Spend

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Shares are rounded down to this many parts of the budget, and the first takes the rest, so that they add up to it.
_PARTS = 1 << 40
# With fewer signs than these independent blocks are as good as noise fitted to products of signs.
FEWEST_SIGNS = 6


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of one measurement.

    Attributes:
        cells: a record is in one of them at most.
        blocks: in its cell, a record changes one sum of every block at most.
        size: sums of a block.
        unit: by how much at most.
        signs: instead of blocks, the matrix of products of so many signs.
    """

    cells: int
    blocks: int
    size: int
    unit: int = 1
    signs: int = 0


@dataclass(frozen=True, slots=True)
class PureEpsilon:
    """ε of pure differential privacy.

    Attributes:
        factor: 1 where neighbours differ by one record added or removed, 2 where one is replaced: a record less, a
            record more.
    """

    factor: int

    # how fast noise may grow with the depth of a contrast
    growth = 1.1
    # share of single attributes, and how cut points share theirs over levels
    oneway = Fraction(1, 2)
    cut_growth = Fraction(6, 5)
    count_growth = Fraction(7, 5)
    # a contrast is worth measuring where its node has so many times the noise; pairs are hopeless above this noise
    worth = 6.0
    hopeless = 0.12
    rows = Fraction(1, 20)

    def sign_shape(self, signs: int) -> Shape:
        """The shape in which all products of so many signs are measured."""
        if signs >= FEWEST_SIGNS:
            return Shape(1, 1, 1, signs=signs)
        return Shape(1, signs * (signs - 1) // 2, 1)

    def deviation(self, shape: Shape, share: Fraction) -> float:
        """Standard deviation of the noise on one sum."""
        return self.factor * shape.unit * _pure_factor(shape) / float(share)

    def needed(self, shape: Shape, deviation: float) -> float:
        """The share that brings the noise down to a standard deviation."""
        return self.factor * shape.unit * _pure_factor(shape) / deviation

    def rate(self, share: Fraction) -> Fraction:
        """Rate of an exponential mechanism whose penalties one added record moves by one at most."""
        return share / (2 * self.factor)

    def needed_for(self, rate: float) -> float:
        """The share of a choice at this rate."""
        return 2 * self.factor * rate

    def measure(self, exact: Integers, shape: Shape, spend: Spend) -> Floats:
        """Exact sums of this shape plus noise that costs what is spent.

        Guarantee:
            The noise has density proportional to exp(-e · Σ over cells of the largest L1 norm of a block), or that of
            differences of sign products: one added record moves the sums by a vector of norm `unit` at most, which
            costs e · unit = share / factor.

        Reference:
            docs/proofs/pairs.md, sections 2 and 3.
        """
        share, source = spend.take()
        epsilon = share / self.factor
        if shape.signs:
            noise = elliptope_noise(shape.signs, epsilon, source)
        elif shape.blocks == 1:
            noise = discrete_laplace(round_up_scale(shape.unit / epsilon), exact.size, source)
        else:
            sizes = [shape.size] * shape.blocks
            steps = [shape.unit] * shape.blocks
            noise = block_noise(sizes, epsilon, source, steps=steps, draws=shape.cells)
        return (exact + noise.reshape(exact.shape)).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Concentrated:
    """ρ of zero-concentrated differential privacy: the currency of a claim with a δ.

    Attributes:
        factor: as above; a change twice as large costs four times the ρ.
    """

    factor: int

    growth = 0.375
    oneway = Fraction(2, 5)
    cut_growth = Fraction(6, 5) ** 2
    count_growth = Fraction(7, 5) ** 2
    worth = 8.0
    hopeless = 0.2
    rows = Fraction(1, 100)

    def sign_shape(self, signs: int) -> Shape:
        """The shape in which all products of so many signs are measured."""
        return Shape(1, signs * (signs - 1) // 2, 1)

    def deviation(self, shape: Shape, share: Fraction) -> float:
        """Standard deviation of the noise on one sum."""
        return self.factor * shape.unit * math.sqrt(shape.blocks / (2 * float(share)))

    def needed(self, shape: Shape, deviation: float) -> float:
        """The share that brings the noise down to a standard deviation."""
        return (self.factor * shape.unit / deviation) ** 2 * shape.blocks / 2

    def rate(self, share: Fraction) -> Fraction:
        """Rate of an exponential mechanism whose penalties one added record moves by one at most."""
        return choice_rate(share, self.factor)

    def needed_for(self, rate: float) -> float:
        """The share of a choice at this rate."""
        return (rate * self.factor) ** 2 / 2

    def measure(self, exact: Integers, shape: Shape, spend: Spend) -> Floats:
        """Exact sums of this shape plus discrete Gaussian noise that costs what is spent.

        Guarantee:
            One added record changes one sum of each block by at most `unit`, so the sum of (change/σ)² is at most
            blocks · unit² / σ² = 2 · share / factor².

        Reference:
            docs/proofs/pairs.md, section 6.
        """
        share, source = spend.take()
        variance = (self.factor * shape.unit) ** 2 * shape.blocks / (2 * share)
        noise = discrete_gaussian(variance, exact.size, source)
        return (exact + noise.reshape(exact.shape)).astype(np.float64)


Currency = PureEpsilon | Concentrated


def _pure_factor(shape: Shape) -> float:
    """Standard deviation of the noise at ε = 1."""
    if shape.signs:
        pairs = shape.signs * (shape.signs - 1) // 2
        return math.sqrt(2 * (pairs + 1) * (pairs + 2) / (shape.signs + 1))
    dimension = shape.blocks * shape.size
    return math.sqrt(2 * (dimension + 1) * (dimension + 2) / ((shape.size + 1) * (shape.size + 2)))


def allot(
    currency: Currency, shapes: Sequence[Shape], aims: Sequence[float], total: Fraction
) -> tuple[Fraction, ...]:
    """Shares of a total with which the noise of all shapes is in proportion to their aims.

    >>> [float(share) for share in allot(PureEpsilon(1), [Shape(1, 1, 4), Shape(1, 1, 4)], [1, 3], Fraction(1))]
    [0.75, 0.25]
    """
    needs = [currency.needed(shape, aim) for shape, aim in zip(shapes, aims, strict=True)]
    together = math.fsum(needs)
    shares = [total * Fraction(math.floor(need / together * _PARTS), _PARTS) for need in needs[1:]]
    return (total - sum(shares, Fraction(0)), *shares)
