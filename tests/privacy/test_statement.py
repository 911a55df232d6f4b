"""The statement follows from the method and its circumstances, and holds no fact about the records."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.mechanisms.registry import claim_words, method_class, names
from tests.support.presets import sampled

DOMAINS: dict[str, tuple[float, float]] = {"a": (0.0, 100.0), "b": (0.0, 50.0)}


def table(seed: int = 0, n: int = 40) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"a": rng.uniform(0, 100, n), "b": rng.uniform(0, 50, n)})


def statement(method: str, data: pa.Table | None = None, **options: Any) -> shoal.PrivacyStatement:
    arguments = {"epsilon": "1", "domains": DOMAINS, **options}
    return shoal.protect(table() if data is None else data, method=method, **arguments).statement


@pytest.mark.parametrize(
    ("method", "options", "model"),
    [
        ("laplace", {}, "dp"),
        ("laplace", {"columns": ["a"], "domains": {"a": (0.0, 100.0)}}, "dp"),
        ("ranking-dp", {"k": 5}, "dp-given-partition"),
        ("ranking-dp", {"k": 5, "link": False}, "dp"),
        ("ranking-dp", {"k": 5, "columns": ["a"], "domains": {"a": (0.0, 100.0)}}, "dp"),
        ("ranking-dp", {"k": 1}, "dp"),
        ("mdav-dp", {"k": 5}, "dp-given-partition"),
        ("mdav-dp", {"k": 5, "columns": ["a"], "domains": {"a": (0.0, 100.0)}}, "dp-given-partition"),
        ("mdav-dp", {"k": 5, "groups": [["a"], ["b"]]}, "dp-given-partition"),
        ("mdav-dp", {"k": 1}, "dp"),
        ("mdav-dp", {"k": 5, "labels": np.arange(40) // 10}, "dp-given-partition"),
        ("mdav-dp", {"k": 1, "labels": np.arange(40)}, "dp-given-partition"),
    ],
)
def test_model_of_each_method(method: str, options: dict[str, Any], model: str) -> None:
    found = statement(method, **options)
    assert found.model == model
    assert found.publishable
    assert ("It is not differential privacy of the original records" in found.to_markdown()) == (
        model == "dp-given-partition"
    )


def test_claim_of_a_preset_names_every_model_it_can_reach() -> None:
    assert claim_words(method_class("laplace")) == "dp"
    assert claim_words(method_class("mdav-dp")) == "dp-given-partition"
    assert claim_words(method_class("ranking-dp")) == (
        "dp-given-partition; dp for one attribute or link=False, unless an attribute is nominal"
    )
    for cls in map(method_class, names()):
        assert cls.example().model(1) in claim_words(cls)
        assert cls.example().model(3) in claim_words(cls)


def test_epsilon_is_the_decimal_that_was_written() -> None:
    assert statement("laplace", epsilon="0.1").epsilon == Fraction(1, 10)
    assert statement("laplace", epsilon=0.1).epsilon == Fraction(1, 10)
    assert statement("laplace", epsilon="0.1").to_dict()["epsilon"] == 0.1
    assert "ε = 0.1 per row" in statement("laplace", epsilon="0.1").sentence


@pytest.mark.parametrize(
    ("method", "options", "word"),
    [
        ("laplace", {"domains": None, "domain_from_data": 1.5}, "domain_from_data: 0 to 1.5 times"),
        ("laplace", {"missing": "drop"}, "missing=drop"),
        ("mdav-dp", {"k": 5, "normalise": "zscore"}, "normalise=zscore"),
    ],
)
def test_choices_that_look_at_the_records_taint(method: str, options: dict[str, Any], word: str) -> None:
    found = statement(method, **options)
    assert [entry for entry in found.data_dependent if word in entry]
    assert not found.publishable
    assert found.sentence.startswith("No guarantee as it stands")
    assert "Verdict: do not publish." in found.to_markdown()


@pytest.mark.parametrize(("options", "word"), [({"seed": 1}, "seed"), ({"clip": False}, "clip=False")])
def test_experiments_are_not_publishable_but_keep_their_model(options: dict[str, Any], word: str) -> None:
    found = statement("laplace", **options)
    assert not found.publishable
    assert any(word in reason for reason in found.not_publishable_because)
    assert found.data_dependent == ()
    assert found.model == "dp"


def test_taints_add_up() -> None:
    found = statement(
        "mdav-dp",
        k=5,
        normalise="zscore",
        missing="drop",
        domains=None,
        domain_from_data=2,
        seed=1,
        clip=False,
    )
    # neither types nor domains are declared, rows are dropped, and distances are scaled by the records
    assert len(found.data_dependent) == 4
    assert len(found.not_publishable_because) == 3


def units(max_rows: int | None, rows_each: int) -> tuple[pa.Table, shoal.Schema]:
    data = table().append_column("who", pa.array([f"P{i // rows_each}" for i in range(40)]))
    unit: dict[str, Any] = {"name": "who", "kind": "nominal", "role": "unit"}
    if max_rows is not None:
        unit["max_rows"] = max_rows
    entries = [{"name": name, "lo": lo, "hi": hi} for name, (lo, hi) in DOMAINS.items()]
    return data, shoal.Schema.from_dict({"attribute": [*entries, unit]})


def test_the_epsilon_asked_for_is_that_of_a_unit_and_its_rows_share_it() -> None:
    data, schema = units(max_rows=4, rows_each=2)
    release = shoal.protect(data, schema, "laplace", epsilon="0.3")
    found = release.statement
    assert (found.epsilon, found.settings["epsilon"]) == (Fraction(3, 10), 0.3)
    assert sum(filter(None, found.epsilon_per_attribute.values())) == Fraction(3, 10)
    assert release.method.epsilon == Fraction(3, 40)
    assert found.unit == "value of 'who' (at most 4 rows)"
    assert any("at most 4 rows" in condition for condition in found.conditions)
    assert "who" not in release.data.column_names


def test_a_declared_word_names_the_unit() -> None:
    data, schema = units(max_rows=4, rows_each=2)
    raw = schema.to_dict()
    raw["attribute"][-1]["called"] = "household"
    found = shoal.protect(data, shoal.Schema.from_dict(raw), "laplace", epsilon="1/6").statement
    assert "with ε = 1/6 per household" in found.sentence
    assert any("at most 4 rows" in condition for condition in found.conditions)
    assert shoal.PrivacyStatement.from_dict(found.to_dict()) == found
    for word in ("", "x\ny 1", 3, "a" * 41):
        raw["attribute"][-1]["called"] = word
        with pytest.raises(shoal.OptionError, match="called"):
            shoal.Schema.from_dict(raw)


def test_rows_per_person_are_the_declared_ones_not_those_found() -> None:
    few, schema = units(max_rows=4, rows_each=1)
    many, _ = units(max_rows=4, rows_each=4)
    assert (
        shoal.protect(few, schema, "laplace", epsilon=1).statement
        == shoal.protect(many, schema, "laplace", epsilon=1).statement
    )


def test_one_row_per_person_is_a_claim_about_persons() -> None:
    data, schema = units(max_rows=None, rows_each=1)
    found = shoal.protect(data, schema, "laplace", epsilon=1).statement
    assert found.unit == "value of 'who' (at most 1 row)"
    assert found.epsilon == 1


def test_repeated_persons_refuse_claim_1_but_not_the_weaker_one() -> None:
    data, schema = units(max_rows=None, rows_each=2)
    with pytest.raises(shoal.ClaimError, match="declare max_rows"):
        shoal.protect(data, schema, "laplace", epsilon=1)
    found = shoal.protect(data, schema, "mdav-dp", epsilon=1, k=4).statement
    assert found.unit == "row"
    once, _ = units(max_rows=None, rows_each=1)
    assert shoal.protect(once, schema, "mdav-dp", epsilon=1, k=4).statement == found
    assert any("protected for each row separately" in condition for condition in found.conditions)


def test_without_a_unit_the_claim_is_about_rows() -> None:
    assert statement("laplace").unit == "row"


# Anatomy needs roles, which nothing but a schema gives
@pytest.mark.parametrize("method", sampled(name for name in names() if name != "anatomy"))
def test_equal_public_facts_give_equal_statements(method: str) -> None:
    """Two tables that share nothing but n, one of them with many values to clip."""
    budget = {"epsilon": 1} if "epsilon" in method_class(method).parameters() else {}
    if method_class(method).adjacency == "add-remove":
        # a noisy number of rows is a public fact, too, and what was measured follows from it
        budget["rows"] = 60
    calm = pa.table({"a": np.linspace(40.0, 60.0, 60), "b": np.linspace(20.0, 30.0, 60)})
    wild = pa.table({"a": np.linspace(-500.0, 900.0, 60), "b": np.full(60, 77.0)})
    first, second = (
        shoal.protect(data, method=method, domains=DOMAINS, outside="clip", **budget) for data in (calm, wild)
    )
    assert first.internal["values_clipped"] != second.internal["values_clipped"]
    assert first.statement == second.statement
    assert first.statement.to_markdown() == second.statement.to_markdown()


def test_dropping_rows_is_stated_whether_or_not_any_was_dropped() -> None:
    full = table()
    holes = full.set_column(0, "a", pa.array([None, *full["a"].to_pylist()[1:]]))
    assert (
        statement("laplace", full, missing="drop").to_dict()
        == statement("laplace", holes, missing="drop").to_dict()
    )


@pytest.mark.parametrize("split", ["equal", "proportional", "optimal"])
@pytest.mark.parametrize("method", ["laplace", "mdav-dp", "ranking-dp"])
def test_domains_from_the_data_are_written_nowhere(method: str, split: str, tmp_path: Path) -> None:
    """Same noise, different maxima: the files but the data and its figures must not tell which."""
    texts = []
    for name, largest in (("one", 7919.25), ("two", 7103.75)):
        values = np.append(np.linspace(1000.0, 5000.0, 60), largest)
        data = pa.table({"a": values, "b": values[::-1] / 3})
        release = shoal.protect(data, method=method, epsilon="900", split=split, domain_from_data=1.5)
        folder = release.save(tmp_path / name)
        statement_text, recipe, report = (
            (folder / file).read_text("utf-8") for file in ("statement.json", "method.toml", "report.html")
        )
        for text in (statement_text, recipe, report):
            assert f"{1.5 * largest:.0f}" not in text.replace(",", "")
        texts.append((statement_text, recipe))
    assert texts[0] == texts[1]
    assert "taken from the data" in texts[0][0]


def test_shares_that_follow_private_domains_are_not_stated() -> None:
    found = statement("laplace", domains=None, domain_from_data=1.5, split="proportional")
    assert set(found.to_dict()["epsilon_per_attribute"].values()) == {None}
    assert set(found.to_dict()["spending"].values()) == {None}
    assert "taken from the data" in found.to_markdown()
    declared = statement("laplace", split="proportional").to_dict()["epsilon_per_attribute"]
    assert declared == {"a": pytest.approx(2 / 3), "b": pytest.approx(1 / 3)}


def test_shares_that_follow_no_width_are_stated_for_private_domains_too() -> None:
    equal = statement("laplace", domains=None, domain_from_data=1.5, split="equal").to_dict()
    assert equal["epsilon_per_attribute"] == {"a": pytest.approx(1 / 2), "b": pytest.approx(1 / 2)}
    for method in ("tree-dp", "pairs-dp"):
        spending = statement(method, domains=None, domain_from_data=1.5).to_dict()["spending"]
        assert None not in spending.values()


def test_json_and_markdown_hold_the_contract() -> None:
    found = statement("ranking-dp", k=5)
    plain = found.to_dict()
    assert plain == json.loads(json.dumps(plain))
    for key in (
        "model",
        "target",
        "epsilon",
        "neighbours",
        "unit",
        "conditions",
        "data_dependent",
        "publishable",
    ):
        assert key in plain
    assert plain["neighbours"] == (
        "replace-one: adjacent data sets differ in one record, and the number of records is public"
    )
    assert plain["attributes"]["b"]["hi"] == "50"
    text = found.to_markdown()
    assert found.sentence in text
    assert "| a | 0.5 | decimal | 0 to 100 |" in text


def test_unlinked_columns_say_so() -> None:
    assert any(
        "shuffled independently" in entry for entry in statement("ranking-dp", k=5, link=False).conditions
    )
    assert not any("shuffled independently" in entry for entry in statement("ranking-dp", k=5).conditions)


@pytest.mark.parametrize(
    ("options", "source"),
    [({}, "computed from the records"), ({"labels": np.arange(40) // 10}, "supplied by the caller")],
)
def test_conditions_say_where_the_clusters_come_from(options: dict[str, Any], source: str) -> None:
    (about,) = [entry for entry in statement("mdav-dp", k=5, **options).conditions if "The clusters" in entry]
    assert f"The clusters, {source}" in about


@pytest.mark.parametrize(
    "options",
    [{"domains": None, "domain_from_data": 1.5}, {"normalise": "zscore"}],
    ids=["domain", "setting"],
)
def test_one_choice_that_looked_at_the_records_is_enough_for_its_condition(options: dict[str, Any]) -> None:
    def warned(found: shoal.PrivacyStatement) -> bool:
        return any("would have to be fixed independently of them" in entry for entry in found.conditions)

    assert warned(statement("mdav-dp", k=5, **options))
    assert not warned(statement("mdav-dp", k=5))
