"""Optimal partitions: the least expected error over all partitions, decided exactly, on ties and heavy tails too."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.errors import InputError, OptionError
from shoal.partition import Partition, expected_error, optimal, ranking, univariate
from shoal.partition import univariate as dd
from shoal.partition.univariate import Costs, costs_of, scanned_path, shortest_path
from tests.conftest import examples


def cost_of(values: list[Fraction], noise: Fraction) -> Fraction:
    mean = sum(values, Fraction(0)) / len(values)
    return sum(((value - mean) ** 2 for value in values), Fraction(0)) + noise / len(values)


def oracle(values: list[Fraction], noise: Fraction, k: int) -> list[int]:
    """Sizes of the best clusters of sorted values in exact arithmetic; ties go to the lowest start, O(n²)."""
    n = len(values)
    best: list[tuple[Fraction, int] | None] = [(Fraction(0), 0), *[None] * n]
    for j in range(k, n + 1):
        found = None
        for i in range(j - k + 1):
            before = best[i]
            if before is not None:
                cost = before[0] + cost_of(values[i:j], noise)
                if found is None or cost < found[0]:
                    found = (cost, i)
        best[j] = found
    sizes, j = [], n
    while j > 0:
        start = best[j][1]  # type: ignore[index]
        sizes.append(j - start)
        j = start
    return sizes[::-1]


def exactly(x: NDArray[np.int64] | NDArray[np.float64]) -> list[Fraction]:
    return [Fraction(value) for value in np.sort(x).tolist()]


def sizes_of(previous: NDArray[np.int64]) -> list[int]:
    sizes, j = [], previous.size - 1
    while j > 0:
        sizes.append(j - int(previous[j]))
        j = int(previous[j])
    return sizes[::-1]


def noise_of(width: object, epsilon: object) -> Fraction:
    return 2 * (Fraction(str(width)) / Fraction(str(epsilon))) ** 2


SHAPES = {
    "few values": lambda rng, n: rng.integers(0, 6, n),
    "a grid": lambda rng, n: np.arange(n) * 3,
    "a grid with repeats": lambda rng, n: np.repeat(np.arange(n), 4)[:n],
    "all equal": lambda rng, n: np.full(n, 7),
    "mirrored": lambda rng, n: np.concatenate([-np.arange(n // 2), np.arange(n - n // 2)]) ** 3,
    "clumps": lambda rng, n: rng.integers(0, 3, n) * 2**40 + rng.integers(0, 3, n),
    "heavy tails": lambda rng, n: np.exp(6 * rng.normal(size=n)),
    "heavy tails below": lambda rng, n: -np.floor(np.exp(5 * rng.normal(size=n))).astype(np.int64),
    "decimals": lambda rng, n: np.round(rng.normal(size=n), 1),
    "far from zero": lambda rng, n: 2**50 + rng.integers(0, 100, n),
}
SETTINGS = [("0.1", 1), (1, 3), (5, 2), (30, 1), (400, 3)]

every_shape = pytest.mark.parametrize("shape", SHAPES)


@every_shape
@pytest.mark.parametrize(("epsilon", "k"), SETTINGS)
def test_both_algorithms_equal_exact_arithmetic_ties_included(shape: str, epsilon: object, k: int) -> None:
    rng = np.random.default_rng(3)
    for n in (k, 2 * k, 11, 25):
        x = SHAPES[shape](rng, n)
        width = int(np.ptp(x)) + 1
        costs = costs_of(x, width, epsilon)
        expected = oracle(exactly(x), noise_of(width, epsilon), k)
        assert sizes_of(scanned_path(costs, k)) == expected
        assert sizes_of(shortest_path(costs, k)) == expected


@every_shape
@pytest.mark.parametrize(("epsilon", "k"), SETTINGS)
def test_the_fast_algorithm_equals_the_quadratic_one_at_every_prefix(
    shape: str, epsilon: object, k: int
) -> None:
    rng = np.random.default_rng(4)
    for n in (150, 700):
        x = SHAPES[shape](rng, n)
        costs = costs_of(x, int(np.ptp(x)) + 1, epsilon)
        assert np.array_equal(scanned_path(costs, k), shortest_path(costs, k))


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.integers(-20, 20) | st.sampled_from([10**9, -(10**12)]), min_size=1, max_size=24),
    st.sampled_from(["0.3", 2, 17, 1000]),
    st.integers(1, 4),
)
def test_any_small_column_equals_exact_arithmetic(column: list[int], epsilon: object, k: int) -> None:
    k = min(k, len(column))
    x = np.array(column)
    width = int(np.ptp(x)) + 1
    expected = oracle(exactly(x), noise_of(width, epsilon), k)
    made = optimal(x, width, epsilon, k)
    assert made.sizes.tolist() == expected
    assert sizes_of(shortest_path(costs_of(x, width, epsilon), k)) == expected
    # labels go to records in order of value, ties in record order
    assert np.array_equal(
        made.labels[np.argsort(x, kind="stable")], np.repeat(np.arange(len(expected)), expected)
    )


def set_partitions(n: int, k: int) -> Iterator[list[int]]:
    """Labels of all partitions of n records, runs of values or not, into clusters of k or more."""

    def grow(labels: list[int], used: int) -> Iterator[list[int]]:
        if len(labels) == n:
            if all(labels.count(cluster) >= k for cluster in range(used)):
                yield labels
            return
        for cluster in range(used + 1):
            yield from grow([*labels, cluster], max(used, cluster + 1))

    yield from grow([], 0)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [3, 20])
def test_no_partition_at_all_has_a_smaller_expected_error(k: int, epsilon: int) -> None:
    rng = np.random.default_rng(k)
    for _ in range(3):
        x = rng.integers(0, 30, 8)
        least = min(
            expected_error(x, Partition.from_labels(labels), 30, epsilon) for labels in set_partitions(8, k)
        )
        assert expected_error(x, optimal(x, 30, epsilon, k), 30, epsilon) == pytest.approx(least, rel=1e-12)


def test_costs_satisfy_the_quadrangle_inequality() -> None:
    """What the fast algorithm rests on, in exact arithmetic: crossing intervals cost no more than nested ones."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        values = exactly(rng.integers(0, 9, 12))
        noise = Fraction(int(rng.integers(0, 200)))
        cost = {(i, j): cost_of(values[i:j], noise) for j in range(len(values) + 1) for i in range(j)}
        for i, j in cost:
            for a in range(i + 1):
                for d in range(j, len(values) + 1):
                    assert cost[a, j] + cost[i, d] <= cost[a, d] + cost[i, j]


