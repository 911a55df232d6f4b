"""Round trips: statements, bundles and releases read back with the same content."""

from __future__ import annotations

import json
import pickle
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.io import read
from shoal.privacy.statement_v1 import fraction
from shoal.report.differences import compare
from shoal.report.findings import of_release
from shoal.text import Message
from tests.support.presets import in_quick_runs, sampled
from tests.support.samples import LIBRARIES, frame

N = 48


def columns() -> dict[str, Any]:
    rng = np.random.default_rng(8)
    return {"age": rng.integers(18, 90, N), "pay": rng.integers(0, 5000, N), "rent": rng.integers(0, 900, N)}


SCHEMA = Schema(
    (
        Attribute("age", "numeric", "quasi-identifier", lo=0, hi=120, type="integer"),
        Attribute("pay", "numeric", "quasi-identifier", lo=0, hi=5000, type="integer"),
        Attribute("rent", "numeric", "confidential", lo=0, hi=900, type="integer"),
    )
)
NAMES = [info.name for info in shoal.methods()]


def released(method: str, library: str = "pyarrow", **more: Any) -> shoal.Release:
    parameters = next(info.parameters for info in shoal.methods() if info.name == method)
    usual = {"epsilon": "1", "k": 6, "t": 3}
    options = {name: value for name, value in usual.items() if name in parameters}
    return shoal.protect(frame(columns(), library), SCHEMA, method, **{**options, **more})


@pytest.fixture(scope="module")
def releases() -> dict[str, shoal.Release]:
    """What quick runs read; tests of the others, which are slow, make their own."""
    return {name: released(name) for name in NAMES if in_quick_runs(name)}


@pytest.mark.parametrize("name", sampled(NAMES))
def test_a_statement_of_every_preset_is_read_back(name: str, releases: dict[str, shoal.Release]) -> None:
    statement = (releases.get(name) or released(name)).statement
    written = json.loads(json.dumps(statement.to_dict()))
    found = shoal.PrivacyStatement.from_dict(written)
    assert found.to_dict() == statement.to_dict()
    assert found.sentence == statement.sentence
    assert found.to_markdown() == statement.to_markdown()
    # a third of ε is a third again
    assert found.epsilon == statement.epsilon
    assert {k: v and float(v) for k, v in found.spending.items()} == {
        k: v and float(v) for k, v in statement.spending.items()
    }


def test_shares_that_can_be_written_are_equal_again(releases: dict[str, shoal.Release]) -> None:
    statement = releases["ranking-dp"].statement
    assert statement.epsilon_per_attribute["age"] == Fraction(1, 3)
    assert shoal.PrivacyStatement.from_dict(statement.to_dict()) == statement


@pytest.mark.parametrize(
    "value", [Fraction(1, 3), Fraction(22, 7), Fraction(1, 10), Fraction(0), Fraction(10**6)]
)
def test_numbers_mean_the_simplest_fraction_that_is_written_so(value: Fraction) -> None:
    assert fraction(float(value)) == value


def test_a_tainted_statement_is_read_back() -> None:
    statement = shoal.protect(
        pa.table(columns()), method="ranking-dp", epsilon=1, k=6, domain_from_data=1.5, seed=3
    ).statement
    assert not statement.publishable
    found = shoal.PrivacyStatement.from_dict(statement.to_dict())
    assert found.not_publishable_because == statement.not_publishable_because
    assert found.sentence == statement.sentence


