"""The guarantee in plain words, and the assessment table for the data protection officer.

Every sentence follows from the model of the statement. None claims more than the model does: a claim about the
original records, one about a table given its groups, and one about the actual table are three different claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.evaluation import RiskLine
from shoal.privacy import MODELS, Adjacency, ModelFacts, belief_words, budget_words, factor_words
from shoal.text import percent

# shown where a guarantee has no such number
NOT_ANY = "none"
CRITERIA = ("singling out", "linkability", "inference")
_NOT_DECLARED = "not declared"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The guarantee as explained at the top of a page.

    Attributes:
        sentence: the guarantee in one plain sentence.
        plain: what it means.
        bound: the most that can be learned about one person, in a short phrase.
        bound_note: the assumption behind it, or why there is no bound.
    """

    sentence: str
    plain: str
    bound: str
    bound_note: str


def explanation(statement: Mapping[str, Any]) -> Explanation:
    """The guarantee of a statement in plain words.

    >>> facts = {"model": "none", "data_dependent": [], "epsilon": None, "settings": {}, "unit": "row"}
    >>> explanation(facts).bound
    'no bound'
    """
    if tainted(statement):
        return Explanation(
            "No guarantee holds as it stands.",
            "A choice listed below is data-dependent. With that choice fixed in advance, the same method would give "
            "the guarantee named above.",
            "no bound",
            "a choice is data-dependent",
        )
    return _EXPLANATIONS[statement["model"]](statement)


def tainted(statement: Mapping[str, Any]) -> bool:
    """Whether data-dependent choices leave nothing of the guarantee."""
    facts = MODELS[statement["model"]]
    return bool(statement["data_dependent"]) and facts.guarantee and not facts.of_the_table


def facts_of(statement: Mapping[str, Any]) -> ModelFacts:
    return MODELS[statement["model"]]


def epsilon_words(statement: Mapping[str, Any]) -> tuple[str, str]:
    """The budget and its unit of protection."""
    epsilon = statement["epsilon"]
    if epsilon is None or not facts_of(statement).budgeted:
        return NOT_ANY, "this guarantee has no privacy budget"
    if tainted(statement):
        return budget_words(
            epsilon
        ), "the budget that the noise was calibrated to; no guarantee holds as it stands"
    apart = f"; except with probability {statement['delta']:g} (δ)" if "delta" in statement else ""
    return budget_words(epsilon), f"privacy budget per {statement['unit']}; smaller is stronger{apart}"


def k_words(statement: Mapping[str, Any]) -> tuple[str, str]:
    """The minimum group size, and whether it is part of the guarantee."""
    k = statement["settings"].get("k")
    if k is None:
        return NOT_ANY, "the method has no minimum group size"
    if facts_of(statement).of_the_table:
        return f"{k}", "minimum number of rows in a group, part of the guarantee"
    return f"{k}", "minimum number of records aggregated together; not a guarantee of k-anonymity"


def _at_most(bound: str) -> str:
    """A bound for a sentence; one too large to be written out already begins with "more than".

    >>> _at_most(belief_words(1.0)), _at_most(belief_words(12.0))
    ('at most 73.2%', 'more than 99.9%')
    """
    return f"at most {bound}" if bound[:1].isdigit() else bound


def _differential_privacy(statement: Mapping[str, Any], failing: tuple[str, str] = ("", "")) -> Explanation:
    """The guarantee; `failing` gives the probability of failure, for the sentence and for its meaning."""
    epsilon, unit = statement["epsilon"], statement["unit"]
    factor, belief = _at_most(factor_words(epsilon)), _at_most(belief_words(epsilon))
    if statement["adjacency"] == Adjacency.REPLACE_ONE:
        return Explanation(
            f"Someone who knows the rest of the data and gives a fact about one {unit} a probability of 50% can raise "
            f"that to {belief} after seeing this table{failing[0]}.",
            f"Changing one {unit} changes the probability of any released table by a factor of {factor}{failing[1]}.",
            f"{belief}{failing[0]}",
            f"probability of a fact about one {unit}, starting from 50% and knowing the rest of the data",
        )
    # two values of a present record are two steps apart, removing one and adding the other, which counts δ twice
    twice = _at_most(belief_words(2 * epsilon))
    fact = "" if "delta" in statement else f"; for a fact about it, to {twice}"
    return Explanation(
        f"Someone who knows the rest of the data and gives one {unit} a 50% chance of being in the data can raise that "
        f"to {belief} after seeing this table{fact}{failing[0]}.",
        f"Adding or removing one {unit} changes the probability of any released table by a factor of "
        f"{factor}{failing[1]}.",
        f"{belief}{failing[0]}",
        f"probability that one {unit} is in the data, starting from 50% and knowing the rest of the data",
    )


