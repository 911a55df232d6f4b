"""The traffic light: a statement and, where there are any, measured risks come in; a level with its reasons leaves.

The rules are fixed and few, so that the light can be argued about. It sums up facts; it does not decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from shoal.report.risks import RiskLine
from shoal.report.words import factor_words, facts_of

Level = Literal["green", "amber", "red"]
_ORDER: tuple[Level, ...] = ("green", "amber", "red")
_VERDICTS: Mapping[Level, str] = {
    "green": "the promise stands by itself",
    "amber": "a promise holds, under limits that somebody has to accept",
    "red": "not fit for publication",
}

# budgets up to this one count as strong, those above the other as no protection in practice
STRONG_EPSILON = 1.0
EMPTY_EPSILON = 10.0
# share of records that may be linked in a table for everybody: what the European Medicines Agency asks of clinical data
MOST_LINKED = 0.09


@dataclass(frozen=True, slots=True)
class Reason:
    """One fact and what it does to the light."""

    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class Light:
    """The worst level among the reasons, all of which are shown."""

    level: Level
    reasons: tuple[Reason, ...]

    @property
    def verdict(self) -> str:
        return _VERDICTS[self.level]


def light(statement: Mapping[str, Any], risks: Sequence[RiskLine] = ()) -> Light:
    """The light of a release.

    Args:
        statement: the privacy statement as plain values.
        risks: measured ones, for a page that may hold facts about the original data; none for a public page.

    >>> facts = {"model": "none", "publishable": False, "not_publishable_because": ["It is an experiment."]}
    >>> light(facts).level
    'red'
    """
    reasons = sorted(
        [*_of_statement(statement), *_of_risks(risks)], key=lambda reason: -_ORDER.index(reason.level)
    )
    return Light(reasons[0].level, tuple(reasons))


def _of_statement(statement: Mapping[str, Any]) -> Iterable[Reason]:
    if not statement["publishable"]:
        for reason in statement["not_publishable_because"]:
            yield Reason("red", f"Not for publication: {reason[0].lower()}{reason[1:]}")
        return
    facts = facts_of(statement)
    if facts.of_the_table:
        yield Reason(
            "amber",
            "The promise is about groups of rows, not differential privacy: who knows more than is assumed can learn "
            "more.",
        )
    elif facts.given_partition:
        yield Reason(
            "amber",
            "The promise takes the groups of records as fixed and public; it is not one about the original records.",
        )
    else:
        apart = f", except with probability {statement['delta']:g}" if "delta" in statement else ""
        yield Reason(
            "green", f"The promise is about the original records, whatever else an attacker knows{apart}."
        )
    if facts.budgeted:
        yield _of_budget(statement)
    if facts.of_the_table and statement["data_dependent"]:
        yield Reason("amber", "Choices looked at the records; they are listed below.")


def _of_budget(statement: Mapping[str, Any]) -> Reason:
    epsilon = statement["epsilon"]
    effect = f"outcomes may become {factor_words(epsilon)} times as likely"
    if epsilon > EMPTY_EPSILON:
        return Reason(
            "red", f"ε = {epsilon:g} protects nobody in practice (above {EMPTY_EPSILON:g}): {effect}."
        )
    if epsilon > STRONG_EPSILON:
        return Reason("amber", f"ε = {epsilon:g} is a weak budget (above {STRONG_EPSILON:g}): {effect}.")
    return Reason(
        "green", f"ε = {epsilon:g} is a strong budget (up to {STRONG_EPSILON:g}): {effect} at most."
    )


def _of_risks(risks: Sequence[RiskLine]) -> Iterable[Reason]:
    # a guess about a person that comes true may be knowledge about people in general: identity counts
    telling = [line for line in risks if line.identity]
    for line in telling:
        if line.links_records and line.interval[0] > MOST_LINKED and not line.beyond:
            yield Reason("red", f"{_found(line)}: more than {100 * MOST_LINKED:g}% of the records.")
        elif line.above_chance:
            yield Reason("amber", f"{_found(line)}: above chance{line.beyond and f'; {line.beyond}'}.")
    # an attacker who held a part of the table says nothing about one who holds it all
    harmless = [line for line in telling if not line.above_chance and not line.parted]
    if harmless:
        words = "; ".join(
            f"{line.name} {100 * line.success:.2g}% (guessing {100 * line.chance:.2g}%)" for line in harmless
        )
        yield Reason("green", f"Not clearly above chance: {words}.")


def _found(line: RiskLine) -> str:
    low, high = line.interval
    return (
        f"{line.name[0].upper()}{line.name[1:]} succeeds in {100 * line.success:.3g}% of the "
        f"{f'{line.attempts} attempts' if line.few else 'attempts'} "
        f"({100 * low:.3g}% to {100 * high:.3g}%), guessing in {100 * line.chance:.2g}%"
    )