def naive_sizes(x: NDArray[np.int64], noise: float, k: int) -> list[int]:
    """The same dynamic programme on plain double sums of squares: what must not be done."""
    values = np.sort(x).astype(np.float64)
    s = np.concatenate([[0.0], np.cumsum(values)])
    q = np.concatenate([[0.0], np.cumsum(values * values)])
    cost = np.full(values.size + 1, np.inf)
    cost[0] = 0.0
    previous = np.zeros(values.size + 1, dtype=np.int64)
    for j in range(k, values.size + 1):
        i = np.arange(j - k + 1)
        through = cost[i] + (q[j] - q[i] - (s[j] - s[i]) ** 2 / (j - i) + noise / (j - i))
        previous[j] = int(through.argmin())
        cost[j] = through.min()
    return sizes_of(previous)


@pytest.mark.parametrize("sign", [1, -1])
def test_cancellation_does_not_change_the_partition(sign: int) -> None:
    """Small clusters far from zero, or beside a tail 10^8 times as large: plain sums of squares go wrong there."""
    rng = np.random.default_rng(5)
    near = rng.integers(0, 1000, 45)
    for x in (near + 10**9, np.concatenate([near, 10**11 * np.arange(1, 6)])):
        # a width that belongs to the small clusters, so that their sizes matter
        expected = oracle(exactly(sign * x), noise_of(1000, 5), 2)
        costs = costs_of(sign * x, 1000, 5)
        assert sizes_of(scanned_path(costs, 2)) == expected
        assert sizes_of(shortest_path(costs, 2)) == expected
        # running sums that meet the tail last are still right before it
        if sign == -1 or x.max() < 10**11:
            assert naive_sizes(sign * x, float(noise_of(1000, 5)), 2) != expected


def test_compiled_sums_are_those_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    for shape in SHAPES.values():
        x = shape(rng, 301)
        made: list[Costs] = []
        for compiled in (False, True):
            monkeypatch.setattr(univariate, "compiled", lambda n, compiled=compiled: compiled)
            made.append(costs_of(x, int(np.ptp(x)) + 1, 1))
        assert np.array_equal(made[0].sums[:, :4], made[1].sums[:, :4])
        assert np.allclose(made[0].sums[:, 4], made[1].sums[:, 4], rtol=1e-12)


def test_running_sums_are_exact_to_106_bits() -> None:
    rng = np.random.default_rng(7)
    x = np.sort(rng.integers(-(2**40), 2**40, 500))
    costs = costs_of(x, 2**41, 1)
    unit = Fraction(2) ** costs.exponent
    centred = [Fraction(value) - int(x[250]) for value in x.tolist()]
    for at in (0, 1, 100, 250, 400, 500):
        between = centred[min(at, 250) : max(at, 250)]
        sign = 1 if at >= 250 else -1
        for column, power in ((0, 1), (2, 2)):
            true = sign * sum((value**power for value in between), Fraction(0)) / unit**power
            stored = Fraction(costs.sums[at, column]) + Fraction(costs.sums[at, column + 1])
            assert abs(stored - true) <= abs(true) * Fraction(1, 2**104)