def _approximate(statement: Mapping[str, Any]) -> Explanation:
    failing = f", except with probability {statement['delta']:g}"
    return _differential_privacy(statement, (failing, f"{failing} (δ)"))


def _given_partition(statement: Mapping[str, Any]) -> Explanation:
    return Explanation(
        "Changing one record, with the groups of records held fixed, changes the probability of any released table by "
        f"a factor of {_at_most(factor_words(statement['epsilon']))}.",
        "Records were grouped, and noise was added to the statistics of each group. Which records form a group is "
        "treated as known to everyone, and what the groups reveal is not covered: this is not differential privacy of "
        "the original records.",
        "no bound for a person",
        "what the groups themselves reveal is not covered",
    )


def _individual(statement: Mapping[str, Any]) -> Explanation:
    return Explanation(
        "Changing one record of this very table, with the groups of records and the scale of the noise held fixed, "
        "changes the probability of any released table by a factor of "
        f"{_at_most(factor_words(statement['epsilon']))}.",
        "Records were grouped, and noise calibrated to these very records was added to the statistics of each group. "
        "Other tables are not compared, and what the groups and the scale of the noise reveal is not covered: this is "
        "weaker than differential privacy.",
        "no bound for a person",
        "the groups and the scale of the noise depend on the records and are not covered",
    )


def _k_anonymity(statement: Mapping[str, Any]) -> Explanation:
    k = statement["settings"]["k"]
    if statement.get("counted") == "persons":
        return Explanation(
            f"Someone who knows a person's quasi-identifiers finds rows of at least {k} persons that match equally "
            "well.",
            "The quasi-identifiers do not determine which of these persons a row is about. What the rows have in "
            "common is not hidden: if all of them share a confidential value, it is disclosed for each person.",
            f"at most 1 in {k}",
            "chance of identifying whom a row is about from the quasi-identifiers alone, if all matching persons are "
            "equally likely",
        )
    return Explanation(
        f"Someone who knows a person's quasi-identifiers finds at least {k} rows that match equally well.",
        "The quasi-identifiers do not determine which of these rows belongs to that person. What the rows have in "
        "common is not hidden: if all of them share a confidential value, it is disclosed for each.",
        f"at most 1 in {k}",
        "chance of identifying a person's row from the quasi-identifiers alone",
    )


def _probabilistic(statement: Mapping[str, Any]) -> Explanation:
    k = statement["settings"]["k"]
    return Explanation(
        "Someone who considers every assignment within a group equally likely identifies the person behind a "
        f"confidential value with probability at most 1/{k}.",
        f"The link between persons and confidential values was broken within groups of at least {k}. What the values "
        "of a group have in common is not hidden.",
        f"at most 1 in {k}",
        "chance of identifying the person behind a confidential value, if all members of a group are equally likely",
    )


def _closeness(statement: Mapping[str, Any]) -> Explanation:
    t = f"{float(statement['settings']['t']):.6g}"
    return Explanation(
        "For someone who knows the distribution of confidential values in the whole table and learns the group of a "
        f"person, the probability of a bucket of values for that person changes by a factor of at most {t}.",
        "This is a bound for one person under that prior knowledge, not differential privacy.",
        f"probability times at most {t}",
        "for a bucket of values of one person, starting from the distribution in the whole table",
    )


def _nothing(statement: Mapping[str, Any]) -> Explanation:
    return Explanation(
        "No guarantee is given.",
        "The table serves to reproduce or to compare a method, not to protect anyone.",
        "no bound",
        "the method gives no guarantee",
    )


_EXPLANATIONS = {
    "dp": _differential_privacy,
    "approximate-dp": _approximate,
    "dp-given-partition": _given_partition,
    "idp-given-partition": _individual,
    "k-anonymity": _k_anonymity,
    "probabilistic-k-anonymity": _probabilistic,
    "t-closeness": _closeness,
    "none": _nothing,
}


