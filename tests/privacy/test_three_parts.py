"""A statement in three parts, and the verdict that follows from them by published rules."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.cli import run
from shoal.columns.provenance import Recorded
from shoal.columns.schema import Publication
from shoal.io import read
from shoal.mechanisms.registry import method_class, names
from shoal.privacy import Adjacency
from shoal.privacy.statement import declaration, recorded_words, three_parts
from shoal.privacy.verdict import DECISION_CODES, DECISIONS, RULES, Reason, rules_table
from shoal.release.protection import prepare
from shoal.release.uses import Uses
from shoal.report import internal_report, public_report
from shoal.studio.guarantee import Recipe
from shoal.studio.preview import preview
from tests.support.presets import sampled

SAMPLE: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": 2.0, "unit": "row", "model": "dp", "adjacency": "add-remove", "limit": 1.0},
    "epsilon-overridden": {"reason": "The law asks for it."},
    "delta-large": {"delta": 0.001, "limit": 1e-5},
    "delta-too-large": {"delta": 0.01, "limit": 0.001},
    "small-group": {"k": 2},
    "noise-dominates": {"columns": ["a"], "error": 0.3, "of": "share_of_range", "limit": 0.25},
    "error-not-assessed": {"columns": ["a"], "why": ["rows-private"]},
    "relations-not-measured": {"pairs": 3},
    "unknown": {"text": "It rained."},
    "column-viewed": {"column": "income", "views": ["histogram", "rows"]},
    "earlier-releases": {"count": 2, "measured": 1, "downloaded": 0},
    "settings-changed": {"settings": ["k", "epsilon"]},
    "same-records": {"dataset": "people"},
    "rehearsed-on-records": {"count": 1},
}


def wide(rows: int = 300, columns: int = 120) -> tuple[pa.Table, dict[str, tuple[int, int]]]:
    rng = np.random.default_rng(3)
    names = [f"c{number}" for number in range(columns)]
    return pa.table({name: rng.integers(0, 101, rows) for name in names}), dict.fromkeys(names, (0, 100))


def few(method: str = "pairs-dp", **options: Any) -> shoal.Release:
    table, domains = wide(4000, 3)
    return shoal.protect(table, method=method, epsilon="1", domains=domains, **options)


@pytest.mark.parametrize("code", RULES)
def test_every_rule_renders_its_facts(code: str) -> None:
    facts = SAMPLE["epsilon"] | SAMPLE.get(code, {})
    text = Reason.of(code, **facts).text
    assert text.endswith(".")
    assert "{" not in text
    assert RULES[code].level in DECISION_CODES


def test_the_documented_rules_are_those_of_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "claims.md").read_text("utf-8")
    assert rules_table() in page


def test_three_parts_of_codes_beside_every_key_of_the_first_format() -> None:
    plain = few().statement.to_dict()
    old = json.loads(
        (Path(__file__).parents[1] / "release/bundles/format-1/pairs-dp/statement.json").read_text("utf-8")
    )
    assert old.keys() <= plain.keys()
    assert old["verdict"].keys() <= plain["verdict"].keys()
    assert plain["format"] == 2
    computed = plain["computed"]
    assert computed["adjacency"] == plain["adjacency"] == Adjacency.ADD_REMOVE == "add-remove"
    assert (computed["entropy"], computed["arithmetic"], computed["timing"]) == (
        "system",
        "exact",
        "not-covered",
    )
    assert computed["invariants"] == []
    assert sum(computed["spending"].values()) == pytest.approx(1)
    assert plain["verdict"]["decision"] == "publish"
    assert plain["verdict"]["code"] == "publish"
    assert {reason["code"] for reason in plain["verdict"]["reasons"]} == {
        "original-records",
        "epsilon-strong",
    }
    declared = plain["declared"]["facts"]
    assert {"code": "range", "facts": {"column": "c0", "source": "", "lo": "0", "hi": "100"}} in declared
    assert declared[-1] == {"code": "choices", "facts": {"but": []}}
    assert plain["recorded"] == []


def test_nothing_claims_that_a_choice_was_made_without_looking() -> None:
    for method, settings in (("pairs-dp", {}), ("mdav-dp", {"k": 20}), ("laplace", {"missing": "drop"})):
        release = few(method, **settings)
        for text in (json.dumps(release.statement.to_dict()), release.statement.to_markdown()):
            assert "without looking" not in text
            assert "without using" not in text
        assert "without looking" not in public_report(release)
        assert "without using" not in public_report(release)


def test_a_declaration_is_worded_as_one() -> None:
    facts = {"column": "income", "lo": "0", "hi": "200000", "source": "questionnaire"}
    assert declaration("range", facts) == (
        "declared by the publisher: income lies between 0 and 200,000 (source: questionnaire). "
        "Shoal cannot verify this."
    )
    assert "not named" in declaration("range", {**facts, "source": ""})


@pytest.mark.parametrize(("method", "rows"), [("pairs-dp", None), ("pairs-dp", 300), ("laplace", None)])
def test_a_table_of_noise_is_not_green_anywhere(
    method: str, rows: int | None, tmp_path: Path, capsys: Any
) -> None:
    table, domains = wide()
    settings = {} if rows is None else {"rows": rows}
    release = shoal.protect(table, method=method, epsilon="1", domains=domains, **settings)
    reasons = {reason.code: reason for reason in release.statement.verdict.reasons}
    assert release.statement.verdict.code == "publish-with-limits"
    assert len(reasons["noise-dominates"].facts["columns"]) == 120
    page = public_report(release)
    assert "Noise dominates c0, c1, c2, c3, c4 and 115 more" in page
    assert f"<title>Public report: {DECISIONS['amber']}</title>" in page
    assert shoal.verdict(release).decision == DECISIONS["amber"]
    # before the release: for the custodian, by the table's own number of rows
    prepared = prepare(read(table), method=method, epsilon="1", domains=domains, **settings)
    assert prepared.statement.verdict.level == "amber"
    assert "noise-dominates" in {reason.code for reason in prepared.foreseen.verdict.reasons}


def test_a_dry_run_and_a_release_on_the_command_line_name_the_noise(tmp_path: Path, capsys: Any) -> None:
    table, domains = wide()
    parquet.write_table(table, tmp_path / "wide.parquet")
    declared = [word for name in domains for word in ("--domain", f"{name}=0:100")]
    arguments = ["protect", str(tmp_path / "wide.parquet"), "--epsilon", "1", *declared]
    for more in (["--dry-run"], ["--out", str(tmp_path / "out")]):
        assert run([*arguments, *more]) == 0
        output = capsys.readouterr().out
        assert "Verdict: publish with these limits." in output
        assert "Noise dominates c0" in output


def test_studio_names_the_noise() -> None:
    table, domains = wide()
    schema = shoal.Schema.from_dict(
        {
            "attribute": [
                {"name": name, "lo": 0, "hi": 100, "type": "integer", "source": "law"} for name in domains
            ]
        }
    )
    ahead = preview(read(table), Recipe(schema), Uses.of(None))
    assert ahead.verdict is not None
    assert ahead.verdict.level == "amber"
    assert "noise-dominates" in {reason.code for reason in ahead.verdict.reasons}


def test_a_private_number_of_rows_is_not_in_a_statement_before_it_was_drawn() -> None:
    statements = []
    for rows in (300, 301):
        table, domains = wide(rows, 3)
        statements.append(prepare(read(table), method="pairs-dp", epsilon="1", domains=domains).statement)
    assert statements[0].to_dict() == statements[1].to_dict()
    assert statements[0].expected_error is not None
    assert statements[0].expected_error["rows"] is None
    (limit,) = (reason for reason in statements[0].verdict.reasons if reason.level == "amber")
    assert (limit.code, limit.facts["why"]) == ("error-not-assessed", ["rows-private"])


@pytest.mark.parametrize(
    ("options", "rows_are", "rows"),
    [
        ({}, "released", None),
        ({"rows": 500}, "declared", 500),
        ({"neighbours": "replace-one"}, "public", 4000),
    ],
)
def test_the_expected_error_says_which_number_of_rows_it_is_for(
    options: dict[str, Any], rows_are: str, rows: int | None
) -> None:
    release = few(**options)
    expected = release.statement.expected_error
    assert expected is not None
    assert expected["rows_are"] == rows_are
    assert expected["rows"] == (len(release.data) if rows is None else rows)
    assert expected["relations"]["measured"] == expected["relations"]["of"] == 3


def test_a_domain_from_the_records_leaves_no_error_in_the_statement() -> None:
    table, _ = wide(200, 2)
    found = shoal.protect(table, method="laplace", epsilon="1", domain_from_data=1.5).statement
    assert found.expected_error is not None
    assert {one["why"] for one in found.expected_error["columns"].values()} == {"domain-private"}
    assert {one["standard_deviation"] for one in found.expected_error["columns"].values()} == {None}


JOURNAL = tuple(
    Recorded(code, SAMPLE[code])
    for code in (
        "column-viewed",
        "earlier-releases",
        "settings-changed",
        "same-records",
        "rehearsed-on-records",
    )
)


def recorded(*facts: Recorded) -> shoal.PrivacyStatement:
    table, domains = wide(4000, 3)
    prepared = prepare(read(table), method="pairs-dp", epsilon="1", domains=domains, rows=4000)
    assert prepared.statement.verdict.level == "green"
    told = replace(prepared.described.provenance, recorded=facts)
    return prepared.stated(replace(prepared.described, provenance=told)).statement


@pytest.mark.parametrize("fact", JOURNAL, ids=lambda fact: fact.code)
def test_a_recorded_fact_is_a_limit_that_says_what_happened(fact: Recorded) -> None:
    found = recorded(fact)
    assert found.publishable
    assert found.verdict.code == "publish-with-limits"
    (limit,) = (reason for reason in found.verdict.reasons if reason.level == "amber")
    assert (limit.code, limit.facts) == (fact.code, fact.facts)
    assert limit.text.startswith("Recorded: ")
    assert three_parts(found.to_dict()).recorded == (limit.text,)
    assert found.to_dict()["recorded"] == [{"code": fact.code, "facts": dict(fact.facts)}]
    assert limit.text in found.to_markdown()
    assert (
        shoal.PrivacyStatement.from_dict(json.loads(json.dumps(found.to_dict()))).to_dict() == found.to_dict()
    )


def test_words_of_recorded_facts_are_counts_and_no_accusations() -> None:
    assert [recorded_words(fact.code, fact.facts) for fact in JOURNAL] == [
        "Recorded: the histogram and the rows of income were viewed on this machine before its range was declared.",
        "Recorded: 2 earlier releases under the same data set name; 1 was measured. Their privacy losses add up.",
        "Recorded: settings were changed after an earlier release under the same data set name was measured: "
        "k, epsilon.",
        "Recorded: the publisher answered that data set 'people' holds the same records. Privacy losses add up.",
        "Recorded: 1 rehearsal used these records themselves.",
    ]


def test_a_recorded_fact_that_nobody_knows_is_a_limit_and_no_crash() -> None:
    found = recorded(Recorded("moon-phase", {"phase": "full"}), Recorded("column-viewed"))
    assert found.verdict.code == "publish-with-limits"
    assert "Recorded: moon phase: phase = full." in three_parts(found.to_dict()).recorded
    assert shoal.PrivacyStatement.from_dict(found.to_dict()) == found


def test_values_taken_from_the_records_are_recorded_and_refuse() -> None:
    found = few("laplace", missing="drop").statement
    assert [one["code"] for one in found.to_dict()["recorded"]] == ["data-dependent"]
    assert [reason.code for reason in found.obstacles] == ["data-dependent"]
    assert found.verdict.code == "do-not-publish"
    assert "Recorded: missing=drop" in found.to_markdown()


@pytest.mark.parametrize("name", sampled(name for name in names() if name != "anatomy"))
def test_every_preset_has_the_three_parts_in_words(name: str) -> None:
    table, domains = wide(120, 2)
    budget = {"epsilon": "1"} if "epsilon" in method_class(name).parameters() else {}
    release = shoal.protect(table, method=name, domains=domains, **budget)
    parts = three_parts(release.statement.to_dict())
    names = [title for title, _ in parts.computed]
    assert names[:2] == ["Model", "What is protected"]
    assert {"Mechanism", "Noise", "Expected error"} <= set(names)
    assert any("c0" in line for line in parts.declared)
    text, page = release.statement.to_markdown(), public_report(release)
    for heading in ("Computed by Shoal", "Declared by the publisher", "Recorded"):
        assert f"## {heading}" in text
        assert f"<h3>{heading}</h3>" in page
    assert "Shoal cannot verify the following declarations." in text


def test_invariants_name_what_is_released_exactly() -> None:
    def codes(method: str, **options: Any) -> list[str]:
        return [one.code for one in few(method, **options).statement.invariants]

    assert codes("pairs-dp") == []
    assert codes("laplace") == ["number-of-rows"]
    assert codes("mdav-dp", k=50) == ["number-of-rows", "clusters"]
    assert codes("idp-cbls", k=50) == ["number-of-rows", "clusters", "clusters-without-spread"]
    assert codes("idp-cbls", k=50, floor="0.5") == ["number-of-rows", "clusters"]


def test_a_publication_is_declared_saved_and_loaded(tmp_path: Path) -> None:
    told = {"name": "Rents", "recipients": "the public", "date": "2027-03-01", "curators": ["Office"]}
    entries = [
        {"name": name, "lo": 0, "hi": 100, "type": "integer", "source": "law"} for name in ("c0", "c1")
    ]
    schema = shoal.Schema.from_dict({"publication": told, "attribute": entries})
    schema.save(tmp_path / "schema.toml")
    assert shoal.Schema.load(tmp_path / "schema.toml") == schema
    (tmp_path / "dated.toml").write_text(
        '[publication]\ndate = 2027-03-01\n[[attribute]]\nname = "c0"\n', "utf-8"
    )
    assert shoal.Schema.load(tmp_path / "dated.toml").publication == Publication(date="2027-03-01")
    table, _ = wide(100, 2)
    folder = shoal.protect(table, schema, "laplace", epsilon="1").save(tmp_path / "out")
    bundle = shoal.Bundle.load(folder)
    assert bundle.statement.publication == told
    assert bundle.schema.publication == schema.publication
    assert "recipients: the public." in bundle.statement.to_markdown()
    # another year's release is not published on the day of this one
    again = shoal.redo(folder, table, out=tmp_path / "again")
    assert again.release.statement.publication == {key: told[key] for key in told if key != "date"}


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"nmae": "Rents"}, r"\[publication\]: unknown key 'nmae'. Did you mean 'name'"),
        ({"name": 3}, r"\[publication\]: name must be a text, got 3"),
        ({"curators": []}, None),
        ({"curators": [3]}, "curators must be a list of names"),
        ({"date": "soon"}, "date must be a date such as 2027-03-01, got 'soon'"),
        ({"sector": "Fishing"}, "sector 'Fishing' is not one of Technology"),
        ("Rents", "publication must be a table"),
    ],
)
def test_a_publication_is_checked(told: Any, words: str | None) -> None:
    raw = {"publication": told, "attribute": [{"name": "a"}]}
    if words is None:
        assert shoal.Schema.from_dict(raw).publication == Publication()
        return
    with pytest.raises(shoal.OptionError, match=words) as refused:
        shoal.Schema.from_dict(raw)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("method", "argument"),
    [("pairs-dp", "raises a belief of 50% to at most 73.2%"), ("mdav-dp", "No bound for a person")],
)
def test_the_internal_report_has_a_table_for_the_data_protection_officer(method: str, argument: str) -> None:
    entries = [
        {"name": name, "lo": 0, "hi": 100, "type": "integer", "source": "law"} for name in ("c0", "c1")
    ]
    told = {"recipients": "two universities", "review_by": "2029-03-01"}
    schema = shoal.Schema.from_dict({"publication": told, "attribute": entries})
    table, _ = wide(60, 2)
    release = shoal.protect(table, schema, method, epsilon="1")
    page = internal_report(release, None, table)
    section = page[page.index('<h2 id="officer">') :].partition("</section>")[0]
    for name in ("singling out", "linkability", "inference"):
        assert f'<th scope="row">{name}</th>' in section
    assert argument in section
    assert "guessing" in section
    assert section.count('<td data-label="recipients">two universities</td>') == 3
    assert section.count('<td data-label="review by">2029-03-01</td>') == 3
    # measured on the original records: never in the public page
    assert 'id="officer"' not in public_report(release)
