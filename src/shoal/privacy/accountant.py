"""The privacy accountant: every measurement of the records is charged here before its noise can be drawn.

A plan reserves amounts by purpose, from public facts; they are the `spending` of a statement. A run spends against the
reservations. Noise is drawn from `Spend.take()`, which hands out the amount and the source of randomness, once: what
the noise is calibrated to and what is charged are one number.

Composition:
    Sequential and adaptive: charges of one accountant add up, in the order in which they are made.
    Parallel: `Accountant.parallel` charges once for any number of parts of the table that have no record in common, and
    each part gets an accountant of its own. A `Spend` for several sums that are drawn by one call says over what it
    goes, and how many of them one record can change (`touched`).

The accountant finds faults of sharing (spent twice, spent without a reservation, shares that add up to too much). It
cannot find faults of calibration: those are what `tests/accounting` is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from shoal.display import internal
from shoal.noise import Source
from shoal.privacy.adjacency import Adjacency

_NOTHING = Fraction(0)


class Currency(StrEnum):
    """What amounts are counted in."""

    EPSILON = "epsilon"  # pure differential privacy
    RHO = "rho"  # zero-concentrated differential privacy


class OverspendError(RuntimeError):
    """A method tried to spend what it has not reserved, or to draw twice for one spend: always a bug of the method."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: probably a bug, please report.")


@dataclass(frozen=True, slots=True)
class Charge:
    """One entry of an account.

    Attributes:
        purpose: the reservation that it is charged to.
        what: the measurement.
        amount: what its noise is calibrated to.
        over: parts that get such noise each, where there are several; a record is in one of them, or in `touched`.
        touched: how many of these parts one record can change.
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

    __slots__ = ("_source", "_taken", "charge")

    def __init__(self, charge: Charge, source: Source) -> None:
        self.charge = charge
        self._source, self._taken = source, False

    @property
    def amount(self) -> Fraction:
        """What the noise is calibrated to."""
        return self.charge.amount

    def take(self) -> tuple[Fraction, Source]:
        """The amount that noise is calibrated to, and where its bits come from.

        Raises:
            OverspendError: it was taken before.
        """
        if self._taken:
            raise OverspendError(f"'{self.charge.what}' was paid for once and drawn twice")
        self._taken = True
        return self.amount, self._source


@internal()
@dataclass(slots=True, eq=False)
class Accountant:
    """The budget of one release, answer or choice while it is spent.

    Attributes:
        reserved: amount by purpose, settled from public facts; only `divide` changes it.
        source: where bits come from; nobody takes it but `Spend.take` and `free`.
        currency: what amounts are counted in.
        adjacency: which tables the amounts compare.
        unit: what one of the two tables has more or other: a row, unless a unit of privacy was declared.
        charges: what was spent, in order.
        uses: what randomness was used for that costs nothing, in order.
    """

    reserved: dict[str, Fraction]
    source: Source
    currency: Currency = Currency.EPSILON
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    unit: str = "row"
    charges: list[Charge] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)

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
        """An account with nothing spent.

        Args:
            reserved: amount by purpose.
            total: what they may add up to; None for a method without a budget.

        Raises:
            OverspendError: they add up to more.
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
            amount: what the noise is calibrated to.
            what: the measurement; by default the purpose itself.
            over: where noise of this amount goes on several parts (clusters, cells), what they are.
            touched: how many of these one record can change; the charge is as many times the amount.

        Raises:
            OverspendError: nothing is reserved for it, or less than it costs.
        """
        charge = Charge(purpose, what or purpose, amount, over, touched)
        self._charge(charge)
        return Spend(charge, self.source)

    def _charge(self, charge: Charge) -> None:
        if charge.amount <= 0 or charge.touched < 1:
            raise OverspendError(f"'{charge.what}' costs {charge.cost}")
        left = self.left(charge.purpose)
        if charge.cost > left:
            raise OverspendError(
                f"'{charge.what}' costs {charge.cost} {self.currency}, and {left} is left of '{charge.purpose}'"
            )
        self.charges.append(charge)

    def divide(self, purpose: str, parts: Mapping[str, Fraction]) -> None:
        """Split a reservation, once what was measured says how (adaptive composition).

        Raises:
            OverspendError: some of it was spent, or the parts add up to more.
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

    def parallel(self, over: str, purposes: Mapping[str, Fraction] | None = None) -> Parallel:
        """Charge once for parts of the table that have no record in common.

        Args:
            over: what the parts are: batches of records, strata, groups.
            purposes: what each part may spend, by purpose; by default all that is left.
        """
        amounts = self.unspent() if purposes is None else dict(purposes)
        for purpose, amount in amounts.items():
            self._charge(Charge(purpose, purpose, amount, over))
        return Parallel(over, amounts, self.currency, self.adjacency, self.unit, self.source)

    def free(self, why: str) -> Source:
        """Randomness that costs nothing: what was paid for is processed further, or no record has a part in it."""
        self.uses.append(why)
        return self.source

    def left(self, purpose: str) -> Fraction:
        """What may still be spent on a purpose.

        Raises:
            OverspendError: nothing was reserved for it.
        """
        if purpose not in self.reserved:
            raise OverspendError(f"nothing is reserved for '{purpose}', only for {list(self.reserved)}")
        return self.reserved[purpose] - self.spent(purpose)

    def spent(self, purpose: str | None = None) -> Fraction:
        """What was spent on a purpose, or on all of them."""
        return sum((one.cost for one in self.charges if purpose in (None, one.purpose)), _NOTHING)

    def unspent(self) -> dict[str, Fraction]:
        """What is left, by purpose; empty once all is spent that was reserved."""
        found = {purpose: self.left(purpose) for purpose in self.reserved}
        return {purpose: amount for purpose, amount in found.items() if amount}


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Parallel:
    """What each of several parts of a table may spend that have no record in common; it was charged once, for all.

    Parallel composition: a record is in one part, so that what all parts spend together costs it what its own part
    spends. Under replace-one the parts must stay the same where a record is replaced: its place in the table, or its
    cluster where clusters are taken as fixed, says which part it is in.

    It can be sent to a task of an engine, without the source of the release (`elsewhere`).
    """

    over: str
    reserved: Mapping[str, Fraction]
    currency: Currency
    adjacency: Adjacency
    unit: str
    source: Source | None = None

    def elsewhere(self) -> Parallel:
        """The same for another process, in which each part brings a source of its own."""
        return Parallel(self.over, dict(self.reserved), self.currency, self.adjacency, self.unit)

    def part(self, source: Source | None = None) -> Accountant:
        """The account of one part."""
        own = source or self.source
        if own is None:
            raise OverspendError(f"a part of {self.over} that is worked on elsewhere has no source")
        return Accountant(dict(self.reserved), own, self.currency, self.adjacency, self.unit)