@dataclass(frozen=True, slots=True)
class Criterion:
    """One of the three criteria for anonymous data.

    Attributes:
        argument: what follows from the guarantee.
        measured: attacks on the release, compared with guessing.
        residual: the remaining risk.
        whom: the recipients for whom it is assessed.
        until: when the assessment has to be repeated.
    """

    name: str
    argument: str
    measured: str
    residual: str
    whom: str
    until: str


def criteria(statement: Mapping[str, Any], lines: Sequence[RiskLine]) -> tuple[Criterion, ...]:
    """The criteria for a release; measured figures are facts about the original data."""
    told = statement["declared"]["publication"]
    whom, until = (told.get(key, _NOT_DECLARED) for key in ("recipients", "review_by"))
    found = []
    for name in CRITERIA:
        own = [line for line in lines if _criterion(line) == name]
        argument = _arguments(statement)[name]
        found.append(Criterion(name, argument, _measured(own, name), _residual(own, name), whom, until))
    return tuple(found)


def _criterion(line: RiskLine) -> str:
    if not line.identity:
        return "inference"
    return "singling out" if line.singles_out else "linkability"


def _arguments(statement: Mapping[str, Any]) -> dict[str, str]:
    facts = MODELS[statement["model"]]
    if tainted(statement) or not facts.guarantee:
        return dict.fromkeys(CRITERIA, "None: no guarantee holds as it stands.")
    if facts.of_records:
        return _of_records(statement)
    if facts.given_partition:
        factor = _at_most(factor_words(statement["epsilon"]))
        return dict.fromkeys(
            CRITERIA,
            "No bound for a person: given the groups of records, one record changes the probability of any outcome by "
            f"a factor of {factor}; the groups themselves are not covered.",
        )
    return _of_table(statement)


def _of_records(statement: Mapping[str, Any]) -> dict[str, str]:
    unit, epsilon = statement["unit"], statement["epsilon"]
    apart = f", except with probability {statement['delta']:g}" if "delta" in statement else ""
    factor = _at_most(factor_words(epsilon))
    bound = f"One {unit} changes the probability of any outcome by a factor of {factor}{apart}"
    return {
        "singling out": f"{bound}: beyond this factor, it does not help to single out a person.",
        "linkability": f"{bound}, whatever other data it is linked with.",
        "inference": f"{bound}: it raises a belief of 50% to {_at_most(belief_words(epsilon))}. What is true of the "
        "population can be inferred and is not covered.",
    }


def _of_table(statement: Mapping[str, Any]) -> dict[str, str]:
    k, t = statement["settings"].get("k"), statement["settings"].get("t")
    counted = statement.get("counted", "rows")
    hidden = {
        "k-anonymity": "Not covered: confidential values shared by all rows of a group are disclosed.",
        "probabilistic-k-anonymity": "The person behind a confidential value is identified with probability at most "
        f"1/{k}.",
        "t-closeness": f"The probability of a bucket of sensitive values changes by a factor of at most {t}.",
    }
    groups = statement["model"] == "k-anonymity"
    return {
        "singling out": f"By the quasi-identifiers alone, a person matches at least {k} {counted}."
        if groups
        else "Not covered: columns that are not confidential are unchanged.",
        "linkability": f"By the quasi-identifiers alone, a link is correct in at most 1 of {k} cases."
        if groups
        else f"A record can be linked, but its confidential value is one of a group of at least {k}.",
        "inference": hidden[statement["model"]],
    }


def _measured(lines: Sequence[RiskLine], name: str) -> str:
    if not lines:
        return "not measured"
    shown = [max(lines, key=_excess)] if name == "inference" else lines
    words = "; ".join(
        f"{line.name} {percent(line.success)} ({percent(line.interval[0])} to {percent(line.interval[1])}), guessing "
        f"{percent(line.chance)}"
        + ("" if line.unprotected is None else f", unprotected {percent(line.unprotected)}")
        for line in shown
    )
    return f"{words}; without a control group" if name == "inference" else words


def _excess(line: RiskLine) -> float:
    return line.success - line.chance


def _residual(lines: Sequence[RiskLine], name: str) -> str:
    if not lines:
        return "only as bounded by the argument"
    if any(line.above_chance for line in lines):
        if name == "inference":
            return (
                "above guessing; only a control group shows whether it is knowledge about people in general"
            )
        return "above guessing; compare the bound in the argument"
    return "not clearly above guessing"
