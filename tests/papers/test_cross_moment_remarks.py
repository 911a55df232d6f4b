"""What the cross-moment paper says besides figures and propositions: facts are counted right, verdicts follow them."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papers import Desk
from papers.cross_moment import curves as curve_module
from papers.cross_moment import eigen, remarks, remarks_claims, small_worlds
from papers.cross_moment.coefficients import section as coefficients_section
from papers.cross_moment.curves import BASELINES, COEFFICIENTS, Curves
from papers.cross_moment.measure import Cell
from papers.linked_columns import Linked
from papers.study import Claim
from tests.conftest import data_file

from .quick import only


@cache
def flat(higher: str = "") -> Curves:
    """Every error is 40, but for baselines, which are lower, and for one method."""
    desk = Desk(Path(), quick=True)

    def value(one: Cell) -> float:
        return 39.0 if one.epsilon is None else 41.0 if one.method == higher else 40.0

    found = {
        f"{one.key}, runs={runs}": [value(one)] * runs for one, runs in curve_module.wanted(desk).items()
    }
    return curve_module.curves_of(desk, found)


@cache
def counted_facts() -> dict[str, Any]:
    data_file("eia.csv")
    return remarks.facts(data_file("census.csv").parent)


def claims(
    facts: dict[str, Any] | None = None,
    linked: Linked | None = None,
    curves: Curves | None = None,
    worse: float = 0.5,
) -> list[Claim]:
    errors = {("xm-15", k, epsilon): 40 - worse * epsilon for k in (100, 300) for epsilon in (1.0, 2.0)}
    made = remarks_claims.section(
        curves or flat(), facts or counted_facts(), errors, linked or Linked(400, 271, 0)
    )
    return list(made.claims)


@pytest.mark.parametrize(
    ("fact", "value", "words", "before", "after"),
    [
        ("homogeneity", {"5": 1.2, "50": 1.1}, "insensitive clusters are less", "holds partly", "holds"),
        ("at the cap", {"Census 2": 0.1}, "local sensitivity is usually small", "fails", "holds"),
        ("repaired", [0, 21], "must be replaced by the nearest", "holds", "fails"),
        ("drawn", {"50": 0.1, "500": 0.04}, "sampled rows retain", "holds partly", "holds"),
        ("beyond", 0.0, "neither normal nor skew-normal", "holds", "fails"),
        (
            "equal rows",
            {"xm-b1": 100, "xm-6": 390},
            "privacy is higher with k = 390",
            "holds partly",
            "holds",
        ),
        ("equal rows", {"xm-b1": 1, "xm-6": 1}, "privacy is higher with k = 390", "holds partly", "fails"),
        ("cells", [(10, 10), (20, 19)], "cells of a histogram", "holds", "fails"),
    ],
)
def test_other_facts_would_change_the_verdict(
    fact: str, value: object, words: str, before: str, after: str
) -> None:
    changed = deepcopy(counted_facts())
    assert only(claims(changed), words).verdict == before
    changed[fact] = value
    assert only(claims(changed), words).verdict == after


def test_the_other_verdicts_follow_what_is_measured() -> None:
    assert only(claims(), "do not add up to a DP data set").verdict == "holds"
    assert only(claims(linked=Linked(400, 271, 250)), "do not add up to a DP data set").verdict == "fails"
    assert only(claims(), "a smaller ε than 2").verdict == "holds"
    assert only(claims(worse=-0.5), "a smaller ε than 2").verdict == "fails"
    assert only(claims(), "how clusters are made").verdict == "fails"
    assert only(claims(curves=flat("xm-20")), "how clusters are made").verdict == "holds"
    steeper = deepcopy(counted_facts())
    steeper["first two columns"] = {name: place for place, name in enumerate(steeper["first two columns"])}
    assert only(claims(), "curse of dimensionality").verdict == "holds partly"
    assert only(claims(steeper), "curse of dimensionality").verdict == "holds"


def test_variability_is_judged_with_and_without_noise() -> None:
    changed = deepcopy(counted_facts())
    assert only(claims(changed), "means alone attenuate").verdict == "holds partly"
    changed["deviations"]["xm-3"] = [1.0] * 4
    assert only(claims(changed), "means alone attenuate").verdict == "holds"


def test_clusters_without_noise_are_k_anonymous_and_drawn_rows_are_not() -> None:
    found = counted_facts()["equal rows"]
    assert found["xm-b1"] >= 100
    assert found["xm-6"] < 390


def test_means_have_less_spread_than_the_data() -> None:
    found = counted_facts()["deviations"]
    assert max(found["xm-b1"]) < 1
    assert all(abs(a - 1) < abs(b - 1) for a, b in zip(found["xm-b3"], found["xm-b1"], strict=True)), (
        "variances give the spread back where there is no noise"
    )


def test_the_local_bound_of_far_apart_eigenvalues_is_below_the_cap() -> None:
    rng = np.random.default_rng(0)
    narrow = np.stack([rng.random(4_000), 0.5 + 0.01 * rng.random(4_000)], axis=1)
    narrow[0] = narrow[1] = 1.0
    assert remarks.at_the_cap(narrow, 2_000) < 1
    assert remarks.at_the_cap(rng.random((400, 2)), 100) == 1


def test_an_expectation_over_some_samples_only_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(abs(error) for size in (3, 4, 5) for error in remarks.unbiased(size)) < 1e-12
    monkeypatch.setattr(remarks, "product", lambda values, repeat: [(0,) * repeat, (2,) * repeat])
    assert abs(remarks.unbiased(4)[0]) > 0.1


def test_ranks_that_are_not_fixed_would_move_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Univariate MDAV starts at the farther end, and breaks the bound."""
    from shoal.partition import mdav

    change = remarks.ranked_change.__wrapped__
    assert change(5, 2) <= 1 + 1e-9
    monkeypatch.setattr(remarks, "ranking", lambda x, k: mdav(x[:, np.newaxis], k))
    assert change(5, 2) > 1 + 1e-9


