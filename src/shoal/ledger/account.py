"""Accounts: balances and permissions of one data set, computed from its entries.

Totals are kept in memory only. They are computed from the entries, so that nothing in the database except the entries
themselves could be changed to allow more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from shoal.arguments import renamed_attributes
from shoal.errors import ClaimError
from shoal.ledger.entry import (
    ORIGIN,
    SYMBOLS,
    Charge,
    Currency,
    LedgerEntry,
    LedgerError,
    OverdrawnError,
    Register,
    UnpricedError,
    decimals,
    fraction_of,
    fraction_text,
    rounded_up,
)
from shoal.noise import epsilon_from, pure_rho
from shoal.numbers import decimal_text
from shoal.text import Message

# Number of requests priced together; further ones start a new family, so that pricing takes bounded time.
FAMILY_SIZE = 64
# size of an entry besides its content: hashes, names, amounts, its place in three indexes
_ENTRY_BYTES = 512
_NOTHING = Fraction(0)


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
