"""Statements around the methods of MDAI-2017 and PSD-2014: what they rest on, and verdicts that can change."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from papers import textbook
from papers.mdai2017 import background
from papers.mdai2017.curves import Curves
from papers.psd2014 import background as psd
from papers.psd2014.curves import EPSILONS
from shoal.partition import mdav, vmdav
from tests.conftest import data_file

from .quick import only

SIZES = Curves((10, 50, 300), {}, {}, {})


def test_losses_are_what_composition_says() -> None:
    assert textbook.sequential_loss(0.3, 0.7) == pytest.approx(1.0)
    assert textbook.parallel_loss(0.7, "rows") == pytest.approx(0.7)
    # a replaced record leaves one subset and enters the other
    assert textbook.parallel_loss(0.7, "values") == pytest.approx(1.4)
    assert textbook.laplace_loss(0.7) == pytest.approx(0.7)
    assert textbook.local_loss(0.7, frozen=True) == pytest.approx(0.7)
    assert textbook.local_loss(0.7, frozen=False) == np.inf


def test_noise_of_half_the_scale_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = textbook._laplace
    monkeypatch.setattr(textbook, "_laplace", lambda centre, scale: right(centre, scale / 2))
    assert textbook.laplace_loss(0.7) == pytest.approx(1.4)


def test_other_clusters_would_change_the_verdicts_of_mdai2017(monkeypatch: pytest.MonkeyPatch) -> None:
    census = data_file("census.csv")
    alike = {"MDAV": (1.0, "dp-given-partition"), "another": (1.1, "dp-given-partition")}
    found = list(background.claims(census, SIZES, alike))
    assert only(found, "choice of the microaggregation algorithm").verdict == "fails"
    assert only(found, "except perhaps one of k to 2k - 1").verdict == "holds"
    monkeypatch.setattr(background, "mdav", partial(vmdav, gamma=1.1))
    found = list(background.claims(census, SIZES, alike))
    assert only(found, "except perhaps one of k to 2k - 1").verdict == "holds partly"
    monkeypatch.setattr(background, "words_drawn", lambda one: (one.rows or 1080) ** 2)
    assert background._linear(census).verdict == "fails"
    monkeypatch.setattr(background, "laplace_loss", lambda epsilon: 2 * epsilon)
    assert background._laplace().verdict == "fails"


def test_best_partitions_are_found_among_all() -> None:
    assert psd.best_partitions((0, 0, 9, 9), 2) == [(0, 0, 1, 1)]
    assert len(list(psd._partitions(4, 1))) == 15
    assert len(list(psd._partitions(4, 2))) == 4


def test_clusters_that_follow_the_data_would_change_the_verdict_on_insensitivity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = psd.columns(data_file("adult.csv"))
    assert psd._one_record_each(values, 5).verdict == "holds"
    monkeypatch.setattr(psd, "insensitive", lambda x, k, bounds: mdav(x, k))
    assert psd._one_record_each(values, 5).verdict == "fails"


def test_collections_of_records_differ_by_what_they_do_not_share() -> None:
    one, other = np.array([[1.0, 2], [1, 2], [3, 4]]), np.array([[1.0, 2], [3, 4], [3, 4]])
    assert psd._differ(one, one) == 0
    assert psd._differ(one, other) == 1


def test_other_errors_would_change_the_verdict_on_uses() -> None:
    def found(own: float) -> dict[tuple[str, str], dict[str, float]]:
        return {
            (epsilon, how): {"mean": own if how == "ranking" else 1.0}
            for epsilon in EPSILONS
            for how in ("ranking", "plain")
        }

    assert [psd._any_use(found(own)).verdict for own in (0.5, 2.0)] == ["holds", "fails"]


def test_groups_by_value_would_change_the_verdict_on_order(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).uniform(0, 90, (400, 2))
    assert psd._order_only(values).verdict == "holds"
    monkeypatch.setattr(psd, "ranking", lambda x, k, remainder: mdav(x, k))
    assert psd._order_only(values).verdict != "holds"
