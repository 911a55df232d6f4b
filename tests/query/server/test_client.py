"""The client library: its requests, its retries, and its errors when refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import httpx
import pytest

from shoal.errors import InputError, MissingExtraError, OptionError
from shoal.query import client as client_module
from shoal.query.client import Client, RefusedError

MEAN = {"kind": "mean", "column": "income", "epsilon": "0.5"}
BODY = {
    "answer": {
        "query": MEAN,
        "value": 1.5,
        "cost": "1/2",
        "delta": "0",
        "error": {},
        "statement": {"model": "dp"},
    },
    "receipt": {"dataset": "survey", "charge": 2, "added": "1/2", "repeated": False, "head": "0" * 64},
}


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses between tries, noted and not made."""
    made: list[float] = []
    monkeypatch.setattr(client_module.time, "sleep", made.append)
    return made


def scripted(*outcomes: httpx.Response | Exception) -> tuple[Client, list[httpx.Request]]:
    """A client whose requests meet these outcomes, one after the other."""
    seen: list[httpx.Request] = []
    left: Iterator[httpx.Response | Exception] = iter(outcomes)

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        outcome = next(left)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return Client("http://server/", "token", transport=httpx.MockTransport(handle)), seen


def test_a_question_is_sent_again_under_its_key(pauses: list[float]) -> None:
    client, seen = scripted(
        httpx.ConnectError("refused"),
        httpx.ReadError("cut off"),
        httpx.Response(503, headers={"Retry-After": "2"}, json={"error": "late", "message": ""}),
        httpx.Response(429, headers={"Retry-After": "9999"}, json={"error": "too_many", "message": ""}),
        httpx.Response(200, json=BODY),
    )
    reply = client.ask("survey", MEAN)
    assert (reply.value, reply.cost, reply.statement) == (1.5, Fraction(1, 2), {"model": "dp"})
    keys = {request.headers["idempotency-key"] for request in seen}
    assert len(seen) == 5
    assert len(keys) == 1
    assert {request.headers["authorization"] for request in seen} == {"Bearer token"}
    assert seen[0].url == "http://server/v1/datasets/survey/answers"
    assert json.loads(seen[0].content) == MEAN
    assert pauses == [0.1, 0.2, 2.0, 30.0]


def test_every_question_has_a_key_of_its_own() -> None:
    client, seen = scripted(*[httpx.Response(200, json=BODY)] * 3)
    client.ask("survey", MEAN)
    client.ask("survey", MEAN)
    client.ask("survey", MEAN, key="mine")
    keys = [request.headers["idempotency-key"] for request in seen]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


def test_a_server_that_stays_away_is_one_sentence(pauses: list[float]) -> None:
    client, seen = scripted(*[httpx.ConnectError("refused")] * 5)
    with pytest.raises(InputError, match="cannot reach the server at http://server/v1/: refused"):
        client.datasets()
    assert len(seen) == 5


def test_a_server_that_stays_busy_is_a_refusal() -> None:
    client, _ = scripted(*[httpx.Response(503, json={"error": "busy", "message": "Busy."})] * 5)
    with pytest.raises(RefusedError, match=r"Busy\.") as refused:
        client.datasets()
    assert refused.value.code == "busy"


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (httpx.Response(200, text="hello"), "not a Shoal query server"),
        (httpx.Response(200, json=[1]), "not a Shoal query server"),
        (httpx.Response(404, text="<html>"), "not a Shoal query server"),
    ],
)
def test_other_servers_are_recognised(response: httpx.Response, said: str) -> None:
    client, _ = scripted(response)
    with pytest.raises(InputError, match=said):
        client.describe("survey")


def test_reasons_and_amounts_are_said() -> None:
    bad = {
        "error": "bad_question",
        "message": "It cannot be asked.",
        "reason": "the data set has no column 'x'.",
    }
    over = {
        "error": "overdrawn",
        "message": "No.",
        "requested": "1/2",
        "remaining": "1/4",
        "missing": "1/4",
        "of": "the data set",
    }
    client, _ = scripted(httpx.Response(422, json=bad), httpx.Response(403, json=over))
    with pytest.raises(RefusedError, match=r"It cannot be asked\. The data set has no column 'x'\."):
        client.ask("survey", MEAN)
    with pytest.raises(
        RefusedError, match=r"Requested 0\.5, remaining 0\.25, missing 0\.25 \(budget of the data set\)"
    ):
        client.ask("survey", MEAN)


def test_an_odd_address_is_refused() -> None:
    with pytest.raises(OptionError, match="invalid server address"):
        Client("http://server:port", "token")


def test_without_httpx_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "httpx", None)
    with pytest.raises(MissingExtraError, match="the client needs the extra 'server': "):
        Client("http://server", "token")


def test_all_operations_reach_a_real_server(server: Any, serve: Callable[..., Any]) -> None:
    with server.client("hilda") as client:
        assert client.datasets() == ["survey"]
        assert client.describe("survey")["dataset"] == "survey"
        assert client.preview("survey", MEAN)["allowed"]
        reply = client.ask("survey", MEAN, key="k")
        assert client.ask("survey", MEAN, key="k").value == reply.value
        assert [entry["key"] for entry in client.answers("survey")] == ["k"]
        assert client.budget("survey")["spent"] == "1/2"
        assert client.ledger("survey")["analysts"] == {"hilda": "1/2"}
