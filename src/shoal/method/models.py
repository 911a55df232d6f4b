"""The models of privacy, one record each: what a claim means, for everybody who reads a statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

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


class Adjacency(StrEnum):
    """Which change of a table a claim hides: what two neighbouring tables differ in."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    @property
    def words(self) -> str:
        return _ADJACENCY_WORDS[self]

    @property
    def hides_size(self) -> bool:
        """Whether the number of records is private."""
        return self is Adjacency.ADD_REMOVE


# every statement has one of these two sentences: format 1 has nothing else to tell the adjacency by
_ADJACENCY_WORDS: Mapping[Adjacency, str] = {
    Adjacency.REPLACE_ONE: "replace-one, the number of records is public",
    Adjacency.ADD_REMOVE: "one record added or removed, the number of records is private",
}

_OTHER_RELEASES = "It does not cover other releases about the same people: their budgets add up."
_NOT_DP = (
    "It is not differential privacy: who knows more than is assumed here, or holds another release about the same "
    "people, can learn more."
)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a model means, for everybody who reads a statement.

    Attributes:
        promise: the claim in one phrase; `{epsilon}`, `{delta}`, `{unit}`, `{counted}` (rows or persons) and the
            names of settings are filled in.
        target: what is protected.
        not_promised: what a reader might wrongly take it for.
        budgeted: the claim is about neighbouring tables and has an ε.
        of_records: the claim is about the original records, whatever they are: it adds up with other such claims.
        given_partition: the clusters are treated as fixed and known.
        guarantee: there is one; without it a release is for experiments only.
        of_the_table: the claim is about the released table itself, so choices that looked at the records do not void
            it, and no domain needs to be known beforehand.
    """

    promise: str
    target: str
    not_promised: tuple[str, ...]
    budgeted: bool = True
    of_records: bool = False
    given_partition: bool = False
    guarantee: bool = True
    of_the_table: bool = False


MODELS: Mapping[Model, ModelFacts] = {
    "dp": ModelFacts(
        "differential privacy of the original records, with ε = {epsilon} per {unit}",
        "the original records",
        ("It does not hide what is true of the whole population.", _OTHER_RELEASES),
        of_records=True,
    ),
    "approximate-dp": ModelFacts(
        "differential privacy of the original records except with probability δ = {delta}, with ε = {epsilon} per "
        "{unit}",
        "the original records",
        (
            "It is not pure differential privacy: with a probability of at most δ an outcome can tell more than ε "
            "allows.",
            "It does not hide what is true of the whole population.",
            _OTHER_RELEASES,
        ),
        of_records=True,
    ),
    "dp-given-partition": ModelFacts(
        "differential privacy of the microaggregated data, given the partition, with ε = {epsilon} per {unit}",
        "the microaggregated data: means (and moments) of clusters, the clusters themselves taken as fixed and public",
        (
            "It is not differential privacy of the original records: replacing one record usually changes the "
            "clusters, and what the clusters reveal is not covered.",
            _OTHER_RELEASES,
        ),
        given_partition=True,
    ),
    "idp-given-partition": ModelFacts(
        "individual differential privacy of the microaggregated data, given the partition, with ε = {epsilon} per "
        "{unit}",
        "the microaggregated data of the actual table against tables that differ from it in one record, the clusters "
        "taken as fixed and public",
        (
            "It is not differential privacy: the noise is fitted to the actual records, and no two tables other than "
            "the actual one and its neighbours are compared.",
            "It does not cover the clusters: replacing one record usually changes them, and the noise with them.",
            _OTHER_RELEASES,
        ),
        given_partition=True,
    ),
    "k-anonymity": ModelFacts(
        "every combination of quasi-identifiers is shared by at least {k} {counted} (k-anonymity)",
        "the identity behind a row: which row of a group is whose",
        (
            "It does not hide what the rows of a group have in common: confidential values are released as they are.",
            "It does not hide that a person is in the table.",
            _NOT_DP,
        ),
        budgeted=False,
        of_the_table=True,
    ),
    "probabilistic-k-anonymity": ModelFacts(
        "whose a confidential value is can be told with probability 1/{k} at most (probabilistic k-anonymity)",
        "the link between a person and a confidential value",
        (
            "It does not hide what the values of a group have in common.",
            "It does not hide that a person is in the table: columns that are not confidential are as they were.",
            _NOT_DP,
        ),
        budgeted=False,
        of_the_table=True,
    ),
    "t-closeness": ModelFacts(
        "the odds of a bucket of confidential values change, for one person, by a factor of {t} at most, in groups of "
        "at least {k} {counted} (t-closeness)",
        "what the group of a person says about the person's confidential values",
        (
            "It does not bound what is said about single values inside a bucket.",
            "It does not hide that a person is in the table: columns that are not confidential are as they were.",
            _NOT_DP,
        ),
        budgeted=False,
        of_the_table=True,
    ),
    "none": ModelFacts(
        "no privacy guarantee",
        "nothing",
        ("Nothing is promised: the method is here to reproduce and to compare.",),
        budgeted=False,
        guarantee=False,
    ),
}
