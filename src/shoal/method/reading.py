"""A statement read back: plain values come in, the fields of a statement leave, or one line that says what is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from shoal.decimals import exact
from shoal.errors import InputError
from shoal.method.models import MODELS

# denominators that a written number is tried with, the simplest first
_DENOMINATORS = (10**3, 10**6, 10**9)


def statement_fields(plain: object, where: str) -> dict[str, Any]:
    """The fields of a `PrivacyStatement`, each checked.

    Raises:
        InputError: something is missing, unknown or not of its kind.
    """
    if not isinstance(plain, Mapping):
        raise InputError(f"{where} is not the statement of a release: it is no mapping.")
    for key in (*_FIELDS, *_DERIVED):
        if key not in plain:
            raise InputError(f"{where} is not the statement of a release: it has no '{key}'.")
    for key in plain:
        if key not in _FIELDS and key not in _DERIVED and key not in _IN_RHO and key not in _WHERE_SET:
            raise InputError(
                f"{where} has the key '{key}', which this version of Shoal does not know: update Shoal."
            )
    if plain["model"] not in MODELS:
        raise InputError(
            f"{where} names the model '{plain['model']}', which this version of Shoal does not know: update Shoal."
        )
    if len(_IN_RHO.keys() & plain.keys()) == 1:
        raise InputError(f"{where} is damaged: delta and rho belong together.")
    found: dict[str, Any] = {}
    for key, reader in (
        *_FIELDS.items(),
        *(item for item in (*_IN_RHO.items(), *_WHERE_SET.items()) if item[0] in plain),
    ):
        try:
            found[key] = reader(plain[key])
        except (TypeError, ValueError):
            raise InputError(f"{where} is damaged: '{key}' cannot be {_shown(plain[key])}.") from None
    return found


def fraction(value: Any) -> Fraction:
    """The simplest fraction that is written as this number, or else the decimal number itself.

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
    # budgets that were converted are decimal numbers of twelve digits
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


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


_FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "model": _text,
    "target": _text,
    "epsilon": _perhaps(fraction),
    "epsilon_per_attribute": _by_name(_perhaps(fraction)),
    "spending": _by_name(_perhaps(fraction)),
    "neighbours": _perhaps(_text),
    "unit": _text,
    "conditions": _texts,
    "data_dependent": _texts,
    "not_promised": _texts,
    "not_publishable_because": _texts,
    "method": _text,
    "settings": _by_name(lambda value: value),
    "attributes": _by_name(_by_name(_text)),
    "versions": _by_name(_text),
}
# only where the claim has a δ
_IN_RHO: Mapping[str, Callable[[Any], Any]] = {"delta": fraction, "rho": fraction}
# only where they are not as usual
_WHERE_SET: Mapping[str, Callable[[Any], Any]] = {
    **{
        "most_epsilon": fraction,
        "override": _text,
        "steps": _texts,
        "counted": _counted,
        "public_rows": _whole,
    }
}
# what a statement says in other words, too
_DERIVED = ("sentence", "publishable", "verdict")
