"""Missing values. In: attributes of which "missing" is a place. Out: one more attribute each, and what it says.

An attribute with a place for gaps counts as two: its values, and whether it is missing. A record without a value is in
no bin of the values and changes no sum of theirs; what is measured of them is about the records that have one, and rows
that are drawn as missing lose their value in the end. All but `present_positions` is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.pairs.marginal import Marginal
from shoal.mechanisms.pairs.plan import Facts

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# A record without a value of an attribute has no position, but must stand somewhere in an array.
ABSENT = -1
# No share of records with a value is taken to be less.
_LEAST = 0.01


def with_flags(attributes: Sequence[Facts], flagged: Sequence[str]) -> tuple[Facts, ...]:
    """The attributes, and behind them one more for each that has a place for gaps: present or missing.

    >>> [facts.name for facts in with_flags([Facts("age", 80, True), Facts("sex", 2, True)], ["age"])]
    ['age', 'sex', 'whether age is missing']
    """
    numbers = [number for number, facts in enumerate(attributes) if facts.name in flagged]
    flags = [Facts(f"whether {attributes[a].name} is missing", 2, True, flag_of=a) for a in numbers]
    return (*attributes, *flags)


def flags_of(attributes: Sequence[Facts]) -> dict[int, int]:
    """The number of the flag of each attribute that has one."""
    return {facts.flag_of: number for number, facts in enumerate(attributes) if facts.flag_of is not None}


def present_positions(positions: Sequence[Integers], flags: Mapping[int, int]) -> list[Integers]:
    """The positions of each attribute's records that have one. Private, and so is how many there are."""
    return [own[own != ABSENT] if number in flags else own for number, own in enumerate(positions)]


@dataclass(frozen=True, slots=True)
class Presence:
    """Shares of the records that have a value.

    Attributes:
        flags: the flag of each attribute with a place for gaps.
        shares: of records with a value, by these attributes.
        both: of records with a value of two of them; those without one are taken to be independent.
    """

    flags: Mapping[int, int]
    shares: Mapping[int, float]
    both: Mapping[tuple[int, int], float]

    def of(self, a: int, b: int) -> float:
        """The share of records that can change a sum over attributes a and b."""
        apart = self.shares.get(a, 1.0) * self.shares.get(b, 1.0)
        return self.both.get((min(a, b), max(a, b)), apart)


def presence(marginals: Sequence[Marginal], flags: Mapping[int, int]) -> Presence:
    """What single attributes say."""
    shares = {a: max(float(marginals[flag].shares[0]), _LEAST) for a, flag in flags.items()}
    return Presence(flags, shares, {})


def of_present(
    products: Floats, signs: Sequence[int], marginals: Sequence[Marginal], known: Presence
) -> tuple[Floats, Presence]:
    """Mean products of signs as they would be without gaps, and what they say about gaps that come together.

    A mean product with the sign of a value is over the records that have it. Where these differ from others, the other
    sign has another mean among them, which the flag's product with it tells: what that alone makes is taken out. A
    value and its own flag know nothing of each other.
    """
    if not known.flags:
        return products, known
    place = {number: i for i, number in enumerate(signs)}
    means = {a: float(2 * marginals[a].shares[: marginals[a].bins // 2].sum() - 1) for a in signs}
    values = [a for a in known.flags if a in place]
    both = {
        (a, b): _together(products, place, means, known, a, b)
        for a in known.flags
        for b in known.flags
        if a < b
    }
    known = replace(known, both=both)
    found = products.copy()
    for a in values:
        flag = known.flags[a]
        for b in signs:
            i, j = place[a], place[b]
            if b == a:
                continue
            if b == flag:
                mean = means[a] * means[b]
            elif b in known.flags:
                mean = float(products[i, j]) / known.of(a, b)
            else:
                among = (means[b] + float(products[place[flag], j])) / (2 * known.shares[a])
                mean = float(products[i, j]) / known.shares[a] - means[a] * (
                    min(max(among, -1), 1) - means[b]
                )
            found[i, j] = found[j, i] = min(max(mean, -1.0), 1.0)
    return found, known


def _together(
    products: Floats,
    place: Mapping[int, int],
    means: Mapping[int, float],
    known: Presence,
    a: int,
    b: int,
) -> float:
    """Share of the records with a value of both, by the product of their flags."""
    first, second = known.flags[a], known.flags[b]
    share = (1 + means[first] + means[second] + float(products[place[first], place[second]])) / 4
    p, q = known.shares[a], known.shares[b]
    return min(max(share, p + q - 1, p * q / 2, _LEAST), p, q)
