"""Structure of three attributes. In: a model of pairs, sums of products of three signs. Out: a few triples, measured.

What only three attributes together show, an exclusive or for one, no table of pairs has. There are too many triples to
measure them all, so those that are furthest from what the model of pairs says are chosen privately; rows are polished
until they have them. All but `exact_triples` and `measure_triples` is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.pairs.currency import Currency, Shape
from shoal.mechanisms.pairs.marginal import Marginal
from shoal.mechanisms.pairs.mixture import Mixture
from shoal.mechanisms.pairs.plan import OF_THREE
from shoal.noise import exponential_choice
from shoal.privacy import Accountant

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# How many are chosen, and what that may cost at most, of the budget of pairs.
ROUNDS = 3
SHARE = Fraction(1, 5)
# An effect is by how much a mean product of three signs differs from what pairs say, at most 2. Effects of this size
# are to be found if that is not too dear; where effects of the second size would not be, nothing is measured.
_WANTED, FOUND = 0.2, 0.4
# Found: chosen before all triples without an effect, but for about one choice in e^3. Noise is this part of an effect.
_SURE, _NOISE = 3.0, 1 / 8
# Followed are effects that are this many times their noise, and as large as those that are to be found: following what
# else a model of pairs misses gains little (docs/pairs-quality.md).
_CLEAR, LARGE = 3.0, _WANTED
# Larger than any number of records: scores are told as penalties, which are at least 0.
_CEILING = 1 << 40
_PARTS = 1 << 20
# Records whose signs are multiplied at a time; sums are whole numbers that small floats hold exactly.
_RUN = 1 << 16


@dataclass(frozen=True, slots=True)
class Triples:
    """Which triples can be measured, and for which shares.

    Attributes:
        columns: attributes whose signs are multiplied.
        rounds: how many triples are chosen.
        choice: share of one choice; 0 where there are no more triples than are measured.
        sums: share of the sums of those that are chosen, together.
        deviation: of the noise on one sum.
    """

    columns: tuple[int, ...]
    rounds: int
    choice: Fraction
    sums: Fraction
    deviation: float

    @property
    def share(self) -> Fraction:
        return self.rounds * self.choice + self.sums

    @property
    def places(self) -> Integers:
        """All triples, by the places of their attributes in `columns`."""
        return np.array(list(combinations(range(len(self.columns)), 3)), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Triple:
    """Three attributes, and the mean product of their signs that rows should have."""

    attributes: tuple[int, int, int]
    mean: float


def lay_out_triples(
    currency: Currency, columns: Sequence[int], budget: Fraction, rows: float
) -> Triples | None:
    """As much of the budget of pairs as finding effects takes, within limits; None where that is not enough."""
    number = math.comb(len(columns), 3)
    if not number or not budget:
        return None
    rounds = min(ROUNDS, number)
    shape = Shape(1, rounds, 1)

    def needs(effect: float) -> tuple[float, float]:
        rate = (math.log(number) + _SURE) / (effect * rows)
        choices = rounds * currency.needed_for(rate) if number > rounds else 0.0
        return choices, currency.needed(shape, effect * _NOISE * rows)

    most = float(budget * SHARE)
    if sum(needs(FOUND)) > most:
        return None
    choices, sums = needs(_WANTED)
    part = min(choices + sums, most) / float(budget)
    share = budget * min(Fraction(math.ceil(part * _PARTS), _PARTS), SHARE)
    choice = share * Fraction(round(choices / (choices + sums) * _PARTS), _PARTS) / rounds
    sums_share = share - rounds * choice
    return Triples(tuple(columns), rounds, choice, sums_share, currency.deviation(shape, sums_share))


def exact_triples(
    codes: Sequence[NDArray[np.uint8]], marginals: Sequence[Marginal], layout: Triples
) -> Integers:
    """Sums over records of products of three signs, for all triples. Private.

    Guarantee:
        A record adds +1 or -1 to each of them.
    """
    first, second, third = layout.places.T
    found = np.zeros(first.size, dtype=np.int64)
    size = codes[0].size
    for start in range(0, size, _RUN):
        signs = np.stack(
            [
                1 - 2 * (codes[a][start : start + _RUN] >> (marginals[a].levels - 1)).astype(np.float32)
                for a in layout.columns
            ]
        )
        for place in range(len(layout.columns) - 2):
            # sums of at most 2^16 ones: exact in floats of 24 bits, in whatever order they are added
            products = (signs[place] * signs) @ signs.T
            here = first == place
            found[here] += products[second[here], third[here]].astype(np.int64)
    return found


def predicted(mixture: Mixture, layout: Triples) -> Floats:
    """Mean products of three signs of all triples, as a model of pairs has them."""
    means = []
    for a in layout.columns:
        own = mixture.bins[:, mixture.starts[a] : mixture.starts[a + 1]]
        half = own.shape[1] // 2
        means.append(own[:, :half].sum(axis=1) - own[:, half:].sum(axis=1))
    first, second, third = (np.stack(means)[place] for place in layout.places.T)
    found: Floats = (first * second * third) @ mixture.weights
    return found


def measure_triples(
    exact: Integers, expected: Floats, layout: Triples, currency: Currency, rows: float, account: Accountant
) -> tuple[Integers, Floats]:
    """Choose triples, one after the other, and measure them: their numbers, and their mean products.

    Guarantee:
        What is expected is a function of what was measured before. An added record moves every score by one at most,
        a replaced one by two, so each choice costs its share; given the choices, a record adds +1 or -1 to each sum.

    Reference:
        docs/proofs/pairs.md, section 5.
    """
    scores = np.abs(exact - np.rint(rows * expected).astype(np.int64))
    chosen: list[int] = []
    while len(chosen) < layout.rounds:
        open_ = _open(layout.places, chosen)
        if layout.choice:
            spend = account.spend(OF_THREE, layout.choice, f"choice of triple {len(chosen) + 1}")
            share, source = spend.take()
            rate = currency.rate(share)
            chosen.append(exponential_choice(open_.astype(np.int64), _CEILING - scores, rate, source))
        else:
            chosen.append(int(np.flatnonzero(open_)[0]))
    numbers = np.array(chosen, dtype=np.int64)
    spend = account.spend(OF_THREE, layout.sums, "products of three signs")
    noisy = currency.measure(exact[numbers], Shape(1, layout.rounds, 1), spend)
    return numbers, noisy / rows


def _open(places: Integers, chosen: Sequence[int]) -> NDArray[np.bool_]:
    """Which triples can be chosen next: such as have one attribute at most with each that is chosen, if there are any.

    Where three attributes show something, others that go with one of them show it, too.
    """
    left = np.ones(len(places), dtype=np.bool_)
    apart = left.copy()
    for number in chosen:
        left[number] = False
        apart &= np.isin(places, places[number]).sum(axis=1) <= 1
    return apart if apart.any() else left


def to_follow(
    expected: Floats, layout: Triples, numbers: Integers, measured: Floats, rows: float
) -> tuple[Triple, ...]:
    """The triples of which a model of pairs misses an effect that is clear and large, less what is noise of it."""
    noise = layout.deviation / rows
    found = []
    for number, mean in zip(numbers.tolist(), measured.tolist(), strict=True):
        effect = mean - float(expected[number])
        if abs(effect) >= max(_CLEAR * noise, LARGE):
            a, b, c = (layout.columns[place] for place in layout.places[number])
            found.append(Triple((a, b, c), mean - noise**2 / effect))
    return tuple(found)
