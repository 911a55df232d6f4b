"""Every attack against a second implementation that is as slow and as plain as possible, in exact fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.evaluation.attacks import run as nearest
from shoal.evaluation.attacks import singling
from shoal.evaluation.attacks.run import inference, inference_by_guessing, linkability
from shoal.evaluation.attacks.singling import Encoded, Predicates, Space, count_matches, encode, isolating
from shoal.evaluation.linkage import TIE_ULPS, tie_width
from shoal.io import read
from tests.conftest import examples

from .nearest_oracle import nearest_by_scan

Row = tuple[object, ...]


def distance(a: Row, b: Row, ranges: list[Fraction | None]) -> Fraction:
    total = Fraction(0)
    for x, y, width in zip(a, b, ranges, strict=True):
        if width is None:
            total += x != y
        elif width > 0:
            total += abs(Fraction(x) - Fraction(y)) / width  # type: ignore[arg-type]
    return total


def nearest_rows(target: Row, rows: list[Row], ranges: list[Fraction | None]) -> list[int]:
    gaps = [distance(target, row, ranges) for row in rows]
    return [i for i, gap in enumerate(gaps) if gap == min(gaps)]


def part(row: Row, columns: list[int]) -> Row:
    return tuple(row[j] for j in columns)


def linked(target: Row, rows: list[Row], ranges: list[Fraction | None], halves: list[list[int]]) -> Fraction:
    a, b = (
        nearest_rows(part(target, half), [part(row, half) for row in rows], [ranges[j] for j in half])
        for half in halves
    )
    return Fraction(sum(i == j for i in a for j in b), len(a) * len(b))


def inferred(
    target: Row, rows: list[Row], ranges: list[Fraction | None], secret: int, margin: Fraction
) -> Fraction:
    known = [j for j in range(len(target)) if j != secret]
    near = nearest_rows(part(target, known), [part(row, known) for row in rows], [ranges[j] for j in known])
    if ranges[secret] is None:
        right = [rows[i][secret] == target[secret] for i in near]
    else:
        right = [abs(Fraction(rows[i][secret]) - Fraction(target[secret])) <= margin for i in near]  # type: ignore[arg-type]
    return Fraction(sum(right), len(near))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Row], list[Row], list[bool]]:
    """Original and released rows with few different values, so that equal rows and equal distances abound."""
    nominal = draw(st.lists(st.booleans(), min_size=2, max_size=4))
    numbers = st.integers(-3, 3).map(lambda i: i * draw(st.sampled_from([1, 7])))
    row = st.tuples(*(st.sampled_from("abc") if names else numbers for names in nominal))
    return (
        draw(st.lists(row, min_size=1, max_size=8)),
        draw(st.lists(row, min_size=1, max_size=12)),
        nominal,
    )


def frame(rows: list[Row]) -> pa.Table:
    return pa.table({f"c{j}": list(column) for j, column in enumerate(zip(*rows, strict=True))})


def prepared(
    original: list[Row], released: list[Row], nominal: list[bool]
) -> tuple[Encoded, list[Fraction | None]]:
    data = encode(read(frame(original)), read(frame(released)), None, None)
    assert data.space.nominal.tolist() == nominal
    ranges: list[Fraction | None] = []
    for j, names in enumerate(nominal):
        values = [row[j] for row in original + released]
        ranges.append(None if names else Fraction(max(values)) - Fraction(min(values)))  # type: ignore[type-var, arg-type]
    return data, ranges


@given(tables())
@settings(max_examples=examples(300), deadline=None)
def test_linkability_is_that_of_the_plain_definition(given: tuple[list[Row], list[Row], list[bool]]) -> None:
    original, released, nominal = given
    data, ranges = prepared(original, released, nominal)
    halves = [list(range(1)), list(range(1, len(nominal)))]
    found = linkability(data.original, data.released, data.space, *halves)
    assert found.tolist() == [float(linked(target, released, ranges, halves)) for target in original]


@given(tables(), st.integers(0, 7))
@settings(max_examples=examples(300), deadline=None)
def test_inference_is_that_of_the_plain_definition(
    given: tuple[list[Row], list[Row], list[bool]], margin: int
) -> None:
    original, released, nominal = given
    data, ranges = prepared(original, released, nominal)
    for secret in range(len(nominal)):
        found = inference(data.original, data.released, data.space, secret, float(margin))
        assert found.tolist() == pytest.approx(
            [float(inferred(target, released, ranges, secret, Fraction(margin))) for target in original]
        )


@given(tables(), st.integers(0, 7))
@settings(max_examples=examples(100), deadline=None)
def test_guessing_a_secret_is_picking_a_released_row(
    given: tuple[list[Row], list[Row], list[bool]], margin: int
) -> None:
    original, released, nominal = given
    data, _ = prepared(original, released, nominal)
    for j, names in enumerate(nominal):
        allowed = 0 if names else margin
        right = [
            (x[j] == y[j]) if names else abs(x[j] - y[j]) <= allowed  # type: ignore[operator]
            for x in original
            for y in released
        ]
        found = inference_by_guessing(data.original[:, j], data.released[:, j], float(allowed))
        assert found == pytest.approx(sum(right) / len(right))


@given(st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_tree_and_scan_find_the_same_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.unique(rng.integers(0, 9, (60, 3)) * 0.1 + 1e6, axis=0)
    points = rng.integers(0, 9, (20, 3)) * 0.1 + 1e6
    space = Space(("a", "b", "c"), np.zeros(3, dtype=bool), np.full(3, 0.8))
    slack = np.full(20, 1e-8)
    for one, other in zip(
        nearest._by_tree(rows, points, space, slack),
        nearest_by_scan(rows, points, space, slack),
        strict=True,
    ):
        assert one.tolist() == other.tolist()


@given(st.integers(0, 10_000), st.sampled_from([0.0, -1e3, 1e6]))
@settings(max_examples=80, deadline=None)
def test_the_kernel_finds_what_the_scan_finds(seed: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    nominal = rng.permutation([True, True, False, False, False])
    # values on a coarse grid, so that many distances are equal up to rounding
    rows = np.unique(rng.integers(0, 4, (80, 5)) * np.where(nominal, 1.0, 0.1) + offset * ~nominal, axis=0)
    points = rng.integers(0, 4, (25, 5)) * np.where(nominal, 1.0, 0.1) + offset * ~nominal
    space = Space(tuple("abcde"), nominal, np.where(nominal, 1.0, 0.3))
    slack = np.full(25, TIE_ULPS * np.finfo(np.float64).eps * 5)
    slack += tie_width(rows[:, ~nominal], points[:, ~nominal], space.widths[~nominal])
    found = nearest._by_kernel(np.asfortranarray(rows), np.asfortranarray(points), space, slack)
    expected = nearest_by_scan(rows, points, space, slack)
    assert [near.tolist() for near in found] == [near.tolist() for near in expected]
    assert sum(near.size for near in expected) > len(points)


def matches(row: NDArray[np.float64], predicates: Predicates, i: int) -> bool:
    return all(
        predicates.low[i, c] <= row[j] <= predicates.high[i, c] for c, j in enumerate(predicates.columns[i])
    )


@given(tables(), st.integers(0, 1000))
@settings(max_examples=examples(150), deadline=None)
def test_predicates_isolate_one_distinct_released_row_and_are_counted_rightly(
    given: tuple[list[Row], list[Row], list[bool]], seed: int
) -> None:
    original, released, nominal = given
    data, _ = prepared(original, released, nominal)
    rng = np.random.default_rng(seed)
    distinct = np.unique(data.released, axis=0)
    for build in (singling.rare_values, singling.corners):
        predicates = build(singling.distinct_rows(data.released), data.space, 20, rng)
        for i in range(len(predicates)):
            assert sum(matches(row, predicates, i) for row in distinct) == 1
        expected = [sum(matches(row, predicates, i) for row in data.original) for i in range(len(predicates))]
        assert count_matches(data.original, predicates).tolist() == expected
        assert len(predicates.distinct()) == len(predicates)


@given(tables(), st.integers(0, 1000))
@settings(max_examples=examples(100), deadline=None)
def test_corners_equate_names_and_extend_numbers_away_from_the_middle(
    given: tuple[list[Row], list[Row], list[bool]], seed: int
) -> None:
    data, _ = prepared(*given)
    rows = singling.distinct_rows(data.released)
    predicates = singling.corners(rows, data.space, 20, np.random.default_rng(seed))
    medians = np.median(rows, axis=0)
    for columns, low, high in zip(predicates.columns, predicates.low, predicates.high, strict=True):
        assert len(columns) == min(3, len(given[2]))
        for j, lowest, highest in zip(columns, low, high, strict=True):
            if given[2][j]:
                assert lowest == highest
            elif highest == np.inf:
                assert lowest > medians[j]
            else:
                assert lowest == -np.inf
                assert highest <= medians[j]


@given(tables())
@settings(max_examples=examples(100), deadline=None)
def test_rare_values_are_all_values_that_one_distinct_row_has(
    given: tuple[list[Row], list[Row], list[bool]],
) -> None:
    original, released, nominal = given
    data, _ = prepared(original, released, nominal)
    found = singling.rare_values(
        singling.distinct_rows(data.released), data.space, 10_000, np.random.default_rng(0)
    )
    expected = 0
    for j, names in enumerate(nominal):
        values = [row[j] for row in set(released)]
        expected += sum(values.count(value) == 1 for value in values)
        if not names:
            expected += values.count(max(values)) == 1  # type: ignore[type-var]
            expected += values.count(min(values)) == 1  # type: ignore[type-var]
    assert len(found) == expected


def test_counting_no_further_than_needed_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(6001, 3))
    values = rows[rng.integers(len(rows), size=400)]
    predicates = Predicates(
        np.tile(np.arange(3), (400, 1)),
        np.where(values > 0, values, -np.inf),
        np.where(values > 0, np.inf, values),
    )
    kept = isolating(rows, predicates)
    slow = predicates.pick(count_matches(rows, predicates) == 1)
    assert 0 < len(kept) == len(slow) < 400
    assert np.array_equal(kept.low, slow.low)
    assert set(count_matches(rows, predicates, enough=3).tolist()) == {1, 2, 3}


@pytest.mark.parametrize(
    ("count", "rows", "drawn"),
    [(c, n, m) for n in (1, 4, 6) for c in range(n + 1) for m in range(1, n + 1)],
)
def test_chance_to_be_alone_in_a_thinned_table_by_enumeration(count: int, rows: int, drawn: int) -> None:
    subsets = list(itertools.combinations(range(rows), drawn))
    expected = sum(sum(i < count for i in subset) == 1 for subset in subsets) / len(subsets)
    assert singling._alone(count, rows, drawn) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("limit", [1e-4, 1e-3, 1e-2])
def test_a_smaller_control_group_is_extrapolated_to_the_right_rate(limit: float) -> None:
    """Shares spread evenly up to a limit, the stated assumption: the rate at 2000 records from 500."""
    rng = np.random.default_rng(8)
    shares = rng.uniform(0, limit, 40_000)
    truth = float(np.mean(2000 * shares * (1 - shares) ** 1999))
    counts = rng.binomial(500, shares)
    assert singling.control_rate(counts, 500, 2000).value == pytest.approx(truth, rel=0.25)
    # taking the rate as it is would be far off at the ends
    if limit != 1e-3:
        assert not math.isclose(float(np.mean(counts == 1)), truth, rel_tol=0.5)
