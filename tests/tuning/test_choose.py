"""Grids, frontiers and recommendations, from synthetic figures."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import OptionError
from shoal.mechanisms.registry import Tuned
from shoal.text import Message
from shoal.tuning.grid import (
    Row,
    Setting,
    SettingMeasure,
    automatic_utility,
    best_row,
    compared,
    default_sizes,
    exactly,
    make_grid,
    make_row,
    over_seeds,
    with_frontier,
)
from shoal.tuning.result import plot_svg, reasons


def row(k: int, loss: SettingMeasure, risk: SettingMeasure, method: str = "ranking-dp") -> Row:
    return Row(Setting(method, k), "dp-given-partition", loss, risk)


def test_a_grid_has_every_combination_and_no_other() -> None:
    grid = make_grid(
        ["laplace", "ranking-dp", "tree-dp"], [3, 9], ["equal", "optimal"], ["laplace", "staircase"], 50
    )
    assert len(set(grid)) == len(grid) == 2 + 2 * 2 * 2 + 1
    assert Setting("laplace", None, "optimal") in grid
    assert Setting("tree-dp") in grid
    assert compared(grid) == ("method", "k", "split", "noise")


def test_the_default_grid_has_ten_sizes_of_each_method_with_sizes() -> None:
    grid = make_grid(None, None, None, None, 1080)
    assert len(grid) == 5 * 10 + 3
    assert max(setting.k or 0 for setting in grid) == 540


@pytest.mark.parametrize("n", [1, 2, 3, 7, 12, 100, 10**6])
def test_default_sizes_fit_the_table(n: int) -> None:
    sizes = default_sizes(n)
    assert 1 <= len(sizes) <= 10
    assert min(sizes) >= 1
    assert max(sizes) <= n
    assert list(sizes) == sorted(set(sizes))


def test_what_is_not_compared_is_not_chosen() -> None:
    assert compared([Setting("ranking-dp", 5)]) == ()
    assert compared([Setting("ranking-dp", 5), Setting("mdav-dp", 5)]) == ("method",)
    assert compared([Setting("ranking-dp", 5, "equal"), Setting("ranking-dp", 5, "optimal")]) == ("split",)


@pytest.mark.parametrize(("option", "value"), [("methods", []), ("ks", [3, 3]), ("splits", "equal")])
def test_bad_lists_are_named(option: str, value: object) -> None:
    arguments = {"methods": None, "ks": None, "splits": None, "noises": None, option: value}
    with pytest.raises(OptionError, match=option):
        make_grid(**arguments, n=10)  # type: ignore[arg-type]


def test_intervals_are_those_of_student() -> None:
    found = over_seeds([1.0, 2.0, 4.0, 5.0, 8.0])
    # t(4, .975) = 2.7764, standard deviation 2.7386
    assert found.mean == 4
    assert found.low == pytest.approx(4 - 2.77645 * 2.73861 / 5**0.5, rel=1e-5)
    assert found.high == pytest.approx(4 + 2.77645 * 2.73861 / 5**0.5, rel=1e-5)
    assert over_seeds([99.0, 100.0], most=100).high == 100
    assert over_seeds([3.0]).low is None


finite = st.floats(0.01, 10)


@given(st.lists(st.tuples(finite, finite, st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=15))
def test_the_frontier_holds_what_nobody_beats_and_drops_only_what_somebody_beats(
    points: list[tuple[float, float, float, float]],
) -> None:
    rows = [
        row(k, SettingMeasure(loss, loss - u, loss + u), SettingMeasure(risk, risk - v, risk + v))
        for k, (loss, risk, u, v) in enumerate(points, start=1)
    ]
    marked = with_frontier(rows)
    assert [r.loss.mean for r in marked if r.loss] == sorted(loss for loss, *_ in points)
    for r in marked:
        assert r.loss is not None
        assert r.risk is not None
        better = [
            o
            for o in marked
            if o.loss is not None
            and o.risk is not None
            and o.loss.mean <= r.loss.mean
            and o.risk.mean <= r.risk.mean
            and o is not r
        ]
        if not better:
            assert r.frontier
        if not r.frontier:
            assert any(
                o.loss.at_most < r.loss.at_least  # type: ignore[union-attr]
                or o.risk.at_most < r.risk.at_least  # type: ignore[union-attr]
                or (o.loss, o.risk) == (r.loss, r.risk)
                for o in better
            )
    assert any(r.frontier for r in marked)
    assert best_row(marked, None) is marked[0]


def test_what_the_seeds_cannot_tell_apart_stays_on_the_frontier() -> None:
    close = [
        row(3, SettingMeasure(1.0, 0.8, 1.2), exactly(1.0)),
        row(5, SettingMeasure(1.1, 0.9, 1.3), exactly(1.0)),
    ]
    apart = [
        row(3, SettingMeasure(1.0, 0.98, 1.02), exactly(1.0)),
        row(5, SettingMeasure(1.1, 1.08, 1.12), exactly(1.0)),
    ]
    assert [r.frontier for r in with_frontier(close)] == [True, True]
    assert [r.frontier for r in with_frontier(apart)] == [True, False]


def test_of_settings_that_are_the_same_the_largest_size_is_on_the_frontier() -> None:
    """Optimal partitions do not change until the least size is above that of their smallest cluster."""
    rows = with_frontier([row(k, exactly(1.0), exactly(1.0)) for k in (3, 5, 9)])
    assert [(found.setting.k, found.frontier) for found in rows] == [(9, True), (5, False), (3, False)]


def test_a_limit_on_risk_is_held_by_the_whole_interval() -> None:
    rows = with_frontier(
        [
            row(3, exactly(1.0), SettingMeasure(4.0, 3.0, 5.0)),
            row(9, exactly(2.0), SettingMeasure(1.9, 1.7, 2.1)),
            row(20, exactly(3.0), SettingMeasure(1.0, 0.5, 1.5)),
        ]
    )
    chosen = {limit: best_row(rows, limit) for limit in (None, 6, 2.1, 2, 1)}
    assert [found and found.setting.k for found in chosen.values()] == [3, 3, 9, 20, None]
    found = reasons(rows, chosen[2], "normalised_sse", 2, 100, Tuned(("k",)))
    assert [one.code for one in found] == [
        "least-loss-within-risk",
        "beaten",
        "links-own-record",
        "its-claim",
        "choice-looked-at-records",
    ]
    words = " ".join(map(str, found))
    assert "ranking-dp, k = 20 has the smallest loss of 3 settings with a linkage risk of at most 2%" in words
    assert "ranking-dp, k = 3 has a smaller loss, 1, but its risk is above the limit" in words
    assert "The choice of k is data-dependent" in words
    (nothing,) = reasons(rows, None, "normalised_sse", 1, 100, None)
    assert (nothing.code, nothing.facts["setting"].k) == ("no-setting-within-risk", 20)
    assert "smallest risk is that of ranking-dp, k = 20" in str(nothing)


def test_reasons_name_the_best_of_stronger_claims() -> None:
    rows = with_frontier(
        [
            Row(Setting("idp-cbls", 5), "idp-given-partition", exactly(0.1), exactly(1.0)),
            Row(Setting("ranking-dp", 50), "dp-given-partition", exactly(0.25), exactly(1.0)),
            Row(Setting("laplace"), "dp", exactly(30.0), exactly(1.0)),
        ]
    )
    words = " ".join(map(str, reasons(rows, rows[0], "normalised_sse", None, 100, None)))
    assert "Its claim is idp-given-partition." in words
    assert "stronger claim dp is laplace: 30." in words
    assert "stronger claim dp-given-partition is ranking-dp, k = 50: 0.25." in words
    assert "ranking-dp, k = 50 has loss 0.25, 150% more; laplace has loss 30, 300 times as much" in words


def test_the_measure_fits_all_that_is_compared() -> None:
    rows = {"normalised_sse": exactly(1), "scaled_sse": exactly(1), "wasserstein": exactly(1)}
    rows |= {"total_variation": exactly(1), "record_linkage": exactly(1)}
    nobody = {"wasserstein": exactly(1), "total_variation": exactly(1)}
    assert automatic_utility([rows], True, None) == "normalised_sse"
    assert automatic_utility([rows, nobody], True, None) == "wasserstein"
    assert automatic_utility([rows], False, None) == "scaled_sse"
    assert automatic_utility([rows, nobody], False, None) == "total_variation"
    assert automatic_utility([rows, nobody], True, "a>1") == "learning"
    # without runs nothing is known of methods without closed forms
    assert automatic_utility([{"normalised_sse": exactly(1)}, {}], True, None) == "normalised_sse"


def test_rows_that_belong_to_nobody_are_linked_by_guessing() -> None:
    found = make_row(Setting("tree-dp"), "dp", {"wasserstein": exactly(0.5)}, "wasserstein", 50)
    assert found.risk == exactly(2.0)
    assert found.apart is None
    listed = make_row(Setting("tree-dp"), "dp", {"wasserstein": exactly(0.5)}, "normalised_sse", 50)
    assert listed.apart == Message.of("loss-needs-owned-rows")


def test_the_picture_is_well_formed_and_has_every_point() -> None:
    rows = with_frontier([row(k, exactly(9.0 / k), exactly(0.1 * k), "<b>&") for k in (1, 2, 3)])
    drawn = ElementTree.fromstring(plot_svg(rows, "normalised_sse", rows[0], "a < b"))
    names = [found.text or "" for found in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert names[0] == "a < b"
    assert len(names) == 1 + 3
    without_risk = [Row(Setting("laplace"), "dp", exactly(1.0), None)]
    ElementTree.fromstring(plot_svg(without_risk, "normalised_sse", None, "fast"))


def test_the_frontier_is_drawn_over_the_rest_and_the_recommended_setting_last() -> None:
    figures = ((1.0, 9.0), (2.0, 5.0), (3.0, 7.0), (4.0, 1.0))
    rows = with_frontier([row(k, exactly(loss), exactly(risk)) for k, (loss, risk) in enumerate(figures, 3)])
    best = best_row(rows, None)
    drawn = re.findall(
        r'r="5" fill="([^"]+)" stroke=.*', plot_svg(rows, "wasserstein", best, "Loss and risk")
    )
    filled = [colour != "white" for colour in drawn]
    assert filled == sorted(filled)
    assert sum(filled) == sum(found.frontier for found in rows) == 3
    lines = plot_svg(rows, "wasserstein", best, "Loss and risk").splitlines()
    [ringed] = [place for place, line in enumerate(lines) if 'stroke-width="2"' in line]
    assert ringed == max(place for place, line in enumerate(lines) if 'stroke-width="1.5"' in line)
