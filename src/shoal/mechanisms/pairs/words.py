"""What will be measured, in words. In: the layouts. Out: sentences with the noise to expect, all of it public."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from shoal.mechanisms.pairs.currency import Currency, Shape
from shoal.mechanisms.pairs.joint import TOO_MUCH, tails_possible
from shoal.mechanisms.pairs.plan import MOST_GROUPS, PAIR_LEVELS, Facts, OneWay, Pairs
from shoal.mechanisms.pairs.triples import FOUND, LARGE, Triples

_FINE = ("halves", "quarters", "eighths", "sixteenths")


def outline(attributes: Sequence[Facts], layout: OneWay) -> tuple[list[int], list[int]]:
    """Levels and groups of names that pairs will have at most; rare names may yet be joined.

    >>> facts = [Facts("x", 1000, True), Facts("s", 2, True), Facts("name", 5, False)]
    >>> outline(facts, OneWay((1,), (2,), (0,), 0, 0, (), (0, 0, 0), (), 0))
    ([3, 1, 0], [0, 0, 5])
    """
    levels, groups = [0] * len(attributes), [0] * len(attributes)
    for number, facts in enumerate(attributes):
        if facts.many_names:
            groups[number] = min(facts.points, MOST_GROUPS)
        elif number in layout.cut:
            levels[number] = min(layout.levels, PAIR_LEVELS)
        elif facts.points > 1:
            levels[number] = min(PAIR_LEVELS, (facts.points - 1).bit_length())
    return levels, groups


def oneway_words(attributes: Sequence[Facts], layout: OneWay, currency: Currency, rows: float) -> list[str]:
    """How single attributes are measured."""
    found = []
    if layout.signs:
        noise = currency.deviation(Shape(1, len(layout.signs), 1), layout.sign_share) / (2 * rows)
        found.append(
            f"Shares of the two values of {_names(attributes, layout.signs)}: off by about {noise:.2g}."
        )
    if layout.counted:
        noise = currency.deviation(Shape(1, 1, 3), layout.each) / rows
        found.append(
            f"Shares of all values of {_names(attributes, layout.counted)}: off by about {noise:.2g} each."
        )
    if layout.rounds:
        noise = currency.deviation(Shape(1, len(layout.cut), 1), layout.rounds[0]) / (2 * rows)
        found.append(
            f"Shares below {len(layout.rounds)} thresholds of {_names(attributes, layout.cut)}, which are chosen as "
            f"the answers come: off by about {noise:.2g} each."
        )
    elif layout.cut:
        level = len(layout.counts) - 1
        shape = Shape(1, len(layout.cut), 1 << level)
        noise = currency.deviation(shape, layout.counts[level]) / (2 * rows)
        found.append(
            f"Shares of {2 << level} intervals between private cut points of {_names(attributes, layout.cut)}: off by "
            f"about {noise:.2g} each."
        )
    return found


def pair_words(attributes: Sequence[Facts], pairs: Pairs, rows: float) -> list[str]:
    """Which pairs are measured, and how finely."""
    if not pairs.measured:
        return ["Pairs are not measured, noise would drown them: columns of the release are independent."]
    found = []
    if pairs.signs:
        number = len(pairs.signs) * (len(pairs.signs) - 1) // 2
        found.append(
            f"For the {number} pair{'s' if number > 1 else ''} of {_names(attributes, pairs.signs)}: the share of rows "
            f"in like halves of both is off by about {pairs.sign_deviation / (2 * rows):.2g}."
        )
    finest = max((g for g in pairs.groups if g.level >= 0), key=lambda g: g.fineness, default=None)
    if finest is not None:
        found.append(
            f"The finest tables of pairs tell {_FINE[finest.level]} of one from {_FINE[max(finest.depth, 0)]} of the "
            f"other; a contrast is off by about {finest.deviation / rows:.2g}."
        )
    named = [g for g in pairs.groups if g.level < 0]
    if named:
        with_names = sorted({g.pivot for g in named} | {b for g in named for b in g.partners if g.depth < 0})
        noise = min(g.deviation for g in named) / rows
        found.append(
            f"Pairs with {_names(attributes, with_names)}: a count is off by about {noise:.2g} of the rows."
        )
    return found


def tail_words(
    attributes: Sequence[Facts], pairs: Pairs, currency: Currency, budget: Fraction, rows: float
) -> list[str]:
    """What is measured besides where a column has a heavy tail, which is known only once it is measured."""
    cut = [number for number in pairs.signs if attributes[number].points > 1 << PAIR_LEVELS]
    if not cut or not tails_possible(currency, len(pairs.signs), budget, rows):
        return []
    return [
        f"Where a column turns out to have a heavy tail, a fifth of the share of pairs goes to sums of products of its "
        f"values with those of other columns, unless correlations would be off by more than {TOO_MUCH:g}."
    ]


def triple_words(attributes: Sequence[Facts], triples: Triples | None, asked: bool, rows: float) -> list[str]:
    """Which triples can be measured, where they are wanted."""
    if not asked:
        return []
    if triples is None:
        return [
            f"Triples of columns are not measured: there are too few columns with halves, or what three of them show "
            f"together would be missed unless it moved the share of rows in like halves by {FOUND / 2:g}."
        ]
    number, noise = triples.rounds, triples.deviation / (2 * rows)
    chosen = f"Up to {number} triples are chosen privately" if number > 1 else "One triple is measured"
    if number > 1 and not triples.choice:
        chosen = "All triples are measured"
    return [
        f"{chosen} of {_names(attributes, triples.columns)}: the share of rows with an even number of second halves is "
        f"off by about {noise:.2g}. It is followed where it is {LARGE / 2:g} or more away from what pairs say."
    ]


def _names(attributes: Sequence[Facts], numbers: Sequence[int]) -> str:
    """Their names, or how many where that are many."""
    if len(numbers) > 6:
        return f"{len(numbers)} columns"
    return ", ".join(attributes[number].name for number in numbers)
