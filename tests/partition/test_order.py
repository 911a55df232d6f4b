"""`stable_order` equals numpy's stable argsort on every kind of input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shoal.partition import base
from shoal.partition.base import stable_order
from tests.conftest import examples


@pytest.fixture(autouse=True)
def _no_small_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays take numpy's own path; here the packed one is wanted."""
    monkeypatch.setattr(base, "_SMALL", 0)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sampled_from(["i1", "i4", "i8", "u1", "u8", "f4", "f8"]).flatmap(
        lambda kind: hnp.arrays(
            kind,
            st.integers(1, 60),
            elements={"allow_nan": False} if kind[0] == "f" else None,
            fill=st.nothing(),
        )
    )
)
def test_equals_stable_argsort(values: np.ndarray) -> None:
    assert np.array_equal(stable_order(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize(
    "values",
    [
        np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min, 0, -1, np.iinfo(np.int64).max]),
        np.array([0.0, -0.0, 1e-300, -1e-300, 0.0]),
        np.array([np.inf, -np.inf, 1e308, -1e308]),
        np.array([2**64 - 1, 0, 2**63], dtype=np.uint64),
        np.full(9, 7),
    ],
    ids=["extremes", "zeros", "infinities", "unsigned", "constant"],
)
def test_extreme_values(values: np.ndarray) -> None:
    assert np.array_equal(stable_order(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("shape", ["normal", "close", "mixed", "few"])
def test_values_that_do_not_fit_beside_their_index(shape: str) -> None:
    """64-bit keys leave no room for the index: low bits are dropped and repaired."""
    rng = np.random.default_rng(3)
    n = 50_000
    values = {
        "normal": rng.normal(size=n),
        "close": 1.0 + rng.integers(0, 5000, n) * 2.0**-52,
        "mixed": np.where(rng.random(n) < 0.001, 1.0 + rng.integers(0, 9, n) * 2.0**-52, rng.normal(size=n)),
        "few": rng.choice([-1e300, 0.0, 1.0, 1.0 + 2**-52, 1e300], n),
    }[shape]
    assert np.array_equal(stable_order(values), np.argsort(values, kind="stable"))
