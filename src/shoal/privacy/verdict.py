"""Claim models, their meaning, and the public verdict on a release: reasons, limits, and the meaning of ε as odds."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shoal.errors import plain_facts
from shoal.noise import MOST_DELTA
from shoal.privacy import Adjacency
from shoal.text import Message, capital, catalogue, filled, listed

if TYPE_CHECKING:
    from shoal.columns import Declared
    from shoal.mechanisms import Method


Model = Literal[
    "dp",
    "approximate-dp",
    "dp-given-partition",
    "idp-given-partition",
    "k-anonymity",
    "probabilistic-k-anonymity",
    "t-closeness",
    "none",
]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The meaning of a claim model.

    Attributes:
        not_promised: codes of what the claim does not include, although a reader might expect it.
        budgeted: the claim is about neighbouring tables and has an ε.
        of_records: the claim is about the original records, whatever they are, and composes with other such claims.
        given_partition: the clusters are treated as fixed and known.
        guarantee: the model has a guarantee; without one a release is for experiments only.
        of_the_table: the claim is about the released table itself, so data-dependent choices do not void it,
            and no domain needs to be known in advance.
    """

    model: Model
    not_promised: tuple[str, ...]
    budgeted: bool = True
    of_records: bool = False
    given_partition: bool = False
    guarantee: bool = True
    of_the_table: bool = False

    @property
    def target(self) -> str:
        """What the claim protects."""
        return str(Message(f"target-{self.model}"))

    def claim_message(self, facts: Mapping[str, Any]) -> Message:
        """The claim in one phrase, with ε, δ, the unit, what is counted and the settings filled in."""
        return Message(f"promise-{self.model}", facts)


MODELS: Mapping[Model, ModelFacts] = {
    facts.model: facts
    for facts in (
        ModelFacts("dp", ("population-not-hidden", "other-releases-not-covered"), of_records=True),
        ModelFacts(
            "approximate-dp",
            ("not-pure-dp", "population-not-hidden", "other-releases-not-covered"),
            of_records=True,
        ),
        ModelFacts(
            "dp-given-partition", ("not-dp-of-records", "other-releases-not-covered"), given_partition=True
        ),
        ModelFacts(
            "idp-given-partition",
            ("not-dp-but-individual", "clusters-not-covered", "other-releases-not-covered"),
            given_partition=True,
        ),
        ModelFacts(
            "k-anonymity",
            ("rows-in-common-not-hidden", "being-in-table-not-hidden", "not-dp"),
            budgeted=False,
            of_the_table=True,
        ),
        ModelFacts(
            "probabilistic-k-anonymity",
            ("values-in-common-not-hidden", "being-in-table-not-hidden-by-others", "not-dp"),
            budgeted=False,
            of_the_table=True,
        ),
        ModelFacts(
            "t-closeness",
            ("single-values-not-bounded", "being-in-table-not-hidden-by-others", "not-dp"),
            budgeted=False,
            of_the_table=True,
        ),
        ModelFacts("none", ("nothing-promised",), budgeted=False, guarantee=False),
    )
}


