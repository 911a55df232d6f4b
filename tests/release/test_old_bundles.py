"""Bundles of earlier versions load: codes for the sentences that they had, and the sentence itself for any other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.privacy import Adjacency
from shoal.report import bundle_report

BUNDLES = Path(__file__).parent / "bundles" / "format-1"


def written(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((BUNDLES / name / "statement.json").read_text("utf-8"))
    return found


@pytest.mark.parametrize(
    ("name", "adjacency", "codes"),
    [
        ("pairs-dp", Adjacency.ADD_REMOVE, []),
        ("seeded", Adjacency.REPLACE_ONE, ["seeded", "epsilon-too-large"]),
    ],
)
def test_a_bundle_of_the_first_format_loads_with_codes(
    name: str, adjacency: Adjacency, codes: list[str]
) -> None:
    assert "format" not in written(name)
    found = shoal.Bundle.load(BUNDLES / name).statement
    assert found.adjacency is adjacency
    assert [reason.code for reason in found.obstacles] == codes
    assert found.verdict.decision == written(name)["verdict"]["decision"]
    assert list(found.verdict.limits) == written(name)["verdict"]["limits"]
    # what an old statement did not say is not made up
    plain = found.to_dict()
    assert plain["format"] == 2
    assert plain["computed"]["expected_error"] is None
    assert plain["computed"]["arithmetic"] == "not-stated"
    assert plain["recorded"] == []
    assert shoal.PrivacyStatement.from_dict(plain) == found
    assert found.sentence == written(name)["sentence"]


def test_old_plain_values_have_a_verdict_and_a_page() -> None:
    assert shoal.verdict(written("pairs-dp")).decision == "publish"
    assert shoal.verdict(written("seeded")).decision == "do not publish"
    assert "Recorded" in bundle_report(BUNDLES / "pairs-dp")


def test_a_reason_that_has_no_code_stays_a_sentence() -> None:
    old = written("pairs-dp") | {"publishable": False, "not_publishable_because": ["It rained."]}
    found = shoal.PrivacyStatement.from_dict(old)
    assert [(reason.code, reason.text) for reason in found.obstacles] == [("unknown", "It rained.")]
    assert found.verdict.next_step == "fix the issues listed and release again"


def test_an_adjacency_that_no_version_wrote_is_refused() -> None:
    with pytest.raises(shoal.InputError, match="is damaged: 'neighbours' cannot be 'next door'"):
        shoal.PrivacyStatement.from_dict(written("pairs-dp") | {"neighbours": "next door"})


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(shoal.InputError, match="has format 3, which this version of Shoal does not know"):
        shoal.PrivacyStatement.from_dict(written("pairs-dp") | {"format": 3})
