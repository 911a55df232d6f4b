"""The privacy statement of a release: computed, declared and recorded parts."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal import display
from shoal._version import __version__
from shoal.arguments import renamed_attribute
from shoal.columns import TAKEN_FROM_DATA, Declared, Lattice, Provenance, Recorded, unit_words
from shoal.display import displayed
from shoal.errors import ClaimError, InputError, OptionError
from shoal.noise import MOST_EPSILON, epsilon_from
from shoal.numbers import decimal_text, exact_text
from shoal.privacy.accountant import Adjacency, Currency, Plan, row_budget, unit_price
from shoal.privacy.verdict import (
    DATA_DEPENDENT,
    MODELS,
    NO_NOISE,
    RULES,
    AppliedClaim,
    MethodTerms,
    Model,
    ModelFacts,
    PublicVerdict,
    Reason,
    StatementTerms,
    budget_words,
    likely_to_fail,
    other_phrase,
    public_verdict,
    too_much,
    unknown_error,
)
from shoal.text import EDITION, Message, capital, catalogue, percent

if TYPE_CHECKING:
    from shoal.mechanisms import Method

Facts = Mapping[str, Any]
CANNOT_CHECK = Message("cannot-check")
NOTHING_RECORDED = Message("nothing-recorded")


@dataclass(frozen=True, slots=True)
class StatementParts:
    """The three parts of a statement.

    Attributes:
        computed: names and values.
        declared: one phrase each.
        recorded: one sentence each.
    """

    computed: tuple[tuple[str, str], ...]
    declared: tuple[str, ...]
    recorded: tuple[str, ...]


def three_parts(statement: Mapping[str, Any]) -> StatementParts:
    """The parts of a statement as shown to readers."""
    declared = statement["declared"]
    phrases = (*_by_column(declared["facts"]), *_publication(declared["publication"]))
    recorded = tuple(recorded_words(one["code"], one["facts"]) for one in statement["recorded"])
    return StatementParts(
        tuple(
            (str(Message(f"part-{code}")), str(value)) for code, value in computed_values(statement).items()
        ),
        tuple(str(Message.of("as-sentence", said=phrase)) for phrase in phrases),
        recorded or (str(NOTHING_RECORDED),),
    )


def declaration(code: str, facts: Facts) -> str:
    """A declared fact as a complete sentence.

    >>> print(declaration("range", {"column": "income", "lo": "0", "hi": "200000", "source": "questionnaire"}))
    declared by the publisher: income lies between 0 and 200,000 (source: questionnaire). Shoal cannot verify this.
    """
    return str(Message.of("declared-by-publisher", fact=declared_fact(code, facts)))


def declared_fact(code: str, facts: Facts) -> Message:
    """A declared fact as a phrase; facts unknown to this version are listed by name."""
    if code in _OF_COLUMNS:
        return _of_column(facts["column"], [(code, facts)])
    if code not in _DECLARED:
        return other_phrase(code, facts, capital)
    what = _DECLARED[code](facts)
    return Message.of("declared-with-source", what=what, source=_source(facts)) if "source" in facts else what


def _of_column(column: str, found: Sequence[tuple[str, Facts]]) -> Message:
    said = tuple(_OF_COLUMNS[code](facts) for code, facts in found)
    return Message.of("declared-of-column", column=column, said=said, source=_source(found[0][1]))


def _source(facts: Facts) -> Message:
    return Message.of("source", source=facts["source"]) if facts["source"] else Message("source-not-named")


def _by_column(declared: Sequence[Facts]) -> Iterator[Message]:
    """Declared facts as phrases, merged by column and source."""
    together = groupby(
        declared,
        lambda one: (one["facts"]["column"], one["facts"]["source"]) if one["code"] in _OF_COLUMNS else None,
    )
    for group, members in together:
        if group is None:
            yield from (declared_fact(one["code"], one["facts"]) for one in members)
        else:
            yield _of_column(group[0], [(one["code"], one["facts"]) for one in members])


def recorded_words(code: str, facts: Facts) -> str:
    """A recorded fact as a sentence.

    >>> recorded_words("column-viewed", {"column": "income", "views": ["histogram"]})
    'Recorded: the histogram of income was viewed on this machine before its range was declared.'
    >>> recorded_words("moon-phase", {"phase": "full"})
    'Recorded: moon phase: phase = full.'
    """
    if code == DATA_DEPENDENT:
        return str(Message("recorded-choice", facts))
    if code in RULES:
        return Reason.of(code, **facts).text
    return str(Message.of("recorded-other", said=other_phrase(code, facts)))


def number_words(text: str) -> str:
    """A number with thousands separators; any other text unchanged.

    >>> number_words("200000"), number_words("-1234.5"), number_words("1980-01-01")
    ('200,000', '-1,234.5', '1980-01-01')
    """
    try:
        Fraction(text)
    except (ValueError, ZeroDivisionError):
        return text
    whole, point, rest = text.partition(".")
    return f"{int(whole):,}{point}{rest}" if whole.lstrip("-").isdigit() else text


def _as_given(code: str) -> Callable[[Facts], Message]:
    return lambda facts: Message(f"declared-{code}", facts)


def _with_numbers(code: str) -> Callable[[Facts], Message]:
    def worded(facts: Facts) -> Message:
        numbers = {name: number_words(facts[name]) for name in ("lo", "hi", "step") if name in facts}
        return Message(f"declared-{code}", {**facts, **numbers})

    return worded


def _chosen(facts: Facts) -> Message:
    but = tuple(facts.get("but", ()))
    return Message.of("declared-choices-but", but=but) if but else Message("declared-choices")


_OF_COLUMNS: Mapping[str, Callable[[Facts], Message]] = {
    "range": _with_numbers("range"),
    "order": _as_given("order"),
    "values": _as_given("values"),
    "type": _as_given("type"),
    "resolution": _with_numbers("resolution"),
}
_DECLARED: Mapping[str, Callable[[Facts], Message]] = {
    **{code: _as_given(code) for code in ("rows-per-person", "step", "margin", "rule", "rows")},
    "choices": _chosen,
}
_PUBLICATION = (
    "name",
    "description",
    "purpose",
    "curators",
    "recipients",
    "other_releases",
    "contact",
    "date",
    "review_by",
    "region",
    "sector",
    "actors",
    "security",
    "justification",
)


def _publication(told: Facts) -> Iterator[Message]:
    for key in _PUBLICATION:
        if key in told:
            value = told[key]
            # the publisher's own text: a full stop follows
            said = tuple(value) if isinstance(value, list) else (str(value).removesuffix("."),)
            yield Message.of(f"publication-{key.replace('_', '-')}", said=said)
    if "other_releases" not in told:
        yield Message("publication-no-other-releases")


def computed_values(statement: Mapping[str, Any]) -> dict[str, Message | str]:
    """The computed part of a statement, by code."""
    return dict(_computed(statement))


def _computed(statement: Mapping[str, Any]) -> Iterator[tuple[str, Message | str]]:
    found = statement["computed"]
    yield "model", found["model"]
    yield "target", statement["target"]
    if found["adjacency"] is not None:
        adjacency = Adjacency(found["adjacency"])
        named = adjacency is Adjacency.ADD_REMOVE
        words = adjacency.words
        yield "adjacency", Message.of("named-adjacency", name=adjacency, words=words) if named else words
    if found["epsilon"] is not None and MODELS[found["model"]].budgeted:
        yield "budget", _budget(found)
    else:
        yield "unit", found["unit"]
    if spent := found["spending"]:
        unit = "rho" if found["spending_in"] == "rho" else "epsilon"
        parts = tuple(
            Message.of(f"spent-{'private' if share is None else unit}", purpose=purpose, share=share)
            for purpose, share in spent.items()
        )
        yield "spending", Message.of("all-of", parts=parts)
    exactly = tuple(_known("invariant", one["code"]) for one in found["invariants"])
    yield "invariants", Message.of("all-of", parts=exactly) if exactly else Message("nothing")
    settings = tuple(
        Message.of("fact-named", name=name, value=value) for name, value in statement["settings"].items()
    )
    method = statement["method"]
    yield "method", Message.of("method-settings", method=method, settings=settings) if settings else method
    mechanism = found["mechanism"] or Message("not-stated")
    version = found["version"]
    yield (
        "mechanism",
        Message.of("mechanism-version", mechanism=mechanism, version=version) if version else mechanism,
    )
    noise = tuple(Message(f"{what}-{found[what]}") for what in ("arithmetic", "entropy", "timing"))
    yield "noise", Message.of("all-of", parts=noise)
    yield "error", error_message(found["expected_error"])


def _budget(found: Facts) -> Message:
    amounts = [Message.of("amount-epsilon", amount=budget_words(found["epsilon"]))]
    if found["delta"]:
        amounts.append(Message.of("amount-delta", amount=decimal_text(Fraction(str(found["delta"])))))
    if found["rho"] is not None:
        amounts.append(Message.of("amount-rho", amount=found["rho"]))
    return Message.of("budget-per-unit", amounts=tuple(amounts), unit=found["unit"])


def _known(prefix: str, code: str) -> Message | str:
    """The message of a code; codes of other versions unchanged."""
    return Message(f"{prefix}-{code}") if f"{prefix}-{code}" in catalogue() else code


def error_message(expected: Mapping[str, Any] | None) -> Message:
    """The expected error as a message."""
    if expected is None:
        return Message("not-stated")
    columns: Mapping[str, Facts] = expected["columns"]
    said: list[Message | str] = [*_span(columns, "share_of_rows"), *_span(columns, "share_of_range")]
    relations = expected["relations"]
    if relations is not None and relations["of"]:
        facts = {"measured": relations["measured"], "pairs": relations["of"]}
        if relations["measured"]:
            errors = _spread(relations["smallest"], relations["largest"])
            said.append(Message("relations-measured-within", {**facts, "errors": errors}))
        else:
            said.append(Message("relations-measured", facts))
    if expected["rows"] is not None:
        said.append(Message.of(f"for-rows-{expected['rows_are']}", rows=expected["rows"]))
    for why in dict.fromkeys(one["why"] for one in columns.values() if one["why"]):
        names = tuple(name for name, one in columns.items() if one["why"] == why)
        reason = unknown_error(why)
        if why == NO_NOISE:
            said.append(reason)
        elif len(names) == len(columns):
            said.append(Message.of("error-unknown", why=reason))
        else:
            said.append(Message.of("error-unknown-of", columns=names, why=reason))
    return Message.of("all-of", parts=tuple(said))


def _span(columns: Mapping[str, Facts], kind: str) -> Sequence[Message]:
    found = {name: one[kind] for name, one in columns.items() if one[kind] is not None}
    if not found:
        return ()
    each: tuple[Message, ...] = tuple(
        Message.of("share-of-column", column=name, share=value) for name, value in found.items()
    )
    if len(found) > 3:
        worst = max(found, key=lambda name: found[name])
        span = _spread(min(found.values()), found[worst])
        each = (Message.of("spread-with-largest", spread=span, column=worst),)
    return (Message.of(f"error-{kind.replace('_', '-')}", each=each),)


def _spread(least: float, most: float) -> Message | str:
    first, last = percent(least), percent(most)
    return first if first == last else Message.of("from-to", first=first, last=last)


# version of the format of `to_dict`; the first one had no number
FORMAT = 2

# true of every release: tables are written at once, and nobody waits for an answer
TIMING = "not-covered"


@displayed(display.of_statement)
@dataclass(frozen=True, slots=True)
class PrivacyStatement:
    """The guarantee of one release. Public facts only: neither counts of clips nor scales that depend on records.

    Attributes:
        adjacency: the adjacency of the claim; None for a claim that is not about neighbouring tables.
        spending: ε by purpose, or ρ if there is one.
        obstacles: why it must not be published, each a code with facts; empty if it may be.
        delta: δ, 0 for a claim without one.
        rho: the cost of the release in ρ, if its noise is accounted for in ρ; ε and δ follow from it.
        most_epsilon: the ε per person above which it would not be publishable.
        override: the reason for publishing it although its ε is above that.
        public_rows: the public number of rows against which δ is judged, if there is a δ and the number is public.
        terms: conditions, exclusions, data-dependent choices, and steps before protection, each a code with
            facts; the attributes of these names are their sentences.
        mechanism: the mechanism that drew the noise.
        arithmetic: "exact" if noise is drawn by exact arithmetic, "none" without noise, "not-stated" if a
            third-party stage or an earlier version does not state it.
        invariants: what is released exactly, each a code with facts.
        expected_error: of columns and relations from public quantities, as plain values; None if not stated.
        declared: public facts declared by the publisher, each with its source.
        publication: the publisher's description of the publication, as declared.
        recorded: facts from the journal of use that bear on the declarations.
        counted: the unit in which group sizes are counted: "rows", or "persons" if a unit is declared.
    """

    model: Model
    target: str
    epsilon: Fraction | None
    epsilon_per_attribute: dict[str, Fraction | None]
    spending: dict[str, Fraction | None]
    adjacency: Adjacency | None
    unit: str
    terms: StatementTerms
    obstacles: tuple[Reason, ...]
    method: str
    settings: dict[str, Any]
    attributes: dict[str, dict[str, str]]
    versions: dict[str, str]
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    most_epsilon: Fraction = MOST_EPSILON
    override: str = ""
    mechanism: str = ""
    arithmetic: str = "not-stated"
    invariants: tuple[Declared, ...] = ()
    expected_error: dict[str, Any] | None = None
    declared: tuple[Declared, ...] = ()
    publication: dict[str, Any] = field(default_factory=dict)
    recorded: tuple[Recorded, ...] = ()
    counted: str = "rows"
    public_rows: int | None = None

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions of the guarantee, and how they were met."""
        return tuple(map(str, self.terms.conditions))

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """Data-dependent choices."""
        return tuple(map(str, self.terms.data_dependent))

    @property
    def not_promised(self) -> tuple[str, ...]:
        """What the guarantee does not include, although a reader might expect it."""
        return tuple(map(str, self.terms.not_promised))

    @property
    def steps(self) -> tuple[str, ...]:
        """Steps applied to every record before protection, and the treatment of its survey weight."""
        return tuple(map(str, self.terms.steps))

    @property
    def publishable(self) -> bool:
        """Whether the public verdict differs from "do not publish"."""
        return not self.obstacles

    @property
    def not_publishable_because(self) -> tuple[str, ...]:
        """The obstacles as sentences."""
        return tuple(reason.text for reason in self.obstacles)

    neighbours = renamed_attribute("adjacency.words")

    @property
    def entropy(self) -> str:
        """The source of the noise: "system" or "seed"."""
        return "seed" if any(reason.code == "seeded" for reason in self.obstacles) else "system"

    @property
    def all_recorded(self) -> tuple[Recorded, ...]:
        """Everything recorded: values taken from these records, and facts from the journal of use."""
        taken = tuple(Recorded(DATA_DEPENDENT, {"choice": choice}) for choice in self.data_dependent)
        return taken + self.recorded

    @property
    def verdict(self) -> PublicVerdict:
        """Whether it may be published, why, and what to do next, computed from this statement only."""
        return public_verdict(self._facts)

    @property
    def sentence(self) -> str:
        """The guarantee as one sentence; a tainted statement first says that it does not hold as such."""
        facts = MODELS[self.model]
        budget = "" if self.epsilon is None else exact_text(self.epsilon)
        amounts = {"epsilon": budget, "delta": decimal_text(self.delta), "unit": self.unit}
        amounts["counted"] = self.counted
        claim = facts.claim_message({**self.settings, **amounts})
        if self.terms.data_dependent and facts.guarantee and not facts.of_the_table:
            return str(Message.of("promise-void", promise=claim))
        if self.adjacency is None:
            return str(Message.of("as-sentence", said=capital(str(claim))))
        return str(Message.of("promise-stands", promise=capital(str(claim)), adjacency=self.adjacency.words))

    def stated_share(self, name: str) -> str:
        """ε of an attribute as text; empty if it has none."""
        if name not in self.epsilon_per_attribute:
            return ""
        share = self.epsilon_per_attribute[name]
        return TAKEN_FROM_DATA if share is None else f"{float(share):.6g}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the keys of the first format, and three parts of codes and facts."""
        return {**self._facts, "verdict": self.verdict.to_dict()}

    @property
    def _facts(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "model": self.model,
            "sentence": self.sentence,
            "target": self.target,
            "epsilon": None if self.epsilon is None else float(self.epsilon),
            **({} if self.rho is None else {"delta": float(self.delta), "rho": float(self.rho)}),
            "epsilon_per_attribute": _plain(self.epsilon_per_attribute),
            "spending": _plain(self.spending),
            "neighbours": None if self.adjacency is None else self.adjacency.words,
            "adjacency": self.adjacency,
            "unit": self.unit,
            **({} if self.counted == "rows" else {"counted": self.counted}),
            "conditions": list(self.conditions),
            "data_dependent": list(self.data_dependent),
            "not_promised": list(self.not_promised),
            "publishable": self.publishable,
            "not_publishable_because": list(self.not_publishable_because),
            "obstacles": [{"code": one.code, "facts": dict(one.facts)} for one in self.obstacles],
            **({} if self.most_epsilon == MOST_EPSILON else {"most_epsilon": float(self.most_epsilon)}),
            **({"override": self.override} if self.override else {}),
            **({"steps": list(self.steps)} if self.steps else {}),
            **({} if self.public_rows is None else {"public_rows": self.public_rows}),
            "method": self.method,
            "settings": self.settings,
            "attributes": self.attributes,
            "versions": self.versions,
            "computed": self.computed,
            "declared": {"facts": _coded(self.declared), "publication": dict(self.publication)},
            "recorded": _coded(self.all_recorded),
            "terms": self.terms.to_dict(),
        }

    @property
    def computed(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "adjacency": self.adjacency,
            "epsilon": None if self.epsilon is None else float(self.epsilon),
            "delta": float(self.delta),
            "rho": None if self.rho is None else float(self.rho),
            "unit": self.unit,
            "spending": _plain(self.spending),
            "spending_in": None if self.adjacency is None else "epsilon" if self.rho is None else "rho",
            "invariants": _coded(self.invariants),
            "mechanism": self.mechanism,
            "version": self.versions.get("shoal", ""),
            "arithmetic": self.arithmetic,
            "entropy": self.entropy,
            "timing": TIMING,
            "expected_error": self.expected_error,
        }

    @classmethod
    def from_dict(cls, plain: object, where: str = "this") -> PrivacyStatement:
        """The statement from the result of `to_dict`.

        Numbers are read as the simplest fraction with that decimal form: 0.3333333333333333 is a third.

        Args:
            plain: plain values, as in a `statement.json`.
            where: description of their origin, for errors.

        Raises:
            InputError: they are not a statement, are contradictory, or come from a newer version.
        """
        from shoal.privacy.statement_v1 import WORDED, statement_fields

        fields = statement_fields(plain, where)
        found = cls(**fields)
        if not isinstance(plain, Mapping) or found.publishable is not plain["publishable"]:
            raise InputError("contradicts-itself-publishable-does-not-follow", where=where)
        if plain.get("format") == FORMAT and found.versions.get("shoal") == __version__:
            follows = found.to_dict()
            # earlier editions are worded differently
            same = found.versions.get("words", "1") == str(EDITION)
            for key in (*(WORDED if same else ()), "computed", "recorded"):
                if plain.get(key) != follows.get(key):
                    raise InputError("contradicts-itself-does-not-follow-from", where=where, key=key)
        return found

    def to_markdown(self) -> str:
        """The statement for readers."""
        lines = ["# Privacy statement", "", self.sentence, ""]
        first, *reasons, last = self.verdict.lines
        lines += [f"**{first}**", "", *reasons, "", last, ""]
        parts = three_parts(self.to_dict())
        sections = {
            "Computed by Shoal": [f"{name}: {value}" for name, value in parts.computed],
            "Before protection": self.steps,
            "Conditions": self.conditions,
            "What is not guaranteed": self.not_promised,
        }
        for title, entries in sections.items():
            if entries:
                lines += [f"## {title}", "", *(f"- {entry}" for entry in entries), ""]
        for title, about, entries in (
            ("Declared by the publisher", str(CANNOT_CHECK), parts.declared),
            ("Recorded", "", parts.recorded),
        ):
            lines += [
                f"## {title}",
                "",
                *([about, ""] if about else []),
                *(f"- {one}" for one in entries),
                "",
            ]
        lines += [
            "## Attributes",
            "",
            "| attribute | ε | type | public domain | step | source |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for name, facts in self.attributes.items():
            stated = self.stated_share(name)
            cell = name.replace("|", "\\|")
            type, source = facts.get("type", ""), facts.get("source") or "not stated"
            lines.append(
                f"| {cell} | {stated} | {type} | {domain_words(facts)} | {facts['step']} | {source} |"
            )
        versions = ", ".join(f"{key} {value}" for key, value in self.versions.items())
        return "\n".join([*lines, "", f"Made with {versions}.", ""])


def state(
    method: Method,
    lattices: dict[str, Lattice],
    plan: Plan,
    provenance: Provenance,
    claim: AppliedClaim,
) -> PrivacyStatement:
    """Compute the statement of a release from the claim of its mechanism.

    Raises:
        ClaimError: the claim would be about rows while a person can own several, or the budget charged for a
            choice cannot be added to it.
    """
    model = claim.model
    facts = MODELS[model]
    adjacency = method.adjacency
    rows = provenance.rows_per_unit
    if provenance.unit_repeats and facts.of_records:
        raise ClaimError("value-unit-column-occurs-several-rows", column=provenance.unit)
    if provenance.bounded and not (facts.of_records and adjacency.hides_size):
        # the number of rows after bounding would be public, and it depends on how many rows each unit has
        raise ClaimError("bound-needs-add-remove", method=method.name, option="bound")
    # values that stay in their rows can stay missing there; swapped ones would reveal their origin
    shown = facts.given_partition or claim.shows_gaps or not facts.guarantee
    if provenance.separated and not shown:
        raise ClaimError("missing-separate-shows-values-missing-claim", method=method.name, model=model)
    if rows > 1 and not method.additive:
        raise ClaimError(
            "method-protects-row-time-but-declares", method=method.name, unit=provenance.unit, rows=rows
        )
    bought = provenance.bought
    if bought is not None and (model != "dp" or adjacency is not bought.adjacency):
        of_bound = bought.adjacency is Adjacency.ADD_REMOVE
        raise ClaimError(
            "tuned-epsilon-of-bound" if of_bound else "tuned-epsilon-protects-original-records-when",
            method=method.name,
            model=model,
            names=bought.what,
        )
    # whether rows repeat is a private fact: unless it refuses the claim, it must not influence it either
    # a claim about the table counts persons, however many rows they have
    persons = provenance.unit is not None and facts.of_the_table
    per_person = provenance.unit is not None and (provenance.rows_declared or facts.of_records)
    column = provenance.unit if per_person or persons else None
    unit = unit_words(column, None if persons or provenance.bounded else rows, provenance.unit_word)
    # shares that follow the widths reveal the ratio of domains taken from the data
    own = method.terms(len(lattices))
    private = bool(provenance.private_domains) and own.shares_follow_widths
    spending = plan.spending
    epsilon, rho, shared = method.unit_epsilon, method.rho, method.charged_rows
    if bought is not None and bought.epsilon is not None and epsilon is not None:
        spending = {f"choice of {bought.words}": row_budget(bought.epsilon, shared), **plan.spending}
        epsilon += bought.epsilon
    # the budget of a row times what it costs a unit: the ε that was asked for
    factor = unit_price(Fraction(1), shared, Currency.EPSILON if rho is None else Currency.RHO)
    stated = {"model": model, "unit": unit, "adjacency": adjacency}
    budgeted = None if epsilon is None or not facts.budgeted else float(epsilon)
    excess = too_much({**stated, "epsilon": budgeted}, provenance.most_epsilon)
    if provenance.override and excess is None:
        raise OptionError(
            "override-says-why-above-published", most_epsilon=decimal_text(provenance.most_epsilon)
        )
    return PrivacyStatement(
        model=model,
        target=facts.target,
        epsilon=epsilon,
        epsilon_per_attribute=_in_epsilon(
            _stated(plan.stated, factor, private),
            method.delta,
            None if rho is None else rho * factor,
            epsilon,
        ),
        spending=_stated(spending, factor, private),
        adjacency=adjacency if facts.budgeted else None,
        unit=unit,
        terms=StatementTerms.of(
            conditions=(
                *_conditions(method, own, facts, provenance, per_person, len(lattices), unit),
                *plan.conditions,
                *claim.conditions,
            ),
            data_dependent=(*provenance.data_dependent, *own.data_dependent),
            not_promised=_not_promised(own, facts, adjacency),
            steps=_steps(provenance),
        ),
        obstacles=_obstacles(method, own, facts, provenance)
        + ((excess,) if excess is not None and not provenance.override else ())
        + likely_to_fail(method.delta),
        method=method.name,
        settings={name: _plain(value) for name, value in method.settings().items()},
        attributes={
            name: _public_facts(
                provenance.domains.get(name), lattice, private=name in provenance.private_domains
            )
            for name, lattice in lattices.items()
        },
        versions={
            "shoal": __version__,
            "words": str(EDITION),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        delta=method.delta,
        rho=None if rho is None else rho * factor,
        most_epsilon=provenance.most_epsilon,
        override=provenance.override,
        mechanism=method.mechanism,
        arithmetic="none" if not facts.budgeted else "exact" if claim.own else "not-stated",
        invariants=_invariants(own, facts, provenance, adjacency),
        declared=_declared(method, facts, provenance),
        publication=dict(provenance.publication),
        recorded=provenance.recorded,
        counted="persons" if persons else "rows",
        public_rows=None if rho is None else provenance.public_rows,
    )


def domain_words(facts: Mapping[str, str]) -> str:
    """The public domain of a column, as printed in a table."""
    if "domain" in facts:
        return facts["domain"]
    found = facts["lo"] if facts["lo"] == TAKEN_FROM_DATA else f"{facts['lo']} to {facts['hi']}"
    return f"{found}, or missing" if "missing" in facts else found


def _steps(provenance: Provenance) -> Iterable[Message]:
    """Messages about the steps between the file and the method."""
    for step in provenance.steps:
        yield Message("before-protection", {**step.facts, "step": step.code, "said": capital(str(step))})
    if provenance.weight is not None:
        yield provenance.weight


def _stated(shares: Mapping[str, Fraction], factor: Fraction, private: bool) -> dict[str, Fraction | None]:
    return {name: None if private else share * factor for name, share in shares.items()}


def _in_epsilon(
    shares: dict[str, Fraction | None], delta: Fraction, rho: Fraction | None, epsilon: Fraction | None
) -> dict[str, Fraction | None]:
    """Convert shares of ρ to the ε that each costs separately at the same δ.

    The conversion alone gives 0 for a small enough ρ, because δ covers all of it, and it is rounded up. So a share
    is stated as at least its proportion of the total ε and at most the total: it is 0 only if its ρ is 0, increases
    with its ρ, and the shares of disjoint measurements add up to at least what the measurements cost together.
    """
    if rho is None or epsilon is None:
        return shares
    return {
        name: None if share is None else min(max(epsilon_from(share, delta), epsilon * share / rho), epsilon)
        for name, share in shares.items()
    }


def _conditions(
    method: Method,
    own: MethodTerms,
    facts: ModelFacts,
    provenance: Provenance,
    per_person: bool,
    attributes: int,
    unit: str,
) -> Iterable[Message]:
    if not facts.guarantee:
        return
    if not facts.of_the_table:
        dependent = provenance.data_dependent or own.data_dependent
        yield Message("recorded-would-be-fixed" if dependent else "rests-on-declarations")
    if facts.given_partition:
        if own.clusters is not None:
            yield own.clusters
        yield Message("neighbours-have-same-clusters")
    if provenance.bought is not None:
        yield provenance.bought.condition(unit)
    if provenance.separated:
        yield Message("gaps-known")
    yield from own.noise
    if not method.output.linked and attributes > 1:
        yield Message("columns-shuffled-alone")
    if provenance.bounded:
        yield Message.of("rows-of-units-bounded", rows=provenance.rows_per_unit, unit=provenance.unit)
    if provenance.unit is not None and facts.of_the_table:
        yield Message.of("persons-counted", unit=provenance.unit)
    elif (rows := method.charged_rows) > 1 and method.epsilon is not None:
        if method.rho is None:
            yield Message.of("epsilon-of-a-row", rows=rows, budget=exact_text(method.epsilon))
        else:
            yield Message.of("rho-of-a-row", rows=rows, squared=rows**2)
    elif not per_person and facts.budgeted:
        yield Message("about-one-row")
    if provenance.steps and not facts.of_the_table:
        yield Message("steps-are-public")
    if not method.measures_units:
        yield Message("random-order-with-weights" if provenance.weighted else "random-order")


def _not_promised(own: MethodTerms, facts: ModelFacts, adjacency: Adjacency) -> Iterable[Message]:
    yield from map(Message, facts.not_promised)
    if facts.budgeted and not adjacency.hides_size:
        yield Message("taking-part-not-hidden")
    yield from own.not_promised


def _obstacles(
    method: Method, own: MethodTerms, facts: ModelFacts, provenance: Provenance
) -> tuple[Reason, ...]:
    found = list(provenance.experiment)
    if not facts.guarantee:
        found.append("no-guarantee")
    if not method.output.clip:
        found.append("not-clipped")
    if not facts.of_the_table and (provenance.data_dependent or own.data_dependent):
        found.append(DATA_DEPENDENT)
    return tuple(Reason.of(code) for code in found)


def _invariants(
    own: MethodTerms, facts: ModelFacts, provenance: Provenance, adjacency: Adjacency
) -> tuple[Declared, ...]:
    """What is released exactly, or taken as fixed and public."""
    found = []
    if not facts.budgeted:
        found.append(Declared("values"))
    elif not adjacency.hides_size:
        found.append(Declared("number-of-rows"))
    if facts.given_partition:
        found.append(Declared("clusters"))
    found += own.invariants
    if own.noise_can_vanish:
        found.append(Declared("clusters-without-spread"))
    if provenance.separated:
        found.append(Declared("missing-values"))
    if provenance.margins:
        found.append(Declared("margins", {"columns": list(provenance.margins)}))
        found.append(Declared("public-weights"))
    return tuple(found)


def _declared(method: Method, facts: ModelFacts, provenance: Provenance) -> tuple[Declared, ...]:
    """The publisher's declarations: facts about columns and people, sizes, and how choices were made."""
    found = list(provenance.declared)
    if method.rows is not None:
        found.append(Declared("rows", {"rows": method.rows}))
    if facts.guarantee and not facts.of_the_table:
        # choices declared as data-dependent are recorded or charged instead
        chosen = () if provenance.bought is None else provenance.bought.what
        found.append(Declared("choices", {"but": list(chosen)}))
    return tuple(found)


def _public_facts(words: Mapping[str, str] | None, lattice: Lattice, *, private: bool) -> dict[str, str]:
    if private:
        kept = {key: words[key] for key in ("type", "source") if words is not None and key in words}
        return dict.fromkeys(("lo", "hi", "step"), TAKEN_FROM_DATA) | kept
    if words is not None:
        return dict(words)
    return {
        "lo": decimal_text(lattice.lo),
        "hi": decimal_text(lattice.hi),
        "step": decimal_text(lattice.step),
    }


def _coded(facts: Sequence[Declared | Recorded | Message]) -> list[dict[str, Any]]:
    return [{"code": one.code, "facts": _plain(dict(one.facts))} for one in facts]


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
