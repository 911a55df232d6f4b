"""May this be published? A statement comes in, a decision with its reasons and the next step leaves.

This is the public part of the verdict. It follows from the statement alone, so it stands in the bundle, and it alone
decides about a promise with an ε: a decision that looked at the records would be one more thing that tells of them.
The rules are fixed and few, so that they can be argued about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from shoal.columns.circumstances import MOST_DELTA
from shoal.decimals import decimal_text
from shoal.method.models import MODELS
from shoal.method.odds import belief_words, budget_words, factor_words

Level = Literal["green", "amber", "red"]
Decision = Literal["publish", "publish with these limits", "do not publish"]
LEVELS: tuple[Level, ...] = ("green", "amber", "red")
DECISIONS: Mapping[Level, Decision] = {
    "green": "publish",
    "amber": "publish with these limits",
    "red": "do not publish",
}

# budgets per person up to this one count as strong
STRONG_EPSILON = 1.0
# a larger δ leaves room for a record that is told outright
LARGE_DELTA = 1e-5
# statistical offices ask for crowds of at least three, most for more
SMALL_CROWD = 3

LOOKED = "A choice looked at the records, so the promise does not hold as stated."
NO_GUARANTEE = "The method gives no privacy guarantee."
NOT_CLIPPED = "clip=False is for experiments: released values leave the public domain."
SEEDED = "A seed was given: whoever knows it can remove the noise."

# by how a reason begins: what to do about it
_STEPS: tuple[tuple[str, str], ...] = (
    (SEEDED, "release again without a seed"),
    (NO_GUARANTEE, "take a method that promises something, such as pairs-dp"),
    (NOT_CLIPPED, "release again without clip=False"),
    (
        LOOKED,
        "settle what is listed from what is publicly known, or on a rehearsal (shoal rehearse), and release once",
    ),
    ("ε = ", "take a smaller ε, 1 say, or give the reason why this one has to be (option override)"),
    ("δ = ", "release again with a smaller δ, 1e-6 say"),
)
_PUBLISH_STEP = (
    "publish the folder of the release, and count its ε with every other release about the same people"
)
_LIMITS_STEP = (
    "publish if whoever answers for the data accepts each of these limits; they stand in the bundle"
)


@dataclass(frozen=True, slots=True)
class Reason:
    """One fact and what it does to a verdict."""

    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class PublicVerdict:
    """Whether a release may be published, as its bundle says it.

    Attributes:
        reasons: all of them, the worst first.
        next_step: what to do now.
    """

    reasons: tuple[Reason, ...]
    next_step: str

    @property
    def level(self) -> Level:
        return self.reasons[0].level

    @property
    def decision(self) -> Decision:
        return DECISIONS[self.level]

    @property
    def limits(self) -> tuple[str, ...]:
        """What somebody has to accept, or why it must not be."""
        return tuple(reason.text for reason in self.reasons if reason.level != "green")

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict as every command prints it."""
        shown = self.limits or tuple(reason.text for reason in self.reasons)
        return (f"Verdict: {self.decision}.", *(f"- {text}" for text in shown), f"Next: {self.next_step}.")


def public_verdict(statement: Mapping[str, Any]) -> PublicVerdict:
    """The public part of the verdict.

    Args:
        statement: the privacy statement as plain values.

    >>> facts = {"model": "none", "not_publishable_because": ["The method gives no privacy guarantee."]}
    >>> print(*public_verdict(facts).lines, sep="\\n")
    Verdict: do not publish.
    - The method gives no privacy guarantee.
    Next: take a method that promises something, such as pairs-dp.
    """
    refused = tuple(Reason("red", text) for text in statement["not_publishable_because"])
    if refused:
        steps = dict.fromkeys(_step(reason.text) for reason in refused)
        return PublicVerdict(refused, "; ".join(steps))
    reasons = sorted(_reasons(statement), key=lambda reason: -LEVELS.index(reason.level))
    return PublicVerdict(tuple(reasons), _PUBLISH_STEP if reasons[0].level == "green" else _LIMITS_STEP)


