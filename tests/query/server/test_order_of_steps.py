"""Charged before the records are read, stored before it is sent, the same answer for the same key."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from typing import Any

import pytest

from shoal.ledger import Charge
from shoal.ledger.account import canonical
from shoal.query.server import answers
from shoal.query.server.guard import Limits

MEAN = {"kind": "mean", "column": "income", "epsilon": "0.5"}


def kinds(place: Any) -> list[str]:
    """The entries on disk, as another program sees them."""
    with closing(sqlite3.connect(place.folder / "ledger.sqlite")) as connection:
        return [row[0] for row in connection.execute("SELECT kind FROM ledger_entry ORDER BY number")]


def test_the_charge_is_on_disk_when_the_records_are_touched_and_the_answer_when_it_is_sent(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    original = answers.answer

    def watched(query: Any, table: Any) -> Any:
        seen.append(kinds(server.place))
        return original(query, table)

    monkeypatch.setattr(answers, "answer", watched)
    assert server.ask().status_code == 200
    assert seen == [["terms", "charge"]]
    assert kinds(server.place) == ["terms", "charge", "answer"]


def test_a_refused_question_touches_no_record(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "answer", lambda query, table: pytest.fail("records were touched"))
    assert server.ask(MEAN | {"epsilon": "2.5"}).status_code == 403
    assert server.ask({"kind": "mean", "column": "incom", "epsilon": "1"}).status_code == 422
    assert server.raw("POST", "/v1/datasets/survey/preview", json=MEAN).status_code == 200
    assert kinds(server.place) == ["terms"]


def test_the_same_key_pays_once_and_gets_the_same_answer(server: Any) -> None:
    first, again = server.ask(key="k"), server.ask(key="k")
    assert first.status_code == again.status_code == 200
    assert first.json()["answer"] == again.json()["answer"]
    assert [body.json()["receipt"]["repeated"] for body in (first, again)] == [False, True]
    # written differently, it is the same question
    assert server.ask({"epsilon": 0.5, "column": "income", "kind": "mean"}, key="k").json()["receipt"][
        "repeated"
    ]
    assert server.place.spent() == Fraction(1, 2)


def test_a_key_cannot_be_used_for_another_question(server: Any) -> None:
    server.ask(key="k")
    refused = server.ask(MEAN | {"epsilon": "0.25"}, key="k")
    assert refused.status_code == 409
    assert refused.json()["error"] == "key_reused"
    # another analyst may happen to choose the same key
    assert server.ask(key="k", name="ben").json()["receipt"]["repeated"] is False
    assert server.place.spent() == 1


def test_many_at_once_with_one_key_are_one_question(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    original = answers.answer

    def counted(query: Any, table: Any) -> Any:
        calls.append(1)
        return original(query, table)

    monkeypatch.setattr(answers, "answer", counted)
    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(lambda _: server.ask(key="k"), range(12)))
    assert {reply.status_code for reply in replies} == {200}
    assert len({json.dumps(reply.json()["answer"]) for reply in replies}) == 1
    assert server.place.spent() == Fraction(1, 2)
    assert len(calls) == 1


def test_a_key_in_flight_does_not_serve_another_question(
    place: Any, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave, entered = threading.Event(), threading.Event()
    hold_answers(monkeypatch, entered, leave)
    with serve(place) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(server.ask, MEAN, key="k")
        assert entered.wait(300)
        assert server.ask(MEAN | {"epsilon": "0.25"}, key="k").status_code == 409
        leave.set()
        assert first.result().status_code == 200
    assert place.spent() == Fraction(1, 2)


def test_a_charge_cut_off_by_a_crash_is_answered_once_without_paying_again(
    place: Any, serve: Callable[..., Any]
) -> None:
    with serve(place):
        pass
    # as a server leaves it that is killed between charge and answer
    ledger = place.ledger
    content = canonical({"kind": "mean", "column": "income", "epsilon": "0.5"})
    ledger.charge(Charge("survey", "ada", content, Fraction(1, 2), key="k"))
    assert ledger.standing("survey").unanswered == 1
    ledger.close()
    with serve(place) as server:
        listed = server.raw("GET", "/v1/datasets/survey/answers").json()["answers"]
        assert [entry["answer"] for entry in listed] == [None]
        first, again = server.ask(key="k"), server.ask(key="k")
    assert first.json()["receipt"]["repeated"] is True
    assert first.json()["answer"] == again.json()["answer"]
    ledger = place.ledger
    assert ledger.standing("survey").spent == Fraction(1, 2)
    assert ledger.standing("survey").unanswered == 0
    ledger.close()


def test_two_servers_on_one_ledger_give_one_answer(place: Any, serve: Callable[..., Any]) -> None:
    with serve(place) as one, serve(place) as two, ThreadPoolExecutor(8) as pool:
        for number in range(6):
            replies = list(
                pool.map(lambda s, k=f"k{number}": s.ask(MEAN | {"epsilon": "0.1"}, key=k), [one, two] * 4)
            )
            assert len({json.dumps(reply.json()["answer"]) for reply in replies}) == 1
    assert place.spent() == Fraction(6, 10)


def test_a_failure_is_constant_charged_and_final(
    server: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(query: Any, table: Any) -> Any:
        raise ValueError("the income of P000017 is 271828182845.9")

    caplog.set_level("INFO", "shoal.server")
    with monkeypatch.context() as patched:
        patched.setattr(answers, "answer", broken)
        failed = server.ask(key="k")
    assert failed.status_code == 500
    assert failed.json() == {
        "error": "failed",
        "message": "The query could not be answered. If privacy budget was charged for it, it stays charged.",
    }
    assert "ValueError" in caplog.text
    # longer than a number of seconds since 1970, which every line has
    assert "271828182845" not in caplog.text
    # the outcome was stored: a second try with the same key cannot have another one
    assert server.ask(key="k").json() == failed.json()
    assert server.place.spent() == Fraction(1, 2)
    assert server.raw("GET", "/v1/datasets/survey/answers").json()["answers"][0]["answer"] is None


def hold_answers(monkeypatch: pytest.MonkeyPatch, entered: threading.Event, leave: threading.Event) -> None:
    original = answers.answer

    def held(query: Any, table: Any) -> Any:
        entered.set()
        assert leave.wait(300)
        return original(query, table)

    monkeypatch.setattr(answers, "answer", held)


def test_a_late_answer_is_kept_for_the_same_key(
    place: Any, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, leave = threading.Event(), threading.Event()
    hold_answers(monkeypatch, entered, leave)
    with serve(place, Limits(pace=0, rate=0, patience=0.2)) as server:
        late = server.ask(key="k")
        assert (late.status_code, late.json()["error"]) == (503, "late")
        assert late.headers["retry-after"] == "1"
        leave.set()
        with server.client(retries=100) as client:
            assert client.ask("survey", MEAN, key="k").cost == Fraction(1, 2)
    assert place.spent() == Fraction(1, 2)


def test_a_busy_server_turns_away_before_anything_is_paid(
    place: Any, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, leave = threading.Event(), threading.Event()
    hold_answers(monkeypatch, entered, leave)
    with (
        serve(place, Limits(pace=0, rate=0, patience=240, most_waiting=1, workers=1)) as server,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(server.ask)
        assert entered.wait(300)
        busy = server.ask()
        assert (busy.status_code, busy.json()["error"]) == (503, "busy")
        leave.set()
        assert first.result().status_code == 200
    assert place.spent() == Fraction(1, 2)


def test_a_ledger_that_lost_entries_closes_the_server(server: Any) -> None:
    assert server.ask().status_code == 200
    with closing(sqlite3.connect(server.place.folder / "ledger.sqlite")) as connection:
        connection.execute("DROP TRIGGER ledger_entry_no_delete")
        connection.execute("DELETE FROM ledger_entry WHERE number > 1")
        connection.commit()
    closed = server.ask()
    assert (closed.status_code, closed.json()["error"]) == (503, "closed")
    assert server.raw("GET", "/v1/datasets/survey/budget").status_code == 503
    assert server.raw("GET", "/v1/health").status_code == 200
