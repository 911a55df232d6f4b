"""Walks every path of a sampler: a source whose decisions branch, each path with its exact rational weight."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.noise import Source


class UndecidedError(Exception):
    """The path became lighter than the walk cares for."""


@cache
def _even(sides: int) -> Sequence[Fraction]:
    return (Fraction(1, sides),) * sides


@cache
def _coin(above: int, under: int) -> Sequence[Fraction]:
    return 1 - Fraction(above, under), Fraction(above, under)


class Branching(Source):
    """Takes the decisions of a given path, then always the first one, and remembers where it could branch.

    Integers below a bound branch into each value, rational coins into both sides; a source of `raw` digits branches
    into each digit instead, which walks the primitives themselves.
    """

    reproducible = True

    def __init__(self, path: list[int], lightest: Fraction, raw: bool) -> None:
        self.path, self.lightest, self.raw = path, lightest, raw
        self.taken: list[int] = []
        self.options: list[Sequence[Fraction]] = []
        # of the path so far, after every decision; known where the path before this one took the same
        self.weights: list[Fraction] = []
        self.known: Sequence[Fraction] = ()

    @property
    def weight(self) -> Fraction:
        return self.weights[-1] if self.weights else Fraction(1)

    def choose(self, weights: Sequence[Fraction]) -> int:
        here = len(self.taken)
        if here < len(self.path):
            choice = self.path[here]
        else:
            choice = next(number for number, weight in enumerate(weights) if weight)
        self.taken.append(choice)
        self.options.append(weights)
        if here < len(self.known):
            self.weights.append(self.known[here])
            return choice
        self.weights.append(self.weight * weights[choice])
        if self.weight < self.lightest:
            raise UndecidedError
        return choice

    def words(self, n: int) -> NDArray[np.uint64]:
        raise AssertionError("a decision was taken outside the exact primitives")

    def digits(self, bits: int, n: int) -> NDArray[Any]:
        assert self.raw or bits == 1, "a decision was taken outside the exact primitives"
        chosen = [self.choose(_even(1 << bits)) for _ in range(n)]
        return np.array(chosen, dtype=np.uint8 if bits == 1 else np.uint64)

    def below(self, bound: Any, size: Any = None) -> NDArray[np.int64]:
        bounds = np.broadcast_to(bound, bound.shape if size is None else size)
        return np.array([self.choose(_even(int(b))) for b in bounds], dtype=np.int64)

    def flip(self, above: NDArray[np.uint64], under: NDArray[np.uint64], n: int) -> NDArray[np.bool_]:
        pairs = zip(np.broadcast_to(above, n).tolist(), np.broadcast_to(under, n).tolist(), strict=True)
        return np.array([self.choose(_coin(a, u)) == 1 for a, u in pairs], dtype=np.bool_)


def enumerate_paths(
    sampler: Callable[[Source], Hashable],
    lightest: float,
    raw: bool = False,
    kind: type[Branching] = Branching,
) -> tuple[dict[Hashable, Fraction], Fraction]:
    """Exact weight of every outcome over all paths not lighter than `lightest`, and the weight left undecided."""
    outcomes: dict[Hashable, Fraction] = {}
    undecided = Fraction(0)
    path: list[int] | None = []
    limit = Fraction(lightest)
    known: Sequence[Fraction] = ()
    while path is not None:
        source = kind(path, limit, raw)
        source.known = known
        try:
            outcome = sampler(source)
            outcomes[outcome] = outcomes.get(outcome, Fraction(0)) + source.weight
        except UndecidedError:
            undecided += source.weight
        path = _next_path(source)
        # the last decision of the next path is another one
        known = () if path is None else source.weights[: len(path) - 1]
    assert sum(outcomes.values()) + undecided == 1
    return outcomes, undecided


def _next_path(source: Branching) -> list[int] | None:
    for here in reversed(range(len(source.taken))):
        for option in range(source.taken[here] + 1, len(source.options[here])):
            if source.options[here][option]:
                return [*source.taken[:here], option]
    return None


def exp_minus(x: Fraction) -> Fraction:
    """exp(-x) to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        return Fraction((-Decimal(x.numerator) / Decimal(x.denominator)).exp())
