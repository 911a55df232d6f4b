"""The verdict, both parts: a statement and, where there are any, measures come in; one answer in words leaves.

The public part decides (`shoal.method.verdict`). The private part is what was measured on the original records. For a
promise with an ε it is advice only: to withhold or to repeat a release because of it would be a choice that looked at
the records. The k-anonymity family promises nothing that such a choice could spoil; there it counts as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal import summaries
from shoal.display import displayed, internal
from shoal.evaluation.risk_lines import BEYOND, RiskLine, linkage_line
from shoal.evaluation.usefulness import Finding, usefulness
from shoal.method.models import MODELS
from shoal.method.verdict import (
    DECISION_CODES,
    DECISIONS,
    LEVELS,
    Decision,
    Level,
    PublicVerdict,
    public_verdict,
)

# share of records that may be linked in a table for everybody: what the European Medicines Agency asks of clinical data
MOST_LINKED = 0.09

_ADVICE = (
    "Measured on the original records, advice only: to withhold or repeat a release because of it would be a choice "
    "that looked at the records"
)
_COUNTS = "Measured on the original records, and counted in the verdict: the promise is about this very table"
_REHEARSED = "Measured on a rehearsal, which may be looked at as often as wanted"
RISK_WORDS: Mapping[Level, str] = {"green": "low", "amber": "notable", "red": "high"}
USE_WORDS: Mapping[Level, str] = {"green": "good", "amber": "fair", "red": "poor"}


@internal()
@dataclass(frozen=True, slots=True)
class Measured:
    """The private part: facts about the original data.

    Attributes:
        risk: what attacks reached, the worst first; empty where none was measured.
        usefulness: what the release is still good for; None where that was not measured.
    """

    risk: tuple[Finding, ...] = ()
    usefulness: Finding | None = None

    @property
    def risk_level(self) -> Level | None:
        return self.risk[0].level if self.risk else None

    @property
    def lines(self) -> tuple[str, ...]:
        found = [f"- Risk, {RISK_WORDS[reason.level]}: {_small(reason.text)}" for reason in self.risk[:1]]
        if self.usefulness is not None:
            found.append(f"- Usefulness, {USE_WORDS[self.usefulness.level]}: {_small(self.usefulness.text)}")
        return tuple(found)


@displayed(summaries.of_verdict)
@dataclass(frozen=True, slots=True)
class Verdict:
    """One answer to "may I publish this?".

    Attributes:
        public: what the bundle says, from the statement alone.
        measured: what was measured on the original, to be kept inside.
        counts: what was measured decides as well.
        rehearsed: it was measured on people whom the release is not about.
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
        return "take a larger k, or leave columns out, and release again"

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict as every command prints it: the public part, then what was measured."""
        public = self.public.lines
        if self.decision != self.public.decision:
            public = (
                f"Verdict: {self.decision}.",
                *(f"- {reason.text}" for reason in self.measured.risk if reason.level == "red"),
                *public[1:-1],
                f"Next: {self.next_step}.",
            )
        if not self.measured.lines:
            return public
        return (*public, self.about_measures, *self.measured.lines)

    @property
    def about_measures(self) -> str:
        """What was measured, and what may be done with it."""
        return f"{_REHEARSED if self.rehearsed else _COUNTS if self.counts else _ADVICE}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; with `measured` they are facts about the original data."""
        found: dict[str, Any] = {
            **self.public.to_dict(),
            "decision": self.decision,
            "code": DECISION_CODES[self.level],
            "next_step": self.next_step,
        }
        if self.measured.lines:
            found["measured"] = [line.removeprefix("- ") for line in self.measured.lines]
        return found


def verdict(
    statement: Any, measured: Any = None, risks: Sequence[RiskLine] = (), *, rehearsed: bool = False
) -> Verdict:
    """May this be published? The one function that every command, page and report asks.

    Args:
        statement: a release, a bundle, a `PrivacyStatement`, or its plain values.
        measured: what `shoal.evaluate` found, or its plain values; facts about the original data.
        rehearsed: all of it was measured on people whom the release is not about.
        risks: what attacks found; without them the record linkage of `measured` counts.

    >>> facts = {"model": "none", "obstacles": [{"code": "no-guarantee", "facts": {}}]}
    >>> verdict(facts).decision
    'do not publish'
    """
    facts = _plain(getattr(statement, "statement", statement))
    found = None if measured is None else _plain(measured)
    lines = tuple(risks)
    if not lines and found is not None:
        lines = tuple(linkage_line(found, None, (), beyond=BEYOND.get(facts["model"], "")))
    counts = MODELS[facts["model"]].of_the_table
    crowd = facts["settings"].get("k") if counts else None
    most = max(MOST_LINKED, 1 / crowd) if crowd else MOST_LINKED
    risk = sorted(_of_risks(lines, most), key=lambda reason: -LEVELS.index(reason.level))
    use = None if found is None else usefulness(found["utility"], found.get("estimates"))
    return Verdict(public_verdict(facts), Measured(tuple(risk), use), counts, rehearsed)


def _plain(value: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = value if isinstance(value, Mapping) else value.to_dict()
    if "model" in found and "obstacles" not in found:
        # of the first format, which has sentences instead
        from shoal.method.statement import PrivacyStatement

        return PrivacyStatement.from_dict(found).to_dict()
    return found


def _of_risks(lines: Sequence[RiskLine], most: float) -> Iterable[Finding]:
    # a guess about a person that comes true may be knowledge about people in general: identity counts
    telling = [line for line in lines if line.identity]
    for line in telling:
        if line.links_records and line.interval[0] > most and not line.beyond:
            yield Finding(
                "red", "records-linked", f"{_found(line)}: more than {100 * most:.2g}% of the records."
            )
        elif line.above_chance:
            beyond = line.beyond and f"; {line.beyond}"
            yield Finding("amber", "above-chance", f"{_found(line)}: above chance{beyond}.")
    # an attacker who held a part of the table says nothing about one who holds it all
    harmless = [line for line in telling if not line.above_chance and not line.parted]
    if harmless:
        words = "; ".join(
            f"{line.name} {100 * line.success:.2g}% (guessing {100 * line.chance:.2g}%)" for line in harmless
        )
        yield Finding("green", "not-above-chance", f"Not clearly above chance: {words}.")


def _found(line: RiskLine) -> str:
    low, high = line.interval
    return (
        f"{line.name[0].upper()}{line.name[1:]} succeeds in {100 * line.success:.3g}% of the "
        f"{f'{line.attempts} attempts' if line.few else 'attempts'} "
        f"({100 * low:.3g}% to {100 * high:.3g}%), guessing in {100 * line.chance:.2g}%"
    )


def _small(text: str) -> str:
    return f"{text[0].lower()}{text[1:]}"
