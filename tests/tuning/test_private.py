"""The private choice of k: its score has the proved sensitivity, its draws follow the weights, its cost is stated."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import shoal
from shoal.errors import ClaimError, OptionError, OutputError
from shoal.io import read
from shoal.mechanisms.registry import load_recipe
from shoal.noise import Seeded, Source
from shoal.partition import ranking
from shoal.partition.univariate import group_sizes
from shoal.privacy import Accountant, OverspendError
from shoal.release.protection import Preparation, prepare
from shoal.survey import survey, survey_schema
from shoal.tuning.grid import Setting
from shoal.tuning.private import (
    UNITS,
    choose_privately,
    coarse,
    rank_fixed_penalties,
    rank_fixed_sse,
)

THRESHOLD = 1e-9


def changes(width: int, n: int, k: int, remainder: str) -> list[Fraction]:
    """How far the score moves for every table of n values from 0 to width and every replacement of one of them."""
    sizes = group_sizes(n, k, remainder)
    score = {
        table: rank_fixed_sse(np.array(table), sizes)
        for table in combinations_with_replacement(range(width + 1), n)
    }
    return [
        abs(score[table] - score[tuple(sorted((*table[:place], value, *table[place + 1 :])))])
        for table in score
        for place, value in product(range(n), range(width + 1))
    ]


@pytest.mark.parametrize("remainder", ["middle", "last", "first"])
@pytest.mark.parametrize(
    ("width", "n", "k"), [(4, 6, 2), (4, 7, 3), (5, 5, 2), (5, 5, 5), (3, 8, 4), (7, 4, 3)]
)
def test_a_replaced_value_moves_the_score_by_at_most_the_squared_width(
    width: int, n: int, k: int, remainder: str
) -> None:
    most = max(changes(width, n, k, remainder))
    largest = int(group_sizes(n, k, remainder).max())
    assert most <= Fraction(largest - 1, largest) * width**2
    # and not by much less: a bound of half of it would be wrong
    assert most > width**2 / 2 or k == 2


def test_groups_that_follow_the_values_would_break_the_bound() -> None:
    """Two groups cut at the largest gap: one value decides where forty others belong."""

    def by_gap(table: list[int]) -> Fraction:
        ordered = np.sort(np.array(table))
        cut = int(np.argmax(np.diff(ordered))) + 1
        return rank_fixed_sse(ordered, np.array([cut, len(table) - cut]))

    many = [0] * 20 + [40] * 20
    assert abs(by_gap([*many, 81]) - by_gap([*many, 79])) > 2 * 81**2


@settings(max_examples=60)
@given(st.data())
def test_the_score_is_the_error_of_the_groups_that_are_released(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 30))
    k = data.draw(st.integers(1, n))
    remainder = data.draw(st.sampled_from(["middle", "last", "first"]))
    x = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)))
    made = ranking(x, k, remainder)
    error = ((x - made.centroids(x)[made.labels]) ** 2).sum()
    found = rank_fixed_sse(np.sort(x), group_sizes(n, k, remainder))
    assert float(found) == pytest.approx(error, abs=1e-9)


@given(st.integers(1, 2**52), st.lists(st.integers(0, 2**52), min_size=1))
def test_coarse_values_keep_their_order_and_their_range(steps: int, values: list[int]) -> None:
    positions = np.sort(np.minimum(np.array(values, dtype=np.int64), steps))
    found, width = coarse(positions, steps)
    assert (np.diff(found) >= 0).all()
    assert found.min() >= 0
    assert found.max() <= width < 2**16
    assert width >= min(steps, 2**15)


def prepared(table: pa.Table, k: int, **options: Any) -> Preparation:
    domains = {name: (0, 8) for name in table.column_names}
    return prepare(read(table), None, "ranking-dp", "1", k, domains=domains, link=False, **options)


@settings(max_examples=60)
@given(st.data())
def test_every_penalty_moves_by_at_most_the_units_that_are_charged(data: st.DataObject) -> None:
    n = data.draw(st.integers(4, 12))
    columns = data.draw(st.integers(1, 3))
    rows = [data.draw(st.lists(st.integers(0, 8), min_size=n, max_size=n)) for _ in range(columns)]
    place = data.draw(st.integers(0, n - 1))
    other = [list(row) for row in rows]
    for row in other:
        row[place] = data.draw(st.integers(0, 8))
    ks = data.draw(st.lists(st.integers(1, n), min_size=2, max_size=4, unique=True))
    split = data.draw(st.sampled_from(["equal", "optimal"]))
    tables = [pa.table({f"c{j}": row for j, row in enumerate(these)}) for these in (rows, other)]
    mine, theirs = (rank_fixed_penalties([prepared(table, k, split=split) for k in ks]) for table in tables)
    assert max(abs(a - b) for a, b in zip(mine, theirs, strict=True)) <= UNITS
    # so that no probability of the choice changes by more than its price
    for epsilon in (0.1, 3.0):
        weights = [np.exp(-epsilon / (2 * UNITS) * (np.array(p) - min(p))) for p in (mine, theirs)]
        one, two = (weight / weight.sum() for weight in weights)
        assert np.abs(np.log(one / two)).max() <= epsilon * (1 + 1e-12)


def candidates(ks: list[int], n: int = 400) -> dict[Setting, Preparation]:
    table = survey(n)
    return {
        Setting("ranking-dp", k): prepare(
            read(table), survey_schema(), "ranking-dp", "1", k, columns=["age", "income"], link=False
        )
        for k in ks
    }


def chi_square(drawn: list[int], weights: np.ndarray) -> float:
    counts = np.bincount(drawn, minlength=weights.size)
    wanted = len(drawn) * weights / weights.sum()
    return float(chi2.sf(((counts - wanted) ** 2 / wanted).sum(), weights.size - 1))


def choose(found: dict[Setting, Preparation], epsilon: Fraction, source: Source) -> Setting:
    """One choice, for which all is spent that is reserved."""
    account = Accountant.of({"choice": epsilon}, epsilon, source)
    best = choose_privately(found, account.spend("choice", epsilon))
    assert account.unspent() == {}
    return best


def test_draws_follow_the_exponential_weights_and_the_whole_budget_at_once_is_noticed() -> None:
    found = candidates([15, 40, 100])
    penalties = np.array(rank_fixed_penalties(list(found.values())))
    places = {setting: place for place, setting in enumerate(found)}
    source = Seeded(3)
    drawn = [places[choose(found, Fraction(1, 5), source)] for _ in range(1500)]
    excess = (penalties - penalties.min()) / UNITS
    assert chi_square(drawn, np.exp(-0.1 * excess)) > THRESHOLD
    assert chi_square(drawn, np.exp(-0.2 * excess)) < THRESHOLD


def test_a_large_budget_finds_the_least_penalty() -> None:
    found = candidates([3, 10, 40, 100, 200])
    penalties = rank_fixed_penalties(list(found.values()))
    best = list(found)[int(np.argmin(penalties))]
    assert best not in (next(iter(found)), list(found)[-1])
    assert all(choose(found, Fraction(10**6), Seeded(seed)) == best for seed in range(5))


def test_a_choice_that_was_paid_for_once_is_made_once() -> None:
    found = candidates([5, 10])
    spend = Accountant.of({"choice": Fraction(1)}, Fraction(1), Seeded(1)).spend("choice", Fraction(1))
    choose_privately(found, spend)
    with pytest.raises(OverspendError, match="drawn twice"):
        choose_privately(found, spend)


BOUGHT = [{"setting": "k", "chosen": 5, "candidates": [5, 10]}]


def tuned(out: Path | None = None, **options: Any) -> shoal.Tuning:
    arguments = {"columns": ["age", "income"], "link": False, "private": "0.25", "out": out, **options}
    return shoal.tune(survey(300), survey_schema(), "1", **arguments)


def test_what_the_choice_cost_is_a_line_of_its_own_and_part_of_the_claim(tmp_path: Path) -> None:
    found = tuned(tmp_path / "out")
    assert found.private
    assert found.best is not None
    assert found.rows == ()
    recipe = load_recipe(tmp_path / "out" / "method.toml")
    assert (recipe["tuned"], recipe["k"]) == ("k", found.best.k)
    statement = shoal.protect(survey(300), **recipe).statement
    assert statement.publishable
    assert statement.data_dependent == ()
    assert statement.epsilon == Fraction(5, 4)
    assert statement.spending["choice of k"] == Fraction(1, 4)
    assert sum(filter(None, statement.spending.values())) == Fraction(5, 4)
    assert statement.settings["epsilon"] == 1
    assert "ε = 1.25" in statement.sentence
    assert any("exponential mechanism" in condition for condition in statement.conditions)
    assert not any("all settings were fixed" in condition for condition in statement.conditions)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["method.toml", "tuning.json"]


def test_the_price_of_a_choice_is_that_of_a_unit_too() -> None:
    table = survey(40).append_column("who", pa.array([i // 2 for i in range(40)]))
    entries = [
        {"name": "age", "lo": 18, "hi": 99},
        {"name": "who", "kind": "nominal", "role": "unit", "max_rows": 2},
    ]
    schema = shoal.Schema.from_dict({"attribute": entries})
    release = shoal.protect(table, schema, "ranking-dp", "1", 5, tuned_epsilon="0.5", tuned_choice=BOUGHT)
    assert release.statement.epsilon == Fraction(3, 2)
    assert release.statement.spending["choice of k"] == Fraction(1, 2)
    assert any("that of ε = 0.5 per row" in condition for condition in release.statement.conditions)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("ranking-dp", {"k": 5}),
        ("mdav-dp", {"k": 5}),
        ("idp-cbls", {"k": 5}),
        ("k-anonymity", {"k": 5, "epsilon": None}),
        ("insensitive-dp", {"k": 5, "composition": "parallel"}),
    ],
)
def test_the_price_is_added_to_claim_one_under_replace_one_only(method: str, options: dict[str, Any]) -> None:
    arguments = {
        "epsilon": "1",
        "columns": ["age", "income"],
        "tuned": "k",
        "tuned_epsilon": "0.1",
        "tuned_choice": BOUGHT,
        **options,
    }
    with pytest.raises(ClaimError, match="cannot be added to the claim"):
        shoal.protect(survey(60), survey_schema(), method, **arguments)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"methods": ["mdav-dp"]}, "ranking-dp only, not mdav-dp"),
        ({"methods": ["ranking-dp", "laplace"]}, "ranking-dp only"),
        ({"link": None}, "claims dp-given-partition: release one column, or give link=False"),
        ({"utility": "wasserstein"}, "leave utility out"),
        ({"target": "income>30000"}, "leave target out"),
        ({"max_risk": 2}, "leave max_risk out"),
        ({"noises": ["staircase"]}, "leave noises out"),
        ({"columns": ["age", "region"]}, "claims dp-given-partition"),
        ({"columns": ["age", "savings"], "missing": "drop"}, "without using the records: missing=drop"),
    ],
)
def test_what_has_no_proof_is_refused_with_the_reason(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ClaimError, match=words):
        tuned(**options)


def test_a_domain_from_the_records_is_refused() -> None:
    data = pa.table({"x": [1.0, 5.0, 9.0, 7.0]})
    with pytest.raises(ClaimError, match="domain_from_data"):
        shoal.tune(data, epsilon="1", ks=[2, 3], private="1", domain_from_data=1.5, types={"x": "decimal"})


def test_a_choice_needs_two_candidates_and_a_folder_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="nothing to choose privately"):
        tuned(ks=[10])
    with pytest.raises(OptionError, match="larger than the number of records"):
        tuned(ks=[10, 1000])
    (tmp_path / "method.toml").write_text("")
    with pytest.raises(OutputError, match="made once"):
        tuned(tmp_path)


def test_one_column_needs_no_unlinking() -> None:
    assert tuned(columns=["income"], link=None).private


def test_the_split_can_be_chosen_with_k() -> None:
    found = tuned(splits=["equal", "optimal"], ks=[10, 50], private="1e6")
    assert found.tuned is not None
    assert found.tuned.what == ("k", "split")
    assert 'tuned = "k, split"' in (found.recipe or "")
