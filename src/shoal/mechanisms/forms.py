"""Forms of settings: check and parse the values given by callers.

Typed text is parsed first (`parse`), for forms that need more than the text itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from shoal.errors import OptionError
from shoal.noise import parse_delta, parse_epsilon
from shoal.numbers import What, exact, named
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.mechanisms.parameter_fields import Parameter

ByColumn = tuple[tuple[str, Fraction], ...]
NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class Form:
    """The notation of a setting's values.

    Attributes:
        words: description of a value: "an integer".
        placeholder: the placeholder for a value in a help text.
        read: checks a value, for a setting with its range and choices.
        parse: converts text to a value, for the setting of a given name.
        typed: the type to which a command line converts the text: str, int or bool.
        besides: accepted values besides the choices.
        keyed: the choices are keys, each of which gets a value.
        by_name: a value can be a mapping, which a method stores as pairs.
        plain: turns stored pairs into the mapping that a recipe stores, where that has more than one level.
    """

    words: str
    placeholder: str
    read: Callable[[Parameter, Any], Any]
    parse: Callable[[str, str], Any] = lambda name, text: text
    typed: type = str
    besides: tuple[str, ...] = ()
    keyed: bool = False
    by_name: bool = False
    plain: Callable[[Any], Any] = dict


def _text(name: str, text: str) -> str:
    return text


def _budget(setting: Parameter, value: Any) -> Fraction:
    return parse_epsilon(value)


def _delta(setting: Parameter, value: Any) -> Fraction:
    return parse_delta(value)


def _choice(setting: Parameter, value: Any) -> str:
    return setting.choose(value)


def _name(setting: Parameter, value: Any) -> str:
    return str(value)


def _switch(setting: Parameter, value: Any) -> bool:
    if not isinstance(value, bool):
        raise OptionError("option-true-false", option=setting.name, found=value)
    return value


def _whole(setting: Parameter, value: Any) -> int:
    return whole(setting.name, value, int(setting.least or 0))


def whole(what: What, value: Any, least: int) -> int:
    """An integer that is large enough."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise OptionError("option-whole-number", **named(what), found=value) from None
    if isinstance(value, bool) or number != value or number < least:
        raise OptionError("option-whole-number-least", **named(what), least=least, found=value)
    return number


def _number(setting: Parameter, value: Any) -> Fraction:
    return _in_range(setting, setting.name, value)


def _in_range(setting: Parameter, what: What, value: Any) -> Fraction:
    number = exact(value, what)
    low, high = setting.least, setting.most
    if (low is not None and number < low) or (high is not None and number > high):
        code = "option-below" if high is None else "option-outside"
        raise OptionError(code, **named(what), least=low, most=high, found=value)
    return number


def _split(setting: Parameter, value: Any) -> str | ByColumn:
    if isinstance(value, str):
        return setting.choose(value)
    if not isinstance(value, Mapping):
        raise OptionError(
            "option-weights-column", option=setting.name, allowed=tuple(setting.choices), found=value
        )
    return tuple(
        (str(column), exact(weight, Message.of("weight-of-column", setting=setting.name, column=column)))
        for column, weight in value.items()
    )


def _shares(setting: Parameter, value: Any) -> ByColumn:
    parts, name = tuple(setting.choices), setting.name
    if not isinstance(value, Mapping) or set(value) != set(parts):
        raise OptionError("option-give-weight-each", option=name, parts=tuple(parts), found=value)
    weights = tuple((part, exact(value[part], Message.of("share-of-part", part=part))) for part in parts)
    if min(weight for _, weight in weights) <= 0:
        raise OptionError("every-weight-above-0", name=name, found=value)
    return weights


def _groups(setting: Parameter, value: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list | tuple) or not all(
        isinstance(group, list | tuple) and group for group in value
    ):
        raise OptionError("option-list-non-empty-lists-column", option=setting.name)
    return tuple(tuple(str(column) for column in group) for group in value)


def _weights(setting: Parameter, value: Any) -> tuple[Fraction, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise OptionError("option-list-numbers-such-0-5", option=setting.name, found=value)
    weights = tuple(exact(weight, Message("a-weight")) for weight in value)
    if not weights or min(weights) <= 0:
        raise OptionError("weights-not-above-0", found=[float(weight) for weight in weights])
    return weights


def _sizes(setting: Parameter, value: Any) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, Mapping) or not value:
        raise OptionError("option-give-group-size-column-such", option=setting.name, found=value)
    return tuple(
        (str(column), whole(Message.of("size-of-column", column=column), size, int(setting.least or 0)))
        for column, size in value.items()
    )