@dataclass(frozen=True, slots=True)
class Case:
    """A claim model and the conditions under which it holds.

    Attributes:
        because: the effect of one record in this case and how it is covered; a text for a third-party claim.
        when: for facts about the configured method, by name, the values under which the case applies. Facts are
            the settings of the method, its `stability`, whether rows are `linked` (several columns in one order) and
            whether columns are `nominal`.
    """

    model: Model
    because: Message | str
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def holds(self, method: Method, *, linked: bool, nominal: bool) -> bool:
        facts = {"linked": linked, "nominal": nominal}
        return all(
            (facts[name] if name in facts else getattr(method, name)) in values
            for name, values in self.when.items()
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """What a mechanism claims.

    Attributes:
        cases: the first applicable case determines the model; the last one always applies.
        shows_gaps: released values stay in the rows of their records, so that values can stay missing there
            without exceeding the claim.
        proofs: parts of the pages in docs/proofs.
        free: values are released unchanged or not at all, so no domain needs to be declared, whatever the claim.
    """

    cases: tuple[Case, ...]
    shows_gaps: bool = False
    proofs: tuple[str, ...] = ()
    free: bool = False

    def case(self, method: Method, *, linked: bool, nominal: bool) -> Case:
        """The case that applies to a method with these columns."""
        return next(case for case in self.cases if case.holds(method, linked=linked, nominal=nominal))


# noise on cluster sums, by the effect of one replaced record on the clusters
BY_STABILITY = (
    Case(
        "idp-given-partition",
        Message("because-fitted-to-records"),
        {"sensitivity": ("local", "cluster")},
    ),
    Case("dp", Message("because-own-cluster"), {"stability": ("record", "private")}),
    # changes of rank sums telescope, choices of concepts do not: each affected cluster would cost the whole ε
    Case(
        "dp",
        Message("because-fixed-ranks"),
        {"stability": ("rank",), "linked": (False,), "nominal": (False,)},
    ),
    Case("dp-given-partition", Message("because-clusters-fixed")),
)


@dataclass(frozen=True, slots=True)
class MethodTerms:
    """What a statement says about how a method groups records and calibrates its noise.

    Attributes:
        clusters: the origin of the clusters, for a claim that takes them as fixed.
        noise: conditions and limits of noise calibrated to the actual records.
        not_promised: what the guarantee does not include, although a reader might expect it.
        data_dependent: data-dependent settings.
        noise_can_vanish: some records may get no noise at all.
        shares_follow_widths: the split of ε reveals the ratio of the domains' widths.
        invariants: what the method releases exactly or treats as public, each a code with facts.
    """

    clusters: Message | None = None
    noise: tuple[Message, ...] = ()
    not_promised: tuple[Message, ...] = ()
    data_dependent: tuple[Message, ...] = ()
    noise_can_vanish: bool = False
    shares_follow_widths: bool = False
    invariants: tuple[Declared, ...] = ()


@dataclass(frozen=True, slots=True)
class AppliedClaim:
    """The claim for one release, from which its statement is computed.

    Attributes:
        conditions: statement messages about third-party stages.
        own: every stage is one of Shoal's own, whose noise is drawn by exact arithmetic.
    """

    model: Model
    shows_gaps: bool
    conditions: tuple[Message, ...]
    own: bool


@dataclass(frozen=True, slots=True)
class StatementTerms:
    """The items of a statement, each a code with plain facts.

    Attributes:
        conditions: conditions of the guarantee, and how they were met.
        data_dependent: data-dependent choices.
        not_promised: what the guarantee does not include, although a reader might expect it.
        steps: steps applied to every record before protection, and the treatment of its survey weight.
    """

    conditions: tuple[Message, ...] = ()
    data_dependent: tuple[Message, ...] = ()
    not_promised: tuple[Message, ...] = ()
    steps: tuple[Message, ...] = ()

    @classmethod
    def of(cls, **said: Iterable[Message | str]) -> StatementTerms:
        """The terms with their facts in stored form; items of third-party stages are texts."""
        return cls(**{name: tuple(map(_plain_message, messages)) for name, messages in said.items()})

    def with_conditions(self, more: Iterable[Message | str]) -> StatementTerms:
        return replace(self, conditions=(*self.conditions, *map(_plain_message, more)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            name: [{"code": said.code, "facts": dict(said.facts)} for said in getattr(self, name)]
            for name in ("conditions", "data_dependent", "not_promised", "steps")
        }


def _plain_message(said: Message | str) -> Message:
    if isinstance(said, str):
        return Message.of("unknown", text=said)
    return Message(said.code, plain_facts(said.facts))


@cache
def stored_sentences() -> Mapping[str, Mapping[str, str]]:
    """The sentences stored in files of earlier versions.

    Codes by sentence for terms and reasons without facts, adjacencies by their wording, and the templates of steps,
    by which journals compare settings.
    """
    found: dict[str, dict[str, str]] = json.loads(
        Path(__file__).with_name("sentences_v1.json").read_text("utf-8")
    )
    return found


def step_key(said: Message) -> str:
    """A version-independent description of a step, by which journals compare it with earlier ones.

    >>> step_key(Message.of("weight-dropped", column="w"))
    'The survey weight w was not released.'
    """
    templates = stored_sentences()["steps"]
    code = said.facts.get("step", said.code)
    if code not in templates:
        return str(said)
    found = filled(templates[code], said.facts)
    return found if code == said.code else f"{capital(found)}."


# from here on a factor is printed as "more than"
_LARGEST_FACTOR = 1_000_000


def belief(epsilon: float) -> Message | str:
    """The maximum that a belief of 50% can rise to, rounded up.

    >>> str(belief(1.0)), str(belief(12.0))
    ('73.2%', 'more than 99.9%')
    """
    percent = math.ceil(1000.0 / (1.0 + math.exp(-min(epsilon, 700.0))) - 1e-9) / 10.0
    return f"{percent:.1f}%" if percent <= 99.9 else Message.of("more-than", number="99.9%")


def factor(epsilon: float) -> Message | str:
    """e^ε, rounded up to three digits.

    >>> str(factor(1.0)), str(factor(0.1)), str(factor(40.0))
    ('2.72', '1.11', 'more than 1,000,000')
    """
    if epsilon >= math.log(_LARGEST_FACTOR):
        return Message.of("more-than", number=f"{_LARGEST_FACTOR:,}")
    found = math.exp(epsilon)
    unit = 10.0 ** (math.floor(math.log10(found)) - 2)
    return f"{math.ceil(found / unit - 1e-9) * unit:,.10g}"


def belief_words(epsilon: float) -> str:
    """The belief as text."""
    return str(belief(epsilon))


def factor_words(epsilon: float) -> str:
    """The factor as text."""
    return str(factor(epsilon))


def budget_words(value: float) -> str:
    """A budget in human form: at least two digits after the leading zeros, never below its value.

    >>> budget_words(0.1098612289), budget_words(1.0), budget_words(1000.0), budget_words(2.7200001)
    ('0.11', '1', '1,000', '2.73')
    """
    if value <= 0:
        return "0"
    unit = 10.0 ** min(math.floor(math.log10(value)) - 1, -2)
    return f"{math.ceil(value / unit - 1e-6) * unit:,.10g}"


Level = Literal["green", "amber", "red"]
Decision = Literal["publish", "publish with these limits", "do not publish"]
Facts = Mapping[str, Any]
LEVELS: tuple[Level, ...] = ("green", "amber", "red")
DECISIONS: Mapping[Level, Decision] = {
    "green": "publish",
    "amber": "publish with these limits",
    "red": "do not publish",
}
DECISION_CODES: Mapping[Level, str] = {
    "green": "publish",
    "amber": "publish-with-limits",
    "red": "do-not-publish",
}

# budgets per person up to this one count as strong
STRONG_EPSILON = 1.0

# a larger δ allows a record to be disclosed outright
LARGE_DELTA = 1e-5

# statistical offices require groups of at least three, most of them more
SMALL_CROWD = 3

# share of a column's range from which the standard deviation of its noise dominates its values
MOST_RANGE_ERROR = 0.25

# the same for the standard error of shares of the rows
MOST_SHARE_ERROR = 0.1


class StatementPart(StrEnum):
    """The part of a statement that a rule refers to."""

    COMPUTED = "computed"
    DECLARED = "declared"
    RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class VerdictRule:
    """A published rule: when a reason applies, and its effect on a verdict.

    Attributes:
        level: green supports publication, amber is a limit that somebody has to accept, red refuses.
        part: the part of a statement that holds its facts.
        facts: its thresholds.
    """

    level: Level
    part: StatementPart
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reason:
    """One fact and its effect on a verdict.

    >>> Reason.of("small-group", k=2).text
    'k = 2 is small: most statistical offices require 3 to 10.'
    """

    level: Level
    code: str
    facts: Facts = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, code: str, **facts: Any) -> Reason:
        """The reason under its rule; a code without a rule is a limit."""
        rule = RULES.get(code)
        return cls("amber" if rule is None else rule.level, code, facts)

    @property
    def message(self) -> Message:
        """The reason as a message; a code without a sentence in this version is shown by name."""
        if self.code not in RULES:
            return other_fact(self.code, self.facts)
        worded = _WORDED.get(self.code)
        return Message(f"reason-{self.code}", self.facts) if worded is None else worded(self.facts)

    @property
    def text(self) -> str:
        return str(self.message)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"level": self.level, "code": self.code, "facts": dict(self.facts), "text": self.text}


