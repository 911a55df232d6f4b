"""Read statements from plain values, in this format and in the first, which had sentences instead of codes.

The sentences of old files are in `sentences_v1.json`, so that those of the catalogue may be reworded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from shoal.columns import Declared, Recorded
from shoal.errors import InputError
from shoal.noise import MOST_EPSILON
from shoal.numbers import exact
from shoal.privacy import Adjacency
from shoal.privacy.verdict import DATA_DEPENDENT, MODELS, Reason, StatementTerms, stored_sentences, too_much
from shoal.text import Message, catalogue

# denominators tried for a written number, the simplest first
_DENOMINATORS = (10**3, 10**6, 10**9)


def statement_fields(plain: object, where: str) -> dict[str, Any]:
    """The fields of a `PrivacyStatement`, each checked.

    Raises:
        InputError: a field is missing, unknown or of the wrong kind.
    """
    if not isinstance(plain, Mapping):
        raise InputError("not-statement-release", where=where)
    number = plain.get("format", 1)
    if number not in (1, 2):
        raise InputError("format-version-shoal-does-not-know", where=where, number=_shown(number))
    needed = (*_FIELDS, *_DERIVED, *(("format", *_CODED, *_PARTS) if number == 2 else ()))
    for key in needed:
        if key not in plain:
            raise InputError("reading-not-statement-release", where=where, key=key)
    for key in plain:
        if key not in (*needed, "format", "terms", *_IN_RHO, *_WHERE_SET):
            raise InputError("key-version-shoal-does-not-know", where=where, key=key)
    if plain["model"] not in MODELS:
        raise InputError("unknown-model", where=where, model=plain["model"])
    if len(_IN_RHO.keys() & plain.keys()) == 1:
        raise InputError("damaged-delta-rho-belong-together", where=where)
    found: dict[str, Any] = {}
    readers = {**_FIELDS, **(_CODED if number == 2 else _IN_WORDS)}
    for key, reader in (
        *readers.items(),
        *(item for item in (*_IN_RHO.items(), *_WHERE_SET.items()) if item[0] in plain),
    ):
        try:
            found[key] = reader(plain[key])
        except (KeyError, TypeError, ValueError):
            raise InputError(
                "statement-key-damaged", where=where, key=key, plain=_shown(plain[key])
            ) from None
    found["terms"] = _terms(plain, {name: found.pop(name, ()) for name in _TERMS}, where)
    if number == 1:
        return _from_words(found)
    for part, reader in _PARTS.items():
        try:
            found |= reader(plain[part])
        except (KeyError, TypeError, ValueError):
            raise InputError(
                "statement-part-damaged", where=where, part=part, plain=_shown(plain[part])
            ) from None
    return found


def _terms(plain: Mapping[str, Any], texts: Mapping[str, tuple[str, ...]], where: str) -> StatementTerms:
    """The terms of a statement, by codes; sentences of a version without codes are recognised where possible."""
    if "terms" not in plain:
        return StatementTerms(**{name: tuple(map(_recognised, said)) for name, said in texts.items()})
    terms = plain["terms"]
    try:
        return StatementTerms(**{name: _messages(terms[name], texts[name]) for name in _TERMS})
    except (KeyError, TypeError, ValueError, IndexError):
        raise InputError("statement-key-damaged", where=where, key="terms", plain=_shown(terms)) from None


def _messages(terms: Any, texts: Sequence[str]) -> tuple[Message, ...]:
    found = [Message(*_facts(one)) for one in terms]
    for message in found:
        if message.code in catalogue():
            # facts required by its sentence must be present
            message.rendered()
    return tuple(
        message if message.code in catalogue() else Message.of("unknown", text=text)
        for message, text in zip(found, texts, strict=True)
    )


def _recognised(text: str) -> Message:
    """The message of a sentence without facts; an unknown sentence is kept unchanged."""
    code = stored_sentences()["terms"].get(text)
    return Message.of("unknown", text=text) if code is None else Message(code)


def _from_words(found: dict[str, Any]) -> dict[str, Any]:
    """The fields of the first format: codes for its known sentences, other sentences unchanged."""
    adjacency, reasons = found.pop("neighbours"), found.pop("not_publishable_because")
    budget = found["epsilon"] if MODELS[found["model"]].budgeted else None
    facts = {
        "epsilon": None if budget is None else float(budget),
        "unit": found["unit"],
        "model": found["model"],
        "adjacency": adjacency,
    }
    excess = too_much(facts, found.get("most_epsilon", MOST_EPSILON))
    known = {text: Reason.of(code) for text, code in stored_sentences()["reasons"].items()}
    if excess is not None and reasons and not found.get("override"):
        # an ε that is too large was always printed last
        known[reasons[-1]] = excess
    obstacles = tuple(known.get(words, Reason.of("unknown", text=words)) for words in reasons)
    return {**found, "adjacency": adjacency, "obstacles": obstacles}


def _adjacency_of(words: Any) -> Adjacency:
    return Adjacency(stored_sentences()["adjacency"][_text(words)])


def fraction(value: Any) -> Fraction:
    """The simplest fraction with this decimal form, or else the decimal number itself.

    >>> fraction(1 / 3), fraction(0.1), fraction(2)
    (Fraction(1, 3), Fraction(1, 10), Fraction(2, 1))
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or value < 0
    ):
        raise ValueError
    # converted budgets are decimal numbers of twelve digits
    if len(Decimal(repr(value)).as_tuple().digits) <= 12:
        return exact(value, "a number")
    for largest in _DENOMINATORS:
        near = Fraction(value).limit_denominator(largest)
        if float(near) == value:
            return near
    return exact(value, "a number")


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise TypeError
    return tuple(_text(item) for item in value)


