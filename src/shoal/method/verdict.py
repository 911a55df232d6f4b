"""The public verdict: published rules that turn a statement into a decision, its reasons and the next step.

It follows from the statement alone, so it stands in the bundle, and it alone decides about a guarantee with an ε: a
decision that depended on the records would be one more thing that tells of them. Every reason is a code with facts; its
sentence is rendered from them, last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any, Literal

from shoal.columns.circumstances import MOST_DELTA
from shoal.method.models import MODELS, Adjacency
from shoal.method.odds import belief_words, budget_words, factor_words

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
# a larger δ leaves room for a record that is told outright
LARGE_DELTA = 1e-5
# statistical offices ask for groups of at least three, most for more
SMALL_CROWD = 3
# share of a column's range from which on the standard deviation of its noise dominates what it says
MOST_RANGE_ERROR = 0.25
# the same for the standard error of shares of the rows
MOST_SHARE_ERROR = 0.1
# names in a sentence; all of them stand in the facts
_SHOWN = 5

LOOKED = "A choice looked at the records, so the promise does not hold as stated."
NO_GUARANTEE = "The method gives no privacy guarantee."
NOT_CLIPPED = "clip=False is for experiments: released values leave the public domain."
SEEDED = "A seed was given: whoever knows it can remove the noise."

_PUBLISH_STEP = (
    "publish the folder of the release, and count its ε with every other release about the same people"
)
_LIMITS_STEP = (
    "publish if whoever answers for the data accepts each of these limits; they stand in the bundle"
)
_OTHER_STEP = "fix the issues listed and release again"


class Part(StrEnum):
    """The part of a statement that a rule looks at."""

    COMPUTED = "computed"
    DECLARED = "declared"
    RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class Rule:
    """A published rule: what brings a reason about, and what it does to a verdict.

    Attributes:
        level: green speaks for publication, amber is a limit that somebody has to accept, red refuses.
        part: where in a statement its facts stand.
        about: when it applies, for the table of rules.
        text: the reason as a sentence.
        step: what to do about it; empty where that is up to whoever answers for the data.
    """

    level: Level
    part: Part
    about: str
    text: Callable[[Facts], str]
    step: str = ""


@dataclass(frozen=True, slots=True)
class Reason:
    """One fact and what it does to a verdict.

    >>> Reason.of("small-group", k=2).text
    'A crowd of 2 is a small one to hide in: most offices ask for 3 to 10.'
    """

    level: Level
    code: str
    facts: Facts = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, code: str, **facts: Any) -> Reason:
        """The reason that a rule gives; one that no rule knows is a limit."""
        rule = RULES.get(code)
        return cls("amber" if rule is None else rule.level, code, facts)

    @property
    def text(self) -> str:
        rule = RULES.get(self.code)
        return fact_words(self.code, self.facts) if rule is None else rule.text(self.facts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"level": self.level, "code": self.code, "facts": dict(self.facts), "text": self.text}


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
    def code(self) -> str:
        return DECISION_CODES[self.level]

    @property
    def limits(self) -> tuple[str, ...]:
        """What somebody has to accept, or why it must not be."""
        return tuple(reason.text for reason in self.reasons if reason.level != "green")

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict as every command prints it."""
        shown = self.limits or tuple(reason.text for reason in self.reasons)
        return (f"Verdict: {self.decision}.", *(f"- {text}" for text in shown), f"Next: {self.next_step}.")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the words, and the codes that they are rendered from."""
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
    Next: take a method that promises something, such as pairs-dp.
    """
    refused = tuple(Reason("red", one["code"], one["facts"]) for one in statement["obstacles"])
    if refused:
        steps = dict.fromkeys(_step(reason.code) for reason in refused)
        return PublicVerdict(refused, "; ".join(steps))
    reasons = sorted(_reasons(statement), key=lambda reason: -LEVELS.index(reason.level))
    return PublicVerdict(tuple(reasons), _PUBLISH_STEP if reasons[0].level == "green" else _LIMITS_STEP)


def _step(code: str) -> str:
    rule = RULES.get(code)
    return rule.step if rule is not None and rule.step else _OTHER_STEP


