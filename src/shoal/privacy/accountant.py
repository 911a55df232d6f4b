"""The privacy accountant: budgets reserved by a plan, charged at every draw of noise, and the noisy numbers drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from shoal.display import DisplaySummary, displayed, internal
from shoal.errors import InputError, OptionError, closest
from shoal.noise import Source
from shoal.numbers import Integers, exact
from shoal.text import Message


class Adjacency(StrEnum):
    """The adjacency of a claim; the values appear in parameters, recipes and ledgers."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    @classmethod
    def named(cls, value: str) -> Adjacency:
        """The adjacency with this name.

        Raises:
            OptionError: there is no such adjacency.
        """
        known = tuple(str(one) for one in cls)
        if value not in known:
            raise OptionError(
                "unknown-option",
                option="neighbours",
                found=value,
                allowed=known,
                hint=closest(str(value), known),
            )
        return cls(value)

    @property
    def words(self) -> str:
        return str(Message(f"adjacency-{self}"))

    @property
    def hides_size(self) -> bool:
        """Whether the number of records is private."""
        return self is Adjacency.ADD_REMOVE

    @property
    def factor(self) -> int:
        """2 under replace-one, since replacing a record is removing one and adding one; otherwise 1."""
        return 1 if self.hides_size else 2


_NOTHING = Fraction(0)


class Currency(StrEnum):
    """The privacy measure in which amounts are counted."""

    EPSILON = "epsilon"  # pure differential privacy
    RHO = "rho"  # zero-concentrated differential privacy


def unit_price(amount: Fraction, rows: int, currency: Currency = Currency.EPSILON) -> Fraction:
    """The cost to a unit with at most so many rows of what costs one row `amount`.

    Guarantee:
        Tables that differ in all rows of one unit are joined by a chain of at most `rows` adjacent tables. Along it, ε
        grows with the number of rows and ρ with its square. Proof: docs/proofs/units.md#1-several-rows-of-a-unit.

    >>> unit_price(Fraction(1, 6), 3), unit_price(Fraction(1, 9), 3, Currency.RHO)
    (Fraction(1, 2), Fraction(1, 1))
    """
    return amount * (rows if currency is Currency.EPSILON else rows**2)


def row_budget(amount: Fraction, rows: int, currency: Currency = Currency.EPSILON) -> Fraction:
    """The budget of a row such that a unit with at most so many rows is guaranteed `amount`.

    >>> row_budget(Fraction(1, 2), 3), row_budget(Fraction(1), 3, Currency.RHO)
    (Fraction(1, 6), Fraction(1, 9))
    """
    return amount / unit_price(Fraction(1), rows, currency)


