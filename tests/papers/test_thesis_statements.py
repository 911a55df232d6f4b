"""Statements of the thesis that its text makes in passing: other measurements, other verdicts."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from papers.psd2014.lemma import alternating_move
from papers.thesis import chapter3_claims, chapter4_claims, chapter5_claims, chapter7_claims
from papers.thesis.chapter4_theorems import lopsided_gain
from papers.thesis.chapter6_census import census, clusters, widths
from papers.thesis.chapter6_claims_theory import _most_clusters
from papers.thesis.chapter6_replaced import hardly_changed
from papers.thesis.chapter6_small import contents, difference
from shoal.noise import Staircase
from shoal.partition import mdav
from shoal.query.refinement import Factors
from tests.conftest import data_file

from .quick import only


def test_samples_are_no_worse_than_the_whole_table() -> None:
    model = list(chapter3_claims._model())
    assert only(model, "Releasing all records").verdict == "holds"
    assert only(model, "Somebody who knows the confidential values of others").verdict == "holds"


def test_a_smaller_scale_is_not_private() -> None:
    assert chapter4_claims._laplace_loss(1.0) == pytest.approx(1)
    assert chapter4_claims._laplace_loss(0.5) == pytest.approx(2)


def test_noise_that_is_not_symmetric_can_be_optimal_and_a_wide_centre_cannot() -> None:
    assert lopsided_gain(6, 1, 4, 1.0) < 1e-6
    assert lopsided_gain(6, 7, 7, 1.0) > 0.5


def test_intervals_tell_a_private_staircase_from_one_that_is_not() -> None:
    private, other = (Staircase(1.0, epsilon, 0.2037) for epsilon in (1.0, 1.3))
    assert chapter4_claims._largest_ratio(private) == pytest.approx(math.e, rel=1e-6)
    assert chapter4_claims._largest_ratio(other) == pytest.approx(math.exp(1.3), rel=1e-6)


def test_the_second_branch_would_fail_with_factors_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "In the second branch, too"
    assert only(chapter5_claims._branches(), words).verdict == "holds"
    monkeypatch.setattr(
        chapter5_claims, "boolean", lambda share, epsilon: [[Fraction(1, 10), Fraction(9, 10)]] * 2
    )
    assert only(chapter5_claims._branches(), words).verdict == "fails"
    assert Factors.individual(Fraction(1)).mass_up == pytest.approx(0.2689, abs=1e-4)


def test_all_epsilons_of_table_5_5_are_judged() -> None:
    """At ε = 2 noise stays in range more often than not."""
    assert (
        only(chapter5_claims._continuous(), "out of range with great probability").verdict == "holds partly"
    )


def test_clusters_that_change_are_counted() -> None:
    folder, number, k = data_file("census.csv").parent, 540, 15
    records = census(folder)
    after = records.copy()
    after[number] = 0
    before = contents(records, clusters(folder, "MDAV", k))
    new = contents(after, mdav(after / widths(folder), k))
    slowly = [min(difference(one, two) for two in new) <= 1 for one in before]
    assert 0 < sum(slowly) < len(slowly)
    assert hardly_changed(folder, [number], k) == pytest.approx(sum(slowly) / len(slowly))
    assert _most_clusters({5: 0.9, 15: 0.6}).verdict == "holds"
    assert _most_clusters({5: 0.9, 15: 0.4}).verdict == "holds partly"


def test_all_centroids_can_move_by_the_largest_amount() -> None:
    changed, total = alternating_move()
    assert changed == 3
    assert total / changed == pytest.approx(1, abs=0.01)


def test_coarser_buckets_are_judged_by_what_they_lose() -> None:
    assert chapter7_claims._coarseness({"bucket_loss": {"2": 70.0, "3": 60.0}}).verdict == "holds"
    assert chapter7_claims._coarseness({"bucket_loss": {"2": 60.0, "3": 70.0}}).verdict == "fails"


def test_knowing_three_members_helps_less_in_larger_groups() -> None:
    facts = {"swap": [0.04], "whole": [0.14], "truthful": True}
    words = "A larger k mitigates that"
    assert only(chapter7_claims._privacy(facts), words).verdict == "holds"
    assert only(chapter7_claims._privacy({**facts, "whole": [0.05]}), words).verdict == "holds partly"
    assert only(chapter7_claims._privacy({**facts, "truthful": False}), "truthfulness").verdict == "fails"


def test_grouping_by_the_confidential_attribute_is_judged_by_the_loss() -> None:
    facts = {
        "optimal": {"FICA": [1.0, 1.0]},
        "rank_ranges": {
            "5": {"confidential": [0.01, 0.01], "quasi": [0.1, 0.9]},
            "108": {"confidential": [0.1, 0.1], "quasi": [0.2, 0.9]},
        },
        "tenth": 108,
        "quasi_loss": {"confidential": 50.0, "quasi": 10.0},
    }
    words = "replacing quasi-identifiers by one value a group"
    assert only(chapter7_claims.partition_claims(facts), words).verdict == "holds"
    other = {**facts, "quasi_loss": {"confidential": 10.0, "quasi": 50.0}}
    assert only(chapter7_claims.partition_claims(other), words).verdict == "fails"
    assert only(chapter7_claims.partition_claims(facts), "several versions").found.endswith("groups of 1.")
