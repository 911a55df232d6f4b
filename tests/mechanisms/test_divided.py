"""Strata under differential privacy: declared ones are all measured, and a record costs what it can touch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.errors import OptionError
from shoal.io import read
from shoal.mechanisms import divided
from shoal.mechanisms.divided import OF_STRATA, declared_strata, of_stratum
from shoal.mechanisms.registry import configured
from shoal.privacy import Adjacency, Currency, moved
from shoal.privacy.accountant import OverspendError
from shoal.release.protection import carry_out, prepare
from tests.privacy.accounting.accounting import accounts, concentrated, no_accountant, total
from tests.privacy.accounting.noise import DivergenceError

DOMAINS: dict[str, Any] = {"region": ["n", "s", "e"], "size": (1, 4)}
METHODS = ("pairs-dp", "tree-dp")
every_method = pytest.mark.parametrize("method", METHODS)
# a model of all pairs takes its time
tree_first = pytest.mark.parametrize("method", [pytest.param("pairs-dp", marks=pytest.mark.slow), "tree-dp"])


def table(rows: list[tuple[str, int]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["region", "size"]).astype({"size": "int64"})


USUAL = [("n", 1), ("n", 4), ("n", 2), ("s", 3), ("s", 1), ("n", 4)]


def released(records: list[tuple[str, int]], method: str, **options: Any) -> shoal.Release:
    settings = {"epsilon": "6", "strata": "region", "domains": DOMAINS, "seed": 1, **options}
    return shoal.protect(table(records), method=method, **settings)


def regions(release: shoal.Release) -> Counter[str]:
    return Counter(release.data["region"].tolist())


@tree_first
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_every_declared_stratum_is_released_whether_or_not_it_has_records(
    method: str, neighbours: str
) -> None:
    found = released(USUAL * 20, method, epsilon="100", neighbours=neighbours)
    assert set(regions(found)) == {"n", "s", "e"}
    assert abs(regions(found)["n"] - 80) <= 5
    assert abs(regions(found)["s"] - 40) <= 5
    assert regions(found)["e"] <= 5


@every_method
def test_public_sizes_are_the_sizes_and_an_empty_stratum_has_no_rows(method: str) -> None:
    found = released(USUAL, method, neighbours="replace-one", membership="public")
    assert regions(found) == {"n": 4, "s": 2}
    invariants = [one["code"] for one in found.statement.to_dict()["computed"]["invariants"]]
    assert invariants == ["number-of-rows", "sizes-of-strata"]
    assert "strata-membership-public" in [one.code for one in found.statement.terms.conditions]


def test_strata_are_all_combinations_of_declared_values_missing_included() -> None:
    rows = pd.DataFrame({"region": ["n", None, "s"], "size": pd.array([1, 2, None], "Int64"), "x": [1, 2, 3]})
    prepared = prepare(
        read(rows),
        None,
        "pairs-dp",
        epsilon=1,
        strata=["region", "size"],
        missing="category",
        domains={"region": ["n", "s"], "size": (1, 2), "x": (1, 3)},
    )
    strata = list(declared_strata(prepared.method, prepared.described))  # type: ignore[arg-type]
    assert len(strata) == 9
    assert sorted(row for stratum in strata for row in stratum.rows.tolist()) == [0, 1, 2]
    assert len({repr(stratum.values) for stratum in strata}) == 9


UNITS = shoal.Schema.from_dict(
    {
        "attribute": [
            {"name": "region", "kind": "nominal", "values": ["n", "s", "e"]},
            {"name": "size", "kind": "numeric", "lo": 1, "hi": 4},
            {"name": "person", "role": "unit", "max_rows": 2},
        ]
    }
)
NEIGHBOURS: list[tuple[list[tuple[str, int]], list[tuple[str, int]], str]] = [
    (USUAL, USUAL[1:], "add-remove"),
    ([("n", 1)], [], "add-remove"),
    # inside a stratum, to another one, and to one without any record
    (USUAL, [("n", 4), *USUAL[1:]], "replace-one"),
    (USUAL, [("s", 1), *USUAL[1:]], "replace-one"),
    (USUAL, [("e", 4), *USUAL[1:]], "replace-one"),
    ([("n", 1)], [("e", 4)], "replace-one"),
]


def spent(
    method: str, before: list[tuple[str, int]], after: list[tuple[str, int]], **options: Any
) -> tuple[Fraction, Fraction, tuple[Any, ...]]:
    """The largest loss of two accounts in parts of ε, or of ρ, and both releases."""

    def run(data: pd.DataFrame) -> shoal.Release:
        settings = {"epsilon": "6", "strata": "region", "domains": DOMAINS, **options}
        return shoal.protect(data, method=method, **settings)

    bound, lost, results = Fraction(0), Fraction(0), ()
    for found in accounts(run, table(before), table(after), 3):
        statement = found.results[0].statement
        if statement.rho is not None:
            bound = max(bound, total(*found.draws, concentrated) / statement.rho)
        else:
            bound = max(bound, found.bound / statement.epsilon)
            lost = max(lost, found.lost / statement.epsilon)
        results = found.results
    return bound, lost, results


def cases(*quick: tuple[str, int], methods: tuple[str, ...] = METHODS) -> Any:
    """Every method with every pair of neighbours; all but a few are slow."""
    found = [
        pytest.param(method, *NEIGHBOURS[place], marks=[] if (method, place) in quick else [pytest.mark.slow])
        for method in methods
        for place in range(len(NEIGHBOURS))
    ]
    return pytest.mark.parametrize(("method", "before", "after", "neighbours"), found)


@cases(*(("tree-dp", place) for place in range(len(NEIGHBOURS))), ("pairs-dp", 3))
def test_neighbours_lose_no_more_than_epsilon(
    method: str, before: list[tuple[str, int]], after: list[tuple[str, int]], neighbours: str
) -> None:
    bound, lost, (first, second) = spent(method, before, after, neighbours=neighbours)
    assert Fraction(1, 10) < lost <= bound <= 1
    pd.testing.assert_frame_equal(first.data, second.data)
    assert first.statement.to_dict() == second.statement.to_dict()


@cases(("pairs-dp", 2), methods=("pairs-dp",))
def test_neighbours_lose_no_more_than_rho(
    method: str, before: list[tuple[str, int]], after: list[tuple[str, int]], neighbours: str
) -> None:
    bound, _, (first, second) = spent(method, before, after, neighbours=neighbours, delta="0.000001")
    assert 0 < bound <= 1
    assert first.statement.to_dict() == second.statement.to_dict()


@tree_first
def test_public_membership_costs_no_more_than_epsilon_inside_a_stratum(method: str) -> None:
    options: dict[str, Any] = {"neighbours": "replace-one", "membership": "public"}
    bound, lost, _ = spent(method, USUAL, [("n", 4), *USUAL[1:]], **options)
    assert Fraction(1, 10) < lost <= bound <= 1


@pytest.mark.slow
def test_public_membership_costs_no_more_than_rho_inside_a_stratum() -> None:
    options: dict[str, Any] = {"neighbours": "replace-one", "membership": "public", "delta": "0.000001"}
    bound, _, _ = spent("pairs-dp", USUAL, [("n", 4), *USUAL[1:]], **options)
    assert Fraction(1, 10) < bound <= 1


@pytest.mark.slow
def test_a_unit_in_one_stratum_or_two_pays_no_more_than_rho() -> None:
    before = table(USUAL).assign(person=list("aabbcd"))
    spend = []
    for person in "ab":
        after = before[before["person"] != person].reset_index(drop=True)

        def run(data: pd.DataFrame) -> shoal.Release:
            told: dict[str, Any] = {"strata": "region", "delta": "0.000001", "neighbours": "add-remove"}
            return shoal.protect(data, UNITS, "pairs-dp", epsilon="6", **told)

        for found in accounts(run, before, after, 5):
            rho = found.results[0].statement.rho
            assert rho is not None
            spend.append(total(*found.draws, concentrated) / rho)
    assert 0 < max(spend) <= 1


def test_a_unit_with_several_rows_pays_for_all_of_them_in_whatever_strata_they_are() -> None:
    before = table(USUAL).assign(person=list("aabbcd"))
    # the rows of a person are in one stratum, or in two
    for person in "ab":
        after = before[before["person"] != person].reset_index(drop=True)

        def run(data: pd.DataFrame) -> shoal.Release:
            return shoal.protect(
                data, UNITS, "tree-dp", epsilon="3", strata="region", neighbours="add-remove"
            )

        for found in accounts(run, before, after, 5):
            assert found.results[0].statement.epsilon == 3
            assert found.bound <= 3


# --- planted faults


def all_of_it(patch: pytest.MonkeyPatch) -> None:
    """Every stratum gets the whole budget although a replaced record can touch two."""
    patch.setattr(divided, "moved", lambda currency: 1)
    patch.setattr("shoal.mechanisms.pairs.method.moved", lambda currency: 1)
    patch.setattr("shoal.mechanisms.tree.method.moved", lambda currency: 1)


@every_method
def test_a_stratum_with_the_whole_budget_is_stopped_by_the_account(method: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        all_of_it(patch)
        with pytest.raises(OverspendError):
            released(USUAL, method, neighbours="replace-one")


@tree_first
def test_and_without_an_account_its_loss_shows(method: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        all_of_it(patch)
        no_accountant(patch)
        bound, lost, _ = spent(method, USUAL, [("s", 4), *USUAL[1:]], neighbours="replace-one")
    assert bound > 1 or lost > 1


def test_a_quarter_of_rho_is_needed() -> None:
    """Half of it would do for a record that moves, not for one that is replaced inside its stratum."""
    assert (moved(Currency.EPSILON), moved(Currency.RHO)) == (2, 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shoal.mechanisms.pairs.method.moved", lambda currency: 2)
        patch.setattr(divided, "moved", lambda currency: 2)
        with pytest.raises(OverspendError):
            released(USUAL, "pairs-dp", neighbours="replace-one", delta="0.000001")


def present_ones(strata: Callable[..., Any]) -> Callable[..., Any]:
    """A fault: a stratum is measured only if it occurs among the records."""
    return lambda method, described: [one for one in strata(method, described) if one.rows.size]


@tree_first
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_stratum_that_shows_by_its_presence_is_found(method: str, neighbours: str) -> None:
    changed = USUAL[:5] if neighbours == "add-remove" else [*USUAL[:5], ("e", 4)]
    with_it = [*USUAL[:5], ("e", 1)]
    other = changed if neighbours == "add-remove" else [*USUAL[:5], ("s", 1)]
    assert {name for name, _ in with_it} != {name for name, _ in other}
    # the declared strata say nothing
    spent(method, with_it, other, neighbours=neighbours)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divided, "declared_strata", present_ones(declared_strata))
        # the releases are not made by the same draws
        with pytest.raises(DivergenceError):
            spent(method, with_it, other, neighbours=neighbours)


# --- settings


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"strata": "county"}, "strata names column 'county', which is not released"),
        ({"strata": ["region", "size"]}, "strata names every released column"),
        ({"rows": 10, "neighbours": "add-remove"}, "rows cannot be declared with strata"),
        ({"membership": "public", "neighbours": "add-remove"}, "membership requires strata"),
        ({"membership": "public", "strata": None, "neighbours": "replace-one"}, "membership requires strata"),
        ({"domains": {**DOMAINS, "size": (0, 2000)}, "strata": "size"}, "combinations of declared values"),
        ({"epsilon": "0.000000001", "neighbours": "replace-one"}, "epsilon"),
    ],
)
@every_method
def test_what_does_not_fit_is_refused(method: str, options: dict[str, Any], word: str) -> None:
    with pytest.raises(OptionError, match=word):
        released(USUAL, method, **options)


def test_a_target_divides_no_table() -> None:
    with pytest.raises(OptionError, match="the target is column 'region'"):
        released(USUAL, "pairs-dp", target="region")
    assert len(released(USUAL, "pairs-dp", target="size", membership="public", neighbours="replace-one").data)


@every_method
def test_inside_a_stratum_the_method_is_itself(method: str) -> None:
    adding = configured(method, epsilon=2, neighbours="add-remove")
    divided_one = replace(adding, strata=("region",))  # type: ignore[call-arg]
    assert of_stratum(divided_one) == adding  # type: ignore[arg-type]
    replacing = configured(method, epsilon=2, neighbours="replace-one", strata="region")
    assert of_stratum(replacing) == replace(adding, epsilon=Fraction(1))  # type: ignore[arg-type, call-arg]
    assert replacing.in_parts == ""
    assert adding.in_parts


def test_a_part_of_rho_is_a_quarter_of_the_whole() -> None:
    whole: Any = configured("pairs-dp", epsilon=2, delta="0.001", neighbours="replace-one", strata="region")
    own = of_stratum(whole)
    assert whole.rho == 4 * own.rho
    assert own.adjacency is Adjacency.ADD_REMOVE


@every_method
def test_an_engine_refuses_strata_before_anything_is_read(method: str, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    table(USUAL).to_parquet(path)
    with pytest.raises(OptionError, match="without strata"):
        shoal.publish(
            path,
            method=method,
            epsilon=1,
            strata="region",
            domains=DOMAINS,
            engine="local",
            out=tmp_path / "out",
        )
    assert not (tmp_path / "out").exists()


@every_method
def test_the_account_reserves_and_charges_all_strata_at_once(method: str) -> None:
    prepared = prepare(
        read(table(USUAL)),
        None,
        method,
        epsilon=6,
        strata="region",
        domains=DOMAINS,
        neighbours="replace-one",
    )
    assert prepared.plan.spending == {OF_STRATA: 6}
    account = prepared.account()
    prepared.method.run(prepared.described, prepared.plan, account, lambda *_: None)
    assert [(one.cost, one.touched, one.over) for one in account.charges] == [(6, 2, "strata")]
    assert account.unspent() == {}


@tree_first
def test_a_table_without_rows_has_the_same_strata(method: str) -> None:
    found = carry_out(
        prepare(
            read(table([])),
            None,
            method,
            epsilon=50,
            seed=1,
            strata="region",
            domains=DOMAINS,
            neighbours="add-remove",
        )
    )
    assert set(regions(found)) == {"n", "s", "e"}
    assert np.isin(found.data["size"], [1, 2, 3, 4]).all()


@every_method
def test_noise_on_the_rows_of_many_strata_is_refused_before_the_charge(method: str) -> None:
    """A few rows more in each of 400 strata would be a table that fills the memory."""
    people = pd.DataFrame({"place": [0, 1], "age": [1, 2]})
    settings: dict[str, Any] = {"domains": {"place": (0, 399), "age": (0, 3)}, "strata": ["place"]}
    settings |= {"neighbours": "add-remove"}
    with pytest.raises(OptionError, match="too small for 400 strata"):
        prepare(read(people), None, method, epsilon="0.001", **settings)
    prepare(read(people), None, method, epsilon="1", **settings)