def test_every_coefficient_method_has_a_baseline() -> None:
    assert set(BASELINES) == set(COEFFICIENTS)
    words = "a baseline is the least error"
    assert only(coefficients_section(flat()).claims, words).verdict == "holds"
    raised = flat()
    lower = {one: (runs - 3 if one.method == "xm-5" else runs) for one, runs in raised.found.items()}
    below = Curves(raised.sizes, raised.epsilons, raised.runs, lower)
    assert only(coefficients_section(below).claims, words).verdict == "holds partly"


def test_masking_separately_is_judged_by_the_errors() -> None:
    words = "masked separately (Algorithm 2), less utility is lost"
    assert only(coefficients_section(flat()).claims, words).verdict == "fails"
    assert only(coefficients_section(flat("xm-2")).claims, words).verdict == "holds partly"


def test_a_dp_version_of_the_eigen_form_is_judged_by_the_errors() -> None:
    words = "any DP version of the eigen form"
    assert only(eigen.section(flat()).claims, words).verdict == "holds"
    cheaper = flat()
    lower = {one: (runs - 3 if one.method == "xm-2" else runs) for one, runs in cheaper.found.items()}
    below = Curves(cheaper.sizes, cheaper.epsilons, cheaper.runs, lower)
    assert only(eigen.section(below).claims, words).verdict == "fails"


def test_bounds_of_the_eigen_form_fail_together_and_in_slices() -> None:
    assert [small_worlds.eigenvalue_ratio(size) for size in (3, 4)] == pytest.approx([1, 1])
    assert min(small_worlds.eigen_form_ratios().values()) > 1.3
    slices = small_worlds.slice_ratios()
    assert slices["the better sign"] < 1
    assert slices["as a solver finds them"] > 2
    assert slices["largest component positive"] > 2
