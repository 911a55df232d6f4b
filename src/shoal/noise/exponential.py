"""The exponential mechanism over weighted intervals. In: lengths, penalties, a rational rate. Out: an exact choice.

An interval of `length` equally good candidates with `penalty` p weighs length · exp(-rate · p). The choice inverts
the cumulative weights at one uniform real number. Floating-point sums with a proved error bound settle almost every
draw; the others are settled by integers, with as many digits as it takes.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.noise.enclosed import exp_fixed, settle
from shoal.noise.entropy import Source

# Penalties this far (in units of 1/rate) above the smallest weigh less than 2^-128 of the best candidate each.
_FAR = 89
_TABLE_BITS = 128
_LOW = 256
# Rounding of a product of two table entries and a length, against the sum of all weights.
_PRODUCT_SLACK = 8


def exponential_choice(
    lengths: NDArray[np.int64],
    penalties: NDArray[np.int64],
    rate: Fraction,
    source: Source,
    largest: int | None = None,
) -> int:
    """The number of one interval, drawn with probability exactly proportional to length · exp(-rate · penalty).

    Args:
        lengths: numbers of equally good candidates, at least 0 each, at most 2^53 together and not all 0.
        penalties: how much worse than ideal a candidate is, whole numbers of at least 0.
        rate: at least 0.
        source: where the bits come from.
        largest: a bound of all penalties that does not follow from the records. With it the work follows from the
            bound, the rate and the number of intervals, not from the penalties, but for draws that need integers.

    Guarantee:
        If one record changes every penalty by at most D, the choice (followed by a uniform candidate of the
        interval) costs at most 2·rate·D. No probability is rounded.

    Cost:
        Linear in the number of intervals; exact integer work happens once in 10^9 draws for small tables and
        once in 10^3 for a million intervals.

    Reference:
        McSherry and Talwar, "Mechanism Design via Differential Privacy"; docs/proofs/tree.md.

    >>> from shoal.noise.entropy import Seeded
    >>> exponential_choice(np.array([0, 3, 0]), np.array([0, 7, 1]), Fraction(1, 3), Seeded(1))
    1
    """
    lengths, penalties = np.asarray(lengths, dtype=np.int64), np.asarray(penalties, dtype=np.int64)
    possible = np.flatnonzero(lengths > 0)
    if possible.size == 0 or lengths.min() < 0 or rate < 0 or penalties[possible].min() < 0:
        raise OptionError("exponential-mechanism-needs-rate-penalties-least")
    if largest is not None:
        # intervals without a candidate stay in: how many there are must not show in the time
        least = np.maximum(penalties, (lengths == 0) * np.iinfo(np.int64).max).min()
        # a common factor of all weights does not matter, and makes the best weight at least 1
        excess, word = np.maximum(penalties - least, 0), int(source.words(1)[0])
        number = _by_floats_evenly(lengths, excess, rate, word, largest)
        return _by_integers(lengths, excess, rate, word, source) if number is None else number
    lengths, penalties = lengths[possible], penalties[possible]
    if possible.size == 1:
        return int(possible[0])
    excess = penalties - penalties.min()
    word = int(source.words(1)[0])
    number = _by_floats(lengths, excess, rate, word)
    if number is None:
        number = _by_integers(lengths, excess, rate, word, source)
    return int(possible[number])


def _by_floats(
    lengths: NDArray[np.int64], excess: NDArray[np.int64], rate: Fraction, word: int
) -> int | None:
    """The interval in which a uniform real with the first 64 bits `word` must fall, or None if that is not certain.

    Every partial sum is within `slack` of the truth: table entries, products and sums are correctly rounded, and
    what is left out for being far is below 2^53 · 2^-128.
    """
    furthest = int(excess.max())
    near = np.flatnonzero(excess <= (min(int(_FAR / rate) + 1, furthest) if rate else furthest))
    weights = _weights(lengths[near], excess[near], rate, int(excess[near].max()))
    number = _settled(np.cumsum(weights), word, near.size == excess.size)
    return None if number is None else int(near[number])


def _by_floats_evenly(
    lengths: NDArray[np.int64], excess: NDArray[np.int64], rate: Fraction, word: int, largest: int
) -> int | None:
    """The same over all intervals: what is far weighs 0 and is added up like the others.

    In the longest floating-point numbers there are, so that integers, which take far longer, are hardly ever needed.
    """
    furthest = min(int(_FAR / rate) + 1, largest) if rate else largest
    near = excess <= furthest
    fine, coarse = _long_tables(rate, 1 << furthest.bit_length())
    bounded = np.minimum(excess, furthest)
    # by bits: how long a division takes follows from what is divided
    weights = (lengths * near) * (fine[bounded & (_LOW - 1)] * coarse[bounded >> _LOW.bit_length() - 1])
    return _settled(np.cumsum(weights), word, int(np.count_nonzero(near)) == excess.size)


def _settled(sums: NDArray[np.floating[Any]], word: int, complete: bool) -> int | None:
    """Where a uniform real with these first bits falls among partial sums; `complete` if nothing far was left out."""
    real = sums.dtype.type
    total = sums[-1]
    slack = real((sums.size + _PRODUCT_SLACK) * np.finfo(sums.dtype).eps) * total
    # both ends of what the word allows, with room for the errors of the total, of a partial sum and of this line
    low = real(word) / real(2**64) * total - 3 * slack
    high = real(word + 1) / real(2**64) * total + 3 * slack
    # counted over all: a search would be through sooner here than there
    number = int(np.count_nonzero(sums <= low))
    # beyond the first and the last partial sum there is nothing, unless something far was left out
    from_below = number > 0 or complete or low >= 0
    from_above = number < sums.size and (high < sums[number] or (complete and number == sums.size - 1))
    return number if from_below and from_above else None


def _weights(
    lengths: NDArray[np.int64], excess: NDArray[np.int64], rate: Fraction, largest: int
) -> NDArray[np.float64]:
    # a power of two, so that the nodes of a level share few tables
    fine, coarse = _float_tables(rate, 1 << largest.bit_length())
    weights: NDArray[np.float64] = lengths * (fine[excess % _LOW] * coarse[excess // _LOW])
    return weights


@lru_cache(maxsize=64)
def _float_tables(rate: Fraction, largest: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    low, high = _tables(rate, largest, _TABLE_BITS)
    one = 1 << _TABLE_BITS
    # whole numbers divide with correct rounding
    return np.array([entry / one for entry in low]), np.array([entry / one for entry in high])


@lru_cache(maxsize=64)
def _long_tables(rate: Fraction, largest: int) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """The same in the longest floating-point numbers: what one of ordinary length leaves over is added to it."""
    one = 1 << _TABLE_BITS
    found = []
    for table in _tables(rate, largest, _TABLE_BITS):
        first = [entry / one for entry in table]
        rest = [(entry - int(part * one)) / one for entry, part in zip(table, first, strict=True)]
        found.append(np.array(first, dtype=np.longdouble) + np.array(rest, dtype=np.longdouble))
    return found[0], found[1]


def _by_integers(
    lengths: NDArray[np.int64], excess: NDArray[np.int64], rate: Fraction, word: int, source: Source
) -> int:
    """The interval in which a uniform real starting with `word` falls, more of its digits drawn until it is certain."""
    return settle(lambda bits: cumulative_bounds(lengths, excess, rate, bits), word, 64, source)


def cumulative_bounds(
    lengths: NDArray[np.int64], penalties: NDArray[np.int64], rate: Fraction, bits: int
) -> tuple[list[int], list[int]]:
    """Whole numbers below and above 2^bits times every partial sum of length · exp(-rate · penalty).

    >>> lower, upper = cumulative_bounds(np.array([2, 1]), np.array([0, 1]), Fraction(1), 20)
    >>> [round(bound / 2**20, 4) for bound in lower], [round(bound / 2**20, 4) for bound in upper]
    ([2.0, 2.3679], [2.0, 2.3679])
    """
    low, high = _tables(rate, int(penalties.max()), bits)
    lower, upper = [], []
    below = above = 0
    for length, penalty in zip(lengths.tolist(), penalties.tolist(), strict=True):
        product = low[penalty % _LOW] * high[penalty // _LOW] >> bits
        # each factor is hardly more than one unit below its value and the shift loses less than one more
        below += length * product
        above += length * (product + 4)
        lower.append(below)
        upper.append(above)
    return lower, upper


def _tables(rate: Fraction, largest: int, bits: int) -> tuple[list[int], list[int]]:
    """exp(-rate·i) for i < 256 and exp(-rate·256·i) up to the largest penalty, in units of 2^-bits, rounded down."""
    count = largest // _LOW + 1
    return _powers(exp_fixed(rate, bits + 64), min(_LOW, largest + 1), bits), _powers(
        exp_fixed(_LOW * rate, bits + 64 + count.bit_length()), count, bits, 64 + count.bit_length()
    )


def _powers(base: int, count: int, bits: int, guard: int = 64) -> list[int]:
    """base^0 .. base^(count-1), `base` in units of 2^-(bits + guard); at most one unit of 2^-bits below the truth."""
    power, powers = 1 << bits + guard, []
    for _ in range(count):
        powers.append(power >> guard)
        power = power * base >> bits + guard
    return powers
