"""Accounts: balances and permissions of one data set, computed from its entries.

Totals are kept in memory only. They are computed from the entries, so that nothing in the database except the entries
themselves could be changed to allow more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Literal

from shoal.arguments import renamed_attributes
from shoal.columns import ROW
from shoal.errors import ClaimError, OptionError, ShoalError
from shoal.noise import epsilon_from, pure_rho
from shoal.numbers import decimal_text
from shoal.text import Message

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


# Number of requests priced together; further ones start a new family, so that pricing takes bounded time.
FAMILY_SIZE = 64
# size of an entry besides its content: hashes, names, amounts, its place in three indexes
_ENTRY_BYTES = 512


@renamed_attributes(neighbours="adjacency")
@dataclass(frozen=True, slots=True)
class Terms:
    """The custodian's terms for a data set; the unit is None while it is open, and in ledgers that did not store it."""

    adjacency: str
    ceiling: Fraction | None
    delta_ceiling: Fraction
    analysts: Mapping[str, Fraction]
    every_analyst: Fraction | None
    fingerprint: str
    unit: str | None = None
    currency: Currency = "epsilon"

    @classmethod
    def of(cls, wanted: Register) -> Terms:
        return cls(
            wanted.adjacency,
            wanted.ceiling,
            wanted.delta_ceiling,
            dict(wanted.analysts),
            wanted.every_analyst,
            wanted.fingerprint,
            wanted.unit,
            wanted.currency,
        )

    def analyst_ceiling(self, analyst: str) -> Fraction | None:
        return self.analysts.get(analyst, self.every_analyst if analyst else None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "neighbours": self.adjacency,
            "ceiling": _text(self.ceiling),
            "delta_ceiling": fraction_text(self.delta_ceiling),
            "analysts": {name: fraction_text(value) for name, value in self.analysts.items()},
            "every_analyst": _text(self.every_analyst),
            "fingerprint": self.fingerprint,
            "unit": self.unit,
            **({} if self.currency == "epsilon" else {"currency": self.currency}),
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Terms:
        return cls(
            raw["neighbours"],
            _fraction(raw["ceiling"]),
            fraction_of(raw["delta_ceiling"]),
            {name: fraction_of(value) for name, value in raw["analysts"].items()},
            _fraction(raw["every_analyst"]),
            raw["fingerprint"],
            raw.get("unit"),
            raw.get("currency", "epsilon"),
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """The spent and remaining budget of a data set at one moment.

    Attributes:
        number: number of its newest entry.
        head: hash of that entry; a copy of it shows later whether entries were lost.
        spent: in the currency of the terms.
        unanswered: charges without a stored answer: in progress, or interrupted by a crash.
    """

    dataset: str
    number: int
    head: str
    terms: Terms
    spent: Fraction
    delta_spent: Fraction
    analysts: Mapping[str, Fraction]
    unanswered: int

    def remaining(self, analyst: str = "") -> Fraction | None:
        """The remaining budget, in total or of one analyst; None without a limit."""
        own = self.terms.analyst_ceiling(analyst)
        left = [] if self.terms.ceiling is None else [self.terms.ceiling - self.spent]
        if own is not None:
            left.append(own - self.analysts.get(analyst, _NOTHING))
        return max(_NOTHING, min(left)) if left else None

    @property
    def words(self) -> str:
        """The spent, total and remaining budget as text."""
        ceiling, remaining = self.terms.ceiling, self.remaining()
        without = "standing-no-ceiling" if remaining is None else "standing-no-ceiling-left"
        found = Message.of(
            without if ceiling is None else "standing",
            symbol=SYMBOLS[self.terms.currency],
            spent=decimal_text(self.spent),
            ceiling=None if ceiling is None else decimal_text(ceiling),
            left=None if remaining is None else decimal_text(remaining),
        )
        return str(found)

    @property
    def epsilon(self) -> Fraction:
        """The ε of all charges together; for a budget in ρ, at the δ of its terms."""
        if self.terms.currency == "epsilon":
            return self.spent
        return epsilon_from(self.spent, self.terms.delta_ceiling)

    def to_dict(self) -> dict[str, Any]:
        amounts = {
            "spent": fraction_text(self.spent),
            "delta_spent": fraction_text(self.delta_spent),
            "remaining": _text(self.remaining()),
        }
        if self.terms.currency == "rho":
            amounts["epsilon"] = fraction_text(self.epsilon)
        return {
            "dataset": self.dataset,
            "entries": self.number,
            "head": self.head,
            "terms": self.terms.to_dict(),
            **amounts,
            "decimal": decimals(amounts),
            "analysts": {name: fraction_text(value) for name, value in self.analysts.items()},
            "unanswered": self.unanswered,
        }


@dataclass(slots=True)
class Balance:
    """The running total of a data set, or of one analyst within it, in the currency of its terms.

    Questions about declared individuals count, in each key column, as much as the individual with the highest
    total; members of a family count as much as their joint price; everything else adds up.
    """

    epsilon: Fraction = _NOTHING
    delta: Fraction = _NOTHING
    persons: dict[tuple[str, str], Fraction] = field(default_factory=dict)
    largest: dict[str, Fraction] = field(default_factory=dict)
    families: dict[str, tuple[list[str], Fraction]] = field(default_factory=dict)

    def adds(self, charge: Charge) -> Fraction:
        """The amount one more charge would add to the total.

        Guarantee:
            The total bounds the ε, or the ρ, of all answers together: sequential composition; over disjoint
            individuals the maximum (the thesis, Proposition 4); within a family the price of the joint query.

        Raises:
            UnpricedError: the members of its family have changed since it was priced.
        """
        if charge.person is None and charge.joint is not None:
            members, priced = self.family(charge.family)
            together = charge.prices.get((*members, charge.content))
            if together is None:
                raise UnpricedError
            # never more than its separate price, whatever the price of the family
            return min(charge.epsilon, max(_NOTHING, together - priced))
        return self.adds_alone(charge.epsilon, charge.person)

    def adds_alone(self, epsilon: Fraction, person: tuple[str, str] | None) -> Fraction:
        """The exact increase by an amount outside any family: entries may be older than the grid."""
        if person is None:
            return epsilon
        spent = self.persons.get(person, _NOTHING) + epsilon
        return max(_NOTHING, spent - self.largest.get(person[0], _NOTHING))

    def book(self, charge: LedgerEntry, added: Fraction) -> None:
        """Add a charge to the total."""
        self.epsilon += added
        if charge.delta:
            self.delta += charge.delta
        if charge.person is not None:
            spent = self.persons.get(charge.person, _NOTHING) + charge.epsilon
            self.persons[charge.person] = spent
            column = charge.person[0]
            self.largest[column] = max(self.largest.get(column, _NOTHING), spent)
        if charge.family:
            members, priced = self.family(charge.family)
            self.families[charge.family] = ([*members, charge.content], priced + added)

    def family(self, name: str) -> tuple[list[str], Fraction]:
        """The members to price the next one with, and their joint cost."""
        members, priced = self.families.get(name, ([], _NOTHING))
        return (members, priced) if len(members) < FAMILY_SIZE else ([], _NOTHING)


@dataclass(slots=True)
class Account:
    """The state of one data set after the entries read so far.

    Attributes:
        number: number of the newest entry.
        head: its hash.
        unanswered: charges whose answer is not stored (yet), with the hash of their entries.
        stored: size in bytes of the entries of each analyst.
    """

    dataset: str
    number: int = 0
    head: str = ORIGIN
    terms: Terms | None = None
    total: Balance = field(default_factory=Balance)
    analysts: dict[str, Balance] = field(default_factory=dict)
    unanswered: dict[int, str] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)

    def in_currency(self, charge: Charge) -> Charge:
        """The charge with its amounts in the currency of this budget.

        Guarantee:
            ε-DP implies ε²/2-zCDP. A charge in ρ has no pure ε, and a charge with its own δ has no ρ.

        Raises:
            ClaimError: the charge cannot be expressed in this currency.
        """
        if self._terms().currency == "epsilon":
            if charge.rho is not None:
                raise ClaimError("budget-data-set-charge-no-pure", dataset=self.dataset)
            return charge
        if charge.rho is not None:
            return replace(charge, epsilon=charge.rho, rho=None)
        if charge.delta:
            raise ClaimError("budget-data-set-charge-own-no", dataset=self.dataset)
        prices = {contents: rounded_up(pure_rho(price)) for contents, price in charge.prices.items()}
        return replace(charge, epsilon=pure_rho(charge.epsilon), prices=prices)

    def permit(self, charge: Charge) -> tuple[Fraction, Fraction]:
        """What a charge adds to the totals of the data set and of its analyst; refused if that exceeds a ceiling.

        Args:
            charge: in the form `in_currency` returns.

        Raises:
            OverdrawnError: a ceiling would be exceeded; no privacy budget was used.
        """
        own = self.analysts.get(charge.analyst, Balance())
        added, added_analyst = self.total.adds(charge), own.adds(charge)
        self._allow(charge, added, added_analyst)
        return added, added_analyst

    def permit_own(self, charge: Charge) -> Fraction:
        """What a charge adds to its analyst's total, refused if that alone exceeds a ceiling.

        Raises:
            OverdrawnError: a ceiling would be exceeded; no privacy budget was used.
        """
        own, terms = self.analysts.get(charge.analyst, Balance()), self._terms()
        added = own.adds(charge)
        _within("the analyst", terms.currency, added, own.epsilon, terms.analyst_ceiling(charge.analyst))
        _within("the data set", terms.currency, added, own.epsilon, terms.ceiling)
        _within("the data set", "delta", charge.delta, own.delta, terms.delta_ceiling)
        return added

    def follow(self, entry: LedgerEntry) -> None:
        """Verify the next entry and add it.

        Raises:
            LedgerError: it does not continue the chain, or spends more than allowed.
        """
        if entry.number != self.number + 1 or entry.previous != self.head or entry.sealed() != entry.hash:
            raise LedgerError("the-ledger-is-broken", number=entry.number, dataset=entry.dataset)
        if entry.kind == "terms":
            self._check_terms(entry)
        elif entry.kind == "answer":
            if entry.refers not in self.unanswered:
                raise self._wrong(entry, "entry-answers-no-charge")
        else:
            self._check_charge(entry)
        self.take(entry)

    def take(self, entry: LedgerEntry) -> None:
        """Add an entry that was verified, or created from this account."""
        if entry.kind == "terms":
            self.terms = Terms.from_dict(json.loads(entry.content))
        elif entry.kind == "answer":
            del self.unanswered[entry.refers or 0]
        else:
            self.total.book(entry, entry.added)
            self.analysts.setdefault(entry.analyst, Balance()).book(entry, entry.added_analyst)
            if entry.kind == "charge":
                self.unanswered[entry.number] = entry.hash
        self.number, self.head = entry.number, entry.hash
        self.stored[entry.analyst] = self.stored.get(entry.analyst, 0) + len(entry.content) + _ENTRY_BYTES

    def standing(self) -> Standing:
        """A copy that does not change."""
        return Standing(
            self.dataset,
            self.number,
            self.head,
            self._terms(),
            self.total.epsilon,
            self.total.delta,
            {name: balance.epsilon for name, balance in self.analysts.items()},
            len(self.unanswered),
        )

    def _check_terms(self, entry: LedgerEntry) -> None:
        terms = Terms.from_dict(json.loads(entry.content))
        if self.terms is not None and self.terms.adjacency != terms.adjacency:
            raise self._wrong(entry, "entry-changes-neighbours")
        if self.terms is not None and self.terms.unit not in (None, terms.unit):
            raise self._wrong(entry, "entry-changes-unit")
        if self.terms is not None and self.terms.currency != terms.currency:
            raise self._wrong(entry, "entry-changes-currency")

    def _check_charge(self, entry: LedgerEntry) -> None:
        if min(entry.epsilon, entry.delta, entry.added, entry.added_analyst) < 0:
            raise self._wrong(entry, "entry-gives-back")
        if entry.family:
            # the price of a family needs the meaning of its questions; other prices follow from the entries alone
            if max(entry.added, entry.added_analyst) > entry.epsilon:
                raise self._wrong(entry, "entry-adds-more")
        else:
            own = self.analysts.get(entry.analyst, Balance())
            adds = [balance.adds_alone(entry.epsilon, entry.person) for balance in (self.total, own)]
            if adds != [entry.added, entry.added_analyst]:
                raise self._wrong(entry, "entry-adds-other")
        try:
            self._allow(entry, entry.added, entry.added_analyst)
        except OverdrawnError:
            raise self._wrong(entry, "entry-exceeds-ceiling") from None

    def _allow(self, charge: Charge | LedgerEntry, added: Fraction, added_analyst: Fraction) -> None:
        terms, own = self._terms(), self.analysts.get(charge.analyst, Balance())
        what = terms.currency
        _within("the analyst", what, added_analyst, own.epsilon, terms.analyst_ceiling(charge.analyst))
        _within("the data set", what, added, self.total.epsilon, terms.ceiling)
        _within("the data set", "delta", charge.delta, self.total.delta, terms.delta_ceiling)

    def _terms(self) -> Terms:
        if self.terms is None:
            raise LedgerError("data-set-not-registered-ledger", dataset=self.dataset)
        return self.terms

    def _wrong(self, entry: LedgerEntry, code: str) -> LedgerError:
        what = Message(code)
        return LedgerError("the-ledger-is-wrong", number=entry.number, dataset=entry.dataset, what=what)


def _within(of: str, what: str, added: Fraction, spent: Fraction, ceiling: Fraction | None) -> None:
    if added and ceiling is not None and spent + added > ceiling:
        raise OverdrawnError(of, what, added, max(_NOTHING, ceiling - spent))


def _text(value: Fraction | None) -> str | None:
    return None if value is None else fraction_text(value)


def _fraction(text: str | None) -> Fraction | None:
    return None if text is None else fraction_of(text)
