"""Many concurrent clients cannot overdraw, and a server killed repeatedly loses no charge and no answer."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

from shoal.ledger import open_ledger, verify
from shoal.query.client import Client, RefusedError
from shoal.query.server.folder import LEDGER_FILE
from tests.conftest import amount
from tests.support.postgres_fixture import fresh_database

from .conftest import Place, make_place

COUNT = {"kind": "count", "where": {"column": "age", "op": ">=", "value": 50}}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.system)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """Where the ledger is kept; None for the folder's own file."""
    return None if request.param == "sqlite" else fresh_database(request.getfixturevalue("postgres"))


def start(
    place: Place, address: str | None, port: int = 0, processes: int = 1
) -> tuple[subprocess.Popen[bytes], int]:
    """The server as a process of its own, as it is run in earnest; ready when it says where it listens."""
    words = [
        "serve",
        "--data",
        str(place.folder),
        "--port",
        str(port),
        "--pace",
        "0",
        "--rate",
        "0",
        "--quiet",
    ]
    words += ["--processes", str(processes)]
    words += [] if address is None else ["--ledger", address]
    process = subprocess.Popen([sys.executable, "-m", "shoal", *words], stderr=subprocess.PIPE)
    assert process.stderr is not None
    line = process.stderr.readline().decode()
    assert "Serving" in line, line + process.stderr.read().decode()
    # what it says later must not fill the pipe
    threading.Thread(target=process.stderr.read, daemon=True).start()
    return process, int(line.partition("http://")[2].partition(" ")[0].rpartition(":")[2])


@contextlib.contextmanager
def process_serving(place: Place, address: str | None, processes: int = 1) -> Iterator[str]:
    process, port = start(place, address, processes=processes)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def spend(url: str, place: Place, requests: int, clients: int = 32) -> int:
    """Ask again and again from many connections for 1 or 2 units, and return the units that were granted."""

    def client(number: int) -> int:
        pick, granted = random.Random(number), 0
        with Client(url, place.tokens["ada" if number % 2 else "ben"], timeout=120) as asking:
            for _ in range(requests // clients):
                units = pick.choice((1, 1, 2))
                try:
                    asking.ask("survey", COUNT | {"epsilon": f"{units}e-3"})
                except RefusedError as refused:
                    if refused.code != "overdrawn":
                        raise
                else:
                    granted += units
        return granted

    with ThreadPoolExecutor(clients) as pool:
        return sum(pool.map(client, range(clients)))


def check_ledger(place: Place, address: str | None) -> Any:
    ledger = open_ledger(address or place.folder / LEDGER_FILE)
    try:
        return verify(ledger)[0].standing
    finally:
        ledger.close()


def test_a_crowd_spends_exactly_the_ceiling(tmp_path: Path) -> None:
    place = make_place(tmp_path / "s", ceiling=Fraction(100, 1000))
    with process_serving(place, None, processes=2) as url:
        assert spend(url, place, 256) == 100
    assert check_ledger(place, None).spent == Fraction(1, 10)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 4])
def test_64_clients_spend_exactly_the_ceiling(tmp_path: Path, address: str | None, processes: int) -> None:
    units = amount(500, 1000)
    place = make_place(tmp_path / "s", ceiling=Fraction(units, 1000))
    with process_serving(place, address, processes) as url:
        assert spend(url, place, 64 * (units // 31), clients=64) == units
    standing = check_ledger(place, address)
    assert (standing.spent, standing.unanswered) == (Fraction(units, 1000), 0)


def kill_at_random(place: Place, address: str | None, requests: int, kills: int, seed: int) -> None:
    """Ask under keys of one's own while the server is killed at random moments, and compare with the ledger."""
    pick = random.Random(seed)
    answers: dict[str, set[str]] = {}
    received = threading.Condition()
    process, port = start(place, address)

    def client(number: int) -> None:
        headers = {"Authorization": f"Bearer {place.tokens['ada']}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as http:
            for count in range(requests // 8):
                key = f"{number}-{count}"
                # every question is sent until it was answered twice, so that answers can be compared
                for _ in range(2):
                    while True:
                        with contextlib.suppress(httpx.HTTPError):
                            reply = http.post(
                                "/v1/datasets/survey/answers",
                                json=COUNT | {"epsilon": "0.01"},
                                headers={"Idempotency-Key": key},
                            )
                            if reply.status_code == 200:
                                break
                            assert reply.status_code in (502, 503), reply.text
                        time.sleep(0.02)
                    with received:
                        answers.setdefault(key, set()).add(json.dumps(reply.json()["answer"]))
                        received.notify()

    try:
        with ThreadPoolExecutor(8) as pool:
            running = [pool.submit(client, number) for number in range(8)]
            for kill in range(1, kills + 1):
                # spread over the questions, and at no particular moment of any of them
                with received:
                    received.wait_for(
                        lambda kill=kill: len(answers) >= requests * kill // (kills + 1), timeout=60
                    )
                time.sleep(pick.uniform(0.0, 0.03))
                process.kill()
                process.wait()
                process, _ = start(place, address, port)
            for future in running:
                future.result()
    finally:
        process.terminate()
        process.wait()

    assert all(len(texts) == 1 for texts in answers.values()), "one key got two different answers"
    ledger = open_ledger(address or place.folder / LEDGER_FILE)
    standing = verify(ledger)[0].standing
    entries = list(ledger.entries("survey"))
    ledger.close()
    charged = [entry.key for entry in entries if entry.kind == "charge"]
    assert sorted(charged) == sorted(answers)
    assert standing.spent == Fraction(len(answers), 100)
    assert standing.unanswered == 0
    stored = {entry.content for entry in entries if entry.kind == "answer"}
    sent = {text for texts in answers.values() for text in texts}
    assert sent <= {json.dumps(json.loads(text)) for text in stored}


@pytest.mark.slow
def test_a_server_killed_again_and_again_loses_nothing(tmp_path: Path, address: str | None) -> None:
    place, kills = make_place(tmp_path / "s", ceiling=Fraction(1000)), amount(10, 30)
    kill_at_random(place, address, requests=8 * kills, kills=kills, seed=9)


@pytest.mark.slow
def test_a_server_killed_once_loses_nothing(tmp_path: Path) -> None:
    place = make_place(tmp_path / "s", ceiling=Fraction(1000))
    kill_at_random(place, None, requests=32, kills=1, seed=1)
