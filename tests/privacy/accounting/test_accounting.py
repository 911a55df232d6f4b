"""Exact accounting of every release that claims `dp`: random tiny neighbours, all draws, losses added up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import shoal
from shoal.errors import OptionError
from shoal.mechanisms.method import Method
from shoal.mechanisms.registry import configured, method_class, names
from tests.conftest import amount

from .accounting import Account, accounts, concentrated, total
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
    """Every method that carries the claim with some of its settings, by the rule of the statements."""
    for name in names():
        if any(one.model(columns) == "dp" for one in variants(method_class(name)) for columns in (1, 2)):
            yield Claiming(name)
        try:
            if "partition" in method_class(name).parameters() and configured(
                name, epsilon=1, partition="tree"
            ):
                yield Claiming(name, tree=True)
        except OptionError:
            continue


def variants(method: type[Method]) -> Iterator[Method]:
    """A method as it is, with clusters of one, and with columns that are not linked, as far as it has that."""
    yield method.example()
    for option, value in (("k", 1), ("link", False)):
        try:
            yield method.configure(epsilon=1, **{option: value})
        except OptionError:
            continue


CLAIMING = tuple(claiming())
every_claim = pytest.mark.parametrize("which", CLAIMING, ids=str)


def worlds(which: Claiming, wanted: int, *, one_column: bool = False) -> Iterator[tuple[int, World]]:
    """Worlds in which `dp` is claimed, or `approximate-dp`."""
    found = 0
    for seed in range(20 * wanted):
        made = world(which.preset, seed, one_column=one_column, tree=which.tree)
        if made is None:
            continue
        statement = made.prepared(made.table).statement
        if statement.model in ("dp", "approximate-dp") and not statement.data_dependent:
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
            epsilon, rho = found.results[0].statement.epsilon, found.results[0].statement.rho
            if rho is not None:
                spent = total(*found.draws, concentrated)
                assert spent <= rho, f"{float(spent)} of {float(rho)} can be lost: {made}"
                continue
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
        differing = [name for name in made.table if not made.table[name].equals(made.neighbour[name])]
        if len(differing) != 1 or not shares:
            # nothing changed, or a whole record is missing
            continue
        share = shares[differing[0]]
        assert share is not None
        for found in accounts(made.releases(), made.table, made.neighbour, seed):
            rho = found.results[0].statement.rho
            most = found.bound if rho is None else total(*found.draws, concentrated)
            assert most <= share, f"{float(most)} of {float(share)} can be lost: {made}"
            # a matrix with equal rows releases nothing, and costs nothing
            if share:
                largest = max(largest, found.lost / share if rho is None else most / share)
        pairs += 1
    return pairs, largest


@every_claim
def test_no_release_loses_more_than_its_statement_says(which: Claiming) -> None:
    wanted = 2 if which.tree else 4
    pairs, largest = largest_loss(which, wanted)
    assert pairs == wanted
    assert which.tree or largest > Fraction(1, 2), "pairs that lose nothing show nothing"


@every_claim
def test_a_change_in_one_column_loses_no_more_than_is_stated_for_it(which: Claiming) -> None:
    # pairs-dp states such costs under replace-one only, which few worlds have
    pairs, _ = largest_part(which, 1 if which.tree else 40 if which.preset == "pairs-dp" else 6)
    assert which.tree or pairs


@pytest.mark.slow
@every_claim
def test_many_pairs_lose_no_more_and_the_worst_of_them_all_of_it(which: Claiming) -> None:
    # the worst pair is met within 15 pairs, that of laplace within 53
    wanted = 40 if which.tree else amount(75, 300)
    pairs, largest = largest_loss(which, wanted)
    assert pairs == wanted
    # shares of pairs are in proportion to irrational noise, scales are rounded up, and so are prices of matrices
    rounded = which.preset in ("pairs-dp", "pram")
    assert largest == 1 or which.tree or (rounded and largest > Fraction(99, 100))
    assert largest_part(which, wanted // 3)[1] <= 1


def lost(
    method: str, table: dict[str, list[Any]], row: dict[str, Any], **settings: Any
) -> tuple[Fraction, Account]:
    """The loss of the worst transcript when the first record is replaced, at ε = 1, and its account."""
    domains = {name: (0, 10) for name in table}
    before = pd.DataFrame(table)
    after = before.copy()
    for name, value in row.items():
        after.loc[0, name] = value

    def run(data: pd.DataFrame) -> shoal.Release:
        return shoal.protect(data, method=method, epsilon="1", domains=domains, **settings)

    found = max(accounts(run, before, after), key=lambda one: one.lost)
    assert_the_same_release(found)
    return found.lost, found


@pytest.mark.parametrize(
    ("method", "table", "row", "settings"),
    [
        ("laplace", {"a": [0, 3], "b": [10, 2]}, {"a": 10, "b": 0}, {}),
        ("laplace", {"a": [0, 3], "b": [10, 2]}, {"a": 10, "b": 0}, {"split": {"a": 1, "b": 3}}),
        # the changes of all rank groups add up to the width of the domain
        ("ranking-dp", {"a": [0, 2, 4, 6, 8, 10]}, {"a": 10}, {"k": 2}),
        (
            "ranking-dp",
            {"a": [0, 2, 4, 6, 8], "b": [10, 1, 1, 5, 7]},
            {"a": 10, "b": 0},
            {"k": 2, "link": False},
        ),
        ("mdav-dp", {"a": [0, 2, 4], "b": [10, 1, 1]}, {"a": 10, "b": 0}, {"k": 1, "noise": "box"}),
        ("mdav-dp", {"a": [0, 2, 4], "b": [10, 1, 1]}, {"a": 1, "b": 9}, {"k": 1, "noise": "staircase"}),
        ("xm-20", {"a": [0, 2, 4, 6, 8, 10]}, {"a": 10}, {"k": 2}),
        # every cluster gives one record to the next, and staircase noise charges all of ε for any change
        ("insensitive-dp", {"a": [0, 3, 3, 7, 7, 8]}, {"a": 10}, {"k": 2, "noise": "staircase"}),
        # without cuts there are sums, and with values counted one by one two counts
        ("tree-dp", {"a": [0, 3], "b": [10, 2]}, {"a": 10, "b": 0}, {"cuts": 0}),
        ("tree-dp", {"a": [0, 3, 7], "b": [10, 2, 2]}, {"a": 10, "b": 0}, {"cuts": 4, "depth": 2}),
    ],
)
def test_all_of_epsilon_is_lost_where_the_analysis_is_tight(
    method: str, table: dict[str, list[Any]], row: dict[str, Any], settings: dict[str, Any]
) -> None:
    assert lost(method, table, row, **settings)[0] == 1


def test_cut_points_lose_nearly_all_of_their_share() -> None:
    """The one cut below the median gets worse by all it can, and the many above it better."""
    records = {"a": [0, 1, 1, 1]}
    most, found = lost(
        "tree-dp", records, {"a": 10}, cuts=1, shares={"cuts": 98, "intervals": 1, "leaves": 1, "means": 1}
    )
    assert Fraction(7, 8) < most < found.bound <= 1


@pytest.mark.parametrize(
    ("method", "settings"),
    [("tree-dp", {"cuts": 4, "depth": 4}), ("insensitive-dp", {"k": 2, "noise": "staircase"})],
)
def test_the_share_of_a_column_is_reached_where_a_change_in_it_is_seen_elsewhere(
    method: str, settings: dict[str, Any]
) -> None:
    """More than an equal part of ε: for the joint counts of a tree, for the other columns of clusters."""
    table = {"a": [0, 3, 3, 7, 7, 8], "b": [0, 0, 4, 4, 10, 10]}
    most, found = lost(method, table, {"a": 10}, **settings)
    share = found.results[0].statement.epsilon_per_attribute["a"]
    assert share > Fraction(1, 2)
    assert Fraction(1, 2) < most <= share


def test_no_column_has_a_share_where_neighbours_differ_by_a_whole_record() -> None:
    _, found = lost("tree-dp", {"a": [1, 2, 3], "b": [1, 2, 3]}, {}, neighbours="add-remove", rows=3)
    assert found.results[0].statement.epsilon_per_attribute == {}
