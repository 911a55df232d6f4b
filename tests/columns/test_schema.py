"""The schema: guessed without domains, readable, read back the same, refused when invalid."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.cli.options import parse_domains
from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema, draft_text
from shoal.errors import InputError, OptionError
from tests.support.samples import LIBRARIES, ODD_NAMES, frame


@pytest.mark.parametrize(
    ("name", "role"),
    [
        *(("person_id", "identifier"), ("patientID", "identifier"), ("UTILITYID", "identifier")),
        *(("E-mail email", "identifier"), ("last name", "identifier"), ("sampling weight", "weight")),
        *(("AFNLWGT", "weight"), ("age", "quasi-identifier"), ("zip code", "quasi-identifier")),
        *(("income", "confidential"), ("width", "confidential"), ("paid", "confidential")),
    ],
)
def test_roles_are_guessed_from_words_of_the_name(name: str, role: str) -> None:
    assert Schema.infer(pa.table({name: [1, 2]}))[name].role == role


@pytest.mark.parametrize("library", LIBRARIES)
def test_kinds_are_guessed_from_types(library: str) -> None:
    columns = {
        "whole": np.arange(3),
        "real": np.arange(3.0),
        "text": np.array(["a", "b", "c"]),
        "day": np.array(["2020-01-01", "2021-05-06", "1999-12-31"]),
    }
    schema = Schema.infer(frame(columns, library))
    assert [a.kind for a in schema.attributes] == ["numeric", "numeric", "nominal", "date"]
    # how fine the values are is a fact about the records, as their types are
    assert {a.step for a in schema.attributes} == {None}


def test_dates_and_ordered_categories_are_described() -> None:
    assert Schema.infer(pa.table({"d": [date(2020, 1, 1)]}))["d"].kind == "date"
    grades = pl.DataFrame({"g": ["low", "high"]}, schema={"g": pl.Enum(["low", "high"])})
    assert Schema.infer(grades)["g"].kind == "ordinal"
    assert Schema.infer(pd.DataFrame({"b": [True, False]}))["b"].kind == "nominal"


@pytest.mark.parametrize("library", LIBRARIES)
def test_domains_are_never_guessed(library: str) -> None:
    schema = Schema.infer(frame({"x": np.arange(9.0), "y": np.arange(9)}, library))
    assert all(a.lo is None and a.hi is None for a in schema.attributes)
    assert "lo =" not in draft_text(schema)


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
bounds = st.decimals(-(10**6), 10**6, places=4, allow_nan=False, allow_infinity=False).map(Fraction)


@st.composite
def attributes(draw: st.DrawFn) -> Attribute:
    lo = draw(st.none() | bounds)
    return Attribute(
        name=draw(names),
        kind=draw(st.sampled_from(["numeric", "ordinal", "nominal", "date"])),
        role=draw(st.sampled_from(["identifier", "quasi-identifier", "confidential", "weight", "other"])),
        lo=lo,
        hi=None if lo is None else lo + draw(st.integers(1, 1000)),
        step=draw(st.none() | st.just(Fraction(1, 8))),
        ordered=tuple(draw(st.lists(names, max_size=3))),
        max_rows=draw(st.none() | st.integers(1, 99)),
    )


@given(st.lists(attributes(), min_size=1, max_size=4, unique_by=lambda a: a.name))
def test_any_schema_reads_back(tmp_path_factory: Any, entries: list[Attribute]) -> None:
    path = tmp_path_factory.mktemp("schema") / "s.toml"
    schema = Schema(tuple(entries))
    schema.save(path)
    assert Schema.load(path) == schema


def test_the_draft_says_how_to_fill_it_in(tmp_path: Path) -> None:
    Schema.infer(pa.table({"age": [1]})).save(tmp_path / "s.toml")
    text = (tmp_path / "s.toml").read_text("utf-8")
    for word in ("kind", "role", "lo, hi", "step", "max_rows", "without looking at these records"):
        assert word in text


def test_an_edited_file_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('[[attribute]]\nname = "x"\nlo = 0.1\nhi = "2.5"\nstep = 0.1\n', "utf-8")
    (x,) = Schema.load(path).attributes
    assert (x.lo, x.hi, x.step) == (Fraction(1, 10), Fraction(5, 2), Fraction(1, 10))
    assert (x.kind, x.role) == ("numeric", "confidential")
    assert x.lattice(integer=False).steps == 24


def test_spikes_are_exact_numbers_in_order(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        '[[attribute]]\nname = "x"\nlo = 0\nhi = 1\nstep = 0.1\nspikes = [0.7, "0.1", 0]\n', "utf-8"
    )
    schema = Schema.load(path)
    assert schema.attributes[0].spikes == (0, Fraction(1, 10), Fraction(7, 10))
    schema.save(path)
    assert "spikes = [0, 0.1, 0.7]" in path.read_text("utf-8")
    assert Schema.load(path) == schema


def test_spikes_known_from_the_records_only_are_a_fact_from_them() -> None:
    entry = {"name": "x", "lo": 0, "hi": 9, "type": "integer", "spikes": [3]}
    known = {"domain": "law", "type": "law", "kind": "law"}
    schema = Schema.from_dict({"attribute": [{**entry, "source": {**known, "spikes": "these records"}}]})
    assert schema.attributes[0].from_records == ("spikes",)
    release = shoal.protect(pa.table({"x": [1, 3, 3, 5] * 9}), schema, "pairs-dp", epsilon=1, seed=1)
    assert "spikes" in " ".join(release.statement.conditions)


def test_an_integer_column_has_no_spikes_between_integers() -> None:
    schema = Schema.from_dict({"attribute": [{"name": "x", "lo": 0, "hi": 9, "spikes": [0.5]}]})
    with pytest.raises(OptionError, match=r"the spike 0\.5 is not a multiple"):
        shoal.protect(pa.table({"x": [1, 3, 3, 5]}), schema, "pairs-dp", epsilon=1, seed=1)


def test_default_steps() -> None:
    x = Attribute("x", lo=Fraction(0), hi=Fraction(100))
    assert x.lattice(integer=True).step == 1
    assert x.lattice(integer=False).step == Fraction(100, 2**20)


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ({"kind": "number"}, "kind 'number' is not one of"),
        ({"role": "secret"}, "role 'secret' is not one of"),
        ({"lo": 0}, "both lo and hi"),
        ({"lo": 5, "hi": 5}, "lo < hi"),
        ({"lo": True, "hi": 5}, "must be a number"),
        ({"lo": "low", "hi": 5}, "'x': lo must be a number"),
        ({"lo": 0, "hi": 1, "step": 0}, "greater than 0"),
        ({"max_rows": 0}, "max_rows"),
        ({"max_rows": "2"}, "max_rows"),
        ({"max_rows": 2.5}, "max_rows"),
        ({"max_rows": True}, "max_rows"),
        ({"ordered": "abc"}, "ordered must be a list"),
        ({"high": 5}, "unknown key 'high'"),
        ({"spikes": 40}, "spikes must be a list of numbers, got 40"),
        ({"spikes": "40"}, "spikes must be a list of numbers, got '40'"),
        ({"spikes": [True]}, "spikes must be a number"),
        ({"spikes": ["many"]}, "spikes must be a number"),
        ({"spikes": [40, "40.0"]}, "spikes contains 40 twice"),
        ({"spikes": [0, 101], "lo": 0, "hi": 100}, "the spike 101 lies outside the domain 0:100"),
        ({"spikes": [-1], "lo": 0, "hi": 100}, "the spike -1 lies outside"),
        (
            {"spikes": [2.5], "lo": 0, "hi": 100, "type": "integer"},
            "the spike 2.5 is not a multiple of the step 1",
        ),
        (
            {"spikes": [3], "lo": 1, "hi": 100, "step": 5},
            "the spike 3 is not a multiple of the step 5 above 1",
        ),
        ({"spikes": [0], "kind": "date"}, "spikes are values of a numeric column"),
        ({"spikes": [0], "values": ["a", "b"]}, "spikes are values of a numeric column"),
    ],
)
def test_entries_that_make_no_sense_are_refused(entry: dict[str, Any], word: str) -> None:
    with pytest.raises(OptionError, match=word):
        Schema.from_dict({"attribute": [{"name": "x", **entry}]})


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ({}, "no \\[\\[attribute\\]\\]"),
        ({"attribute": {}}, "no \\[\\[attribute\\]\\]"),
        ({"attribute": [{"lo": 0}]}, "needs a name"),
        ({"attribute": [{"name": 7}]}, "needs a name"),
        ({"attribute": [{"name": "x"}, {"name": "x"}]}, "'x' twice"),
        ({"attribute": [{"name": "x", "role": "unit"}, {"name": "y", "role": "unit"}]}, "two unit columns"),
    ],
)
def test_files_that_make_no_sense_are_refused(raw: dict[str, Any], word: str) -> None:
    with pytest.raises(OptionError, match=word):
        Schema.from_dict(raw)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no schema file"):
        Schema.load(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        Schema.load(tmp_path)
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not valid TOML"):
        Schema.load(tmp_path / "s.toml")


@pytest.mark.parametrize("name", [*ODD_NAMES, "a=1:2", "c:\\data", "=", "x=y=z"])
def test_domains_of_odd_names_are_parsed(name: str) -> None:
    assert parse_domains([f"{name}=-1.5:2e3"]) == {name: (Fraction(-3, 2), Fraction(2000))}


@pytest.mark.parametrize("text", ["", "x", "x=", "x=1", "=1:2", "x=1:2:3", "x=a:b", "x=:", "x=1:nan"])
def test_domains_that_cannot_be_parsed_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="--domain"):
        parse_domains([text])


def test_lookup_and_hints() -> None:
    schema = Schema.infer(pa.table({"income": [1], "age": [2]}))
    assert "age" in schema
    assert "wage" not in schema
    with pytest.raises(OptionError, match="Did you mean 'income'"):
        schema["incmoe"]
    assert schema.with_domains({"age": (0, 120)})["age"].hi == 120
    with pytest.raises(OptionError, match="must be a pair"):
        schema.with_domains({"age": 5})  # type: ignore[dict-item]


def test_public_type_is_exported() -> None:
    assert shoal.Schema is Schema
    assert shoal.Attribute is Attribute
