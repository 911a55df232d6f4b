"""What will be measured: messages about the layouts, with the noise to expect, all of it public."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from shoal.mechanisms.pairs.currency import Currency, Shape
from shoal.mechanisms.pairs.joint import TOO_MUCH, tails_possible
from shoal.mechanisms.pairs.plan import MOST_GROUPS, PAIR_LEVELS, Facts, OneWay, Pairs
from shoal.mechanisms.pairs.triples import FOUND, LARGE, Triples
from shoal.text import Message

_FINE = (Message("halves"), Message("quarters"), Message("eighths"), Message("sixteenths"))


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


def oneway_terms(
    attributes: Sequence[Facts], layout: OneWay, currency: Currency, rows: float
) -> list[Message]:
    """How single attributes are measured."""
    found = []
    if layout.signs:
        noise = currency.deviation(Shape(1, len(layout.signs), 1), layout.sign_share) / (2 * rows)
        found.append(
            Message.of("shares-of-two-values", columns=_names(attributes, layout.signs), noise=noise)
        )
    if layout.counted:
        noise = currency.deviation(Shape(1, 1, 3), layout.each) / rows
        found.append(
            Message.of("shares-of-all-values", columns=_names(attributes, layout.counted), noise=noise)
        )
    if layout.rounds:
        noise = currency.deviation(Shape(1, len(layout.cut), 1), layout.rounds[0]) / (2 * rows)
        found.append(
            Message.of(
                "shares-below-thresholds",
                thresholds=len(layout.rounds),
                columns=_names(attributes, layout.cut),
                noise=noise,
            )
        )
    elif layout.cut:
        level = len(layout.counts) - 1
        shape = Shape(1, len(layout.cut), 1 << level)
        noise = currency.deviation(shape, layout.counts[level]) / (2 * rows)
        found.append(
            Message.of(
                "shares-of-intervals",
                intervals=2 << level,
                columns=_names(attributes, layout.cut),
                noise=noise,
            )
        )
    return found


def pair_terms(attributes: Sequence[Facts], pairs: Pairs, rows: float) -> list[Message]:
    """Which pairs are measured, and how finely."""
    if not pairs.measured:
        return [Message("pairs-not-measured")]
    found = []
    if pairs.signs:
        number = len(pairs.signs) * (len(pairs.signs) - 1) // 2
        found.append(
            Message.of(
                "like-halves-of-pairs",
                pairs=number,
                columns=_names(attributes, pairs.signs),
                noise=pairs.sign_deviation / (2 * rows),
            )
        )
    finest = max((g for g in pairs.groups if g.level >= 0), key=lambda g: g.fineness, default=None)
    if finest is not None:
        found.append(
            Message.of(
                "finest-pairs",
                one=_FINE[finest.level],
                other=_FINE[max(finest.depth, 0)],
                noise=finest.deviation / rows,
            )
        )
    named = [g for g in pairs.groups if g.level < 0]
    if named:
        with_names = sorted({g.pivot for g in named} | {b for g in named for b in g.partners if g.depth < 0})
        noise = min(g.deviation for g in named) / rows
        found.append(Message.of("pairs-with-names", columns=_names(attributes, with_names), noise=noise))
    return found


def tail_terms(
    attributes: Sequence[Facts], pairs: Pairs, currency: Currency, budget: Fraction, rows: float
) -> list[Message]:
    """What is measured besides where a column has a heavy tail, which is known only once it is measured."""
    cut = [number for number in pairs.signs if attributes[number].points > 1 << PAIR_LEVELS]
    if not cut or not tails_possible(currency, len(pairs.signs), budget, rows):
        return []
    return [Message.of("heavy-tails-measured", limit=TOO_MUCH)]


def triple_terms(
    attributes: Sequence[Facts], triples: Triples | None, asked: bool, rows: float
) -> list[Message]:
    """Which triples can be measured, where they are wanted."""
    if not asked:
        return []
    if triples is None:
        return [Message.of("triples-not-measured", least=FOUND / 2)]
    number, noise = triples.rounds, triples.deviation / (2 * rows)
    code = "one-triple" if number <= 1 else "triples-chosen" if triples.choice else "all-triples"
    return [
        Message.of(
            code,
            triples=number,
            columns=_names(attributes, triples.columns),
            noise=noise,
            followed=LARGE / 2,
        )
    ]


def _names(attributes: Sequence[Facts], numbers: Sequence[int]) -> tuple[str | Message, ...]:
    """Their names, or how many where that are many."""
    if len(numbers) > 6:
        return (Message.of("so-many-columns", count=len(numbers)),)
    return tuple(attributes[number].name for number in numbers)
