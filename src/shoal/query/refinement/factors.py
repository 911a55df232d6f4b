"""How much an answer may tell. In: ε and δ. Out: rational factors that stay inside what exp(ε) allows.

exp(ε) is irrational. The factors are rational numbers rounded inwards, so that every ratio of probabilities is an exact
fraction that is at most exp(ε), and the loss of 2^-80 is nobody's concern.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from shoal.decimals import decimal_text
from shoal.errors import OptionError
from shoal.noise.exact import enclose_exp

_BITS = 80
# from here on the factors stop growing: smaller factors are always allowed, and these are beyond any use
_LARGEST_EXPONENT = 40


@dataclass(frozen=True, slots=True)
class Factors:
    """What the prior mass of answers near the truth (`up`) and far from it (`down`) is multiplied with.

    >>> Factors(Fraction(2), Fraction(1, 2)).mass_up
    Fraction(1, 3)
    """

    up: Fraction
    down: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.down <= 1 <= self.up:
            raise OptionError("factors-need-0-down-1-up", up=self.up, down=self.down)

    @classmethod
    def individual(cls, epsilon: Fraction) -> Factors:
        """Factors within exp(-ε) .. exp(ε) of the prior: what a query about one person may use.

        Guarantee:
            A person who is not there is answered from the prior. So the answer is ε-DP for one record added or removed,
            and 2ε-DP for one record replaced.

        Reference:
            Thesis, Proposition 3 and Table 5.2; docs/proofs/refinement.md.

        >>> float(Factors.individual(Fraction(1)).up)
        2.718281828459045
        """
        _check_positive("epsilon", epsilon)
        return cls(_exp_below(epsilon), _exp_minus_above(epsilon))

    @classmethod
    def statistical(cls, epsilon: Fraction, lift: Fraction = Fraction(1, 2)) -> Factors:
        """Factors with up / down at most exp(ε): what a query about many persons may use.

        Args:
            epsilon: the budget.
            lift: the share of ε that raises near answers; the rest lowers far ones.

        Guarantee:
            ε-DP between any two data sets, so under every relation of neighbours.

        Reference:
            Thesis, Proposition 2 and Table 5.2; docs/proofs/refinement.md.

        >>> factors = Factors.statistical(Fraction(2))
        >>> float(factors.up), float(factors.down)
        (2.718281828459045, 0.36787944117144233)
        """
        _check_positive("epsilon", epsilon)
        if not 0 < lift < 1:
            raise OptionError("lift-lie-between-0-1", option="lift", found=decimal_text(lift))
        return cls(_exp_below(lift * epsilon), _exp_minus_above((1 - lift) * epsilon))

    @property
    def mass_up(self) -> Fraction:
        """The prior mass p_u that can be raised: up·p_u + down·(1 - p_u) = 1."""
        return (1 - self.down) / (self.up - self.down) if self.up > self.down else Fraction(0)

    @property
    def chance_up(self) -> Fraction:
        """The probability of the answers that held the mass p_u before."""
        return self.up * self.mass_up


def movable(epsilon: Fraction, delta: Fraction, *, individual: bool, replace_one: bool) -> Fraction:
    """The probability that may be moved from the farthest answers to the truth for an additional δ.

    Guarantee:
        With factors of `Factors.individual(ε)`: (ε, δ)-DP for one record added or removed at δ·exp(-ε), and (2ε, δ)-DP
        for one replaced at δ/(1 + exp(2ε)). With factors of `Factors.statistical(ε)`: (ε, δ)-DP at δ/(1 + exp(ε)).
        Rounded down.

    Reference:
        Thesis, section 5.2, where the shares are larger, too large: docs/proofs/refinement.md.

    >>> round(float(movable(Fraction(1), Fraction(1, 10), individual=True, replace_one=False)), 6)
    0.036788
    """
    if not 0 <= delta < 1:
        raise OptionError("delta-least-0-below-1", option="delta", found=decimal_text(delta))
    if individual and not replace_one:
        return delta * _exp_minus_below(epsilon)
    odds = _exp_minus_below(2 * epsilon if individual else epsilon)
    # exp(-x) / (1 + exp(-x)) grows with exp(-x), so a bound below stays one
    return delta * odds / (1 + odds)


def _exp_below(x: Fraction) -> Fraction:
    """A fraction of at least 1 and at most exp(x)."""
    bits = 3 * _BITS
    _, above = enclose_exp(min(x, Fraction(_LARGEST_EXPONENT)), bits)
    return Fraction((1 << bits + _BITS) // above, 1 << _BITS)


def _exp_minus_above(x: Fraction) -> Fraction:
    """A fraction of at least exp(-x) and at most 1."""
    _, above = enclose_exp(min(x, Fraction(_LARGEST_EXPONENT)), 2 * _BITS)
    return Fraction(-(-above >> _BITS), 1 << _BITS)


def _exp_minus_below(x: Fraction) -> Fraction:
    below, _ = enclose_exp(x, 2 * _BITS)
    return Fraction(below >> _BITS, 1 << _BITS)


def _check_positive(name: str, value: Fraction) -> None:
    if value <= 0:
        raise OptionError("option-above-0", option=name, found=decimal_text(value))
