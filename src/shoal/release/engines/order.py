"""The order of released rows: a number of rows and a source come in, a random order that any task can compute leaves.

A task that holds some rows must know where each of them goes without seeing the others. For few rows an exactly uniform
order is drawn and sent along. For many it is a Feistel network whose rounds are tables of random words: nobody who
lacks the tables can tell it from a uniform order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.noise import Source

Integers = NDArray[np.int64]

# An order of so many rows is sent along as it is.
_FEW = 1 << 18
_ROUNDS = 12


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """A permutation of 0 .. rows - 1.

    Attributes:
        places: where each row goes, for few rows.
        tables: the rounds of the network: from the one half of a number's bits to what the other is changed by.
        low_bits: how many bits the low half has.
    """

    rows: int
    places: Integers | None = None
    tables: tuple[NDArray[np.uint32], ...] = ()
    low_bits: int = 0

    @classmethod
    def drawn(cls, rows: int, source: Source, few: int = _FEW) -> Order:
        """A fresh order.

        >>> from shoal.noise import Seeded
        >>> order = Order.drawn(1000, Seeded(1), few=0)
        >>> bool((np.sort(order.of(np.arange(1000))) == np.arange(1000)).all())
        True
        """
        if rows <= few:
            return cls(rows, source.permutation(rows))
        bits = max((rows - 1).bit_length(), 2)
        low = bits // 2
        tables = []
        for number in range(_ROUNDS):
            # the halves change in turn, each by a random function of the other
            read, changed = (low, bits - low) if number % 2 == 0 else (bits - low, low)
            words = source.words(1 << read) >> np.uint64(64 - changed)
            tables.append(words.astype(np.uint32))
        return cls(rows, None, tuple(tables), low)

    def of(self, rows: Integers) -> Integers:
        """The places of some rows, by their numbers."""
        if self.places is not None:
            return self.places[rows]
        places = self._turned(rows)
        # numbers beyond the last row are turned on until they fall inside, which keeps the order a permutation
        while (outside := np.flatnonzero(places >= self.rows)).size:
            places[outside] = self._turned(places[outside])
        return places

    def _turned(self, rows: Integers) -> Integers:
        low = (rows & ((1 << self.low_bits) - 1)).astype(np.uint32)
        high = (rows >> self.low_bits).astype(np.uint32)
        for number, table in enumerate(self.tables):
            if number % 2 == 0:
                high ^= table[low]
            else:
                low ^= table[high]
        return (high.astype(np.int64) << self.low_bits) | low.astype(np.int64)
