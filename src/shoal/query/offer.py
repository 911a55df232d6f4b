"""What an answer would cost. In: settled noise and price. Out: an offer, the only thing that may touch the records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal.noise import Source
from shoal.query.facts import QueryTable
from shoal.text import Message

Run = Callable[[QueryTable, Source], Any]


@dataclass(frozen=True, slots=True)
class Offer:
    """What would be answered and what it costs; everything but `run` is public.

    Attributes:
        epsilon: what the answer costs one row, under the relation of the data set.
        delta: likewise.
        sensitivity: in the unit of the answer; None where the mechanism does not use one.
        error: what is known of the error beforehand.
        run: draws the answer.
        person: for a query about one person, the column and the value that name the person.
    """

    epsilon: Fraction
    sensitivity: Fraction | None
    noise: Message
    error: Mapping[str, Any]
    run: Run
    conditions: tuple[Message, ...] = ()
    delta: Fraction = Fraction(0)
    person: tuple[str, str] | None = None
