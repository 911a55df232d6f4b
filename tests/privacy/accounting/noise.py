"""Noise that records its origin: the private numbers to which each draw is added."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class DivergenceError(AssertionError):
    """The code did something that a transcript cannot follow: it asked for another draw, or used noise strangely."""


class Ledger(Protocol):
    """Who is told when noise meets a private number, and says what is released."""

    def combine(self, private: Any, slots: Integers, noise: Integers) -> Integers: ...


class Noise(np.ndarray[Any, np.dtype[np.int64]]):
    """Noise that knows where it came from: it can be sliced, joined and added to a private number, nothing else."""

    slots: Integers
    run: Ledger

    @classmethod
    def of(cls, values: Any, slots: Integers, run: Ledger) -> Noise:
        found = np.asarray(values).view(cls)
        found.slots, found.run = slots, run
        return found

    @property
    def _plain(self) -> Integers:
        return self.view(np.ndarray)

    def __getitem__(self, key: Any) -> Any:
        return Noise.of(np.asarray(self._plain[key]), np.asarray(self.slots[key]), self.run)

    def reshape(self, *shape: Any, **options: Any) -> Any:
        return Noise.of(self._plain.reshape(*shape), self.slots.reshape(*shape), self.run)

    def tolist(self) -> Any:
        pairs = zip(self._plain.ravel().tolist(), self.slots.ravel().tolist(), strict=True)
        return [NoiseNumber.of(value, slot, self.run) for value, slot in pairs]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        private = [part for part in inputs if not isinstance(part, Noise)]
        if ufunc is not np.add or method != "__call__" or len(private) != 1 or options:
            raise DivergenceError(f"noise is used in {ufunc.__name__} before it is added to a private number")
        return self.run.combine(private[0], self.slots, self._plain)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        if function not in (np.concatenate, np.stack):
            raise DivergenceError(
                f"noise is used in {function.__name__} before it is added to a private number"
            )
        parts, *rest = inputs
        values = function([part._plain for part in parts], *rest, **options)
        return Noise.of(values, function([part.slots for part in parts], *rest, **options), self.run)


class NoiseNumber(int):
    """One number of noise outside of an array."""

    slot: int
    run: Ledger

    @classmethod
    def of(cls, value: int, slot: int, run: Ledger) -> NoiseNumber:
        found = cls(value)
        found.slot, found.run = slot, run
        return found

    def __add__(self, private: Any) -> Any:
        return int(self.run.combine(private, np.array([self.slot]), np.array([int(self)]))[0])

    __radd__ = __add__
