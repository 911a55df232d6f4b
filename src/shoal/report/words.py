"""The guarantee in plain words, and the table for the data protection officer.

Every sentence follows from the model of the statement. None says more than the model does: what is true of the original
records, of a table given its groups, and of one actual table are three different claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.evaluation import RiskLine
from shoal.privacy import MODELS, Adjacency, ModelFacts, belief_words, budget_words, factor_words
from shoal.text import percent

# said of a number that a promise does not have
NOT_ANY = "none"
CRITERIA = ("singling out", "linkability", "inference")
_NOT_DECLARED = "not declared"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A promise as the first screen says it.

    Attributes:
        sentence: the promise in one plain sentence.
        plain: what it means.
        bound: the most that can be learned about one person, in a few words.
        bound_note: under which assumption, or why there is none.
    """

    sentence: str
    plain: str
    bound: str
    bound_note: str


def explanation(statement: Mapping[str, Any]) -> Explanation:
    """The promise of a statement in plain words.

    >>> facts = {"model": "none", "data_dependent": [], "epsilon": None, "settings": {}, "unit": "row"}
    >>> explanation(facts).bound
    'no bound'
    """
    if tainted(statement):
        return Explanation(
            "As it stands nothing is promised.",
            "A choice listed below looked at the records. With that choice fixed beforehand the same method would "
            "carry the promise named above.",
            "no bound",
            "a choice looked at the records",
        )
    return _EXPLANATIONS[statement["model"]](statement)


def tainted(statement: Mapping[str, Any]) -> bool:
    """Whether choices that looked at the records leave nothing of the promise."""
    facts = MODELS[statement["model"]]
    return bool(statement["data_dependent"]) and facts.guarantee and not facts.of_the_table


def facts_of(statement: Mapping[str, Any]) -> ModelFacts:
    return MODELS[statement["model"]]


def epsilon_words(statement: Mapping[str, Any]) -> tuple[str, str]:
    """The budget and what it counts."""
    epsilon = statement["epsilon"]
    if epsilon is None or not facts_of(statement).budgeted:
        return NOT_ANY, "this promise has no privacy budget"
    if tainted(statement):
        return budget_words(epsilon), "what the noise was made for; as it stands it promises nothing"
    apart = f"; except with probability {statement['delta']:g} (δ)" if "delta" in statement else ""
    return budget_words(epsilon), f"privacy budget per {statement['unit']}; small is strong{apart}"


def k_words(statement: Mapping[str, Any]) -> tuple[str, str]:
    """The least size of groups and whether it is part of the promise."""
    k = statement["settings"].get("k")
    if k is None:
        return NOT_ANY, "the method has no groups of a least size"
    if facts_of(statement).of_the_table:
        return f"{k}", "least number of rows in a group, part of the promise"
    return f"{k}", "least number of records that were summarised together; not a promise of k-anonymity"


def _differential_privacy(statement: Mapping[str, Any], failing: tuple[str, str] = ("", "")) -> Explanation:
    """The promise; `failing` says with which probability it fails, for its sentence and for what it means."""
    epsilon, unit = statement["epsilon"], statement["unit"]
    factor, belief = factor_words(epsilon), belief_words(epsilon)
    if statement["adjacency"] == Adjacency.REPLACE_ONE:
        return Explanation(
            f"Whoever knows all others and was 50% sure of a fact about one {unit} can become {belief} sure by this "
            f"table, not surer{failing[0]}.",
            f"Had one {unit} been another, no possible outcome would be more than {factor} times as likely, or as "
            f"unlikely{failing[1]}.",
            f"{belief} sure at most{failing[0]}",
            f"about one {unit}, starting from 50% and knowing all other records",
        )
    # between two values of a record that is there lie two steps, the one leaves and the other comes, and two δ
    fact = "" if "delta" in statement else f"; of a fact about it {belief_words(2 * epsilon)}"
    return Explanation(
        f"Whoever knows all others and was 50% sure that one {unit} is among them can become {belief} sure by this "
        f"table, not surer{fact}{failing[0]}.",
        f"Had one {unit} been added or left out, no possible outcome would be more than {factor} times as likely, or "
        f"as unlikely{failing[1]}.",
        f"{belief} sure at most{failing[0]}",
        f"whether one {unit} took part, starting from 50% and knowing all other records",
    )


def _approximate(statement: Mapping[str, Any]) -> Explanation:
    failing = f", except with probability {statement['delta']:g}"
    return _differential_privacy(statement, (failing, f"{failing} (δ)"))


def _given_partition(statement: Mapping[str, Any]) -> Explanation:
    return Explanation(
        "Had one record been another and all groups of records stayed as they are, no possible outcome would be more "
        f"than {factor_words(statement['epsilon'])} times as likely, or as unlikely.",
        "Records were put into groups, and noise was added to the statistics of each group. Which records form a group "
        "is taken as known to everybody, and what that reveals is not covered: this is not differential privacy of the "
        "original records.",
        "no bound for a person",
        "what the groups themselves reveal is not covered",
    )


