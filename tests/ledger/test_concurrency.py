"""Concurrent requests cannot overdraw the budget, and a killed process loses no charge."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from shoal.ledger import (
    Charge,
    Deposit,
    GroupCommit,
    Ledger,
    OverdrawnError,
    Register,
    open_ledger,
    verify,
)
from shoal.ledger.store import write_ahead

SPENDER = Path(__file__).with_name("spender.py")
UNIT = Fraction(1, 1000)
Spend = Callable[..., Charge]


def spender(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SPENDER), *map(str, words)], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_clients_of_several_processes_spend_exactly_the_ceiling(address: str, processes: int) -> None:
    """Processes of sixteen threads, each thread with a ledger of its own, ask for 1 to 3 units until all are gone."""
    units = 1000 if processes > 2 else 250
    ledger = open_ledger(address)
    ledger.register(Register("people", "replace-one", units * UNIT))
    started = [spender(address, 16, 2 * units // processes, f"p{i}") for i in range(processes)]
    printed = [process.communicate()[0] for process in started]
    assert [process.returncode for process in started] == [0] * processes
    assert sum(map(int, printed)) == units
    assert verify(ledger)[0].standing.spent == units * UNIT
    with pytest.raises(OverdrawnError, match="0 remains"):
        ledger.charge(Charge("people", "late", "{}", UNIT))
    ledger.close()


def test_without_the_lock_the_database_refuses_what_collides(
    address: str, ledger: Ledger, spend: Spend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that decide at the same time, as if there were no lock: one of them fails, none overdraws."""
    other = open_ledger(address)

    @contextmanager
    def unlocked(datasets: object):  # type: ignore[no-untyped-def]
        with other._store.reading() as connection:
            yield connection

    monkeypatch.setattr(other._store, "writing", unlocked)
    original = other._store.append

    def late(connection: object, entries: object) -> None:
        # the other side commits between decision and writing
        assert ledger.charge(spend("0.75")).added == Fraction(3, 4)
        original(connection, entries)  # type: ignore[arg-type]

    monkeypatch.setattr(other._store, "append", late)
    with pytest.raises(DBAPIError):
        other.charge(spend("0.75", analyst="ben"))
    assert verify(ledger)[0].standing.spent == Fraction(3, 4)
    # and the loser is not stuck with what it believed
    assert other.standing("people").spent == Fraction(3, 4)
    other.close()


def test_a_killed_process_loses_no_charge(address: str) -> None:
    ledger = open_ledger(address)
    ledger.register(Register("people", "replace-one", None))
    process = spender(address, 1, 0, "killed")
    assert process.stdout is not None
    said = [process.stdout.readline().split() for _ in range(23)]
    process.kill()
    said += [line.split() for line in process.stdout.read().splitlines() if len(line.split()) == 3]
    process.wait()
    entries = {entry.hash: entry for entry in ledger.entries("people")}
    for what, charge, head in said:
        entry = entries[head]
        assert (entry.number if what == "charged" else entry.refers) == int(charge)
    (finding,) = verify(ledger, [head for *_, head in said])
    charges = [entry for entry in entries.values() if entry.kind == "charge"]
    assert finding.standing.spent == len(charges) * UNIT
    # at most one was cut off between charge and answer
    assert finding.standing.unanswered <= 1
    ledger.close()


def test_group_commit_writes_what_comes_together_in_one_transaction(
    ledger: Ledger, spend: Spend, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    entered, leave = threading.Event(), threading.Event()
    original = ledger.commit

    def watched(operations: list[Charge]) -> object:
        sizes.append(len(operations))
        entered.set()
        assert leave.wait(300)
        return original(operations)

    monkeypatch.setattr(ledger, "commit", watched)
    rounds: list[int] = []
    group = GroupCommit(ledger, after=lambda: rounds.append(len(results)))
    results: list[object] = []
    group.submit(spend("0.1"), results.append)
    assert entered.wait(300)
    for _ in range(20):
        group.submit(spend("0.1"), results.append)
    leave.set()
    group.close()
    assert sizes == [1, 20]
    assert rounds == [1, 21]
    assert sum(isinstance(result, OverdrawnError) for result in results) == 11
    assert ledger.standing("people").spent == 1


def test_group_commit_from_many_threads(ledger: Ledger, spend: Spend) -> None:
    ledger.register(Register("people", "replace-one", 100 * UNIT))
    group = GroupCommit(ledger)
    outcomes: list[bool] = []

    def client(name: str) -> None:
        for number in range(20):
            try:
                receipt = group.call(Charge("people", name, "{}", UNIT, key=f"{number}"))
            except OverdrawnError:
                outcomes.append(False)
                continue
            stored = group.call(Deposit("people", receipt.charge, name, f'"{name}"'))
            assert stored.answer == f'"{name}"'
            outcomes.append(True)

    threads = [threading.Thread(target=client, args=(f"t{i}",)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    group.close()
    assert outcomes.count(True) == 100
    assert len(outcomes) == 320
    standing = verify(ledger)[0].standing
    assert (standing.spent, standing.unanswered) == (100 * UNIT, 0)


def test_a_transaction_that_fails_is_heard_of_and_forgotten(
    ledger: Ledger, spend: Spend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(connection: object, entries: object) -> None:
        raise OSError("no space left on device")

    group = GroupCommit(ledger)
    with monkeypatch.context() as patched:
        patched.setattr(ledger._store, "append", full)
        with pytest.raises(OSError, match="no space left"):
            group.call(spend("0.9", key="k"))
    assert ledger.standing("people").spent == 0
    assert not group.call(spend("0.9", key="k")).repeated
    group.close()


class Refusing:
    """A cursor whose database refuses a number of times to change its journal, as SQLite does when two ask at once."""

    def __init__(self, times: int, code: int) -> None:
        self.times, self.code = times, code

    def execute(self, statement: str) -> Refusing:
        if self.times > 0:
            self.times -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = self.code
            raise error
        return self

    def fetchone(self) -> tuple[str]:
        return ("wal",)


def test_two_that_open_a_new_ledger_at_once_both_get_it() -> None:
    assert write_ahead(Refusing(3, sqlite3.SQLITE_BUSY)) == "wal"
    with pytest.raises(sqlite3.OperationalError):
        write_ahead(Refusing(1, sqlite3.SQLITE_READONLY))
