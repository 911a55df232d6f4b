"""The budget of a tree: which purposes a layout reserves for, and the spends against them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from shoal.columns.describe import Described
from shoal.display import internal
from shoal.mechanisms.tree.layout import Layout
from shoal.privacy import Accountant, Spend

ROWS = "number of rows"
# one reservation for what is divided once the noisy number of rows has settled the levels
BY_ROWS = "cut points, counts and sums, level by level as the number of rows allows"


@dataclass(frozen=True, slots=True)
class Purposes:
    """What the parts of a layout are called in a statement, and how much is reserved for each.

    Attributes:
        attributes: how many there are.
        counted: how many of them have their values counted one by one.
        names: how many of the others have no order.
        gaps: how many of the others have a place for missing values.
    """

    layout: Layout
    attributes: int
    counted: int = 0
    names: int = 0
    gaps: int = 0

    @classmethod
    def of(cls, layout: Layout, described: Described, counted: Collection[str]) -> Purposes:
        cut = [column for column in described.columns if column not in counted]
        names = sum(column in described.nominal for column in cut)
        gaps = sum(column in described.flagged for column in cut)
        return cls(layout, len(described.columns), len(counted), names, gaps)

    @property
    def cut(self) -> int:
        """How many attributes have cut points, or nothing but a sum."""
        return self.attributes - self.counted

    @property
    def numbers(self) -> int:
        """How many of these have sums."""
        return self.cut - self.names

    @property
    def values(self) -> str:
        return f"value counts {self._of(self.counted)}"

    @property
    def missing(self) -> str:
        return f"missing values {self._of(self.gaps)}"

    @property
    def sums(self) -> str:
        return f"interval sums {self._of(self.numbers)}"

    @property
    def squares(self) -> str:
        return f"interval sums of squares {self._of(self.numbers)}"

    def cut_points(self, level: int) -> str:
        return f"cut points {self._of(self.cut)}, level {level + 1} of {len(self.layout.cuts)}"

    def interval_counts(self, level: int) -> str:
        return f"interval counts {self._of(self.cut)}, level {level + 1} of {len(self.layout.cuts)}"

    def tree_counts(self, level: int) -> str:
        return f"counts of the tree, level {level + 1} of {len(self.layout.leaves)}"

    def _of(self, number: int) -> str:
        if number == self.attributes:
            return "of all attributes"
        return f"of {number} attribute{'s' if number > 1 else ''}"

    def reserved(self) -> dict[str, Fraction]:
        """The whole budget of the layout, by purpose, in the order in which it is listed."""
        layout, gaps = self.layout, self.layout.for_gaps
        levels = range(len(layout.cuts) if self.cut else 0)
        whole = self.numbers - self.gaps
        parts: dict[str, Fraction] = {}
        if self.counted:
            parts[self.values] = layout.attribute * self.counted
        for level in levels:
            parts[self.cut_points(level)] = layout.cuts[level] * self.cut
        if self.gaps:
            parts[self.missing] = gaps.gap * self.gaps
        for level in levels:
            share = layout.intervals[level] * whole + gaps.intervals[level] * self.gaps
            parts[self.interval_counts(level)] = share + layout.for_names.intervals[level] * self.names
        for level, share in enumerate(layout.leaves):
            parts[self.tree_counts(level)] = share
        if self.numbers:
            parts[self.sums] = layout.means * whole + gaps.means * self.gaps
        if self.numbers and layout.squares:
            parts[self.squares] = layout.squares * whole + gaps.squares * self.gaps
        return parts


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Purse:
    """The account of a release, and whose attribute's part of it is spent."""

    account: Accountant
    purposes: Purposes
    column: str

    def spend(self, purpose: str, amount: Fraction, over: str) -> Spend:
        """Charge a measurement of the attribute; `over` are the parts of its domain, a record is in one of them."""
        return self.account.spend(purpose, amount, f"{purpose}, {self.column}", over=over)
