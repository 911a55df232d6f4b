"""Which privacy claim is which: a configured method comes in, the one model that holds for it leaves, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from shoal.method.method import Method

Model = Literal[
    "dp",
    "dp-given-partition",
    "idp-given-partition",
    "k-anonymity",
    "probabilistic-k-anonymity",
    "t-closeness",
    "none",
]

_OTHER_RELEASES = "It does not cover other releases about the same people: their budgets add up."
_NOT_DP = (
    "It is not differential privacy: who knows more than is assumed here, or holds another release about the same "
    "people, can learn more."
)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a model means, for everybody who reads a statement.

    Attributes:
        promise: the claim in one phrase; `{epsilon}`, `{unit}` and the names of settings are filled in.
        target: what is protected.
        not_promised: what a reader might wrongly take it for.
        budgeted: the claim is about neighbouring tables and has an ε.
        given_partition: the clusters are treated as fixed and known.
        guarantee: there is one; without it a release is for experiments only.
        of_the_table: the claim is about the released table itself, so choices that looked at the records do not void
            it, and no domain needs to be known beforehand.
    """

    promise: str
    target: str
    not_promised: tuple[str, ...]
    budgeted: bool = True
    given_partition: bool = False
    guarantee: bool = True
    of_the_table: bool = False


MODELS: Mapping[Model, ModelFacts] = {
    "dp": ModelFacts(
        "differential privacy of the original records, with ε = {epsilon} per {unit}",
        "the original records",
        ("It does not hide what is true of the whole population.", _OTHER_RELEASES),
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
        "every combination of quasi-identifiers is shared by at least {k} rows (k-anonymity)",
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
        "at least {k} rows (t-closeness)",
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


def _by_stability(method: Method, attributes: int) -> Model:
    if method.sensitivity != "global":
        return "idp-given-partition"
    if method.stability in ("record", "private"):
        return "dp"
    if method.stability == "rank" and (attributes == 1 or not method.link):
        return "dp"
    return "dp-given-partition"


def _by_composition(method: Method, attributes: int) -> Model:
    return "none" if method.composition == "parallel" else "dp"


def _by_moments(method: Method, attributes: int) -> Model:
    if method.sensitivity == "none":
        return "none"
    if method.form == "eigen":
        return "idp-given-partition"
    # covariances of rank groups do not telescope as their sums do
    return "dp-given-partition" if method.moments else _by_stability(method, attributes)


def _by_closeness(method: Method, attributes: int) -> Model:
    return "probabilistic-k-anonymity" if method.t is None else "t-closeness"


# by mechanism: the rule that settles the claim of its methods
RULES: Mapping[str, Callable[[Method, int], Model]] = {
    "anatomy": _by_closeness,
    "centroids": lambda method, attributes: "k-anonymity",
    "clusters": _by_stability,
    "insensitive": _by_composition,
    "moments": _by_moments,
    "pairs": _by_stability,
    "swap-mdav": _by_closeness,
    "swap-ranking": _by_closeness,
    "t-closeness": _by_closeness,
    "tree": _by_stability,
}


def privacy_model(method: Method, attributes: int, nominal: int = 0) -> Model:
    """The claim that holds for a method on this many attributes, so many of which are nominal.

    Guarantee:
        A replaced record that touches only its own cluster of one, or the rank-fixed clusters of a single
        attribute (or of several whose columns are not linked), leaves the noise calibrated to all that
        changes: claim `dp`. Boxes that are themselves drawn under the budget are paid for: claim `dp`. Insensitive
        clusters change by one record each, and strict composition pays for all of them: claim `dp`. In every
        other case clusters may move with the record: `dp-given-partition`. Noise that is calibrated to the actual
        records protects those against their neighbours only: `idp-given-partition`. Moments beyond the mean are
        protected given the partition only.

    Reference:
        docs/proofs/sums.md, docs/proofs/tree.md, docs/proofs/individual.md, docs/proofs/insensitive.md,
        docs/proofs/moments.md; PSD-2014, Lemma 1; MDAI-2017, section 3.
    """
    model = RULES[method.mechanism](method, attributes)
    if nominal and model == "dp" and method.stability == "rank":
        # sums of ranks telescope, choices of concepts do not: each of the moved clusters would cost the whole ε
        return "dp-given-partition"
    return model


def claims(method: Method) -> str:
    """The claims a preset can carry, in words, computed from the same rule as the statement."""
    one, several = privacy_model(method, 1), privacy_model(method, 2)
    unlinked = privacy_model(replace(method, link=False), 2) if "link" in method.adjustable else several
    if "composition" in method.adjustable:
        published = privacy_model(replace(method, composition="parallel"), 2)
        return f"{several}; {published} with composition=parallel"
    if "t" in method.adjustable and method.t is None:
        return f"{several}; {privacy_model(replace(method, t=2), 2)} with t"
    if one == several == unlinked:
        return one
    extra = " or link=False" if unlinked == one else ""
    ordered = "nominal" in method.kinds and privacy_model(method, 1, nominal=1) != one
    return f"{several}; {one} for one attribute{extra}{', nominal ones aside' if ordered else ''}"
