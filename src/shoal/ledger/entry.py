"""Ledger entries: operations, receipts and refusals, and the hash chain that links entries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, Literal

from shoal.arguments import renamed_attributes
from shoal.columns import ROW
from shoal.errors import OptionError, ShoalError
from shoal.numbers import decimal_text

# Currencies of a budget: ε of pure differential privacy, or ρ of zero-concentrated differential privacy.
Currency = Literal["epsilon", "rho"]
SYMBOLS: Mapping[Currency, str] = {"epsilon": "ε", "rho": "ρ"}
# The joint price of several requests, given their contents.
Joint = Callable[[Sequence[str]], Fraction]
# Charges are multiples of these. Sums of arbitrary fractions would become too long to print or to compute with.
EPSILON_GRID, DELTA_GRID = 10**12, 10**18
Kind = Literal["terms", "charge", "release", "look", "answer"]
# The start of every data set's chain.
ORIGIN = "0" * 64
_FORMAT = "shoal-ledger-1"
_NOTHING = Fraction(0)


def rounded_up(amount: Fraction, grid: int = EPSILON_GRID) -> Fraction:
    """The smallest multiple of 1/grid that is not below the amount.

    >>> rounded_up(Fraction(2, 3)), rounded_up(Fraction(1, 4))
    (Fraction(666666666667, 1000000000000), Fraction(1, 4))
    """
    return Fraction(-(-amount.numerator * grid // amount.denominator), grid)


@renamed_attributes(neighbours="adjacency")
@dataclass(frozen=True, slots=True)
class Register:
    """Terms of a data set; the first ones start its chain, later ones may change ceilings only.

    Attributes:
        adjacency: the adjacency of all claims, "replace-one" or "add-remove".
        ceiling: maximum total, in the currency; None counts without a limit.
        delta_ceiling: maximum total δ; in the currency ρ, the δ of the one conversion to ε at the end.
        analysts: lower ceilings for some analysts.
        every_analyst: lower ceiling for each analyst without one of their own.
        fingerprint: fingerprint of the table, to recognise it again.
        unit: the unit of privacy, as in statements: "row", or "value of 'person' (at most 3 rows)". None leaves
            it open until the first charge that counts.
        currency: the currency, fixed permanently. ρ accepts pure charges too, at ε²/2; ε accepts no charge in ρ.
    """

    dataset: str
    adjacency: str
    ceiling: Fraction | None
    delta_ceiling: Fraction = Fraction(0)
    analysts: Mapping[str, Fraction] = field(default_factory=dict)
    every_analyst: Fraction | None = None
    fingerprint: str = ""
    unit: str | None = ROW
    currency: Currency = "epsilon"

    def __post_init__(self) -> None:
        if self.currency == "rho" and not 0 < self.delta_ceiling < 1:
            raise OptionError("budget-rho-needs-delta-above-0", dataset=self.dataset)


@dataclass(frozen=True, slots=True)
class Charge:
    """A request to spend; its cost is rounded up to the grid.

    Attributes:
        content: the request as canonical JSON; an idempotency key refers to exactly this text.
        epsilon: its separate cost.
        rho: its separate cost if it has no pure ε; `epsilon` is then 0.
        person: (key column, value) if it concerns one declared individual only.
        family: with `joint`, requests of the same family are priced together.
        joint: function from the contents of a family to its total; called by `Ledger.priced`, never under a lock.
        kind: "release" for a published table, "look" for displayed measurements of one, which cost nothing but
            taint choices based on them.
        room: maximum size in bytes of this analyst's entries; None for no limit.
        size: expected size of the answer in bytes.
        prices: results of `joint`, by contents.
    """

    dataset: str
    analyst: str
    content: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    key: str = ""
    person: tuple[str, str] | None = None
    family: str = ""
    joint: Joint | None = None
    kind: Literal["charge", "release", "look"] = "charge"
    room: int | None = None
    size: int = 0
    prices: Mapping[tuple[str, ...], Fraction] = field(default_factory=dict)
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", rounded_up(self.epsilon))
        if self.rho is not None:
            object.__setattr__(self, "rho", rounded_up(self.rho))
        object.__setattr__(self, "delta", rounded_up(self.delta, DELTA_GRID))


@dataclass(frozen=True, slots=True)
class Deposit:
    """The answer to a charge, stored before it is sent."""

    dataset: str
    charge: int
    analyst: str
    content: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of an accepted charge.

    Attributes:
        charge: number of the charge.
        added: the amount it added to the total of the data set.
        repeated: the charge existed already, under the same key.
        answer: the stored answer, if any.
        head: hash of its newest entry: that of the answer, or of the charge.
    """

    dataset: str
    charge: int
    added: Fraction
    repeated: bool
    answer: str | None
    head: str


