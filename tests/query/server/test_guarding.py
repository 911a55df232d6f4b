"""Access control, rate limits, and the content of refusals and logs."""

from __future__ import annotations

import json
import socket
import stat
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import InputError, OptionError
from shoal.query.server import app, guard, state
from shoal.query.server.folder import TOKENS_FILE
from shoal.query.server.guard import Limits, RateLimit, RequestProblem
from shoal.query.server.state import TokenBook, new_token, read_tokens, revoke_token

MEAN = {"kind": "mean", "column": "income", "epsilon": "0.5"}
PATHS = [
    ("GET", "/v1/datasets"),
    ("GET", "/v1/datasets/survey"),
    ("POST", "/v1/datasets/survey/preview"),
    ("POST", "/v1/datasets/survey/answers"),
    ("POST", "/v1/datasets/survey/batches"),
    ("GET", "/v1/datasets/survey/answers"),
    ("GET", "/v1/datasets/survey/budget"),
    ("GET", "/v1/datasets/survey/ledger"),
]


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer x", "Basic YWRhOmFkYQ==", "bearer shoal_0_0", "Bearer \xfc"]
)
def test_nobody_gets_in_without_a_token(server: Any, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    for method, path in PATHS:
        refused = server.raw(method, path, None, headers=headers)
        assert refused.status_code == 401, path
        assert refused.json()["error"] == "no_token"
        assert refused.headers["www-authenticate"] == "Bearer"
    assert server.place.spent() == 0


def test_health_and_description_are_open(server: Any) -> None:
    assert server.raw("GET", "/v1/health", None).json()["status"] == "ok"
    assert "/v1/datasets/{name}/answers" in server.raw("GET", "/openapi.json", None).json()["paths"]
    page = server.raw("GET", "/docs", None)
    assert "<b>POST</b> /v1/datasets/{name}/answers" in page.text
    assert "<script" not in page.text


def test_tokens_are_kept_as_hashes(place: Any) -> None:
    path = place.folder / TOKENS_FILE
    for text in place.tokens.values():
        assert text not in path.read_text()
        assert text.split("_", 2)[2] not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [(token.name, token.role) for token in read_tokens(path)] == [
        ("ada", "analyst"),
        ("ben", "analyst"),
        ("hilda", "holder"),
    ]


def test_a_revoked_token_is_useless_at_once(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_LOOK_AGAIN_SECONDS", 0.0)
    assert server.ask().status_code == 200
    path = server.place.folder / TOKENS_FILE
    revoke_token(path, server.place.tokens["ada"].split("_")[1])
    assert server.ask().status_code == 401
    assert server.ask(name="ben").status_code == 200
    # a new token for the same name continues the same budget
    server.place.tokens["ada"] = new_token(path, "ada", "analyst")
    assert server.raw("GET", "/v1/datasets/survey/budget").json()["yours"]["spent"] == "1/2"


def test_a_token_opens_only_what_it_is_for(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_LOOK_AGAIN_SECONDS", 0.0)
    path = server.place.folder / TOKENS_FILE
    server.place.tokens["eve"] = new_token(path, "eve", "analyst", ("census",))
    hidden = server.ask(name="eve")
    absent = server.raw("POST", "/v1/datasets/nothing/answers", json=MEAN)
    assert hidden.status_code == absent.status_code == 404
    assert hidden.content == absent.content
    assert server.raw("GET", "/v1/datasets", "eve").json() == {"datasets": []}


def test_a_tokens_file_that_cannot_be_read_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    text = new_token(path, "ada", "analyst")
    book = TokenBook(path)
    assert book.find(text) is not None
    path.write_text("[[token]]\nname = 3\n")
    with pytest.raises(InputError, match="damaged"):
        read_tokens(path)
    assert TokenBook(path).find(text) is None


@pytest.mark.parametrize(
    ("name", "role", "said"), [("a b", "analyst", "cannot be named"), ("ada", "king", "role 'king'")]
)
def test_odd_tokens_are_refused(tmp_path: Path, name: str, role: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        new_token(tmp_path / "tokens.toml", name, role)
    assert not (tmp_path / "tokens.toml").exists()


def refusals(server: Any) -> list[tuple[str, int, bytes]]:
    """Everything that can be refused, asked in the same way."""
    asked = {
        "unknown column": {"kind": "mean", "column": "incom", "epsilon": "1"},
        "unknown kind": {"kind": "median", "epsilon": "1"},
        "no epsilon": {"kind": "count"},
        "bad epsilon": {"kind": "count", "epsilon": "-1"},
        "no identifier": {
            "kind": "individual",
            "epsilon": "1",
            "key": {"column": "age", "value": "1"},
            "column": "age",
        },
        "overdrawn": MEAN | {"epsilon": "7"},
        "not an object": [1],
        "delta": {
            "kind": "statistical",
            "statistic": {"kind": "mean", "column": "age"},
            "epsilon": "1",
            "delta": "0.1",
        },
    }
    found = [
        (name, reply.status_code, reply.content) for name, q in asked.items() for reply in [server.ask(q)]
    ]
    for method, path in (("GET", "/nowhere"), ("DELETE", "/v1/datasets"), ("GET", "/v1/datasets/a%20b")):
        reply = server.raw(method, path)
        found.append((path, reply.status_code, reply.content))
    return found


def test_no_refusal_depends_on_the_records(
    tmp_path: Path, build: Callable[..., Any], serve: Callable[..., Any]
) -> None:
    with serve(build(tmp_path / "a", seed=1)) as one, serve(build(tmp_path / "b", seed=2)) as two:
        first, second = refusals(one), refusals(two)
    assert first == second
    assert {status for _, status, _ in first} == {400, 403, 404, 405, 422}
    for _, _, content in first:
        assert set(json.loads(content)) >= {"error", "message"}
        assert b"Traceback" not in content


def test_persons_who_exist_and_who_do_not_get_the_same_kind_of_answer(server: Any) -> None:
    def about(person: str) -> Any:
        key = {"column": "person_id", "value": person}
        reply = server.ask({"kind": "individual", "epsilon": "0.1", "key": key, "column": "hours per week"})
        assert reply.status_code == 200
        body = reply.json()
        body["answer"]["value"] = body["answer"]["query"]["key"]["value"] = None
        body["receipt"] = None
        return body

    assert about("P000001") == about("nobody at all")


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b'{"kind":' * 20_000, 400),
        (b'{"kind": NaN}', 400),
        (b'{"kind": 1e999}', 422),
        (b"\xff\xfe", 400),
        (b'{"kind": "count", "epsilon": "\\ud800"}', 422),
        (b'{"kind": "count", "epsilon": "0.5", "where": ' + b'{"and":[' * 3000 + b"]}" * 3000 + b"}", 400),
        (b'{"kind": "count", "epsilon": "0.5", "where": ' + b'{"and":[' * 30 + b"]}" * 30 + b"}", 422),
        (b'{"kind": "mean", "epsilon": 1' + b"0" * 5000 + b"}", 400),
        (b"{}" + b" " * 300_000, 413),
    ],
)
def test_odd_bodies_are_refused(server: Any, content: bytes, status: int) -> None:
    reply = server.raw("POST", "/v1/datasets/survey/answers", content=content)
    assert reply.status_code == status, reply.text
    assert server.place.spent() == 0


def test_a_body_without_a_length_is_limited_too(server: Any) -> None:
    reply = server.raw("POST", "/v1/datasets/survey/answers", content=(b" " * 10_000 for _ in range(40)))
    assert reply.status_code == 413
    assert reply.json()["error"] == "too_large"


@pytest.mark.parametrize("path", ["/v1/datasets/survey/answers", "/v1/datasets/survey/preview"])
def test_a_body_that_does_not_come_is_not_waited_for(
    place: Any, serve: Callable[..., Any], path: str
) -> None:
    with serve(place, Limits(pace=0, body_seconds=0.2)) as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=300) as connection:
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {place.tokens['ada']}\r\n"
            connection.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
            assert b" 413 " in connection.recv(4096).split(b"\r\n")[0]