def _floor(setting: Parameter, value: Any) -> Fraction | ByColumn:
    if not isinstance(value, Mapping):
        return _number(setting, value)
    return tuple(
        (
            str(column),
            _in_range(setting, Message.of("setting-of-column", setting=setting.name, column=column), least),
        )
        for column, least in value.items()
    )


def _columns(setting: Parameter, value: Any) -> tuple[str, ...]:
    names = tuple(str(name) for name in value) if isinstance(value, list | tuple) else (str(value),)
    if not names:
        raise OptionError("option-name-column", option=setting.name, found=value)
    for name in names:
        if names.count(name) > 1:
            raise OptionError("option-names-column-twice", option=setting.name, column=name)
    return names


def _combinations(setting: Parameter, value: Any) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, Mapping) or not value:
        raise OptionError("option-give-k-columns-such-age", option=setting.name, found=value)
    return tuple(
        (str(names), whole(Message.of("k-of-combination", names=names), size, int(setting.least or 0)))
        for names, size in value.items()
    )


def _importance(setting: Parameter, value: Any) -> ByColumn:
    if not isinstance(value, Mapping) or not value:
        raise OptionError("option-give-weight-column-such-sex", option=setting.name, found=value)
    found = tuple(
        (str(column), exact(weight, Message.of("importance-of-column", column=column)))
        for column, weight in value.items()
    )
    for column, weight in found:
        if weight <= 0:
            raise OptionError("importance-column-above-0", column=column, found=value[column])
    return found


def columns_of_combination(text: str) -> tuple[str, ...]:
    """The columns of a combination: comma-separated words, or a JSON list.

    >>> columns_of_combination("age, sex"), columns_of_combination('["a,b", "c"]')
    (('age', 'sex'), ('a,b', 'c'))
    """
    if text.lstrip().startswith("["):
        return tuple(str(name) for name in from_json("combinations", text))
    return tuple(names_in(text))


def names_in(text: str) -> list[str]:
    """Comma-separated words.

    >>> names_in("a, b,,c")
    ['a', 'b', 'c']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def _listed(name: str, text: str) -> list[str]:
    return names_in(text)


def _by_column(name: str, text: str) -> Any:
    if text.lstrip().startswith("{"):
        return from_json(name, text)
    if "=" not in text:
        return text
    pairs = [part.rpartition("=") for part in text.split(",")]
    return {column.strip(): weight for column, _, weight in pairs}


def _sizes_by_column(name: str, text: str) -> Any:
    found = _by_column(name, text)
    if not isinstance(found, dict):
        return found
    return {column: int(size) if str(size).strip().isdigit() else size for column, size in found.items()}


def _combined(name: str, text: str) -> Any:
    if text.lstrip().startswith("{"):
        return from_json(name, text)
    pairs = [part.rpartition("=") for part in text.split(";")]
    return {names.strip(): int(k) if k.strip().isdigit() else k for names, _, k in pairs}


def _grouped(name: str, text: str) -> Any:
    if text.lstrip().startswith("["):
        return from_json(name, text)
    return [names_in(part) for part in text.split(";")]


def from_json(name: str, text: str) -> Any:
    """A value typed as JSON, which can hold names that contain separators."""
    try:
        return json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError as error:
        raise OptionError("forms-starts-like-json-but-not", name=name, reason=error) from None


BUDGET = Form("a number", "E", _budget)
DELTA = Form("0, or a number below 1", "D", _delta)
WHOLE = Form("an integer", "N", _whole, typed=int)
NUMBER = Form("a number", "X", _number)
CHOICE = Form("a word", "WORD", _choice)
SWITCH = Form("True or False", "", _switch, typed=bool)
NAME = Form("a name", "NAME", _name)
NAMES = Form("names", "NAMES", _name, _listed)
SPLIT = Form(
    "a word, or weights per column",
    "WORD|a=2,b=1",
    _split,
    _by_column,
    besides=("or weights per column",),
    by_name=True,
)
SHARES = Form("a weight for each part", "a=2,b=1", _shares, _by_column, keyed=True, by_name=True)
FLOOR = Form("a number, or one per column", "X|a=2,b=1", _floor, _by_column, by_name=True)
SIZES = Form("an integer per column", "a=50,b=20", _sizes, _sizes_by_column, by_name=True)
COLUMNS = Form("names of columns", "a,b", _columns, _listed)
COMBINATIONS = Form("an integer per set of columns", "'a,b=10;c=5'", _combinations, _combined, by_name=True)
IMPORTANCE = Form("a number per column", "a=5,b=2", _importance, _by_column, by_name=True)
GROUPS = Form("lists of columns", "'a,b;c'", _groups, _grouped)
WEIGHTS = Form("a list of numbers", "X,X,...", _weights, _listed)
