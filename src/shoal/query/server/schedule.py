"""When answers leave: times from public facts alone, and only as many questions as can be answered by then.

Every analyst has a queue. A question is given the time by which the server is through with it if every question takes
what is allowed for it, the ones of other analysts included; work is done in the order of these times. Its answer is
stored half a pace later and sent after another half, however soon the work was done. Whether work was done in time is
known from records, so it decides nothing about other questions, but for one case: an answer that was not ready. That is
a recorded fault, and the answer waits with the analyst's whole queue for the next time on a coarse grid, a power of two
of the pace later.
"""

from __future__ import annotations

import asyncio
import math
import time
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field

from shoal.query.server.problems import Problem

_NEAR_SECONDS = 2.0


@dataclass(slots=True, eq=False)
class Departure:
    """When an answer is planned to be computed (`ready`), stored and sent; a pace of 0 is at once.

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
    """How many answers left, and how many of them could not leave when they should; for the holder's eyes only."""

    answers: int = 0
    late: int = 0


@dataclass(order=True, slots=True)
class _Planned:
    """A question in the plan: by when, how many of its seconds are left, how many it has in all."""

    ready: float
    left: float = field(compare=False)
    seconds: float = field(compare=False)


class Schedule:
    """The queues of all analysts, in the time that questions are allowed to take.

    Args:
        pace: seconds between two times at which an answer may leave; 0 lets answers leave at once.
        longest: seconds that an analyst's queue may reach into the future.
        clock: the time in seconds.
        fault: told about every time that was missed, by how many paces it was moved; a power of two.
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
        # when the first of a queue was due that was late
        self._origins: dict[str, float] = {}
        # what is left to be done if every question takes all of its time, in the order of the work
        self._plan: list[_Planned] = []
        self._planned = -math.inf
        self.punctuality = Punctuality()

    def admit(self, analyst: str, seconds: float) -> Departure:
        """Queue a question that may take so many seconds.

        Analysts who are being served share the machine, so each of them is given that many times longer. If even then
        the question or one that was admitted before could not be answered in time, it is given a later time.

        Raises:
            Problem: that would be too late; nothing was spent.
        """
        now = self._clock()
        if not self.pace:
            return Departure(now, 0.0, analyst)
        self._advance(now)
        self._ends = {name: end for name, end in self._ends.items() if end > now}
        self._origins = {name: origin for name, origin in self._origins.items() if name in self._ends}
        begins = max(now, self._ends.get(analyst, now))
        # of what is further away a share is kept for one who comes later
        sharing = len(self._ends.keys() | {analyst}) + (begins - now > _NEAR_SECONDS)
        ready = self._first_free(begins + seconds * sharing, seconds, now)
        # the first question is taken however long it may take
        if ready - now > self._longest and self._plan:
            wait = math.ceil(ready - now - self._longest)
            raise Problem("busy", headers={"Retry-After": str(max(wait, 1))})
        insort(self._plan, _Planned(ready, seconds, seconds))
        self._ends[analyst] = ready
        departure = Departure(ready, self.pace, analyst)
        self._open.setdefault(analyst, []).append(departure)
        return departure

    def _advance(self, now: float) -> None:
        """Let the plan go on as if every question took all of its seconds."""
        passed, self._planned = now - self._planned, now
        for question in self._plan:
            done = min(question.left, passed)
            question.left -= done
            passed -= done
        self._plan = [question for question in self._plan if question.left > 0 and question.ready > now]
        waiting = {name: [one for one in queue if one.sent > now] for name, queue in self._open.items()}
        self._open = {name: queue for name, queue in waiting.items() if queue}

    def _first_free(self, earliest: float, seconds: float, now: float) -> float:
        """The first time by which a question can be through without making another one late.

        Up to any time, the seconds of all questions that are due by then must fit, and before them the longest of
        those that are due later: it may have been begun.
        """
        size = len(self._plan)
        # of the questions from each place on: the longest, and the least time to spare
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
        """How many analysts have a question on its way."""
        now = self._clock()
        return sum(end > now for end in self._ends.values())

    def done(self, departure: Departure) -> None:
        """The answer was computed: a fault if it should have been stored before, and the whole queue waits."""
        self._check(departure, departure.stored)

    def _check(self, departure: Departure, due: float) -> None:
        now = self._clock()
        if not departure.pace or now <= due:
            return
        # counted from the first that was late, so that several do not add up to a finer grid
        origin = self._origins.setdefault(departure.analyst, departure.ready)
        # one that was due before the first found late can be sent before that one should have been
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
            # what is queued before it may move it while it waits
            while (left := departure.sent - self._clock()) > 0:
                await asyncio.sleep(left)
