"""Stata and SPSS files: round trips keep codes, labels, dates and missing values."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.io.stata import StataReader

import shoal
from shoal.cli import run
from shoal.errors import InputError, OptionError, install_words
from shoal.io import Codebook, Variable, read, write

ENDINGS = ["dta", "sav", "zsav"]
REGIONS = {1: "North", 2: "South", 5: "West coast"}
DAYS = [dt.date(1959, 12, 31), dt.date(1984, 5, 31), None, dt.date(2024, 2, 29), dt.date(1582, 10, 15)]


def survey(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype("int32"),
            "income": np.round(rng.uniform(0, 1000, n), 2),
            "region": rng.choice([1, 2, 5], n).astype("int32"),
            "town": rng.choice(["Aa", "Bö"], n),
        }
    )


def write_raw(frame: pd.DataFrame, path: Path, **settings: Any) -> Path:
    """A file made without Shoal."""
    if path.suffix == ".dta":
        pyreadstat.write_dta(frame, path, **settings)
    else:
        pyreadstat.write_sav(frame, path, compress=path.suffix == ".zsav", **settings)
    return path


def read_raw(path: Path, **settings: Any) -> Any:
    """Values and metadata as the library that knows the files gives them."""
    reader = pyreadstat.read_dta if path.suffix == ".dta" else pyreadstat.read_sav
    return reader(path, **settings)


def surveyed(path: Path, n: int = 60) -> Path:
    return write_raw(
        survey(n),
        path,
        file_label="copy of Ann's disk",
        column_labels={"region": "Where do you live?", "income": "Yearly income"},
        variable_value_labels={"region": REGIONS},
        **({} if path.suffix == ".dta" else {"note": "interviewed by Bob"}),
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_labelled_columns_show_their_labels_and_go_back_to_their_codes(ending: str, tmp_path: Path) -> None:
    path = surveyed(tmp_path / f"in.{ending}")
    table = read(path)
    assert table.format == ("stata" if ending == "dta" else "spss")
    raw = survey()
    assert table.series("region").to_list() == [REGIONS[code] for code in raw["region"]]
    assert table.codebook is not None
    assert table.codebook.of("region").categories == ("North", "South", "West coast")
    assert table.is_integer("age")
    assert not table.is_integer("income")
    assert np.array_equal(table.numeric("income"), raw["income"])
    assert table.series("town").to_list() == raw["town"].to_list()

    write(table.frame.to_native(), tmp_path / f"out.{ending}", table.codebook)
    values, meta = read_raw(tmp_path / f"out.{ending}")
    assert values["region"].to_list() == raw["region"].to_list()
    assert meta.variable_value_labels == {"region": REGIONS}
    assert meta.column_names_to_labels == read_raw(path)[1].column_names_to_labels
    assert meta.original_variable_types == read_raw(path)[1].original_variable_types
    assert values["age"].to_list() == raw["age"].to_list()


def test_stata_files_agree_with_another_reader(tmp_path: Path) -> None:
    """pandas has a reader of its own."""
    table = read(surveyed(tmp_path / "in.dta"))
    write(table.frame.to_native(), tmp_path / "out.dta", table.codebook)
    frame = pd.read_stata(tmp_path / "out.dta", convert_categoricals=False)
    assert frame["region"].to_list() == survey()["region"].to_list()
    assert frame["age"].dtype.kind == "i"
    with StataReader(tmp_path / "out.dta") as reader:
        assert list(reader.value_labels().values()) == [REGIONS]
        assert reader.variable_labels()["region"] == "Where do you live?"


def test_categories_written_by_another_program_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "size": pd.Categorical(["M", "S", None, "L"], categories=["S", "M", "L"], ordered=True),
            "x": np.array([1, 2, 3, 4], dtype="int8"),
            "f": np.array([0.1, 0.2, np.nan, 4], dtype="float32"),
            "when": pd.to_datetime(["1999-12-31", "2000-01-01", None, "1960-01-01"]),
        }
    )
    frame.to_stata(tmp_path / "t.dta", write_index=False, convert_dates={"when": "td"})
    table = read(tmp_path / "t.dta")
    assert table.series("size").to_list() == ["M", "S", None, "L"]
    assert table.codebook is not None
    assert table.codebook.of("size").categories == ("S", "M", "L")
    assert table.is_integer("x")
    assert str(table.dtype("f")) == "Float32"
    assert table.series("when").to_list() == [
        dt.date(1999, 12, 31),
        dt.date(2000, 1, 1),
        None,
        dt.date(1960, 1, 1),
    ]


@pytest.mark.parametrize("ending", ENDINGS)
def test_missing_values_of_every_type_stay_missing(ending: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "whole": pa.array([1, None, 3]),
            "real": pa.array([None, 0.5, 2.0]),
            "text": pa.array(["a", None, "ü"]),
            "day": pa.array([dt.date(2020, 1, 1), None, dt.date(1900, 1, 1)]),
            "empty": pa.array([None, None, None], pa.string()),
            "nothing": pa.array([None, None, None], pa.float64()),
            "truth": pa.array([True, None, False]),
        }
    )
    write(table, tmp_path / f"t.{ending}")
    back = read(tmp_path / f"t.{ending}")
    for name in ("whole", "real", "text", "day", "empty", "nothing"):
        assert back.series(name).to_list() == table[name].to_pylist(), name
    assert back.series("truth").to_list() == [1, None, 0]
    assert back.is_integer("whole")


@pytest.mark.parametrize(
    ("ending", "format"),
    [
        ("dta", "%td"),
        ("dta", "%tdDD/NN/CCYY"),
        ("dta", "%d"),
        ("sav", "DATE11"),
        ("sav", "EDATE10"),
        ("sav", "ADATE8"),
        ("sav", "SDATE10"),
        ("sav", "JDATE5"),
        ("sav", "MOYR6"),
    ],
)
def test_every_date_format_is_read_as_dates_and_kept(ending: str, format: str, tmp_path: Path) -> None:
    epoch, unit = (dt.date(1960, 1, 1), 1) if ending == "dta" else (dt.date(1582, 10, 14), 86400)
    numbers = [np.nan if day is None else (day - epoch).days * unit for day in DAYS]
    path = write_raw(
        pd.DataFrame({"d": np.array(numbers, float)}), tmp_path / f"t.{ending}", variable_format={"d": format}
    )
    table = read(path)
    assert table.series("d").to_list() == DAYS
    write(table.frame.to_native(), tmp_path / f"out.{ending}", table.codebook)
    values, meta = read_raw(tmp_path / f"out.{ending}", disable_datetime_conversion=True)
    assert np.array_equal(values["d"], numbers, equal_nan=True)
    assert meta.original_variable_types["d"] == format


@pytest.mark.parametrize(("ending", "format"), [("dta", "%tc"), ("dta", "%tcHH:MM"), ("sav", "DATETIME20")])
def test_instants_are_read_to_the_millisecond_and_kept(ending: str, format: str, tmp_path: Path) -> None:
    moments = [dt.datetime(1999, 5, 6, 7, 8, 9, 123_000), None, dt.datetime(1955, 1, 1, 23, 59, 59)]
    epoch = dt.datetime(1960, 1, 1) if ending == "dta" else dt.datetime(1582, 10, 14)
    unit = dt.timedelta(milliseconds=1) if ending == "dta" else dt.timedelta(seconds=1)
    numbers = [np.nan if moment is None else (moment - epoch) / unit for moment in moments]
    path = write_raw(
        pd.DataFrame({"t": np.array(numbers, float)}), tmp_path / f"t.{ending}", variable_format={"t": format}
    )
    table = read(path)
    assert table.series("t").to_list() == moments
    write(table.frame.to_native(), tmp_path / f"out.{ending}", table.codebook)
    values, meta = read_raw(tmp_path / f"out.{ending}", disable_datetime_conversion=True)
    assert np.allclose(values["t"], numbers, rtol=0, atol=1e-3, equal_nan=True)
    assert meta.original_variable_types["t"] == format


def test_months_and_durations_stay_numbers_with_their_format(tmp_path: Path) -> None:
    stata = write_raw(
        pd.DataFrame({"m": np.array([720, 721], "int32")}), tmp_path / "m.dta", variable_format={"m": "%tm"}
    )
    table = read(stata)
    assert table.is_integer("m")
    write(table.frame.to_native(), tmp_path / "out.dta", table.codebook)
    assert read_raw(tmp_path / "out.dta")[1].original_variable_types["m"] == "%tm"
    spss = write_raw(pd.DataFrame({"t": [3600.5, 7.0]}), tmp_path / "t.sav", variable_format={"t": "TIME8"})
    assert read(spss).numeric("t").tolist() == [3600.5, 7.0]


@pytest.mark.parametrize(
    ("ending", "format", "values", "whole"),
    [
        ("sav", "F8.0", [1.0, 2.0], True),
        ("sav", "F8.0", [1.0, 2.5], False),
        ("sav", "F8.2", [1.0, 2.0], False),
        ("sav", "COMMA6.0", [1.0, np.nan], True),
        ("dta", "%12.0f", [1.0, 2.0**40], True),
        ("dta", "%12.0fc", [1.0, np.nan], True),
        ("dta", "%9.0g", [1.0, 2.0], False),
        ("dta", "%8.2f", [1.0, 2.0], False),
    ],
)
def test_numbers_are_whole_only_if_the_format_and_every_value_say_so(
    ending: str, format: str, values: list[float], whole: bool, tmp_path: Path
) -> None:
    path = write_raw(pd.DataFrame({"x": values}), tmp_path / f"t.{ending}", variable_format={"x": format})
    table = read(path)
    assert table.is_integer("x") is whole
    assert np.array_equal(table.numeric("x"), values, equal_nan=True)


@pytest.mark.parametrize("ending", ENDINGS)
def test_large_whole_numbers_come_back_whole_and_larger_ones_are_refused(ending: str, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([2**40, -(2**45), None, 3])})
    write(table, tmp_path / f"t.{ending}")
    back = read(tmp_path / f"t.{ending}")
    assert back.is_integer("x")
    assert back.series("x").to_list() == table["x"].to_pylist()
    with pytest.raises(InputError, match="column 'x' holds integers beyond"):
        write(pa.table({"x": [2**60]}), tmp_path / f"u.{ending}")


def test_user_defined_missing_values_of_spss_are_missing_and_stay_defined(tmp_path: Path) -> None:
    path = write_raw(
        pd.DataFrame(
            {"q": [1.0, 2, 9, -3, np.nan], "r": [10.5, 99.0, 98.0, 12, 13], "s": ["a", "NA", "b", "", "a"]}
        ),
        tmp_path / "t.sav",
        variable_value_labels={"q": {1: "no", 2: "yes", 9: "refused"}, "r": {99: "unknown"}},
        missing_ranges={"q": [9, {"lo": -5, "hi": -1}], "r": [98, 99], "s": ["NA"]},
        variable_measure={"q": "nominal"},
        variable_format={"q": "F4.0", "r": "F6.1"},
    )
    table = read(path)
    assert table.series("q").to_list() == ["no", "yes", None, None, None]
    assert table.series("r").to_list() == [10.5, None, None, 12, 13]
    assert table.series("s").to_list() == ["a", None, "b", None, "a"]
    write(table.frame.to_native(), tmp_path / "out.sav", table.codebook)
    before, after = (
        read_raw(file, user_missing=True, metadataonly=True)[1] for file in (path, tmp_path / "out.sav")
    )
    assert after.missing_ranges == before.missing_ranges
    assert after.variable_value_labels == before.variable_value_labels
    assert after.variable_measure["q"] == "nominal"
    assert after.original_variable_types["r"] == "F6.1"
    assert read(tmp_path / "out.sav").series("q").to_list() == ["no", "yes", None, None, None]


def test_a_released_number_is_never_taken_for_a_missing_one(tmp_path: Path) -> None:
    """Noise may land on a code that stood for a missing value."""
    book = Codebook("spss", {"x": Variable(format="F8.0", labels={99: "refused"}, missing=((99, 99),))})
    write(pa.table({"x": [1, 99, 5]}), tmp_path / "hit.sav", book)
    assert read(tmp_path / "hit.sav").series("x").to_list() == [1, 99, 5]
    write(pa.table({"x": [1, 98, 5]}), tmp_path / "clear.sav", book)
    meta = read_raw(tmp_path / "clear.sav", user_missing=True)[1]
    assert meta.missing_ranges == {"x": [{"lo": 99, "hi": 99}]}
    assert meta.variable_value_labels == {"x": {99: "refused"}}


def test_open_ranges_of_missing_values(tmp_path: Path) -> None:
    path = write_raw(
        pd.DataFrame({"q": [1.0, 2, 500, 1e9]}),
        tmp_path / "t.sav",
        missing_ranges={"q": [{"lo": 100, "hi": sys.float_info.max}]},
        variable_value_labels={"q": {1: "no", 2: "yes"}},
        variable_format={"q": "F8.0"},
    )
    table = read(path)
    assert table.series("q").to_list() == ["no", "yes", None, None]
    released = pa.table({"q": ["no", "animal", None]})
    write(released, tmp_path / "out.sav", table.codebook)
    assert read(tmp_path / "out.sav").series("q").to_list() == ["no", "animal", None]
    assert read_raw(tmp_path / "out.sav", user_missing=True)[1].missing_ranges["q"][0]["lo"] == 100


def test_lettered_missing_values_of_stata_are_missing_and_keep_their_labels(tmp_path: Path) -> None:
    frame = pd.DataFrame({"q": [1, 2, "a", None], "n": [1.5, "b", 2.5, 3.5]}, dtype=object)
    path = write_raw(
        frame,
        tmp_path / "t.dta",
        variable_value_labels={"q": {1: "no", 2: "yes", "a": "refused"}, "n": {"b": "unknown"}},
        missing_user_values={"q": ["a"], "n": ["b"]},
    )
    table = read(path)
    assert table.series("q").to_list() == ["no", "yes", None, None]
    assert table.series("n").to_list() == [1.5, None, 2.5, 3.5]
    write(table.frame.to_native(), tmp_path / "out.dta", table.codebook)
    assert read_raw(tmp_path / "out.dta")[1].variable_value_labels == {
        "q": {1: "no", 2: "yes", "a": "refused"},
        "n": {"b": "unknown"},
    }


@pytest.mark.parametrize("ending", ENDINGS)
def test_numbers_of_which_only_some_have_a_label_stay_numbers(ending: str, tmp_path: Path) -> None:
    path = write_raw(
        pd.DataFrame({"age": np.array([20, 31, 90], "int32")}),
        tmp_path / f"t.{ending}",
        variable_value_labels={"age": {90: "90 or older"}},
    )
    table = read(path)
    assert table.series("age").to_list() == [20, 31, 90]
    write(table.frame.to_native(), tmp_path / f"out.{ending}", table.codebook)
    assert read_raw(tmp_path / f"out.{ending}")[1].variable_value_labels == {"age": {90: "90 or older"}}


def test_a_nominal_variable_shows_unlabelled_codes_as_text(tmp_path: Path) -> None:
    path = write_raw(
        pd.DataFrame({"q": [1.0, 2, 3]}),
        tmp_path / "t.sav",
        variable_value_labels={"q": {1: "no", 2: "yes"}},
        variable_measure={"q": "nominal"},
    )
    table = read(path)
    assert table.series("q").to_list() == ["no", "yes", "3"]
    write(table.frame.to_native(), tmp_path / "out.sav", table.codebook)
    values, meta = read_raw(tmp_path / "out.sav")
    assert values["q"].to_list() == [1, 2, 3]
    assert meta.variable_value_labels == {"q": {1: "no", 2: "yes"}}


def test_text_codes_of_spss_have_labels_too(tmp_path: Path) -> None:
    path = write_raw(
        pd.DataFrame({"sex": ["m", "f", "", "m"]}),
        tmp_path / "t.sav",
        variable_value_labels={"sex": {"m": "male", "f": "female"}},
    )
    table = read(path)
    assert table.series("sex").to_list() == ["male", "female", None, "male"]
    write(pa.table({"sex": ["male", "anybody", None]}), tmp_path / "out.sav", table.codebook)
    values, meta = read_raw(tmp_path / "out.sav")
    assert values["sex"].to_list() == ["m", "anybody", ""]
    assert meta.variable_value_labels["sex"] == {"m": "male", "f": "female", "anybody": "anybody"}
    assert read(tmp_path / "out.sav").series("sex").to_list() == ["male", "anybody", None]
    # Stata labels numbers only: there the texts themselves are written
    write(table.frame.to_native(), tmp_path / "out.dta", table.codebook)
    assert read(tmp_path / "out.dta").series("sex").to_list() == ["male", "female", None, "male"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_released_text_without_a_code_gets_a_fresh_one(ending: str, tmp_path: Path) -> None:
    table = read(surveyed(tmp_path / f"in.{ending}"))
    released = pa.table({"region": ["South", "anywhere", "abroad", "North"]})
    write(released, tmp_path / f"out.{ending}", table.codebook)
    values, meta = read_raw(tmp_path / f"out.{ending}")
    assert values["region"].to_list() == [2, 7, 6, 1]
    assert meta.variable_value_labels["region"] == {**REGIONS, 6: "abroad", 7: "anywhere"}
    assert read(tmp_path / f"out.{ending}").series("region").to_list() == released["region"].to_pylist()


def test_two_codes_with_one_label_are_kept_apart(tmp_path: Path) -> None:
    path = write_raw(
        pd.DataFrame({"q": np.array([7, 8, 9], "int32")}),
        tmp_path / "t.dta",
        variable_value_labels={"q": {7: "other", 8: "other", 9: "none"}},
    )
    table = read(path)
    assert table.series("q").to_list() == ["other (7)", "other (8)", "none"]
    write(table.frame.to_native(), tmp_path / "out.dta", table.codebook)
    values, meta = read_raw(tmp_path / "out.dta")
    assert values["q"].to_list() == [7, 8, 9]
    assert meta.variable_value_labels == {"q": {7: "other", 8: "other", 9: "none"}}


@given(
    labels=st.dictionaries(st.integers(-50, 50), st.text("ab ()12:", max_size=6), min_size=1, max_size=8),
    occurring=st.lists(st.integers(-60, 60), max_size=6),
    missing=st.lists(st.tuples(st.integers(-60, 60), st.integers(0, 9)), max_size=2),
    released=st.lists(st.text("ab1*", min_size=1, max_size=4), max_size=5),
)
def test_texts_and_codes_are_one_to_one(
    labels: dict[int, str],
    occurring: list[int],
    missing: list[tuple[int, int]],
    released: list[str],
) -> None:
    """Whatever the labels: no two codes share a text, and no fresh code is taken or stands for a missing value."""
    spans = tuple((lo, lo + width) for lo, width in missing)
    variable = Variable(labels=labels, missing=spans)
    variable = variable.showing_labels()
    shown = {code for code in (*labels, *occurring) if not variable.is_missing(code)}
    texts = {variable.text_of(code): code for code in shown}
    assert len(texts) == len(shown)
    codes = variable.codes_of([*(text for text in texts if text is not None), *released])
    assert {text: codes[text] for text in texts if text is not None} == texts
    assert len(set(codes.values())) == len(codes)
    fresh = {code for text, code in codes.items() if text not in variable.texts.values()}
    assert fresh.isdisjoint(labels)
    assert not any(variable.is_missing(code) for code in fresh)


def test_one_package_reads_what_the_other_wrote(tmp_path: Path) -> None:
    first = read(surveyed(tmp_path / "in.sav"))
    write(first.frame.to_native(), tmp_path / "there.dta", first.codebook)
    second = read(tmp_path / "there.dta")
    write(second.frame.to_native(), tmp_path / "back.sav", second.codebook)
    third = read(tmp_path / "back.sav")
    assert third.frame.to_native().equals(first.frame.to_native())
    assert third.codebook is not None
    assert third.codebook.of("region").labels == REGIONS
    assert third.codebook.of("region").label == "Where do you live?"


def test_long_labels_are_cut_to_what_a_file_holds(tmp_path: Path) -> None:
    book = Codebook("spss", {"x": Variable(label="é" * 300, labels={1: "ü" * 200}, texts={1: "long"})})
    for ending, most in (("dta", 80), ("sav", 127)):
        write(pa.table({"x": ["long", None]}), tmp_path / f"t.{ending}", book)
        label = read_raw(tmp_path / f"t.{ending}")[1].column_names_to_labels["x"]
        assert label == "é" * most


def test_columns_without_a_codebook_are_written_as_they_are(tmp_path: Path) -> None:
    table = pa.table(
        {
            "d": pa.array([dt.date(2020, 1, 2)]),
            "t": pa.array([dt.datetime(2020, 1, 2, 3, 4, 5)]),
            "c": pa.array(["red"]).dictionary_encode(),
        }
    )
    for ending, formats in (("dta", ["%td", "%tc"]), ("sav", ["DATE11", "DATETIME20"])):
        write(table, tmp_path / f"t.{ending}")
        back = read(tmp_path / f"t.{ending}")
        assert back.series("d").to_list() == table["d"].to_pylist()
        assert back.series("t").to_list() == table["t"].to_pylist()
        assert back.series("c").to_list() == ["red"]
        types = read_raw(tmp_path / f"t.{ending}")[1].original_variable_types
        assert [types["d"], types["t"]] == formats


@pytest.mark.parametrize(
    ("ending", "name"),
    [
        ("dta", "net income"),
        ("dta", "2nd"),
        ("dta", "a-b"),
        ("dta", "x" * 33),
        ("dta", "if"),
        ("dta", "str8"),
        ("sav", "net income"),
        ("sav", "_x"),
        ("sav", "with"),
        ("sav", "ä" * 33),
        ("sav", "end."),
    ],
)
def test_names_a_file_cannot_hold_are_refused_by_name(ending: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    with pytest.raises(
        InputError, match=r"cannot be written to a (Stata|SPSS) file.*rename it.*format=csv"
    ) as error:
        write(pa.table({"fine": [1], name: [2]}), path)
    assert f"column '{name}'" in str(error.value)
    assert not path.exists()


@pytest.mark.parametrize(
    ("ending", "name"), [("dta", "größe_ñ"), ("dta", "_x"), ("sav", "größe.1$#@"), ("sav", "日本")]
)
def test_names_a_file_can_hold_are_written(ending: str, name: str, tmp_path: Path) -> None:
    write(pa.table({name: [1, 2]}), tmp_path / f"t.{ending}")
    assert read(tmp_path / f"t.{ending}").names == (name,)


def test_names_that_differ_in_capitals_only_are_refused_by_spss(tmp_path: Path) -> None:
    table = pa.table({"Age": [1], "age": [2]})
    with pytest.raises(InputError, match="columns 'Age' and 'age'"):
        write(table, tmp_path / "t.sav")
    write(table, tmp_path / "t.dta")
    assert read(tmp_path / "t.dta").names == ("Age", "age")


def test_types_a_file_cannot_hold_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="column 'x' of type list"):
        write(pa.table({"x": [[1, 2]]}), tmp_path / "t.dta")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_broken_file_is_one_clear_line(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    path.write_bytes(b"name,age\nx,3\n")
    with pytest.raises(InputError, match=r"cannot be read as (Stata|SPSS)"):
        read(path)
    whole = surveyed(tmp_path / f"whole.{ending}").read_bytes()
    path.write_bytes(whole[: len(whole) // 3])
    with pytest.raises(InputError, match=r"cannot be read as (Stata|SPSS)"):
        read(path)


@pytest.mark.parametrize("module", ["pyreadstat", "pandas"])
def test_without_the_extra_one_line_says_what_to_install(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    surveyed(tmp_path / "in.dta")
    survey().to_csv(tmp_path / "in.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    for source in ("in.dta", "in.csv"):
        words = ["protect", source, "--format", "stata", *RECIPE, "--out", "out"]
        assert run(words) == 2
        assert install_words("files") in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_reading_a_csv_does_not_load_the_extra(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    code = "import sys, shoal.io; shoal.io.read('t.csv'); print('pyreadstat' in sys.modules, 'pandas' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


RECIPE = [
    *("--method", "ranking-dp", "--epsilon", "5", "--k", "5", "--columns", "age,income"),
    *("--domain", "age=0:120", "--domain", "income=0.00:1000.00"),
]


@pytest.mark.parametrize("ending", ["dta", "sav"])
def test_protect_writes_the_format_of_its_input(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    surveyed(tmp_path / f"in.{ending}")
    monkeypatch.chdir(tmp_path)
    assert run(["protect", f"in.{ending}", *RECIPE, "--out", "out"]) == 0
    released = read(tmp_path / "out" / f"data.{ending}")
    assert released.names == ("age", "income")
    assert released.n == 60
    assert released.is_integer("age")
    values, meta = read_raw(tmp_path / "out" / f"data.{ending}")
    assert values["age"].between(0, 120).all()
    assert meta.column_names_to_labels == {"age": None, "income": "Yearly income"}
    assert read_raw(tmp_path / f"in.{ending}")[1].file_label == "copy of Ann's disk"
    assert meta.file_label is None
    assert not meta.notes


@pytest.mark.parametrize(("word", "file"), [("stata", "data.dta"), ("spss", "data.sav"), ("csv", "data.csv")])
def test_protect_writes_the_format_asked_for(
    word: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey().to_csv(tmp_path / "in.csv", index=False)
    monkeypatch.chdir(tmp_path)
    assert run(["protect", "in.csv", *RECIPE, "--format", word, "--out", "out"]) == 0
    assert read(tmp_path / "out" / file).names == ("age", "income")


def test_a_name_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    survey().rename(columns={"age": "age in years"}).to_csv(tmp_path / "in.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shoal.release.publication.carry_out", lambda *_: pytest.fail("the budget was spent"))
    words = [
        "--method",
        "ranking-dp",
        "--epsilon",
        "1",
        "--domain",
        "age in years=0:120",
        "--columns",
        "age in years",
    ]
    assert run(["protect", "in.csv", *words, "--format", "stata", "--out", "out"]) == 2
    line = capsys.readouterr().err
    assert "column 'age in years' cannot be written to a Stata file" in line
    assert not (tmp_path / "out").exists()


def test_an_ordinal_column_keeps_codes_and_declared_labels_through_a_release(tmp_path: Path) -> None:
    """Labels that the release does not hold are published only if the schema declares them."""
    health = {1: "bad", 2: "fair", 3: "good", 4: "never chosen"}
    rng = np.random.default_rng(3)
    n = 400
    frame = pd.DataFrame(
        {
            "health": rng.choice([1, 2, 3], n).astype("int32"),
            "age": rng.integers(20, 80, n).astype("int32"),
        }
    )
    path = write_raw(frame, tmp_path / "in.dta", variable_value_labels={"health": health})
    schema = shoal.Schema.from_dict(
        {
            "attribute": [
                {"name": "health", "kind": "ordinal", "ordered": ["bad", "fair", "good", "never chosen"]},
                {"name": "age", "lo": 0, "hi": 120},
            ]
        }
    )
    release = shoal.protect(path, schema, method="tree-dp", epsilon=5, seed=1)
    assert release.format == "stata"
    release.save(tmp_path / "out")
    values, meta = read_raw(tmp_path / "out" / "data.dta")
    assert set(values["health"]) <= set(health)
    assert meta.variable_value_labels == {"health": health}


def test_labels_that_are_neither_released_nor_declared_are_not_published() -> None:
    """A label set made from the data lists every value of it, identifiers included."""
    book = Codebook(
        "stata",
        {
            "name": Variable(labels={1: "Ann", 2: "Bob"}, texts={1: "Ann", 2: "Bob"}),
            "job": Variable(
                labels={1: "cook", 2: "smith", 3: "spy", 9: "refused"},
                texts={1: "cook", 2: "smith", 3: "spy"},
                missing=((9, 9),),
            ),
            "age": Variable(labels={90: "90 or older", 91: "secret"}),
        },
    )
    released = pa.table({"job": ["cook", "cook", None], "age": [90, 4, 5]})
    public = book.public(released, {"job": ["smith"]})
    assert set(public.variables) == {"job", "age"}
    assert public.of("job").labels == {1: "cook", 2: "smith", 9: "refused"}
    assert public.of("job").texts == {1: "cook", 2: "smith"}
    # the code of the label that is not told is not given to another text
    assert public.of("job").codes_of(["cook", "artist"]) == {"cook": 1, "smith": 2, "artist": 4}
    assert public.of("age").labels == {90: "90 or older"}


def test_released_texts_are_coded_even_if_no_label_of_the_original_is_left(tmp_path: Path) -> None:
    table = read(surveyed(tmp_path / "in.dta"))
    assert table.codebook is not None
    released = pa.table({"region": ["anywhere", None]})
    write(released, tmp_path / "out.dta", table.codebook.public(released, {}))
    values, meta = read_raw(tmp_path / "out.dta")
    assert values["region"].to_list()[0] == 6
    assert meta.variable_value_labels == {"region": {6: "anywhere"}}


def test_labels_of_missing_values_do_not_move_to_the_other_package(tmp_path: Path) -> None:
    book = Codebook(
        "spss",
        {
            "q": Variable(labels={1: "no", 2: "refused"}, texts={1: "no"}, missing=((2, 2),)),
            "n": Variable(labels={99: "refused", 7: "lucky"}, missing=((99, 99),)),
        },
    )
    write(pa.table({"q": ["no", "maybe"], "n": [7, 99]}), tmp_path / "t.dta", book)
    values, meta = read_raw(tmp_path / "t.dta")
    assert meta.variable_value_labels == {"q": {1: "no", 3: "maybe"}, "n": {7: "lucky"}}
    assert values["n"].to_list() == [7, 99]


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    release = shoal.protect(survey()[["age"]], method="laplace", epsilon=1, domains={"age": (0, 120)})
    with pytest.raises(
        OptionError, match=r"format 'sas' is not one of csv, .*, parquet, feather, excel, stata, spss"
    ):
        release.save(tmp_path / "out", format="sas")  # type: ignore[arg-type]


def test_rows_keep_the_codebook(tmp_path: Path) -> None:
    table = read(surveyed(tmp_path / "in.sav"))
    assert table.rows(np.array([0, 2])).codebook is table.codebook


def test_released_concepts_of_a_taxonomy_get_codes_and_the_others_keep_theirs(tmp_path: Path) -> None:
    jobs = {10: "clerk", 20: "judge", 31: "smith", 32: "baker"}
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "job": pd.array(rng.choice([*jobs, None], 300), dtype="Int32"),
            "age": rng.integers(20, 80, 300).astype("int32"),
        }
    )
    path = write_raw(frame, tmp_path / "in.dta", variable_value_labels={"job": jobs})
    tree = shoal.Taxonomy.from_dict({"work": {"office": ["clerk", "judge"], "craft": ["smith", "baker"]}})
    release = shoal.protect(
        path, method="mdav-dp", epsilon=1, k=10, seed=3, generalise=True, missing="category",
        domains={"job": tree, "age": (0, 120)},
    )  # fmt: skip
    release.save(tmp_path / "out")
    texts = read(tmp_path / "out" / "data.dta").series("job").to_list()
    assert sorted(map(str, texts)) == sorted(map(str, read(release.data).series("job").to_list()))
    inner = {text for text in texts if text is not None} - set(jobs.values())
    assert inner
    values, meta = read_raw(tmp_path / "out" / "data.dta")
    labels = meta.variable_value_labels["job"]
    assert {code: labels[code] for code in jobs} == jobs
    # every group has its code, whether or not it is released: codes must not tell what occurs
    assert inner <= {labels[code] for code in labels if code not in jobs} == {"work", "office", "craft"}
    assert set(values["job"].dropna()) <= set(labels)


def test_a_drafted_schema_lists_the_labels_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_raw(
        pd.DataFrame({"q": [1.0, 2, 3, 9], "health": [1.0, 3, 2, 2], "age": [30.0, 40, 50, 99]}),
        tmp_path / "in.sav",
        variable_value_labels={
            "q": {1: "no", 2: "yes", 9: "refused"},
            "health": {3: "good", 1: "bad", 2: "fair"},
            "age": {99: "99 or older"},
        },
        missing_ranges={"q": [9]},
        variable_measure={"q": "nominal", "health": "ordinal"},
    )
    assert run(["schema", str(path)]) == 0
    (tmp_path / "draft.toml").write_text(capsys.readouterr().out)
    drafted = shoal.Schema.load(tmp_path / "draft.toml")
    assert drafted["q"].values == ("no", "yes")  # neither what is missing nor what only the records hold
    assert drafted["health"].kind == "ordinal"
    assert drafted["health"].ordered == ("bad", "fair", "good")
    assert drafted["age"].kind == "numeric"
    assert shoal.Schema.infer(path)["q"].values == ()


@pytest.mark.parametrize(("ending", "begins"), [("sav", b"$FL2"), ("zsav", b"$FL3")])
def test_only_zsav_is_written_compressed(tmp_path: Path, ending: str, begins: bytes) -> None:
    source, path = surveyed(tmp_path / f"in.{ending}"), tmp_path / f"out.{ending}"
    table = read(source)
    write(table.frame.to_native(), path, table.codebook)
    assert path.read_bytes()[:4] == begins
