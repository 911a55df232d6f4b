"""The verdict on a release: the statement decides, measured risks advise.

The public part decides (`shoal.privacy.verdict`). The private part is what was measured on the original records. For
a claim with an ε it is advice only: withholding or repairing a release because of it would be a data-dependent
choice. The k-anonymity family makes no claim that such a choice could void; there the measured part decides too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal import display
from shoal.display import displayed, internal
from shoal.evaluation.learning import Interval
from shoal.evaluation.result import Finding, usefulness
from shoal.io import Table
from shoal.partition import actual_k
from shoal.privacy import (
    DECISION_CODES,
    DECISIONS,
    LEVELS,
    MODELS,
    Decision,
    Level,
    PublicVerdict,
    public_verdict,
)
from shoal.text import Message

ATTEMPTS = 300
# a few lucky attempts of a sampled attack do not justify a warning
MATTERS = 0.01
# half of the probability outside a 95% interval
_SMALL_CHANCE = 0.025
# models of the table leave columns unchanged, so rows can be recognised by them: the consequences to mention
BEYOND = {
    "k-anonymity": Message.of("beyond-quasi-identifiers"),
    "probabilistic-k-anonymity": Message.of("beyond-confidential-values"),
    "t-closeness": Message.of("beyond-confidential-values"),
}
_ALL_RECORDS = Message.of("knows-records")
# accepted share of linked records in a public table: the threshold of the European Medicines Agency for clinical data
MOST_LINKED = 0.09
RISK_WORDS: Mapping[Level, str] = {"green": "low", "amber": "notable", "red": "high"}
USE_WORDS: Mapping[Level, str] = {"green": "good", "amber": "fair", "red": "poor"}


@dataclass(frozen=True, slots=True)
class RiskLine:
    """The success of one attack, with what to compare it with. Rates are shares, 0 to 1.

    Attributes:
        name: of the attack.
        known: what the attacker knows or uses.
        success: on the released table, with its 95% interval.
        chance: by guessing; the upper end of its interval where it was sampled.
        unprotected: on the original table, as if it had been published; None where not measured.
        identity: success reveals who somebody is, not only an attribute of theirs.
        links_records: success finds the record of a released row.
        singles_out: success finds a condition that exactly one person meets.
        parted: the attacker held a sample of the released rows, drawn apart from the records; all rows reveal more.
        attempts: of a sampled attack; 0 where all rows were counted.
        beyond: why the claim does not cover this attack; None where it does.
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
        """The whole interval lies above the rate of guessing; for a sampled attack, by an amount that matters."""
        limit = self.chance_high + (0.0 if self.links_records else MATTERS)
        return self.interval[0] > limit and not self._luck(limit)

    @property
    def few(self) -> bool:
        """The attacker found fewer attempts than requested."""
        return 0 < self.attempts < ATTEMPTS

    def _luck(self, rate: float) -> bool:
        """Whether attempts that each succeed at this rate do as well in one case of 40, by the binomial distribution.

        The interval is an approximation, which is too optimistic for a handful of attempts.
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
    """The record linkage of an evaluation whose rows are matched; empty where not measured."""
    risk = evaluation["risk"]
    if risk["record_linkage"] is None:
        return []
    unprotected = None
    if original is not None:
        # every row of an unprotected table has its own record at distance 0, shared with identical records
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


@internal()
@dataclass(frozen=True, slots=True)
class Measured:
    """The private part: facts about the original data.

    Attributes:
        risk: success of the attacks, highest first; empty where none was measured.
        usefulness: the remaining utility; None where not measured.
    """

    risk: tuple[Finding, ...] = ()
    usefulness: Finding | None = None

    @property
    def risk_level(self) -> Level | None:
        return self.risk[0].level if self.risk else None

    @property
    def findings(self) -> tuple[Message, ...]:
        """The highest risk, and the usefulness."""
        found = [
            Message.of("risk-finding", level=RISK_WORDS[worst.level], finding=worst.message)
            for worst in self.risk[:1]
        ]
        if self.usefulness is not None:
            level = USE_WORDS[self.usefulness.level]
            found.append(Message.of("usefulness-finding", level=level, finding=self.usefulness.message))
        return tuple(found)

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(f"- {finding}" for finding in self.findings)


@displayed(display.of_verdict)
@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to "may I publish this?".

    Attributes:
        public: the findings from the statement alone, as the bundle has them.
        measured: the findings on the original, for internal use.
        counts: the measured findings affect the decision too.
        rehearsed: it was measured on stand-in data, not on the records of the release.
    """

    public: PublicVerdict
    measured: Measured
    counts: bool
    rehearsed: bool = False

    @property
    def level(self) -> Level:
        found = [self.public.level]
        if self.counts and self.measured.risk_level is not None:
            found.append(self.measured.risk_level)
        return max(found, key=LEVELS.index)

    @property
    def decision(self) -> Decision:
        return DECISIONS[self.level]

    @property
    def next_step(self) -> str:
        if self.decision == self.public.decision:
            return self.public.next_step
        return str(Message.of("step-larger-k"))

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict as every command prints it: the public part, then the measured part."""
        public = self.public.lines
        if self.decision != self.public.decision:
            public = (
                str(Message.of("verdict-line", decision=self.decision)),
                *(f"- {reason.text}" for reason in self.measured.risk if reason.level == "red"),
                *public[1:-1],
                str(Message.of("next-line", step=self.next_step)),
            )
        if not self.measured.lines:
            return public
        return (*public, self.about_measures, *self.measured.lines)

    @property
    def about_measures(self) -> str:
        """What was measured, and how it may be used."""
        advice = "measured-counts" if self.counts else "measured-advice"
        return str(Message.of("measured-rehearsal" if self.rehearsed else advice))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; with `measured` they are facts about the original data."""
        found: dict[str, Any] = {
            **self.public.to_dict(),
            "decision": self.decision,
            "code": DECISION_CODES[self.level],
            "next_step": self.next_step,
        }
        if self.measured.findings:
            found["measured"] = [str(finding) for finding in self.measured.findings]
        return found