class OverspendError(RuntimeError):
    """A method tried to spend more than it reserved, or to draw twice for one charge: always a bug in the method."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: probably a bug, please report.")


@dataclass(frozen=True, slots=True)
class AccountEntry:
    """One entry of an account.

    Attributes:
        purpose: the reservation it is charged to.
        what: the measurement.
        amount: the amount its noise is calibrated to.
        over: the parts that each get such noise, if there are several; a record is in one of them, or in `touched`.
        touched: number of these parts one record can change, or the cost of such a change as a multiple of the amount.
    """

    purpose: str
    what: str
    amount: Fraction
    over: str = ""
    touched: int = 1

    @property
    def cost(self) -> Fraction:
        return self.amount * self.touched


class Spend:
    """The right to draw the noise of one measurement, once.

    >>> from shoal.noise import source
    >>> account = Accountant.of({"counts": Fraction(1)}, Fraction(1), source(1))
    >>> spend = account.spend("counts", Fraction(1))
    >>> amount, bits = spend.take()
    >>> amount
    Fraction(1, 1)
    >>> spend.take()
    Traceback (most recent call last):
    ...
    shoal.privacy.accountant.OverspendError: 'counts' was paid for once and drawn twice: probably a bug, please report.
    """

    __slots__ = ("_measured", "_source", "_taken", "charge")

    def __init__(
        self, charge: AccountEntry, source: Source, measured: list[Measurement] | None = None
    ) -> None:
        self.charge = charge
        self._source, self._taken = source, False
        self._measured = [] if measured is None else measured

    @property
    def amount(self) -> Fraction:
        """The amount the noise is calibrated to."""
        return self.charge.amount

    def take(self) -> tuple[Fraction, Source]:
        """The amount the noise is calibrated to, and the source of its bits.

        Raises:
            OverspendError: already taken.
        """
        if self._taken:
            raise OverspendError(f"'{self.charge.what}' was paid for once and drawn twice")
        self._taken = True
        return self.amount, self._source

    def record(self, found: Measurement) -> None:
        """Keep the noisy result, which may be published: after the draw only.

        Raises:
            OverspendError: nothing was drawn yet, so it cannot be a result.
        """
        if not self._taken:
            raise OverspendError(f"'{self.charge.what}' has a result before its noise is drawn")
        self._measured.append(found)


@internal()
@dataclass(slots=True, eq=False)
class Accountant:
    """The budget of one release, answer or choice, and its charges.

    Attributes:
        reserved: amount by purpose, fixed from public facts; only `divide` changes it.
        source: source of random bits; used only through `Spend.take` and `free`.
        currency: the privacy measure of the amounts.
        adjacency: the adjacency the amounts refer to.
        unit: the unit in which neighbouring tables differ: a row, unless a unit of privacy was declared.
        charges: the charges, in order.
        uses: uses of randomness without a charge, in order.
        measured: the noisy results, in order, as far as they are sums of records or cut points.
    """

    reserved: dict[str, Fraction]
    source: Source
    currency: Currency = Currency.EPSILON
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    unit: str = "row"
    charges: list[AccountEntry] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)
    measured: list[Measurement] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        reserved: Mapping[str, Fraction],
        total: Fraction | None,
        source: Source,
        *,
        currency: Currency = Currency.EPSILON,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        unit: str = "row",
    ) -> Accountant:
        """An account without charges.

        Args:
            reserved: amount by purpose.
            total: upper limit of their sum; None for a method without a budget.

        Raises:
            OverspendError: the amounts add up to more.
        """
        booked = sum(reserved.values(), _NOTHING)
        if booked > (total or 0):
            raise OverspendError(f"the plan reserves {booked} of {total} {currency}")
        return cls(dict(reserved), source, currency, adjacency, unit)

    def spend(
        self,
        purpose: str,
        amount: Fraction,
        what: str | None = None,
        *,
        over: str = "",
        touched: int = 1,
    ) -> Spend:
        """Charge a measurement to a purpose, before its noise is drawn.

        Args:
            amount: the amount the noise is calibrated to.
            what: the measurement; by default the purpose itself.
            over: the parts (clusters, cells) that each get noise of this amount, if there are several.
            touched: number of these parts one record can change; the charge is this multiple of the amount.

        Raises:
            OverspendError: nothing is reserved for the purpose, or less than the charge.
        """
        charge = AccountEntry(purpose, what or purpose, amount, over, touched)
        self._charge(charge)
        return Spend(charge, self.source, self.measured)

    def _charge(self, charge: AccountEntry) -> None:
        if charge.amount <= 0 or charge.touched < 1:
            raise OverspendError(f"'{charge.what}' costs {charge.cost}")
        left = self.left(charge.purpose)
        if charge.cost > left:
            raise OverspendError(
                f"'{charge.what}' costs {charge.cost} {self.currency}, and {left} is left of '{charge.purpose}'"
            )
        self.charges.append(charge)

    def divide(self, purpose: str, parts: Mapping[str, Fraction]) -> None:
        """Split a reservation, based on earlier measurements (adaptive composition).

        Raises:
            OverspendError: part of it is spent already, or the parts add up to more.
        """
        whole = self.left(purpose)
        if (
            whole != self.reserved[purpose]
            or sum(parts.values(), _NOTHING) > whole
            or parts.keys() & (self.reserved.keys() - {purpose})
        ):
            raise OverspendError(f"'{purpose}' cannot be divided into {dict(parts)}")
        del self.reserved[purpose]
        self.reserved |= parts

    def parallel(
        self,
        over: str,
        purposes: Mapping[str, Fraction] | None = None,
        inside: Adjacency | None = None,
    ) -> Parallel:
        """Charge once for parts of the table that share no record (parallel composition).

        Args:
            over: the parts: batches of records, strata, groups.
            purposes: the budget of each part, by purpose; by default everything that is left.
            inside: the adjacency of the parts, if it differs. Parts under add-remove in a table under replace-one have
                private sizes, and cost `moved(self.currency)` times their budget.
        """
        amounts = self.unspent() if purposes is None else dict(purposes)
        own = self.adjacency if inside is None else inside
        if self.adjacency.hides_size and not own.hides_size:
            raise OverspendError(f"{over} of a table of private size have private sizes, too")
        factor = 1 if own is self.adjacency else moved(self.currency)
        for purpose, amount in amounts.items():
            self._charge(AccountEntry(purpose, purpose, amount, over, factor))
        return Parallel(over, amounts, self.currency, own, self.unit, self.source)

    def of_records(self, purpose: str, records: int) -> Accountant:
        """Charge what is left of a purpose to a table made from units; return the account of one of its records.

        Args:
            records: the number of records by which that table changes with a unit, at most.
        """
        amount = row_budget(self.left(purpose), records, self.currency)
        factor = int(unit_price(Fraction(1), records, self.currency))
        self._charge(AccountEntry(purpose, purpose, amount, "records of a unit", factor))
        return Accountant({purpose: amount}, self.source, self.currency, self.adjacency, "record")

    def free(self, why: str) -> Source:
        """Randomness without a charge: for post-processing, or for draws that do not involve any record."""
        self.uses.append(why)
        return self.source

    def left(self, purpose: str) -> Fraction:
        """The remaining budget of a purpose.

        Raises:
            OverspendError: nothing was reserved for it.
        """
        if purpose not in self.reserved:
            raise OverspendError(f"nothing is reserved for '{purpose}', only for {list(self.reserved)}")
        return self.reserved[purpose] - self.spent(purpose)

    def spent(self, purpose: str | None = None) -> Fraction:
        """The amount spent on a purpose, or on all of them."""
        return sum((one.cost for one in self.charges if purpose in (None, one.purpose)), _NOTHING)

    def unspent(self) -> dict[str, Fraction]:
        """The remaining budget by purpose; empty once everything reserved is spent."""
        found = {purpose: self.left(purpose) for purpose in self.reserved}
        return {purpose: amount for purpose, amount in found.items() if amount}


def moved(currency: Currency) -> int:
    """The cost of replacing a record, in parts that each cost 1 when a record is added or removed.

    Replaced inside its part, it is one removed and one added: group privacy of two, which costs 2 in ε and 4 in ρ.
    Moved to another part, it costs both parts 1 each: 2. The larger of both counts.
    """
    return 2 if currency is Currency.EPSILON else 4


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Parallel:
    """The budget of each of several parts of a table that share no record; charged once for all parts.

    Parallel composition: a record is in one part, so all parts together cost it what its own part spends. Under
    replace-one the parts must not change when a record is replaced, unless their sizes are private: its part is
    determined by its position in the table, by a value that is declared to stay the same, or by its cluster where
    clusters are taken as fixed.

    It can be sent to a task of an engine, without the source of the release (`elsewhere`).
    """

    over: str
    reserved: Mapping[str, Fraction]
    currency: Currency
    adjacency: Adjacency
    unit: str
    source: Source | None = None

    def elsewhere(self) -> Parallel:
        """The same for another process, where each part provides its own source."""
        return Parallel(self.over, dict(self.reserved), self.currency, self.adjacency, self.unit)

    def part(self, source: Source | None = None) -> Accountant:
        """The account of one part."""
        own = source or self.source
        if own is None:
            raise OverspendError(f"a part of {self.over} that is worked on elsewhere has no source")
        return Accountant(dict(self.reserved), own, self.currency, self.adjacency, self.unit)


# Irrational weights are rounded down to this precision, so the shares never add up to more than ε.
_PARTS = 2**40
SPLITS = ("equal", "proportional", "optimal")
Split = str | Mapping[str, object]


@internal()
@dataclass(frozen=True, slots=True)
class Plan:
    """How ε will be spent, fixed before any record is read.

    Attributes:
        spending: ε by purpose, in words; adds up to at most the method's budget.
        shares: ε of each attribute's values.
        per_attribute: the cost of a change in one attribute alone, where it differs from its share; empty if
            neighbours never differ in one attribute alone.
        conditions: statement messages about how the plan was made.
        flags: ε for whether a value is missing, for columns where that is drawn separately.
    """

    spending: Mapping[str, Fraction]
    shares: Mapping[str, Fraction]
    conditions: tuple[Message, ...] = ()
    per_attribute: Mapping[str, Fraction] | None = None
    flags: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def stated(self) -> Mapping[str, Fraction]:
        """The cost of a change in one attribute alone, as printed in the statement."""
        return self.shares if self.per_attribute is None else self.per_attribute


def split_budget(
    epsilon: Fraction, names: Sequence[str], widths: Sequence[Fraction | None], split: Split
) -> tuple[Fraction, ...]:
    """Split ε among attributes. The shares are exact and never add up to more than ε.

    `equal` gives every attribute the same. `proportional` gives ε_j ∝ W_j, equivalent to a joint L1 query in the
    attributes' own units. `optimal` gives ε_j ∝ W_j^(2/3), which minimises Σ W_j²/ε_j², the noise variance before
    clipping. A mapping gives explicit weights. Attributes without a width (None: nominal ones) get an equal share, and
    the others split the rest.

    Reference:
        MDAI-2017, IR_MDAV+DP_1 (equal) and IR_MDAV+DP_2 (proportional).

    >>> split_budget(Fraction(1), ["a", "b"], [Fraction(1), Fraction(3)], "proportional")
    (Fraction(1, 4), Fraction(3, 4))
    """
    weights = _weights(names, widths, split)
    total = sum(weights)
    return tuple(epsilon * weight / total for weight in weights)


def _weights(names: Sequence[str], widths: Sequence[Fraction | None], split: Split) -> list[Fraction]:
    if isinstance(split, str):
        known = [width for width in widths if width is not None]
        if split == "equal" or not known:
            return [Fraction(1)] * len(names)
        if len(known) < len(widths):
            among = iter(_weights(["?"] * len(known), known, split))
            parts = [None if width is None else next(among) for width in widths]
            mean = sum((part for part in parts if part is not None), Fraction(0)) / len(known)
            return [mean if part is None else part for part in parts]
        if split == "proportional":
            return known
        if split == "optimal":
            roots = [float(width / max(known)) ** (2 / 3) for width in known]
            return [Fraction(max(1, math.floor(root * _PARTS)), _PARTS) for root in roots]
        raise OptionError(
            "unknown-split",
            option="split",
            split=split,
            allowed=tuple(SPLITS),
            hint=closest(split, SPLITS),
        )
    for name in split:
        if name not in names:
            raise OptionError(
                "split-names-column-not-protected", column=name, option="split", hint=closest(name, names)
            )
    missing = [name for name in names if name not in split]
    if missing:
        raise OptionError("split-gives-no-weight-column", column=missing[0])
    weights = [
        exact(split[name], Message.of("weight-of-column", setting="split", column=name)) for name in names
    ]
    for name, weight in zip(names, weights, strict=True):
        if weight <= 0:
            raise OptionError("split-weight-column-above-0", column=name, found=float(weight))
    return weights


# version of the file format
VERSION = 1


@dataclass(frozen=True, slots=True)
class RecordSum:
    """A function of one record, or several of them, summed over all records; docs/measurements.md lists the kinds.

    Attributes:
        kind: the functions, such as `sign`, `count` or `contrast`.
        columns: the attributes, by number.
        where: what the functions depend on besides: cut points, levels, pairs; functions of earlier outputs.
    """

    kind: str
    columns: tuple[int, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)


@displayed(lambda found: DisplaySummary(f"{found.sums.size} noisy sums", (found.kind,)))
@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """Noisy sums over the records, or cut points drawn from them: an output of the accountant, already paid for.

    Attributes:
        kind, columns, where: as for `RecordSum`.
        sums: exact sums plus noise; empty where positions were drawn, which are in `where`.
        sd: standard deviation of the noise on each.
        law: distribution of the noise, exactly: its name and parameters, fractions as text.
    """

    kind: str
    columns: tuple[int, ...]
    where: Mapping[str, Any]
    sums: Integers
    sd: float
    law: Mapping[str, Any]

    @classmethod
    def of(cls, what: RecordSum, sums: Integers, sd: float, **law: Any) -> Measurement:
        return cls(what.kind, what.columns, what.where, np.asarray(sums, dtype=np.int64), float(sd), law)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "where": plain(self.where),
            "sums": self.sums.tolist(),
            "sd": self.sd,
            "law": plain(self.law),
        }


def plain(value: Any) -> Any:
    """A value as JSON holds it: arrays as lists, fractions as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def _shown(found: Measurements) -> DisplaySummary:
    kinds = dict.fromkeys(one.kind for one in found.measured)
    sums = sum(one.sums.size for one in found.measured)
    return DisplaySummary(f"{sums} noisy sums of {len(found.attributes)} attributes", (", ".join(kinds),))


