"""Attack surfaces beside the ledger: small ε, long numbers, large answers, silent connections, old tokens."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import os
import resource
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.cli import run
from shoal.cli.serve import _is_loopback
from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.errors import InputError, OptionError, OutputError
from shoal.io.common import dumps
from shoal.ledger import Charge, LedgerError
from shoal.query.facts import prepare
from shoal.query.server import answers, description, state
from shoal.query.server.app import create_app
from shoal.query.server.folder import (
    HEADS_FILE,
    TOKENS_FILE,
    DatasetSettings,
    check_size,
    load_folder,
    rows_mark,
)
from shoal.query.server.guard import Limits, ServerGuard
from shoal.query.server.run import Connections, watched_protocol
from shoal.query.server.state import Config, HeadFile, TokenBook, new_token, open_folder
from shoal.survey import survey

OLD = {"column": "age", "op": ">=", "value": 50}


def settings(place: Any, **more: Any) -> None:
    path = place.folder / "survey" / "dataset.toml"
    path.write_text(dumps(DatasetSettings(ceiling=Fraction(2)).to_dict() | more))


# the least ε


def test_a_question_costs_at_least_the_least(server: Any) -> None:
    refused = server.ask({"kind": "count", "epsilon": "0.0009", "where": OLD})
    assert refused.status_code == 422
    assert refused.json()["reason"] == "a query must cost at least ε = 0.001, got 0.0009."
    assert server.ask({"kind": "count", "epsilon": "0.001", "where": OLD}).status_code == 200
    # what is public is free, and by noise of a given scale one cannot get below either
    assert server.ask({"kind": "count", "epsilon": "0.0001"}).json()["receipt"]["added"] == "0/1"
    tiny = {"kind": "protocol-1", "scale": "1e9", "query": {"kind": "count", "where": OLD}}
    assert server.ask(tiny).status_code == 422
    batch = server.raw("POST", "/v1/datasets/survey/batches", json={"questions": [tiny] * 2})
    assert [result["error"] for result in batch.json()["results"]] == ["bad_question"] * 2
    assert server.place.spent() == Fraction(1, 1000)


def test_the_least_is_a_setting(place: Any, serve: Callable[..., Any]) -> None:
    settings(place, least_epsilon="0.25")
    with serve(place) as server:
        assert server.ask({"kind": "count", "epsilon": "0.2", "where": OLD}).status_code == 422
        assert server.ask({"kind": "count", "epsilon": "0.25", "where": OLD}).status_code == 200


# long numbers


def test_numbers_of_many_digits_are_refused(server: Any) -> None:
    for scale in ("1." + "3" * 190, "3" * 40, "1e-40"):
        asked = {"kind": "protocol-1", "scale": scale, "query": {"kind": "count", "where": OLD}}
        assert server.ask(asked).status_code == 422, scale
    asked = {"kind": "protocol-1", "scale": "1e-7", "query": {"kind": "count", "where": OLD}}
    assert "above 1e6" in server.ask(asked).json()["reason"]
    assert server.place.spent() == 0


def test_odd_scales_leave_budgets_that_can_be_printed(server: Any) -> None:
    """Denominators that have nothing in common: as fractions of any size, their sum would grow without end."""
    with server.client() as client:
        for number in range(12):
            where = {"column": "age", "op": ">=", "value": 20 + number}
            scale = f"{97 + 2 * number}.{10**28 + 7 * number + 1}"
            client.ask(
                "survey", {"kind": "protocol-1", "scale": scale, "query": {"kind": "count", "where": where}}
            )
        budget = client.budget("survey")
        assert len(budget["spent"]) < 40
        assert float(budget["decimal"]["spent"]) == pytest.approx(float(Fraction(budget["spent"])))
        refused = server.ask({"kind": "mean", "column": "income", "epsilon": "5"})
        assert (refused.status_code, refused.json()["error"]) == (403, "overdrawn")


# room


def test_free_answers_are_not_stored_without_limit(place: Any, serve: Callable[..., Any]) -> None:
    settings(place, most_bytes=20_000)
    with serve(place) as server:
        found = [server.ask({"kind": "count", "epsilon": "1"}).status_code for _ in range(12)]
        assert found[0] == 200
        assert found[-1] == 403
        assert server.ask({"kind": "count", "epsilon": "1"}).json()["error"] == "full"
        assert server.ask({"kind": "count", "epsilon": "1"}, name="ben").status_code == 200
        edges = {
            "kind": "histogram",
            "column": "income",
            "edges": list(range(0, 300_000, 30)),
            "epsilon": "1",
        }
        assert server.ask(edges, name="ben").json()["error"] == "full"
    assert place.spent() == 0


def test_a_page_of_answers_has_a_limit_in_bytes(place: Any, serve: Callable[..., Any]) -> None:
    with serve(place, Limits(pace=0, rate=0, page_bytes=5000)) as server, server.client() as client:
        for _ in range(6):
            client.ask("survey", {"kind": "count", "epsilon": "0.01", "where": OLD})
        page = server.raw("GET", "/v1/datasets/survey/answers?limit=1000").json()
        assert 0 < len(page["answers"]) < 6
        assert page["next"] == page["answers"][-1]["charge"]
        assert len(list(client.answers("survey"))) == 6


# connections


def half_sent(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=300)
    connection.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    return connection


def test_silent_connections_make_room_for_others(place: Any, serve: Callable[..., Any]) -> None:
    limits = Limits(pace=0, rate=0, connections=20)
    with serve(place, limits) as server, contextlib.ExitStack() as held:
        silent = [held.enter_context(contextlib.closing(half_sent(server.url))) for _ in range(60)]
        with httpx.Client(verify=False, timeout=300) as http:
            assert http.get(server.url + "/v1/health").status_code == 200
        # the oldest were closed
        assert ended(silent[0])


def ended(connection: socket.socket) -> bool:
    """Whether the other side ends the connection, after whatever it has still to say."""
    try:
        while connection.recv(4096):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def test_headers_that_do_not_end_are_not_waited_for(place: Any, serve: Callable[..., Any]) -> None:
    # the second connection must send its first request in this time
    with serve(place, Limits(pace=0, header_seconds=2)) as server:
        with contextlib.closing(half_sent(server.url)) as connection:
            assert ended(connection)
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=300) as connection:
            # a first request in order does not help
            connection.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" in connection.recv(4096)
            connection.sendall(b"GET /v1/hea")
            assert ended(connection)


def test_headers_without_end_are_cut_off(place: Any, serve: Callable[..., Any]) -> None:
    with (
        serve(place, Limits(pace=0, header_bytes=2000)) as server,
        contextlib.closing(half_sent(server.url)) as connection,
    ):
        with contextlib.suppress(ConnectionError):
            for _ in range(50):
                connection.sendall(b"x" * 1000)
        assert ended(connection)
        assert server.raw("GET", "/v1/health").status_code == 200


def test_the_door_leaves_files_for_the_ledger() -> None:
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert Connections(10**9, 1.0, 1).most < allowed or allowed == resource.RLIM_INFINITY


@pytest.mark.slow
def test_1100_silent_connections_do_not_stop_health(place: Any) -> None:
    """With the settings as they come, and no more files than most systems allow."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048 and hard != resource.RLIM_INFINITY:
        pytest.skip("this system does not let a process open 1,100 connections")
    words = [sys.executable, "-m", "shoal", "serve", "--data", str(place.folder), "--port", "0", "--quiet"]
    process = subprocess.Popen(
        ["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh", *words], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    url = process.stderr.readline().partition(" on ")[2].partition(" ")[0]
    said: list[str] = []
    # what it says later must not fill the pipe
    reader = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
    reader.start()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    try:
        with contextlib.ExitStack() as held:
            for _ in range(1100):
                held.enter_context(contextlib.closing(half_sent(url)))
            with httpx.Client(verify=False, timeout=300) as http:
                assert http.get(url + "/v1/health").status_code == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        process.terminate()
        process.wait()
        reader.join()
    assert 1 <= len(said) < 50, "one line for many connections"
    assert all(json.loads(line)["event"] == "connections turned away" for line in said)


# what is read


def test_a_table_with_too_many_rows_is_not_served(place: Any) -> None:
    settings(place, most_rows=200)
    with pytest.raises(InputError, match="300 rows, and the server accepts at most 200"):
        load_folder(place.folder)


def test_a_small_file_that_unpacks_to_a_large_table_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"text": pa.array(["x" * 10_000] * 2000)}), path)
    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match="more than 10,000,000 bytes, unpacked"):
        check_size(path, "d", 10**6, 10**7)
    with pytest.raises(InputError, match="2,000 rows, and the server accepts at most 100"):
        check_size(path, "d", 100)
    with pytest.raises(InputError, match="the server accepts at most 10"):
        check_size(path, "d", 10**6, 10)
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(InputError, match=r"cannot read .* as Parquet"):
        check_size(path, "d", 10)