@pytest.mark.parametrize("key", ["", "a b", "ü", "x" * 101, "a\tb"])
def test_odd_keys_are_refused(server: Any, key: str) -> None:
    headers = {"Idempotency-Key": key.encode("utf-8")}
    reply = server.raw("POST", "/v1/datasets/survey/answers", json=MEAN, headers=headers)
    assert reply.status_code == 422
    assert server.place.spent() == 0


def test_requests_are_limited_by_token(place: Any, serve: Callable[..., Any]) -> None:
    with serve(place, Limits(pace=0, rate=0.001, burst=3)) as server:
        replies = [server.raw("GET", "/v1/datasets") for _ in range(5)]
        assert [reply.status_code for reply in replies] == [200, 200, 200, 429, 429]
        assert int(replies[-1].headers["retry-after"]) >= 1
        assert server.raw("GET", "/v1/datasets", "ben").status_code == 200
        strangers = [server.raw("GET", "/v1/datasets", None).status_code for _ in range(5)]
        assert strangers == [401, 401, 401, 429, 429]


def test_a_bucket_fills_at_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(guard.time, "monotonic", lambda: now[0])
    limit = RateLimit(2.0, 2)
    granted = []
    for tick in range(40):
        now[0] = tick / 10
        try:
            limit.take("ada")
        except RequestProblem:
            granted.append(0)
        else:
            granted.append(1)
    # two at once, then two per second
    assert sum(granted[:2]) == 2
    assert sum(granted) == 2 + int(3.9 * 2)
    # many at once need a full bucket, and empty it for longer
    now[0] += 10
    limit.take("ada", 6)
    now[0] += 2.4
    with pytest.raises(RequestProblem):
        limit.take("ada")
    now[0] += 0.2
    limit.take("ada")
    now[0] += 10**6
    for number in range(10_002):
        limit.take(f"client {number}")
    assert len(limit._buckets) <= 10_003