def _counted(value: Any) -> str:
    if value not in ("rows", "persons"):
        raise ValueError
    return _text(value)


def _perhaps(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _by_name(read: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    def named(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise TypeError
        return {_text(name): read(item) for name, item in value.items()}

    return named


def _facts(value: Any) -> tuple[str, dict[str, Any]]:
    return _text(value["code"]), _by_name(lambda item: item)(value["facts"])


def _obstacles(value: Any) -> tuple[Reason, ...]:
    if not isinstance(value, (list, tuple)):
        raise TypeError
    return tuple(Reason("red", *_facts(one)) for one in value)


def _of_computed(part: Any) -> dict[str, Any]:
    return {
        "mechanism": _text(part["mechanism"]),
        "arithmetic": _text(part["arithmetic"]),
        "invariants": tuple(Declared(*_facts(one)) for one in part["invariants"]),
        "expected_error": _perhaps(_error)(part["expected_error"]),
    }


def _error(value: Any) -> dict[str, Any]:
    """An expected error, in the form that verdicts and sentences use."""
    for name, one in value["columns"].items():
        _text(name), _text(one["why"])
        for kind in ("standard_deviation", "share_of_range", "share_of_rows"):
            _perhaps(fraction)(one[kind])
    relations = value["relations"]
    if relations is not None:
        for kind in ("of", "measured"):
            fraction(relations[kind])
    _perhaps(fraction)(value["rows"]), _text(value["rows_are"])
    return dict(value)


def _of_declared(part: Any) -> dict[str, Any]:
    return {
        "declared": tuple(Declared(*_facts(one)) for one in part["facts"]),
        "publication": _by_name(lambda item: item)(part["publication"]),
    }


def _of_recorded(part: Any) -> dict[str, Any]:
    found = [Recorded(*_facts(one)) for one in part]
    # values taken from the records have a separate key
    return {"recorded": tuple(one for one in found if one.code != DATA_DEPENDENT)}


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


_FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "model": _text,
    "target": _text,
    "epsilon": _perhaps(fraction),
    "epsilon_per_attribute": _by_name(_perhaps(fraction)),
    "spending": _by_name(_perhaps(fraction)),
    "unit": _text,
    "conditions": _texts,
    "data_dependent": _texts,
    "not_promised": _texts,
    "method": _text,
    "settings": _by_name(lambda value: value),
    "attributes": _by_name(_by_name(_text)),
    "versions": _by_name(_text),
}

# items that statements no longer have, and stored ones do
EARLIER_TERMS = ("epsilon-times-rows", "rho-times-rows")

# the items of a statement
_TERMS = ("conditions", "data_dependent", "not_promised", "steps")

# present only if the claim has a δ
_IN_RHO: Mapping[str, Callable[[Any], Any]] = {"delta": fraction, "rho": fraction}

# present only if they differ from the default
_WHERE_SET: Mapping[str, Callable[[Any], Any]] = {
    **{
        "most_epsilon": fraction,
        "override": _text,
        "steps": _texts,
        "counted": _counted,
        "public_rows": _whole,
    }
}

# also available in other words
_DERIVED = ("sentence", "publishable", "verdict", "neighbours", "not_publishable_because")

# keys with text that follows from the others
WORDED = (*_DERIVED, *_TERMS)

# only as text in the first format
_IN_WORDS: Mapping[str, Callable[[Any], Any]] = {
    "neighbours": _perhaps(_adjacency_of),
    "not_publishable_because": _texts,
}
_CODED: Mapping[str, Callable[[Any], Any]] = {"adjacency": _perhaps(Adjacency), "obstacles": _obstacles}
_PARTS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "computed": _of_computed,
    "declared": _of_declared,
    "recorded": _of_recorded,
}