def budget_facts(statement: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that words about a budget need."""
    return {name: statement[name] for name in ("epsilon", "unit", "model", "adjacency")}


def too_much(facts: Mapping[str, Any], most: Fraction) -> Reason | None:
    """Why ε is too large to be meaningful; None where it is not.

    >>> facts = {"model": "dp", "epsilon": 1000.0, "unit": "row", "adjacency": "replace-one"}
    >>> too_much(facts, Fraction(10)).text[:60], too_much({**facts, "epsilon": 10.0}, Fraction(10))
    ('ε = 1,000 per row is above 10: whoever was 50% sure of a fac', None)
    """
    epsilon = facts["epsilon"]
    if epsilon is None or epsilon <= most:
        return None
    return Reason.of("epsilon-too-large", **budget_facts(facts), limit=float(most))


def likely_to_fail(delta: Fraction) -> tuple[Reason, ...]:
    """Explain why δ is too large to be published, whatever the reason for it; empty where it is not.

    >>> [reason.text for reason in likely_to_fail(Fraction("0.5"))]
    ['δ = 0.5 is above 0.001: the guarantee may fail outright with that probability.']
    >>> likely_to_fail(Fraction("0.001"))
    ()
    """
    if delta <= MOST_DELTA:
        return ()
    return (Reason.of("delta-too-large", delta=float(delta), limit=float(MOST_DELTA)),)


def large_delta(public_rows: int | None) -> float:
    """δ above which a verdict names a limit: 1e-5, or less where the public number of rows asks for less.

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


# what taints a statement, or a k-anonymous table's, is counted by rules of its own
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
    """The limits that follow from an expected error: columns that noise dominates, and those of which it is unknown."""
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
    unknown = {name: one["why"] for name, one in columns.items() if one["why"] not in ("", NO_NOISE)}
    if unknown:
        yield Reason.of("error-not-assessed", columns=list(unknown), why=sorted(set(unknown.values())))


# why an expected error is not known, by code; the first is no limit
NO_NOISE = "no-noise"
UNKNOWN_ERRORS: Mapping[str, str] = {
    NO_NOISE: "the method adds no noise",
    "drawn-anew": "rows are drawn anew from noisy statistics",
    "own-noise": "the composition as published has noise of each record's own",
    "follows-records": "the noise follows the records",
    "variance-unknown": "the variance of this noise is not known",
    "name-drawn": "a name is drawn for every cluster",
    "domain-private": "a range, a step or a type was taken from the records",
    "rows-private": "the number of rows is private and none is declared",
}


def listed(names: Sequence[str], shown: int = _SHOWN) -> str:
    """Names in a sentence, many of them cut short.

    >>> listed(["a", "b"]), listed(["a", "b", "c", "d"], 2)
    ('a, b', 'a, b and 2 more')
    """
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def _effect(facts: Facts) -> str:
    """What a budget lets happen: to a belief where the claim is about records, to an outcome where it is not."""
    epsilon, unit = facts["epsilon"], facts["unit"]
    if not MODELS[facts["model"]].of_records:
        return f"with the groups known, an outcome may become {factor_words(epsilon)} times as likely"
    swapped = facts["adjacency"] == Adjacency.REPLACE_ONE
    what = f"of a fact about one {unit}" if swapped else f"that one {unit} took part"
    return f"whoever was 50% sure {what} can become {belief_words(epsilon)} sure"


def _epsilon(facts: Facts) -> str:
    return f"ε = {budget_words(facts['epsilon'])} per {facts['unit']}"


def _original_records(facts: Facts) -> str:
    apart = f", except with probability {facts['delta']:g}" if "delta" in facts else ""
    return f"The promise is about the original records, whatever else an attacker knows{apart}."


def _noise_dominates(facts: Facts) -> str:
    error, limit = f"{100 * facts['error']:,.2g}%", f"{100 * facts['limit']:g}%"
    if facts["error"] >= 1:
        error = f"{100 * facts['error']:,.0f}%"
    worst = " at worst" if len(facts["columns"]) > 1 else ""
    what = (
        f"the standard deviation of the noise is {error} of the range{worst}"
        if facts["of"] == "share_of_range"
        else f"shares of the rows have a standard error of {error} of them{worst}"
    )
    return f"Noise dominates {listed(facts['columns'])}: {what} (limit {limit})."


def _not_assessed(facts: Facts) -> str:
    why = "; ".join(UNKNOWN_ERRORS.get(code, code) for code in facts["why"])
    return f"The expected error of {listed(facts['columns'])} is not known from public quantities: {why}."


def count_words(count: int, what: str) -> str:
    """A number of things.

    >>> count_words(1, "release"), count_words(2, "release")
    ('1 release', '2 releases')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _viewed(facts: Facts) -> str:
    views = [str(view) for view in facts.get("views", ())] or ["values"]
    what = " and the ".join(", the ".join(views).rsplit(", the ", 1))
    were = "were" if len(views) > 1 or views[0].endswith("s") else "was"
    column = facts.get("column", "a column")
    return f"Recorded: the {what} of {column} {were} viewed on this machine before its range was declared."


def _earlier(facts: Facts) -> str:
    count = facts.get("count", 0)
    used = [
        f"{facts[name]:,} {'was' if facts[name] == 1 else 'were'} {name}"
        for name in ("measured", "downloaded")
        if facts.get(name)
    ]
    after = f"; {' and '.join(used)}" if used else ""
    return (
        f"Recorded: {count_words(count, 'earlier release')} under the same data set name{after}. Their privacy losses "
        "add up."
    )


def _measured(facts: Facts) -> str:
    return (
        "Recorded: measurements against these records were shown, of settings or of what another tool made "
        f"({count_words(facts.get('count', 0), 'time')})."
    )


def _changed(facts: Facts) -> str:
    names = [str(name) for name in facts.get("settings", ())]
    return (
        "Recorded: after an earlier release under the same data set name was measured, settings changed: "
        f"{listed(names)}."
    )


def _same_records(facts: Facts) -> str:
    found = facts.get("datasets", facts.get("dataset", ()))
    names = [found] if isinstance(found, str) else [str(name) for name in found]
    quoted = listed([f"'{name}'" for name in names])
    which = f"data sets {quoted} hold" if len(names) > 1 else f"data set {quoted} holds".replace("  ", " ")
    return f"Recorded: the publisher answered that {which} the same records. Privacy losses add up."


def _rehearsed(facts: Facts) -> str:
    count = facts.get("count", 1)
    return f"Recorded: {count_words(count, 'rehearsal')} used these records themselves."


def fact_words(code: str, facts: Facts) -> str:
    """A fact that this version has no sentence for.

    >>> fact_words("moon-phase", {"phase": "full", "nights": 2})
    'Moon phase: phase = full, nights = 2.'
    """
    words = code.replace("-", " ")
    said = ", ".join(f"{name} = {_plain_words(value)}" for name, value in facts.items())
    return f"{words[:1].upper()}{words[1:]}{': ' if said else ''}{said}."


def _plain_words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _always(sentence: str) -> Callable[[Facts], str]:
    return lambda facts: sentence


_REHEARSE = (
    "settle what is listed from what is publicly known, or on a rehearsal (shoal rehearse), and release once"
)
RULES: Mapping[str, Rule] = {
    "no-guarantee": Rule(
        "red",
        Part.COMPUTED,
        "the model is `none`",
        _always(NO_GUARANTEE),
        "take a method that promises something, such as pairs-dp",
    ),
    "seeded": Rule(
        "red", Part.COMPUTED, "the noise came from a seed", _always(SEEDED), "release again without a seed"
    ),
    "not-clipped": Rule(
        "red",
        Part.COMPUTED,
        "`clip=False` was given",
        _always(NOT_CLIPPED),
        "release again without clip=False",
    ),
    "epsilon-too-large": Rule(
        "red",
        Part.COMPUTED,
        "ε per unit is above 10 (`most_epsilon=`), and no reason was given (`override=`)",
        lambda facts: f"{_epsilon(facts)} is above {budget_words(facts['limit'])}: {_effect(facts)}.",
        "take a smaller ε, 1 say, or give the reason why this one has to be (option override)",
    ),
    "delta-too-large": Rule(
        "red",
        Part.COMPUTED,
        f"δ is above {float(MOST_DELTA):g}",
        lambda facts: (
            f"δ = {facts['delta']:g} is above {facts['limit']:g}: the guarantee may fail outright with that "
            "probability."
        ),
        "release again with a smaller δ, 1e-6 say",
    ),
    DATA_DEPENDENT: Rule(
        "red",
        Part.RECORDED,
        "a value or a setting was taken from these records, and the guarantee is not about the released table itself",
        _always(LOOKED),
        _REHEARSE,
    ),
    "unknown": Rule(
        "red",
        Part.COMPUTED,
        "a statement of an earlier version gives a reason that has no code",
        lambda facts: str(facts["text"]),
    ),
    "groups-of-rows": Rule(
        "amber",
        Part.COMPUTED,
        "the model is one of the k-anonymity family",
        _always(
            "The promise is about groups of rows, not differential privacy: who knows more than is assumed can learn "
            "more."
        ),
    ),
    "small-group": Rule(
        "amber",
        Part.COMPUTED,
        f"k is below {SMALL_CROWD} in the k-anonymity family",
        lambda facts: f"A crowd of {facts['k']} is a small one to hide in: most offices ask for 3 to 10.",
    ),
    "groups-public": Rule(
        "amber",
        Part.COMPUTED,
        "the model takes the groups of records as fixed and public",
        _always(
            "The promise takes the groups of records as fixed and public; it is not one about the original records."
        ),
    ),
    "epsilon-overridden": Rule(
        "amber",
        Part.DECLARED,
        "ε per unit is above the limit, and a reason was given (`override=`)",
        lambda facts: (
            f"{_epsilon(facts)} is above the limit; {_effect(facts)}. Published all the same: {facts['reason']}"
        ),
    ),
    "epsilon-weak": Rule(
        "amber",
        Part.COMPUTED,
        f"ε per unit is above {STRONG_EPSILON:g}",
        lambda facts: f"{_epsilon(facts)} is a weak budget (above {facts['limit']:g}): {_effect(facts)}.",
    ),
    "delta-large": Rule(
        "amber",
        Part.COMPUTED,
        f"δ is above {LARGE_DELTA:g}, or above 1/(10 · rows) where the number of rows is public",
        lambda facts: (
            f"δ = {facts['delta']:g} is large (above {facts['limit']:g}): among so many people somebody may be told of "
            "outright."
        ),
    ),
    "noise-dominates": Rule(
        "amber",
        Part.COMPUTED,
        f"the expected standard deviation of the noise on a column is at least {100 * MOST_RANGE_ERROR:g}% of its "
        f"range, or the standard error of its shares of rows at least {100 * MOST_SHARE_ERROR:g}%",
        _noise_dominates,
    ),
    "relations-not-measured": Rule(
        "amber",
        Part.COMPUTED,
        "noise would dominate every pair of columns, so none is measured",
        _always(
            "Noise would dominate every pair of columns, so no relation is measured: the released columns are "
            "independent."
        ),
    ),
    "error-not-assessed": Rule(
        "amber",
        Part.COMPUTED,
        "the expected error of a column does not follow from public quantities",
        _not_assessed,
    ),
    "data-dependent-table": Rule(
        "amber",
        Part.RECORDED,
        "a value or a setting was taken from these records, and the guarantee is about the released table itself",
        _always("Choices looked at the records; the statement lists them."),
    ),
    "column-viewed": Rule(
        "amber", Part.RECORDED, "a column was viewed before its range was declared", _viewed
    ),
    "earlier-releases": Rule(
        "amber", Part.RECORDED, "there are earlier releases under the same data set name", _earlier
    ),
    "settings-changed": Rule(
        "amber",
        Part.RECORDED,
        "settings changed after an earlier release under the same data set name was measured",
        _changed,
    ),
    "same-records": Rule(
        "amber",
        Part.RECORDED,
        "the publisher answered that another data set name holds the same records",
        _same_records,
    ),
    "records-measured": Rule(
        "amber",
        Part.RECORDED,
        "measurements against these records were shown, other than those of a release under the same data set name",
        _measured,
    ),
    "rehearsed-on-records": Rule(
        "amber", Part.RECORDED, "a rehearsal used these records themselves", _rehearsed
    ),
    "original-records": Rule(
        "green", Part.COMPUTED, "the model is `dp` or `approximate-dp`", _original_records
    ),
    "epsilon-strong": Rule(
        "green",
        Part.COMPUTED,
        f"ε per unit is at most {STRONG_EPSILON:g}",
        lambda facts: (
            f"{_epsilon(facts)} is a strong budget (up to {facts['limit']:g}): {_effect(facts)}, not more."
        ),
    ),
}


def rules_table() -> str:
    """The rules as the documentation shows them."""
    lines = ["| code | part | when | effect |", "| --- | --- | --- | --- |"]
    effects = {"red": "`do-not-publish`", "amber": "`publish-with-limits`", "green": "`publish`"}
    lines += [
        f"| `{code}` | {rule.part} | {rule.about} | {effects[rule.level]} |" for code, rule in RULES.items()
    ]
    return "\n".join(lines)
