"""Insensitive microaggregation: the clusters of the textbook, to the last record, and errors that say what fits."""

from __future__ import annotations

import sys
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InputError, OptionError
from shoal.partition import insensitive, ranking
from shoal.partition.multivariate import (
    CornerAxis,
    corner_sequence,
    insensitive_mixed,
    nominal_ends,
    numeric_ends,
)
from tests.conftest import examples

from .insensitive_oracle import (
    textbook_alternate,
    textbook_hamming,
    textbook_insensitive,
    textbook_single,
    unit_bits,
)

# the package has a function of the same name
module = sys.modules["shoal.partition.multivariate"]
TEXTBOOK_CORNERS = {"alternate": textbook_alternate, "hamming": textbook_hamming}


@pytest.mark.parametrize("rule", TEXTBOOK_CORNERS)
@pytest.mark.parametrize("attributes", range(1, 8))
def test_corners_come_in_the_order_of_the_rule_each_once(rule: str, attributes: int) -> None:
    assert list(corner_sequence(attributes, rule)) == TEXTBOOK_CORNERS[rule](attributes)


@pytest.mark.parametrize("rule", TEXTBOOK_CORNERS)
def test_two_to_the_ninety_corners_are_never_listed(rule: str) -> None:
    first = list(islice(corner_sequence(90, rule), 2000))
    assert len(set(first)) == 2000
    assert all(a ^ b == 2**90 - 1 for a, b in zip(first[::2], first[1::2], strict=True))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[CornerAxis], int]:
    """Numbers and nominal values with many ties and duplicates, and a k."""
    n = draw(st.integers(1, 60))
    k = draw(st.integers(1, min(n, 12)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    ends = []
    for _ in range(draw(st.integers(1, 5))):
        size = int(rng.choice([2, 3, 10, 1000]))
        codes = rng.integers(0, size, n)
        if rng.random() < 0.6:
            ends.append(numeric_ends(codes, 0, size - 1))
        else:
            # any distances will do, also some beyond that of the two ends
            low, high = rng.integers(0, 4, (2, size)) / 4
            ends.append(nominal_ends(codes, low, high, 0.5))
    return ends, k


def spelled_out(ends: list[CornerAxis]) -> tuple[list[list[tuple[float, float]]], list[tuple[float, ...]]]:
    n = ends[0].values.size
    distances = [[(float(one.low[i]), float(one.high[i])) for one in ends] for i in range(n)]
    return distances, [tuple(one.values[i].item() for one in ends) for i in range(n)]


@pytest.mark.parametrize("rule", TEXTBOOK_CORNERS)
@pytest.mark.parametrize("few_visits", [0, 1, 10**6], ids=["sorted", "mixed", "selected"])
@settings(max_examples=40)
@given(table=tables(), entries=st.sampled_from([1, 40, 1 << 26]))
def test_clusters_are_those_of_the_textbook(
    rule: str, few_visits: int, table: tuple[list[CornerAxis], int], entries: int
) -> None:
    """Whether corners are sorted, partly sorted or searched again does not show."""
    ends, k = table
    distances, records = spelled_out(ends)
    bits = unit_bits([one.reach for one in ends])
    expected = textbook_insensitive(distances, records, k, TEXTBOOK_CORNERS[rule](len(ends)), bits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW_VISITS", few_visits)
        patch.setattr(module, "_SORTED_ENTRIES", entries)
        made = insensitive_mixed(ends, k, corners=rule)
    assert made.labels.tolist() == expected
    n = len(records)
    assert made.sizes.tolist() == [k] * (n // k - 1) + [n - k * (n // k - 1)]


@settings(max_examples=examples(100))
@given(table=tables())
def test_single_order_is_that_of_the_textbook(table: tuple[list[CornerAxis], int]) -> None:
    ends, k = table
    distances, records = spelled_out(ends)
    bits = unit_bits([one.reach for one in ends])
    made = insensitive_mixed(ends, k, order="single")
    assert made.labels.tolist() == textbook_single(distances, records, k, bits)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 50),
    m=st.integers(1, 4),
    k=st.integers(1, 8),
    log=st.integers(0, 9),
)
def test_where_fractions_are_exact_so_is_the_order(seed: int, n: int, m: int, k: int, log: int) -> None:
    """On a domain of a power of two every distance is exact: no rounding decides between records."""
    width = 2**log
    X = np.random.default_rng(seed).integers(0, width + 1, (n, m))
    k = min(k, n)
    distances = [[(int(x) / width, (width - int(x)) / width) for x in row] for row in X]
    records = [tuple(row) for row in X.tolist()]
    expected = textbook_insensitive(distances, records, k, textbook_alternate(m), None)
    assert insensitive(X, k, bounds=[(0, width)] * m).labels.tolist() == expected


def test_large_tables_agree_with_a_plain_loop() -> None:
    """Long queues, sweeps and many visits of four corners: 5,000 records in clusters of three and of 71."""
    X = np.minimum(np.random.default_rng(5).lognormal(2, 1.5, (5000, 2)), 1000).round()
    squares = [np.rint((part / 1000) ** 2 * 2.0**58).astype(np.int64) for part in (X, 1000 - X)]
    for k in (3, 71):
        alive, expected, cluster = np.lexsort(X.T[::-1]), np.empty(5000, dtype=np.int64), 0
        while alive.size >= 2 * k:
            first, second = [(0, 0), (1, 1), (0, 1), (1, 0)][cluster % 4]
            far = squares[first][alive, 0] + squares[second][alive, 1]
            order = np.argsort(far, kind="stable")
            expected[alive[order[:k]]] = cluster
            alive = alive[np.sort(order[k:])]
            cluster += 1
        expected[alive] = cluster
        assert np.array_equal(insensitive(X, k, bounds=[(0, 1000)] * 2).labels, expected)


@pytest.mark.parametrize("order", ["corners", "single"])
def test_the_order_of_rows_does_not_matter(order: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.integers(0, 6, (80, 3))
    shuffled = rng.permutation(80)
    before = insensitive(X, 7, bounds=[(0, 5)] * 3, order=order).labels
    after = insensitive(X[shuffled], 7, bounds=[(0, 5)] * 3, order=order).labels
    for cluster in range(80 // 7):
        members = sorted(map(tuple, X[before == cluster].tolist()))
        assert members == sorted(map(tuple, X[shuffled][after == cluster].tolist()))


def test_one_attribute_in_a_single_order_is_individual_ranking() -> None:
    x = np.random.default_rng(1).integers(0, 50, 37)
    made = insensitive(x, 4, bounds=[(0, 49)], order="single")
    sums = ranking(x, 4, "middle").sums(x)
    assert made.sums(x).tolist() == sums.tolist()


def test_progress_ends_at_all_records() -> None:
    seen: list[tuple[int, int]] = []
    insensitive(np.arange(100), 2, bounds=[(0, 99)], progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (100, 100)
    assert len(seen) > 1


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"order": "corner"}, OptionError, "unknown order = 'corner'.*Did you mean 'corners'"),
        ({"corners": "gray"}, OptionError, "unknown corners = 'gray'"),
        ({"bounds": [(0, 1)]}, OptionError, r"got shape \(1, 2\)"),
        ({"bounds": [(0, 1), (3, 3)]}, OptionError, "lo < hi"),
        ({"bounds": [(0, 1), (0, float("inf"))]}, OptionError, "lo < hi"),
        ({"bounds": [(0, 1), (0, 0.5)]}, InputError, "row 2 is 1.0, outside the domain 0.0 to 0.5"),
        ({"k": 4}, OptionError, "k = 4 is larger"),
        ({"k": 0}, OptionError, "at least 1"),
        ({"X": [[0, 0], [np.nan, 1], [0, 1]]}, InputError, "row 2, column 1 is missing"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(change: dict[str, object], error: type[Exception], words: str) -> None:
    arguments = {"X": [[0, 0], [0, 1], [1, 1]], "k": 1, "bounds": [(0, 1), (0, 1)], **change}
    with pytest.raises(error, match=words):
        insensitive(arguments.pop("X"), arguments.pop("k"), **arguments)


def test_a_code_outside_the_domain_is_named() -> None:
    with pytest.raises(InputError, match="row 2 has code 3, but the domain has codes 0 to 2"):
        nominal_ends([0, 3], [0, 1, 1], [1, 1, 0], 1.0)


def test_a_domain_of_one_value_carries_no_distance() -> None:
    ends = nominal_ends([0, 0, 0], [0.0], [0.0], 0.0)
    assert ends.low.tolist() == ends.high.tolist() == [0, 0, 0]
    made = insensitive_mixed([ends, numeric_ends([1, 2, 3], 0, 3)], 1)
    assert sorted(made.labels.tolist()) == [0, 1, 2]