@settings(max_examples=examples(200), deadline=None)
@given(
    *[st.floats(-1e6, 1e6) | st.floats(1e-6, 1e-3)] * 2,
    *[st.floats(-1e-12, 1e-12)] * 2,
    st.integers(1, 10**9),
)
def test_arithmetic_on_pairs_is_accurate_to_100_bits(
    a: float, b: float, x: float, y: float, length: int
) -> None:
    (a, x), (b, y) = dd.two_sum(a, x), dd.two_sum(b, y)
    first, second = Fraction(a) + Fraction(x), Fraction(b) + Fraction(y)
    tiny, floor = Fraction(1, 2**100), Fraction(1, 2**900)

    def close(pair: tuple[float, float], true: Fraction) -> bool:
        return abs(Fraction(pair[0]) + Fraction(pair[1]) - true) <= tiny * abs(true) + floor

    assert close(dd.add(a, x, b, y), first + second)
    assert close(dd.square(a, x), first * first)
    assert close(dd.divide(a, x, float(length)), first / length)


def test_the_compiled_constants_are_those_of_the_quadratic_algorithm() -> None:
    import sys

    from shoal.partition import _kernels as kernels

    module = sys.modules["shoal.partition.univariate"]
    for name in ("ROUGH", "PATH_TIE", "SUMS_TIE"):
        assert getattr(kernels, name) == getattr(module, name)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=3, max_size=60), st.sampled_from(["0.5", 4, 60]))
def test_never_worse_than_any_fixed_size(column: list[int], epsilon: object) -> None:
    x = np.array(column)
    made = optimal(x, 1000, epsilon)
    assert made.sizes.min() >= 3
    own = expected_error(x, made, 1000, epsilon)
    for k in range(3, len(column) + 1):
        assert own <= expected_error(x, ranking(x, k), 1000, epsilon) * (1 + 1e-12)


def test_order_of_rows_shift_and_unit_do_not_matter() -> None:
    rng = np.random.default_rng(8)
    x = rng.permutation(400) ** 2
    made = optimal(x, 200_000, 2)
    order = rng.permutation(400)
    assert np.array_equal(optimal(x[order], 200_000, 2).labels, made.labels[order])
    assert np.array_equal(optimal(x + 2**60, 200_000, 2).labels, made.labels)
    assert np.array_equal(optimal(x.astype(np.uint64), 200_000, 2).labels, made.labels)
    for unit in (2.0**-300, 2.0**60, 2.0**400):
        assert np.array_equal(optimal(x * unit, Fraction(200_000) * Fraction(unit), 2).labels, made.labels)


def test_large_and_small_columns_take_different_ways_to_the_same_clusters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = np.random.default_rng(9).lognormal(3, 2, 1500)
    found = []
    for compiled in (False, True):
        monkeypatch.setattr(univariate, "COMPILED_FROM", 0 if compiled else 10**9)
        monkeypatch.setattr(univariate, "COMPILED_FROM_ONCE_LOADED", 0 if compiled else 10**9)
        found.append(optimal(x, 10_000, 3).labels)
    assert np.array_equal(*found)


def test_more_noise_makes_larger_clusters() -> None:
    x = np.random.default_rng(10).normal(size=600)
    counts = [len(optimal(x, 12, epsilon)) for epsilon in ("0.01", "0.1", 1, 10, 1000)]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] > 150


def test_refuses_what_it_cannot_group() -> None:
    with pytest.raises(InputError, match="row 2"):
        optimal([1.0, np.nan, 2.0], 1, 1)
    with pytest.raises(InputError, match="row 1"):
        optimal([1e200, 1.0, 2.0], 1, 1)
    with pytest.raises(InputError, match="numbers"):
        optimal(["a", "b", "c"], 1, 1)
    with pytest.raises(InputError, match="one attribute"):
        optimal([[1, 2, 3]], 1, 1)
    with pytest.raises(InputError, match="2\\^62"):
        optimal([-(2**62), 0, 2**62], 1, 1)
    with pytest.raises(OptionError, match="must be greater than 0"):
        optimal([1, 2, 3], 0, 1)
    with pytest.raises(OptionError, match="epsilon must be"):
        optimal([1, 2, 3], 1, 0)
    with pytest.raises(OptionError, match="k = 3 is larger"):
        optimal([1, 2], 1, 1)
    with pytest.raises(InputError, match="3 values"):
        expected_error([1, 2, 3], Partition.from_labels([0, 0]), 1, 1)