@dataclass(frozen=True, slots=True)
class PublicVerdict:
    """Whether a release may be published, as stated in its bundle.

    Attributes:
        reasons: all of them, the worst first.
    """

    reasons: tuple[Reason, ...]

    @property
    def level(self) -> Level:
        return self.reasons[0].level

    @property
    def decision(self) -> Decision:
        return DECISIONS[self.level]

    @property
    def code(self) -> str:
        return DECISION_CODES[self.level]

    @property
    def next_step(self) -> str:
        """What to do now."""
        if self.level != "red":
            return str(Message(f"step-{self.code}"))
        steps = dict.fromkeys(_step(reason.code) for reason in self.reasons if reason.level == "red")
        return "; ".join(str(Message(code)) for code in steps)

    @property
    def limits(self) -> tuple[str, ...]:
        """Limits that somebody has to accept, or reasons against publication."""
        return tuple(reason.text for reason in self.reasons if reason.level != "green")

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict as printed by every command."""
        shown = self.limits or tuple(reason.text for reason in self.reasons)
        first, last = (
            Message.of("verdict-line", decision=self.decision),
            Message.of("next-line", step=self.next_step),
        )
        return (str(first), *(f"- {text}" for text in shown), str(last))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the sentences, and the codes from which they are rendered."""
        return {
            "decision": self.decision,
            "limits": list(self.limits),
            "next_step": self.next_step,
            "code": self.code,
            "reasons": [reason.to_dict() for reason in self.reasons],
        }


