"""Answers that are paid for: a priced question comes in, is charged, answered, stored, and only then handed out.

    event loop -> ledger thread: charge, durable -> worker: answer -> ledger thread: store, durable -> event loop

An answer that was not stored was not sent. So a question that is asked again after a crash, under the same key, is
answered anew without paying twice, and never gets two different answers. An answer is stored at the time that the
schedule gives it, not when it is ready: the order of entries and the list of stored answers would tell when that was.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from shoal.ledger import (
    Charge,
    Deposit,
    GroupCommit,
    KeyReusedError,
    Ledger,
    OverdrawnError,
    QuotaError,
    Receipt,
)
from shoal.ledger.entry import UnpricedError, canonical, fraction_text
from shoal.query.server.problems import Problem
from shoal.query.server.schedule import Departure, Schedule
from shoal.query.server.work_queue import WorkQueue

# What is stored for a question that could not be answered: constant, and as final as an answer.
FAILED = canonical({"failed": True})
# How often a price is computed anew because others asked meanwhile; then the question pays its own price.
_TRIES = 5
_PRICING_THREADS = 1


@dataclass(slots=True, eq=False)
class _Job:
    charge: Charge
    answer: Callable[[], dict[str, Any]]
    departure: Departure
    waiters: list[asyncio.Future[Receipt]] = field(default_factory=list)
    paid: Receipt | None = None
    content: str = ""
    result: Receipt | Exception | None = None


class PaidAnswers:
    """Answers questions, each of them paid before it is looked at.

    Args:
        ledger: where it is paid and kept.
        schedule: when answers leave.
        workers: threads that compute answers.
        most_waiting: questions that may be on their way at once; further ones are turned away before they pay.
        most_queued: likewise, of one analyst.
        failed: told about every question that could not be answered; gets the kind of error only.
        noted: called after each transaction, before any of its results is handed out.
    """

    def __init__(
        self,
        ledger: Ledger,
        schedule: Schedule,
        workers: int,
        most_waiting: int,
        most_queued: int,
        failed: Callable[[str], None] | None = None,
        noted: Callable[[], None] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._ledger, self._schedule = ledger, schedule
        self._failed = failed or (lambda kind: None)
        self._most_waiting, self._most_queued = most_waiting, most_queued
        self._jobs: dict[tuple[str, str, str], _Job] = {}
        self._counts: Counter[str] = Counter()
        self._done: deque[_Job] = deque()
        self._held: set[_Job] = set()
        self._queue: WorkQueue[_Job] = WorkQueue()
        self._pricing = ThreadPoolExecutor(_PRICING_THREADS, "shoal-price")
        self._prices: dict[str, asyncio.Lock] = {}
        self.group = self._group = GroupCommit(ledger, noted=noted, after=self._hand_over)
        self._workers = [
            threading.Thread(target=self._work, name=f"shoal-answer-{i}", daemon=True) for i in range(workers)
        ]
        for worker in self._workers:
            worker.start()

    async def ask(
        self, charge: Charge, answer: Callable[[], dict[str, Any]], seconds: float, patience: float
    ) -> tuple[Receipt | Problem, Departure]:
        """Pay a question, answer it, store the answer; its receipt or refusal, and when that may be sent.

        Args:
            charge: what it costs.
            answer: computes the answer; called in a worker, once the charge is durable.
            seconds: how long that may take, from public facts.
            patience: seconds to wait after it should be ready; the question goes on when they are over.

        Raises:
            Problem: refused for a public reason, at once.
        """
        for left in range(_TRIES, -1, -1):
            priced = await self._priced(charge, own=not left)
            job, departure = self._admitted(priced, answer, seconds)
            waiter: asyncio.Future[Receipt] = self._loop.create_future()
            job.waiters.append(waiter)
            overdue = departure.sent - self._loop.time() + patience
            alarm = self._loop.call_later(overdue, _give_up, waiter)
            try:
                return await waiter, departure
            except Problem as refusal:
                return refusal, departure
            except UnpricedError:
                continue
            finally:
                alarm.cancel()
        raise AssertionError("unreachable: a question that pays its own price has one")

    async def _priced(self, charge: Charge, *, own: bool) -> Charge:
        """The charge with what it adds, computed here and not while the ledger is locked; one per analyst at a time."""
        if charge.joint is None:
            return charge
        if own:
            return replace(charge, joint=None)
        async with self._price_lock(charge.analyst):
            return await self._loop.run_in_executor(self._pricing, self._ledger.priced, charge)

    def _price_lock(self, analyst: str) -> asyncio.Lock:
        return self._prices.setdefault(analyst, asyncio.Lock())

    def _admitted(
        self, charge: Charge, answer: Callable[[], dict[str, Any]], seconds: float
    ) -> tuple[_Job, Departure]:
        """The job of a question, new or on its way under the same key, and when the answer may be sent."""
        name = (charge.dataset, charge.analyst, charge.key)
        job = self._jobs.get(name) if charge.key else None
        if job is not None and job.charge.content != charge.content:
            raise Problem("key_reused")
        if job is None and (
            self._counts.total() >= self._most_waiting or self._counts[charge.analyst] >= self._most_queued
        ):
            raise Problem("busy", headers={"Retry-After": "1"})
        departure = self._schedule.admit(charge.analyst, seconds)
        if job is None:
            job = _Job(charge, answer, departure)
            self._counts[charge.analyst] += 1
            if charge.key:
                self._jobs[name] = job
            self._group.submit(charge, lambda result, job=job: self._charged(job, result))  # type: ignore[misc]
        return job, departure

    def close(self) -> None:
        """Finish what was begun, then end the threads."""
        self._queue.close()
        for worker in self._workers:
            worker.join()
        self._pricing.shutdown()
        for job in list(self._held):
            self._store(job)
        self._group.close()

    def _charged(self, job: _Job, result: Receipt | Exception) -> None:
        """In the ledger thread: paid, refused, or paid before."""
        if isinstance(result, Receipt) and result.answer is None:
            job.paid = result
            self._queue.put(job.charge.analyst, job, job.departure.ready)
        else:
            self._finish(job, result)

    def _work(self) -> None:
        while (task := self._queue.take()) is not None:
            name, job = task
            try:
                # in the order of the answer's own: cells of a histogram stay in theirs
                job.content = json.dumps(job.answer(), separators=(",", ":"), allow_nan=False)
            except Exception as error:
                # the kind only: a message could hold values
                self._failed(type(error).__name__)
                job.content = FAILED
            finally:
                self._queue.done(name)
            self._held.add(job)
            if job.departure.pace:
                # nobody waits any more once the loop is closed; what is held is stored by `close`
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._hold, job)
            else:
                self._store(job)

    def _hold(self, job: _Job) -> None:
        """In the event loop: keep an answer until it is time to store it."""
        self._schedule.done(job.departure)
        self._store_in_time(job)

    def _store_in_time(self, job: _Job) -> None:
        # an answer before it in the queue that is late moves it while it waits
        if job.departure.stored > self._loop.time():
            self._loop.call_at(job.departure.stored, self._store_in_time, job)
        else:
            self._store(job)

    def _store(self, job: _Job) -> None:
        if job not in self._held or job.paid is None:
            return
        self._held.discard(job)
        deposit = Deposit(job.charge.dataset, job.paid.charge, job.charge.analyst, job.content)
        self._group.submit(deposit, lambda result: self._stored(job, result))

    def _stored(self, job: _Job, result: Receipt | Exception) -> None:
        if isinstance(result, Receipt) and job.paid is not None:
            result = replace(job.paid, answer=result.answer, head=result.head)
        self._finish(job, result)

    def _finish(self, job: _Job, result: Receipt | Exception) -> None:
        job.result = result
        self._done.append(job)

    def _hand_over(self) -> None:
        """After each transaction, wake the event loop once for all that it finished."""
        if self._done:
            # nobody waits any more once the loop is closed; what was written stays written
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        while self._done:
            job = self._done.popleft()
            self._counts[job.charge.analyst] -= 1
            self._counts += Counter()  # forget those who have nothing on its way
            if job.charge.key:
                self._jobs.pop((job.charge.dataset, job.charge.analyst, job.charge.key), None)
            try:
                outcome = job.result if isinstance(job.result, Receipt) else _problem(job.result)
            except Exception:
                # whatever cannot be said must not keep the others waiting
                outcome = Problem("failed")
            for waiter in job.waiters:
                if waiter.done():
                    continue
                if isinstance(outcome, Receipt):
                    waiter.set_result(outcome)
                else:
                    waiter.set_exception(outcome)


def _give_up(waiter: asyncio.Future[Receipt]) -> None:
    if not waiter.done():
        waiter.set_exception(Problem("late", headers={"Retry-After": "1"}))


def _problem(error: Exception | None) -> Problem | UnpricedError:
    if isinstance(error, UnpricedError):
        return error
    if isinstance(error, OverdrawnError):
        return Problem(
            "overdrawn",
            {
                "of": error.of,
                "what": error.what,
                "requested": fraction_text(error.requested),
                "remaining": fraction_text(error.remaining),
                "missing": fraction_text(error.requested - error.remaining),
            },
        )
    if isinstance(error, QuotaError):
        return Problem("full")
    if isinstance(error, KeyReusedError):
        return Problem("key_reused")
    return Problem("closed")
