"""A ledger file that was replaced, emptied or damaged is detected and reported."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from shoal.cli import run
from shoal.ledger import (
    Charge,
    Deposit,
    LedgerError,
    QuotaError,
    Register,
    examine,
    open_ledger,
    verify,
)
from shoal.ledger.account import rounded_up
from shoal.ledger.store import digest_of

Spend = Callable[..., Charge]


@pytest.fixture
def path(tmp_path: Path, spend: Spend) -> Path:
    """A closed ledger with enough entries for several pages."""
    made = tmp_path / "ledger.sqlite"
    ledger = open_ledger(made)
    ledger.register(Register("people", "replace-one", Fraction(1)))
    for number in range(25):
        receipt = ledger.charge(spend("0.01", key=f"key-{number}"))
        ledger.deposit(Deposit("people", receipt.charge, "ada", '{"value":' + "1" * 150 + "}"))
    ledger.close()
    return made


def heads_of(path: Path) -> list[str]:
    ledger = open_ledger(path)
    heads = [ledger.standing(name).head for name in ledger.datasets()]
    ledger.close()
    return heads


@pytest.mark.parametrize("how", ["unlinked", "replaced", "log unlinked"])
def test_a_file_that_is_taken_away_under_a_running_ledger_is_noticed(
    path: Path, spend: Spend, how: str, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.sqlite"
    shutil.copy(path, backup)
    ledger = open_ledger(path)
    ledger.charge(spend("0.01"))
    if how == "unlinked":
        path.unlink()
    elif how == "replaced":
        os.replace(backup, path)
    else:
        Path(f"{path}-wal").unlink()
    for _ in range(2):
        with pytest.raises(LedgerError, match="was replaced or removed while it was open"):
            ledger.charge(spend("0.01"))
        with pytest.raises(LedgerError, match="was replaced or removed while it was open"):
            ledger.standing("people")
    with pytest.raises(LedgerError):
        ledger.alive()
    ledger.close()


def test_a_file_that_is_replaced_while_a_charge_is_written_grants_nothing(
    path: Path, spend: Spend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(path)
    backup = tmp_path / "backup.sqlite"
    shutil.copy(path, backup)
    original = ledger.store.append

    def late(connection: object, entries: object) -> None:
        original(connection, entries)  # type: ignore[arg-type]
        os.replace(backup, path)

    monkeypatch.setattr(ledger.store, "append", late)
    with pytest.raises(LedgerError, match="was replaced"):
        ledger.charge(spend("0.01"))
    ledger.close()


@pytest.mark.parametrize("left", [0, 1000, -1])
def test_a_truncated_write_ahead_log_grants_nothing(path: Path, spend: Spend, left: int) -> None:
    ledger = open_ledger(path)
    for _ in range(3):
        ledger.charge(spend("0.01"))
    log = Path(f"{path}-wal")
    os.truncate(log, left if left >= 0 else log.stat().st_size - 1)
    for _ in range(2):
        with pytest.raises(LedgerError, match="was truncated while it was open"):
            ledger.charge(spend("0.01"))
        with pytest.raises(LedgerError, match="was truncated"):
            ledger.standing("people")
    ledger.close()


def test_a_log_that_begins_anew_is_not_suspected(path: Path, spend: Spend) -> None:
    ledger = open_ledger(path)
    for number in range(40):
        ledger.charge(spend("0.001"))
        if number % 10 == 0:
            with contextlib.closing(sqlite3.connect(path)) as other:
                other.execute("PRAGMA wal_checkpoint(RESTART)")
    assert verify(ledger)[0].standing.number == 91
    ledger.close()


def test_a_ledger_that_only_grows_is_not_suspected(path: Path, spend: Spend) -> None:
    one, two = open_ledger(path), open_ledger(path)
    for number in range(20):
        (one, two)[number % 2].charge(spend("0.01"))
    two.close()
    one.charge(spend("0.01"))
    assert verify(one)[0].standing.number == 72
    one.close()


def test_an_emptied_ledger_does_not_verify(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("DELETE FROM ledger_entry")
        for _, made in triggers:
            connection.execute(made)
    assert run(["ledger", "verify", str(path)]) == 2
    assert "data set 'people' has lost all of its entries" in capsys.readouterr().err
    fresh = path.with_name("fresh.sqlite")
    open_ledger(fresh).close()
    assert run(["ledger", "verify", str(fresh)]) == 2
    assert "the ledger has no entries" in capsys.readouterr().err
    with pytest.raises(LedgerError, match="has no entries"):
        verify(open_ledger(fresh))


def flipped(path: Path, to: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    to.write_bytes(content)


def entries_of(path: Path) -> list[object]:
    ledger = open_ledger(path, create=False)
    try:
        return [*ledger.entries("people"), ledger.standing("people")]
    finally:
        ledger.close()


def flips_found(path: Path, tmp_path: Path, count: int, seed: int) -> int:
    """Flip single bits; all must be found with the hash of the file, and those that are not found without it must
    have changed nothing that the ledger holds."""
    heads, digest = heads_of(path), digest_of(path)
    assert digest is not None
    assert not examine(path, heads, digest).problems
    assert digest_of(path) == digest, "looking changed the file"
    before, pick, found = entries_of(path), random.Random(seed), 0
    damaged = tmp_path / "damaged.sqlite"
    for _ in range(count):
        bit = pick.randrange(8 * path.stat().st_size)
        for suffix in ("-wal", "-shm"):
            Path(f"{damaged}{suffix}").unlink(missing_ok=True)
        flipped(path, damaged, bit)
        assert examine(damaged, heads, digest).problems, f"bit {bit}"
        flipped(path, damaged, bit)
        if examine(damaged, heads).problems:
            found += 1
        else:
            assert entries_of(damaged) == before, f"bit {bit}"
    return found


def test_flipped_bits_are_found(path: Path, tmp_path: Path) -> None:
    assert flips_found(path, tmp_path, 60, seed=4) > 5


@pytest.mark.slow
def test_many_flipped_bits_are_found(path: Path, tmp_path: Path) -> None:
    assert flips_found(path, tmp_path, 400, seed=5) > 40


def test_damage_is_said_in_words(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray(path.read_bytes())
    content[4096:8192] = os.urandom(4096)
    path.write_bytes(content)
    assert run(["ledger", "verify", str(path)]) == 2
    said = capsys.readouterr().err
    assert "the ledger is damaged" in said
    assert "Traceback" not in said
    assert all(line.startswith("shoal: ") for line in said.splitlines())
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 100)
    assert run(["ledger", "verify", str(path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_charges_are_rounded_up_to_the_grid(path: Path) -> None:
    ledger = open_ledger(path)
    long = Fraction(1, 10**3) + Fraction(1, 3**100)
    receipt = ledger.charge(Charge("people", "ada", "{}", long, delta=Fraction(0)))
    assert receipt.added == Fraction(1, 10**3) + Fraction(1, 10**12)
    assert rounded_up(receipt.added) == receipt.added
    assert 10**12 % ledger.standing("people").spent.denominator == 0
    ledger.close()


def test_entries_from_before_the_grid_are_still_in_order(
    path: Path, spend: Spend, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shoal.ledger import account as entry

    ledger = open_ledger(path)
    with monkeypatch.context() as patched:
        patched.setattr(entry, "rounded_up", lambda amount, grid=1: amount)
        assert ledger.charge(spend("1/7")).added == Fraction(1, 7)
        ledger.charge(spend("1/7", person=("id", "1")))
    assert verify(ledger)[0].standing.spent == Fraction(25, 100) + Fraction(2, 7)
    ledger.close()


def test_a_price_is_computed_while_others_are_granted(path: Path, spend: Spend) -> None:
    """An analyst whose price takes for ever keeps nobody else waiting."""
    import threading

    ledger = open_ledger(path)
    entered, leave = threading.Event(), threading.Event()

    def slow(contents: object) -> Fraction:
        entered.set()
        assert leave.wait(300)
        return Fraction(1, 100)

    result: list[object] = []
    asking = threading.Thread(
        target=lambda: result.append(ledger.charge(spend("0.01", analyst="eve", family="p", joint=slow)))
    )
    asking.start()
    assert entered.wait(300)
    assert ledger.charge(spend("0.01", analyst="ben")).added == Fraction(1, 100)
    assert ledger.standing("people").spent == Fraction(26, 100)
    leave.set()
    asking.join()
    assert result[0].added == Fraction(1, 100)  # type: ignore[attr-defined]
    ledger.close()


def test_a_family_that_grew_meanwhile_is_priced_again(path: Path, spend: Spend) -> None:
    ledger, other = open_ledger(path), open_ledger(path)
    seen: list[int] = []

    def joint(contents: tuple[str, ...]) -> Fraction:
        seen.append(len(contents))
        if len(seen) == 1:
            # while it is priced, the same family gets a member through another process
            other.charge(spend("0.01", analyst="ben", family="p", joint=lambda contents: Fraction(1, 100)))
        return Fraction(len(contents), 200)

    receipt = ledger.charge(spend("0.01", analyst="eve", family="p", joint=joint))
    assert max(seen) == 2
    assert receipt.added == 0

    # one that others always overtake pays its own price
    def overtaken(contents: tuple[str, ...]) -> Fraction:
        other.charge(spend("0.001", analyst="ben", family="p", joint=lambda contents: Fraction(0)))
        return Fraction(0)

    assert ledger.charge(spend("0.01", analyst="eve", family="p", joint=overtaken)).added == Fraction(1, 100)
    verify(ledger)
    other.close()
    ledger.close()


def test_what_an_analyst_stores_is_limited_in_bytes(path: Path, spend: Spend) -> None:
    ledger = open_ledger(path)
    with pytest.raises(QuotaError, match="use all of its 1,000 bytes"):
        ledger.charge(spend("0.01", room=1000))
    # free ones count as well, and others have room of their own
    with pytest.raises(QuotaError):
        ledger.charge(spend("0", room=30_000, size=20_000))
    ledger.charge(spend("0", analyst="ben", room=30_000, size=20_000))
    ledger.close()


def test_pages_are_limited_in_bytes(path: Path) -> None:
    ledger = open_ledger(path)
    page, more = ledger.page("people", "ada", 0, 100, 1000)
    assert 1 < len(page) < 25
    assert more
    assert sum(len(charge.content) + len(answer.content) for charge, answer in page if answer) <= 1000
    assert len(ledger.page("people", "ada", 0, 100, 1)[0]) == 1
    assert ledger.page("people", "ada", 0, 100)[1] is False
    assert ledger.page("people", "ada", 10**6, 100, 10) == ([], False)
    numbers, after = [], 0
    while True:
        page, more = ledger.page("people", "ada", after, 100, 700)
        numbers += [charge.number for charge, _ in page]
        if not more:
            break
        after = numbers[-1]
    assert len(numbers) == len(set(numbers)) == 25
    ledger.close()
