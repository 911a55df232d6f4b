"""The log of a release: public, complete, and repeated on another table by `redo`."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv

import shoal
from shoal import InputError, OptionError, Schema
from shoal.cli import run
from shoal.ledger import open_ledger
from shoal.mechanisms.registry import done_in, load_log


def people(shift: int = 0) -> pa.Table:
    return pa.table(
        {
            "age": [(20 + 7 * place + shift) % 80 + 10 for place in range(30)],
            "town": ["A", "B", "C"] * 10,
            "name": [f"person {place}" for place in range(30)],
        }
    )


def schema(**more: Any) -> Schema:
    return Schema.from_dict(
        {
            "attribute": [
                {"name": "age", "type": "integer", "lo": 0, "hi": 120, "source": "questionnaire"},
                {"name": "town", "type": "text", "values": ["A", "B", "C"], "source": "law"},
            ],
            "step": [
                {"top": "age", "at": 60, "source": "law"},
                {"recode": "town", "mapping": {"C": "B"}, "source": "an earlier release"},
                {"drop": "name"},
            ],
            **more,
        }
    )


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("redo") / "first"
    shoal.publish(people(), schema(), "laplace", epsilon="0.7", out=folder)
    return folder


def test_every_step_stands_in_the_log_in_its_order_with_its_source(first: Path) -> None:
    done = done_in(first / "log.toml")
    assert [entry["do"] for entry in done] == [
        "read",
        "top",
        "recode",
        "drop",
        "choose",
        "protect",
        "shuffle",
    ]
    assert [entry.get("source") for entry in done[1:4]] == ["law", "an earlier release", None]
    assert done[1]["words"] == "values of column age above 60 become 60"
    assert "epsilon = 0.7" in done[5]["words"]


@pytest.mark.parametrize("method", ["k-anonymity", "mdav-dp"])
def test_releases_of_every_kind_have_one(method: str, tmp_path: Path) -> None:
    options = {"k": 3} if method == "k-anonymity" else {"k": 3, "epsilon": 1, "columns": ["age"]}
    folder = shoal.protect(people(), schema(), method, **options).save(tmp_path / "out")
    done = [entry["do"] for entry in done_in(folder / "log.toml")]
    assert ("verify" in done) is (method == "k-anonymity")


def test_the_log_repeats_the_release_with_its_sources(first: Path, tmp_path: Path) -> None:
    again = shoal.redo(first / "log.toml", people(shift=3), out=tmp_path / "second")
    for name in ("log.toml", "method.toml", "statement.json"):
        assert (tmp_path / "second" / name).read_bytes() == (first / name).read_bytes()
    assert again.release.statement.attributes["age"]["source"] == "questionnaire"
    assert again.release.statement.publishable
    assert max(again.release.data["age"].to_pylist()) <= 60
    assert set(again.release.data["town"].to_pylist()) <= {"A", "B"}
    assert shoal.redo(first, people(), out=tmp_path / "third").folder == tmp_path / "third"


def test_a_seed_is_not_repeated(tmp_path: Path) -> None:
    seeded = shoal.publish(people(), schema(), "laplace", epsilon=1, seed=7, out=tmp_path / "first")
    assert not seeded.release.statement.publishable
    log = (tmp_path / "first" / "log.toml").read_text()
    assert "a seed was set; it is not reused" in log
    assert "seed = 7" not in log
    assert "seed" not in load_log(tmp_path / "first")
    again = shoal.redo(tmp_path / "first", people(), out=tmp_path / "second")
    assert again.release.statement.publishable
    assert again.release.data != seeded.release.data


def test_a_choice_that_looked_at_records_stays_one(tmp_path: Path) -> None:
    shoal.publish(
        people(), schema(), "ranking-dp", epsilon=1, k=3, columns=["age"], tuned="k", out=tmp_path / "a"
    )
    again = shoal.redo(tmp_path / "a", people(shift=5), out=tmp_path / "b")
    assert not again.release.statement.publishable


def test_every_release_is_charged_by_itself(first: Path, tmp_path: Path) -> None:
    address = str(tmp_path / "budget.db")
    spent = []
    for place in range(2):
        again = shoal.redo(
            first, people(shift=place), out=tmp_path / str(place), ledger=address, dataset="next year"
        )
        assert again.charge is not None
        with contextlib.closing(open_ledger(address)) as ledger:
            spent.append(ledger.standing("next year").spent)
    assert spent == [Fraction(7, 10), Fraction(14, 10)]


def test_a_table_that_does_not_fit_is_refused_in_one_line(first: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column 'name'"):
        shoal.redo(first, people().drop_columns(["name"]), out=tmp_path / "out")
    with pytest.raises(InputError, match=r"^log .* does not exist"):
        shoal.redo(tmp_path, people(), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_range_that_was_taken_from_the_records_is_not_in_the_log(tmp_path: Path) -> None:
    entry = {"name": "age", "type": "integer", "lo": 3, "hi": 117}
    known = Schema.from_dict({"attribute": [{**entry, "source": {"domain": "these records"}}]})
    shoal.publish(people(), known, "laplace", epsilon=1, out=tmp_path / "a")
    assert "117" not in (tmp_path / "a" / "log.toml").read_text()
    with pytest.raises(OptionError, match="no public domain"):
        shoal.redo(tmp_path / "a", people(), out=tmp_path / "b")


def test_the_command_line(first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    csv.write_csv(people(), tmp_path / "next.csv")
    assert run(["redo", str(first), str(tmp_path / "next.csv"), "--out", str(tmp_path / "out")]) == 0
    assert "Verdict: publish" in capsys.readouterr().out
    assert (tmp_path / "out" / "log.toml").read_bytes() == (first / "log.toml").read_bytes()
    assert run(["redo", str(first), str(tmp_path / "next.csv"), "--dry-run"]) == 0
    assert "Nothing was written." in capsys.readouterr().out
    assert (
        run(["redo", str(first / "none.toml"), str(tmp_path / "next.csv"), "--out", str(tmp_path / "x")]) == 2
    )
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert run(["redo", str(first), str(tmp_path / "next.csv")]) == 2


def test_a_damaged_log_is_named(first: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in first.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "log.toml").write_text('method = "laplace"\n\n[[done]]\ndo = "read"\n')
    with pytest.raises(InputError, match="every \\[\\[done\\]\\] entry must have words"):
        shoal.Bundle.load(folder)
