"""Matrices of PRAM: read in every notation, made within their ε, priced like brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import OptionError
from shoal.mechanisms.pram.matrix import (
    for_diagonal,
    for_epsilon,
    in_order,
    largest_ratio,
    log_rounded_up,
    probability_text,
)

NAMED = {"f": {"f": "0.9", "m": "0.1"}, "m": {"f": "1/3", "m": "2/3"}}
ROWS = [["0.9", "0.1"], ["1/3", "2/3"]]


def weights_of(given_matrix: Any) -> list[list[int]]:
    method = shoal.Pram(matrix={"sex": given_matrix})
    ((_, matrix),) = method.matrix
    return in_order("sex", matrix, ("f", "m")).tolist()


def test_all_notations_mean_the_same_matrix(tmp_path: Path) -> None:
    path = tmp_path / "sex.csv"
    path.write_text(",m,f\nm,2/3,1/3\nf,0.1,0.9\n", "utf-8")
    wanted = [[9, 1], [1, 2]]
    assert weights_of(NAMED) == weights_of(ROWS) == weights_of(str(path)) == wanted
    # an entry that is left out is 0, and the order of the rows does not matter
    assert weights_of({"m": {"m": 1}, "f": {"m": "0.5", "f": "0.5"}}) == [[1, 1], [0, 1]]


@pytest.mark.parametrize(
    ("matrix", "word"),
    [
        ({}, "table with a matrix per column"),
        ("sex", "table with a matrix per column"),
        ({"sex": [["0.9", "0.2"], ["0.1", "0.9"]]}, "row '1' add up to 1.1, not 1"),
        ({"sex": {"f": {"f": "0.9"}}}, "row 'f' add up to 0.9, not 1"),
        ({"sex": {"f": {"f": "0.9", "x": "0.1"}}}, "a probability for 'x' in row 'f', and no row 'x'"),
        ({"sex": [["0.9", "0.1"], [1]]}, "one of them has 1 entries"),
        ({"sex": [["1.5", "-0.5"], [0, 1]]}, "outside 0 to 1: 1.5"),
        ({"sex": [["a", "b"], [0, 1]]}, "sex"),
        ({"sex": 3}, "got 3"),
        ({"sex": []}, "must be a table of probabilities"),
        ({"sex": "nowhere.csv"}, "cannot read the matrix of column 'sex' from 'nowhere.csv'"),
        ({"sex": [[f"{k}/9999999967" for k in (1, 9999999966)]] * 2}, ""),
        ({"sex": [["1/9999999967", "9999999966/9999999967"], ["1/7", "6/7"]]}, ""),
        ({"sex": {"north": [["0.9", "0.1"], ["0.1", "0.9"]]}}, "name the column of the strata with stratum"),
    ],
)
def test_what_is_no_matrix_is_refused_with_its_place(matrix: Any, word: str) -> None:
    if not word:
        assert shoal.Pram(matrix=matrix).matrix
        return
    with pytest.raises(OptionError, match=word):
        shoal.Pram(matrix=matrix)


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sex.csv"
    path.write_text(",f,m\nf,1\n", "utf-8")
    with pytest.raises(OptionError, match="is not a matrix for column 'sex'"):
        shoal.Pram(matrix={"sex": str(path)})


def test_probabilities_with_too_many_decimals_are_refused() -> None:
    with pytest.raises(OptionError, match="round them to 15 or fewer"):
        shoal.Pram(matrix={"sex": [["0.1234567890123456789", "0.8765432109876543211"], [0, 1]]})


@pytest.mark.parametrize("matrix", [{"sex": NAMED}, {"sex": ROWS}])
def test_a_recipe_holds_the_same_matrix(matrix: Any) -> None:
    method = shoal.Pram(matrix=matrix)
    assert shoal.Pram.configure(**method.settings()) == method


@given(st.fractions(0, 1))
def test_a_probability_is_read_back_from_its_text(value: Fraction) -> None:
    text = probability_text(value)
    above, _, under = text.partition("/")
    assert (Fraction(int(above), int(under)) if under else Fraction(text)) == value


@given(st.integers(2, 500), st.fractions(Fraction(1, 10**9), 10**6))
def test_a_matrix_made_for_an_epsilon_costs_no_more_and_hardly_less(values: int, epsilon: Fraction) -> None:
    weights = for_epsilon(values, epsilon)
    stays, moves = int(weights[0, 0]), int(weights[0, 1])
    assert moves >= 1
    # rounded up, it may cost one unit of the last decimal more than it does
    assert log_rounded_up(Fraction(stays, moves)) <= epsilon + Fraction(1, 10**9)
    assert math.log(stays / moves) <= float(epsilon) * (1 + 1e-15)
    if Fraction(1, 1000) < epsilon < 12 and values < 100:
        assert math.log(stays / moves) >= float(epsilon) * (1 - 1e-5)


@given(st.integers(1, 40), st.fractions(0, 1, max_denominator=1000))
def test_the_diagonal_is_exactly_the_wanted_one(values: int, keep: Fraction) -> None:
    weights = for_diagonal(values, keep)
    if values > 1:
        assert {Fraction(int(row[place]), int(row.sum())) for place, row in enumerate(weights)} == {keep}


SMALL = st.integers(1, 9)


@given(st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=3, max_size=6))
def test_the_ratio_is_that_of_brute_force(rows: list[tuple[int, ...]]) -> None:
    weights = np.array(rows, dtype=np.int64)
    exact = [[Fraction(entry, sum(row)) for entry in row] for row in rows]
    wanted = max(one[k] / other[k] for one, other in product(exact, exact) for k in range(3))
    assert largest_ratio([weights]) == largest_ratio([weights[:2], weights[2:]]) == wanted


def test_a_zero_beside_a_possible_value_has_no_ratio_and_an_impossible_value_does_not_count() -> None:
    assert largest_ratio([np.array([[1, 0], [1, 1]])]) is None
    assert largest_ratio([np.array([[1, 0], [1, 0]])]) == 1


@given(st.fractions(1, 10**12))
def test_logarithms_are_rounded_up_to_nine_decimals(ratio: Fraction) -> None:
    found = log_rounded_up(ratio)
    assert (found * 10**9).denominator == 1
    near = math.log(ratio.numerator) - math.log(ratio.denominator)
    assert near - 1e-12 <= found <= near + 1.001e-9
