"""Exact accounting: the privacy loss of a release between two tables, from two runs under one transcript."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from shoal.noise import Source
from shoal.privacy import Accountant

from .laws import Blocks, Box, Elliptope, Gaussian, Laplace, Odds, Scores, Staircase
from .transcript import Draw, Plain, recording, replaying

Currency = Callable[[Draw, Draw], Fraction]


def pure(mine: Draw, other: Draw) -> Fraction:
    """The most that any outcome of a draw loses: ε of pure differential privacy."""
    return Fraction(0) if isinstance(mine.law, Plain) else mine.law.bound(mine.private, other.private)


def concentrated(mine: Draw, other: Draw) -> Fraction:
    """ρ of zero-concentrated DP: Σ(Δ/σ)²/2 of Gaussian noise, range²/8 of choices, ε²/2 of what has a pure ε."""
    return Fraction(0) if isinstance(mine.law, Plain) else mine.law.rho(mine.private, other.private)


def total(mine: Sequence[Draw], other: Sequence[Draw], currency: Currency = pure) -> Fraction:
    """What all draws of a release cost together in a currency."""
    return sum((currency(a, b) for a, b in zip(mine, other, strict=True)), Fraction(0))


def loss(mine: Sequence[Draw], other: Sequence[Draw]) -> Fraction:
    """Log-ratio of the probabilities of one transcript on both tables, exact to 50 digits."""
    return sum(
        (
            a.law.loss(a.private, b.private, a.outcome)
            for a, b in zip(mine, other, strict=True)
            if not isinstance(a.law, Plain)
        ),
        Fraction(0),
    )


def worst_outcomes(mine: Sequence[Draw], other: Sequence[Draw]) -> dict[int, Any]:
    """For every draw the outcome that speaks most for this side: noise far out on its side, the telling candidate."""
    found: dict[int, Any] = {}
    for number, (a, b) in enumerate(zip(mine, other, strict=True)):
        if isinstance(a.private, Scores | Odds):
            found[number] = a.law.worst(a.private, b.private)
        elif isinstance(a.law, Blocks | Elliptope):
            found[number] = np.array(a.law.worst(a.private, b.private), dtype=np.int64)
        elif not isinstance(a.law, Plain):
            signs = np.where(np.array(a.private) >= np.array(b.private), 1, -1)
            found[number] = signs * _reach(a.law, signs.size)
    return found


def _reach(law: Any, count: int) -> Any:
    if isinstance(law, Gaussian | Laplace | Staircase):
        return law.far()
    assert isinstance(law, Box)
    return np.tile(np.array(law.centre) + 3 * np.array(law.steps), count // len(law.steps))


@dataclass(frozen=True)
class Account:
    """What one pair of tables lost.

    Attributes:
        bound: the most that could be lost along the transcript, draw by draw, as a fraction.
        lost: what its outcomes lose, in the direction that loses more.
        results: what both runs returned.
    """

    bound: Fraction
    lost: Fraction
    results: tuple[Any, Any]
    draws: tuple[tuple[Draw, ...], tuple[Draw, ...]]


def account(
    run: Callable[[Any], Any],
    table: Any,
    neighbour: Any,
    seed: int = 0,
    wanted: Mapping[int, Any] | None = None,
    currency: Currency = pure,
) -> Account:
    """Run on a table, replay on its neighbour, and add up."""
    with recording(seed, wanted) as mine:
        first = run(table)
    with replaying(mine.draws) as other:
        second = run(neighbour)
    lost = loss(mine.draws, other.draws)
    return Account(
        total(mine.draws, other.draws, currency), abs(lost), (first, second), (mine.draws, other.draws)
    )


def accounts(run: Callable[[Any], Any], table: Any, neighbour: Any, seed: int = 0) -> tuple[Account, Account]:
    """An account of random outcomes, and one of outcomes turned to where most is lost, as far as the first tells."""
    first = account(run, table, neighbour, seed)
    return first, account(run, table, neighbour, seed, worst_outcomes(*first.draws))


def unpaid(plant: Callable[[pytest.MonkeyPatch], None]) -> Callable[[pytest.MonkeyPatch], None]:
    """A fault of sharing with nobody to stop it."""

    def planted(patch: pytest.MonkeyPatch) -> None:
        plant(patch)
        no_accountant(patch)

    planted.__name__ = f"unpaid_{plant.__name__}"
    return planted


def no_accountant(patch: pytest.MonkeyPatch) -> None:
    """Whatever is reserved, and whatever is spent, passes: what is lost must show in the noise."""

    def of(reserved: Mapping[str, Fraction], total: Any, source: Source, **rest: Any) -> Accountant:
        return Accountant(dict(reserved), source, **rest)

    def divide(self: Accountant, purpose: str, parts: Mapping[str, Fraction]) -> None:
        self.reserved |= parts

    patch.setattr(Accountant, "of", of)
    patch.setattr(Accountant, "divide", divide)
    patch.setattr(Accountant, "left", lambda self, purpose: Fraction(10**9))
    patch.setattr(Accountant, "unspent", lambda self: {})