@displayed(_shown)
@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """All noisy numbers of a release.

    Attributes:
        rows: number of rows that were drawn.
        rows_sd: standard deviation of the noise on that number; 0 where it is public or declared.
        currency: the privacy measure in which the noise was paid for, `epsilon` or `rho`.
        attributes: what the columns of measurements refer to: columns, followed by their missing-value flags.
        bins: how pairs divide the values of each attribute: `edges` of positions, or the `group` of each value.
        measured: the measurements, in the order in which they were made.
        publishable: whether the noise is real; False for a seeded run, whose noise anybody can draw again.
    """

    rows: int
    rows_sd: float
    currency: str
    attributes: tuple[Mapping[str, Any], ...]
    bins: tuple[Mapping[str, Any], ...]
    measured: tuple[Measurement, ...]
    publishable: bool = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measurements) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def number(self, column: str, *, missing: bool = False) -> int:
        """The number of a column, or of its missing-value flag, among the attributes.

        Raises:
            KeyError: it was not measured.
        """
        for place, one in enumerate(self.attributes):
            if one["column"] == column and bool(one.get("missing")) == missing:
                return place
        raise KeyError(column)

    def of_kind(self, kind: str) -> list[Measurement]:
        return [one for one in self.measured if one.kind == kind]

    def to_dict(self) -> dict[str, Any]:
        """As `measurements.json` holds it."""
        return {
            "version": VERSION,
            "publishable": self.publishable,
            "rows": self.rows,
            "rows_sd": self.rows_sd,
            "currency": self.currency,
            "attributes": plain(self.attributes),
            "bins": plain(self.bins),
            "measured": [one.to_dict() for one in self.measured],
        }

    @classmethod
    def from_dict(cls, found: Any, where: str = "measurements.json") -> Measurements:
        """The measurements that `to_dict` wrote.

        Raises:
            InputError: a key is missing or of another type, or the version is unknown.
        """
        version = found.get("version") if isinstance(found, dict) else None
        if version != VERSION:
            raise InputError("measurements-version", file=where, found=version, version=VERSION)
        try:
            attributes = tuple(dict(one) for one in found["attributes"])
            bins = tuple(dict(one) for one in found["bins"])
            measured = tuple(
                Measurement(
                    str(one["kind"]),
                    tuple(int(place) for place in one["columns"]),
                    dict(one["where"]),
                    np.array(one["sums"], dtype=np.int64),
                    float(one["sd"]),
                    dict(one["law"]),
                )
                for one in found["measured"]
            )
            rows, rows_sd = int(found["rows"]), float(found["rows_sd"])
            currency, publishable = str(found["currency"]), bool(found["publishable"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError("measurements-damaged", file=where, reason=str(error)) from None
        places = {place for one in measured for place in one.columns}
        if len(bins) != len(attributes) or rows < 1 or not places <= set(range(len(attributes))):
            raise InputError("measurements-damaged", file=where, reason="columns")
        return cls(rows, rows_sd, currency, attributes, bins, measured, publishable)