Operation = Register | Charge | Deposit


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """An immutable ledger entry.

    Attributes:
        dataset: the chain it belongs to.
        number: its position in that chain, from 1.
        kind: terms of the data set, a charge for a question, a release, a look at measurements, or the answer
            to a charge.
        at: time of writing, in UTC.
        analyst: the analyst who asked; empty for the custodian.
        key: idempotency key of a charge, empty without one.
        refers: for an answer, the number of the charge it belongs to.
        epsilon: the separate cost of the charge, in the currency of the data set's terms.
        delta: its δ.
        added: the amount it adds to the total of the data set.
        added_analyst: the amount it adds to the total of its analyst.
        person: (key column, value) for a question about one declared individual.
        family: charges of one family are priced together.
        content: the request, the answer or the terms, as canonical JSON.
        previous: hash of the previous entry.
        hash: hash of all other fields.
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
        """The hash computed from the other fields; equal to `hash` unless the entry was altered."""
        return seal([getattr(self, name) for name in _SEALED])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, fractions as text, the content as parsed JSON."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("epsilon", "delta", "added", "added_analyst"):
            plain[name] = fraction_text(plain[name])
        return plain | {
            "person": list(self.person) if self.person else None,
            "content": json.loads(self.content),
        }


_SEALED = [field.name for field in fields(LedgerEntry) if field.name != "hash"]


def seal(values: list[Any]) -> str:
    """SHA-256 over the fields of an entry, in order.

    >>> seal(["a", 1]) == seal(["a", 1]), seal(["a", 1]) == seal(["a1"])
    (True, False)
    """
    return hashlib.sha256(_encode([_FORMAT, *values]).encode("ascii")).hexdigest()


def canonical(document: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, plain ASCII that every database can store.

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
    """The same amounts as decimal numbers, for readers; the fractions are authoritative.

    >>> decimals({"spent": "3/10", "remaining": None})
    {'spent': '0.3', 'remaining': None}
    """
    return {name: None if text is None else decimal_text(fraction_of(text)) for name, text in amounts.items()}


_encode = json.JSONEncoder(separators=(",", ":"), default=fraction_text).encode


def fraction_of(text: str) -> Fraction:
    """The fraction from the text of `fraction_text`."""
    if text == "0/1":  # most amounts in a ledger are zero
        return _NOTHING
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator), int(denominator))


class LedgerError(ShoalError):
    """The ledger cannot be used: a broken chain, an old backup, a file of a newer version."""

    kind = "ledger"


class OverdrawnError(ShoalError):
    """A charge was refused because it would exceed a ceiling. No privacy budget was used and no data was read.

    Attributes:
        of: owner of the ceiling, "the data set" or "the analyst".
        what: "epsilon" or "delta".
    """

    kind = "overdrawn"

    def __init__(self, of: str, what: str, requested: Fraction, remaining: Fraction) -> None:
        self.of, self.what, self.requested, self.remaining = of, what, requested, remaining
        amounts = {"requested": requested, "remaining": remaining, "missing": requested - remaining}
        super().__init__(
            "overdrawn", of=of, what=what, **{name: decimal_text(amount) for name, amount in amounts.items()}
        )


class QuotaError(ShoalError):
    """A charge was refused because its analyst has reached their storage quota. No privacy budget was used."""

    kind = "quota"

    def __init__(self, room: int) -> None:
        self.room = room
        super().__init__("quota", room=room)


class UnpricedError(ShoalError):
    """The members of a charge's family have changed since it was priced: price it again."""

    kind = "unpriced"

    def __init__(self) -> None:
        super().__init__("unpriced")


class KeyReusedError(ShoalError):
    """An idempotency key was reused for a different request."""

    kind = "key-reused"

    def __init__(self) -> None:
        super().__init__("key-reused")