def test_the_log_has_no_values(
    place: Any, serve: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "shoal.server")
    key = {"column": "person_id", "value": "P000123"}
    asked = {"kind": "individual", "epsilon": "0.1", "key": key, "column": "hours per week"}
    with serve(place) as server:
        assert server.ask(asked, key="my-key").status_code == 200
        value = server.ask({"kind": "sum", "column": "income", "epsilon": "0.1"}).json()["answer"]["value"]
        server.raw("GET", "/v1/datasets/P000123")
        server.raw("GET", "/P000123?income=271828182845")
    # a request is logged after it was answered: the last line is there when the server has ended
    lines = [
        json.loads(record.getMessage()) for record in caplog.records if '"request"' in record.getMessage()
    ]
    assert [line["status"] for line in lines] == [200, 200, 404, 404]
    assert lines[0]["route"] == "/v1/datasets/{name}/answers"
    assert lines[0]["charge"] == 2
    # the number above is longer than a number of seconds since 1970, which every line has
    for secret in ("P000123", "271828182845", str(value), "my-key", place.tokens["ada"]):
        assert secret not in caplog.text


def test_responses_are_not_cached_or_sniffed(server: Any) -> None:
    for reply in (server.ask(), server.raw("GET", "/docs", None), server.raw("GET", "/nowhere")):
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert "server" not in reply.headers or "uvicorn" in reply.headers["server"]


def test_whatever_breaks_inside_is_a_constant_text(
    server: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "shoal.server")

    def broken(*_: object) -> None:
        raise RuntimeError("record 17 is odd")

    monkeypatch.setattr(app, "understand", broken)
    monkeypatch.setattr(app, "served_to", broken)
    for reply in (server.ask(), server.raw("GET", "/v1/datasets/survey/budget")):
        assert reply.status_code == 500
        assert reply.json()["error"] == "failed"
        assert "odd" not in reply.text
    assert "RuntimeError" in caplog.text
    assert "odd" not in caplog.text


def test_half_a_question_from_a_client_that_leaves_costs_nothing(server: Any) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=300) as connection:
        connection.sendall(
            b"POST /v1/datasets/survey/answers HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
        )
    assert server.raw("GET", "/v1/health").status_code == 200
    assert server.place.spent() == Fraction(0)
