"""A table for the data protection officer: singling out, linkability and inference, argued and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.evaluation.verdict import RiskLine
from shoal.method.models import MODELS
from shoal.method.odds import belief_words, factor_words
from shoal.report.words import tainted
from shoal.text import percent

CRITERIA = ("singling out", "linkability", "inference")
_NOT_DECLARED = "not declared"


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
