"""Compiled loops of pairs-dp against slow references that say the same in few words."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from shoal.mechanisms.pairs import _kernels as kernels
from shoal.mechanisms.pairs.measure_pairs import functions

STARTS = np.array([0, 3, 5, 9])


def random_bins(random: np.random.Generator, classes: int) -> NDArray[np.float64]:
    parts = [random.dirichlet(np.ones(size), classes) for size in np.diff(STARTS)]
    return np.concatenate(parts, axis=1)


class Words:
    """The same counter, in whole numbers of any length."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def uniform(self) -> float:
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        word = (self.state ^ (self.state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
        word ^= word >> 31
        return ((word >> 11) + 0.5) * 2.0**-53


def slow_rows(sizes: Any, bins: Any, starts: Any, seed: int) -> NDArray[np.uint8]:
    words, parts = Words(seed), []
    for size, own in zip(sizes.tolist(), bins, strict=True):
        columns = []
        for low, high in itertools.pairwise(starts.tolist() if size else []):
            levels = (np.arange(size) + words.uniform()) / size
            column = np.searchsorted(np.cumsum(own[low:high]), levels)
            column = np.minimum(column, high - low - 1)
            for i in range(size - 1, 0, -1):
                j = int(words.uniform() * (i + 1))
                column[i], column[j] = column[j], column[i]
            columns.append(column)
        if columns:
            parts.append(np.stack(columns, axis=1))
    return np.concatenate(parts).astype(np.uint8)


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_drawn_as_the_reference_draws_them(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(0, 12, 4)
    sizes[0] = 7
    bins = random_bins(random, 4)
    drawn = kernels.draw_rows(sizes, bins, STARTS, np.uint64(seed + 5))
    assert (drawn == slow_rows(sizes, bins, STARTS, seed + 5)).all()


def test_rows_of_a_class_have_its_shares() -> None:
    bins = np.array([[0.5, 0.25, 0.25, 0.9, 0.1, 0.1, 0.2, 0.3, 0.4]])
    drawn = kernels.draw_rows(np.array([1000]), bins, STARTS, np.uint64(1))
    for place, (low, high) in enumerate(itertools.pairwise(STARTS)):
        counts = np.bincount(drawn[:, place], minlength=high - low)
        assert np.abs(counts - 1000 * bins[0, low:high]).max() <= 1
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 2])[0, 1]) < 0.1


def tables(codes: Any) -> NDArray[np.float64]:
    """Counts of all pairs of bins, of single attributes on the diagonal."""
    flags = np.zeros((len(codes), STARTS[-1]))
    for column, low in enumerate(STARTS[:-1]):
        flags[np.arange(len(codes)), low + codes[:, column]] = 1
    return flags.T @ flags


# the first bin of the second half of each attribute
MIDDLES = (np.diff(STARTS) + 1) // 2
NO_TRIPLES = np.zeros((0, 3), dtype=np.int64), np.zeros(0)


def misfit(codes: Any, goals: Any, triples: Any = NO_TRIPLES) -> float:
    parts = (tables(codes) - goals) ** 2 / (np.maximum(goals, 0) + 1)
    signs = np.where(2 * codes < np.diff(STARTS), 1, -1)
    of_three = sum(
        (signs[:, list(three)].prod(axis=1).sum() - wanted) ** 2 / len(codes)
        for three, wanted in zip(*triples, strict=True)
    )
    # every pair of attributes once, every attribute once
    return float(np.triu(np.where(goals >= 0, parts, 0.0)).sum() + of_three)


def slow_polish(
    codes: Any, goals: Any, stride: int, sweeps: int, triples: Any = NO_TRIPLES
) -> NDArray[np.uint8]:
    codes, row = codes.copy(), 0
    for _ in range(sweeps):
        moved = 0
        for _ in range(len(codes)):
            row = (row + stride) % len(codes)
            for column, (low, high) in enumerate(itertools.pairwise(STARTS.tolist())):
                before, old = misfit(codes, goals, triples), codes[row, column]
                tried = []
                for code in range(high - low):
                    codes[row, column] = code
                    tried.append(misfit(codes, goals, triples))
                codes[row, column] = old
                best = int(np.argmin(tried))
                if tried[best] < before - 1e-9:
                    codes[row, column] = best
                    moved += 1
        if moved * 200 < len(codes):
            break
    return codes


