"""Schema drafts: they protect by default, and `shoal schema --check` lists what they lack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.cli import run
from shoal.columns.attribute import DROPPED_ROLES
from shoal.columns.draft import common_range, role_of
from shoal.columns.schema import unsettled
from shoal.io import read

N = 60


def draft(**columns: Any) -> shoal.Schema:
    return shoal.Schema.draft(pa.table(columns))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "persnum",
            "badge",
            "person_id",
            "caseid",
            "case no",
            "hhid",
            "serial",
            "IBAN",
            "email",
            "Nachname",
            "respondentId",
        ),
        *("staff_number", "badge no", "patient", "UserID", "PersNr", "policy number", "ssn"),
    ],
)
def test_names_of_identifiers_are_drafted_so(name: str) -> None:
    assert role_of(name, "nominal") == role_of(name, "numeric") == "identifier"


@pytest.mark.parametrize(
    "name", ["wght", "weight", "pweight", "hh_weight", "fnlwgt", "wt", "Gewicht", "WGT2"]
)
def test_names_of_weights_are_drafted_so(name: str) -> None:
    assert role_of(name, "numeric") == "weight"


@pytest.mark.parametrize(
    "name", ["weight_kg", "birth weight", "income", "number of rooms", "code", "occupation", "grade"]
)
def test_other_names_stay_releasable(name: str) -> None:
    assert role_of(name, "numeric") not in DROPPED_ROLES


def test_an_identifier_that_repeats_is_the_unit() -> None:
    made = draft(badge=[f"B{i // 3:04d}" for i in range(N)], pay=list(range(N)))
    assert (made["badge"].role, made["badge"].max_rows) == ("unit", 3)


def test_what_only_the_cells_show_is_drafted_so_too() -> None:
    made = draft(
        answer=[f"said that it was number {i} of them" for i in range(N)],
        code=[f"K-{i // 2:05d}" for i in range(N)],
        counter=list(range(1, N + 1)),
        own=[f"{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(N)],
        town=["A", "B", "C"] * 20,
        pay=[(i * 7919) % 100_003 for i in range(N)],
    )
    roles = {a.name: a.role for a in made.attributes}
    assert roles == {
        "answer": "identifier",
        "code": "unit",
        "counter": "identifier",
        "own": "identifier",
        "town": "other",
        "pay": "confidential",
    }


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("age", (0, 120)),
        ("hours per week", (0, 168)),
        ("weekly_hours", (0, 168)),
        ("percent", (0, 100)),
        ("share (%)", (0, 100)),
        ("month", (1, 12)),
        ("income", None),
        ("wage", None),
        ("agency", None),
    ],
)
def test_common_knowledge_is_offered_by_name_with_that_source(
    name: str, ends: tuple[int, int] | None
) -> None:
    assert common_range(name) == ends
    attribute = draft(**{name: [1, 2, 3, 2]})[name]
    assert ((attribute.lo, attribute.hi) == ends) if ends else attribute.lo is None
    if ends:
        assert attribute.source["domain"] == "common knowledge"
        assert attribute.source["kind"] == "these records"


@given(st.text(max_size=12))
def test_any_name_has_a_role(name: str) -> None:
    assert role_of(name, "numeric") in ("identifier", "weight", "quasi-identifier", "confidential")


def test_what_is_unsettled_is_listed() -> None:
    table = read(
        pa.table({"age": [30, None, 41], "town": ["A", "B", "=1+1"], "id": [1, 1, 2], "extra": [1, 2, 3]}),
        strict=False,
    )
    schema = shoal.Schema.from_dict(
        {
            "attribute": [
                {"name": "age", "lo": 0, "hi": 120, "source": {"domain": "these records"}},
                {"name": "town", "kind": "nominal"},
                {"name": "id", "role": "identifier"},
                {"name": "gone", "lo": 0, "hi": 1},
            ]
        }
    )
    assert tuple(map(str, unsettled(schema, table))) == (
        "column 'age': domain is known from these records only: verify it, and declare a source other "
        "than 'these records'.",
        "column 'age' has missing values, the first in row 2: declare how to handle them with missing.",
        "column 'town' has no list of values: declare values or a taxonomy.",
        "column 'town' holds '=1+1', which a spreadsheet would run as a formula: correct it, or write the release "
        "with spreadsheet_safe=True.",
        "column 'gone' is not in the table: correct its name, or remove the entry.",
        "column 'extra' is not described: add an [[attribute]] entry to release it; otherwise it is not "
        "released.",
        "column 'id' has repeated values, so one person may own several rows: give it the role unit and max_rows; "
        "otherwise the guarantee is about rows, not about persons.",
    )


def test_check_has_a_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ages.csv").write_text("age\n30\n41\n52\n")
    assert run(["schema", "ages.csv", "--check"]) == 1
    assert "column 'age': kind, type and step are known from these records only" in capsys.readouterr().out
    Path("ages.toml").write_text(
        '[[attribute]]\nname = "age"\ntype = "integer"\nlo = 0\nhi = 120\nsource = "law"\n'
    )
    assert run(["schema", "ages.csv", "--schema", "ages.toml", "--check"]) == 0
    assert capsys.readouterr().err == "Nothing is left to decide.\n"
    assert run(["schema", "ages.csv", "--schema", "ages.toml"]) == 2


AGE = {"age": (0, 120)}


@pytest.mark.parametrize(
    ("table", "settings", "says"),
    [
        ({"age": [30]}, {}, "the table has one row: only noise protects the people in it"),
        ({"age": [30, 31, 32]}, {}, "the table has 3 rows"),
        ({"age": [30] * 20}, {"epsilon": 1000}, "epsilon 1000 guarantees next to nothing"),
        (
            {f"c{i}": [1] * 20 for i in range(300)},
            {"domains": {f"c{i}": (0, 9) for i in range(300)}},
            "epsilon 1 is shared by 300 columns, about 0.0033 each: noise will dominate most of the information",
        ),
    ],
)
@pytest.mark.parametrize("method", ["laplace", "tree-dp"])
def test_a_careful_colleague_speaks_up(
    table: dict[str, list[int]], settings: dict[str, Any], says: str, method: str
) -> None:
    release = shoal.protect(pa.table(table), **{"method": method, "epsilon": 1, "domains": AGE, **settings})
    assert any(note.startswith(says) for note in release.notes), release.notes


def test_nothing_is_said_about_an_ordinary_release() -> None:
    release = shoal.protect(pa.table({"age": [30] * 20}), method="laplace", epsilon=1, domains=AGE)
    assert release.notes == ()


def test_a_value_that_is_not_among_the_declared_ones_is_called_that() -> None:
    table = pa.table({"job": ["clerk", "clrk"]})
    with pytest.raises(shoal.InputError) as refused:
        shoal.protect(table, method="laplace", epsilon=1, domains={"job": ["clerk", "farmer"]})
    assert str(refused.value) == (
        "column 'job', row 2: 'clrk' is not among the declared values. Did you mean 'clerk'? Correct it, or add it "
        "to values "
        "in the schema."
    )
