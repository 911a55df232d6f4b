"""The models of privacy, one record each: what a claim means, for everybody who reads a statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shoal.text import Message

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
    """What a model means, for everybody who reads a statement.

    Attributes:
        not_promised: codes of what a reader might wrongly take it for.
        budgeted: the claim is about neighbouring tables and has an ε.
        of_records: the claim is about the original records, whatever they are: it adds up with other such claims.
        given_partition: the clusters are treated as fixed and known.
        guarantee: there is one; without it a release is for experiments only.
        of_the_table: the claim is about the released table itself, so choices that looked at the records do not void
            it, and no domain needs to be known beforehand.
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
        """What is protected."""
        return str(Message(f"target-{self.model}"))

    def promise(self, facts: Mapping[str, Any]) -> Message:
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