def _individual(statement: Mapping[str, Any]) -> Explanation:
    return Explanation(
        "Had one record of this very table been another, and groups of records and size of the noise stayed as they "
        f"are, no possible outcome would be more than {factor_words(statement['epsilon'])} times as likely, or as "
        "unlikely.",
        "Records were put into groups, and noise fitted to these very records was added to the statistics of each "
        "group. Other tables are not compared, and what groups and size of the noise reveal is not covered: this is "
        "weaker than differential privacy.",
        "no bound for a person",
        "groups and size of the noise follow the records and are not covered",
    )


def _k_anonymity(statement: Mapping[str, Any]) -> Explanation:
    k = statement["settings"]["k"]
    if statement.get("counted") == "persons":
        return Explanation(
            f"Somebody who knows a person's quasi-identifiers finds rows of at least {k} persons that fit equally "
            "well.",
            "Which of these persons a row is about cannot be told. What the rows have in common is not hidden: if all "
            "of them share a confidential value, it is told about each.",
            f"1 in {k} at most",
            "to tell whom a row is about by the quasi-identifiers alone, all persons who fit taken for equally likely",
        )
    return Explanation(
        f"Somebody who knows a person's quasi-identifiers finds at least {k} rows that fit equally well.",
        "Which of these rows is that person's cannot be told. What the rows have in common is not hidden: if all of "
        "them share a confidential value, it is told about each.",
        f"1 in {k} at most",
        "to tell a person's row by the quasi-identifiers alone",
    )


def _probabilistic(statement: Mapping[str, Any]) -> Explanation:
    k = statement["settings"]["k"]
    return Explanation(
        "Somebody who takes every assignment inside a group for equally likely is right about whose a confidential "
        f"value is with probability 1/{k} at most.",
        f"The link between a person and a confidential value was cut inside groups of at least {k}. What the values of "
        "a group have in common is not hidden.",
        f"1 in {k} at most",
        "to tell whose a confidential value is, all members of a group taken for equally likely",
    )


def _closeness(statement: Mapping[str, Any]) -> Explanation:
    t = f"{float(statement['settings']['t']):.6g}"
    return Explanation(
        "Somebody who knows how confidential values are spread over the whole table, and learns the group of a person, "
        f"changes the odds of a bucket of values for that person by a factor of {t} at most.",
        "This is a bound for one person under that prior knowledge, not differential privacy.",
        f"odds times {t} at most",
        "for a bucket of values of one person, from the shares of the whole table",
    )


def _nothing(statement: Mapping[str, Any]) -> Explanation:
    return Explanation(
        "Nothing is promised.",
        "The table is here to reproduce or to compare a method, not to protect anybody.",
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
    """One of the three criteria by which data count as anonymous.

    Attributes:
        argument: what follows from the guarantee.
        measured: attacks on the release, beside guessing.
        residual: what is left.
        whom: for whom it is assessed.
        until: when the assessment has to be made again.
    """

    name: str
    argument: str
    measured: str
    residual: str
    whom: str
    until: str


def criteria(statement: Mapping[str, Any], lines: Sequence[RiskLine]) -> tuple[Criterion, ...]:
    """The table of a release; what was measured is a fact about the original data."""
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
        factor = factor_words(statement["epsilon"])
        return dict.fromkeys(
            CRITERIA,
            f"No bound for a person: with the groups of records known, one record changes the probability of an "
            f"outcome by a factor of at most {factor}; the groups themselves are not covered.",
        )
    return _of_table(statement)


def _of_records(statement: Mapping[str, Any]) -> dict[str, str]:
    unit, epsilon = statement["unit"], statement["epsilon"]
    apart = f", except with probability {statement['delta']:g}" if "delta" in statement else ""
    bound = f"One {unit} changes the probability of any outcome by a factor of at most {factor_words(epsilon)}{apart}"
    return {
        "singling out": f"{bound}: that somebody stands alone is not learned from that record beyond this factor.",
        "linkability": f"{bound}, whatever other data it is linked with.",
        "inference": f"{bound}: a belief of 50% rises to at most {belief_words(epsilon)} by it. What is true of the "
        "population can be inferred, and is not covered.",
    }


def _of_table(statement: Mapping[str, Any]) -> dict[str, str]:
    k, t = statement["settings"].get("k"), statement["settings"].get("t")
    counted = statement.get("counted", "rows")
    hidden = {
        "k-anonymity": "Not covered: confidential values that all rows of a group share are disclosed.",
        "probabilistic-k-anonymity": f"Whose a confidential value is can be told with probability 1/{k} at most.",
        "t-closeness": f"The odds of a bucket of confidential values change by a factor of {t} at most.",
    }
    groups = statement["model"] == "k-anonymity"
    return {
        "singling out": f"By the quasi-identifiers alone a person fits at least {k} {counted}."
        if groups
        else "Not covered: columns that are not confidential are as they were.",
        "linkability": f"Through the quasi-identifiers alone a link is right in 1 of {k} cases at most."
        if groups
        else f"A record can be linked, and its confidential value is one of a group of at least {k}.",
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
        return "as far as the argument goes"
    if any(line.above_chance for line in lines):
        if name == "inference":
            return "above guessing: a control group tells whether it is knowledge about people in general"
        return "above guessing, beside what the argument bounds"
    return "not clearly above guessing"
