"""Mean SSE of the iDP paper against the formula written out record by record."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.errors import OptionError
from shoal.evaluation import evaluate
from shoal.evaluation.measures import mean_sse
from shoal.release.publication import protect

MATRIX = arrays(np.float64, (6, 3), elements=st.integers(-40, 40).map(float))


def distance(x: np.ndarray, y: np.ndarray, sigma: np.ndarray, power: int) -> float:
    """Equation (5), one record: power 2 as printed, 1 corrected."""
    m = len(x)
    return math.sqrt(sum(((a - b) / s**power) ** 2 for a, b, s in zip(x, y, sigma, strict=True))) / m


@given(MATRIX, MATRIX)
def test_equals_the_distance_of_the_paper_record_by_record(x: np.ndarray, y: np.ndarray) -> None:
    spread = x.std(axis=0, ddof=1)
    varies = spread > 0
    for metric, power in (("corrected", 1), ("paper", 2)):
        found = mean_sse(x, y, metric)  # type: ignore[arg-type]
        if not varies.any():
            assert math.isnan(found)
            continue
        squares = [
            distance(a[varies], b[varies], spread[varies], power) ** 2 for a, b in zip(x, y, strict=True)
        ]
        assert found == pytest.approx(sum(squares) / len(x), rel=1e-9)


def test_only_the_corrected_metric_has_no_units() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    assert mean_sse(100 * x, 100 * y) == pytest.approx(mean_sse(x, y))
    assert mean_sse(100 * x, 100 * y, "paper") == pytest.approx(mean_sse(x, y, "paper") / 100**2)


def test_missing_values_are_left_out_of_their_attribute() -> None:
    x = np.array([[0.0, 1.0], [2.0, np.nan], [4.0, 5.0]])
    y = np.array([[1.0, 1.0], [np.inf, 3.0], [4.0, 7.0]])
    expected = ((1 / 4 + 0) / 2 + (0 + 4 / 8) / 2) / 4
    assert mean_sse(x, y) == pytest.approx(expected)
    assert math.isnan(mean_sse(np.array([[np.nan]]), np.array([[1.0]])))


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(OptionError, match="metric 'plain' is not one of corrected, paper"):
        mean_sse(np.ones((2, 1)), np.ones((2, 1)), "plain")  # type: ignore[arg-type]


def test_part_of_an_evaluation_where_rows_correspond() -> None:
    frame = pd.DataFrame({"a": np.arange(30), "b": np.arange(30.0) ** 2})
    release = protect(
        frame, method="ranking-dp", epsilon=1, k=3, seed=1, domains={"a": (0, 30), "b": (0, 900)}
    )
    found = evaluate(frame, release).utility
    before, after = (table[["a", "b"]].to_numpy(dtype=np.float64) for table in (frame, release.aligned))
    assert found["mean_sse"] == pytest.approx(mean_sse(before, after))
    assert found["log10_mean_sse"] == pytest.approx(math.log10(mean_sse(before, after)))
    assert found["mean_sse_paper"] == pytest.approx(mean_sse(before, after, "paper"))
    assert found["log10_mean_sse_paper"] == pytest.approx(math.log10(mean_sse(before, after, "paper")))
    apart = evaluate(frame, release.data).utility
    assert apart["mean_sse"] is apart["log10_mean_sse"] is apart["mean_sse_paper"] is None
    nothing_lost = evaluate(frame, frame.assign(a=frame["a"])).utility
    assert nothing_lost["log10_mean_sse"] is None
