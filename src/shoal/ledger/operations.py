"""What can be asked of a ledger, and what it hands back; amounts are on a grid, so that sums of them stay short."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from shoal.columns.schema import ROW
from shoal.errors import OptionError

# What a budget is counted in: ε of pure differential privacy, or ρ of zero-concentrated differential privacy.
Currency = Literal["epsilon", "rho"]
SYMBOLS: Mapping[Currency, str] = {"epsilon": "ε", "rho": "ρ"}
# The total of several requests that are priced together, given their contents.
Joint = Callable[[Sequence[str]], Fraction]
# Charges are multiples of these. Fractions of any size would add up to ones too long to print, or to compute with.
EPSILON_GRID, DELTA_GRID = 10**12, 10**18


def rounded_up(amount: Fraction, grid: int = EPSILON_GRID) -> Fraction:
    """The least multiple of 1/grid that is not less.

    >>> rounded_up(Fraction(2, 3)), rounded_up(Fraction(1, 4))
    (Fraction(666666666667, 1000000000000), Fraction(1, 4))
    """
    return Fraction(-(-amount.numerator * grid // amount.denominator), grid)


@dataclass(frozen=True, slots=True)
class Register:
    """Terms of a data set; the first ones open its chain, later ones may change ceilings only.

    Attributes:
        ceiling: the most that may be spent in total, in the currency; None counts without a limit.
        delta_ceiling: the most δ in total; in the currency ρ, the δ of the one conversion to ε at the end.
        analysts: lower ceilings for some analysts.
        every_analyst: lower ceiling for each analyst who has none of their own.
        fingerprint: of the table, to recognise it again.
        unit: whose budget it is, in the words of a statement: "row", or "value of 'person' (at most 3 rows)". None
            leaves it open, for the first charge that counts.
        currency: what is counted, fixed for good. ρ takes pure charges too, at ε²/2; ε takes no charge in ρ.
    """

    dataset: str
    neighbours: str
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
    """A request to spend; what it costs is rounded up to the grid.

    Attributes:
        content: the request as canonical JSON; a key stands for this very text.
        epsilon: what it costs by itself.
        rho: what it costs by itself where that has no pure ε; `epsilon` is 0 then.
        person: (key column, value) if it concerns one declared individual only.
        family: with `joint`, requests of the same family are priced together.
        joint: the total of a family from the contents of its members; called by `Ledger.priced`, never under a lock.
        kind: "release" for a table that is published, "look" for measurements of one that were shown, which cost
            nothing and spoil what is chosen by them.
        room: the most bytes that entries of this analyst may take; None for any number.
        size: bytes to expect of the answer.
        prices: what `joint` said, by contents.
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
    """The answer to a charge, to be kept before it is sent."""

    dataset: str
    charge: int
    analyst: str
    content: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """What is known about a charge that stands.

    Attributes:
        charge: number of the charge.
        added: what it added to the total of the data set.
        repeated: the charge was there already, under the same key.
        answer: the stored answer, if there is one.
        head: hash of the newest entry about it: that of the answer, or of the charge.
    """

    dataset: str
    charge: int
    added: Fraction
    repeated: bool
    answer: str | None
    head: str


Operation = Register | Charge | Deposit
