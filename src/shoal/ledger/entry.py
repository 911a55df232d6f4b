"""One line of the ledger: its fields come in, its place in a chain of hashes leaves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal

from shoal.decimals import decimal_text

Kind = Literal["terms", "charge", "release", "look", "answer"]
# Where the chain of every data set begins.
ORIGIN = "0" * 64
_FORMAT = "shoal-ledger-1"
_NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line that is written once.

    Attributes:
        dataset: the chain it belongs to.
        number: its place in that chain, from 1.
        kind: terms of the data set, a charge for a question, a release, a look at measurements, or
            the answer to a charge.
        at: when it was written, in UTC.
        analyst: who asked; empty for the holder.
        key: idempotency key of a charge, empty if there is none.
        refers: for an answer, the number of the charge it belongs to.
        epsilon: what the charge costs by itself, in the currency of the data set's terms.
        delta: its δ.
        added: what it adds to the total of the data set.
        added_analyst: what it adds to the total of its analyst.
        person: (key column, value) for a question about one declared individual.
        family: charges of one family are priced together.
        content: the request, the answer or the terms, as canonical JSON.
        previous: hash of the entry before.
        hash: hash of all of the above.
    """

    dataset: str
    number: int
    kind: Kind
    at: str
    analyst: str
    key: str
    refers: int | None
    epsilon: Fraction
    delta: Fraction
    added: Fraction
    added_analyst: Fraction
    person: tuple[str, str] | None
    family: str
    content: str
    previous: str
    hash: str

    def sealed(self) -> str:
        """The hash that the other fields have; equal to `hash` unless the entry was altered."""
        return seal([getattr(self, name) for name in _SEALED])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, fractions as text, the content as the JSON it is."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("epsilon", "delta", "added", "added_analyst"):
            plain[name] = fraction_text(plain[name])
        return plain | {
            "person": list(self.person) if self.person else None,
            "content": json.loads(self.content),
        }


_SEALED = [field.name for field in fields(Entry) if field.name != "hash"]


def seal(values: list[Any]) -> str:
    """SHA-256 over the fields of an entry, in their order.

    >>> seal(["a", 1]) == seal(["a", 1]), seal(["a", 1]) == seal(["a1"])
    (True, False)
    """
    return hashlib.sha256(_encode([_FORMAT, *values]).encode("ascii")).hexdigest()


def canonical(document: Any) -> str:
    """JSON with one spelling: sorted keys, no spaces, plain ASCII that every database can hold.

    >>> canonical({"b": 1, "a": [None]})
    '{"a":[null],"b":1}'
    """
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def fraction_text(value: Fraction) -> str:
    """An exact fraction as numerator/denominator.

    >>> fraction_text(Fraction(3, 10)), fraction_text(Fraction(2))
    ('3/10', '2/1')
    """
    return f"{value.numerator}/{value.denominator}"


def decimals(amounts: Mapping[str, str | None]) -> dict[str, str | None]:
    """The same amounts as decimal numbers, for readers; the fractions are what counts.

    >>> decimals({"spent": "3/10", "remaining": None})
    {'spent': '0.3', 'remaining': None}
    """
    return {name: None if text is None else decimal_text(fraction_of(text)) for name, text in amounts.items()}


_encode = json.JSONEncoder(separators=(",", ":"), default=fraction_text).encode


def fraction_of(text: str) -> Fraction:
    """The fraction that `fraction_text` wrote."""
    if text == "0/1":  # most amounts in a ledger
        return _NOTHING
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator), int(denominator))
