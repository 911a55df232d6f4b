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
from shoal.method.models import MODELS
from shoal.method.odds import budget_words
from shoal.method.verdict import DATA_DEPENDENT, NO_NOISE, RULES, Reason, other_phrase, unknown_error
from shoal.privacy import Adjacency
from shoal.text import Message, capital, catalogue, percent

Facts = Mapping[str, Any]

CANNOT_CHECK = Message("cannot-check")
NOTHING_RECORDED = Message("nothing-recorded")


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
    phrases = (*_by_column(declared["facts"]), *_publication(declared["publication"]))
    recorded = tuple(recorded_words(one["code"], one["facts"]) for one in statement["recorded"])
    return Parts(
        tuple(
            (str(Message(f"part-{code}")), str(value)) for code, value in computed_values(statement).items()
        ),
        tuple(str(Message.of("as-sentence", said=phrase)) for phrase in phrases),
        recorded or (str(NOTHING_RECORDED),),
    )


def declaration(code: str, facts: Facts) -> str:
    """A declared fact as a sentence that stands alone.

    >>> print(declaration("range", {"column": "income", "lo": "0", "hi": "200000", "source": "questionnaire"}))
    declared by the publisher: income lies between 0 and 200,000 (source: questionnaire). Shoal cannot check this.
    """
    return str(Message.of("declared-by-publisher", fact=declared_fact(code, facts)))


def declared_fact(code: str, facts: Facts) -> Message:
    """A declared fact in a phrase; one that this version does not know is spelled out."""
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
    """Declared facts in phrases; those of one column from one source together."""
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
    """A recorded fact in a sentence.

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
    **{code: _as_given(code) for code in ("rows-per-person", "step", "margin", "rows")},
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
            # the publisher's own words: a full stop follows
            said = tuple(value) if isinstance(value, list) else (str(value).removesuffix("."),)
            yield Message.of(f"publication-{key.replace('_', '-')}", said=said)
    if "other_releases" not in told:
        yield Message("publication-no-other-releases")


def computed_values(statement: Mapping[str, Any]) -> dict[str, Message | str]:
    """What Shoal computed, by code."""
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
    """The message of a code; one of another version as it is."""
    return Message(f"{prefix}-{code}") if f"{prefix}-{code}" in catalogue() else code


def error_words(expected: Mapping[str, Any] | None) -> str:
    """The expected error in one line.

    >>> error_words(None)
    'not stated'
    """
    return str(error_message(expected))


def error_message(expected: Mapping[str, Any] | None) -> Message:
    """The expected error."""
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
