"""Post-processing of the tree: consistent counts, shapes of trees, rows, and the rule for the depth."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import OptionError
from shoal.mechanisms.tree.intervals import (
    CutIntervals,
    Layout,
    Level,
    Purposes,
    Purse,
    consistent_counts,
    draw_edges,
    halved,
    lay_out,
    measure_intervals,
    nearest_counts,
    rake,
    rank_intervals,
    whole_counts,
)
from shoal.mechanisms.tree.mechanism import measure_values
from shoal.mechanisms.tree.method import TreeDP
from shoal.mechanisms.tree.sample import draw_positions, grow, sort_into
from shoal.noise import Seeded
from shoal.privacy import Accountant
from tests.conftest import examples


def method(**options: Any) -> TreeDP:
    return TreeDP(**{"epsilon": "1", **options})


def purse(layout: Layout, seed: int, **ways: int) -> Purse:
    """The account of a table of one attribute, with all that its layout reserves."""
    purposes = Purposes(layout, 1, **ways)
    reserved = purposes.reserved()
    return Purse(Accountant.of(reserved, sum(reserved.values(), Fraction(0)), Seeded(seed)), purposes, "x", 0)


def level(noisy: list[float], variance: float, doubt: float) -> Level:
    return Level(np.array(noisy), variance, np.full(len(noisy) // 2, 0.5), doubt)


def test_consistent_counts_are_the_least_squares_solution_when_nothing_is_expected() -> None:
    """Against the normal equations of the whole tree, root fixed, with variances of their own per level."""
    rng = np.random.default_rng(4)
    sizes, variances = (2, 4, 8), (9.0, 4.0, 1.0)
    noisy = [100.0 * 8 / size + rng.normal(0, 5, size) for size in sizes]
    rows, weights, values = [], [], []
    for size, counts, variance in zip(sizes, noisy, variances, strict=True):
        for node in range(size):
            row = np.zeros(8)
            row[node * 8 // size : (node + 1) * 8 // size] = 1
            rows.append(row)
            values.append(counts[node])
            weights.append(variance**-0.5)
    design = np.array(rows) * np.array(weights)[:, None]
    # the root's total is a constraint: one leaf is what the others leave
    free = np.vstack([np.eye(7), -np.ones(7)])
    offset = np.append(np.zeros(7), 800.0)
    solution, *_ = np.linalg.lstsq(
        design @ free, np.array(values) * np.array(weights) - design @ offset, rcond=None
    )
    levels = [level(c.tolist(), v, 1e9) for c, v in zip(noisy, variances, strict=True)]
    assert consistent_counts(800, levels)[-1] == pytest.approx(free @ solution + offset)


@given(
    st.integers(0, 1000),
    st.lists(st.floats(-200, 200), min_size=14, max_size=14),
    st.floats(0.01, 1e6),
    st.floats(0.001, 10),
)
def test_consistent_counts_add_up_and_are_never_negative(
    total: int, noise: list[float], variance: float, doubt: float
) -> None:
    levels = [
        level(noise[:2], variance, doubt),
        level(noise[2:6], variance, doubt),
        level(noise[6:], variance, doubt),
    ]
    counts = consistent_counts(total, levels)
    for above, below in pairwise(counts):
        assert below.min() >= 0
        assert below.reshape(-1, 2).sum(axis=1) == pytest.approx(above, abs=1e-6)
    assert counts[0].tolist() == [total]


def test_drowned_counts_fall_back_to_what_is_expected() -> None:
    drowned = Level(np.array([900.0, -700.0]), 1e12, np.array([0.25]), 0.1)
    assert consistent_counts(80, [drowned])[1] == pytest.approx([20, 60], rel=1e-3)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=40), st.integers(0, 500))
def test_whole_counts_keep_the_total_and_every_run(counts: list[float], total: int) -> None:
    whole = whole_counts(np.array(counts), total)
    assert whole.sum() == total
    assert whole.min() >= 0
    if sum(counts) > 0:
        wanted = np.cumsum(counts) / sum(counts) * total
        assert np.abs(np.cumsum(whole) - wanted).max() <= 0.5 + 1e-6


def test_raking_meets_two_margins() -> None:
    cells = np.array([10.0, 20.0, 30.0, 40.0])
    raked = rake(
        cells,
        [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])],
        [np.array([60.0, 40.0]), np.array([50.0, 50.0])],
        rounds=100,
    )
    assert raked.reshape(2, 2).sum(axis=1) == pytest.approx([60, 40])
    assert raked.reshape(2, 2).sum(axis=0) == pytest.approx([50, 50])


def test_raking_leaves_groups_without_weight_alone() -> None:
    assert rake(np.array([0.0, 2.0]), [np.array([0, 1])], [np.array([5.0, 1.0])]).tolist() == [0.0, 1.0]


def test_the_widest_box_is_halved_first_and_records_find_their_leaf() -> None:
    """The first attribute wins the tie at the root; then the second is still whole and the first is not."""
    edges = [np.array([0, 1, 2, 51, 100]), np.array([0, 25, 50, 75, 100])]
    counts = [[np.full(1 << halvings, 64.0 / (1 << halvings)) for halvings in range(3)] for _ in range(2)]
    tree = grow(edges, counts, depth=2)
    assert tree.attributes[0].tolist() == [0]
    assert tree.attributes[1].tolist() == [1, 1]
    deeper = grow(edges, counts, depth=4)
    assert deeper.halved.sum(axis=1).tolist() == [4] * 16
    codes = np.array([[0, 3, 2, 1], [0, 3, 1, 2]], dtype=np.uint16)
    leaves = sort_into(deeper, codes, cuts=[2, 2])
    for record, leaf in enumerate(leaves):
        for attribute in range(2):
            halved = deeper.halved[leaf, attribute]
            assert codes[attribute, record] >> (2 - halved) == deeper.place[leaf, attribute]


@given(st.integers(1, 4), st.integers(0, 3), st.data())
@settings(max_examples=60, deadline=None)
def test_leaves_cover_every_combination_of_intervals_once(
    attributes: int, cuts: int, data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    depth = data.draw(st.integers(0, min(attributes * cuts, 7)))
    edges = [np.sort(rng.integers(0, 50, (1 << cuts) + 1)) for _ in range(attributes)]
    for one in edges:
        one[-1] += 1
    counts = []
    for _ in range(attributes):
        finest = rng.integers(0, 9, 1 << cuts).astype(float) + 0.1
        counts.append([finest.reshape(1 << halvings, -1).sum(axis=1) for halvings in range(cuts + 1)])
    tree = grow(edges, counts, depth)
    boxes = 0
    for leaf in range(tree.leaves):
        boxes += int(np.prod(1 << (cuts - tree.halved[leaf])))
    assert tree.leaves == 1 << depth
    assert boxes == 1 << (cuts * attributes)
    codes = rng.integers(0, 1 << cuts, (attributes, 200)).astype(np.uint16)
    leaves = sort_into(tree, codes, [cuts] * len(edges))
    assert ((codes.T >> (cuts - tree.halved[leaves])) == tree.place[leaves]).all()


@given(st.lists(st.integers(0, 12), max_size=12), st.integers(0, 3), st.integers(0, 10**6))
@settings(max_examples=examples(100), deadline=None)
def test_edges_cover_the_lattice_in_order(values: list[int], levels: int, seed: int) -> None:
    account = Accountant.of({"cuts": Fraction(levels)}, Fraction(levels), Seeded(seed))
    spends = [account.spend("cuts", Fraction(1)) for _ in range(levels)]
    edges = draw_edges(np.sort(np.array(values, dtype=np.int64)), [0, 13], spends, Fraction)
    assert edges.size == (1 << levels) + 1
    assert (edges[0], edges[-1]) == (0, 13)
    assert (np.diff(edges) >= 0).all()


@given(st.lists(st.integers(0, 9), max_size=9))
def test_rank_intervals_hold_every_cut_once_with_its_penalty(values: list[int]) -> None:
    ordered = np.sort(np.array(values, dtype=np.int64))
    lengths, penalties = rank_intervals(ordered, 0, 9)
    by_cut = [abs(2 * sum(v < cut for v in values) - len(values)) for cut in range(1, 10)]
    assert lengths.sum() == 9
    assert sorted(by_cut) == sorted(np.repeat(penalties, lengths).tolist())


def test_strong_signals_give_the_true_intervals() -> None:
    """With a huge budget edges are medians, counts and means are exact."""
    huge = Fraction(10**6)
    layout = Layout((huge, huge), (huge, huge), (), huge, huge, adding=False)
    positions = np.repeat(np.array([0, 10, 20, 1000]), 50)
    spent = purse(layout, 1)
    found, codes = measure_intervals(positions, 2000, 200.0, layout, spent)
    assert spent.account.unspent() == {}
    assert found.counts[-1] == pytest.approx([50, 50, 50, 50])
    assert found.means == pytest.approx([0, 10, 20, 1000], abs=0.01)
    assert np.bincount(codes).tolist() == [50, 50, 50, 50]
    assert found.deviations is not None
    # squares are measured in parts of the widest possible one
    assert found.deviations == pytest.approx(np.zeros(4), abs=2)


@given(
    st.lists(st.floats(-50, 200), min_size=1, max_size=8),
    st.integers(1, 300),
    st.lists(st.floats(0.01, 1), min_size=8, max_size=8),
)
def test_nearest_counts_are_nearer_than_any_others(
    noisy: list[float], total: int, weights: list[float]
) -> None:
    found = nearest_counts(np.array(noisy), float(total))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total)
    other = np.array(weights[: found.size])
    other *= total / other.sum()
    for part in (0.01, 0.5, 1):
        mixed = part * other + (1 - part) * found
        assert ((found - noisy) ** 2).sum() <= ((mixed - noisy) ** 2).sum() + 1e-6


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20), st.integers(0, 5))
def test_halves_cover_the_values_in_order_and_split_whatever_can_be_split(
    counts: list[float], cuts: int
) -> None:
    edges = halved(np.array(counts), cuts, [0, len(counts)])
    assert edges.size == (1 << cuts) + 1
    assert (edges[0], edges[-1]) == (0, len(counts))
    assert (np.diff(edges) >= 0).all()
    for level in range(cuts):
        above, below = (np.diff(edges[:: 1 << (cuts - each)]) for each in (level, level + 1))
        assert (below.reshape(-1, 2)[above > 1] > 0).all()


def test_values_counted_one_by_one_come_back_as_often() -> None:
    huge = Fraction(10**6)
    layout = Layout((huge, huge), (huge, huge), (), huge, Fraction(0), adding=False)
    positions = np.repeat(np.array([0, 2, 3, 4]), [10, 50, 30, 10])
    spent = purse(layout, 1, counted=1)
    found, codes = measure_values(positions, 6, 100.0, layout, spent)
    assert spent.account.unspent() == {}
    assert found.points == pytest.approx([10, 0, 50, 30, 10, 0])
    assert found.counts[-1].sum() == pytest.approx(100)
    assert np.bincount(codes, minlength=4) == pytest.approx(found.counts[-1])
    tree = grow([found.edges], [found.counts], depth=1)
    rows = np.bincount(codes >> 1, minlength=2)
    for rebuild in ("uniform", "centroid", "normal"):
        drawn = draw_positions(0, found, tree, rows, rebuild, Seeded(2))
        assert np.bincount(drawn.astype(np.int64), minlength=6).tolist() == [10, 0, 50, 30, 10, 0]


def test_names_of_an_interval_are_drawn_alike() -> None:
    """Without means every position of an interval is as likely as the others, the first and the last included."""
    found = CutIntervals(np.array([0, 4, 10]), [np.array([4.0]), np.array([1.0, 3.0])], None, None)
    tree = grow([found.edges], [found.counts], depth=0)
    drawn = draw_positions(0, found, tree, np.array([4000]), "centroid", Seeded(3))
    assert np.bincount(drawn.astype(np.int64)) == pytest.approx([250] * 4 + [500] * 6, abs=5)


def test_a_box_of_one_value_is_not_halved_while_others_can_be() -> None:
    sexes = np.array([0, 1, 1, 2, 2])
    wide = np.array([0, 25, 50, 75, 100])
    counts = [[np.array([8.0]), np.array([4.0, 4.0]), np.full(4, 2.0)]] * 2
    tree = grow([sexes, wide], counts, depth=3)
    assert tree.halved[:, 0].max() == 1
    assert tree.halved[:, 1].max() == 2


def intervals(means: list[float], deviations: list[float] | None = None) -> CutIntervals:
    return CutIntervals(
        np.array([0, 10, 100]),
        [np.array([4.0]), np.array([1.0, 3.0])],
        np.array(means),
        None if deviations is None else np.array(deviations),
    )


@pytest.mark.parametrize("rebuild", ["uniform", "centroid", "normal"])
def test_rows_stay_inside_their_leaf_and_follow_counts_and_means(rebuild: str) -> None:
    found = intervals([5.0, 20.0], [1.0, 2.0])
    counts = [found.counts]
    tree = grow([found.edges], counts, depth=1)
    rows = np.array([4000, 12000])
    drawn = draw_positions(0, found, tree, rows, rebuild, Seeded(2))
    assert drawn.size == 16_000
    assert drawn[:4000].max() <= 9
    assert drawn[4000:].min() >= 10
    assert drawn[:4000].mean() == pytest.approx(5.0, abs=0.1)
    assert drawn[4000:].mean() == pytest.approx(20.0, abs=0.3)


def test_rows_of_one_leaf_are_spread_over_its_intervals_by_their_counts() -> None:
    found = intervals([5.0, 20.0])
    tree = grow([found.edges], [found.counts], depth=0)
    drawn = draw_positions(0, found, tree, np.array([400]), "uniform", Seeded(3))
    assert (drawn < 10).sum() == 100


def test_a_box_without_counts_still_gets_its_rows() -> None:
    found = CutIntervals(np.array([0, 10, 100]), [np.zeros(1), np.zeros(2)], np.array([5.0, 50.0]), None)
    tree = grow([found.edges], [[np.ones(1), np.ones(2)]], depth=0)
    drawn = draw_positions(0, found, tree, np.array([10]), "centroid", Seeded(3))
    assert sorted(drawn.tolist()) == [5.0] * 5 + [50.0] * 5


@pytest.mark.parametrize(
    "options", [{}, {"cuts": 3}, {"depth": 2, "cuts": 2}, {"rebuild": "normal"}, {"cuts": 0}]
)
@pytest.mark.parametrize("rows", [1, 50, 1000, 10**6])
@pytest.mark.parametrize("attributes", [1, 2, 9])
def test_shares_add_up_to_the_budget_exactly(options: dict[str, object], rows: int, attributes: int) -> None:
    if attributes == 1 and options.get("depth"):
        options = {**options, "depth": 0}
    found = lay_out(method(**options), attributes, rows, Fraction(1))
    own = sum(found.cuts) + sum(found.intervals) + found.means + found.squares
    assert own * attributes + sum(found.leaves) == 1
    assert len(found.cuts) == len(found.intervals)
    assert len(found.leaves) <= len(found.cuts) * attributes


def test_more_records_or_budget_never_make_a_tree_shallower() -> None:
    for attributes in (1, 3, 10):
        depths = [lay_out(method(), attributes, rows, Fraction(1)) for rows in (1, 100, 10**4, 10**6, 10**8)]
        for weaker, stronger in pairwise(depths):
            assert len(weaker.cuts) <= len(stronger.cuts)
            assert len(weaker.leaves) <= len(stronger.leaves)


def test_too_little_for_any_cut_spends_all_on_the_means() -> None:
    found = lay_out(method(), 4, 10, Fraction(1))
    assert (found.cuts, found.leaves, found.means) == ((), (), Fraction(1, 4))


def test_own_shares_are_taken_as_weights() -> None:
    weights = {"cuts": 2, "intervals": 1, "leaves": 4, "means": 1}
    found = lay_out(method(shares=weights, cuts=2, depth=3), 2, 1000, Fraction(1))
    assert sum(found.cuts) * 2 == Fraction(1, 4)
    assert sum(found.leaves) == Fraction(1, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"depth": 5, "cuts": 1}, "depth 5 is too large"), ({"cuts": 11}, "cuts must be at most 10")],
)
def test_impossible_shapes_are_errors(options: dict[str, int], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        lay_out(method(**options), 2, 1000, Fraction(1))


@given(st.integers(0, 4), st.sampled_from(["uniform", "normal"]), st.booleans())
def test_a_place_for_gaps_costs_an_attribute_nothing_more(cuts: int, rebuild: str, adding: bool) -> None:
    neighbours = "add-remove" if adding else "replace-one"
    rows = {"rows": 100} if adding else {}
    own = method(cuts=cuts, rebuild=rebuild, neighbours=neighbours, **rows)
    layout = lay_out(own, 3, 100, Fraction(1))
    assert layout.for_gaps.attribute == layout.attribute
    assert layout.for_gaps.gap > 0
    assert layout.gap == 0


def test_missing_values_are_cut_off_first_and_nothing_else_stands_for_them() -> None:
    plain = lay_out(method(epsilon=200, cuts=2), 1, 1000, Fraction(200))
    layout, spent = plain.for_gaps, purse(plain, 2, gaps=1)
    positions = np.repeat([0, 3, 9, 10], [400, 200, 200, 200])
    found, codes = measure_intervals(positions, 10, 1000.0, layout, spent)
    assert spent.account.unspent() == {}
    assert found.gap
    # four intervals of values and as many for the one place behind them
    assert found.edges[4:].tolist() == [10, 11, 11, 11, 11]
    assert (codes[positions == 10] == 4).all()
    assert (codes[positions < 10] < 4).all()
    assert found.counts[1] == pytest.approx([800, 200], abs=5)
    assert (found.highs[:4] <= 9).all()
    assert (found.lows[4:] == 10).all()
    assert found.means is not None
    assert found.means[4] == 10
