"""Answers that cost budget: charge, compute, store and send on schedule.

event loop -> ledger thread: charge, durable -> worker: answer -> ledger thread: store, durable -> event loop

An answer that was not stored was not sent. A question repeated after a crash, under the same key, is
answered anew without a second charge, and never gets two different answers. An answer is stored at its scheduled
time, not when it is ready: the order of entries and the list of stored answers would otherwise reveal when that was.

Everything here works on the public facts of a data set; only the function passed to the worker reads its records.

Every analyst has a queue. A question is scheduled for the time by which the server finishes it if every question takes
its full allowance, those of other analysts included; work is done in the order of these times. Its answer is
stored half a pace later and sent after another half, however soon the work was done. Whether work was done in time
depends on records, so it affects no other question, with one exception: an answer that was not ready. That is
a recorded fault, and the answer waits with the analyst's whole queue for the next time on a coarse grid, a power of two
of the pace later.

Batches without an order of their own take turns, so that nobody waits for the rest of another's queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import threading
import time
from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush
from itertools import count
from typing import Any, Generic, TypeVar

from shoal.errors import OptionError, ShoalError
from shoal.ledger import (
    Charge,
    Deposit,
    GroupCommit,
    KeyReusedError,
    Ledger,
    OverdrawnError,
    QuotaError,
    Receipt,
    UnpricedError,
    canonical,
    fraction_text,
    rounded_up,
)
from shoal.noise import shown
from shoal.numbers import decimal_text
from shoal.query.price import charge as price
from shoal.query.price import computing_cost, protocol_1_total
from shoal.query.server.folder import Served
from shoal.query.server.guard import RequestProblem
from shoal.query.spec import Query, answer, parse, preview
from shoal.text import Message

_NEAR_SECONDS = 2.0
Piece = TypeVar("Piece")
# What is stored for a question that could not be answered: constant, and as final as an answer.
FAILED = canonical({"failed": True})
# How often a price is recomputed because of concurrent questions; after that the question pays its separate price.
_TRIES = 5
_PRICING_THREADS = 1
# Protocol 1 of the thesis: questions with the same noise are priced by their joint sensitivity.
_TOGETHER = "protocol-1"
_QUICK_BYTES = 2048
_STATEMENT_BYTES, _CELL_BYTES = 1500, 40
MOST_AT_ONCE = 100
# prices questions jointly, which can take long, and counts the time
Meter = Callable[[Callable[[], Fraction]], Fraction]


@dataclass(slots=True, eq=False)
class Departure:
    """When an answer is scheduled to be computed (`ready`), stored and sent; a pace of 0 means at once.

    >>> departure = Departure(10.0, 0.5)
    >>> departure.stored, departure.sent
    (10.25, 10.5)
    """

    ready: float
    pace: float
    analyst: str = ""

    @property
    def stored(self) -> float:
        return self.ready + self.pace / 2

    @property
    def sent(self) -> float:
        return self.ready + self.pace


@dataclass(slots=True)
class Punctuality:
    """Number of answers sent, and of those that could not be sent on time; for the custodian only."""

    answers: int = 0
    late: int = 0


@dataclass(order=True, slots=True)
class _Planned:
    """A scheduled question: its time, the seconds remaining, and its total seconds."""

    ready: float
    left: float = field(compare=False)
    seconds: float = field(compare=False)


class Schedule:
    """The queues of all analysts, in terms of the time that questions are allowed to take.

    Args:
        pace: seconds between two times at which an answer may be sent; 0 sends answers at once.
        longest: seconds that an analyst's queue may extend into the future.
        clock: the time in seconds.
        fault: called for every missed time, with the number of paces it was moved; a power of two.
    """

    def __init__(
        self,
        pace: float,
        longest: float,
        clock: Callable[[], float] = time.monotonic,
        fault: Callable[[int], None] | None = None,
    ) -> None:
        self.pace, self._longest, self._clock = pace, longest, clock
        self._fault = fault or (lambda paces: None)
        self._ends: dict[str, float] = {}
        self._open: dict[str, list[Departure]] = {}
        # when the first late answer of a queue was due
        self._origins: dict[str, float] = {}
        # remaining work if every question takes all of its time, in the order of the work
        self._plan: list[_Planned] = []
        self._planned = -math.inf
        self.punctuality = Punctuality()

    def admit(self, analyst: str, seconds: float) -> Departure:
        """Queue a question that may take the given number of seconds.

        Analysts being served share the machine, so each is allowed proportionally more time. If even then
        the question or one admitted before could not be answered in time, it is scheduled later.

        Raises:
            Problem: that would be too late; no budget was used.
        """
        now = self._clock()
        if not self.pace:
            return Departure(now, 0.0, analyst)
        self._advance(now)
        self._ends = {name: end for name, end in self._ends.items() if end > now}
        self._origins = {name: origin for name, origin in self._origins.items() if name in self._ends}
        begins = max(now, self._ends.get(analyst, now))
        # of later times a share is reserved for new analysts
        sharing = len(self._ends.keys() | {analyst}) + (begins - now > _NEAR_SECONDS)
        ready = self._first_free(begins + seconds * sharing, seconds, now)
        # the first question is accepted however long it may take
        if ready - now > self._longest and self._plan:
            wait = math.ceil(ready - now - self._longest)
            raise RequestProblem("busy", headers={"Retry-After": str(max(wait, 1))})
        insort(self._plan, _Planned(ready, seconds, seconds))
        self._ends[analyst] = ready
        departure = Departure(ready, self.pace, analyst)
        self._open.setdefault(analyst, []).append(departure)
        return departure

    def _advance(self, now: float) -> None:
        """Advance the plan as if every question took all of its seconds."""
        passed, self._planned = now - self._planned, now
        for question in self._plan:
            done = min(question.left, passed)
            question.left -= done
            passed -= done
        self._plan = [question for question in self._plan if question.left > 0 and question.ready > now]
        waiting = {name: [one for one in queue if one.sent > now] for name, queue in self._open.items()}
        self._open = {name: queue for name, queue in waiting.items() if queue}

    def _first_free(self, earliest: float, seconds: float, now: float) -> float:
        """The first time by which a question can be finished without making another one late.

        Up to any time, the seconds of all questions due by then must fit, and before them the longest of
        those due later: it may have been started.
        """
        size = len(self._plan)
        # over the questions from each place on: the longest, and the least slack
        longest, spare = [0.0] * (size + 1), [math.inf] * (size + 1)
        before = sum(question.left for question in self._plan)
        for place in range(size - 1, -1, -1):
            question = self._plan[place]
            spare[place] = min(spare[place + 1], question.ready - now - before - longest[place + 1])
            longest[place] = max(longest[place + 1], question.seconds)
            before -= question.left
        due = 0.0
        for place in range(size + 1):
            ready = max(earliest, now + due + seconds + longest[place])
            if place == size or (ready < self._plan[place].ready and spare[place] >= seconds):
                return ready
            due += self._plan[place].left
            earliest = max(earliest, self._plan[place].ready)
        raise AssertionError("unreachable: after all others there is always room")

    def queued(self) -> int:
        """Number of analysts with a question in progress."""
        now = self._clock()
        return sum(end > now for end in self._ends.values())

    def done(self, departure: Departure) -> None:
        """The answer was computed: a fault if it should have been stored before; the whole queue then waits."""
        self._check(departure, departure.stored)

    def _check(self, departure: Departure, due: float) -> None:
        now = self._clock()
        if not departure.pace or now <= due:
            return
        # counted from the first late answer, so that several do not add up to a finer grid
        origin = self._origins.setdefault(departure.analyst, departure.ready)
        # an answer due before the first late one can be sent before that one was due
        behind = max(now - due + departure.ready - origin, self.pace)
        paces = 1 << max(math.ceil(math.log2(behind / self.pace)), 0)
        self.punctuality.late += 1
        self._fault(paces)
        later = origin + paces * self.pace
        for queued in self._open.get(departure.analyst, ()):
            queued.ready = max(queued.ready, later)
        departure.ready = max(departure.ready, later)
        self._ends[departure.analyst] = max(self._ends.get(departure.analyst, later), later)

    async def leave(self, departure: Departure) -> None:
        """Wait until an answer may be sent."""
        self.punctuality.answers += 1
        if departure.pace:
            self._check(departure, departure.sent)
            # queued questions before it may move it while it waits
            while (left := departure.sent - self._clock()) > 0:
                await asyncio.sleep(left)


class WorkQueue(Generic[Piece]):
    """Queues emptied by any number of threads.

    >>> queue = WorkQueue[int]()
    >>> for name, piece in (("ada", 1), ("ada", 2), ("ben", 3)):
    ...     queue.put(name, piece)
    >>> first, second = queue.take(), queue.take()
    >>> first, second
    (('ada', 1), ('ben', 3))
    >>> queue.done("ada"); queue.close()
    >>> queue.take()
    ('ada', 2)
    """

    def __init__(self) -> None:
        self._queues: dict[str, deque[tuple[float, Piece]]] = {}
        # the names whose first item can be taken, by its order and then by turn
        self._ready: list[tuple[float, int, str]] = []
        self._turns = count()
        self._busy: set[str] = set()
        self._closed = False
        self._changed = threading.Condition()

    def put(self, name: str, piece: Piece, order: float = 0.0) -> None:
        """Append an item to a queue."""
        with self._changed:
            queue = self._queues.setdefault(name, deque())
            queue.append((order, piece))
            if len(queue) == 1 and name not in self._busy:
                self._offer(name)

    def take(self) -> tuple[str, Piece] | None:
        """The next item, once there is one; `done` must follow. None when the queues are empty after `close`."""
        with self._changed:
            while not self._ready:
                if self._closed and not self._queues:
                    return None
                self._changed.wait()
            _, _, name = heappop(self._ready)
            self._busy.add(name)
            queue = self._queues[name]
            _, piece = queue.popleft()
            if not queue:
                del self._queues[name]
            return name, piece

    def done(self, name: str) -> None:
        """Allow the next item of this queue to be taken."""
        with self._changed:
            self._busy.discard(name)
            if name in self._queues:
                self._offer(name)
            elif self._closed:
                self._changed.notify_all()

    def waiting(self, name: str) -> int:
        """Number of items of one queue that were not taken yet."""
        with self._changed:
            return len(self._queues.get(name, ()))

    def close(self) -> None:
        """Accept no more items."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _offer(self, name: str) -> None:
        heappush(self._ready, (self._queues[name][0][0], next(self._turns), name))
        self._changed.notify()


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
    """Answers questions, each of them charged before any record is read.

    Args:
        ledger: where charges and answers are recorded.
        schedule: when answers are sent.
        workers: threads that compute answers.
        most_waiting: questions in progress at once; further ones are refused before they are charged.
        most_queued: the same, for one analyst.
        failed: called for every question that could not be answered, with the kind of error only.
        noted: called after each transaction, before any of its results is sent.
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
    ) -> tuple[Receipt | RequestProblem, Departure]:
        """Charge a question, answer it, and store the answer; return its receipt or refusal, and when that may be sent.

        Args:
            charge: its cost.
            answer: computes the answer; called in a worker, once the charge is durable.
            seconds: how long that may take, from public facts.
            patience: seconds to wait after it should be ready; the question continues when they have passed.

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
            except RequestProblem as refusal:
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
        """The job of a question, new or in progress under the same key, and when the answer may be sent."""
        name = (charge.dataset, charge.analyst, charge.key)
        job = self._jobs.get(name) if charge.key else None
        if job is not None and job.charge.content != charge.content:
            raise RequestProblem("key_reused")
        if job is None and (
            self._counts.total() >= self._most_waiting or self._counts[charge.analyst] >= self._most_queued
        ):
            raise RequestProblem("busy", headers={"Retry-After": "1"})
        departure = self._schedule.admit(charge.analyst, seconds)
        if job is None:
            job = _Job(charge, answer, departure)
            self._counts[charge.analyst] += 1
            if charge.key:
                self._jobs[name] = job
            self._group.submit(charge, lambda result, job=job: self._charged(job, result))  # type: ignore[misc]
        return job, departure

    def close(self) -> None:
        """Finish work in progress, then stop the threads."""
        self._queue.close()
        for worker in self._workers:
            worker.join()
        self._pricing.shutdown()
        for job in list(self._held):
            self._store(job)
        self._group.close()

    def _charged(self, job: _Job, result: Receipt | Exception) -> None:
        """In the ledger thread: charge, refuse, or find the earlier charge."""
        if isinstance(result, Receipt) and result.answer is None:
            job.paid = result
            self._queue.put(job.charge.analyst, job, job.departure.ready)
        else:
            self._finish(job, result)

    def _work(self) -> None:
        while (task := self._queue.take()) is not None:
            name, job = task
            try:
                # in the answer's own order: cells of a histogram stay in theirs
                job.content = json.dumps(job.answer(), separators=(",", ":"), allow_nan=False)
            except Exception as error:
                # the kind only: a message could hold values
                self._failed(type(error).__name__)
                job.content = FAILED
            finally:
                self._queue.done(name)
            self._held.add(job)
            if job.departure.pace:
                # nobody waits once the loop is closed; held answers are stored by `close`
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._hold, job)
            else:
                self._store(job)

    def _hold(self, job: _Job) -> None:
        """In the event loop: hold an answer until it is time to store it."""
        self._schedule.done(job.departure)
        self._store_in_time(job)

    def _store_in_time(self, job: _Job) -> None:
        # a late answer before it in the queue delays it while it waits
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
        """After each transaction, wake the event loop once for everything that finished."""
        if self._done:
            # nobody waits once the loop is closed; what was written stays written
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        while self._done:
            job = self._done.popleft()
            self._counts[job.charge.analyst] -= 1
            self._counts += Counter()  # forget analysts without a question in progress
            if job.charge.key:
                self._jobs.pop((job.charge.dataset, job.charge.analyst, job.charge.key), None)
            try:
                outcome = job.result if isinstance(job.result, Receipt) else _problem(job.result)
            except Exception:
                # a result that cannot be rendered must not hold up the others
                outcome = RequestProblem("failed")
            for waiter in job.waiters:
                if waiter.done():
                    continue
                if isinstance(outcome, Receipt):
                    waiter.set_result(outcome)
                else:
                    waiter.set_exception(outcome)


