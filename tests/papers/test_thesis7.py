"""Chapter 7 of the thesis: its examples to the digit, its recipe where it breaks, and every statement."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from papers import Desk, Study
from papers.thesis import chapter7
from papers.thesis.chapter3_facts import random_groups, swap_chances
from papers.thesis.chapter7_worlds import (
    GROUPS,
    MEDICAL,
    distance,
    generalisations,
    greedy,
    overdrawn,
    random_distributions,
    ratio,
    solvable,
    supports_of_neighbours,
    theoretical,
)
from shoal.evaluation.assessment import check
from tests.conftest import data_file


@pytest.fixture(scope="module")
def study() -> Study:
    return chapter7.study(Desk(data_file("census.csv").parent, quick=True))


def test_every_number_is_equal(study: Study) -> None:
    assert len(study.numbers) == 27
    assert {number.verdict for number in study.numbers} == {"equal"}


def test_statements_are_all_there(study: Study) -> None:
    verdicts = {claim.where: claim.verdict for claim in study.claims}
    assert len(study.claims) == 24
    assert [claim.where for claim in study.claims if claim.verdict == "fails"] == [
        "Algorithm 7.1",
        "7, 7.3, 7.3.1, 7.4, 8.1, 1.2",
        "7, 7.3.2, 7.4",
        "7.3.2",
    ]
    assert verdicts["Proposition 10"] == "holds"
    assert verdicts["7.2.1, Table 7.6"] == "holds"
    assert len(study.errata) == 7


def test_the_worked_example_and_a_worse_one() -> None:
    buckets = [0] * 4 + [1] * 4 + [2] * 4
    assert distance(GROUPS, buckets) == 1.5
    swapped = list(GROUPS)
    swapped[0], swapped[4] = 1, 2
    swapped[8], swapped[1] = swapped[1], swapped[8]
    assert distance(swapped, buckets) > 1.5
    # a group without a bucket is infinitely far
    assert distance([1] * 4 + [2] * 8, buckets) == np.inf


def test_the_recipe_overdraws_a_bucket_and_the_transportation_problem_does_not() -> None:
    sizes, taken = greedy(1000, 2, 7)
    assert sizes.tolist() == [333, 334, 333]
    assert taken.sum() == 1000
    assert overdrawn(1000, 2, 7) == 8
    assert overdrawn(12, 2, 1) == 0
    assert solvable(1000, 2, 7)


def test_ratios_over_sets_are_those_of_single_values() -> None:
    for one, other in random_distributions(10):
        points = max(max(a / b, b / a) for a, b in zip(one, other, strict=True))
        assert ratio(one, other) == pytest.approx(points)
    assert ratio([0.5, 0.5], [0.5, 0.5]) == 1
    assert ratio([0.25, 0.75], [0.5, 0.5]) == 2


def test_neighbouring_tables_have_no_release_in_common() -> None:
    """So no ε bounds the ratio of their probabilities; differential privacy would need all in common."""
    first, second, common = supports_of_neighbours()
    assert (first, second) == (36, 36)
    assert common == 0


def test_hidden_groups_are_groups_of_k_all_the_same() -> None:
    assert swap_chances(random_groups(8, 4))[0] == Fraction(1, 4)


def test_the_theoretical_shares() -> None:
    for t in (1, 2, 5):
        table = theoretical(t)
        assert table.sum(axis=1) == pytest.approx(1)
        assert table.mean(axis=0) == pytest.approx(1 / (t + 1))
        assert (table * (t + 1)).max() == pytest.approx(t)


def test_the_medical_tables() -> None:
    plain, general = (chapter7.medical_table(generalised=flag) for flag in (False, True))
    quasi = ["ethnicity", "born", "sex"]
    assert check(plain, quasi).k == 1
    assert check(general, quasi).k == 3
    assert len(MEDICAL) == 9


def test_minimal_generalisations_of_sixteen_records() -> None:
    reached = {(one, two): k for one, two, k in generalisations()}
    assert [place for place, k in reached.items() if k == 4] == [(0, 2), (1, 1), (2, 0)]
    assert reached[2, 2] == 16


def test_missing_data_is_named(tmp_path: Path) -> None:
    from shoal.errors import InputError

    with pytest.raises(InputError, match=r"census\.csv"):
        chapter7.study(Desk(tmp_path, quick=True))