DAMAGE: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": (
        {"delta_squared": 1},
        "has the key 'delta_squared', which this version of Shoal does not support",
    ),
    "unknown model": ({"model": "magic"}, "names the model 'magic'"),
    "text for a number": ({"epsilon": "much"}, "is damaged: 'epsilon' cannot be 'much'"),
    "negative": ({"epsilon": -1.0}, "is damaged: 'epsilon' cannot be -1.0"),
    "not finite": ({"epsilon": float("nan")}, "is damaged: 'epsilon' cannot be nan"),
    "a truth value": ({"epsilon": True}, "is damaged: 'epsilon' cannot be True"),
    "a list of numbers": ({"conditions": [1]}, r"is damaged: 'conditions' cannot be \[1\]"),
    "text for a list": ({"conditions": "none"}, "is damaged: 'conditions' cannot be 'none'"),
    "attributes without facts": ({"attributes": {"age": 3}}, "is damaged: 'attributes' cannot be"),
    "another verdict": ({"publishable": False}, "is inconsistent: publishable"),
    "another promise": ({"sentence": "All is well."}, "is inconsistent: its sentence"),
    "another budget": ({"epsilon": 0.001}, "is inconsistent: its sentence"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_statement_is_one_line(name: str, releases: dict[str, shoal.Release]) -> None:
    change, words = DAMAGE[name]
    with pytest.raises(shoal.InputError, match=f"^this .*{words}") as refused:
        shoal.PrivacyStatement.from_dict({**releases["laplace"].statement.to_dict(), **change})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("damaged", [None, 3, "text", [], {}])
def test_what_is_no_statement_is_refused(damaged: Any) -> None:
    with pytest.raises(shoal.InputError, match="is not a privacy statement"):
        shoal.PrivacyStatement.from_dict(damaged)


def test_every_key_is_needed(releases: dict[str, shoal.Release]) -> None:
    whole = releases["laplace"].statement.to_dict()
    # without its number it would be of the first format, which knows fewer keys
    for key in whole.keys() - {"format", "terms"}:
        with pytest.raises(shoal.InputError, match=f"it has no '{key}'"):
            shoal.PrivacyStatement.from_dict({name: value for name, value in whole.items() if name != key})


@pytest.mark.parametrize("name", sampled(NAMES))
def test_terms_say_by_codes_what_the_sentences_say(name: str, releases: dict[str, shoal.Release]) -> None:
    made = (releases.get(name) or released(name)).statement
    plain = made.to_dict()
    for key, said in plain["terms"].items():
        assert [str(Message(one["code"], one["facts"])) for one in said] == plain.get(key, [])
        assert all(one["code"] != "unknown" for one in said)
    assert shoal.PrivacyStatement.from_dict(json.loads(json.dumps(plain))) == made


def test_a_statement_without_terms_has_the_same_sentences(releases: dict[str, shoal.Release]) -> None:
    made = releases["laplace"].statement
    plain = made.to_dict()
    del plain["terms"]
    found = shoal.PrivacyStatement.from_dict(plain)
    assert found.conditions == made.conditions
    assert found.not_promised == made.not_promised
    # sentences of the first edition are recognised (test_old_bundles.py); others stay sentences
    assert "unknown" in {said.code for said in found.terms.not_promised}
    assert shoal.PrivacyStatement.from_dict(found.to_dict()) == found
    # what is not, or has a code of another version, stays a sentence
    plain["conditions"] = ["It rained."]
    plain["versions"] = {**plain["versions"], "shoal": "0.1"}
    plain["computed"] = {**plain["computed"], "version": "0.1"}
    found = shoal.PrivacyStatement.from_dict(plain)
    assert found.terms.conditions == (Message.of("unknown", text="It rained."),)
    coded = {
        **found.to_dict(),
        "terms": {**made.terms.to_dict(), "conditions": [{"code": "rain", "facts": {}}]},
    }
    assert shoal.PrivacyStatement.from_dict(coded).terms.conditions == found.terms.conditions


def test_terms_that_are_damaged_are_refused(releases: dict[str, shoal.Release]) -> None:
    plain = releases["laplace"].statement.to_dict()
    for damage in ({}, {**plain["terms"], "conditions": []}, {**plain["terms"], "steps": [3]}):
        with pytest.raises(shoal.InputError, match="'terms' cannot be"):
            shoal.PrivacyStatement.from_dict({**plain, "terms": damage})
    other = {**plain["terms"], "not_promised": [{"code": "not-dp", "facts": {}}] * len(plain["not_promised"])}
    with pytest.raises(shoal.InputError, match="not_promised does not follow from its facts"):
        shoal.PrivacyStatement.from_dict({**plain, "terms": other})


@pytest.mark.parametrize("name", sampled(NAMES))
def test_a_bundle_of_every_preset_is_read_back(
    name: str, releases: dict[str, shoal.Release], tmp_path: Path
) -> None:
    made = releases.get(name) or released(name)
    made.save(tmp_path / "out", statistics=made.statistics is not None)
    bundle = shoal.Bundle.load(tmp_path / "out")
    assert bundle.statement.to_dict() == made.statement.to_dict()
    assert bundle.method == made.method
    assert bundle.schema == made.schema
    assert bundle.data.equals(made.data)
    assert bundle.report == tmp_path / "out" / "report.html"
    assert sorted(bundle.linked) == sorted(made.linked)
    assert (bundle.statistics is None) == (made.statistics is None)


def test_a_bundle_repeats_its_release(releases: dict[str, shoal.Release], tmp_path: Path) -> None:
    made = releases["ranking-dp"]
    made.save(tmp_path / "out")
    bundle = shoal.Bundle.load(tmp_path / "out")
    again = shoal.protect(pa.table(columns()), **bundle.recipe)
    assert again.statement == made.statement


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_what_a_bundle_shows(format: Any, releases: dict[str, shoal.Release], tmp_path: Path) -> None:
    releases["laplace"].save(tmp_path / "out", format=format)
    bundle = shoal.Bundle.load(str(tmp_path / "out"))
    assert repr(bundle).startswith("<Bundle 'out' with laplace: Differential privacy of the original records")
    assert "48 rows, 3 columns (age, pay, rent)" in repr(bundle)
    assert "<table>" in bundle._repr_html_()  # type: ignore[attr-defined]
    released("laplace", seed=1).save(tmp_path / "not", format=format)
    assert "<table>" not in shoal.Bundle.load(tmp_path / "not")._repr_html_()  # type: ignore[attr-defined]


BROKEN: dict[str, tuple[str, str | None, str]] = {
    "no statement": ("statement.json", None, "contains no statement.json"),
    "half a statement": ("statement.json", "{", "is not JSON"),
    "no recipe": ("method.toml", None, "contains no method.toml"),
    "half a recipe": ("method.toml", "method = ", "method.toml"),
    "another recipe": (
        "method.toml",
        "laplace",
        "its statement is for method ranking-dp, but its recipe is for laplace",
    ),
    "no data": ("data.csv", None, "contains no data file"),
    "other data": (
        "data.csv",
        "age,pay\n1,2\n",
        "its statement lists column 'rent', but none of its tables has it",
    ),
    "no report": ("report.html", None, "contains no report.html"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_damaged_bundle_is_one_line(name: str, releases: dict[str, shoal.Release], tmp_path: Path) -> None:
    file, content, words = BROKEN[name]
    out = tmp_path / "out"
    releases["ranking-dp"].save(out, format="csv")
    if content is None:
        (out / file).unlink()
    elif content == "laplace":
        releases["laplace"].save(tmp_path / "other", format="csv")
        (out / file).write_text((tmp_path / "other" / file).read_text("utf-8"), "utf-8")
    else:
        (out / file).write_text(content, "utf-8")
    with pytest.raises(shoal.ShoalError, match=words) as refused:
        shoal.Bundle.load(out)
    assert "\n" not in str(refused.value)


def test_no_folder_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(shoal.InputError, match="there is no folder"):
        shoal.Bundle.load(tmp_path / "nowhere")


def same(first: Any, second: Any) -> bool:
    """Equal, for fields of a release."""
    if isinstance(first, np.ndarray):
        return bool(np.array_equal(first, second))
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if hasattr(first, "labels") and hasattr(first, "sizes"):
        return same(first.labels, second.labels) and first.columns == second.columns
    return bool(first.equals(second)) if hasattr(first, "equals") else first == second


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("method", ["ranking-dp", "xm-6", "tree-dp", "k-anonymity", "anatomy"])
def test_a_release_survives_pickling(method: str, library: str, tmp_path: Path) -> None:
    """All of it, what is private too; and it can still be measured, shown and saved, with its table read back."""
    made = released(method, library)
    again = pickle.loads(pickle.dumps(made))
    for field in fields(made):
        if field.name != "verify":
            assert same(getattr(made, field.name), getattr(again, field.name)), field.name
    assert (made.verify is None) == (again.verify is None)
    assert repr(again) == repr(made)
    assert "aligned" not in repr(again)
    again.save(tmp_path / "out")
    assert shoal.Bundle.load(tmp_path / "out").statement.to_dict() == made.statement.to_dict()
    assert (
        shoal.evaluate(frame(columns(), library), again).utility
        == shoal.evaluate(frame(columns(), library), made).utility
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_verifies_a_release_holds_no_records(library: str) -> None:
    """It goes into the pickle, and is as large for ten times as many rows."""
    sizes = []
    for times in (1, 10):
        data = {name: np.tile(values, times) for name, values in columns().items()}
        made = shoal.protect(frame(data, library), SCHEMA, "k-anonymity", k=6)
        assert made.verify is not None
        sizes.append(len(pickle.dumps(made.verify)))
    assert sizes[1] == pytest.approx(sizes[0], abs=16)


def test_the_cluster_of_a_record(releases: dict[str, shoal.Release]) -> None:
    made = releases["mdav-dp"]
    (partition,) = made.partition
    for row in (0, 7, N - 1):
        (cluster,) = made.cluster_of(row)
        assert row in cluster.rows
        assert cluster.rows == tuple(np.flatnonzero(partition.labels == partition.labels[row]).tolist())
        assert cluster.columns == ("age", "pay", "rent")
        assert len(cluster.rows) >= 6
    by_column = releases["ranking-dp"].cluster_of(3)
    assert [cluster.columns for cluster in by_column] == [("age",), ("pay",), ("rent",)]


def test_clusters_count_the_rows_of_the_table_that_was_given() -> None:
    data = {**columns(), "age": [None, *columns()["age"][1:].tolist()]}
    made = shoal.protect(pa.table(data), SCHEMA, "mdav-dp", 1, 6, missing="drop")
    every = [made.cluster_of(row)[0] for row in range(1, N)]
    assert {row for cluster in every for row in cluster.rows} == set(range(1, N))
    with pytest.raises(shoal.OptionError, match="row 0 is not part of the release"):
        made.cluster_of(0)


@pytest.mark.parametrize("row", [-1, N])
def test_a_row_that_is_not_there(row: int, releases: dict[str, shoal.Release]) -> None:
    with pytest.raises(
        shoal.OptionError,
        match=f"row must be between 0 and {N - 1}, the rows of the protected table, got {row}",
    ):
        releases["mdav-dp"].cluster_of(row)


def test_methods_without_clusters_say_so(releases: dict[str, shoal.Release]) -> None:
    with pytest.raises(shoal.OptionError, match="'tree-dp' does not assign records to clusters"):
        releases["tree-dp"].cluster_of(0)


def test_clusters_are_neither_shown_nor_saved(releases: dict[str, shoal.Release], tmp_path: Path) -> None:
    made = releases["mdav-dp"]
    (cluster,) = made.cluster_of(5)
    assert (
        repr(cluster) == "<Cluster: internal, it holds facts about the original records; see its attributes>"
    )
    made.save(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("data.parquet", "statement.json", "method.toml", "log.toml", "report.html")
    }


def test_a_comparison_as_plain_values(releases: dict[str, shoal.Release]) -> None:
    subject = of_release(releases["ranking-dp"])
    original = read(pa.table(columns()))
    for found in compare(subject, original):
        plain = json.loads(json.dumps(found.to_dict()))
        assert plain == found.to_dict()
        assert plain["name"] == found.name
        assert sum(plain["shares"]["before"]) == pytest.approx(1.0)
        assert sum(plain["shares"]["after"]) == pytest.approx(1.0)
        assert len(plain["edges"]) == len(plain["shares"]["after"]) + 1
        assert len(plain["quantiles"]["at"]) == len(plain["quantiles"]["before"]) == 101
        assert plain["missing"] == {"before": 0, "after": 0}
        assert {change["statistic"] for change in plain["changes"]} >= {"mean", "median"}
    alone = compare(subject, None)[0].to_dict()
    assert (alone["shares"]["before"], alone["quantiles"], alone["moved"]) == (None, None, None)
    assert alone["missing"] == {"before": None, "after": 0}


def test_a_nominal_comparison_as_plain_values() -> None:
    schema = Schema((Attribute("town", "nominal", values=("A", "B", "C")),))
    data = pa.table({"town": ["A", "B", "C"] * 16})
    made = shoal.protect(data, schema, "mdav-dp", 1, 6)
    (found,) = compare(replace(of_release(made)), read(data))
    plain = found.to_dict()
    assert plain["labels"] == ["A", "B", "C"]
    assert (plain["edges"], plain["quantiles"]) == (None, None)
    assert plain["moved"] == found.distribution.moved
