"""A ledger that was tampered with, truncated or restored from a backup is detected."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from shoal.ledger import (
    Charge,
    Deposit,
    Ledger,
    LedgerEntry,
    LedgerError,
    Register,
    open_ledger,
    verify,
)
from shoal.ledger.account import fraction_of, fraction_text, seal
from shoal.ledger.store import MIGRATIONS, migrate

Spend = Callable[..., Charge]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def filled(path: Path, spend: Spend) -> Iterator[Ledger]:
    """Terms, three charges, two answers."""
    ledger = open_ledger(path)
    ledger.register(Register("people", "replace-one", Fraction(1)))
    for number, key in ((2, "a"), (4, "b")):
        assert ledger.charge(spend("0.25", key=key)).charge == number
        ledger.deposit(Deposit("people", number, "ada", f'{{"value":{number}}}'))
    ledger.charge(spend("0.125", person=("id", "7")))
    yield ledger
    ledger.close()


def tamper(path: Path, *statements: str) -> None:
    """Change the file behind the ledger's back, and leave no other trace."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, made in triggers:
            connection.execute(made)


def test_a_whole_ledger_is_accepted(filled: Ledger) -> None:
    (finding,) = verify(filled)
    assert finding.standing.spent == Fraction(5, 8)
    assert finding.standing.number == 6
    assert finding.standing.unanswered == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entry SET epsilon = '1/8', added = '1/8', added_analyst = '1/8' WHERE number = 2",
        "UPDATE ledger_entry SET analyst = 'ben' WHERE number = 2",
        "UPDATE ledger_entry SET content = '{\"value\":9}' WHERE number = 3",
        'UPDATE ledger_entry SET person = \'["id", "8"]\' WHERE number = 6',
        "UPDATE ledger_entry SET content = replace(content, '1/1', '9/1') WHERE number = 1",
        "UPDATE ledger_entry SET key = 'z' WHERE number = 4",
        "UPDATE ledger_entry SET at = '2020-01-01T00:00:00.000+00:00' WHERE number = 2",
        "UPDATE ledger_entry SET epsilon = 'x' WHERE number = 2",
        "DELETE FROM ledger_entry WHERE number = 3",
        "DELETE FROM ledger_entry WHERE number = 1",
        "UPDATE ledger_entry SET number = number + 10 WHERE number = 6",
    ],
)
def test_what_was_altered_is_found(filled: Ledger, path: Path, statement: str) -> None:
    filled.close()
    tamper(path, statement)
    with pytest.raises(LedgerError, match="the ledger is broken: entry"):
        open_ledger(path)
    with pytest.raises(LedgerError, match="the ledger is broken: entry"):
        verify(open_ledger(path, check=False))


def rewrite(path: Path, change: Callable[[list[LedgerEntry]], list[LedgerEntry]]) -> None:
    """What somebody with the file and the code could do: change entries and make all hashes anew."""
    ledger = open_ledger(path)
    entries = change(list(ledger.entries("people")))
    ledger.close()
    tamper(path, "DELETE FROM ledger_entry")
    ledger = open_ledger(path)
    previous = "0" * 64
    made = []
    for number, entry in enumerate(entries, start=1):
        entry = dataclasses.replace(entry, number=number, previous=previous)
        values = [getattr(entry, field.name) for field in dataclasses.fields(entry)][:-1]
        made.append(dataclasses.replace(entry, hash=seal(values)))
        previous = made[-1].hash
    with ledger._store.writing(["people"]) as connection:
        ledger._store.append(connection, made)
    ledger.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"added": Fraction(0), "added_analyst": Fraction(0)}, "adds an amount that differs from its cost"),
        ({"epsilon": Fraction(-1)}, "reduces the amount spent"),
        ({"epsilon": Fraction(9), "added": Fraction(9), "added_analyst": Fraction(9)}, "exceeds a ceiling"),
        ({"delta": Fraction(1)}, "exceeds a ceiling"),
        ({"family": "p", "added": Fraction(1)}, "adds more than its cost"),
        ({"kind": "answer", "refers": 77}, "answers a charge that does not exist"),
    ],
)
def test_amounts_are_checked_even_when_all_hashes_are_new(
    filled: Ledger, path: Path, change: dict[str, object], said: str
) -> None:
    filled.close()
    rewrite(path, lambda entries: [*entries[:1], dataclasses.replace(entries[1], **change), *entries[2:]])  # type: ignore[arg-type]
    with pytest.raises(LedgerError, match=said):
        open_ledger(path)


def test_a_new_neighbour_relation_is_found(filled: Ledger, path: Path) -> None:
    filled.close()

    def change(entries: list[LedgerEntry]) -> list[LedgerEntry]:
        terms = json.loads(entries[0].content) | {"neighbours": "add-remove"}
        return [*entries, dataclasses.replace(entries[0], content=json.dumps(terms))]

    rewrite(path, change)
    with pytest.raises(LedgerError, match="changes the adjacency"):
        open_ledger(path)


def test_a_cleverly_shortened_ledger_is_found_by_a_later_head(filled: Ledger, path: Path) -> None:
    head = filled.standing("people").head
    filled.close()
    rewrite(path, lambda entries: entries[:3])
    ledger = open_ledger(path)
    assert verify(ledger)[0].standing.spent == Fraction(1, 4)
    with pytest.raises(LedgerError, match=f"{head} is not in this ledger"):
        verify(ledger, [head])
    ledger.close()


