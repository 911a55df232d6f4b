"""Bundles of earlier versions load: codes for the sentences that they had, and the sentence itself for any other."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.privacy import MODELS, Adjacency, step_key
from shoal.privacy.verdict import stored_sentences
from shoal.report import bundle_report
from shoal.text import EDITION, Message, catalogue, sentences

EVERY = Path(__file__).parent / "bundles"
BUNDLES = EVERY / "format-1"
FOLDERS = sorted(path.parent for path in EVERY.glob("*/*/statement.json"))


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
    assert len(found.verdict.limits) == len(written(name)["verdict"]["limits"])
    # what an old statement did not say is not made up
    plain = found.to_dict()
    assert plain["format"] == 2
    assert plain["computed"]["expected_error"] is None
    assert plain["computed"]["arithmetic"] == "not-stated"
    assert plain["recorded"] == []
    assert shoal.PrivacyStatement.from_dict(plain) == found


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
    with pytest.raises(shoal.InputError, match="has format 3, which this version of Shoal does not support"):
        shoal.PrivacyStatement.from_dict(written("pairs-dp") | {"format": 3})


def _reworded(template: str) -> str:
    """Other words around the same facts."""
    facts = re.findall(r"\{[^{}]*\}", template)
    return " ".join(["Other words", *facts])


@pytest.fixture
def other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue in which no sentence is as it was, and which says so."""
    templates = {code: tuple(map(_reworded, parts)) for code, parts in catalogue().items()}
    monkeypatch.setattr(sentences, "catalogue", lambda: templates)
    for module in ("privacy.statement", "privacy.verdict", "privacy.statement_v1"):
        monkeypatch.setattr(f"shoal.{module}.catalogue", lambda: templates)
    monkeypatch.setattr("shoal.privacy.statement.EDITION", 3)


def _codes_and_facts(statement: shoal.PrivacyStatement) -> dict[str, Any]:
    plain = statement.to_dict()
    said = plain["verdict"]
    reasons = [(one["level"], one["code"], one["facts"]) for one in said["reasons"]]
    keys = ("format", "model", "target", "epsilon", "adjacency", "obstacles", "computed", "declared")
    return {
        **{key: plain[key] for key in (*keys, "recorded", "terms", "settings", "attributes")},
        "verdict": (said["decision"], said["code"], reasons),
    }


def _loaded(folder: Path) -> dict[str, Any]:
    return _codes_and_facts(shoal.Bundle.load(folder).statement)


@pytest.fixture(scope="module")
def in_these_words() -> Mapping[Path, dict[str, Any]]:
    return {folder: _loaded(folder) for folder in FOLDERS}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name} {folder.name}")
def test_other_words_change_no_code_and_no_fact_of_a_bundle(
    folder: Path, in_these_words: Mapping[Path, dict[str, Any]], other_words: None
) -> None:
    assert str(Message("random-order")) == "Other words"
    found = _loaded(folder)
    assert found == in_these_words[folder]
    known = [one["code"] for said in found["terms"].values() for one in said]
    assert known
    assert "Other words" in bundle_report(folder)


def test_no_sentence_of_an_old_bundle_is_left_without_a_code_that_has_one(
    in_these_words: Mapping[Path, dict[str, Any]],
) -> None:
    of_codes = set(stored_sentences()["terms"].values())
    for name in ("pairs-dp", "seeded"):
        terms = in_these_words[BUNDLES / name]["terms"]
        found = {one["code"] for said in terms.values() for one in said}
        assert len(found & of_codes) >= 4


def test_every_code_of_a_stored_sentence_is_one_of_the_catalogue() -> None:
    stored = stored_sentences()
    codes = {*stored["terms"].values(), *(f"reason-{code}" for code in stored["reasons"].values())}
    assert codes <= catalogue().keys()
    assert {code for facts in MODELS.values() for code in facts.not_promised} <= codes
    assert {Adjacency(code) for code in stored["adjacency"].values()} == set(Adjacency)


STEPS = {
    "Values of column pay above 4000 become 4000.",
    "Column region is recoded: south, east become other.",
    "The survey weight w was not released.",
}


@pytest.mark.parametrize("name", ["pairs-dp", "k-anonymity"])
def test_journals_know_steps_again_in_other_words(name: str, other_words: None) -> None:
    statement = shoal.Bundle.load(EVERY / "format-2" / name).statement
    assert {step_key(said) for said in statement.terms.steps} == STEPS
    assert not STEPS & set(statement.steps)


def test_phrases_within_facts_keep_their_words() -> None:
    # facts of stored steps hold them, and journals compare those
    for code, template in stored_sentences()["phrases"].items():
        assert catalogue()[code] == (template,)


def test_a_statement_of_this_edition_says_nothing_else_and_one_of_another_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = json.loads((EVERY / "format-2" / "pairs-dp" / "statement.json").read_text("utf-8"))
    plain = shoal.PrivacyStatement.from_dict(first).to_dict()
    assert plain["sentence"] != first["sentence"]
    plain["versions"] = {**plain["versions"], "words": str(EDITION)}
    changed = plain | {"sentence": "All is well."}
    with pytest.raises(shoal.InputError, match="its sentence does not follow"):
        shoal.PrivacyStatement.from_dict(changed)
    monkeypatch.setattr("shoal.privacy.statement.EDITION", EDITION + 1)
    assert shoal.PrivacyStatement.from_dict(changed).sentence == plain["sentence"]
    recalculated = plain["computed"] | {"epsilon": 0.5}
    with pytest.raises(shoal.InputError, match="its computed does not follow"):
        shoal.PrivacyStatement.from_dict(changed | {"computed": recalculated})
