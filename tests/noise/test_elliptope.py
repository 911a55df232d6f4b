"""Elliptope noise: the cone argument, densities, the law of both factors, roundings as for ideal numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from shoal.errors import OptionError
from shoal.noise import Seeded, SystemEntropy, block, elliptope_deviation, elliptope_noise, exact
from shoal.noise.block import _Half, _rounded, disc_points
from tests.conftest import examples

from .decision_tree import enumerate_paths

FALSE_ALARM = 1e-9
SIGMAS = 6.5  # about as rare


def half(d: int, source: Any, words: int = 1) -> tuple[float, NDArray[np.float64]]:
    """One ε·t and one R, as floats."""
    products = d * (d - 1) // 2
    drawn = _Half.draw(d, products + 1, source)
    found = drawn.matrix(words)
    assert found is not None
    matrix = found[0].astype(np.float64)
    return float(matrix[0, 0]) / 2.0 ** (64 * words), matrix / matrix[0, 0]


@pytest.fixture(scope="module")
def halves() -> list[tuple[float, NDArray[np.float64]]]:
    source = SystemEntropy()
    return [half(6, source) for _ in range(examples(12_000))]


def test_the_size_is_gamma_distributed(halves: list[tuple[float, NDArray[np.float64]]]) -> None:
    sizes = np.array([size for size, _ in halves])
    assert stats.kstest(sizes, "gamma", args=(16,)).pvalue > FALSE_ALARM
    # one shape less or more, a scale five percent off: 11 standard errors in a quick run, which repeats itself, and 22
    # in a thorough one, of which 6.5 are asked for
    error = sizes.std() / math.sqrt(len(sizes))
    assert abs(sizes.mean() - 16) < SIGMAS * error
    for wrong in (15, 17, 16 * 0.95, 16 * 1.05):
        assert abs(sizes.mean() - wrong) > SIGMAS * error


def test_the_directions_are_uniform_over_correlation_matrices(
    halves: list[tuple[float, NDArray[np.float64]]],
) -> None:
    d, upper = 6, np.triu_indices(6, 1)
    matrices = np.array([matrix for _, matrix in halves])
    assert np.abs(np.diagonal(matrices, axis1=1, axis2=2) - 1).max() < 1e-12
    assert np.linalg.eigvalsh(matrices).min() > -1e-12
    # one correlation is Beta(d/2, d/2) on (-1, 1); vectors in one dimension more or fewer give another one
    one = (matrices[:, 0, 1] + 1) / 2
    assert stats.kstest(one, "beta", args=(d / 2, d / 2)).pvalue > FALSE_ALARM
    squares = (matrices[:, upper[0], upper[1]] ** 2).mean(axis=1)
    error = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - 1 / (d + 1)) < SIGMAS * error
    for dimensions in (d, d + 2):
        assert abs(squares.mean() - 1 / dimensions) > SIGMAS * error
    # and all of them together have the volume of d unit vectors in d + 1 dimensions
    volumes = np.linalg.det(matrices)
    expected = math.prod(1 - i / (d + 1) for i in range(1, d))
    error = volumes.std() / math.sqrt(len(volumes))
    assert abs(volumes.mean() - expected) < SIGMAS * error
    for dimensions in (d, d + 2):
        other = math.prod(1 - i / dimensions for i in range(1, d))
        assert abs(volumes.mean() - other) > SIGMAS * error


@pytest.mark.parametrize("d", [3, 4, 5])
def test_odd_and_even_numbers_of_dimensions(d: int) -> None:
    source = Seeded(d)
    matrices = np.array([half(d, source)[1] for _ in range(examples(2400))])
    upper = np.triu_indices(d, 1)
    squares = (matrices[:, upper[0], upper[1]] ** 2).mean(axis=1)
    assert abs(squares.mean() - 1 / (d + 1)) < SIGMAS * squares.std() / math.sqrt(len(squares))
    assert abs(matrices[:, 0, 1].mean()) < SIGMAS / math.sqrt((d + 1) * len(matrices))


@pytest.mark.parametrize(("number", "off"), [(600, 0.15), pytest.param(4000, 0.05, marks=pytest.mark.slow)])
def test_the_spread_of_the_noise_and_a_scale_that_is_off(number: int, off: float) -> None:
    d, upper = 6, np.triu_indices(6, 1)
    draws = np.array([elliptope_noise(d, "0.25") for _ in range(number)]).astype(np.float64)
    assert (draws == draws.transpose(0, 2, 1)).all()
    squares = (draws[:, upper[0], upper[1]] ** 2).mean(axis=1)
    error = squares.std() / math.sqrt(len(squares))
    expected = elliptope_deviation(d, 0.25)
    assert abs(squares.mean() - expected**2 - 1 / 12) < SIGMAS * error
    for factor in (1 - off, 1 + off):
        assert abs(squares.mean() - (factor * expected) ** 2) > SIGMAS * error
    # the diagonal is a difference of two Gamma sizes
    diagonal = draws[:, 0, 0]
    assert abs((diagonal**2).mean() - 2 * 16 * 16) < SIGMAS * (diagonal**2).std() / math.sqrt(len(draws))


def two_sign_masses(epsilon: float, reach: int) -> dict[tuple[int, int], float]:
    """P(diagonal, product) for d = 2, where the density is ε²/8 · exp(-ε · max(|diagonal|, |product|))."""

    def mass(i: int, j: int) -> float:
        if i == j == 0:
            # 8 equal triangles of the square around 0
            triangle = integrate.quad(lambda a: a * math.exp(-epsilon * a), 0, 0.5)[0]
            return epsilon**2 / 8 * 8 * triangle
        if i == j:
            value = integrate.dblquad(
                lambda b, a: math.exp(-epsilon * max(a, b)), i - 0.5, i + 0.5, i - 0.5, i + 0.5
            )
            return epsilon**2 / 8 * float(value[0])
        edge = max(i, j)
        return epsilon / 8 * (math.exp(-epsilon * (edge - 0.5)) - math.exp(-epsilon * (edge + 0.5)))

    known = {(i, j): mass(i, j) for i in range(reach + 1) for j in range(reach + 1)}
    return {(i, j): known[abs(i), abs(j)] for i in range(-reach, reach + 1) for j in range(-reach, reach + 1)}


def fit_two_signs(draws: Counter[tuple[int, int]], epsilon: float, reach: int = 7) -> float:
    masses, n = two_sign_masses(epsilon, reach), sum(draws.values())
    used = [cell for cell, share in masses.items() if share * n >= 5]
    counts = [draws[cell] for cell in used]
    shares = [masses[cell] for cell in used]
    observed = np.array([*counts, n - sum(counts)])
    return float(stats.chisquare(observed, n * np.array([*shares, 1 - sum(shares)])).pvalue)


def test_two_signs_have_the_closed_form_and_wrong_ones_are_rejected() -> None:
    source = SystemEntropy()
    matrices = [elliptope_noise(2, 1, source) for _ in range(2_000)]
    draws = Counter((int(m[0, 0]), int(m[0, 1])) for m in matrices)
    assert sum(two_sign_masses(1.0, 30).values()) == pytest.approx(1, abs=1e-6)
    assert fit_two_signs(draws, 1.0) > FALSE_ALARM
    assert fit_two_signs(draws, 0.75) < FALSE_ALARM
    assert fit_two_signs(draws, 1.25) < FALSE_ALARM
    rng = np.random.default_rng(1)
    # independent noise of the same spread has another shape
    laplace = np.rint(rng.laplace(0, math.sqrt(2), (2_000, 2))).astype(int).tolist()
    assert fit_two_signs(Counter(map(tuple, laplace)), 1.0) < FALSE_ALARM


@pytest.mark.slow
def test_a_scale_five_percent_off_is_rejected_for_two_signs() -> None:
    """The larger of |diagonal| and |product| says all about the scale: Gamma distributed with shape 2."""
    source, epsilon, number = Seeded(11), 0.02, 20_000
    draws = np.array([elliptope_noise(2, str(epsilon), source) for _ in range(number)])
    largest = np.abs(draws[:, 0]).max(axis=1).astype(np.float64)
    # rounding to whole numbers moves the mean of such wide noise by far less than its error
    error = largest.std() / math.sqrt(number)
    assert abs(largest.mean() - 2 / epsilon) < SIGMAS * error
    for factor in (0.95, 1.05):
        assert abs(largest.mean() - factor * 2 / epsilon) > SIGMAS * error
    # uniform on the square of that size, whichever side is the larger
    smaller = np.abs(draws[:, 0]).min(axis=1) / np.maximum(largest, 1)
    assert stats.kstest(smaller + 1e-9, "uniform").pvalue > FALSE_ALARM
    assert abs((np.abs(draws[:, 0, 0]) == largest).mean() - 0.5) < 0.05


def in_cone(y: NDArray[np.float64]) -> bool:
    """Positive semidefinite with a constant diagonal."""
    return bool(np.ptp(np.diag(y)) < 1e-9 and np.linalg.eigvalsh(y)[0] >= -1e-9)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_cone_argument_holds_point_by_point(d: int) -> None:
    """Where x - v + y lies in the cone so does x + y, and the density is e^ε times smaller there."""
    source, rng = Seeded(d), np.random.default_rng(d)
    inside = 0
    for _ in range(300):
        (size, matrix), (other, another) = half(d, source), half(d, source)
        s = rng.choice([-1.0, 1.0], d)
        v = np.outer(s, s)
        x = size * matrix + v - other * another / 10
        y = other * another
        assert in_cone(v)
        if in_cone(x - v + y):
            inside += 1
            assert in_cone(x + y)
            assert (x + y)[0, 0] - (x - v + y)[0, 0] == pytest.approx(1)
    assert inside > 50


def densities(
    d: int, points: list[NDArray[np.float64]], shape: int, runs: int, one_sided: bool = False
) -> list[float]:
    """Monte Carlo: f(x) = E g(x + Y) for Y of density g on the cone, t having a Gamma law of this shape; ε = 1."""
    rng = np.random.default_rng(7)
    products = d * (d - 1) // 2
    vectors = rng.standard_normal((runs, d, d + 1))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    sizes = rng.gamma(products + 1, size=runs)
    y = sizes[:, None, None] * (vectors @ vectors.transpose(0, 2, 1))
    if one_sided:
        y[:] = 0
    # Y was drawn with shape p + 1, the wrong one is reached by weights
    weights = sizes ** (shape - products - 1.0)
    found = []
    for x in points:
        moved = x + y
        size = moved[:, 0, 0]
        inside = (np.linalg.eigvalsh(moved)[:, 0] >= -1e-9) & (size > 0)
        g = np.where(
            inside, np.exp(-np.maximum(size, 0)) * np.maximum(size, 1e-300) ** (shape - products - 1.0), 0
        )
        found.append(float((weights * g).mean()))
    return found


def largest_loss(d: int, shape: int, one_sided: bool = False) -> float:
    """The largest |log f(x) - log f(x - v)| over some points and all sign vectors."""
    most = 0.0
    for scale, s in itertools.product((0.0, 0.1, 1.0, 5.0), itertools.product((-1.0, 1.0), repeat=d)):
        if s[0] < 0:
            continue
        base = scale * np.eye(d)
        v = np.outer(s, s)
        here, there = densities(d, [base, base - v], shape, 4000, one_sided)
        if here > 0 and there > 0:
            most = max(most, abs(math.log(here / there)))
        elif here != there:
            return math.inf
    return most


def test_densities_of_neighbours_are_within_e_to_the_epsilon_and_faults_are_found() -> None:
    assert 0.8 < largest_loss(3, 4) < 1.06
    # taking a record away is bounded draw by draw, so Monte Carlo has no error there
    v = np.ones((3, 3))
    for x in (np.zeros((3, 3)), v, 5 * np.eye(3), v - 2 * np.eye(3)):
        here, there = densities(3, [x, x - v], 4, 4000)
        assert there <= math.e * here * (1 + 1e-9)
    # a Gamma law of one shape less, and one half of the noise
    assert largest_loss(3, 3) > 1.5
    assert largest_loss(3, 4, one_sided=True) == math.inf


def test_the_monte_carlo_density_is_the_closed_form_for_two_signs() -> None:
    points = [np.array([[a, b], [b, a]]) for a, b in ((0.0, 0.0), (1.0, 0.3), (0.5, 2.0))]
    found = densities(2, points, 2, 40_000)
    expected = [math.exp(-max(abs(x[0, 0]), abs(x[0, 1]))) for x in points]
    for value, truth in zip(found, expected, strict=True):
        assert value / found[0] == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize("d", [2, 5, 8])
def test_few_words_enclose_what_more_words_say(d: int) -> None:
    source = Seeded(d)
    for _ in range(5):
        drawn = _Half.draw(d, 4, source)
        finest = drawn.matrix(8)
        assert finest is not None
        for words in (1, 2, 3):
            known = drawn.matrix(words)
            assert known is not None
            shift = 64 * (8 - words)
            distance = np.abs((known[0] << shift) - finest[0])
            assert (distance <= (known[1] << shift) + finest[1]).all()
            assert known[1] < 1 << (64 * words - 30)


def test_roundings_are_those_of_the_ideal_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With words of 3 bits hardly an entry is decided at once; the result is what the finest look says."""
    asked: list[int] = []

    def counted(plus: _Half, minus: _Half, epsilon: Fraction, words: int) -> NDArray[np.int64] | None:
        found = _rounded(plus, minus, epsilon, words)
        asked.append(words)
        if found is not None:
            finest = _rounded(plus, minus, epsilon, 8 * words)
            assert finest is not None
            assert (finest == found).all()
        return found

    monkeypatch.setattr(block, "_rounded", counted)
    monkeypatch.setattr(block, "WORD", 8)
    monkeypatch.setattr(exact, "WORD", 8)
    for _ in range(20):
        assert elliptope_noise(4, Fraction(1, 3)).shape == (4, 4)
    # a draw may well be decided at its first look; that all twenty are is out of the question
    assert len(asked) > 20