def _give_up(waiter: asyncio.Future[Receipt]) -> None:
    if not waiter.done():
        waiter.set_exception(RequestProblem("late", headers={"Retry-After": "1"}))


def _problem(error: Exception | None) -> RequestProblem | UnpricedError:
    if isinstance(error, UnpricedError):
        return error
    if isinstance(error, OverdrawnError):
        return RequestProblem(
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
        return RequestProblem("full")
    if isinstance(error, KeyReusedError):
        return RequestProblem("key_reused")
    return RequestProblem("closed")


def _plainly(work: Callable[[], Fraction]) -> Fraction:
    return work()


@dataclass(frozen=True, slots=True, eq=False)
class ParsedQuestion:
    """A parsed and priced question.

    Attributes:
        charge: its cost, and the account that is charged.
        seconds: worst-case CPU seconds, from public facts.
        answer: computes the answer from the records with the system's entropy.
        preview: what can be shown before the charge.
    """

    charge: Charge
    seconds: float
    answer: Callable[[], dict[str, Any]]
    preview: Callable[[], dict[str, Any]]


def understand(
    body: bytes, served: Served, analyst: str, key: str, meter: Meter = _plainly
) -> ParsedQuestion:
    """Parse and price a question; `meter` runs pricing that happens later.

    Raises:
        Problem: it is not JSON, or not a valid question; the reason is computed from public facts alone.
    """
    return _priced(_document(body), served, analyst, key, meter)


def understand_many(
    body: bytes, served: Served, analyst: str, key: str, meter: Meter = _plainly
) -> list[ParsedQuestion | RequestProblem]:
    """Parse and price several questions; the key of each is that of the request with its index.

    Raises:
        Problem: it is not a list of questions.
    """
    document = _document(body)
    questions = document.get("questions")
    if (
        set(document) != {"questions"}
        or not isinstance(questions, list)
        or not 1 <= len(questions) <= MOST_AT_ONCE
    ):
        reason = Message.of("questions-not-list", most=MOST_AT_ONCE)
        raise RequestProblem("bad_question", {"reason": reason})
    found: list[ParsedQuestion | RequestProblem] = []
    for place, question in enumerate(questions):
        try:
            found.append(_priced(question, served, analyst, f"{key}:{place}" if key else "", meter))
        except RequestProblem as problem:
            found.append(problem)
    return found


def _priced(document: Any, served: Served, analyst: str, key: str, meter: Meter) -> ParsedQuestion:
    facts = served.table.facts
    try:
        query = parse(document, facts)
        cost = price(query, facts)
        _not_too_little(cost.epsilon, served.settings.least_epsilon)
        content = canonical(query.to_dict())
    except ShoalError as error:
        raise RequestProblem("bad_question", {"reason": error.message}) from None
    together = query.kind == _TOGETHER
    return ParsedQuestion(
        Charge(
            served.name,
            analyst,
            content,
            cost.epsilon,
            cost.delta,
            key,
            person=cost.person,
            family=_TOGETHER if together else "",
            joint=(lambda contents: meter(lambda: _joint(served)(contents))) if together else None,
            room=served.settings.most_bytes,
            size=len(content) + _answer_bytes(query),
        ),
        computing_cost(query, served.public_rows),
        lambda: answer(query, served.table).to_dict(),
        lambda: preview(query, facts),
    )


def _not_too_little(epsilon: Fraction, least: Fraction) -> None:
    """Refuse a cost that is positive but negligible, which would allow unlimited questions; public answers are free."""
    if 0 < epsilon < least:
        raise OptionError(
            "question-costs-least-here", least=decimal_text(least), epsilon=decimal_text(rounded_up(epsilon))
        )


def _answer_bytes(query: Query) -> int:
    """Approximate length of the answer: statement, and a name and a number for each cell."""
    inner = query.options.get("query", query.options)
    cells = len(inner.get("edges", ())) + len(inner.get("cells", ()))
    return _STATEMENT_BYTES + _CELL_BYTES * cells


@lru_cache(maxsize=64)
def _joint(served: Served) -> Callable[[Sequence[str]], Fraction]:
    """The joint price of several questions, from the texts that the ledger keeps."""
    facts = served.table.facts

    @lru_cache(maxsize=1024)
    def known(content: str) -> Query:
        return parse(json.loads(content), facts)

    return lambda contents: protocol_1_total([known(content) for content in contents], facts)


def quick(body: bytes) -> bool:
    """Whether a question can be parsed at once; a long one, or a prior to be computed, would keep others waiting."""
    return len(body) <= _QUICK_BYTES and b"prior" not in body


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body, parse_constant=_no_constant, object_pairs_hook=_once_each)
    except OptionError as error:
        raise RequestProblem("bad_question", {"reason": error.message}) from None
    except (ValueError, RecursionError):
        raise RequestProblem("not_json") from None
    if not isinstance(document, dict):
        raise RequestProblem("not_json")
    return document


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without duplicate keys: two readers could otherwise read two different questions."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise OptionError("key-there-twice", key=shown(key))
        found[key] = value
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