@pytest.mark.parametrize("seed", range(4))
def test_polish_moves_as_the_reference_moves(seed: int) -> None:
    random = np.random.default_rng(seed)
    goal_codes = np.stack([random.integers(0, size, 40) for size in np.diff(STARTS)], axis=1)
    goals = tables(goal_codes) + random.random((9, 9))
    goals = (goals + goals.T) / 2
    for low, high in itertools.pairwise(STARTS):
        own = np.arange(low, high)
        diagonal = goals[own, own].copy()
        goals[low:high, low:high] = -1
        goals[own, own] = diagonal
    if seed % 2:
        # one pair of attributes without a goal
        goals[0:3, 3:5] = goals[3:5, 0:3] = -1
    codes = np.stack([random.integers(0, size, 40) for size in np.diff(STARTS)], axis=1).astype(np.uint8)
    # of three attributes there is one triple
    triples = (np.array([[0, 1, 2]]), np.array([25.0])) if seed > 1 else NO_TRIPLES
    expected = slow_polish(codes, goals, 7, 2, triples)
    before = misfit(codes, goals, triples)
    kernels.polish(codes, STARTS, MIDDLES, goals, 7, 2, *triples)
    assert (codes == expected).all()
    assert misfit(codes, goals, triples) < before


def slow_fit(table: Any, shares: Any, levels: Any, blocks: Any, passes: int) -> NDArray[np.float64]:
    """By matrices of the functions of a block."""
    table = table.copy()
    for _ in range(passes):
        for level, depth, wanted in blocks:
            own, other = (
                functions(of, at, table.shape[side])
                for side, (of, at) in enumerate(zip(levels, (level, depth), strict=True))
            )
            if level < 0 and depth < 0:
                table = np.maximum(wanted, 1e-9)
            else:
                nodes = np.abs(own).T @ table @ np.abs(other)
                alike = (nodes + own.T @ table @ other) / 2
                goal = np.clip((nodes + wanted) / 2, 0.005 * nodes, 0.995 * nodes)
                grow, shrink = goal / alike, (nodes - goal) / (nodes - alike)
                same = own[:, None, :, None] * other[None, :, None, :] > 0
                inside = (own[:, None, :, None] * other[None, :, None, :]) != 0
                factor = np.where(same, grow, shrink) * inside
                table = table * factor.sum(axis=(2, 3))
            for _ in range(3):
                table = table * (shares[0] / table.sum(axis=1))[:, None]
                table = table * (shares[1] / table.sum(axis=0))
    return table


@pytest.mark.parametrize("levels", [(3, 2), (0, 2), (0, 0), (1, 1)])
def test_tables_are_fitted_as_the_reference_fits_them(levels: tuple[int, int]) -> None:
    random = np.random.default_rng(sum(levels))
    sizes = [1 << own if own else 5 for own in levels]
    shares = [random.dirichlet(np.full(size, 5.0)) for size in sizes]
    truth = np.outer(*shares) * random.gamma(3, 1 / 3, sizes)
    truth /= truth.sum()
    kinds = [range(own) if own else (-1,) for own in levels]
    blocks = []
    for level, depth in itertools.product(*kinds):
        own, other = functions(levels[0], level, sizes[0]), functions(levels[1], depth, sizes[1])
        blocks.append((level, depth, own.T @ truth @ other))
    table = np.outer(*shares)
    expected = slow_fit(table, shares, levels, blocks, 3)
    starts = np.cumsum([0, *(wanted.size for _, _, wanted in blocks)])[:-1]
    listed = np.array(
        [(level, depth, start) for (level, depth, _), start in zip(blocks, starts, strict=True)]
    )
    contrasts = np.concatenate([wanted.ravel() for _, _, wanted in blocks])
    kernels.fit_table(table, *shares, np.array(levels), listed, contrasts, np.zeros(len(blocks)), 3, 3)
    assert np.abs(table - expected).max() < 1e-12


@pytest.mark.parametrize(("noise", "kept"), [(0.02, True), (0.0, False)])
def test_a_contrast_that_is_known_already_is_left_out(noise: float, kept: bool) -> None:
    """With an empty half, a node's contrast is what coarser ones say, with less noise: the coarse one is kept."""
    shares = [np.array([0.5, 0.5]), np.array([0.25, 0.25, 0.5 - 1e-9, 1e-9])]
    blocks, contrasts = np.array([[0, 0, 0], [0, 1, 1]]), np.array([0.1, 0.0, 0.2])
    table = np.outer(*shares)
    noises = np.array([noise / 20, noise])
    kernels.fit_table(table, *shares, np.array([1, 2]), blocks, contrasts, noises, 50, 3)
    halves = table.reshape(2, 2, 2).sum(axis=2)
    coarse = halves[0, 0] + halves[1, 1] - halves[0, 1] - halves[1, 0]
    assert (abs(coarse - 0.1) < 0.001) == kept


def test_normal_quantiles() -> None:
    levels = np.concatenate((np.geomspace(1e-12, 0.5, 200), 1 - np.geomspace(1e-12, 0.5, 200)))
    found = np.array([kernels.normal_quantile(level) for level in levels])
    assert np.abs(found - ndtri(levels)).max() < 1e-7


@pytest.mark.parametrize(
    ("mean", "spread", "low", "high"), [(0, 1, -1, 2), (3, 0.5, -8, 0), (-9, 1, 1, 2), (0.2, 0.01, 5, 6)]
)
def test_truncated_normals(mean: float, spread: float, low: float, high: float) -> None:
    levels = np.linspace(0.01, 0.99, 50)
    found = np.array([kernels.truncated_normal(mean, spread, low, high, level) for level in levels])
    assert (found >= low).all()
    assert (found <= high).all()
    begin, end = ndtr((low - mean) / spread), ndtr((high - mean) / spread)
    if end - begin > 1e-12:
        wanted = mean + spread * ndtri(begin + levels * (end - begin))
        assert np.abs(found - wanted).max() < 1e-5


