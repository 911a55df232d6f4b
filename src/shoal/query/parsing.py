"""Parse a query and offer its price and error before any record is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal.decimals import What, exact
from shoal.errors import OptionError, closest
from shoal.noise import Source, parse_epsilon
from shoal.noise.scale import LARGEST_NUMERATOR, shown
from shoal.privacy import Accountant, Adjacency
from shoal.query.facts import Facts, QueryTable
from shoal.text import Message

_LARGEST = 50_000
_LONGEST_TEXT = 200
_DEEPEST = 12
# exact numbers are multiplied with each other: long ones would grow without end
_MOST_DIGITS = 30

EDGE = Message.of("part-edge")
Run = Callable[[QueryTable, Accountant], Any]


def plain(raw: object) -> Any:
    """A copy in which every number is its decimal text; anything that is not plain data is refused.

    >>> plain({"epsilon": 0.5, "edges": [0, 1.5]})
    {'epsilon': '0.5', 'edges': ['0', '1.5']}
    """
    return _plain(raw, [_LARGEST], _DEEPEST)


def _plain(raw: object, left: list[int], depth: int) -> Any:
    left[0] -= 1
    if left[0] < 0 or depth == 0:
        raise OptionError("query-may-have-values-most-levels", largest=_LARGEST, deepest=_DEEPEST)
    if isinstance(raw, Mapping):
        if not all(isinstance(key, str) for key in raw):
            raise OptionError("keys-query-text")
        return {_text(key): _plain(value, left, depth - 1) for key, value in raw.items()}
    if isinstance(raw, list | tuple):
        return [_plain(value, left, depth - 1) for value in raw]
    if isinstance(raw, bool) or not isinstance(raw, str | int | float | Fraction):
        raise OptionError("query-made-numbers-text-lists-objects", found=shown(repr(raw)))
    if isinstance(raw, int) and abs(raw) >= 10**_LONGEST_TEXT:
        raise OptionError("number-query-more-than-digits", longest_text=_LONGEST_TEXT)
    return _text(str(raw))


def _text(text: str) -> str:
    if len(text) > _LONGEST_TEXT:
        raise OptionError("text-query-more-than-characters", longest_text=_LONGEST_TEXT)
    return text


def check_keys(
    what: What, found: Mapping[str, Any], required: Sequence[str], optional: Sequence[str] = ()
) -> None:
    """Exactly the keys that belong there, or an error that names the first one that does not."""
    known = [*required, *optional]
    for key in found:
        if key not in known:
            raise OptionError("has-no-option", what=what, key=key, hint=closest(key, known))
    for key in required:
        if key not in found:
            raise OptionError("option-needs-option", what=what, key=key)


def as_mapping(what: What, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise OptionError("option-object-options", what=what)
    return value


def as_list(what: What, value: Any, most: int) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise OptionError("option-list-1-entries", what=what, most=most)
    return value


def as_text(what: What, value: Any) -> str:
    if not isinstance(value, str):
        raise OptionError("option-number-text", what=what)
    return value


def as_number(what: What, value: Any) -> Fraction:
    number = exact(as_text(what, value), what)
    if abs(number) >= 10**_MOST_DIGITS or number.denominator > 10**_MOST_DIGITS:
        raise OptionError(
            "may-have-digits-before-after-point", what=what, most_digits=_MOST_DIGITS, found=shown(value)
        )
    return number


def as_whole(what: What, value: Any) -> int:
    number = as_number(what, value)
    if number.denominator != 1:
        raise OptionError("parsing-option-whole-number", what=what, found=shown(value))
    return int(number)


def as_epsilon(value: Any) -> Fraction:
    return parse_epsilon(as_text("epsilon", value))


def as_scale(value: Any) -> Fraction:
    scale = as_number("scale", value)
    if not 0 < scale <= LARGEST_NUMERATOR:
        raise OptionError("scale-above-0-most-2-52", option="scale", found=shown(value))
    return scale


def as_delta(value: Any) -> Fraction:
    delta = as_number("delta", value)
    if not 0 <= delta < 1:
        raise OptionError("delta-least-0-below-1", option="delta", found=shown(value))
    return delta


@dataclass(frozen=True, slots=True)
class Offer:
    """What would be answered and what it costs; everything but `run` is public.

    Attributes:
        epsilon: what the answer costs one row, under the relation of the data set.
        reserved: what of it is for which measurement; nothing where the answer is public.
        delta: the chance that this fails, under the same relation.
        sensitivity: in the unit of the answer; None where the mechanism does not use one.
        error: what is known of the error beforehand.
        run: draws the answer, and spends what is reserved.
        person: for a query about one person, the column and the value that name the person.
    """

    epsilon: Fraction
    reserved: Mapping[str, Fraction]
    sensitivity: Fraction | None
    noise: Message
    error: Mapping[str, Any]
    run: Run
    conditions: tuple[Message, ...] = ()
    delta: Fraction = Fraction(0)
    person: tuple[str, str] | None = None

    def account(self, facts: Facts, source: Source) -> Accountant:
        """The account of one answer, with nothing spent.

        Raises:
            OverspendError: more is reserved than the answer costs.
        """
        return Accountant.of(self.reserved, self.epsilon, source, adjacency=Adjacency(facts.neighbours))
