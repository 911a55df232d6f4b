"""Replicate weights have the noise and the sampling of a release in their spread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shoal
from shoal.inference import write_replicate_weights

from .test_measured import people, schema


@pytest.fixture(scope="module")
def release() -> shoal.Release:
    return shoal.protect(people(), schema(), epsilon="4", seed=1)


def test_their_spread_is_that_of_the_interval(release: shoal.Release) -> None:
    # so many that their own spread is small beside the tolerance
    found = shoal.replicate_weights(release, ["age", "sex"], 320, seed=1)
    women = (found["sex"] == "f").to_numpy()

    def share(weight: str) -> float:
        return float(found[weight].to_numpy()[women].sum() / found[weight].sum())

    estimate = share("w")
    error = np.sqrt(np.mean([(share(f"w{number}") - estimate) ** 2 for number in range(1, 321)]))
    one = shoal.intervals(release, 'share(sex = "f")')[0]
    assert estimate == pytest.approx(one.estimate, abs=0.005)
    assert 1.96 * error == pytest.approx((one.high - one.low) / 2, rel=0.35)


def test_they_are_written_once(release: shoal.Release, tmp_path: Path) -> None:
    place = tmp_path / "weights.csv"
    rows = write_replicate_weights(release, place, ["age"], 10)
    assert len(place.read_text("utf-8").splitlines()) == rows + 1
    with pytest.raises(shoal.OutputError):
        write_replicate_weights(release, place, ["age"], 10)


@pytest.mark.parametrize("count", [0, 5, 2000])
def test_a_useless_number_is_refused(count: int, release: shoal.Release) -> None:
    with pytest.raises(shoal.OptionError):
        shoal.replicate_weights(release, ["age"], count)


def test_a_release_without_measurements_is_refused() -> None:
    made = shoal.protect(people(300), schema(), "tree-dp", epsilon="2", seed=1)
    with pytest.raises(shoal.OptionError, match="measurements"):
        shoal.replicate_weights(made)
