"""The three parts of a statement in words: computed by Shoal, declared by the publisher, recorded.

Plain values of a statement go in, so that the same words stand in the markdown, in reports and in Studio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

from shoal.decimals import decimal_text
from shoal.method.models import MODELS, Adjacency
from shoal.method.odds import budget_words
from shoal.method.verdict import DATA_DEPENDENT, NO_NOISE, RULES, UNKNOWN_ERRORS, fact_words, listed

Facts = Mapping[str, Any]

CANNOT_CHECK = "Shoal cannot check what follows."
RESTS_ON_DECLARATIONS = (
    "The guarantee rests on what the publisher declares: that ranges, values, types and settings do not depend on "
    "these records. Shoal cannot check this."
)
NOTHING_RECORDED = "Nothing is recorded that bears on what is declared."
_NOT_NAMED = "source not named"


@dataclass(frozen=True, slots=True)
class Parts:
    """The three parts.

    Attributes:
        computed: names and values.
        declared: one phrase each.
        recorded: one sentence each.
    """

    computed: tuple[tuple[str, str], ...]
    declared: tuple[str, ...]
    recorded: tuple[str, ...]


def three_parts(statement: Mapping[str, Any]) -> Parts:
    """The parts of a statement as readers see them."""
    declared = statement["declared"]
    recorded = tuple(recorded_words(one["code"], one["facts"]) for one in statement["recorded"])
    return Parts(
        tuple(_computed(statement)),
        tuple(
            f"{words}." for words in (*_by_column(declared["facts"]), *_publication(declared["publication"]))
        ),
        recorded or (NOTHING_RECORDED,),
    )


def declaration(code: str, facts: Facts) -> str:
    """A declared fact as a sentence that stands alone.

    >>> print(declaration("range", {"column": "income", "lo": "0", "hi": "200000", "source": "questionnaire"}))
    declared by the publisher: income lies between 0 and 200,000 (source: questionnaire). Shoal cannot check this.
    """
    return f"declared by the publisher: {declared_words(code, facts)}. Shoal cannot check this."


def declared_words(code: str, facts: Facts) -> str:
    """A declared fact in a phrase; one that this version does not know is spelled out."""
    if code in _OF_COLUMNS:
        return f"{facts['column']} {_OF_COLUMNS[code](facts)} ({_source(facts)})"
    if code not in _DECLARED:
        return fact_words(code, facts).removesuffix(".")
    return f"{_DECLARED[code](facts)} ({_source(facts)})" if "source" in facts else _DECLARED[code](facts)


def _source(facts: Facts) -> str:
    return f"source: {facts['source']}" if facts["source"] else _NOT_NAMED


def _by_column(declared: Sequence[Facts]) -> Iterator[str]:
    """Declared facts in phrases; those of one column from one source together."""
    together = groupby(
        declared,
        lambda one: (one["facts"]["column"], one["facts"]["source"]) if one["code"] in _OF_COLUMNS else None,
    )
    for group, members in together:
        if group is None:
            yield from (declared_words(one["code"], one["facts"]) for one in members)
            continue
        found = [(one["code"], one["facts"]) for one in members]
        words = ", ".join(_OF_COLUMNS[code](facts) for code, facts in found)
        yield f"{group[0]} {words} ({_source(found[0][1])})"


def recorded_words(code: str, facts: Facts) -> str:
    """A recorded fact in a sentence.

    >>> recorded_words("column-viewed", {"column": "income", "views": ["histogram"]})
    'Recorded: the histogram of income was viewed on this machine before its range was declared.'
    >>> recorded_words("moon-phase", {"phase": "full"})
    'Recorded: moon phase: phase = full.'
    """
    if code == DATA_DEPENDENT:
        return f"Recorded: {facts['choice']}"
    if code in RULES:
        return RULES[code].text(facts)
    words = fact_words(code, facts)
    return f"Recorded: {words[:1].lower()}{words[1:]}"


def number_words(text: str) -> str:
    """A number with its thousands apart; anything else as it is.

    >>> number_words("200000"), number_words("-1234.5"), number_words("1980-01-01")
    ('200,000', '-1,234.5', '1980-01-01')
    """
    try:
        Fraction(text)
    except (ValueError, ZeroDivisionError):
        return text
    whole, point, rest = text.partition(".")
    return f"{int(whole):,}{point}{rest}" if whole.lstrip("-").isdigit() else text


def _chosen(facts: Facts) -> str:
    but = f", {', '.join(facts['but'])} aside" if facts.get("but") else ""
    return f"columns, method and settings{but} do not depend on these records, as far as nothing else is recorded"


_OF_COLUMNS: Mapping[str, Callable[[Facts], str]] = {
    "range": lambda f: f"lies between {number_words(f['lo'])} and {number_words(f['hi'])}",
    "order": lambda f: f"has an order, from {f['lo']} to {f['hi']}",
    "values": lambda f: f"takes one of {f['values']}",
    "type": lambda f: f"is of type {f['type']}",
    "resolution": lambda f: f"matters in steps of {number_words(f['step'])}",
}
_DECLARED: Mapping[str, Callable[[Facts], str]] = {
    "rows-per-person": lambda f: (
        f"a value of {f['column']} has at most {f['rows']:,} row{'' if f['rows'] == 1 else 's'}"
    ),
    "step": lambda f: f"the step before protection '{f['do']}' of {f['column']} follows a public rule",
    "margin": lambda f: f"the totals of the population by {f['column']} are public",
    "rows": lambda f: f"{f['rows']:,} rows are released",
    "choices": _chosen,
}

_PUBLICATION = {
    "name": "name",
    "description": "description",
    "purpose": "purpose",
    "curators": "published by",
    "recipients": "recipients",
    "other_releases": "other releases about the same people",
    "contact": "contact",
    "date": "date of publication",
    "review_by": "to be reviewed by",
    "region": "region",
    "sector": "sector",
    "actors": "who sees which data",
    "security": "security of the original records",
    "justification": "why these parameters",
}


def _publication(told: Facts) -> Iterator[str]:
    for key, name in _PUBLICATION.items():
        if key in told:
            value = told[key]
            yield f"{name}: {', '.join(value) if isinstance(value, list) else str(value).removesuffix('.')}"
    if "other_releases" not in told:
        yield "other releases about the same people: none is named"


def _computed(statement: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    found = statement["computed"]
    yield "Model", found["model"]
    yield "What is protected", statement["target"]
    if found["adjacency"] is not None:
        adjacency = Adjacency(found["adjacency"])
        words = adjacency.words if adjacency is Adjacency.REPLACE_ONE else f"{adjacency}: {adjacency.words}"
        yield "Adjacency", words
    if found["epsilon"] is not None and MODELS[found["model"]].budgeted:
        rho = "" if found["rho"] is None else f", ρ = {found['rho']:.6g}"
        delta = f", δ = {decimal_text(Fraction(str(found['delta'])))}" if found["delta"] else ""
        yield "Privacy budget", f"ε = {budget_words(found['epsilon'])}{delta}{rho} per {found['unit']}"
    else:
        yield "Unit", found["unit"]
    if spent := found["spending"]:
        sign = "ρ" if found["spending_in"] == "rho" else "ε"
        parts = (
            f"{purpose}: {'taken from the data' if share is None else f'{sign} = {share:.6g}'}"
            for purpose, share in spent.items()
        )
        yield "Spent on", "; ".join(parts)
    exactly = [_INVARIANTS.get(one["code"], one["code"]) for one in found["invariants"]]
    yield "Released exactly or taken as public", "; ".join(exactly) or "nothing"
    settings = ", ".join(f"{key} = {value}" for key, value in statement["settings"].items())
    yield "Method", f"{statement['method']}{': ' if settings else ''}{settings}"
    version = f", Shoal {found['version']}" if found["version"] else ""
    yield "Mechanism", f"{found['mechanism'] or 'not stated'}{version}"
    yield (
        "Noise",
        f"{_ARITHMETIC[found['arithmetic']]}; {_ENTROPY[found['entropy']]}; {_TIMING[found['timing']]}",
    )
    yield "Expected error", error_words(found["expected_error"])


_INVARIANTS = {
    "values": "values, which get no noise",
    "number-of-rows": "the number of rows",
    "clusters": "the clusters, taken as fixed and public",
    "clusters-without-spread": "values of clusters without spread",
    "missing-values": "which values are missing",
    "margins": "public margins of the weights",
    "public-weights": "weights computed from public margins",
}
_ARITHMETIC = {
    "exact": "drawn by exact integer arithmetic",
    "none": "none is added",
    "not-stated": "how it is drawn is not stated",
}
_ENTROPY = {"system": "randomness from the operating system", "seed": "randomness from a seed"}
_TIMING = {"not-covered": "running time is not covered"}


def error_words(expected: Mapping[str, Any] | None) -> str:
    """The expected error in one line.

    >>> error_words(None)
    'not stated'
    """
    if expected is None:
        return "not stated"
    columns: Mapping[str, Facts] = expected["columns"]
    said = [
        *_span(columns, "share_of_rows", "standard error of shares of rows"),
        *_span(columns, "share_of_range", "standard deviation of the noise", "of the range"),
    ]
    relations = expected["relations"]
    if relations is not None and relations["of"]:
        errors = (
            f", standard error {_spread(relations['smallest'], relations['largest'])}"
            if relations["measured"]
            else ""
        )
        said.append(
            f"joint shares of {relations['measured']:,} of {relations['of']:,} pairs of columns are measured{errors}"
        )
    if expected["rows"] is not None:
        said.append(f"for {expected['rows']:,} rows ({_ROWS[expected['rows_are']]})")
    for why in dict.fromkeys(one["why"] for one in columns.values() if one["why"]):
        names = [name for name, one in columns.items() if one["why"] == why]
        who = "" if len(names) == len(columns) else f" of {listed(names)}"
        said.append(
            UNKNOWN_ERRORS[why] if why == NO_NOISE else f"unknown{who}: {UNKNOWN_ERRORS.get(why, why)}"
        )
    return "; ".join(said)


_ROWS = {
    "public": "a public number",
    "declared": "a declared number",
    "released": "the number that was drawn",
    "private": "the number of this table, which is private",
}


def _span(columns: Mapping[str, Facts], kind: str, what: str, of: str = "") -> Sequence[str]:
    found = {name: one[kind] for name, one in columns.items() if one[kind] is not None}
    if not found:
        return ()
    if len(found) <= 3:
        each = ", ".join(f"{name} {percent(value)}" for name, value in found.items())
    else:
        worst = max(found, key=lambda name: found[name])
        each = f"{_spread(min(found.values()), found[worst])} (largest: {worst})"
    return (f"{what}: {each}{' ' if of else ''}{of}",)


def _spread(least: float, most: float) -> str:
    first, last = percent(least), percent(most)
    return first if first == last else f"{first} to {last}"


def percent(share: float) -> str:
    """A share in percent, two digits.

    >>> percent(0.0312), percent(2.8284)
    ('3.1%', '283%')
    """
    return f"{100 * share:,.0f}%" if share >= 0.1 else f"{100 * share:.2g}%"