def too_much(facts: Mapping[str, Any], most: Fraction) -> str:
    """Why a budget is none, in words; empty where it is one.

    >>> facts = {"model": "dp", "epsilon": 1000.0, "unit": "row", "neighbours": "replace-one"}
    >>> too_much(facts, Fraction(10))[:60], too_much({**facts, "epsilon": 10.0}, Fraction(10))
    ('ε = 1,000 per row is above 10: whoever was 50% sure of a fac', '')
    """
    epsilon = facts["epsilon"]
    if epsilon is None or epsilon <= most:
        return ""
    return f"ε = {budget_words(epsilon)} per {facts['unit']} is above {budget_words(float(most))}: {_effect(facts)}."


def likely_to_fail(delta: Fraction) -> tuple[str, ...]:
    """Explain why δ is too large to be published, whatever the reason for it; empty where it is not.

    >>> likely_to_fail(Fraction("0.5"))
    ('δ = 0.5 is above 0.001: the guarantee may fail outright with that probability.',)
    >>> likely_to_fail(Fraction("0.001"))
    ()
    """
    if delta <= MOST_DELTA:
        return ()
    return (
        f"δ = {decimal_text(delta)} is above {decimal_text(MOST_DELTA)}: the guarantee may fail outright with that "
        "probability.",
    )


def large_delta(public_rows: int | None) -> float:
    """δ above which a verdict names a limit: 1e-5, or less where the public number of rows asks for less.

    >>> large_delta(None), large_delta(100), large_delta(1_000_000)
    (1e-05, 1e-05, 1e-07)
    """
    return LARGE_DELTA if public_rows is None else min(LARGE_DELTA, 1 / (10 * max(public_rows, 1)))


def _effect(facts: Mapping[str, Any]) -> str:
    """What a budget lets happen: to a belief where the claim is about records, to an outcome where it is not."""
    epsilon, unit = facts["epsilon"], facts["unit"]
    if not MODELS[facts["model"]].of_records:
        return f"with the groups known, an outcome may become {factor_words(epsilon)} times as likely"
    swapped = str(facts["neighbours"]).startswith("replace-one")
    what = f"of a fact about one {unit}" if swapped else f"that one {unit} took part"
    return f"whoever was 50% sure {what} can become {belief_words(epsilon)} sure"


def _step(reason: str) -> str:
    return next(
        (step for start, step in _STEPS if reason.startswith(start)), "mend what is listed, and release again"
    )


def _reasons(statement: Mapping[str, Any]) -> Iterable[Reason]:
    facts = MODELS[statement["model"]]
    if facts.of_the_table:
        yield Reason(
            "amber",
            "The promise is about groups of rows, not differential privacy: who knows more than is assumed can learn "
            "more.",
        )
        yield from _of_crowd(statement)
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
        yield from _of_budget(statement)
    if facts.of_the_table and statement["data_dependent"]:
        yield Reason("amber", "Choices looked at the records; the statement lists them.")


def _of_crowd(statement: Mapping[str, Any]) -> Iterable[Reason]:
    k = statement["settings"].get("k")
    if k is not None and k < SMALL_CROWD:
        yield Reason("amber", f"A crowd of {k} is a small one to hide in: most offices ask for 3 to 10.")


def _of_budget(statement: Mapping[str, Any]) -> Iterable[Reason]:
    epsilon, unit = statement["epsilon"], statement["unit"]
    words = budget_words(epsilon)
    effect = _effect(statement)
    override = statement.get("override")
    if override:
        yield Reason(
            "amber",
            f"ε = {words} per {unit} is above the limit; {effect}. Published all the same: {override}",
        )
    elif epsilon > STRONG_EPSILON:
        yield Reason(
            "amber", f"ε = {words} per {unit} is a weak budget (above {STRONG_EPSILON:g}): {effect}."
        )
    else:
        yield Reason(
            "green",
            f"ε = {words} per {unit} is a strong budget (up to {STRONG_EPSILON:g}): {effect}, not more.",
        )
    most = large_delta(statement.get("public_rows"))
    if statement.get("delta", 0) > most:
        yield Reason(
            "amber",
            f"δ = {statement['delta']:g} is large (above {most:g}): among so many people somebody may be told "
            "of outright.",
        )
