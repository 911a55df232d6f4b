"""Moments of clipped noise agree with sums over every value the noise can take."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from shoal.tuning.expected import anywhere_square, clipped_moments


def by_definition(scale: float, below: float, above: float) -> tuple[float, float]:
    """Mean and mean square of the clipped shift, summed over the noise, far beyond where it matters."""
    far = math.ceil(60 * scale) + 5
    noise = np.arange(-far, far + 1, dtype=np.float64)
    weights = np.exp(-np.abs(noise) / scale)
    weights /= weights.sum()
    shift = np.clip(noise, -below, above)
    return float(weights @ shift), float(weights @ (shift * shift))


def moments(scale: float, below: float, above: float) -> tuple[float, float]:
    mean, square = clipped_moments(np.array([scale]), np.array([below]), np.array([above]))
    return float(mean[0]), float(square[0])


@given(
    scale=st.floats(0.05, 1000),
    below=st.integers(0, 3000),
    above=st.floats(0, 3000),
)
def test_coarse_lattices_agree_with_the_sum_over_all_noise(scale: float, below: int, above: float) -> None:
    mean, square = by_definition(scale, below, above)
    found = moments(scale, below, above)
    assert found[1] == pytest.approx(square, rel=1e-9, abs=1e-12)
    assert found[0] == pytest.approx(mean, rel=1e-9, abs=1e-9 * math.sqrt(square) + 1e-12)


@pytest.mark.parametrize("scale", [1024.0, 2000.0, 30_000.0])
@pytest.mark.parametrize("reach", [(0, 900), (1500.5, 90.25), (1e5, 1e5)])
def test_fine_lattices_agree_with_it_to_seven_digits(scale: float, reach: tuple[float, float]) -> None:
    mean, square = by_definition(scale, *reach)
    found = moments(scale, *reach)
    # against a reach that is small beside the scale, half a step at zero counts
    slack = 1 / min(side for side in reach if side) / scale
    assert found[1] == pytest.approx(square, rel=2e-7 + slack)
    assert found[0] == pytest.approx(mean, rel=2e-7 + slack, abs=1e-6 * math.sqrt(square))


def test_noise_without_ends_has_its_own_variance() -> None:
    q = math.exp(-1 / 3)
    assert moments(3.0, math.inf, math.inf) == (0.0, pytest.approx(2 * q / (1 - q) ** 2))
    assert moments(1e9, math.inf, math.inf) == (0.0, pytest.approx(2e18))


def test_no_noise_moves_nothing_and_enormous_noise_goes_to_the_ends() -> None:
    assert moments(0.0, 5, 5) == (0.0, 0.0)
    assert moments(1e14, 40, 10) == (pytest.approx(-15), pytest.approx((1600 + 100) / 2))


@pytest.mark.parametrize("scale", [0.003, 0.2, 1.0, 50.0])
def test_the_mean_over_all_places_is_the_integral(scale: float) -> None:
    def at(place: float) -> float:
        sides = (scale**2 * (1 - (1 + d / scale) * math.exp(-d / scale)) for d in (place, 1 - place))
        return sum(sides)

    expected, _ = quad(at, 0, 1, points=[0.01, 0.5, 0.99])
    assert float(anywhere_square(np.array([scale]))[0]) == pytest.approx(expected, rel=1e-6)
