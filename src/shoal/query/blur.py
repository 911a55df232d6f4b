"""Noise on whole numbers, settled from public facts: its price, its error, and draws that are paid for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from shoal.decimals import decimal_text
from shoal.errors import OptionError, closest
from shoal.noise import LatticeStaircase, discrete_laplace, discrete_staircase, round_up_scale
from shoal.noise.laplace import single_laplace
from shoal.noise.staircase import check_staircase
from shoal.privacy import Accountant
from shoal.text import Message

NOISES = ("laplace", "staircase")
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Blur:
    """Noise for whole numbers that one record moves by at most `sensitivity` together (L1), in units of `unit`.

    Attributes:
        sensitivity: in whole units; 0 means that the numbers are public and get no noise.
        epsilon: what the noise costs one row; 0 if there is none.
        scale: of Laplace noise, in units; None for staircase noise.
        unit: what one unit is worth.

    >>> str(Blur.laplace(1, Fraction(1), epsilon=Fraction(1, 2)).noise)
    'discrete Laplace noise of scale 2'
    """

    sensitivity: int
    epsilon: Fraction
    scale: Fraction | None
    unit: Fraction

    @classmethod
    def laplace(
        cls,
        sensitivity: int,
        unit: Fraction,
        *,
        epsilon: Fraction | None = None,
        scale: Fraction | None = None,
    ) -> Blur:
        """Laplace noise for a budget, or of a scale in the unit of the answer, which settles what it costs.

        Guarantee:
            For whole numbers with this L1 sensitivity between neighbours, the noisy numbers together are `epsilon`-DP.
            The scale drawn from is rounded up, never down: docs/proofs/laplace.md, section 3.
        """
        if sensitivity == 0:
            return cls(0, Fraction(0), Fraction(0), unit)
        if scale is not None:
            steps = scale / unit
            return cls(sensitivity, sensitivity / steps, round_up_scale(steps), unit)
        assert epsilon is not None
        return cls(sensitivity, epsilon, round_up_scale(sensitivity / epsilon), unit)

    @classmethod
    def single(cls, noise: str, sensitivity: int, unit: Fraction, epsilon: Fraction) -> Blur:
        """Noise of either kind for ONE whole number.

        Guarantee:
            `epsilon`-DP for one number with this sensitivity. Staircase noise costs all of ε for a shift of a single
            unit, so it must not be used for several numbers that share an ε: docs/proofs/staircase.md.
        """
        if noise not in NOISES:
            raise OptionError(
                "unknown-noise-of-query",
                option="noise",
                noise=noise,
                allowed=tuple(NOISES),
                hint=closest(noise, NOISES),
            )
        if noise == "laplace" or sensitivity == 0:
            return cls.laplace(sensitivity, unit, epsilon=epsilon)
        check_staircase(sensitivity, epsilon)
        return cls(sensitivity, epsilon, None, unit)

    def reserved(self, purpose: str) -> dict[str, Fraction]:
        """What a plan reserves for this noise."""
        return {purpose: self.epsilon} if self.sensitivity else {}

    def draw(self, size: int, account: Accountant, purpose: str, over: str = "") -> list[int]:
        """Independent draws, in units, charged together.

        Args:
            size: how many numbers get noise; together one record moves them by at most `sensitivity`.
            account: what pays.
            purpose: the reservation that is spent.
            over: what the numbers are of, where there are several.

        Raises:
            OverspendError: less is left than the noise costs.
        """
        if self.sensitivity == 0:
            return [0] * size
        epsilon, source = account.spend(purpose, self.epsilon, over=over).take()
        if self.scale is None:
            drawn: list[int] = discrete_staircase(self.sensitivity, epsilon, size, source).tolist()
            return drawn
        scale = round_up_scale(self.sensitivity / epsilon)
        if size == 1:
            # one number at a time: an array of one takes far longer
            return [single_laplace(scale.numerator, scale.denominator, source)]
        drawn = discrete_laplace(scale, size, source).tolist()
        return drawn

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise, in the unit of the answer."""
        if self.sensitivity == 0:
            return 0.0
        if self.scale is None:
            variance = LatticeStaircase.best(self.sensitivity, self.epsilon).variance
        else:
            rate = 1 / float(self.scale)
            variance = 2 * math.exp(-rate) / math.expm1(-rate) ** 2
        return math.sqrt(variance) * float(self.unit)

    @property
    def interval(self) -> float:
        """The least h for which the noise is within ±h with 95%, in the unit of the answer."""
        if self.sensitivity == 0:
            return 0.0
        if self.scale is None:
            steps = LatticeStaircase.best(self.sensitivity, self.epsilon).interval(CONFIDENCE)
        else:
            # P(|X| > h) = 2 p^(h+1) / (1 + p) with p = exp(-1/scale)
            rate = 1 / float(self.scale)
            tail = math.log((1 - CONFIDENCE) * (1 + math.exp(-rate)) / 2)
            steps = max(math.ceil(-tail / rate - 1 - 1e-9), 0)
        return steps * float(self.unit)

    @property
    def noise(self) -> Message:
        if self.sensitivity == 0:
            return Message.of("noise-none")
        if self.scale is None:
            return Message.of("noise-staircase", epsilon=decimal_text(self.epsilon))
        return Message.of("noise-laplace", scale=decimal_text(self.scale * self.unit))
