"""Box noise: Example 5, tables 4.3 and 4.4, exact by enumeration, private at every lattice point, right draws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from shoal.errors import OptionError
from shoal.noise import Box, LatticeBox, LatticeStaircase, Seeded, Staircase, discrete_box, families
from shoal.noise import exact as enclosed
from shoal.noise.families import _reach, best_share, differences, laplace_region

from .decision_tree import Branching, enumerate_paths, exp_minus

FALSE_ALARM = 1e-9
EXAMPLE = Box((1.0, 10.0), 1.0, (0.1, 1.0))


def test_example_5_of_the_thesis() -> None:
    assert round(EXAMPLE.variances[0], 4) == 4.0338
    assert round(EXAMPLE.variances[1], 2) == 403.38
    assert 2 * (1 + 10) ** 2 == 242


# confidence; radius and size of table 4.3; size of table 4.4 as printed and as recomputed; its reach
REGIONS = [
    (0.99, 73.02, 10663, 1790.2, 1789.5, 6.69),
    (0.95, 52.18, 5445, 916.6, 916.9, 4.79),
    (0.90, 42.79, 3662, 611.2, 611.0, 3.91),
]


@pytest.mark.parametrize(("confidence", "radius", "laplace", "printed", "size", "reach"), REGIONS)
def test_tables_4_3_and_4_4_of_the_thesis(
    confidence: float, radius: float, laplace: float, printed: float, size: float, reach: float
) -> None:
    found_radius, found_laplace = laplace_region(11, 2, confidence)
    assert round(found_radius, 2) == radius
    assert abs(found_laplace - laplace) < 1.5
    region = EXAMPLE.region(confidence)
    assert round(region.size, 1) == size
    assert round(region.reach, 2) == reach
    # the thesis multiplies rounded numbers
    assert abs(region.size - printed) < 0.8


def masses(shape: LatticeBox, reach: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    axes = [np.arange(-reach, reach + 1)] * len(shape.steps)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    return points, shape.mass(points)


@pytest.mark.parametrize(
    ("steps", "epsilon", "centre"), [((2, 3), 0.7, (1, 0)), ((1, 1), 2.0, (0, 0)), ((4, 1), 1.0, (3, 2))]
)
def test_the_closed_forms_are_sums_of_the_masses(
    steps: tuple[int, ...], epsilon: float, centre: tuple[int, ...]
) -> None:
    shape = LatticeBox(steps, epsilon, centre)
    points, mass = masses(shape, 160)
    assert mass.sum() == pytest.approx(1)
    for j, variance in enumerate(shape.variances):
        assert (mass * points[..., j] ** 2).sum() == pytest.approx(variance)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
def test_in_one_dimension_the_box_is_the_staircase(epsilon: float) -> None:
    for optimise in ("variance", "interval"):
        line, flat = Staircase.best(3.0, epsilon, optimise), Box.best((3.0,), epsilon, optimise)
        assert flat.centre[0] == pytest.approx(line.centre, abs=1e-3)
        assert flat.variances[0] == pytest.approx(line.variance, rel=1e-4)
        assert flat.region(0.95).reach * 3 == pytest.approx(line.interval(0.95), rel=1e-5)
    x = np.linspace(-9, 9, 101)
    assert Box((3.0,), epsilon, (1.0,)).density(x[:, None]) == pytest.approx(
        Staircase(3.0, epsilon, 1.0).density(x)
    )


@settings(deadline=None, max_examples=15)
@given(dimensions=st.integers(1, 6), epsilon=st.floats(0.05, 5))
def test_no_other_size_of_the_centre_is_better(dimensions: int, epsilon: float) -> None:
    widths = (1.0,) * dimensions
    best = Box.best(widths, epsilon)
    short = Box.best(widths, epsilon, "interval")
    for share in np.linspace(0.001, 1, 60).tolist():
        other = Box(widths, epsilon, (share,) * dimensions)
        assert best.variances[0] <= other.variances[0] * (1 + 1e-6)
    reaches = _reach(np.linspace(0.001, 1, 400), dimensions, epsilon, 0.95)
    assert short.region(0.95).reach <= reaches.min() * (1 + 1e-4)


def test_the_share_is_found_for_tiny_budgets_and_many_attributes() -> None:
    for dimensions, epsilon in itertools.product((1, 2, 20), (1e-9, 1e-3, 50.0)):
        for optimise in ("variance", "interval"):
            assert 0 <= best_share(dimensions, epsilon, optimise) <= 1


@pytest.mark.parametrize(
    ("steps", "centre"),
    [((1, 1), (0, 0)), ((2, 3), (0, 1)), ((3, 1), (2, 0)), ((2, 2), (3, 3)), ((1, 4), (0, 3))],
)
def test_at_every_lattice_point_the_ratio_between_neighbours_is_within_e_to_the_epsilon(
    steps: tuple[int, int], centre: tuple[int, int]
) -> None:
    epsilon = 0.7
    shape = LatticeBox(steps, epsilon, centre)
    points, mass = masses(shape, 22)
    for shift in itertools.product(*(range(-step, step + 1) for step in steps)):
        assert np.abs(shape.level(points) - shape.level(points + shift)).max() <= 1
        assert (mass / shape.mass(points + shift)).max() <= np.exp(epsilon) * (1 + 1e-12)
    too_far = shape.level(points) - shape.level(points + np.array([steps[0] + 1, 0]))
    assert np.abs(too_far).max() == 2


@pytest.mark.parametrize(("steps", "centre"), [((3,), (1,)), ((1, 10), (0, 1)), ((2, 5, 7), (1, 2, 0))])
def test_differences_rebuild_the_number_of_points_of_every_box(
    steps: tuple[int, ...], centre: tuple[int, ...]
) -> None:
    found = differences(steps, centre)
    for i in range(6):
        points = math.prod(2 * (z + i * s) + 1 for s, z in zip(steps, centre, strict=True))
        assert sum(weight * math.comb(i, r) for r, weight in enumerate(found)) == points


@pytest.fixture
def one_bit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Real numbers are revealed one bit at a time, so that every path can be walked."""
    caches: tuple[Any, ...] = (enclosed.exp_coin, enclosed.logistic_coin, families._order)
    monkeypatch.setattr(enclosed, "_FIRST_BITS", 1)
    monkeypatch.setattr(enclosed, "_NEXT_BITS", 1)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def exact_mass(
    x: tuple[int, ...], steps: tuple[int, ...], epsilon: Fraction, centre: tuple[int, ...]
) -> Fraction:
    """P(X = x) to 40 digits: points of box i that no box before holds weigh q^i."""
    q = exp_minus(epsilon)
    level = max(max(-(-(abs(c) - z) // s), 0) for c, s, z in zip(x, steps, centre, strict=True))
    boxes = (math.prod(2 * (z + i * s) + 1 for s, z in zip(steps, centre, strict=True)) for i in range(40))
    return q**level / ((1 - q) * sum(q**i * points for i, points in enumerate(boxes)))


def test_the_decision_tree_brackets_the_true_probabilities(one_bit: None) -> None:
    steps, epsilon, centre = (1, 1), Fraction(5, 2), (0, 0)

    def draw(source: Branching) -> tuple[int, ...]:
        return tuple(discrete_box(steps, epsilon, 1, source, centre=centre)[0].tolist())

    outcomes, undecided = enumerate_paths(draw, 2e-4)
    assert undecided < Fraction(1, 6)
    for x in itertools.product((-1, 0, 1), repeat=2):
        assert outcomes[x] <= exact_mass(x, steps, epsilon, centre) <= outcomes[x] + undecided
    assert outcomes[0, 0] > exact_mass((0, 0), steps, epsilon * 9 / 10, centre)


def fit(draws: NDArray[np.int64], shape: LatticeBox, reach: int) -> float:
    """P-value of a chi-square over all vectors within reach and everything outside."""
    _, mass = masses(shape, reach)
    inside = (np.abs(draws) <= reach).all(axis=1)
    numbers = np.ravel_multi_index(tuple((draws[inside] + reach).T), mass.shape)
    counts = np.append(np.bincount(numbers, minlength=mass.size), (~inside).sum())
    shares = np.append(mass.ravel(), 1 - mass.sum())
    used = shares * len(draws) >= 5
    return float(stats.chisquare(counts[used], shares[used] / shares[used].sum() * counts[used].sum()).pvalue)


SMALL = [((1, 1), "1", 6), ((2, 3), "0.7", 8), ((3, 1), "0.25", 9), ((1, 2, 1), "1.5", 3)]


@pytest.mark.parametrize("optimise", ["variance", "interval"])
@pytest.mark.parametrize(("steps", "epsilon", "reach"), SMALL)
def test_draws_follow_the_law(steps: tuple[int, ...], epsilon: str, reach: int, optimise: str) -> None:
    exact = Fraction(epsilon)
    draws = discrete_box(steps, exact, 300_000, optimise=optimise)
    shape = LatticeBox.best(steps, exact, optimise)
    assert fit(draws, shape, reach) > FALSE_ALARM
    assert fit(draws, LatticeBox(steps, 1.05 * float(exact), shape.centre), reach) < FALSE_ALARM


@pytest.mark.parametrize(
    ("steps", "epsilon"), [((1000, 10), "1"), ((10**6, 10**3, 77, 10**9), "0.1"), ((10**6, 3), "2.5")]
)
def test_the_variances_of_draws_are_those_of_the_closed_form(steps: tuple[int, ...], epsilon: str) -> None:
    draws = discrete_box(steps, epsilon, 1_000_000).astype(np.float64)
    expected = np.array(LatticeBox.best(steps, Fraction(epsilon)).variances)
    # the standard error is at most 0.205 percent (ε = 2.5), so that this is 6.3 of them
    assert np.abs((draws**2).mean(axis=0) / expected - 1).max() < 0.013
    other = np.array(LatticeBox.best(steps, Fraction(epsilon) * 51 / 50).variances)
    assert np.abs((draws**2).mean(axis=0) / other - 1).max() > 0.013


def test_a_box_of_one_coordinate_draws_like_the_staircase() -> None:
    draws = discrete_box((50,), "0.8", 200_000)[:, 0]
    shape = LatticeStaircase.best(50, Fraction(4, 5))
    edges = np.unique([shape.quantile(i / 40) for i in range(1, 40)]).astype(np.float64)
    shares = np.diff(np.concatenate([[0.0], shape.below(edges), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1)
    assert stats.chisquare(counts, shares * draws.size).pvalue > FALSE_ALARM


def test_a_coordinate_that_nobody_moves_gets_no_noise() -> None:
    draws = discrete_box((0, 5, 0), 1, 200)
    assert not draws[:, [0, 2]].any()
    assert draws[:, 1].any()
    assert discrete_box((0, 0), 1, 3).tolist() == [[0, 0]] * 3


def test_shapes_and_seeds() -> None:
    assert discrete_box((3, 4), 1, 0).shape == (0, 2)
    again = [discrete_box((10**6, 10), "0.3", 20, Seeded(5)).tolist() for _ in range(2)]
    assert again[0] == again[1] != discrete_box((10**6, 10), "0.3", 20, Seeded(6)).tolist()
    assert not discrete_box((1000, 10), Fraction(10**15), 50).any()


@pytest.mark.parametrize(
    ("arguments", "more", "hint"),
    [
        (((1, -1), 1), {}, "steps must be a non-negative integer"),
        (((1, 2), 0), {}, "epsilon"),
        (((1, 2**50), "0.1"), {}, "coarser step"),
        (((1, 2), 1), {"centre": (1,)}, "one non-negative integer"),
        (((1, 2), 1), {"centre": (1, -1)}, "one non-negative integer"),
        (((1, 2), 1), {"optimise": "size"}, "variance, interval"),
    ],
)
def test_noise_that_cannot_be_drawn_is_refused(arguments: Any, more: dict[str, Any], hint: str) -> None:
    with pytest.raises(OptionError, match=hint):
        discrete_box(*arguments, **more)


def test_a_region_needs_a_centre_in_the_proportions_of_the_widths() -> None:
    with pytest.raises(OptionError, match="proportional"):
        Box((1.0, 2.0), 1.0, (0.5, 0.5)).region(0.9)
    with pytest.raises(OptionError, match="confidence"):
        EXAMPLE.region(0.0)