def test_under_add_remove_the_time_follows_from_a_public_bound(
    tmp_path: Path, build: Callable[..., Any]
) -> None:
    for number, rows in enumerate((None, 400)):
        place = build(tmp_path / str(number), neighbours="add-remove", most_rows=rows)
        assert load_folder(place.folder)["survey"].public_rows == (rows or 100_000)


# names


def test_the_same_table_under_two_names_is_refused(place: Any) -> None:
    shutil.copytree(place.folder / "survey", place.folder / "twin")
    with pytest.raises(OptionError, match="'twin' contains the same table as 'survey', which is also served"):
        load_folder(place.folder)
    # in another format and another order it is still the same
    rows = survey(300)
    (place.folder / "twin" / "data.csv").unlink()
    pq.write_table(rows.take(pa.array(range(299, -1, -1))), place.folder / "twin" / "data.parquet")
    with pytest.raises(OptionError, match="same table"):
        load_folder(place.folder)
    path = place.folder / "twin" / "dataset.toml"
    path.write_text(path.read_text() + 'same_table_as = ["survey"]\n')
    assert set(load_folder(place.folder)) == {"survey", "twin"}


def test_a_new_name_brings_no_new_budget(place: Any) -> None:
    open_folder(Config(place.folder))[0].close()
    (place.folder / "survey").rename(place.folder / "renamed")
    with pytest.raises(OptionError, match="same table as 'survey', which has a privacy budget in the ledger"):
        open_folder(Config(place.folder))
    path = place.folder / "renamed" / "dataset.toml"
    path.write_text(path.read_text() + 'same_table_as = ["survey"]\n')
    open_folder(Config(place.folder))[0].close()