def points_of_normal() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points, and the normal distribution function there, between which its density is taken as constant."""
    points = np.linspace(-8, 8, 1025)
    return points, np.array([0.5 * math.erfc(-x * math.sqrt(0.5)) for x in points])


def slow_between(lower: float, upper: float, level: float) -> float:
    points, below = points_of_normal()
    begin, end = np.interp([lower, upper], points, below)
    return float(np.clip(np.interp(begin + level * (end - begin), below, points), lower, upper))


def slow_latent(codes: Any, cuts: Any, root: Any, precision: Any, sweeps: int, seed: int) -> Any:
    """Tile by tile of 256 rows; in each attribute after attribute, and row after row."""
    words, parts = Words(seed), []
    for first in range(0, len(codes), 256):
        here = codes[first : first + 256]
        placed, own = np.zeros(here.shape), np.zeros(here.shape)
        for sweep in range(sweeps + 1):
            for k in range(here.shape[1]):
                low, high = cuts[k, here[:, k]], cuts[k, here[:, k] + 1]
                if sweep == 0:
                    mean, spread = own[:, :k] @ root[k, :k], root[k, k]
                else:
                    others = np.arange(here.shape[1]) != k
                    mean = -placed[:, others] @ precision[k, others] / precision[k, k]
                    spread = precision[k, k] ** -0.5
                ends = zip((low - mean) / spread, (high - mean) / spread, strict=True)
                own[:, k] = [slow_between(a, b, words.uniform()) for a, b in ends]
                placed[:, k] = mean + spread * own[:, k]
        parts.append(placed)
    return np.concatenate(parts)


@pytest.mark.parametrize("sweeps", [0, 2])
def test_latent_normals_are_placed_as_the_reference_places_them(sweeps: int) -> None:
    random = np.random.default_rng(sweeps)
    wanted = np.array([[1, 0.6, -0.3], [0.6, 1, 0.2], [-0.3, 0.2, 1]])
    cuts = np.tile([-8.0, -0.5, 0.7, 8.0], (3, 1))
    # one row more than a tile
    latent = random.multivariate_normal(np.zeros(3), wanted, 257)
    codes = np.stack([np.searchsorted(cuts[0, 1:-1], column) for column in latent.T], axis=1).astype(np.uint8)
    given = cuts, np.linalg.cholesky(wanted), np.linalg.inv(wanted), sweeps
    placed = kernels.place_latent(codes, np.arange(3), *given, np.uint64(3))
    assert np.abs(placed - slow_latent(codes, *given, 3)).max() < 1e-9


@pytest.mark.parametrize(
    ("lower", "upper"), [(-8, 8), (-0.1, 0.05), (0.3, 0.3001), (4.9, 5.2), (5.5, 9), (-7, -6), (-9, -4.99)]
)
def test_the_table_places_normals_between_bounds(lower: float, upper: float) -> None:
    levels = np.linspace(0.01, 0.99, 50)
    found = np.empty(50)
    kernels.between(np.full(50, lower, float), np.full(50, upper, float), levels.copy(), found)
    begin, end = (ndtr([lower, upper]) if upper < 0 else 1 - ndtr([-lower, -upper])).tolist()
    if lower > 0:
        # the upper tail, with all its digits
        begin, end = ndtr([-lower, -upper]).tolist()
        wanted = -ndtri(begin + levels * (end - begin))
    else:
        wanted = ndtri(begin + levels * (end - begin))
    # a step of the table is 1/64 wide
    assert np.abs(found - wanted).max() < 2e-3
    assert (np.diff(found) >= 0).all()


def test_latent_normals_lie_in_their_bins_and_have_their_correlations() -> None:
    random = np.random.default_rng(0)
    wanted = np.array([[1, 0.8, -0.3], [0.8, 1, 0], [-0.3, 0, 1]])
    latent = random.multivariate_normal(np.zeros(3), wanted, 20_000)
    cuts = np.tile([-8.0, -0.5, 0.7, 8.0], (3, 1))
    codes = np.stack([np.searchsorted(cuts[0, 1:-1], column) for column in latent.T], axis=1).astype(np.uint8)
    root, precision = np.linalg.cholesky(wanted), np.linalg.inv(wanted)
    placed = kernels.place_latent(codes, np.arange(3), cuts, root, precision, 5, np.uint64(4))
    for column in range(3):
        own = codes[:, column]
        assert (placed[:, column] >= cuts[column, own]).all()
        assert (placed[:, column] <= cuts[column, own + 1]).all()
    assert np.abs(np.corrcoef(placed.T) - wanted).max() < 0.02
