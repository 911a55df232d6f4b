"""The desk: a priced question comes in, is paid, answered, stored, and only then handed out.

    event loop -> ledger thread: charge, durable -> worker: answer -> ledger thread: store, durable -> event loop

An answer that was not stored was not sent. So a question that is asked again after a crash, under the same key, is
answered anew without paying twice, and never gets two different answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from shoal.query.ledger import Charge, Deposit, GroupCommit, KeyReusedError, Ledger, OverdrawnError, Receipt
from shoal.query.ledger.entry import canonical, fraction_text
from shoal.query.server.problems import Problem

# What is stored for a question that could not be answered: constant, and as final as an answer.
FAILED = canonical({"failed": True})


@dataclass(slots=True, eq=False)
class _Job:
    charge: Charge
    answer: Callable[[], dict[str, Any]]
    waiters: list[asyncio.Future[Receipt]] = field(default_factory=list)
    paid: Receipt | None = None
    result: Receipt | Exception | None = None


class Desk:
    """Answers questions, each of them paid before it is looked at.

    Args:
        ledger: where it is paid and kept.
        workers: threads that compute answers.
        most_waiting: questions that may be on their way at once; further ones are turned away before they pay.
        failed: told about every question that could not be answered; gets the kind of error only.
    """

    def __init__(
        self, ledger: Ledger, workers: int, most_waiting: int, failed: Callable[[str], None] | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._failed = failed or (lambda kind: None)
        self._most_waiting = most_waiting
        self._jobs: dict[tuple[str, str, str], _Job] = {}
        self._count = 0
        self._done: deque[_Job] = deque()
        self._todo: queue.SimpleQueue[tuple[_Job, int] | None] = queue.SimpleQueue()
        self._group = GroupCommit(ledger, after=self._hand_over)
        self._workers = [
            threading.Thread(target=self._work, name=f"shoal-answer-{i}", daemon=True) for i in range(workers)
        ]
        for worker in self._workers:
            worker.start()

    async def ask(self, charge: Charge, answer: Callable[[], dict[str, Any]], patience: float) -> Receipt:
        """Pay a question, answer it, store the answer, and return its receipt.

        Args:
            charge: what it costs.
            answer: computes the answer; called in a worker, once the charge is durable.
            patience: seconds to wait; the question goes on when they are over.

        Raises:
            Problem: refused, or not ready in time.
        """
        name = (charge.dataset, charge.analyst, charge.key)
        job = self._jobs.get(name) if charge.key else None
        if job is None:
            if self._count >= self._most_waiting:
                raise Problem("busy", headers={"Retry-After": "1"})
            job = _Job(charge, answer)
            self._count += 1
            if charge.key:
                self._jobs[name] = job
            self._group.submit(charge, lambda result, job=job: self._charged(job, result))  # type: ignore[misc]
        elif job.charge.content != charge.content:
            raise Problem("key_reused")
        waiter: asyncio.Future[Receipt] = self._loop.create_future()
        job.waiters.append(waiter)
        alarm = self._loop.call_later(patience, _give_up, waiter)
        try:
            return await waiter
        finally:
            alarm.cancel()

    def close(self) -> None:
        """Finish what was begun, then end the threads."""
        for _ in self._workers:
            self._todo.put(None)
        for worker in self._workers:
            worker.join()
        self._group.close()

    def _charged(self, job: _Job, result: Receipt | Exception) -> None:
        """In the ledger thread: paid, refused, or paid before."""
        if isinstance(result, Receipt) and result.answer is None:
            job.paid = result
            self._todo.put((job, result.charge))
        else:
            self._finish(job, result)

    def _work(self) -> None:
        while (task := self._todo.get()) is not None:
            job, number = task
            try:
                # in the order of the answer's own: cells of a histogram stay in theirs
                content = json.dumps(job.answer(), separators=(",", ":"), allow_nan=False)
            except Exception as error:
                # the kind only: a message could hold values
                self._failed(type(error).__name__)
                content = FAILED
            deposit = Deposit(job.charge.dataset, number, job.charge.analyst, content)
            self._group.submit(deposit, lambda result, job=job: self._stored(job, result))  # type: ignore[misc]

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
            self._count -= 1
            if job.charge.key:
                del self._jobs[job.charge.dataset, job.charge.analyst, job.charge.key]
            for waiter in job.waiters:
                if waiter.done():
                    continue
                if isinstance(job.result, Receipt):
                    waiter.set_result(job.result)
                else:
                    waiter.set_exception(_problem(job.result))


def _give_up(waiter: asyncio.Future[Receipt]) -> None:
    if not waiter.done():
        waiter.set_exception(Problem("late", headers={"Retry-After": "1"}))


def _problem(error: Exception | None) -> Problem:
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
    if isinstance(error, KeyReusedError):
        return Problem("key_reused")
    return Problem("closed")
