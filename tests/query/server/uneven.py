"""`shoal` as it worked before: `python uneven.py serve ...`. Questions about nobody take less work.

With it an attack by time can be tried on the deadline alone, and seen to succeed where there is no deadline.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from shoal.cli import run
from shoal.noise import exponential_choice
from shoal.query import rank, refined
from shoal.query.offer import Offer
from shoal.query.order import Order
from shoal.query.refinement import refine, sample


def offer_in_short(
    parts: list[Any], options: dict[str, Any], factors: Any, moved: Any, truth: Any, **more: Any
) -> Offer:
    """Nothing is refined where there is no truth."""
    several = "columns" in options or "statistics" in options
    expected = refined.together(parts, options) if several else parts[0]
    support = expected.support

    def work(table: Any, source: Any) -> Any:
        found, there = truth(table)
        index = support.index(found if several else found[0]) if there else None
        distances = None if index is None else expected.distance(support, index)
        answer = support.answer(sample(refine(expected.prior, distances, factors, moved), source))
        if not several:
            return parts[0].written(answer)
        return [part.written(value) for part, value in zip(parts, answer, strict=True)]

    made: Offer = _offer(parts, options, factors, moved, truth, **more)
    return Offer(
        made.epsilon, None, made.noise, made.error, work, made.conditions, made.delta, person=made.person
    )


def ranked_in_short(order: Order, chosen: Any, steps: int, above: int, whole: int) -> Any:
    """Only the records that meet the conditions are sorted."""
    positions = np.full(chosen.size, -1)
    positions[order.rows] = np.repeat(order.values, np.diff(order.ends))
    shorter = Order.of(positions[chosen])
    return _ranked(shorter, np.ones(int(chosen.sum()), dtype=np.bool_), steps, above, whole)


_offer, _ranked = refined._offer, rank.ranked

if __name__ == "__main__":
    refined._offer = offer_in_short  # type: ignore[assignment]
    rank.ranked = ranked_in_short
    rank.exponential_choice = lambda *words, largest=0: exponential_choice(*words)  # type: ignore[assignment]
    sys.exit(run(sys.argv[1:]))
