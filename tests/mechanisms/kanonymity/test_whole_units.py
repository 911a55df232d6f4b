"""Households stay whole: one group for all rows, and attributes of the household equal in all of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import shoal
from shoal.errors import InputError, OptionError
from shoal.io import read
from shoal.mechanisms.kanonymity.whole_units import first_rows, whole_units
from shoal.noise import Seeded
from shoal.progress import silent
from shoal.release.protection import prepare

K = 4
OF_HOUSEHOLD = ("income", "region", "tenure")
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "k-anonymity": ("k-anonymity", {}),
    "k-anonymity, vmdav": ("k-anonymity", {"partition": "vmdav"}),
    "k-anonymity, l": ("k-anonymity", {"l": 3}),
    "swap-mdav": ("swap-mdav", {}),
    "swap-mdav, uninformed": ("swap-mdav", {"intruder": "uninformed"}),
    "swap-ranking": ("swap-ranking", {}),
    "swap-ranking, l": ("swap-ranking", {"l": 3}),
    "swap-ranking, sizes": ("swap-ranking", {"sizes": {"income": 8, "wage": 5}}),
    "k-anonymity, strata": ("k-anonymity", {"strata": "region"}),
    "swap-mdav, strata": ("swap-mdav", {"strata": "region"}),
}
every_method = pytest.mark.parametrize("case", METHODS)
swaps = pytest.mark.parametrize("case", [case for case in METHODS if case.startswith("swap")])


def table(households: int = 60, seed: int = 3) -> pd.DataFrame:
    """Households of 1 to 5 persons, in random order of the rows."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 6, households)
    unit = np.repeat(np.arange(households), sizes)
    n = unit.size
    found = pd.DataFrame(
        {
            "household": unit,
            "income": draw.permutation(np.arange(households) * 37 % 1000)[unit],
            "region": draw.choice(["n", "s"], households)[unit],
            "tenure": draw.choice(["owner", "tenant", "other"], households)[unit],
            "age": draw.integers(0, 100, n),
            "wage": draw.integers(0, 500, n),
        }
    )
    return found.sample(frac=1, random_state=1).reset_index(drop=True)


def schema(**changes: dict[str, Any]) -> shoal.Schema:
    names = ["n", "s"], ["owner", "tenant", "other"]
    entries: list[dict[str, Any]] = [
        {"name": "household", "role": "unit", "max_rows": 5},
        {"name": "income", "kind": "numeric", "role": "confidential", "lo": 0, "hi": 1000},
        {"name": "region", "kind": "nominal", "role": "quasi-identifier", "values": names[0]},
        {"name": "tenure", "kind": "nominal", "role": "confidential", "values": names[1]},
        {"name": "age", "kind": "numeric", "role": "quasi-identifier", "lo": 0, "hi": 100},
        {"name": "wage", "kind": "numeric", "role": "confidential", "lo": 0, "hi": 500},
    ]
    return shoal.Schema.from_dict({"attribute": [{**one, **changes.get(one["name"], {})} for one in entries]})


def released(case: str, data: pd.DataFrame | None = None, **options: Any) -> shoal.Release:
    method, settings = METHODS[case]
    settings = {"k": K, "unit_columns": list(OF_HOUSEHOLD), "seed": 1, **settings, **options}
    return shoal.protect(table() if data is None else data, schema(), method, **settings)


def unequal(made: shoal.Release, data: pd.DataFrame) -> list[str]:
    """Attributes of a household that differ in its rows."""
    return [
        name
        for name in OF_HOUSEHOLD
        if (made.aligned[name].groupby(data["household"].to_numpy()).nunique() > 1).any()
    ]


@every_method
def test_attributes_of_a_household_stay_equal_in_all_its_rows(case: str) -> None:
    data = table()
    made = released(case, data)
    assert len(made.data) == len(data)
    assert unequal(made, data) == []
    assert made.statement.model in ("k-anonymity", "probabilistic-k-anonymity")
    assert made.statement.publishable is False  # because of the seed only
    assert [one.code for one in made.statement.obstacles] == ["seeded"]


@pytest.mark.parametrize("case", ["k-anonymity", "swap-mdav", "swap-ranking"])
def test_without_the_declaration_they_would_not(case: str) -> None:
    data = table()
    assert unequal(released(case, data, unit_columns=None), data)


@pytest.mark.parametrize("case", [case for case in METHODS if case.startswith("k-anonymity")])
def test_all_rows_of_a_household_are_in_one_group_of_at_least_k_households(case: str) -> None:
    data = table()
    (made,) = released(case, data).partition
    units = data["household"].to_numpy()
    for unit in set(units.tolist()):
        assert np.unique(made.labels[units == unit]).size == 1
    assert min(np.unique(units[made.labels == label]).size for label in range(len(made))) >= K


@swaps
def test_every_household_gets_the_income_of_one_household(case: str) -> None:
    data = table()
    made = released(case, data)
    units = data["household"].to_numpy()
    first = first_rows(units)
    for name in ("income", "tenure"):
        before, after = data[name].to_numpy()[first], made.aligned[name].to_numpy()[first]
        assert Counter(before.tolist()) == Counter(after.tolist())
    # attributes of persons are swapped between rows
    assert Counter(made.aligned["wage"].tolist()) == Counter(data["wage"].tolist())
    assert (made.aligned["wage"] != data["wage"]).mean() > 0.5
    assert made.aligned["age"].tolist() == data["age"].tolist()


