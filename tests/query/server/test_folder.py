"""Errors in a served folder are reported at start, to the custodian, in one sentence."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import InputError, OptionError, ShoalError
from shoal.io.common import dumps
from shoal.ledger import Charge, LedgerError
from shoal.query.server.folder import DatasetSettings, load_folder, plain_name
from shoal.query.server.state import Config, HeadFile, check_heads, open_folder


def rewrite(place: Any, text: str, file: str = "dataset.toml") -> None:
    (place.folder / "survey" / file).write_text(text)


def test_settings_survive_their_file(place: Any) -> None:
    settings = DatasetSettings(
        ceiling=Fraction(5, 2),
        neighbours="add-remove",
        delta_ceiling=Fraction(1, 10**6),
        every_analyst=Fraction(1, 3**2 * 10),
        analysts={"ada": Fraction(1, 10)},
        description='A "survey", with\nlines',
        data="data.csv",
    )
    settings = DatasetSettings.from_dict(settings.to_dict() | {"every_analyst": "0.25"})
    rewrite(place, dumps(settings.to_dict()))
    assert load_folder(place.folder)["survey"].settings == settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "ceiling is missing"),
        ('ceiling = "x"', "ceiling: epsilon must be a decimal number"),
        ('ceiling = "0"', "ceiling: epsilon must be"),
        ("ceiling = 1.5\nceilling = 2", "unknown key 'ceilling'. Did you mean 'ceiling'"),
        ('ceiling = "1"\nneighbours = "none"', "neighbours 'none' is not one of"),
        ('ceiling = "1"\ndelta_ceiling = "1"', "delta_ceiling must be at least 0 and at most 0.001"),
        ('ceiling = "1"\ndelta_ceiling = "0.0011"', "delta_ceiling must be at least 0 and at most 0.001"),
        ('ceiling = "1"\nanalysts = 3', "analysts must be a table"),
        ('ceiling = "1"\n[analysts]\n"a b" = 1', "an analyst cannot be named 'a b'"),
        ('ceiling = "1"\n[analysts]\nada = "much"', "analysts.ada: epsilon must be"),
        ('ceiling = "1"\ndata = "gone.csv"', "there is no gone.csv"),
        ("ceiling = ", "is not valid TOML"),
    ],
)
def test_what_is_wrong_with_a_data_set_file_is_said(place: Any, text: str, said: str) -> None:
    rewrite(place, text)
    with pytest.raises(ShoalError) as refused:
        load_folder(place.folder)
    assert said in str(refused.value)


def test_missing_pieces_are_named(place: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        load_folder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="there is no data set in"):
        load_folder(tmp_path / "empty")
    (place.folder / "survey" / "schema.toml").unlink()
    with pytest.raises(InputError, match=r"schema\.toml"):
        load_folder(place.folder)


def test_a_folder_with_an_odd_name_is_refused(place: Any) -> None:
    (place.folder / "survey").rename(place.folder / "my survey")
    with pytest.raises(OptionError, match="cannot be named 'my survey'"):
        load_folder(place.folder)


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "a/b", "a b", "ü", "a\n", "x" * 65])
def test_names_are_plain(name: str) -> None:
    with pytest.raises(OptionError):
        plain_name(name, "it")


def test_records_that_do_not_fit_are_said_to_the_holder(place: Any) -> None:
    data = place.folder / "survey" / "data.csv"
    lines = data.read_text().splitlines()
    data.write_text("\n".join([lines[0].replace("income", "incomes"), *lines[1:]]))
    with pytest.raises(InputError, match="income"):
        load_folder(place.folder)


def test_terms_follow_the_file_and_the_budget_goes_on(place: Any, serve: Callable[..., Any]) -> None:
    with serve(place) as server:
        assert server.ask().status_code == 200
    rewrite(place, 'ceiling = "0.75"')
    with serve(place) as server:
        assert server.ask().status_code == 403
        assert server.raw("GET", "/v1/datasets/survey/budget").json()["remaining"] == "1/4"
    rewrite(place, 'ceiling = "1"')
    with serve(place) as server:
        assert server.ask().status_code == 200
    ledger = place.ledger
    kinds = [entry.kind for entry in ledger.entries("survey")]
    ledger.close()
    assert kinds == ["terms", "charge", "answer", "terms", "terms", "charge", "answer"]


def test_the_neighbour_relation_cannot_change(place: Any) -> None:
    open_folder(Config(place.folder))[0].close()
    rewrite(place, 'ceiling = "2"\nneighbours = "add-remove"')
    with pytest.raises(OptionError, match="cannot be changed to 'add-remove'"):
        open_folder(Config(place.folder))


def test_heads_noted_elsewhere_find_an_old_backup_out(
    place: Any, serve: Callable[..., Any], tmp_path: Path
) -> None:
    heads, path = tmp_path / "heads.txt", place.folder / "ledger.sqlite"
    with serve(place, heads=heads) as server:
        assert server.ask().status_code == 200
    backup = tmp_path / "backup.sqlite"
    with (
        contextlib.closing(sqlite3.connect(path)) as live,
        contextlib.closing(sqlite3.connect(backup)) as copy,
    ):
        live.backup(copy)
    with serve(place, heads=heads) as server:
        receipt = server.ask().json()["receipt"]
    assert heads.read_text().startswith(f"{receipt['head']} survey 5\nclosed ")
    assert (place.folder / "ledger.heads").read_text() == heads.read_text()
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    shutil.copy(backup, path)
    # by default heads are noted in the folder; those elsewhere are for a folder that is restored as a whole
    for given in (None, heads):
        with pytest.raises(LedgerError, match="an old backup was restored"):
            open_folder(Config(place.folder, heads=given))
    (place.folder / "ledger.heads").unlink()
    with pytest.raises(LedgerError, match="an old backup was restored"):
        open_folder(Config(place.folder, heads=heads))
    # without any heads, nothing tells
    open_folder(Config(place.folder))[0].close()


def test_heads_of_a_ledger_that_only_grew_are_accepted(place: Any, tmp_path: Path) -> None:
    ledger, _ = open_folder(Config(place.folder))
    heads = HeadFile(tmp_path / "heads.txt")
    check_heads([heads], ledger)  # nothing noted yet
    heads.note(ledger)
    ledger.charge(Charge("survey", "ada", "{}", Fraction(1, 2)))
    check_heads([heads], ledger)
    ledger.close()


def test_several_servers_note_the_heads_of_one_ledger_at_once(place: Any, tmp_path: Path) -> None:
    ledger, _ = open_folder(Config(place.folder))
    path = tmp_path / "heads" / "heads.txt"
    path.parent.mkdir()
    with ThreadPoolExecutor(8) as pool:
        # a file of its own each time, as each server has
        list(pool.map(lambda _: HeadFile(path).note(ledger), range(200)))
    assert HeadFile(path).heads() == [ledger.standing("survey").head]
    assert [entry.name for entry in path.parent.iterdir()] == ["heads.txt"]
    assert path.stat().st_mode & 0o777 == 0o600
    ledger.close()