def verdict(
    statement: Any, measured: Any = None, risks: Sequence[RiskLine] = (), *, rehearsed: bool = False
) -> Verdict:
    """Decide whether a release may be published. Every command, page and report uses this function.

    Args:
        statement: a release, a bundle, a `PrivacyStatement`, or its plain values.
        measured: what `shoal.evaluate` found, or its plain values; facts about the original data.
        rehearsed: all of it was measured on stand-in data, not on the records of the release.
        risks: results of attacks; without them the record linkage of `measured` counts.

    >>> facts = {"model": "none", "obstacles": [{"code": "no-guarantee", "facts": {}}]}
    >>> verdict(facts).decision
    'do not publish'
    """
    facts = _plain(getattr(statement, "statement", statement))
    found = None if measured is None else _plain(measured)
    lines = tuple(risks)
    if not lines and found is not None:
        lines = tuple(linkage_line(found, None, (), beyond=BEYOND.get(facts["model"])))
    counts = MODELS[facts["model"]].of_the_table
    smallest = facts["settings"].get("k") if counts else None
    most = max(MOST_LINKED, 1 / smallest) if smallest else MOST_LINKED
    risk = sorted(_of_risks(lines, most), key=lambda reason: -LEVELS.index(reason.level))
    use = None if found is None else usefulness(found["utility"], found.get("estimates"))
    return Verdict(public_verdict(facts), Measured(tuple(risk), use), counts, rehearsed)


def _plain(value: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = value if isinstance(value, Mapping) else value.to_dict()
    if "model" in found and "obstacles" not in found:
        # statements of the first format have sentences instead
        from shoal.privacy import PrivacyStatement

        return PrivacyStatement.from_dict(found).to_dict()
    return found


def _of_risks(lines: Sequence[RiskLine], most: float) -> Iterable[Finding]:
    # a correct guess of an attribute may reflect the population at large: identity counts
    telling = [line for line in lines if line.identity]
    for line in telling:
        if line.links_records and line.interval[0] > most and line.beyond is None:
            yield Finding("red", Message.of("records-linked", attack=_found(line), most=100 * most))
        elif line.above_chance:
            code = "above-chance" if line.beyond is None else "above-chance-beyond-promise"
            yield Finding("amber", Message.of(code, attack=_found(line), beyond=line.beyond))
    # an attacker who held part of the table says nothing about one who holds all of it
    harmless = [line for line in telling if not line.above_chance and not line.parted]
    if harmless:
        attacks = tuple(
            Message.of(
                "attack-no-better", name=line.name, success=100 * line.success, chance=100 * line.chance
            )
            for line in harmless
        )
        yield Finding("green", Message.of("not-above-chance", attacks=attacks))


def _found(line: RiskLine) -> Message:
    low, high = line.interval
    return Message.of(
        "attack-succeeds-of-few" if line.few else "attack-succeeds",
        name=line.name,
        success=100 * line.success,
        attempts=line.attempts,
        low=100 * low,
        high=100 * high,
        chance=100 * line.chance,
    )