def test_a_restored_backup_is_found_by_a_later_head(
    filled: Ledger, path: Path, tmp_path: Path, spend: Spend
) -> None:
    old_head = filled.standing("people").head
    backup = tmp_path / "backup.sqlite"
    with (
        contextlib.closing(sqlite3.connect(path)) as live,
        contextlib.closing(sqlite3.connect(backup)) as copy,
    ):
        live.backup(copy)
    receipt = filled.charge(spend("0.25", key="later"))
    new_head = receipt.head
    assert verify(filled, [old_head, new_head])[0].heads == (old_head, new_head)
    filled.close()
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    shutil.copy(backup, path)
    restored = open_ledger(path)
    assert verify(restored, [old_head])[0].heads == (old_head,)
    with pytest.raises(LedgerError, match="an old backup was restored"):
        verify(restored, [old_head, new_head])
    restored.close()


def test_a_backup_restored_under_a_running_ledger_is_found(filled: Ledger, path: Path, spend: Spend) -> None:
    tamper(path, "DELETE FROM ledger_entry WHERE number > 3")
    for _ in range(2):
        with pytest.raises(LedgerError, match="has lost entries of data set"):
            filled.charge(spend("0.25"))
        with pytest.raises(LedgerError, match="has lost entries of data set"):
            filled.standing("people")
    filled_again = open_ledger(path)
    assert filled_again.standing("people").number == 3
    filled_again.close()


def test_the_database_itself_refuses_changes(ledger: Ledger, address: str, spend: Spend) -> None:
    ledger.charge(spend("0.5"))
    for statement in ("UPDATE ledger_entry SET epsilon = '0/1'", "DELETE FROM ledger_entry"):
        if address.startswith("postgresql"):
            with psycopg.connect(address) as connection, pytest.raises(psycopg.Error, match="append-only"):
                connection.execute(statement)
        else:
            with sqlite3.connect(address) as connection, pytest.raises(sqlite3.Error, match="append-only"):
                connection.execute(statement)
    assert ledger.standing("people").spent == Fraction(1, 2)


def test_the_file_is_for_its_owner_only(filled: Ledger, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_commits_reach_the_disk(ledger: Ledger, address: str) -> None:
    """The settings under which a commit survives a power cut are those of every connection."""
    with ledger._store.reading() as connection:
        if address.startswith("postgresql"):
            assert connection.scalar(sa.text("SHOW synchronous_commit")) == "on"
        else:
            assert connection.scalar(sa.text("PRAGMA journal_mode")) == "wal"
            assert connection.scalar(sa.text("PRAGMA synchronous")) == 2


@pytest.mark.system
def test_a_session_that_would_not_wait_for_the_disk_is_put_right(postgres: str) -> None:
    lazy = f"{postgres}&options=-csynchronous_commit%3Doff"
    ledger = open_ledger(lazy)
    with ledger._store.reading() as connection:
        assert connection.scalar(sa.text("SHOW synchronous_commit")) == "on"
    ledger.close()


def test_a_ledger_of_a_newer_version_is_not_touched(filled: Ledger, path: Path) -> None:
    filled.close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO ledger_version VALUES (99)")
    with pytest.raises(
        LedgerError,
        match=f"has layout 99, but this version of Shoal supports layouts up to {len(MIGRATIONS)}",
    ):
        open_ledger(path)


def test_an_older_layout_is_brought_up_to_date_once(ledger: Ledger) -> None:
    runs = []

    def second(connection: sa.Connection) -> None:
        runs.append(connection.dialect.name)
        connection.exec_driver_sql("CREATE TABLE ledger_note (text TEXT)")

    for _ in range(2):
        with ledger._store.writing(()) as connection:
            migrate(connection, [*MIGRATIONS, second])
    assert len(runs) == 1
    with ledger._store.reading() as connection:
        assert connection.scalar(sa.text("SELECT max(version) FROM ledger_version")) == len(MIGRATIONS) + 1


def test_a_migration_that_fails_leaves_the_old_layout(ledger: Ledger) -> None:
    def broken(connection: sa.Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE ledger_note (text TEXT)")
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError), ledger._store.writing(()) as connection:
        migrate(connection, [*MIGRATIONS, broken])
    with ledger._store.reading() as connection:
        assert connection.scalar(sa.text("SELECT max(version) FROM ledger_version")) == len(MIGRATIONS)
        assert "ledger_note" not in sa.inspect(connection).get_table_names()


@pytest.mark.parametrize("value", [Fraction(0), Fraction(1, 3), Fraction(10**40, 7), Fraction(5)])
def test_fractions_come_back_exactly(value: Fraction) -> None:
    assert fraction_of(fraction_text(value)) == value


def test_every_field_is_under_the_seal(filled: Ledger) -> None:
    entry = list(filled.entries("people"))[1]
    assert entry.sealed() == entry.hash
    other = {"number": 9, "refers": 1, "person": ("id", "1"), "epsilon": Fraction(1, 3), "kind": "release"}
    for field in dataclasses.fields(entry):
        if field.name != "hash":
            old = getattr(entry, field.name)
            new = other.get(field.name, old + "x" if isinstance(old, str) else Fraction(1, 3))
            changed = dataclasses.replace(entry, **{field.name: new})
            assert changed.sealed() != entry.hash, field.name
