"""Chapter 3 of the thesis: exact figures to their last digit, drawn ones within chance, and every statement."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from papers import Desk, Number, Study
from papers.thesis import chapter3
from papers.thesis.chapter3_claims import claims
from papers.thesis.chapter3_facts import known_members, linked, random_groups, swap_chances
from papers.thesis.chapter3_print import CHANGES, METHODS, RUNS, SIZES, cells, filled
from papers.thesis.chapter3_runs import changes
from tests.conftest import THOROUGH, data_file

TINY = chapter3.Effort(
    swaps=4,
    rankings=8,
    singles=4,
    census_sizes=(25, 100, 300),
    eia_sizes=(200, 300),
    variable_sizes=(),
)


@pytest.fixture(scope="module")
def folder() -> Path:
    data_file("eia.csv")
    return data_file("census.csv").parent


@pytest.fixture(scope="module")
def study(folder: Path) -> Study:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chapter3.Effort, "of", classmethod(lambda cls, desk: TINY))
        return chapter3.study(Desk(folder))


def numbers(study: Study, table: str) -> list[Number]:
    return [number for number in study.numbers if number.where == table]


def test_eia_identical_quasi_identifiers_are_equal_digit_by_digit(study: Study) -> None:
    found = [number for number in numbers(study, "Table 3.11") if number.what.startswith("MDAV-ID")]
    assert len(found) == 2 * len(SIZES)
    assert {number.verdict for number in found} == {"equal"}


def test_original_correlations_are_those_of_table_3_6_but_for_one_misprint(study: Study) -> None:
    found = numbers(study, "Table 3.6")
    assert len(found) == 70
    (wrong,) = [number for number in found if number.verdict != "equal"]
    assert (wrong.what, wrong.printed) == ("A9, A12", ".70")
    assert wrong.found == pytest.approx(0.070, abs=5e-4)


def test_correlations_of_identical_quasi_identifiers_are_near_table_3_7(study: Study) -> None:
    found = numbers(study, "Table 3.7")
    assert sum(number.verdict == "equal" for number in found) >= 55
    assert max(abs(number.difference) for number in found) < 0.015


def test_every_printed_cell_is_there_and_every_difference_has_a_reason(study: Study) -> None:
    assert [len(numbers(study, f"Table 3.{table}")) for table in (8, 9)] == [70, 70]
    # all sizes of the two quick methods, and those of the slow one that were asked for
    assert len(numbers(study, "Table 3.10")) == 2 * (9 + 9 + 3)
    assert len(numbers(study, "Table 3.11")) == 2 * (9 + 9 + 2)
    assert all(number.why for number in study.numbers if number.verdict == "differs")
    # four runs know little of their own spread; a wrong method would be off nearly everywhere
    assert sum(number.verdict == "differs" for number in study.numbers) < 80


def test_the_prototype_agrees_within_chance(study: Study) -> None:
    found = numbers(study, "a throw-away prototype")
    assert [number.verdict for number in found] == ["within Monte Carlo error"] * 4


def test_statements_are_all_there_and_judged(study: Study) -> None:
    verdicts = {claim.said: claim.verdict for claim in study.claims}
    assert len(study.claims) == 33
    assert verdicts["Random groups give probabilistic |T|-anonymity."] == "fails"
    assert verdicts["MDAV-SWAP is better than MDAV-ID (Census)."] == "holds partly"
    assert verdicts["IR-SWAP is clearly the best of the three (Census)."] == "holds"
    assert verdicts["IR-SWAP is clearly the best of the three (EIA)."] == "holds partly"
    assert [claim.where for claim in study.claims if claim.verdict == "not tested"] == ["3.3.1"]
    assert len(study.errata) == 7


def test_print_itself_has_exceptions_to_its_statements() -> None:
    """Verdicts follow the numbers: those of print give the same order, made-up ones another."""
    printed = {
        (name, method, k): float(CHANGES[name][method][number][0])
        for name in CHANGES
        for method in METHODS
        for number, k in enumerate(SIZES)
    }
    runs = {"MDAV-ID": 0.3, "MDAV-SWAP": 0.2, "IR-SWAP": 0.1}
    losses = {"Census": 0.4, "EIA": 0.6}

    def verdicts(means: dict[tuple[str, str, int], float]) -> dict[str, str]:
        return {claim.said: claim.verdict for claim in claims(means, runs, losses)}

    found = verdicts(printed)
    assert found["MDAV-SWAP is better than MDAV-ID (EIA)."] == "holds partly"
    assert found["IR-SWAP is clearly the best of the three (EIA)."] == "holds partly"
    better = {place: 0.001 if place[1] == "IR-SWAP" else value for place, value in printed.items()}
    assert verdicts(better)["IR-SWAP is clearly the best of the three (EIA)."] == "holds"
    worse = {place: 0.9 if place[1] == "IR-SWAP" else value for place, value in printed.items()}
    assert verdicts(worse)["IR-SWAP is clearly the best of the three (Census)."] == "fails"


def agrees_within_chance(folder: Path, name: str, method: str, k: int, runs: int) -> None:
    found = np.array(changes(folder, name, method, k, runs))[:, 0]
    text = filled(CHANGES[name][method][SIZES.index(k)][0])
    error = found.std(ddof=1) * math.sqrt(1 / runs + 1 / RUNS)
    rounding = 0.5 * 10.0 ** -len(text.partition(".")[2])
    assert abs(found.mean() - float(text)) <= 5 * error + rounding, (found.mean(), text, error)


@pytest.mark.parametrize("k", SIZES)
def test_eia_swapping_by_rank_agrees_within_chance(folder: Path, k: int) -> None:
    agrees_within_chance(folder, "EIA", "IR-SWAP", k, runs=20)


def test_a_size_one_step_away_would_not_agree(folder: Path) -> None:
    found = np.mean([run[0] for run in changes(folder, "EIA", "IR-SWAP", 50, 10)])
    assert found != pytest.approx(float(CHANGES["EIA"]["IR-SWAP"][SIZES.index(25)][0]), rel=0.3)


# every second size, all of them in a thorough run
SOME_SIZES = [
    pytest.param(k, marks=THOROUGH if place % 2 else [pytest.mark.slow]) for place, k in enumerate(SIZES)
]


@pytest.mark.parametrize("k", SOME_SIZES)
def test_eia_swapping_by_mdav_agrees_within_chance(folder: Path, k: int) -> None:
    agrees_within_chance(folder, "EIA", "MDAV-SWAP", k, runs=8)


@pytest.mark.parametrize("method", ["MDAV-ID", "MDAV-SWAP"])
@pytest.mark.parametrize("k", SOME_SIZES)
def test_census_is_within_six_percent(folder: Path, method: str, k: int) -> None:
    found = np.array(changes(folder, "Census", method, k, runs=10))[:, 0]
    error = found.std(ddof=1) / math.sqrt(found.size) if found.size > 1 else 0.0
    printed = float(CHANGES["Census"][method][SIZES.index(k)][0])
    assert abs(found.mean() - printed) <= 0.06 * printed + 3 * error


def test_random_groups_keep_a_value_with_its_owner_one_time_in_k() -> None:
    assert swap_chances(random_groups(6, 3)) == [Fraction(1, 3), *[Fraction(2, 15)] * 5]
    assert swap_chances(random_groups(4, 2)) == [Fraction(1, 2), *[Fraction(1, 6)] * 3]
    # one group of all is what |T|-anonymity would be
    assert swap_chances(random_groups(4, 4)) == [Fraction(1, 4)] * 4


def test_who_knows_the_others_knows_the_last() -> None:
    assert [known_members((5, 6, 7), known) for known in range(3)] == [Fraction(1, 3), Fraction(1, 2), 1]
    assert known_members((5, 5, 7), 0) == Fraction(2, 3)


def test_the_examples_are_bayes_rule() -> None:
    a, b, c, d = (Fraction(n, 10) for n in (7, 2, 3, 4))
    assert linked([[a], [c]]) == a / (a + c)
    assert linked([[a, b], [c, d]]) == a * d / (a * d + c * b)
    # Example 3 with N = 3, M = 2; the sum as printed leaves out every link of the first record but one
    rows = [[a, b], [c, d], [b, c]]
    top = a * d + a * c
    whole = top + c * b + c * c + b * b + b * d
    assert linked(rows) == top / whole
    assert top / top == 1 != linked(rows)


def test_digits_that_print_leaves_out_are_filled_up() -> None:
    assert [filled(text) for text in (".2", "1", "-.0011", ".98", ".010")] == [
        ".20",
        "1.00",
        "-.0011",
        ".98",
        ".010",
    ]
    assert [sum(1 for _ in cells(table)) for table in ("original", *METHODS)] == [70] * 4
