"""Chapter 3 of the thesis: the printed tables beside what the library computes."""

from __future__ import annotations

import math
from functools import cache

import pytest

from benchmarks import thesis3
from tests.conftest import data_file

EIA, CENSUS = "eia.csv", "census.csv"


@cache
def experiment(name: str) -> thesis3.Experiment:
    data_file(name)
    return thesis3.eia() if name == EIA else thesis3.census()


def rounding(text: str) -> float:
    """Half a unit of the last printed digit."""
    return 0.5 * 10.0 ** -thesis3.printed_digits(text)


def printed(name: str, method: str, k: int) -> tuple[str, str]:
    return thesis3.PRINTED[experiment(name).name][method][thesis3.SIZES.index(k)]


@pytest.mark.parametrize("k", thesis3.SIZES)
def test_eia_identical_quasi_identifiers_are_reproduced_digit_by_digit(k: int) -> None:
    mean, spread, _ = thesis3.measured(experiment(EIA), "MDAV-ID", k, runs=1)
    for value, text in zip((mean, spread), printed(EIA, "MDAV-ID", k), strict=True):
        assert thesis3.rounds_to(value, text), (value, text)


def agrees_within_chance(name: str, method: str, k: int, runs: int) -> None:
    mean, _, error = thesis3.measured(experiment(name), method, k, runs)
    text, _ = printed(name, method, k)
    # the printed mean is one of 100 executions
    both = error * math.sqrt(1 + runs / 100)
    assert abs(mean - float(text)) <= 5 * both + rounding(text), (mean, text, error)


@pytest.mark.parametrize("k", thesis3.SIZES)
def test_eia_swapping_by_rank_agrees_within_chance(k: int) -> None:
    agrees_within_chance(EIA, "IR-SWAP", k, runs=20)


@pytest.mark.parametrize("k", [200, 300])
def test_eia_swapping_by_mdav_agrees_within_chance(k: int) -> None:
    agrees_within_chance(EIA, "MDAV-SWAP", k, runs=8)


@pytest.mark.slow
@pytest.mark.parametrize("k", [5, 7, 9, 11, 25, 50, 100])
def test_eia_swapping_by_mdav_agrees_within_chance_for_small_groups(k: int) -> None:
    agrees_within_chance(EIA, "MDAV-SWAP", k, runs=6)


@pytest.mark.parametrize("k", thesis3.SIZES)
def test_census_identical_quasi_identifiers_are_within_six_percent(k: int) -> None:
    mean, _, _ = thesis3.measured(experiment(CENSUS), "MDAV-ID", k, runs=1)
    text, _ = printed(CENSUS, "MDAV-ID", k)
    assert abs(mean - float(text)) <= 0.06 * float(text)


@pytest.mark.parametrize(
    "k", [pytest.param(k, marks=[pytest.mark.slow] if k < 50 else []) for k in thesis3.SIZES]
)
def test_census_swapping_by_mdav_is_within_six_percent(k: int) -> None:
    mean, _, error = thesis3.measured(experiment(CENSUS), "MDAV-SWAP", k, runs=10)
    text, _ = printed(CENSUS, "MDAV-SWAP", k)
    assert abs(mean - float(text)) <= 0.06 * float(text) + 3 * error


def test_original_correlations_are_those_of_table_3_6_but_for_one_misprint() -> None:
    computed = thesis3.correlations(experiment(CENSUS).values)
    _, lines = thesis3.printed_matrix("original")
    wrong = [
        (row + 1, 7 + column)
        for row, cells in enumerate(lines)
        for column, text in zip(range(7 - len(cells), 7), cells, strict=True)
        if not thesis3.rounds_to(computed[row, column], text)
    ]
    # print has .70 where .070 belongs
    assert wrong == [(9, 12)]
    assert computed[8, 5] == pytest.approx(0.070, abs=5e-4)


def test_correlations_of_identical_quasi_identifiers_are_near_table_3_7() -> None:
    computed = thesis3.correlations(thesis3.identical(experiment(CENSUS), 12))
    values, lines = thesis3.printed_matrix("MDAV-ID")
    cells = [
        (computed[row, column], values[row, column], text)
        for row, line in enumerate(lines)
        for column, text in zip(range(7 - len(line), 7), line, strict=True)
    ]
    assert sum(thesis3.rounds_to(own, text) for own, _, text in cells) >= 55
    assert max(abs(own - value) for own, value, _ in cells) < 0.015