def public_verdict(statement: Mapping[str, Any]) -> PublicVerdict:
    """The public part of the verdict.

    Args:
        statement: the privacy statement as plain values.

    >>> facts = {"model": "none", "obstacles": [{"code": "no-guarantee", "facts": {}}]}
    >>> print(*public_verdict(facts).lines, sep="\\n")
    Verdict: do not publish.
    - The method gives no privacy guarantee.
    Next: use a method with a privacy guarantee, such as pairs-dp.
    """
    refused = tuple(Reason("red", one["code"], one["facts"]) for one in statement["obstacles"])
    if refused:
        return PublicVerdict(refused)
    return PublicVerdict(tuple(sorted(_reasons(statement), key=lambda reason: -LEVELS.index(reason.level))))


def _step(code: str) -> str:
    """The code of the next step for a reason."""
    return f"step-{code}" if f"step-{code}" in catalogue() else "step-other"


def budget_facts(statement: Mapping[str, Any]) -> dict[str, Any]:
    """The facts for sentences about a budget."""
    return {name: statement[name] for name in ("epsilon", "unit", "model", "adjacency")}


def too_much(facts: Mapping[str, Any], most: Fraction) -> Reason | None:
    """Explain why ε is too large to be meaningful, or return None.

    >>> facts = {"model": "dp", "epsilon": 1000.0, "unit": "row", "adjacency": "replace-one"}
    >>> too_much(facts, Fraction(10)).text[:38], too_much({**facts, "epsilon": 10.0}, Fraction(10))
    ('ε = 1,000 per row is above 10: someone', None)
    """
    epsilon = facts["epsilon"]
    if epsilon is None or epsilon <= most:
        return None
    return Reason.of("epsilon-too-large", **budget_facts(facts), limit=float(most))


