"""Keys of suppression: rows encoded as single numbers, under any set of blanked columns.

A set of blanked columns (a mask) is an integer, bit j for column j. A blank has the digit 0, so a released row is
itself a number: two rows are equal exactly if their numbers are, with a blank as a separate value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.numbers import Integers

# maximum number of masks tried, small ones first
MOST_MASKS = 1023


@internal()
@dataclass(frozen=True)
class Keys:
    """Rows of keys.

    Attributes:
        codes: (rows, columns), 1 and up for values, 0 for a cell that is empty from the start.
        costs: cost of an emptied cell of each column.
    """

    codes: Integers
    costs: NDArray[np.float64]

    @property
    def n(self) -> int:
        return int(self.codes.shape[0])

    @property
    def m(self) -> int:
        return int(self.codes.shape[1])

    @cached_property
    def radix(self) -> Integers:
        """The place value of each column's digit.

        If the rows do not fit into one number, place values are constant odd numbers, sums wrap around, and two
        different rows have the same number with a probability of 2^-64; released tables are verified anyway.
        """
        total, found = 1, []
        for most in self.codes.max(axis=0, initial=0).tolist():
            found.append(total)
            total *= most + 1
        if total < 2**62:
            return np.array(found, dtype=np.int64)
        drawn = np.random.Generator(np.random.PCG64(23)).integers(-(2**62), 2**62, self.m)
        return np.asarray(drawn | 1, dtype=np.int64)

    @cached_property
    def listed(self) -> bool:
        """Whether all masks are tried."""
        return len(self.masks) == (1 << self.m) - 1

    @cached_property
    def whole(self) -> Integers:
        """Every unmasked row, as one number."""
        return np.asarray(self.codes @ self.radix, dtype=np.int64)

    @cached_property
    def gaps(self) -> Integers:
        """The mask of initially empty cells of each row."""
        return self.masks_of(self.codes == 0)

    def masks_of(self, blank: NDArray[np.bool_]) -> Integers:
        return blank @ (1 << np.arange(self.m, dtype=np.int64))

    def cells(self, masks: Integers) -> NDArray[np.bool_]:
        """Masks as a table of cells."""
        return np.asarray((masks[:, None] >> np.arange(self.m)) & 1 == 1)

    def projected(self, mask: int, rows: Integers | slice = slice(None)) -> Integers:
        """Released rows with the columns of the mask blanked."""
        gone = self.columns_of(mask)
        return self.whole[rows] - self.codes[rows][:, gone] @ self.radix[gone]

    def columns_of(self, mask: int) -> list[int]:
        return [j for j in range(self.m) if mask >> j & 1]

    def cost(self, mask: int) -> float:
        return float(self.costs[self.columns_of(mask)].sum())

    @cached_property
    def masks(self) -> list[int]:
        """All nonempty masks, cheap ones first; for many columns only the smallest masks and the full one.

        Ties are ordered with later columns first.
        """
        found: list[int] = []
        for size in range(1, self.m + 1):
            if len(found) + comb(self.m, size) > MOST_MASKS:
                found.append((1 << self.m) - 1)
                break
            found += [sum(1 << column for column in chosen) for chosen in combinations(range(self.m), size)]
        return sorted(found, key=lambda mask: (self.cost(mask), -mask))
