"""Answers leave at times that follow from public facts, and are stored at such times, too."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from shoal.ledger import Charge, Register, open_ledger
from shoal.query.effort import effort
from shoal.query.facts import Facts, prepare
from shoal.query.server import paid_answers
from shoal.query.server import schedule as schedule_module
from shoal.query.server.guard import Limits
from shoal.query.server.paid_answers import PaidAnswers
from shoal.query.server.problems import Problem
from shoal.query.server.schedule import Departure, Schedule
from shoal.query.server.work_queue import WorkQueue
from shoal.query.spec import KINDS, parse
from shoal.survey import survey, survey_schema

TABLE = prepare(survey(50), survey_schema())


def clocked(pace: float = 0.1, longest: float = 30.0) -> tuple[Schedule, list[float]]:
    now = [100.0]
    return Schedule(pace, longest, lambda: now[0]), now


def test_the_deadline_follows_from_what_is_queued_and_nothing_else() -> None:
    schedule, now = clocked()
    first, second = (schedule.admit("ada", 0.5) for _ in range(2))
    assert (first.ready, second.ready) == (100.5, 101.0)
    # the queue of another analyst is another one, but the machine is shared
    assert schedule.admit("ben", 0.5).ready == 101.0
    assert schedule.queued() == 2
    now[0] = 101.5
    # the queues are through, whether or not the work is
    assert schedule.admit("ada", 0.5).ready == 102.0
    assert schedule.queued() == 1


def test_a_full_queue_turns_away_before_anything_is_paid() -> None:
    schedule, _ = clocked(longest=2.0)
    # one that takes longer than all may is taken if it is the first
    schedule.admit("ben", 50.0)
    for _ in range(2):
        schedule.admit("ada", 0.5)
    with pytest.raises(Problem) as refused:
        schedule.admit("ada", 0.5)
    assert refused.value.code == "busy"
    assert int(refused.value.headers["Retry-After"]) >= 1


@pytest.mark.parametrize(
    ("now", "stored", "sent"), [(9.0, 10.0, 10.5), (10.0, 10.0, 10.5), (10.1, 10.5, 10.5), (10.7, 11.0, 11.0)]
)
def test_what_is_not_ready_waits_for_the_next_slot(now: float, stored: float, sent: float) -> None:
    departure = Departure(10.0, 0.5)
    assert departure.slot(now) == stored
    assert departure.slot(now, first=1) == sent


def test_without_a_pace_answers_leave_at_once() -> None:
    schedule, now = clocked(pace=0)
    departure = schedule.admit("ada", 5.0)
    assert departure.slot(now[0] + 1) == now[0] + 1


def test_late_answers_are_counted_and_alarmed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 6))

    monkeypatch.setattr(schedule_module.asyncio, "sleep", sleep)
    schedule, now = clocked()
    punctual, late = schedule.admit("ada", 1.0), schedule.admit("ada", 1.0)
    now[0] = 101.05
    asyncio.run(schedule.leave(punctual))
    assert (schedule.punctuality.answers, schedule.punctuality.late) == (1, 0)
    now[0] = 102.25
    asyncio.run(schedule.leave(late))
    assert (schedule.punctuality.answers, schedule.punctuality.late) == (2, 1)
    assert slept == [0.05, 0.05]
    assert [json.loads(record.getMessage())["event"] for record in caplog.records] == ["late"]


def test_the_time_allowed_is_the_same_for_nobody_and_everybody() -> None:
    def allowed(age: int) -> float:
        where = {"column": "age", "op": ">", "value": age}
        return effort(
            parse({"kind": "mean", "column": "income", "epsilon": 1, "where": where}, TABLE.facts), 50
        )

    assert allowed(98) == allowed(18)
    assert effort(parse({"kind": "count", "epsilon": 1}, TABLE.facts), 10**6) > allowed(18)


def test_every_kind_has_a_time() -> None:
    options: dict[str, dict[str, Any]] = {
        "count": {},
        "sum": {"column": "income"},
        "mean": {"column": "income"},
        "histogram": {"column": "income", "edges": [0, 10, 20]},
        "quantile": {"column": "income", "q": "0.5"},
        "ranking-means": {"column": "income", "k": 5},
        "individual": {"key": {"column": "person_id", "value": "1"}, "column": "age"},
        "statistical": {"statistic": {"kind": "mean", "column": "age"}},
        "protocol-1": {"scale": 2, "query": {"kind": "sum", "column": "income"}},
        "protocol-2": {"query": {"kind": "statistical", "statistic": {"kind": "mean", "column": "age"}}},
    }
    assert set(options) == set(KINDS)
    facts: Facts = TABLE.facts
    for kind, more in options.items():
        paid = {} if kind == "protocol-1" else {"epsilon": "0.5"}
        query = parse({"kind": kind, **paid, **more}, facts)
        assert 0 < effort(query, 1000) < effort(query, 10**7), kind


def test_one_queue_for_each_analyst() -> None:
    """Nobody's second piece is worked on beside the first, and nobody waits for all of another's."""
    queue: WorkQueue[int] = WorkQueue()
    for piece in range(3):
        queue.put("ada", piece)
    queue.put("ben", 9)
    assert queue.take() == ("ada", 0)
    assert queue.take() == ("ben", 9)
    taken: list[Any] = []
    waiting = threading.Thread(target=lambda: taken.append(queue.take()))
    waiting.start()
    assert not taken
    queue.done("ada")
    waiting.join()
    assert taken == [("ada", 1)]
    queue.done("ada")
    queue.close()
    assert queue.take() == ("ada", 2)
    queue.done("ada")
    assert queue.take() is None


def test_an_answer_that_is_ready_is_not_stored_before_its_time(tmp_path: Path) -> None:
    """The list of stored answers, and the numbers of entries, would tell when it was ready."""
    ledger = open_ledger(tmp_path / "ledger.sqlite")
    ledger.register(Register("people", "replace-one", Fraction(1)))
    computed = threading.Event()

    def answer() -> dict[str, Any]:
        computed.set()
        return {"value": 1}

    def kinds() -> list[str]:
        return [entry.kind for entry in ledger.entries("people")]

    async def ask() -> None:
        answers = PaidAnswers(ledger, Schedule(1000.0, 30.0), 1, 10, 10)
        task = asyncio.create_task(
            answers.ask(Charge("people", "ada", "{}", Fraction(1, 2)), answer, 1000.0, 1000.0)
        )
        assert await asyncio.to_thread(computed.wait, 300)
        while not answers._held:
            await asyncio.sleep(0)
        assert kinds() == ["terms", "charge"]
        task.cancel()
        # what was begun is finished when the server ends
        await asyncio.to_thread(answers.close)

    asyncio.run(ask())
    assert kinds() == ["terms", "charge", "answer"]
    ledger.close()


def test_answers_leave_with_a_pace_and_the_holder_sees_how_many(
    place: Any, serve: Callable[..., Any]
) -> None:
    with serve(place, Limits(pace=0.02, rate=0)) as server, server.client() as client:
        assert client.ask("survey", {"kind": "mean", "column": "income", "epsilon": "0.5"}).cost > 0
        questions = [{"kind": "count", "epsilon": "0.1", "where": {"column": "age", "op": ">", "value": 30}}]
        assert all(reply.cost for reply in client.ask_many("survey", questions * 3))
        assert server.raw("GET", "/v1/status").status_code == 403
        status = server.raw("GET", "/v1/status", "hilda").json()
        assert status["answers"] == 2
        assert status["pace"] == 0.02
    assert place.spent() == Fraction(4, 5)


def test_what_cannot_be_said_does_not_keep_others_waiting(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(value: Fraction) -> str:
        raise ValueError("Exceeds the limit (4300 digits) for integer string conversion")

    monkeypatch.setattr(paid_answers, "fraction_text", broken)
    assert server.ask({"kind": "mean", "column": "income", "epsilon": "9"}).status_code == 500
    assert server.ask().status_code == 200