def likely_to_fail(delta: Fraction) -> tuple[Reason, ...]:
    """Explain why δ is too large to be published, under any justification, or return ().

    >>> [reason.text for reason in likely_to_fail(Fraction("0.5"))]
    ['δ = 0.5 is above 0.001: with that probability, the guarantee may fail completely.']
    >>> likely_to_fail(Fraction("0.001"))
    ()
    """
    if delta <= MOST_DELTA:
        return ()
    return (Reason.of("delta-too-large", delta=float(delta), limit=float(MOST_DELTA)),)


def large_delta(public_rows: int | None) -> float:
    """δ above which a verdict names a limit: 1e-5, or less if the public number of rows requires it.

    >>> large_delta(None), large_delta(100), large_delta(1_000_000)
    (1e-05, 1e-05, 1e-07)
    """
    return LARGE_DELTA if public_rows is None else min(LARGE_DELTA, 1 / (10 * max(public_rows, 1)))


def _reasons(statement: Mapping[str, Any]) -> Iterable[Reason]:
    facts = MODELS[statement["model"]]
    if facts.of_the_table:
        yield Reason.of("groups-of-rows")
        k = statement["settings"].get("k")
        if k is not None and k < SMALL_CROWD:
            yield Reason.of("small-group", k=k)
    elif facts.given_partition:
        yield Reason.of("groups-public")
    else:
        yield Reason.of("original-records", **_of("delta", statement))
    if facts.budgeted:
        yield from _of_budget(statement)
    if facts.of_the_table and statement["data_dependent"]:
        yield Reason.of("data-dependent-table", choices=len(statement["data_dependent"]))
    expected = statement.get("computed", {}).get("expected_error")
    if expected is not None:
        yield from error_reasons(expected)
    for one in statement.get("recorded", ()):
        if one["code"] != DATA_DEPENDENT:
            yield Reason("amber", one["code"], one["facts"])


# choices that taint a statement, or that of a k-anonymous table, have rules of their own
DATA_DEPENDENT = "data-dependent"


def _of(name: str, statement: Mapping[str, Any]) -> dict[str, Any]:
    return {name: statement[name]} if name in statement else {}


def _of_budget(statement: Mapping[str, Any]) -> Iterable[Reason]:
    facts = budget_facts(statement)
    if statement.get("override"):
        yield Reason.of("epsilon-overridden", **facts, reason=statement["override"])
    elif facts["epsilon"] > STRONG_EPSILON:
        yield Reason.of("epsilon-weak", **facts, limit=STRONG_EPSILON)
    else:
        yield Reason.of("epsilon-strong", **facts, limit=STRONG_EPSILON)
    limit = large_delta(statement.get("public_rows"))
    if statement.get("delta", 0) > limit:
        yield Reason.of("delta-large", delta=statement["delta"], limit=limit)


def error_reasons(expected: Mapping[str, Any]) -> Iterable[Reason]:
    """The limits that follow from an expected error: columns dominated by noise, and columns of unknown error."""
    columns: Mapping[str, Mapping[str, Any]] = expected["columns"]
    for kind, limit in (("share_of_range", MOST_RANGE_ERROR), ("share_of_rows", MOST_SHARE_ERROR)):
        worst = {name: one[kind] for name, one in columns.items() if (one[kind] or 0.0) >= limit}
        if worst:
            yield Reason.of(
                "noise-dominates", columns=list(worst), error=max(worst.values()), of=kind, limit=limit
            )
    relations = expected["relations"]
    if relations is not None and relations["of"] and not relations["measured"]:
        yield Reason.of("relations-not-measured", pairs=relations["of"])
    unknown = {name: one["why"] for name, one in columns.items() if one["why"] not in ("", *_NO_LIMITS)}
    if unknown:
        yield Reason.of("error-not-assessed", columns=list(unknown), why=sorted(set(unknown.values())))


