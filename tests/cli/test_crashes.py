"""Commands that once ended in a traceback, each as a custodian would type it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.cli import run

ATTRIBUTES = """
[[attribute]]
name = "age"
type = "integer"
lo = 0
hi = 120
source = "questionnaire"
role = "quasi-identifier"

[[attribute]]
name = "town"
kind = "nominal"
type = "text"
values = ["A", "B", "C"]
source = "questionnaire"
role = "quasi-identifier"

[[attribute]]
name = "income"
type = "integer"
lo = 0
hi = 999
source = "questionnaire"
role = "confidential"
"""
BORN = """
[[attribute]]
name = "born"
kind = "date"
type = "date"
format = "DD.MM.YYYY"
lo = "1940-01-01"
hi = "1999-12-31"
source = "questionnaire"
"""
RECODED = """
[[step]]
recode = "age"
breaks = [0, 35, 120]
source = "questionnaire"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    people = pd.DataFrame(
        {
            "age": rng.choice([20, 30, 40, 50], 60),
            "town": rng.choice(["A", "B", "C"], 60),
            "income": rng.integers(0, 1000, 60),
        }
    )
    people.to_csv("people.csv", index=False)
    people["born"] = [f"{day:02}.{month:02}.1970" for day, month in rng.integers(1, 13, (60, 2))]
    people.to_csv("born.csv", index=False)
    Path("plain.toml").write_text(ATTRIBUTES)
    Path("born.toml").write_text(ATTRIBUTES + BORN)
    Path("recoded.toml").write_text(ATTRIBUTES + RECODED)
    return tmp_path


def test_the_internal_report_of_suppression_without_strata() -> None:
    suppress = ["--method", "suppress", "--k", "3", "--out", "out", "--internal", "in.html"]
    assert run(["protect", "people.csv", "--schema", "plain.toml", *suppress]) == 0
    assert "all rows" in Path("in.html").read_text("utf-8")


@pytest.mark.parametrize("method", [["pairs-dp"], ["ranking-dp", "--k", "5"]], ids=lambda words: words[0])
def test_a_dry_run_with_a_date_format_in_the_schema(
    method: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["--schema", "born.toml", "--epsilon", "1", "--out", "out", "--dry-run"]
    assert run(["protect", "born.csv", *common, "--method", *method]) == 0
    assert "Nothing was written" in capsys.readouterr().out
    assert not Path("out").exists()


@pytest.mark.parametrize("named", ["out", "out/data.csv"])
def test_a_recoded_release_is_checked_with_the_schema_of_its_original(
    named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    grouped = ["--method", "k-anonymity", "--k", "3", "--out", "out"]
    assert run(["protect", "people.csv", "--schema", "recoded.toml", *grouped]) == 0
    capsys.readouterr()
    assert run(["check", named, "--schema", "recoded.toml", "--k", "3"]) == 0
    assert "l of income" in capsys.readouterr().out


def test_noise_to_expect_of_columns_of_names() -> None:
    domains = {"age": (0, 120), "town": ["A", "B", "C"]}
    schema = shoal.Schema.from_dict(
        {
            "attribute": [
                {"name": "age", "lo": 0, "hi": 120},
                {"name": "town", "kind": "nominal", "values": ["A", "B", "C"]},
            ]
        }
    )
    for method, more in (("pairs-dp", {}), ("laplace", {}), ("mdav-dp", {"k": 5})):
        found = shoal.expected_noise(method=method, epsilon=1, n=100, domains=domains, **more)
        assert [one.column for one in found] == ["age", "town"]
        assert found == shoal.expected_noise(schema, method, 1, n=100, **more)


def test_a_schema_is_not_settled_where_a_release_refuses_values_out_of_range(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["schema", "people.csv", "--schema", "plain.toml", "--check"]) == 0
    Path("narrow.toml").write_text(ATTRIBUTES.replace("hi = 999", "hi = 500"))
    capsys.readouterr()
    assert run(["protect", "people.csv", "--schema", "narrow.toml", "--epsilon", "1", "--out", "out"]) == 2
    refused = capsys.readouterr().err.removeprefix("shoal: ")
    assert "lie outside 0:500" in refused
    assert run(["schema", "people.csv", "--schema", "narrow.toml", "--check"]) == 1
    assert capsys.readouterr().out == refused
