"""Exact sums and coefficients, against their definitions in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.mechanisms.moments import statistics as power_sums
from shoal.mechanisms.moments.statistics import (
    Centred,
    Ratios,
    coskewness_ratios,
    coskewness_step,
    coskewness_steps,
    covariance_ratios,
    covariance_step,
    covariance_steps,
)
from shoal.partition import Partition

from . import exact_oracle as oracle

PAIRS = tuple(combinations_with_replacement(range(2), 2))
TRIPLES = tuple(combinations_with_replacement(range(2), 3))


@st.composite
def clustered(draw: st.DrawFn) -> tuple[list[NDArray[np.int64]], Partition, list[int]]:
    """Two attributes on lattices of any size, in a few clusters of at least three records, in any order."""
    widths = draw(st.lists(st.sampled_from([1, 7, 1000, 2**20, 2**52]), min_size=2, max_size=2))
    sizes = draw(st.lists(st.integers(3, 9), min_size=1, max_size=4))
    labels = draw(st.permutations([number for number, size in enumerate(sizes) for _ in range(size)]))
    columns = [
        np.array(draw(st.lists(st.integers(0, width), min_size=len(labels), max_size=len(labels))))
        for width in widths
    ]
    return columns, Partition.from_labels(labels), widths


def rows_of(columns: list[NDArray[np.int64]], partition: Partition, cluster: int) -> list[tuple[int, ...]]:
    places = np.flatnonzero(partition.labels == cluster)
    return [tuple(int(column[place]) for column in columns) for place in places]


@given(clustered())
def test_coefficients_are_those_of_the_definitions(
    made: tuple[list[NDArray[np.int64]], Partition, list[int]],
) -> None:
    columns, partition, widths = made
    centred = Centred.of(columns, partition)
    second = covariance_ratios(centred, widths, PAIRS)
    third = coskewness_ratios(centred, widths, TRIPLES)
    for cluster in range(len(partition)):
        rows = [
            tuple(Fraction(value, width) for value, width in zip(row, widths, strict=True))
            for row in rows_of(columns, partition, cluster)
        ]
        for place, (a, b) in enumerate(PAIRS):
            found = Fraction(second.above[cluster, place], second.under[cluster, place])
            assert found == oracle.covariance(rows, a, b)
        for place, (a, b, c) in enumerate(TRIPLES):
            found = Fraction(third.above[cluster, place], third.under[cluster, place])
            assert found == oracle.coskewness(rows, a, b, c)


@settings(max_examples=40)
@given(clustered(), st.integers(25, 60))
def test_short_words_change_nothing(
    made: tuple[list[NDArray[np.int64]], Partition, list[int]], word: int
) -> None:
    """The cut into digits is taken with words of many lengths."""
    columns, partition, _ = made
    centred = Centred.of(columns, partition)
    plain = [column.astype(object) for column in centred.columns]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(power_sums, "_WORD", word)
        for places in ((0,), (0, 1), (1, 1), (0, 1, 1), (1, 1, 1)):
            expected = np.add.reduceat(np.prod([plain[place] for place in places], axis=0), centred.starts)
            assert centred.sums(*places).tolist() == expected.tolist()


def test_steps_are_the_nearest_multiples() -> None:
    rng = np.random.default_rng(4)
    columns = [rng.integers(0, 101, 20), rng.integers(0, 1001, 20)]
    partition = Partition.from_labels(np.repeat([0, 1, 2], [3, 7, 10]))
    centred = Centred.of(columns, partition)
    for fine in (5, 2**12, 2**36):
        second = covariance_ratios(centred, [100, 1000], PAIRS)
        steps = covariance_steps(second, partition.sizes, fine)
        error = steps * covariance_step(partition.sizes, fine)[:, np.newaxis] - second.floats()
        assert (np.abs(error) <= covariance_step(partition.sizes, fine)[:, np.newaxis] * 0.5001).all()
        third = coskewness_ratios(centred, [100, 1000], TRIPLES)
        steps = coskewness_steps(third, partition.sizes, fine)
        error = steps * coskewness_step(partition.sizes, fine)[:, np.newaxis] - third.floats()
        assert (np.abs(error) <= coskewness_step(partition.sizes, fine)[:, np.newaxis] * 0.5001).all()
    assert coskewness_step(np.array([3]), 1)[0] == 2 * covariance_step(np.array([3]), 1)[0]


@given(
    st.integers(-(10**30), 10**30), st.integers(1, 10**20), st.integers(-(10**30), 10**30), st.integers(1, 50)
)
def test_rounding_adds_at_most_one_step(above: int, under: int, moved: int, times: int) -> None:
    """What the noise pays for: |round(a) - round(b)| ≤ ⌊|a - b|⌋ + 1, and never more than ⌈|a - b|⌉."""
    small = above % (under * 10**6)
    other = small + moved % (under * 10**6)
    found = Ratios(np.array([[small], [other]], dtype=object), np.array([[under]] * 2, dtype=object)).rounded(
        times
    )
    apart = Fraction(abs(other - small) * times, under)
    jump = abs(int(found[1, 0] - found[0, 0]))
    assert jump <= apart.numerator // apart.denominator + 1
    assert jump <= -(-apart.numerator // apart.denominator)