# reasons for an unknown expected error that are not limits
NO_NOISE = "no-noise"
_NO_LIMITS = (NO_NOISE, "column-derived")


def unknown_error(why: str) -> Message | str:
    """Why an expected error is unknown, as text; a code of another version unchanged."""
    code = f"unknown-error-{why}"
    return Message(code) if code in catalogue() else why


def other_fact(code: str, facts: Facts) -> Message:
    """A fact without a sentence in this version.

    >>> str(other_fact("moon-phase", {"phase": "full", "nights": 2}))
    'Moon phase: phase = full, nights = 2.'
    """
    return Message.of("as-sentence", said=other_phrase(code, facts, capital))


def other_phrase(code: str, facts: Facts, spelled: Callable[[str], str] = str) -> Message:
    """The same without a full stop."""
    what = spelled(code.replace("-", " "))
    said = tuple(Message.of("fact-named", name=name, value=_shown(value)) for name, value in facts.items())
    return Message.of("other-phrase", what=what, said=said) if said else Message.of("other-word", what=what)


def _shown(value: Any) -> Any:
    return listed(value) if isinstance(value, (list, tuple)) else value


def _effect(facts: Facts) -> Message:
    """The effect of a budget: on a belief if the claim is about records, otherwise on an outcome."""
    epsilon, unit = facts["epsilon"], facts["unit"]
    if not MODELS[facts["model"]].of_records:
        return Message.of("effect-outcome", factor=factor(epsilon))
    swapped = facts["adjacency"] == Adjacency.REPLACE_ONE
    return Message.of("effect-fact" if swapped else "effect-part", unit=unit, belief=belief(epsilon))


def _of_epsilon(code: str) -> Callable[[Facts], Message]:
    def worded(facts: Facts) -> Message:
        epsilon = Message.of("epsilon-per-unit", budget=budget_words(facts["epsilon"]), unit=facts["unit"])
        return Message(f"reason-{code}", {**facts, "epsilon": epsilon, "effect": _effect(facts)})

    return worded


def _too_large(facts: Facts) -> Message:
    return _of_epsilon("epsilon-too-large")({**facts, "limit": budget_words(facts["limit"])})


def _original_records(facts: Facts) -> Message:
    return Message("reason-original-records-but" if "delta" in facts else "reason-original-records", facts)


def _noise_dominates(facts: Facts) -> Message:
    several = "-at-worst" if len(facts["columns"]) > 1 else ""
    return Message(f"reason-noise-dominates-{facts['of'].replace('_', '-')}{several}", facts)


def _not_assessed(facts: Facts) -> Message:
    why = tuple(unknown_error(one) for one in facts["why"])
    return Message("reason-error-not-assessed", {**facts, "why": why})


def _viewed(facts: Facts) -> Message:
    views = tuple(facts.get("views", ())) or ("values",)
    several = len(views) > 1 or views[0] in _SEVERAL
    return Message.of(
        "reason-column-viewed-several" if several else "reason-column-viewed",
        views=tuple(Message.of("view", view=view) for view in views),
        column=facts.get("column", Message("some-column")),
    )


def _earlier(facts: Facts) -> Message:
    used = tuple(
        Message.of(f"{name}-{'one' if facts[name] == 1 else 'several'}", count=facts[name])
        for name in ("measured", "downloaded")
        if facts.get(name)
    )
    code = "reason-earlier-releases-used" if used else "reason-earlier-releases"
    return Message.of(code, count=facts.get("count", 0), used=used)


