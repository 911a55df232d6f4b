"""The check after drawing: what it compares, and rows that do not fit their measurements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.mechanisms.pairs import mechanism
from shoal.mechanisms.pairs import model as check
from shoal.mechanisms.pairs.distributions import Answers


def test_numbers_of_other_positions() -> None:
    positions = np.array([0, 0, 1, 3, 4, 4, 4])
    ends = [np.array(own) for own in ([0, 2], [1, 4], [5, 5])]
    noisy = np.zeros(2)
    assert Answers("halves", *ends, noisy, 1.0).of(positions).tolist() == [2 - 5, 1 - 3]
    assert Answers("counts", *ends, noisy, 1.0, signed=False).of(positions).tolist() == [2, 1]


def table(n: int) -> tuple[pd.DataFrame, shoal.Schema]:
    random = np.random.default_rng(0)
    x, y = np.clip(
        np.rint(500 + 100 * random.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], n)), 0, 1000
    ).T
    columns: dict[str, Any] = {"x": np.where(x < 400, 0, x), "y": y, "few": random.integers(0, 9, n)}
    columns |= {"s": (x > 550) * 1, "name": np.where(y > 500, "up", random.choice(["down", "left"], n))}
    entries: list[dict[str, Any]] = [{"name": name, "lo": 0, "hi": 1000, "step": 1} for name in "xy"]
    entries += [{"name": "few", "lo": 0, "hi": 8}, {"name": "s", "lo": 0, "hi": 1}]
    entries.append({"name": "name", "kind": "nominal", "values": ["up", "down", "left"]})
    return pd.DataFrame(columns), shoal.Schema.from_dict({"attribute": entries})


@pytest.mark.parametrize(
    ("n", "settings"),
    [(400, {"epsilon": 1}), (6_000, {"epsilon": 2}), (3_000, {"epsilon": 4, "delta": "0.000001"})],
)
def test_rows_agree_with_what_they_were_made_of(n: int, settings: dict[str, Any]) -> None:
    data, schema = table(n)
    release = shoal.protect(data, schema, "pairs-dp", seed=1, rows=n, **settings)
    found = release.internal["rows_and_measurements"]
    assert found["numbers_compared"] > 20
    assert found["of"]
    # x determines s, at a place that is no cut: tables of bins cannot say so
    assert found["worst_deviation_in_standard_errors"] < 3 * found["explained_by_noise_up_to"]
    assert not any("deviation" in str(one) for one in release.statement.to_dict().values() if one == found)


def test_rows_that_do_not_fit_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    data, schema = table(6_000)
    honest = check.agreement

    def shuffled(placed: Any, *rest: Any) -> Any:
        moved = [*placed]
        moved[0] = np.random.default_rng(0).permutation(moved[0])
        return honest(moved, *rest)

    monkeypatch.setattr(mechanism, "agreement", shuffled)
    found = shoal.protect(data, schema, "pairs-dp", epsilon=2, seed=1, rows=6_000).internal[
        "rows_and_measurements"
    ]
    assert found["worst_deviation_in_standard_errors"] > 3 * found["explained_by_noise_up_to"]
    assert "pairs" in found["of"] or "with" in found["of"]
