"""Block noise: private at every lattice point, exact by enumeration, right draws, wrong scales and shapes rejected."""

from __future__ import annotations

import itertools
import math
from collections import Counter
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
from shoal.noise import (
    Seeded,
    Source,
    SystemEntropy,
    block,
    block_deviations,
    block_noise,
    discrete,
    discrete_laplace,
    exact,
)
from shoal.noise.block import _radius, ball_points, ball_size, subsets, volume

from .decision_tree import enumerate_paths, exp_minus

FALSE_ALARM = 1e-9
Groups = tuple[tuple[int, int, int], ...]


def groups_of(sizes: tuple[int, ...], steps: tuple[int, ...]) -> Groups:
    return tuple(
        (size, step, count) for (size, step), count in Counter(zip(sizes, steps, strict=True)).items()
    )


def level(x: NDArray[np.int64], sizes: tuple[int, ...], steps: tuple[int, ...]) -> NDArray[np.int64]:
    """How many factors exp(-ε) the mass at x is below that at 0; the last axis runs over the entries."""
    ends = np.cumsum([0, *sizes])
    norms = [np.abs(x[..., a:b]).sum(axis=-1) for a, b in itertools.pairwise(ends)]
    found: NDArray[np.int64] = np.max([-(-n // s) for n, s in zip(norms, steps, strict=True)], axis=0)
    return found


def level_shares(groups: Groups, epsilon: float, count: int) -> NDArray[np.float64]:
    """P(level = 0), P(level = 1), ...: the vectors that a level adds, times exp(-ε·level)."""
    logs = np.array([math.log(volume(groups, r)) for r in range(count)])
    new = logs + np.log1p(-np.exp(np.concatenate([[-np.inf], logs[:-1] - logs[1:]])))
    weights = np.exp(new - epsilon * np.arange(count) - (new - epsilon * np.arange(count)).max())
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize(("size", "radius"), list(itertools.product((1, 2, 3, 4), (0, 1, 2, 5))))
def test_the_number_of_integer_vectors_of_a_ball(size: int, radius: int) -> None:
    every = itertools.product(range(-radius, radius + 1), repeat=size)
    assert ball_size(size, radius) == sum(sum(map(abs, x)) <= radius for x in every)


SHAPES = [((1, 1), (1, 1)), ((2, 1), (1, 1)), ((2,), (2,)), ((1, 2), (3, 1)), ((1, 1, 1), (1, 2, 1))]


@pytest.mark.parametrize(("sizes", "steps"), SHAPES)
def test_at_every_lattice_point_the_ratio_between_neighbours_is_within_e_to_the_epsilon(
    sizes: tuple[int, ...], steps: tuple[int, ...]
) -> None:
    entries = sum(sizes)
    points = np.array(list(itertools.product(range(-7, 8), repeat=entries)))
    blocks = np.repeat(np.arange(len(sizes)), sizes)
    reached = 0
    for shift in itertools.product(*(range(-steps[b], steps[b] + 1) for b in blocks)):
        norms = [sum(abs(shift[i]) for i in np.flatnonzero(blocks == b)) for b in range(len(sizes))]
        change = np.abs(level(points + np.array(shift), sizes, steps) - level(points, sizes, steps)).max()
        if all(norm <= step for norm, step in zip(norms, steps, strict=True)):
            assert change <= 1
            reached = max(reached, int(change))
    assert reached == 1
    too_far = np.zeros(entries, dtype=np.int64)
    too_far[0] = steps[0] + 1
    assert np.abs(level(points + too_far, sizes, steps) - level(points, sizes, steps)).max() == 2


@pytest.mark.parametrize(("size", "radius"), [(1, 2), (2, 1), (2, 3), (3, 2), (4, 1)])
def test_points_of_a_ball_are_exactly_uniform_by_enumeration(size: int, radius: int) -> None:
    outcomes, undecided = enumerate_paths(
        lambda source: tuple(ball_points(size, radius, 1, source)[0].tolist()), 1e-9
    )
    assert undecided == 0
    assert len(outcomes) == ball_size(size, radius)
    assert set(outcomes.values()) == {Fraction(1, ball_size(size, radius))}


def test_subsets_are_exactly_uniform_by_enumeration() -> None:
    outcomes, undecided = enumerate_paths(
        lambda source: tuple(subsets(5, np.array([3, 1]), source).ravel().tolist()), 1e-9
    )
    assert undecided == 0
    assert set(outcomes.values()) == {Fraction(1, 10 * 5)}
    assert {tuple(x[3:]) for x in outcomes} == {(i, 6, 6) for i in range(1, 6)}


def test_points_of_a_large_ball_are_uniform() -> None:
    # more than 2^63 vectors, so that the number of entries other than 0 is drawn from long integers
    size, radius, n = 12, 200, 40_000
    points = ball_points(size, radius, n, SystemEntropy())
    norms = np.abs(points).sum(axis=1)
    assert norms.max() <= radius
    edges = np.array([150, 165, 175, 182, 187, 191, 194, 197, 199])
    shares = np.diff([0.0, *(ball_size(size, int(e)) / ball_size(size, radius) for e in edges), 1.0])
    counts = np.bincount(np.searchsorted(edges, norms), minlength=shares.size)
    assert stats.chisquare(counts, shares * n).pvalue > FALSE_ALARM
    # one entry: as many vectors as the others leave room for
    values = np.arange(-radius, radius + 1)
    marginal = np.array([ball_size(size - 1, radius - abs(int(v))) / ball_size(size, radius) for v in values])
    expected = float((marginal * values**2).sum())
    spread = float((marginal * values**4).sum()) - expected**2
    for entry in range(size):
        z = ((points[:, entry].astype(np.float64) ** 2).mean() - expected) / math.sqrt(spread / n)
        assert abs(z) < 6.5


@settings(deadline=None, max_examples=25)
@given(
    blocks=st.lists(
        st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 40)), min_size=1, max_size=3
    ),
    epsilon=st.fractions(Fraction(1, 50), 20, max_denominator=50),
)
def test_proposals_are_never_below_the_weights(blocks: list[tuple[int, int, int]], epsilon: Fraction) -> None:
    groups = tuple(blocks)
    radius = _radius(groups, epsilon)

    def weight(r: int) -> float:
        return math.log(volume(groups, r)) - float(epsilon) * r

    top = radius.mode + radius.centre + 6 * radius.reach
    for r in range(max(0, radius.mode - radius.centre - 6 * radius.reach), top):
        stair = max(math.ceil((abs(r - radius.mode) - radius.centre) / radius.reach), 0)
        assert weight(r) - weight(radius.mode) + stair <= 1e-9
    # and nowhere much above them: a level is proposed less than three times on average
    envelope = 2 * radius.centre + 1 + 2 * radius.reach / (math.e - 1)
    mass = sum(math.exp(weight(r) - weight(radius.mode)) for r in range(top))
    assert mass / envelope > 0.3


@pytest.fixture
def one_bit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Real numbers are revealed one bit at a time, so that every path can be walked."""
    caches: tuple[Any, ...] = (
        exact.exp_coin,
        exact.logistic_coin,
        discrete._outside,
        block._acceptance,
    )
    for name in ("_FIRST_BITS", "_NEXT_BITS"):
        monkeypatch.setattr(exact, name, 1)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.parametrize(
    ("groups", "epsilon"), [(((1, 1, 2),), Fraction(3)), (((2, 1, 1), (1, 2, 1)), Fraction(2))]
)
def test_the_decision_tree_of_the_level_brackets_the_true_probabilities(
    one_bit: None, groups: Groups, epsilon: Fraction
) -> None:
    def attempt(source: Source) -> int | None:
        levels, kept = _radius(groups, epsilon).attempt(1, source)
        return int(levels[0]) if kept[0] else None

    # the vectors of a level are enumerated above
    outcomes, undecided = enumerate_paths(attempt, 3e-5)
    accepted = 1 - outcomes.pop(None) - undecided
    assert undecided < Fraction(1, 50)

    def share(r: int, epsilon: Fraction) -> Fraction:
        q = exp_minus(epsilon)
        return q**r * volume(groups, r) / sum(q**i * volume(groups, i) for i in range(60))

    for r in range(3):
        low, high = outcomes[r] / (accepted + undecided), (outcomes[r] + undecided) / accepted
        assert low <= share(r, epsilon) <= high
    assert outcomes[0] / (accepted + undecided) > share(0, epsilon * 9 / 10)


def fit(draws: NDArray[np.int64], sizes: tuple[int, ...], steps: tuple[int, ...], epsilon: float) -> float:
    """P-value of a chi-square over levels."""
    found = level(draws, sizes, steps)
    shares = level_shares(groups_of(sizes, steps), epsilon, int(found.max()) + 200)
    counts = np.bincount(found, minlength=shares.size)
    used = shares * len(draws) >= 5
    both = np.append(counts[used], counts[~used].sum()), np.append(shares[used], shares[~used].sum())
    return float(stats.chisquare(both[0], both[1] * len(draws)).pvalue)


LARGE = [
    ((1,) * 5, (1,) * 5, "1"),
    ((3,) * 4, (1,) * 4, "0.5"),
    ((1, 1, 4, 2), (1, 2, 1, 3), "0.7"),
    ((4,) * 30, (1,) * 30, "2"),
]


@pytest.mark.parametrize(("sizes", "steps", "epsilon"), LARGE)
def test_levels_follow_the_law_and_a_scale_five_percent_off_is_rejected(
    sizes: tuple[int, ...], steps: tuple[int, ...], epsilon: str
) -> None:
    draws = block_noise(sizes, epsilon, steps=steps, draws=20_000)
    assert fit(draws, sizes, steps, float(epsilon)) > FALSE_ALARM
    for factor in (0.95, 1.05):
        assert fit(draws, sizes, steps, factor * float(epsilon)) < FALSE_ALARM


def fit_vectors(draws: NDArray[np.int64], sizes: tuple[int, ...], epsilon: float, reach: int) -> float:
    """P-value of a chi-square over all vectors within reach."""
    steps = (1,) * len(sizes)
    points = np.array(list(itertools.product(range(-reach, reach + 1), repeat=sum(sizes))))
    q = math.exp(-epsilon)
    total = (1 - q) * sum(q**r * volume(groups_of(sizes, steps), r) for r in range(300))
    shares = np.exp(-epsilon * level(points, sizes, steps)) / total
    found = Counter(map(tuple, draws.tolist()))
    counts = np.array([found[tuple(point)] for point in points.tolist()])
    used = shares * len(draws) >= 5
    rest = len(draws) - counts[used].sum(), 1 - shares[used].sum()
    both = np.append(counts[used], rest[0]), np.append(shares[used], rest[1])
    return float(stats.chisquare(both[0], both[1] * len(draws)).pvalue)


@pytest.mark.parametrize("sizes", [(1, 1), (2,), (1, 2)])
def test_vectors_follow_the_law_and_other_shapes_are_rejected(sizes: tuple[int, ...]) -> None:
    n = 30_000
    assert fit_vectors(block_noise(sizes, 1, draws=n), sizes, 1.0, 4) > FALSE_ALARM
    # independent Laplace noise of the same ε, and one block instead of several or the other way round
    if len(sizes) > 1:
        laplace = discrete_laplace(len(sizes), (n, sum(sizes)))
        assert fit_vectors(laplace, sizes, 1.0, 4) < FALSE_ALARM
    other = (sum(sizes),) if len(sizes) > 1 else (1,) * sum(sizes)
    assert fit_vectors(block_noise(other, 1, draws=n), sizes, 1.0, 4) < FALSE_ALARM


def test_the_spread_is_that_of_the_density_for_many_entries() -> None:
    for sizes, epsilon in [((1,) * 300, "0.1"), ((16,) * 60, "0.2")]:
        draws = block_noise(sizes, epsilon, draws=60).astype(np.float64)
        found = math.sqrt((draws**2).mean())
        expected = block_deviations(sizes, float(epsilon))[0]
        assert found == pytest.approx(expected, rel=0.05)
        assert abs(found - 1.2 * expected) > 0.1 * expected


def test_a_block_that_nobody_moves_gets_no_noise_and_empty_blocks_are_allowed() -> None:
    draws = block_noise([2, 0, 3], "0.1", steps=[0, 1, 4], draws=50)
    assert not draws[:, :2].any()
    assert draws[:, 2:].any()
    assert block_noise([], 1).shape == (0,)


def test_seeds_repeat_and_the_largest_budgets_draw_zeros() -> None:
    again = [block_noise([3, 1, 1], "0.3", Seeded(5), draws=20).tolist() for _ in range(2)]
    assert again[0] == again[1] != block_noise([3, 1, 1], "0.3", Seeded(6), draws=20).tolist()
    assert not block_noise([1] * 20, 10**6).any()


@pytest.mark.parametrize(
    ("arguments", "more", "hint"),
    [
        (([1, 2], 0), {}, "epsilon"),
        (([1, -2], 1), {}, "non-negative sizes"),
        (([1, 2], 1), {"steps": [1]}, "one step for each"),
        (([1, 2], 1), {"steps": [1, -1]}, "steps must be a non-negative integer"),
        (([1, 2], "1e-9"), {"steps": [1, 2**50]}, "coarser step"),
        (([2**30, 2**30], "1e-9"), {"steps": [1, 1]}, "larger epsilon"),
    ],
)
def test_noise_that_cannot_be_drawn_is_refused(arguments: Any, more: dict[str, Any], hint: str) -> None:
    with pytest.raises(OptionError, match=hint):
        block_noise(*arguments, **more)