def _same_records(facts: Facts) -> Message:
    found = facts.get("datasets", facts.get("dataset", ()))
    names = (found,) if isinstance(found, str) else tuple(found)
    number = "-several" if len(names) > 1 else "" if names else "-unnamed"
    return Message.of(f"reason-same-records{number}", datasets=names)


# views that consist of several things
_SEVERAL = ("counts", "rows", "values")

# reasons whose sentence needs more than their facts
_WORDED: Mapping[str, Callable[[Facts], Message]] = {
    **{code: _of_epsilon(code) for code in ("epsilon-overridden", "epsilon-weak", "epsilon-strong")},
    "epsilon-too-large": _too_large,
    "noise-dominates": _noise_dominates,
    "error-not-assessed": _not_assessed,
    "column-viewed": _viewed,
    "earlier-releases": _earlier,
    "settings-changed": lambda facts: Message.of(
        "reason-settings-changed", settings=facts.get("settings", ())
    ),
    "same-records": _same_records,
    "records-measured": lambda facts: Message.of("reason-records-measured", count=facts.get("count", 0)),
    "rehearsed-on-records": lambda facts: Message.of(
        "reason-rehearsed-on-records", count=facts.get("count", 1)
    ),
    "original-records": _original_records,
}
RULES: Mapping[str, VerdictRule] = {
    "no-guarantee": VerdictRule("red", StatementPart.COMPUTED),
    "seeded": VerdictRule("red", StatementPart.COMPUTED),
    "not-clipped": VerdictRule("red", StatementPart.COMPUTED),
    "epsilon-too-large": VerdictRule("red", StatementPart.COMPUTED),
    "delta-too-large": VerdictRule("red", StatementPart.COMPUTED, {"limit": float(MOST_DELTA)}),
    DATA_DEPENDENT: VerdictRule("red", StatementPart.RECORDED),
    "unknown": VerdictRule("red", StatementPart.COMPUTED),
    "groups-of-rows": VerdictRule("amber", StatementPart.COMPUTED),
    "small-group": VerdictRule("amber", StatementPart.COMPUTED, {"limit": SMALL_CROWD}),
    "groups-public": VerdictRule("amber", StatementPart.COMPUTED),
    "epsilon-overridden": VerdictRule("amber", StatementPart.DECLARED),
    "epsilon-weak": VerdictRule("amber", StatementPart.COMPUTED, {"limit": STRONG_EPSILON}),
    "delta-large": VerdictRule("amber", StatementPart.COMPUTED, {"limit": LARGE_DELTA}),
    "noise-dominates": VerdictRule(
        "amber", StatementPart.COMPUTED, {"range_limit": MOST_RANGE_ERROR, "share_limit": MOST_SHARE_ERROR}
    ),
    "relations-not-measured": VerdictRule("amber", StatementPart.COMPUTED),
    "error-not-assessed": VerdictRule("amber", StatementPart.COMPUTED),
    "data-dependent-table": VerdictRule("amber", StatementPart.RECORDED),
    "column-viewed": VerdictRule("amber", StatementPart.RECORDED),
    "earlier-releases": VerdictRule("amber", StatementPart.RECORDED),
    "settings-changed": VerdictRule("amber", StatementPart.RECORDED),
    "same-records": VerdictRule("amber", StatementPart.RECORDED),
    "records-measured": VerdictRule("amber", StatementPart.RECORDED),
    "rehearsed-on-records": VerdictRule("amber", StatementPart.RECORDED),
    "original-records": VerdictRule("green", StatementPart.COMPUTED),
    "epsilon-strong": VerdictRule("green", StatementPart.COMPUTED, {"limit": STRONG_EPSILON}),
}


def rules_table() -> str:
    """The rules as shown in the documentation."""
    lines = ["| code | part | when | effect |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{code}` | {rule.part} | {Message(f'about-{code}', rule.facts)} | `{DECISION_CODES[rule.level]}` |"
        for code, rule in RULES.items()
    ]
    return "\n".join(lines)