def test_the_mark_of_a_table_is_that_of_its_rows() -> None:
    schema = Schema(
        (
            Attribute("x", lo=Fraction(0), hi=Fraction(9), step=Fraction(1)),
            Attribute("t", "nominal", type="text"),
        )
    )

    def mark(xs: list[Any], texts: list[Any]) -> str:
        return rows_mark(prepare(pa.table({"x": xs, "t": texts}), schema))

    same = mark([1, 2, None], ["a", "b", None])
    assert same == mark([None, 1, 2], [None, "a", "b"])
    assert same != mark([2, 1, None], ["a", "b", None])
    assert same != mark([1, 2, 3], ["a", "b", None])


# the ledger of a folder


def test_a_folder_served_before_does_not_start_without_its_ledger(place: Any) -> None:
    open_folder(Config(place.folder))[0].close()
    assert stat.S_IMODE((place.folder / HEADS_FILE).stat().st_mode) == 0o600
    for path in place.folder.glob("ledger.sqlite*"):
        path.unlink()
    with pytest.raises(LedgerError, match=r"was served before, but its ledger .* is missing"):
        open_folder(Config(place.folder))
    assert not (place.folder / "ledger.sqlite").exists()
    # an empty one is no better
    (place.folder / "ledger.sqlite").touch()
    with pytest.raises(LedgerError, match="the ledger has no entries"):
        open_folder(Config(place.folder))


