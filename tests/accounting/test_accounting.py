"""Exact accounting of every release that claims `dp`: random tiny neighbours, all draws, losses added up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import pandas as pd
import pytest

from shoal.errors import OptionError
from shoal.models import privacy_model
from shoal.presets import PRESETS, configured

from .accounting import Account, accounts
from .worlds import World, world

# choices are known to 60 digits, everything else is a fraction
ROOM = Fraction(1, 10**45)


@dataclass(frozen=True)
class Claiming:
    """A preset that can claim `dp`, as it is or as a tree in disguise."""

    preset: str
    tree: bool = False

    def __str__(self) -> str:
        return f"{self.preset}, partition=tree" if self.tree else self.preset


def claiming() -> Iterator[Claiming]:
    """Every preset that carries the claim with some of its settings, by the rule of the statements."""
    for name, method in PRESETS.items():
        variants = [method, replace(method, k=1), replace(method, link=False)]
        if any(privacy_model(one, columns) == "dp" for one in variants for columns in (1, 2)):
            yield Claiming(name)
        try:
            if "partition" in method.adjustable and configured(name, epsilon=1, partition="tree"):
                yield Claiming(name, tree=True)
        except OptionError:
            continue


CLAIMING = tuple(claiming())
every_claim = pytest.mark.parametrize("which", CLAIMING, ids=str)


def worlds(which: Claiming, wanted: int, *, one_column: bool = False) -> Iterator[tuple[int, World]]:
    """Worlds in which `dp` is claimed."""
    found = 0
    for seed in range(20 * wanted):
        made = world(which.preset, seed, one_column=one_column, tree=which.tree)
        if made is not None and made.prepared(made.table).statement.model == "dp":
            found += 1
            yield seed, made
            if found == wanted:
                return


def assert_the_same_release(found: Account) -> None:
    first, second = found.results
    pd.testing.assert_frame_equal(first.data, second.data)
    assert first.statement.to_dict() == second.statement.to_dict()


def largest_loss(which: Claiming, wanted: int) -> tuple[int, Fraction]:
    """How many pairs of neighbours there were, and the largest loss of one, in parts of its ε."""
    pairs, largest = 0, Fraction(0)
    for seed, made in worlds(which, wanted):
        for found in accounts(made.releases(), made.table, made.neighbour, seed):
            assert_the_same_release(found)
            epsilon = found.results[0].statement.epsilon
            assert found.bound <= epsilon, f"{float(found.bound)} of {float(epsilon)} can be lost: {made}"
            assert found.lost <= found.bound + ROOM, made
            largest = max(largest, found.lost / epsilon)
        pairs += 1
    return pairs, largest


def largest_part(which: Claiming, wanted: int) -> tuple[int, Fraction]:
    """The same for neighbours that differ in one column, in parts of what the statement says that column costs."""
    pairs, largest = 0, Fraction(0)
    for seed, made in worlds(which, wanted, one_column=True):
        shares = made.prepared(made.table).statement.epsilon_per_attribute
        (column, *others) = [
            name for name in made.table if not made.table[name].equals(made.neighbour[name])
        ] or [None]
        if column is None or not shares:
            continue
        assert not others
        for found in accounts(made.releases(), made.table, made.neighbour, seed):
            assert found.bound <= shares[column], f"{float(found.bound)} of {float(shares[column])}: {made}"
            largest = max(largest, found.lost / shares[column])
        pairs += 1
    return pairs, largest
