"""States pass a matrix with exactly the probabilities of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from shoal.noise import Seeded, Source, through_matrix

Integers = NDArray[np.int64]
Sampler = Callable[[Integers, Integers, Source], Integers]
# the chance that a right sampler is rejected
FALSE_ALARM = 1e-9
WEIGHTS = np.array([[5, 2, 1], [1, 1, 1], [0, 3, 10**15]], dtype=np.int64)
RUNS = 30_000


def one_too_few(states: Integers, weights: Integers, source: Source) -> Integers:
    """A broken sampler: the last unit of a row's weights is never drawn."""
    running = np.cumsum(weights, axis=1)
    drawn = source.below(np.maximum(running[:, -1][states] - 1, 1))
    return np.array(
        [np.searchsorted(running[state], one, side="right") for state, one in zip(states, drawn, strict=True)]
    )


def by_released_row(states: Integers, weights: Integers, source: Source) -> Integers:
    """A broken sampler: the transposed matrix."""
    return through_matrix(states, np.ascontiguousarray(weights.T), source)


def smallest(sampler: Sampler, weights: Integers, seed: int) -> float:
    """The smallest probability of what is found, over the rows of a matrix, if the sampler is right."""
    size = len(weights)
    found = sampler(np.tile(np.arange(size), RUNS), weights, Seeded(seed)).reshape(RUNS, size)
    least = 1.0
    for state in range(size):
        counts = np.bincount(found[:, state], minlength=size)
        expected = RUNS * weights[state] / weights[state].sum()
        seen = expected > 5
        if (counts[expected == 0] > 0).any():
            return 0.0
        if seen.sum() > 1:
            rest = expected[seen] * counts[seen].sum() / expected[seen].sum()
            least = min(least, float(chisquare(counts[seen], rest).pvalue))
    return least


def test_frequencies_are_those_of_the_matrix() -> None:
    assert smallest(through_matrix, WEIGHTS, 3) > FALSE_ALARM


@pytest.mark.parametrize("broken", [one_too_few, by_released_row])
def test_the_same_test_rejects_a_broken_sampler(broken: Sampler) -> None:
    assert smallest(broken, WEIGHTS[:2, :2].copy(), 3) < FALSE_ALARM


class _Listed(Source):
    """A source whose uniform integers are given."""

    reproducible = True

    def __init__(self, drawn: tuple[int, ...]) -> None:
        self._drawn = drawn

    def words(self, n: int) -> NDArray[np.uint64]:
        raise AssertionError("only uniform integers are drawn")

    def below(self, bound: object, size: object = None) -> Integers:
        assert np.asarray(bound).tolist() == [8, 3]
        return np.array(self._drawn, dtype=np.int64)


def test_every_uniform_integer_is_placed_such_that_the_probabilities_are_exact() -> None:
    weights = np.array([[5, 2, 1], [1, 1, 1]], dtype=np.int64)
    found: Counter[tuple[int, ...]] = Counter()
    for drawn in product(range(8), range(3)):
        found[tuple(through_matrix(np.array([0, 1]), weights, _Listed(drawn)).tolist())] += 1
    exact = {
        (first, second): Fraction(int(weights[0, first]), 8) * Fraction(int(weights[1, second]), 3)
        for first in range(3)
        for second in range(3)
    }
    assert {pair: Fraction(count, 24) for pair, count in found.items()} == exact


def test_no_records_pass_no_matrix() -> None:
    assert through_matrix(np.zeros(0, dtype=np.int64), WEIGHTS, Seeded(1)).size == 0