def test_a_replaced_ledger_closes_the_server_and_its_health(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(description, "_OLDEST_SECONDS", 0.0)
    assert server.ask().status_code == 200
    assert server.raw("GET", "/v1/health", None).json()["status"] == "ok"
    path = server.place.folder / "ledger.sqlite"
    copy = tmp_path / "copy.sqlite"
    shutil.copy(path, copy)
    os.replace(copy, path)
    closed = server.ask()
    assert (closed.status_code, closed.json()["error"]) == (503, "closed")
    unwell = server.raw("GET", "/v1/health", None)
    assert (unwell.status_code, unwell.json()["error"]) == (503, "closed")


def test_a_regular_end_notes_what_the_file_holds(
    place: Any, serve: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(place) as server:
        server.ask()
    path = place.folder / "ledger.sqlite"
    assert run(["ledger", "verify", str(path)]) == 0
    assert "closed " in (place.folder / HEADS_FILE).read_text()
    content = bytearray(path.read_bytes())
    # the last bytes of the free space of the first page
    content[200 + 512] ^= 4
    path.write_bytes(content)
    capsys.readouterr()
    assert run(["ledger", "verify", str(path)]) == 2
    assert "shoal: the ledger" in capsys.readouterr().err
    assert run(["ledger", "verify", str(path), "--heads", str(place.folder / "none")]) == 2
    assert "there is no checkpoint file" in capsys.readouterr().err


def test_exports_are_for_their_owner(place: Any, tmp_path: Path) -> None:
    open_folder(Config(place.folder))[0].close()
    out = tmp_path / "entries.jsonl"
    assert run(["ledger", "export", str(place.folder / "ledger.sqlite"), "--out", str(out)]) == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_the_head_of_an_answer_is_noted_before_it_is_sent(
    place: Any, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup made between two answers does not start, however soon after the second the server is killed."""
    monkeypatch.setattr(state, "_SECONDS", 1e9)
    backup = place.folder.parent / "backup.sqlite"
    with serve(place) as server:
        server.ask()
        with (
            contextlib.closing(sqlite3.connect(place.folder / "ledger.sqlite")) as source,
            contextlib.closing(sqlite3.connect(backup)) as copy,
        ):
            source.backup(copy)
        head = server.ask().json()["receipt"]["head"]
        noted = (place.folder / HEADS_FILE).read_text()
        assert head in noted
    for path in place.folder.glob("ledger.sqlite*"):
        path.unlink()
    shutil.copy(backup, place.folder / "ledger.sqlite")
    (place.folder / HEADS_FILE).write_text(noted)
    with pytest.raises(LedgerError, match="is not in this ledger"):
        open_folder(Config(place.folder))


def test_of_two_that_note_heads_the_newer_ones_stay(place: Any) -> None:
    one = open_folder(Config(place.folder))[0]
    two = place.ledger
    file = HeadFile(place.folder / HEADS_FILE)
    two.charge(Charge("survey", "ada", "{}", Fraction(1, 10)))
    HeadFile(place.folder / HEADS_FILE).note(two)
    file.note(one)
    assert file.heads() == [two.standing("survey").head]
    one.close()
    two.close()


def test_heads_that_cannot_be_noted_grant_nothing(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: HeadFile, text: str, durable: bool = True) -> None:
        raise OutputError("the heads cannot be noted")

    assert server.raw("GET", "/v1/health", None).status_code == 200
    monkeypatch.setattr(HeadFile, "_write", full)
    assert server.ask().json()["error"] == "closed"


def test_a_full_disk_shows_in_health(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(description, "_OLDEST_SECONDS", 0.0)
    assert server.raw("GET", "/v1/health", None).status_code == 200
    usage = shutil.disk_usage(server.place.folder)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
        assert server.raw("GET", "/v1/health", None).status_code == 503
    assert server.raw("GET", "/v1/health", None).status_code == 200


def test_a_database_that_cannot_write_shows_in_health(
    place: Any, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(description, "_OLDEST_SECONDS", 0.0)
    opened = open_folder(Config(place.folder))
    pages = opened[0].store._engine.raw_connection().cursor().execute("PRAGMA page_count").fetchone()[0]
    with opened[0].store.writing(()) as connection:
        # the database's own error for a disk without room
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    app = create_app(Config(place.folder), opened)
    edges = {"kind": "histogram", "column": "income", "edges": list(range(0, 300_000, 60)), "epsilon": "0.1"}
    with serve(place, app=app) as server:
        assert server.raw("GET", "/v1/health", None).status_code == 200
        codes = [server.ask(edges).json().get("error") for _ in range(3)]
        assert "closed" in codes
        assert server.raw("GET", "/v1/health", None).status_code == 503


# clients that do not read


class Reader:
    """A connection that reads or does not."""

    def __init__(self) -> None:
        self.transport, self.ended = self, False

    def abort(self) -> None:
        self.ended = True


def test_a_connection_that_reads_nothing_is_closed() -> None:
    async def wait() -> tuple[bool, bool]:
        connections = Connections(10, 60.0, 1000, unread_seconds=0.05)
        slow, stuck = Reader(), Reader()
        for reader in (slow, stuck):
            connections.enter(reader)
            connections.heard(reader, 10, asking=True)
            connections.unread(reader)
        connections.read(slow)
        while not stuck.ended:
            await asyncio.sleep(0.01)
        return slow.ended, stuck.ended

    assert asyncio.run(wait()) == (False, True)


def test_the_protocol_says_when_a_connection_stops_reading() -> None:
    told: list[str] = []

    class Noted(Connections):
        def unread(self, connection: Any) -> None:
            told.append("unread")

        def read(self, connection: Any) -> None:
            told.append("read")

    made = watched_protocol(Noted(10, 60.0, 1000))
    protocol = made.__new__(made)
    protocol.flow = types.SimpleNamespace(pause_writing=lambda: None, resume_writing=lambda: None)  # type: ignore[attr-defined]
    protocol.pause_writing()
    protocol.resume_writing()
    assert told == ["unread", "read"]


def test_bytes_that_nobody_reads_are_limited_for_each_token() -> None:
    """150 connections that read nothing of a page of 4 MiB took 600 MiB."""
    page = b"x" * 4 * 2**20
    copied: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope["state"]["log"]["token"] = scope["token"]
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-length", b"%d" % len(page))],
            }
        )
        await send({"type": "http.response.body", "body": page})

    async def requests() -> tuple[list[int], list[int]]:
        guard, statuses = ServerGuard(app, Limits()), []
        read = asyncio.Event()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            elif len(message["body"]) > 1000:
                copied.append(len(message["body"]))
                await read.wait()

        def request(token: str) -> asyncio.Task[None]:
            scope = {"type": "http", "method": "GET", "headers": [], "token": token}
            return asyncio.create_task(guard(scope, None, send))  # type: ignore[arg-type]

        waiting = [request("ada") for _ in range(150)] + [request("ben")]
        await asyncio.sleep(0.1)
        first = list(statuses)
        read.set()
        await asyncio.gather(*waiting)
        statuses.clear()
        await request("ada")
        return first, statuses

    first, later = asyncio.run(requests())
    assert (first.count(200), first.count(429)) == (5, 146)
    # of each only a piece was handed to the connection, and what was read is forgotten
    assert max(copied) <= 64 * 1024
    assert later == [200]


_SERVER = """
import sys
from pathlib import Path
from shoal.query.server.app import create_app
from shoal.query.server.guard import Limits
from shoal.query.server.run import bound_socket, http_server
from shoal.query.server.state import Config

limits = Limits(pace=0, rate=0, free=0, patience=240, unread_seconds=600, unread_bytes=int(sys.argv[2]))
socket = bound_socket("127.0.0.1", 0)
print(socket.getsockname()[1], flush=True)
http_server(create_app(Config(Path(sys.argv[1]), limits=limits)), limits).run(sockets=[socket])
"""


def resident(process: int) -> int:
    """The bytes of memory that a process holds."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) * 1024


def asked_and_not_read(port: int, token: str) -> tuple[socket.socket, int]:
    """A connection with a request whose answer has begun to arrive and is never read, and its status."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(120)
    made.connect(("127.0.0.1", port))
    page = f"GET /v1/datasets/survey/answers?limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    made.sendall(page.encode())
    while len(begun := made.recv(12, socket.MSG_PEEK)) < 12:
        pass
    return made, int(begun.split()[1])


def grown_by_clients_that_never_read(
    place: Any, unread_bytes: int, connections: int
) -> tuple[int, list[int]]:
    """How much memory a server takes for answers that nobody reads, and what it said to each request."""
    words = [sys.executable, "-c", _SERVER, str(place.folder), str(unread_bytes)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        url = f"http://127.0.0.1:{port}"
        tokens = {name: {"Authorization": f"Bearer {token}"} for name, token in place.tokens.items()}
        with httpx.Client(verify=False, timeout=300) as http, contextlib.ExitStack() as held:
            edges = {"kind": "histogram", "column": "income", "edges": list(range(0, 200_000, 25))}
            asked = {**edges, "epsilon": "0.01"}
            size = 0
            while size < 3 * 2**20:
                there = http.post(url + "/v1/datasets/survey/answers", json=asked, headers=tokens["ada"])
                assert there.status_code == 200, there.text
                page = http.get(url + "/v1/datasets/survey/answers?limit=1000", headers=tokens["ada"])
                size = len(page.content)
            before = resident(process.pid)
            statuses = []
            for _ in range(connections):
                made, status = asked_and_not_read(port, place.tokens["ada"])
                held.enter_context(contextlib.closing(made))
                statuses.append(status)
            grown = resident(process.pid) - before
            assert http.get(url + "/v1/health").status_code == 200
            mean = {"kind": "mean", "column": "income", "epsilon": "0.1"}
            honest = http.post(url + "/v1/datasets/survey/answers", json=mean, headers=tokens["ben"])
            assert (honest.status_code, "value" in honest.text) == (200, True)
        return grown, statuses
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory is read from /proc")
def test_clients_that_never_read_do_not_fill_the_memory(build: Callable[..., Any], tmp_path: Path) -> None:
    """Answers of 3 MiB to 30 connections of one analyst; without the limit each would be held until it is read."""
    most, connections = Limits().unread_bytes, 30
    bound = 3 * most
    grown, statuses = grown_by_clients_that_never_read(build(tmp_path / "limited"), most, connections)
    assert grown < bound
    assert set(statuses) == {200, 429}
    assert 1 <= statuses.count(200) <= most // (3 * 2**20)
    lifted, statuses = grown_by_clients_that_never_read(build(tmp_path / "lifted"), 2**40, connections)
    assert statuses == [200] * connections
    assert lifted > bound


# tokens, bodies, addresses


def test_tokens_end(place: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = place.folder / TOKENS_FILE
    text = new_token(path, "eve", "analyst", days=2)
    book = TokenBook(path)
    assert book.find(text) is not None
    assert run(["token", "list", "--data", str(place.folder)]) == 0
    assert ", until 20" in capsys.readouterr().out
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=2, seconds=1)

    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return later

    monkeypatch.setattr(state.datetime, "datetime", Later)
    assert book.find(text) is None
    assert book.find(place.tokens["ada"]) is not None
    monkeypatch.undo()
    for days in (0, -1, 10**9):
        with pytest.raises(OptionError, match="a token must be valid for"):
            new_token(path, "eve", "analyst", days=days)
    path.write_text(path.read_text().replace('expires = "20', 'expires = "later 20'))
    assert TokenBook(path).find(text) is None


@pytest.mark.parametrize(
    "body",
    [
        '{"kind": "count", "epsilon": "0.1", "epsilon": "1"}',
        '{"kind": "count", "epsilon": "1", "where": {"column": "age", "op": ">", "value": 1, "value": 2}}',
    ],
)
def test_a_key_that_is_there_twice_is_refused(server: Any, body: str) -> None:
    for path, content in (("answers", body), ("preview", body), ("batches", f'{{"questions": [{body}]}}')):
        reply = server.raw("POST", f"/v1/datasets/survey/{path}", content=content.encode())
        assert reply.status_code == 422, path
        assert "occurs twice" in json.dumps(reply.json())
    assert server.place.spent() == 0


def test_not_is_answered_with_what_there_is(server: Any) -> None:
    reply = server.ask({"kind": "count", "epsilon": "1", "where": {"not": OLD}})
    assert reply.status_code == 422
    assert "None" not in reply.text
    assert '"not" is not supported: use !=' in reply.json()["reason"]
    reply = server.ask({"kind": "count", "epsilon": "1", "where": {"op": ">"}})
    assert "a condition needs the keys column, op and value" in reply.json()["reason"]


@pytest.mark.parametrize(
    ("host", "safe"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("0.0.0.0", False), ("::", False)],
)
def test_only_loopback_is_safe_without_tls(host: str, safe: bool) -> None:
    assert _is_loopback(host) is safe


def test_others_who_can_listen_are_warned_of(place: Any) -> None:
    words = [sys.executable, "-m", "shoal", "serve", "--data", str(place.folder), "--port", "0"]
    process = subprocess.Popen([*words, "--host", "0.0.0.0"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.readline()
    process.terminate()
    process.wait()
    process.stderr.close()
    assert said.startswith("Warning: others can reach 0.0.0.0")


# prices


def test_a_price_that_takes_long_stops_nobody_else(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from an analyst who has no budget: before, the ledger was locked while a price was computed."""
    entered, leave = threading.Event(), threading.Event()

    def slow(queries: Any, facts: Any) -> Fraction:
        entered.set()
        assert leave.wait(300)
        return Fraction(1, 4)

    monkeypatch.setattr(answers, "protocol_1_total", slow)
    asked = {"kind": "protocol-1", "scale": "4", "query": {"kind": "count", "where": OLD}}
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(server.ask, asked)
        assert entered.wait(300)
        preview = pool.submit(server.raw, "POST", "/v1/datasets/survey/preview", json=asked)
        with server.client("ben") as ben:
            assert ben.ask("survey", {"kind": "count", "epsilon": "0.1", "where": OLD}).cost == Fraction(
                1, 10
            )
        assert server.raw("GET", "/v1/health", "ben").status_code == 200
        assert not waiting.done()
        leave.set()
        assert waiting.result().json()["receipt"]["added"] == "1/4"
        assert preview.result().status_code == 200
