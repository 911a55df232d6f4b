"""Statements around the methods of MDAI-2017 and PSD-2014: what they rest on, and verdicts that can change."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from shoal.partition import vmdav
from shoal.reproduce import textbook
from shoal.reproduce.mdai2017 import background
from shoal.reproduce.mdai2017.curves import Curves
from tests.conftest import data_file
from tests.reproduction.quick import only

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
