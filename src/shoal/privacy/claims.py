"""Claim models: their meaning, and the claim and terms of each method."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shoal.errors import plain_facts
from shoal.text import Message, capital, filled

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
