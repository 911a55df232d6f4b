"""What an answer would cost. In: settled noise and price. Out: an offer, the only thing that may touch the records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal.noise import Source
from shoal.privacy import Accountant, Adjacency
from shoal.query.facts import Facts, QueryTable
from shoal.text import Message

Run = Callable[[QueryTable, Accountant], Any]


@dataclass(frozen=True, slots=True)
class Offer:
    """What would be answered and what it costs; everything but `run` is public.

    Attributes:
        epsilon: what the answer costs one row, under the relation of the data set.
        reserved: what of it is for which measurement; nothing where the answer is public.
        delta: the chance that this fails, under the same relation.
        sensitivity: in the unit of the answer; None where the mechanism does not use one.
        error: what is known of the error beforehand.
        run: draws the answer, and spends what is reserved.
        person: for a query about one person, the column and the value that name the person.
    """

    epsilon: Fraction
    reserved: Mapping[str, Fraction]
    sensitivity: Fraction | None
    noise: Message
    error: Mapping[str, Any]
    run: Run
    conditions: tuple[Message, ...] = ()
    delta: Fraction = Fraction(0)
    person: tuple[str, str] | None = None

    def account(self, facts: Facts, source: Source) -> Accountant:
        """The account of one answer, with nothing spent.

        Raises:
            OverspendError: more is reserved than the answer costs.
        """
        return Accountant.of(self.reserved, self.epsilon, source, adjacency=Adjacency(facts.neighbours))