@pytest.mark.parametrize("case", ["swap-mdav", "swap-mdav, uninformed", "swap-ranking"])
def test_a_household_keeps_its_own_income_with_probability_one_in_k(case: str) -> None:
    """Large households are as safe as small ones: one draw for each, whatever its number of rows."""
    unit = np.repeat(np.arange(K), [1, 2, 5, 2])
    data = pd.DataFrame({"household": unit, "income": unit * 100, "region": "n", "tenure": "other"})
    data = data.assign(age=50, wage=np.arange(unit.size))
    method, settings = METHODS[case]
    options = {"k": 2, **settings, "sizes": {"income": K, "tenure": K, "wage": 2}}
    prepared = prepare(read(data), schema(), method, unit_columns=list(OF_HOUSEHOLD), **options)
    runs, kept = 150, np.zeros(K)
    for seed in range(runs):
        account = prepared.method.account(prepared.plan, Seeded(seed))
        made = prepared.method.run(prepared.described, prepared.plan, account, silent).values["income"]
        assert made[[1, 3]].tolist() == made[[2, 4]].tolist()
        kept += made[first_rows(unit)] == np.arange(K) * 100
    for count in kept:
        assert binomtest(int(count), runs, 1 / K).pvalue > 1e-9
    # the same test rejects a household that keeps its income half of the time
    assert binomtest(runs // 2, runs, 1 / K).pvalue < 1e-9


@every_method
def test_the_order_of_the_rows_has_no_effect_on_the_groups(case: str) -> None:
    data = table()
    order = np.random.default_rng(5).permutation(len(data))
    one, other = released(case, data), released(case, data.iloc[order].reset_index(drop=True))
    for before, after in zip(one.partition, other.partition, strict=True):
        if "income" in before.columns or case.startswith("k-anonymity"):
            pairs = set(zip(before.labels[order].tolist(), after.labels.tolist(), strict=True))
            assert len(pairs) == len(before)


def test_rows_are_grouped_where_nobody_has_several() -> None:
    data = table()
    alone = data.assign(household=np.arange(len(data)))
    with_columns = released("k-anonymity", alone)
    assert with_columns.data.equals(released("k-anonymity", alone, unit_columns=None).data)


def test_groups_of_households_are_those_of_their_means() -> None:
    data = pd.DataFrame(
        {
            "household": [0, 0, 1, 2, 2, 3],
            "income": [5, 5, 1, 2, 2, 3],
            "region": ["n"] * 6,
            "tenure": ["other"] * 6,
        }
    ).assign(age=[0, 20, 12, 90, 100, 96], wage=0)
    made = shoal.protect(data, schema(), "k-anonymity", k=2, unit_columns=["income"], seed=1)
    assert made.partition[0].labels[[0, 1]].tolist() == made.partition[0].labels[[2, 2]].tolist()
    assert made.data["age"].value_counts().to_dict() == {11: 3, 95: 3}
    assert whole_units(shoal.KAnonymity(), None, ["age"], 2) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "options", "word"),
    [
        ({}, {"unit_columns": ["incomes"]}, "unit_columns names column 'incomes', which is not released"),
        (
            {},
            {"unit_columns": ["wage"]},
            r"column 'wage' is declared as an attribute of 'household', and row \d+",
        ),
        ({}, {"strata": "tenure", "unit_columns": ["income"], "k": 40}, "tenure"),
        ({"region": list("ns")}, {"strata": "region", "unit_columns": ["income"]}, "rows in several strata"),
    ],
)
@pytest.mark.parametrize("case", ["k-anonymity", "swap-mdav", "swap-ranking"])
def test_what_cannot_stay_whole_is_refused(
    case: str, changed: dict[str, list[str]], options: dict[str, Any], word: str
) -> None:
    data = table()
    for name, values in changed.items():
        data[name] = np.resize(values, len(data))
    with pytest.raises((OptionError, InputError), match=word):
        released(case, data, **options)


@pytest.mark.parametrize("method", ["suppress", "t-closeness", "anatomy"])
def test_methods_that_change_households_row_by_row_refuse_the_option_in_one_line(method: str) -> None:
    with pytest.raises(OptionError, match=f"method '{method}' has no option 'unit_columns'") as refused:
        shoal.protect(table(), schema(), method, unit_columns=["income"], seed=1)
    assert "\n" not in str(refused.value)


def test_a_unit_must_be_declared() -> None:
    plain = shoal.Schema(tuple(one for one in schema().attributes if one.role != "unit"))
    with pytest.raises(OptionError, match="needs a column with the role unit"):
        shoal.protect(
            table().drop(columns="household"), plain, "k-anonymity", k=K, unit_columns=["income"], seed=1
        )


def test_labels_that_divide_a_household_are_refused() -> None:
    data = table()
    labels = np.arange(len(data)) % 3
    with pytest.raises(OptionError, match="different clusters"):
        released("k-anonymity", data, labels=labels.tolist())
    whole = data["household"].to_numpy() % 3
    assert unequal(released("k-anonymity", data, labels=whole.tolist()), data) == []


def test_different_weights_in_a_household_are_refused_and_equal_ones_kept(tmp_path: Path) -> None:
    data = table()
    entries = [*schema().to_dict()["attribute"], {"name": "weight", "role": "weight", "kind": "numeric"}]
    weighted = shoal.Schema.from_dict({"attribute": entries})
    options: dict[str, Any] = {"k": K, "unit_columns": list(OF_HOUSEHOLD), "seed": 1}
    by_household = data.assign(weight=data["household"] % 2 + 1.0)
    made = shoal.protect(by_household, weighted, "swap-ranking", **options)
    assert unequal(made, by_household) == []
    for weight in (1.0, 2.0):
        own = by_household["weight"] == weight
        assert made.aligned["income"][own].groupby(by_household["household"][own]).first().sum() == (
            data["income"][own].groupby(data["household"][own]).first().sum()
        )
    with pytest.raises(OptionError, match="different survey weights"):
        shoal.protect(data.assign(weight=np.arange(len(data)) % 7 + 1.0), weighted, "swap-ranking", **options)
