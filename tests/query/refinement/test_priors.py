"""Priors have the stated masses, exactly where possible; distances and supports number answers correctly."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shoal.columns.kinds import Lattice
from shoal.errors import OptionError
from shoal.query.refinement import (
    Grid,
    Labels,
    Points,
    Prior,
    absolute,
    categorical,
    combined,
    from_function,
    from_scipy,
    from_table,
    histogram,
    joint,
    nominal,
    normal,
    product,
    uniform,
)
from shoal.query.refinement.refine import MAX_TOTAL, sum_exactly

TENS = Lattice(Fraction(0), Fraction(10), Fraction(1))


def masses(prior: Prior) -> list[Fraction]:
    return [prior.mass(i) for i in range(prior.support.size)]


def test_masses_are_exact_fractions_that_add_up_to_one() -> None:
    for prior in (
        uniform(Points(TENS)),
        categorical({"a": "0.1", "b": "0.2", "c": "0.7"}),
        histogram(TENS, [Fraction(0), Fraction(3), Fraction(10)], [1, "0.5"]),
        normal(TENS, Fraction(3), Fraction(1)),
        from_scipy(TENS, stats.gamma(2)),
    ):
        assert sum(masses(prior)) == 1
    assert masses(categorical({"a": "0.1", "b": "0.2", "c": "0.7"})) == [
        Fraction(1, 10),
        Fraction(1, 5),
        Fraction(7, 10),
    ]


def test_a_histogram_spreads_each_bin_over_its_points() -> None:
    prior = histogram(TENS, [Fraction(0), Fraction(4), Fraction(7), Fraction(10)], [4, 0, 1])
    assert masses(prior) == [Fraction(1, 5)] * 4 + [Fraction(0)] * 3 + [Fraction(1, 20)] * 4


@given(st.lists(st.integers(1, 30), min_size=2, max_size=6, unique=True), st.data())
def test_a_histogram_has_the_mass_of_its_bins(cuts: list[int], data: st.DataObject) -> None:
    edges = [Fraction(cut, 3) for cut in sorted(cuts)]
    weights = data.draw(
        st.lists(st.integers(0, 9), min_size=len(edges) - 1, max_size=len(edges) - 1).filter(any)
    )
    inside = [[i for i in range(11) if a <= i < b or (i == b == edges[-1])] for a, b in pairwise(edges)]
    if any(w and not points for w, points in zip(weights, inside, strict=True)):
        with pytest.raises(OptionError, match="contains no point"):
            histogram(TENS, edges, weights)
        return
    found = masses(histogram(TENS, edges, weights))
    for weight, points in zip(weights, inside, strict=True):
        assert sum(found[i] for i in points) == Fraction(weight, sum(weights))


def test_distributions_put_on_a_lattice_keep_their_shape() -> None:
    lattice = Lattice(Fraction(-4), Fraction(4), Fraction(1, 100))
    found = np.array([float(m) for m in masses(normal(lattice, Fraction(1), Fraction(1, 2)))])
    points = np.arange(-4, 4.005, 0.01)
    assert np.allclose(found, stats.norm(1, 0.5).pdf(points) * 0.01, rtol=2e-3, atol=1e-12)
    poisson = masses(from_scipy(TENS, stats.poisson(3)))
    expected = stats.poisson(3).pmf(np.arange(11))
    assert np.allclose([float(m) for m in poisson], expected / expected.sum(), rtol=1e-9)


def test_far_tails_keep_a_mass() -> None:
    prior = normal(Lattice(Fraction(0), Fraction(100), Fraction(1)), Fraction(50), Fraction(4))
    assert prior.weights.min() >= 1
    assert prior.mass(0) == prior.mass(100)


def test_a_product_is_the_product() -> None:
    first, second = categorical({"a": 1, "b": 2}), histogram(TENS, [Fraction(0), Fraction(10)], [1])
    both = product(first, second)
    assert both.support.answer(12) == ("b", Fraction(1))
    for i in range(both.support.size):
        a, x = divmod(i, 11)
        assert both.mass(i) == first.mass(a) * second.mass(x)


def test_a_product_too_fine_for_64_bits_is_rounded_and_loses_no_answer() -> None:
    part = normal(TENS, Fraction(5), Fraction(2))
    both = product(part, part, part)
    assert sum_exactly(both.weights) <= MAX_TOTAL
    assert both.weights.min() >= 1
    centre = 5 * 121 + 5 * 11 + 5
    assert abs(float(both.mass(centre)) - float(part.mass(5)) ** 3) < 1e-4


def test_the_exact_sum_is_exact() -> None:
    weights = np.array([2**62, 2**62, 3], dtype=np.int64)
    assert sum_exactly(weights) == 2**63 + 3


def test_what_is_no_prior_is_refused() -> None:
    with pytest.raises(OptionError, match="at least 0"):
        categorical({"a": -1, "b": 2})
    with pytest.raises(OptionError, match="one of them must be above 0"):
        categorical({"a": 0})
    with pytest.raises(OptionError, match="not a possible answer"):
        categorical({"z": 1}, order=["a", "b"])
    with pytest.raises(OptionError, match="not a possible answer"):
        joint([Labels(("a",))] * 2, {("a", "z"): 1})
    with pytest.raises(OptionError, match="increasing edges"):
        histogram(TENS, [Fraction(3), Fraction(1)], [1])
    with pytest.raises(OptionError, match="no mass"):
        from_scipy(TENS, stats.uniform(50, 1))
    with pytest.raises(OptionError, match="above 0"):
        normal(TENS, Fraction(1), Fraction(0))
    with pytest.raises(OptionError, match="needs 11 masses"):
        Prior(Points(TENS), np.ones(3, dtype=np.int64))
    with pytest.raises(OptionError, match="larger step"):
        Points(Lattice(Fraction(0), Fraction(1), Fraction(1, 1 << 22)))
    with pytest.raises(OptionError, match="each once"):
        Labels(("a", "a"))


def test_grids_number_every_combination_once() -> None:
    grid = Grid((Labels(("a", "b")), Points(TENS), Labels(("x", "y", "z"))))
    answers = [grid.answer(i) for i in range(grid.size)]
    assert len(set(answers)) == grid.size == 66
    assert [grid.index(answer) for answer in answers] == list(range(66))
    assert grid.index(("b", None, "x")) is None
    assert grid.index(("b", 1, "w")) is None


@given(st.fractions(-20, 20, max_denominator=50))
def test_a_value_goes_to_the_nearest_point(value: Fraction) -> None:
    points = Points(Lattice(Fraction(-3), Fraction(4), Fraction(1, 2)))
    index = points.index(value)
    distances = [abs(points.answer(i) - value) for i in range(points.size)]
    assert distances[index] == min(distances)


def test_distances_of_parts_are_combined() -> None:
    grid = Grid((Labels(("low", "middle", "high")), Labels(("a", "b"))))
    by_sum = combined([absolute, nominal])(grid, grid.index(("middle", "b")))
    assert by_sum.tolist() == [1.5, 0.5, 1.0, 0.0, 1.5, 0.5]
    by_max = combined([absolute, nominal], "max")(grid, grid.index(("low", "a")))
    assert by_max.tolist() == [0, 1, 0.5, 1, 1, 1]
    own = from_function(lambda a, b: sum(x != y for x, y in zip(a, b, strict=True)))
    assert own(grid, 0).tolist() == [0, 1, 1, 2, 1, 2]


def test_wrong_tables_of_distances_are_refused_and_what_is_no_number_is_far() -> None:
    with pytest.raises(OptionError, match="square"):
        from_table([[0, 1]])
    with pytest.raises(OptionError, match="square"):
        from_table([[0, -1], [1, 0]])
    with pytest.raises(OptionError, match="2 rows"):
        from_table([[0, 1], [1, 0]])(Labels(("a",)), 0)
    with pytest.raises(OptionError, match="sum or max"):
        combined([nominal], "product")
    with pytest.raises(OptionError, match="that many parts"):
        combined([nominal, nominal])(Labels(("a", "b")), 0)
    unknown = from_function(lambda a, b: float("nan") if a != b else 0)
    assert unknown(Labels(("a", "b")), 0).tolist() == [0, np.inf]
