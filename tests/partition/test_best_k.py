"""The best fixed cluster size: every k is considered, and near ties are decided exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from shoal.errors import OptionError
from shoal.partition import best_k, expected_error, ranking
from shoal.partition.univariate import enlarged_group, group_sizes

REMAINDERS = ("middle", "last", "first")


def slow_best(x: list[int], width: int, epsilon: Fraction, remainder: str) -> int:
    """Every k in exact arithmetic; of equally good ones the largest."""
    noise = 2 * (Fraction(width) / epsilon) ** 2
    errors = {}
    for k in range(1, len(x) + 1):
        rest, error = sorted(x), Fraction(0)
        for size in group_sizes(len(x), k, remainder).tolist():
            group, rest = rest[:size], rest[size:]
            mean = Fraction(sum(group), size)
            error += sum((value - mean) ** 2 for value in group) + noise / size
        errors[k] = error
    return min(errors, key=lambda k: (errors[k], -k))


@pytest.mark.parametrize("remainder", REMAINDERS)
@pytest.mark.parametrize("epsilon", ["0.2", "1", "8", "60", "900"])
def test_equals_trying_every_k_exactly(remainder: str, epsilon: str) -> None:
    rng = np.random.default_rng(1)
    for n in (1, 2, 3, 7, 12, 31):
        for x in (
            rng.integers(0, 5, n),
            rng.integers(0, 1000, n),
            np.arange(n),
            10**9 + rng.integers(0, 9, n),
        ):
            width = int(np.ptp(x)) + 1
            expected = slow_best(x.tolist(), width, Fraction(epsilon), remainder)
            assert best_k(x, width, epsilon, remainder) == expected


@pytest.mark.parametrize("remainder", REMAINDERS)
def test_no_k_of_a_larger_column_is_better(remainder: str) -> None:
    x = np.random.default_rng(2).lognormal(5, 1, 5000)
    errors = {k: expected_error(x, ranking(x, k, remainder), 20_000, 2) for k in range(1, 1001)}
    found = best_k(x, 20_000, 2, remainder)
    assert 10 < found < 1000
    assert found == min(errors, key=lambda k: errors[k])


def test_the_ends() -> None:
    x = np.arange(100)
    assert best_k(x, 100, 10**6) == 1
    # one group of all records, whichever k above 50 it is called by
    assert best_k(x, 100, "0.0001") == 100
    assert best_k(np.zeros(37), 1, 1) == 37


def test_the_enlarged_group_depends_on_the_number_of_groups_only() -> None:
    for remainder in REMAINDERS:
        for n in range(1, 60):
            for k in range(1, n + 1):
                sizes = group_sizes(n, k, remainder)
                at = enlarged_group(n // k, remainder)
                assert (np.delete(sizes, at) == k).all()
                assert sizes.sum() == n


def test_an_unknown_remainder_is_refused() -> None:
    with pytest.raises(OptionError, match="Did you mean 'middle'"):
        best_k([1, 2, 3], 1, 1, "midle")
