"""Preprocessing steps: declared, public, run on every record by itself, and stated."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv

import shoal
from shoal import Attribute, InputError, OptionError, Schema, Step
from shoal.cli import run
from shoal.columns.declaration import with_steps
from shoal.columns.steps import breaks_of
from shoal.io import read
from shoal.query.facts import prepare as query_table
from tests.conftest import data_file, offices_file
from tests.privacy.accounting.transcript import recording, replaying

JOBS = {"work": {"hands": ["cook", "baker"], "care": ["nurse"], "office": ["clerk", "judge"]}}


def people() -> dict[str, list[Any]]:
    return {
        "age": [17, 25, 26, 40, 65, 66, 90, 33],
        "income": [0, 500, 1000, 1001, 2500, 9000, 100, 700],
        "job": ["cook", "baker", "nurse", "clerk", "judge", "cook", "nurse", "clerk"],
        "civil": ["single", "married", "widowed", "divorced", "single", "married", "single", "married"],
        "zip": [1, 2, 3, 4, 5, 6, 7, 8],
    }


def schema(*steps: dict[str, Any], **more: Any) -> Schema:
    return Schema.from_dict(
        {
            "attribute": [
                {"name": "age", "type": "integer", "lo": 0, "hi": 120, "source": "law"},
                {"name": "income", "type": "integer", "lo": 0, "hi": 10000, "source": "law"},
                {"name": "job", "type": "text", "taxonomy": JOBS, "source": "law"},
                {
                    "name": "civil",
                    "type": "text",
                    "values": ["single", "married", "widowed", "divorced"],
                    "source": "law",
                },
                {"name": "zip", "type": "integer", "lo": 0, "hi": 9, "source": "law"},
            ],
            "step": list(steps),
            **more,
        }
    )


BANDS = {"recode": "age", "breaks": [0, 25, 65, math.inf], "source": "questionnaire"}
TOP = {"top": "income", "at": 1000, "source": "law"}
BOTTOM = {"bottom": "income", "at": 100, "put": 0}
LEVEL = {"recode": "job", "level": 1}
MAPPING = {"recode": "civil", "mapping": {"widowed": "was married", "divorced": "was married"}}
DROP = {"drop": "zip"}
ALL = (BANDS, TOP, BOTTOM, LEVEL, MAPPING, DROP)


@pytest.mark.parametrize("library", [pa.table, pd.DataFrame, pl.DataFrame])
def test_each_step_changes_its_column_and_no_other(library: Any) -> None:
    found = with_steps(read(library(people())), schema(*ALL))
    assert found.names == ("age", "income", "job", "civil")
    assert found.series("age").to_list() == [*["(0,25]"] * 2, *["(25,65]"] * 3, *["(65,inf)"] * 2, "(25,65]"]
    assert found.series("income").to_list() == [0, 500, 1000, 1000, 1000, 1000, 100, 700]
    groups = ["hands", "hands", "care", "office", "office", "hands", "care", "office"]
    assert found.series("job").to_list() == groups
    assert Counter(found.series("civil").to_list()) == {"single": 3, "married": 3, "was married": 2}
    assert [count for _, count in found.steps] == [8, 3, 1, 8, 2, 8]
    assert with_steps(found, schema(*ALL)) is found


def test_a_missing_value_stays_missing_and_an_equal_one_stays() -> None:
    table = {"age": [25, None], "income": [1000, None], "job": ["cook", None], "civil": ["single", None]}
    found = with_steps(read(pa.table({**table, "zip": [1, 2]})), schema(*ALL))
    assert {name: found.series(name).to_list()[1] for name in found.names} == dict.fromkeys(found.names)
    assert found.series("income").to_list()[0] == 1000


def test_what_is_public_after_the_steps() -> None:
    after = schema(*ALL).stepped
    assert after["age"].ordered == ("(0,25]", "(25,65]", "(65,inf)")
    assert (after["age"].kind, after["age"].source["domain"]) == ("ordinal", "questionnaire")
    assert (after["income"].lo, after["income"].hi) == (0, 1000)
    assert set(after["job"].values) == {"hands", "care", "office"}
    assert after["civil"].values == ("single", "married", "was married")
    assert "zip" not in after
    assert after.stepped is after
    assert after.declared == schema(*ALL)


@pytest.mark.parametrize(
    ("step", "domain"),
    [({"top": "income", "at": 20000}, (0, 10000)), ({"top": "income", "at": 500, "put": 800}, (0, 800))],
)
def test_the_range_after_top_coding_holds_every_value(step: dict[str, Any], domain: tuple[int, int]) -> None:
    after = schema(step).stepped["income"]
    assert (after.lo, after.hi) == domain


def test_dates_have_bands_and_an_end() -> None:
    days = ["1980-01-01", "1990-05-31", "2001-01-01"]
    declared = Schema.from_dict(
        {
            "attribute": [
                {"name": "born", "kind": "date", "type": "date", "lo": "1900-01-01", "hi": "2026-12-31"},
                {"name": "moved", "kind": "date", "type": "date", "lo": "1900-01-01", "hi": "2026-12-31"},
            ],
            "step": [
                {"recode": "born", "breaks": ["1900-01-01", "1990-05-31", "2026-12-31"], "closed": "left"},
                {"top": "moved", "at": "2000-12-31"},
            ],
        }
    )
    dates = pa.array(days).cast(pa.date32())
    found = with_steps(read(pa.table({"born": dates, "moved": dates})), declared)
    assert found.series("born").to_list() == [
        "[1900-01-01,1990-05-31)",
        *["[1990-05-31,2026-12-31)"] * 2,
    ]
    assert [str(day) for day in found.series("moved").to_list()] == [*days[:2], "2000-12-31"]
    assert Schema.from_dict(declared.to_dict()) == declared


def test_a_schema_file_is_written_and_read_back(tmp_path: Path) -> None:
    margin = {"column": "civil", "totals": {"single": 10, "married": "20.5"}, "source": "law"}
    declared = schema(*ALL, margin=[margin])
    declared.save(tmp_path / "people.toml")
    assert Schema.load(tmp_path / "people.toml") == declared
    declared.stepped.save(tmp_path / "after.toml")
    assert Schema.load(tmp_path / "after.toml") == declared


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"recode": "age"}, "give exactly one of breaks, level and mapping"),
        ({"recode": "age", "breaks": [0, 5], "level": 1}, "give exactly one of breaks"),
        ({"recode": "age", "breaks": [5, 5]}, "ascending"),
        ({"recode": "age", "breaks": 5}, "must be a list"),
        ({"recode": "age", "breaks": [0, 5, 9], "labels": ["a"]}, "2 bands, got labels for 1"),
        ({"recode": "age", "breaks": [0, 5, 9], "labels": ["a", "a"]}, "labels must be distinct"),
        ({"recode": "age", "breaks": [0, 5, 9], "closed": "up"}, "closed must be right or left, got 'up'"),
        ({"recode": "age", "breaks": [0, 120]}, "drop the column"),
        ({"recode": "age", "mapping": {"17": "x"}}, "mapping applies to named values"),
        ({"recode": "civil", "breaks": [0, 5, 9]}, "breaks apply to numbers and dates only"),
        ({"recode": "civil", "mapping": {"maried": "x"}}, "no value 'maried'"),
        ({"recode": "civil", "level": 1}, "needs a nominal column with a taxonomy"),
        ({"recode": "job", "level": 0}, "positive integer"),
        ({"recode": "job", "level": 9}, "level must be less than"),
        ({"top": "income"}, "at is missing"),
        ({"top": "income", "at": 5, "breaks": [1, 2]}, "unknown parameter 'breaks' for this step"),
        ({"top": "income", "at": "2000-01-01"}, "at must be a number"),
        ({"top": "income", "at": 5, "put": 0.5}, "the column holds integers"),
        ({"top": "civil", "at": 5}, "applies to numbers and dates only"),
        ({"top": "income", "att": 5}, "unknown key 'att'"),
        ({"drop": "zip", "recode": "age"}, "every [[step]] entry must name exactly one action"),
        ({"shuffle": "age"}, "every [[step]] entry must name exactly one action"),
        ({"top": "incom", "at": 5}, "the schema does not describe this column. Did you mean 'income'?"),
        ({"top": "income", "at": 5, "source": "me"}, "source 'me' is not one of"),
    ],
)
def test_bad_parameters_get_one_line(step: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError) as caught:
        schema(step)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_step_after_the_drop_of_its_column_is_refused() -> None:
    with pytest.raises(OptionError, match="an earlier step dropped"):
        schema({"drop": "age"}, BANDS)


def test_a_value_in_no_band_is_named_by_its_row_or_becomes_missing() -> None:
    narrow = {"recode": "age", "breaks": [0, 25, 65]}
    with pytest.raises(InputError, match="column 'age': the value in row 6 lies outside the bands"):
        with_steps(read(pa.table(people())), schema(narrow))
    found = with_steps(read(pa.table(people())), schema({**narrow, "outside": "missing"}))
    assert found.series("age").to_list().count(None) == 2


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="no column 'zipp'"):
        with_steps(read(pa.table(people())), schema({"drop": "zipp"}))


def test_the_statement_says_what_was_done_and_stays_publishable() -> None:
    release = shoal.protect(pa.table(people()), schema(*ALL), "laplace", epsilon=1)
    assert release.statement.publishable
    assert release.statement.steps[0] == ("Column age is recoded into 3 bands: (0,25], (25,65], (65,inf).")
    assert "Values of column income above 1000 become 1000." in release.statement.to_markdown()
    assert any("adjacent tables remain adjacent after them" in line for line in release.statement.conditions)
    assert release.statement.attributes["income"]["hi"] == "1000"
    again = shoal.PrivacyStatement.from_dict(json.loads(json.dumps(release.statement.to_dict())))
    assert again.steps == release.statement.steps


def test_without_steps_a_statement_says_nothing_about_them() -> None:
    assert (
        "steps" not in shoal.protect(pa.table(people()), schema(), "laplace", epsilon=1).statement.to_dict()
    )


@pytest.mark.parametrize("source", ["these records", "law"])
def test_only_parameters_from_the_records_taint(source: str) -> None:
    declared = schema({**TOP, "source": source})
    statement = shoal.protect(pa.table(people()), declared, "laplace", epsilon=1).statement
    assert statement.publishable is (source == "law")
    assert bool(statement.data_dependent) is (source != "law")
    # k-anonymity is about this very table, whatever was looked at
    assert shoal.protect(pa.table(people()), declared, "k-anonymity", k=2).statement.publishable


@pytest.mark.parametrize("step", [BANDS, TOP, MAPPING])
def test_cells_whose_type_nobody_declared_taint_as_without_steps(
    step: dict[str, Any], tmp_path: Path
) -> None:
    """How a cell is read depends on the other cells of its column then: it is not each record by itself."""
    csv.write_csv(pa.table(people()), tmp_path / "people.csv")
    plain = schema(step).to_dict()
    column = next(step[verb] for verb in ("recode", "top") if verb in step)
    for entry in plain["attribute"]:
        if entry["name"] == "income":
            # a range is needed, and would declare the type
            entry["source"] = {"type": "these records"}
            continue
        for fact in {"type", "lo", "hi", "values"} & entry.keys():
            del entry[fact]
    for declared, publishable in ((schema(step), True), (Schema.from_dict(plain), False)):
        release = shoal.protect(tmp_path / "people.csv", declared, "laplace", epsilon=1, columns=[column])
        assert release.statement.publishable is publishable
        read_off = f"types inferred from the records: {column} "
        assert (read_off in str(release.statement.data_dependent)) is not publishable


EVERY_NAME = {"single": "alone", "married": "not alone", "widowed": "alone", "divorced": "alone"}


@pytest.mark.parametrize(
    ("step", "column", "clean"),
    [
        # what comes out of these steps is known from the values that went in
        (MAPPING, "civil", False),
        ({**MAPPING, "source": "law"}, "civil", False),
        (LEVEL, "job", False),
        ({**LEVEL, "source": "law"}, "job", False),
        # these name every value that comes out, and only the second says where it is known from
        ({"recode": "civil", "mapping": EVERY_NAME}, "civil", False),
        ({"recode": "civil", "mapping": EVERY_NAME, "source": "law"}, "civil", True),
        ({**BANDS, "source": ""}, "age", False),
        (BANDS, "age", True),
        (TOP, "income", False),
    ],
)
def test_a_step_does_not_make_public_what_was_read_off_the_records(
    step: dict[str, Any], column: str, clean: bool
) -> None:
    given = schema(step).to_dict()
    for entry in given["attribute"]:
        entry["source"] = {"domain": "these records", "type": "law", "kind": "law"}
    for data in (pa.table(people()), pd.DataFrame(people())):
        release = shoal.protect(data, Schema.from_dict(given), "laplace", epsilon=1, columns=[column])
        assert release.statement.publishable is clean
        found = f"domains inferred from the records: {column} " in str(release.statement.data_dependent)
        assert found is not clean
        assert ("taken from the data" in release.statement.attributes[column].values()) is not clean
    again = schema(step, {**MAPPING, "mapping": {"was married": "x"}}) if step is MAPPING else schema(step)
    assert "these records" not in again.stepped[column].source.values()


def test_two_steps_do_not_make_public_what_one_does_not() -> None:
    given = schema(
        MAPPING, {"recode": "civil", "mapping": {"was married": "later"}, "source": "law"}
    ).to_dict()
    given["attribute"][3]["source"] = "these records"
    release = shoal.protect(
        pa.table(people()), Schema.from_dict(given), "laplace", epsilon=1, columns=["civil"]
    )
    assert not release.statement.publishable


def test_parameters_from_the_records_are_withheld_and_the_bundle_can_still_be_read(tmp_path: Path) -> None:
    declared = schema({**TOP, "at": 1234, "source": "these records"}, {**BANDS, "source": "these records"})
    release = shoal.protect(pa.table(people()), declared, "laplace", epsilon=1)
    folder = release.save(tmp_path / "out")
    for name in ("statement.json", "method.toml", "log.toml"):
        assert "1234" not in (folder / name).read_text()
        assert "these records" in (folder / name).read_text() or name == "statement.json"
    bundle = shoal.Bundle.load(folder)
    assert bundle.schema["income"].hi is None
    with pytest.raises(
        OptionError, match="step top of 'income': its parameters were taken from other records"
    ):
        shoal.redo(folder, pa.table(people()), out=tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_release_whose_parameters_are_withheld_is_measured_all_the_same(tmp_path: Path) -> None:
    declared = schema({**BANDS, "source": "these records"})
    made = shoal.publish(
        pa.table(people()), declared, "k-anonymity", k=2, out=tmp_path / "out", evaluate=True
    )
    assert made.evaluation is not None
    assert made.evaluation.rows["original"] == 8


def test_the_recipe_repeats_the_steps(tmp_path: Path) -> None:
    shoal.protect(pa.table(people()), schema(*ALL), "laplace", epsilon=1).save(tmp_path / "out")
    bundle = shoal.Bundle.load(tmp_path / "out")
    assert bundle.recipe["schema"].steps == schema(*ALL).steps
    again = shoal.protect(pa.table(people()), **bundle.recipe)
    assert again.statement.to_dict() == bundle.statement.to_dict()
    # the schema of a release is that of its columns, and still reads a table as it was
    assert shoal.protect(pa.table(people()), bundle.schema, "laplace", epsilon=1).statement.publishable


def test_only_some_of_the_columns_are_released(tmp_path: Path) -> None:
    release = shoal.protect(pa.table(people()), schema(*ALL), "laplace", epsilon=1, columns=["income"])
    release.save(tmp_path / "out")
    assert [s.column for s in shoal.Bundle.load(tmp_path / "out").recipe["schema"].steps] == [
        "income",
        "income",
        "zip",
    ]


def test_measures_compare_with_the_table_after_its_steps() -> None:
    release = shoal.protect(pa.table(people()), schema(TOP), "k-anonymity", k=1)
    found = shoal.evaluate(pa.table(people()), release, columns=["income"])
    # nothing but the step changed anything
    assert found.utility["sse"] == 0


def test_rehearsal_tuning_risk_and_queries_come_after_the_steps() -> None:
    rehearsed = shoal.rehearse(schema(*ALL), "laplace", epsilon=1, people=50)
    assert rehearsed.release.statement.steps[:5] == tuple(
        f"{s.words[0].upper()}{s.words[1:]}." for s in schema(*ALL).steps if s.column != "zip"
    )
    on = shoal.rehearse(schema(TOP), "laplace", epsilon=1, on=pa.table(people()))
    assert on.release.domains["income"] == (0, 1000)
    tuned = shoal.tune(pa.table(people()), schema(*ALL), epsilon=2, methods=["laplace"], fast=True)
    assert [row.setting.method for row in tuned.rows] == ["laplace"]
    banded = shoal.risk(pa.table(people()), quasi_identifiers=["age"], schema=schema(BANDS))
    assert sorted(banded.fk.tolist()) == [2, 2, 2, 2, 4, 4, 4, 4]
    asked = query_table(pa.table(people()), schema(*ALL))
    assert asked.facts.attribute("age").ordered == ("(0,25]", "(25,65]", "(65,inf)")
    assert asked.positions["income"].max() == 1000
    with pytest.raises(OptionError, match="no column 'zip'"):
        asked.facts.attribute("zip")
    looked = query_table(pa.table(people()), schema({**TOP, "source": "these records"}))
    with pytest.raises(OptionError, match="column 'income' cannot be queried"):
        looked.facts.attribute("income")


@pytest.mark.parametrize("method", ["laplace", "tree-dp"])
def test_neighbours_and_one_transcript_give_one_bundle_after_steps(method: str, tmp_path: Path) -> None:
    """One record is replaced by one that every step treats differently; outputs follow the transcript alone."""
    usual, odd = people(), people()
    for name, value in {"age": 99, "income": 9999, "job": "judge", "civil": "divorced", "zip": 9}.items():
        odd[name] = [*odd[name][:-1], value]
    bundles, draws = [], None
    for which, table in enumerate((usual, odd)):
        csv.write_csv(pa.table(table), tmp_path / f"{which}.csv")
        with recording(1) if draws is None else replaying(draws) as found:
            release = shoal.protect(tmp_path / f"{which}.csv", schema(*ALL), method, epsilon="1")
            folder = release.save(tmp_path / f"out-{which}")
        draws = found.draws if draws is None else draws
        bundles.append({path.name: path.read_bytes() for path in sorted(folder.iterdir())})
    assert "log.toml" in bundles[0]
    assert [name for name in bundles[0] if bundles[0][name] != bundles[1][name]] == []


def test_the_preview_shows_the_steps_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    csv.write_csv(pa.table(people()), tmp_path / "people.csv")
    schema(*ALL).save(tmp_path / "people.toml")
    before = sorted(tmp_path.iterdir())
    arguments = ["schema", str(tmp_path / "people.csv"), "--schema", str(tmp_path / "people.toml")]
    assert run([*arguments, "--preview"]) == 0
    shown = capsys.readouterr()
    assert "2. values of column income above 1000 become 1000; source: law; 3 of 8 cells changed" in shown.out
    assert "now (0,25] 2, (25,65] 4, (65,inf) 2" in shown.out
    assert "do not publish" in shown.err
    assert sorted(tmp_path.iterdir()) == before
    assert run(arguments) == 2
    assert run(["schema", str(tmp_path / "people.csv"), "--preview"]) == 2


def test_a_bad_step_in_a_file_is_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    csv.write_csv(pa.table(people()), tmp_path / "people.csv")
    (tmp_path / "bad.toml").write_text(
        '[[attribute]]\nname = "age"\n\n[[step]]\nrecode = "age"\nbreaks = [5]\n'
    )
    command = [
        "protect",
        str(tmp_path / "people.csv"),
        "--schema",
        str(tmp_path / "bad.toml"),
        "--epsilon",
        "1",
    ]
    assert run([*command, "--out", str(tmp_path / "out")]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert "step recode of 'age': breaks must be at least two" in lines[0]
    assert not (tmp_path / "out").exists()


def reference(name: str) -> Any:
    return json.loads(offices_file("results_numeric.json").read_text())[name]


@pytest.fixture(scope="module")
def ages() -> np.ndarray:
    frame = pd.read_csv(data_file("adult.csv"), dtype=str, keep_default_na=False)
    return frame[(frame != "").all(axis=1)].head(5000).age.astype(float).to_numpy()


@pytest.mark.parametrize("classes", [1, 5])
@pytest.mark.parametrize(
    ("spacing", "name"), [("equal", "equidistant"), ("log", "logEqui"), ("quantiles", "equalAmount")]
)
def test_bands_taken_from_the_data_are_those_of_the_reference(
    ages: np.ndarray, classes: int, spacing: Any, name: str
) -> None:
    ends = breaks_of(ages, classes, spacing)
    step = Step.recode("age", breaks=list(ends), both_ends=classes > 1, source="these records")
    counts = np.bincount(step.places(ages), minlength=len(step.bands))
    assert dict(zip(step.bands, counts.tolist(), strict=True)) == reference("recode")[f"{name}_{classes}"]


def test_given_bands_are_those_of_the_reference(ages: np.ndarray) -> None:
    step = Step.recode("age", breaks=[0, 25, 35, 45, 55, 65, 100])
    found = dict(zip(step.bands, np.bincount(step.places(ages)).tolist(), strict=True))
    assert found == reference("recode")["explicit_0_25_35_45_55_65_100"]
    edge = Step.recode("age", breaks=[0, 10, 20], outside="missing")
    places = edge.places(np.array([0, 1, 10, 11, 20, 21, np.nan]))
    assert [edge.bands[p] if p >= 0 else None for p in places] == reference("recode")["edge"]


def test_top_and_bottom_coding_are_those_of_the_reference() -> None:
    frame = pd.read_csv(data_file("adult.csv"), dtype=str, keep_default_na=False)
    frame = frame[(frame != "").all(axis=1)].head(5000)
    hours = pa.table({"hours": frame.hours_per_week.astype(int).to_numpy()})
    attribute = Attribute("hours", lo=Fraction(0), hi=Fraction(99))
    wanted = reference("topbot")
    assert hours["hours"].to_numpy().mean() == pytest.approx(wanted["mean_before"], rel=1e-12)
    for step, mean in (
        (Step.top("hours", 60, put=62), wanted["mean_after_top"]),
        (Step.bottom("hours", 20, put=18), wanted["mean_after_bottom"]),
    ):
        found = with_steps(read(hours), Schema((attribute,)).with_steps(step))
        assert np.mean(found.series("hours").to_numpy()) == pytest.approx(mean, rel=1e-9), step