def test_points_of_the_disc_by_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    """With digits of one bit: the quarter disc that lies in each quarter of the square, by its area."""
    monkeypatch.setattr(block, "WORD", 1)
    monkeypatch.setattr(exact, "WORD", 1)

    def propose(source: Any) -> tuple[int, int] | None:
        across, up = exact.Uniforms(1, source), exact.Uniforms(1, source)
        kept = block._inside(across, up)[0]
        return (across.leading(1)[0], up.leading(1)[0]) if kept else None

    outcomes, undecided = enumerate_paths(propose, 1e-4)
    assert undecided < Fraction(1, 20)
    # the disc beyond x = 1/2, y < 1/2: an integral of sqrt(1 - x²)
    corner = integrate.quad(lambda x: math.sqrt(1 - x * x) - 0.5, 0.5, math.sqrt(0.75))[0]
    side = (math.pi / 4 - 0.25 - corner) / 2
    for cell, area in {(0, 0): 0.25, (0, 1): side, (1, 0): side, (1, 1): corner}.items():
        assert float(outcomes[cell]) <= area + 1e-12 <= float(outcomes[cell] + undecided) + 2e-12


def test_points_of_the_disc_are_uniform() -> None:
    across, up = disc_points(20_000, SystemEntropy())
    x, y = (np.array(side.leading(1), dtype=np.float64) / 2**64 for side in (across, up))
    assert (x * x + y * y < 1).all()
    assert stats.kstest(x * x + y * y, "uniform").pvalue > FALSE_ALARM
    assert stats.kstest(np.arctan2(y, x) * 2 / math.pi, "uniform").pvalue > FALSE_ALARM


def test_seeds_repeat_and_large_budgets_draw_zeros() -> None:
    again = [elliptope_noise(5, "0.3", Seeded(5)).tolist() for _ in range(2)]
    assert again[0] == again[1] != elliptope_noise(5, "0.3", Seeded(6)).tolist()
    assert not elliptope_noise(3, 10**6).any()
    assert elliptope_noise(1, "0.5").shape == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ((0, 1), "positive integer"),
        ((2.5, 1), "positive integer"),
        ((3, 0), "epsilon"),
        ((10**5, "1e-9"), "larger epsilon"),
    ],
)
def test_noise_that_cannot_be_drawn_is_refused(arguments: Any, hint: str) -> None:
    with pytest.raises(OptionError, match=hint):
        elliptope_noise(*arguments)
