"""The noise to expect. In: the layouts of what is measured. Out: standard deviations of shares of the rows, all public.

They are those of the measurements, and hold within a factor of 4, on average of 3, where columns are smooth and not
narrow in their domains: what post-processing takes away or adds follows the records, and is not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from shoal.mechanisms.pairs.currency import Currency, Shape
from shoal.mechanisms.pairs.plan import PAIR_LEVELS, Facts, Group, OneWay, Pairs
from shoal.mechanisms.pairs.thresholds import MISFIT

# After a few noisy answers a distribution function is known this badly at worst: hardly at all.
_AT_WORST = 0.25
# Thresholds are answers about a curve with so many free numbers.
_CURVE = 4
# Halves are not quite those of the medians: so much of what is unknown about either column alone. It would be nothing
# where two columns are symmetric about their medians, and all of it where one decides the other there. A guess near the
# former, chosen on made-up people and on normal, skewed, uniform and two-humped columns of seeds from 1000 and 2000 on.
_HALVES = 1 / 64
# Rows that are drawn as latent normals have their correlations exactly. What that leaves to chance of like halves: the
# product of two signs has a correlation of 2/π with that of their normals, where these are independent.
_BY_CHANCE = 1 - (2 / math.pi) ** 2
# The mean distance of a normal number from its mean, in standard deviations.
_MEAN_DISTANCE = math.sqrt(2 / math.pi)


def noise_alone(
    attributes: Sequence[Facts], layout: OneWay, currency: Currency, rows: float
) -> dict[str, float]:
    """By attribute: of the share of rows below a threshold, on average over thresholds, or with one name.

    A contrast of a node moves the distribution function by half of it at the node's cut and by nothing at its ends, in
    a straight line: over all thresholds that is a twelfth of its variance. Counted values move the function as a random
    walk that is tied at both ends.
    """
    found: dict[str, float] = {}
    for number, facts in enumerate(attributes):
        if number in layout.signs:
            noise = currency.deviation(Shape(1, len(layout.signs), 1), layout.sign_share) / 2
        elif number in layout.counted:
            noise = currency.deviation(Shape(1, 1, facts.points), layout.each)
            if facts.ordered:
                noise *= math.sqrt((facts.points + 1) / 6)
        elif layout.rounds and number in layout.cut:
            answer = currency.deviation(Shape(1, len(layout.cut), 1), layout.rounds[0]) / 2
            noise = math.hypot(answer * math.sqrt(_CURVE / len(layout.rounds)), _between(layout) * rows)
        elif number in layout.cut:
            levels = (
                currency.deviation(Shape(1, len(layout.cut), 1 << level), share)
                for level, share in enumerate(layout.counts)
            )
            noise = math.sqrt(sum(one**2 for one in levels) / 12)
        else:
            noise = 0.0
        found[facts.name] = _bounded(noise / rows)
    return found


def noise_of_pairs(
    attributes: Sequence[Facts], layout: OneWay, alone: Mapping[str, float], pairs: Pairs, rows: float
) -> dict[tuple[str, str], float]:
    """By pair: of the share of rows in like halves of both, or with a name in place of a half.

    A product of signs is +1 in like halves and -1 in others, so the share moves by half of its noise. What is measured
    several times is known as well as all of it together says.
    """
    precision: dict[tuple[int, int], float] = {}

    def measured(a: int, b: int, noise: float) -> None:
        pair = (min(a, b), max(a, b))
        precision[pair] = precision.get(pair, 0.0) + noise**-2

    for place, a in enumerate(pairs.signs):
        for b in pairs.signs[:place]:
            measured(a, b, pairs.sign_deviation / 2)
    for group in pairs.groups:
        if group.level <= 0 and group.depth <= 0:
            for b in group.partners:
                measured(group.pivot, b, group.deviation * _part(group))
    # whatever is known: rows are drawn, and halves are not those of the medians
    bin_share = 2.0 ** -min(layout.levels, PAIR_LEVELS)

    def unsettled(noise: float) -> float:
        # with tables of bins, the rows between a median and the nearest cut; of bisection that is as near as is known
        apart = min(bin_share, _MEAN_DISTANCE * noise) if layout.rounds else bin_share
        return _HALVES * noise**2 + (apart / (4 * rows) if pairs.groups else 0.0)

    by_chance = 0.0 if pairs.groups else _BY_CHANCE / (4 * rows)
    found: dict[tuple[str, str], float] = {}
    for pair, known in sorted(precision.items()):
        first, second = (attributes[number].name for number in pair)
        variance = 1 / known / rows**2 + by_chance
        cut = [alone[attributes[number].name] for number in pair if number in layout.cut]
        variance += sum(map(unsettled, cut))
        if len(cut) == 2:
            # cuts that miss both medians by p and q: 2pq more rows are in like halves, of independent columns
            variance += 4 * (cut[0] * cut[1]) ** 2
        found[first, second] = _bounded(math.sqrt(variance))
    return found


def _between(layout: OneWay) -> float:
    """How far a distribution function is from the curve through its thresholds, on average over places.

    A curve misses it by `MISFIT` about the middle. Taken as a walk that is tied at the ends and at thresholds, it has
    two thirds of that variance on average, and so many times less as there are intervals between thresholds.
    """
    return MISFIT * math.sqrt(2 / 3 / (len(layout.rounds) + 1))


def _part(group: Group) -> float:
    """How much of a contrast's noise is in a share: all of it where two names are counted."""
    return 1.0 if group.level < 0 and group.depth < 0 else 0.5


def _bounded(noise: float) -> float:
    return noise * _AT_WORST / math.hypot(noise, _AT_WORST)
