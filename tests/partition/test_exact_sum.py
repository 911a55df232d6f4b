"""Running sums that stay exact while records leave."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.partition.base import cutters, pieces_sum, rounded
from tests.conftest import examples


@settings(max_examples=examples(200), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 300), spread=st.integers(0, 9))
def test_sum_after_removals_equals_fsum_of_the_rest(seed, n, spread):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(2, n)) * 10.0 ** rng.integers(-spread, spread + 1, (2, n))
    cut = cutters(columns)
    gone = rng.random(n) < rng.random()
    sums = pieces_sum(columns, cut)
    for i in np.flatnonzero(gone):
        sums -= pieces_sum(columns[:, i : i + 1], cut)
    assert rounded(sums).tolist() == [math.fsum(column[~gone]) for column in columns]


def test_a_plain_running_sum_would_fail():
    column = np.array([1e16, 1.0, 0.1])
    assert (column.sum() - 1e16) != 1.1
    cut = cutters(column[np.newaxis])
    rest = pieces_sum(column[np.newaxis], cut) - pieces_sum(column[np.newaxis, :1], cut)
    assert rounded(rest)[0] == 1.1


def test_extreme_columns_do_not_overflow_or_vanish():
    columns = np.array([[5e-324, 1e-310, 0.0], [1e150, -1e150, 1e130], [0.0, 0.0, 0.0]])
    assert rounded(pieces_sum(columns, cutters(columns))).tolist() == [
        math.fsum(column) for column in columns
    ]
