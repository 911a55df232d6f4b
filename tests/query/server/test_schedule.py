"""Answers are stored and sent at times that follow from public facts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import stat
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from shoal.ledger import Charge, Register, open_ledger
from shoal.query.facts import DatasetFacts, prepare
from shoal.query.price import computing_cost
from shoal.query.server import answers as paid_answers
from shoal.query.server import answers as schedule_module
from shoal.query.server.answers import Departure, PaidAnswers, Schedule, WorkQueue
from shoal.query.server.guard import Limits, RequestProblem
from shoal.query.server.state import FaultFile
from shoal.query.spec import KINDS, parse
from shoal.survey import survey, survey_schema

TABLE = prepare(survey(50), survey_schema())


def clocked(pace: float = 0.1, longest: float = 30.0) -> tuple[Schedule, list[float], list[int]]:
    now, faults = [100.0], []  # type: ignore[var-annotated]
    return Schedule(pace, longest, lambda: now[0], faults.append), now, faults


def test_the_deadline_follows_from_what_is_queued_and_nothing_else() -> None:
    schedule, now, _ = clocked()
    first, second = (schedule.admit("ada", 0.5) for _ in range(2))
    assert (first.ready, second.ready) == (100.5, 101.0)
    # the queue of another analyst is another one, but the machine is shared, and nobody is made late
    assert schedule.admit("ben", 0.5).ready == 101.5
    assert schedule.queued() == 2
    now[0] = 102.0
    # the queues are through, whether or not the work is
    assert schedule.admit("ada", 0.5).ready == 102.5
    assert schedule.queued() == 1


def test_a_full_queue_turns_away_before_anything_is_paid() -> None:
    schedule, _, _ = clocked(longest=2.0)
    # one that takes longer than all may is taken if it is the first
    schedule.admit("ben", 50.0)
    with pytest.raises(RequestProblem) as refused:
        schedule.admit("ada", 0.5)
    assert refused.value.code == "busy"
    assert int(refused.value.headers["Retry-After"]) >= 1


def late_in_the_worst_case(
    admit: Callable[[Schedule, str, float], Departure], questions: list[tuple[float, str, float]]
) -> int:
    """How many are late when every question takes all of its seconds, computed one after the other as the server does.

    Args:
        admit: gives a question its time.
        questions: when each comes, who asks it, and its seconds.
    """
    schedule, now, _ = clocked()
    queue: WorkQueue[tuple[Departure, float]] = WorkQueue()
    coming, free, late = sorted(questions), 0.0, 0
    while coming or queue._ready:
        # the worker begins the next piece when it is free, with those that have come by then
        if not queue._ready:
            free = max(free, coming[0][0])
        while coming and coming[0][0] <= free:
            now[0], analyst, seconds = coming.pop(0)
            with contextlib.suppress(RequestProblem):
                departure = admit(schedule, analyst, seconds)
                queue.put(analyst, (departure, seconds), departure.ready)
        if queue._ready:
            task = queue.take()
            assert task is not None
            name, (departure, seconds) = task
            free += seconds
            late += free > departure.ready + 1e-9
            queue.done(name)
    return late


def without_admission_control() -> Callable[[Schedule, str, float], Departure]:
    """As times were given before: the analysts of the moment share the machine, whoever comes later."""
    ends: dict[str, float] = {}

    def admit(schedule: Schedule, analyst: str, seconds: float) -> Departure:
        now = schedule._clock()
        for name in [name for name, end in ends.items() if end <= now]:
            del ends[name]
        ends[analyst] = max(now, ends.get(analyst, now)) + seconds * len(ends.keys() | {analyst})
        return Departure(ends[analyst], 0.1, analyst)

    return admit


@pytest.mark.parametrize("seed", range(20))
def test_under_load_fewer_questions_are_admitted_and_none_is_late(seed: int) -> None:
    pick = random.Random(seed)
    sizes = (0.005, 0.01, 0.05, 0.3)
    questions = [(100 + pick.uniform(0, 10), f"a{pick.randrange(6)}", pick.choice(sizes)) for _ in range(150)]
    assert late_in_the_worst_case(Schedule.admit, questions) == 0
    assert late_in_the_worst_case(without_admission_control(), questions) > 0


def test_one_who_comes_later_does_not_wait_for_all_of_a_long_queue() -> None:
    schedule, _, _ = clocked()
    admitted = 0
    with contextlib.suppress(RequestProblem):
        while schedule.admit("ada", 0.1):
            admitted += 1
    assert admitted > 100
    assert schedule.admit("ben", 0.1).ready - 100 < 3


@pytest.mark.parametrize(
    ("now", "paces"), [(100.5, 0), (100.55, 0), (100.56, 1), (100.64, 1), (100.66, 2), (101.36, 16)]
)
def test_a_missed_slot_is_a_fault_and_the_whole_queue_waits_for_a_power_of_two(
    now: float, paces: int
) -> None:
    schedule, clock, faults = clocked()
    first, second, third = (schedule.admit("ada", seconds) for seconds in (0.5, 0.01, 3.0))
    other = schedule.admit("ben", 0.01)
    planned = other.sent
    clock[0] = now
    schedule.done(first)
    assert faults == [paces] * (paces > 0)
    assert schedule.punctuality.late == len(faults)
    assert first.sent == pytest.approx(100.6 + 0.1 * paces)
    assert second.sent == pytest.approx(max(100.61, first.sent))
    assert third.sent == pytest.approx(103.61)
    # nothing that comes after leaves before
    assert schedule.admit("ada", 0.01).sent >= third.sent
    assert other.sent == planned


def test_answers_that_could_not_be_stored_in_time_are_faults_too(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    schedule, now, faults = clocked()

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 6))
        now[0] += seconds

    monkeypatch.setattr(schedule_module.asyncio, "sleep", sleep)
    punctual, late = schedule.admit("ada", 1.0), schedule.admit("ada", 1.0)
    now[0] = 101.05
    asyncio.run(schedule.leave(punctual))
    assert (schedule.punctuality.answers, faults, slept) == (1, [], [0.05])
    now[0] = 102.25
    asyncio.run(schedule.leave(late))
    assert (schedule.punctuality.answers, faults) == (2, [2])
    assert slept[-1] == pytest.approx(0.05)


def test_without_a_pace_answers_leave_at_once() -> None:
    schedule, now, faults = clocked(pace=0)
    departure = schedule.admit("ada", 5.0)
    assert departure.sent == now[0]
    now[0] += 50
    schedule.done(departure)
    assert not faults


def test_faults_are_kept_and_end_the_claim(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = FaultFile(tmp_path / "timing.faults")
    assert (file.claim(0.1), file.claim(0)) == ("holds", "none")
    file.note(4)
    assert file.claim(0.1) == "lapsed"
    again = FaultFile(tmp_path / "timing.faults")
    assert (again.claim(0.1), again.count, again.last) == ("lapsed", 1, file.last)
    assert stat.S_IMODE((tmp_path / "timing.faults").stat().st_mode) == 0o600
    assert [json.loads(record.getMessage())["event"] for record in caplog.records] == ["late"]


def test_the_time_allowed_is_the_same_for_nobody_and_everybody() -> None:
    def allowed(age: int) -> float:
        where = {"column": "age", "op": ">", "value": age}
        return computing_cost(
            parse({"kind": "mean", "column": "income", "epsilon": 1, "where": where}, TABLE.facts), 50
        )

    assert allowed(98) == allowed(18)
    assert computing_cost(parse({"kind": "count", "epsilon": 1}, TABLE.facts), 10**6) > allowed(18)


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
    facts: DatasetFacts = TABLE.facts
    for kind, more in options.items():
        paid = {} if kind == "protocol-1" else {"epsilon": "0.5"}
        query = parse({"kind": kind, **paid, **more}, facts)
        assert 0 < computing_cost(query, 1000) < computing_cost(query, 10**7), kind


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
        # on a machine with other work some may have been late, and then it says so
        assert status["timing"] == ("lapsed" if status["late"] else "holds")
        assert status["faults"] == status["late"]
    assert place.spent() == Fraction(4, 5)


def test_what_cannot_be_said_does_not_keep_others_waiting(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(value: Fraction) -> str:
        raise ValueError("Exceeds the limit (4300 digits) for integer string conversion")

    monkeypatch.setattr(paid_answers, "fraction_text", broken)
    assert server.ask({"kind": "mean", "column": "income", "epsilon": "9"}).status_code == 500
    assert server.ask().status_code == 200


def test_an_answer_that_was_due_long_before_the_first_found_late_waits_on_its_grid() -> None:
    now, faults = [0.0], []
    schedule = Schedule(1.0, 100.0, lambda: now[0], faults.append)
    overdue = schedule.admit("ada", 0.5)
    now[0] = 10.0
    late = schedule.admit("ada", 0.5)
    assert (overdue.ready, late.ready) == (0.5, 10.5)
    now[0] = 11.2
    schedule.done(late)
    schedule._check(overdue, overdue.sent)
    assert overdue.ready == late.ready == 11.5
    assert faults == [1, 1]
