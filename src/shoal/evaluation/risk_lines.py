"""Lines of measured risk: an evaluation comes in, rates with intervals and what to compare them with leave."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.evaluation.anonymity import actual_k
from shoal.evaluation.interval import Interval
from shoal.io import Table
from shoal.text import Message

ATTEMPTS = 300
# a few lucky attempts of a sampled attack are not worth a warning
MATTERS = 0.01
# half of what lies outside of a 95% interval
_SMALL_CHANCE = 0.025
# models of the table leave columns as they are, so rows are recognised by them: what else that means
BEYOND = {
    "k-anonymity": Message.of("beyond-quasi-identifiers"),
    "probabilistic-k-anonymity": Message.of("beyond-confidential-values"),
    "t-closeness": Message.of("beyond-confidential-values"),
}
_ALL_RECORDS = Message.of("knows-records")


@dataclass(frozen=True, slots=True)
class RiskLine:
    """One way to attack, how far it gets, and what to compare that with. Rates are shares, 0 to 1.

    Attributes:
        name: of the attack.
        known: what the attacker knows or looks at.
        success: on the released table, with its 95% interval.
        chance: by guessing; the upper end of its interval where it was sampled.
        unprotected: on the original table itself, as if it had been published; None where that was not measured.
        identity: it tells who somebody is, and not only what somebody is like.
        links_records: it finds the record of a released row.
        singles_out: it finds a condition that one person alone meets.
        parted: the attacker held a sample of the released rows, drawn apart from the records: all rows can tell more.
        attempts: of a sampled attack; 0 where all rows were counted.
        beyond: why the promise is not about this attack; None where it is.
    """

    name: str
    known: Message
    success: float
    interval: Interval
    chance: float
    chance_high: float
    unprotected: float | None = None
    unprotected_interval: Interval | None = None
    identity: bool = False
    links_records: bool = False
    parted: bool = False
    attempts: int = 0
    beyond: Message | None = None
    singles_out: bool = False

    @property
    def above_chance(self) -> bool:
        """The whole interval lies above what guessing reaches; of a sampled attack, by an amount that matters."""
        limit = self.chance_high + (0.0 if self.links_records else MATTERS)
        return self.interval[0] > limit and not self._luck(limit)

    @property
    def few(self) -> bool:
        """The attacker found less to try than was asked for."""
        return 0 < self.attempts < ATTEMPTS

    def _luck(self, rate: float) -> bool:
        """Whether attempts that each succeed at this rate do as well in one case of 40, by the binomial distribution.

        The interval is an approximation, which says too much about a handful of attempts.
        """
        if not self.attempts:
            return False
        from scipy.special import bdtrc

        wins = math.floor(self.success * self.attempts + 1e-9)
        return bool(bdtrc(wins - 1, self.attempts, rate) > _SMALL_CHANCE)


def linkage_line(
    evaluation: Mapping[str, Any],
    original: Table | None,
    columns: Sequence[str],
    name: str = "record linkage",
    known: Message = _ALL_RECORDS,
    beyond: Message | None = None,
) -> list[RiskLine]:
    """Record linkage of an evaluation whose rows are matched; empty where it was not measured."""
    risk = evaluation["risk"]
    if risk["record_linkage"] is None:
        return []
    unprotected = None
    if original is not None:
        # every row of an unprotected table has its own record at distance 0, and shares it with its equals
        names = [column for column in columns if column in original.names]
        unprotected = actual_k(original, names).groups / original.n
    low, high = risk["record_linkage_interval"]
    chance = risk["record_linkage_chance"] / 100
    return [
        RiskLine(
            name=name,
            known=known,
            success=risk["record_linkage"] / 100,
            interval=(low / 100, high / 100),
            chance=chance,
            chance_high=chance,
            unprotected=unprotected,
            unprotected_interval=None if unprotected is None else (unprotected, unprotected),
            identity=True,
            links_records=True,
            beyond=beyond,
        )
    ]
