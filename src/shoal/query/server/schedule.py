"""When answers leave. In: who asks, and how long such a question may take. Out: times that no record can move.

Every analyst has a queue. A question is given the time at which the queue would be through with it if every question
took what is allowed for its kind and the size of the table; its answer is stored at that time and sent one pace later,
however soon the work was done. What is not ready by then waits for the next pace: counted, and an alarm.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from shoal.query.server.guard import warn
from shoal.query.server.problems import Problem

_ALARM_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Departure:
    """The times at which an answer may be stored (`ready`) or sent: every `pace` from then on.

    >>> Departure(10.0, 0.5).slot(9.0), Departure(10.0, 0.5).slot(10.6), Departure(10.0, 0.5).slot(9.0, first=1)
    (10.0, 11.0, 10.5)
    """

    ready: float
    pace: float

    def slot(self, now: float, first: int = 0) -> float:
        """The first of these times that is not over; `first` leaves out so many of them."""
        if not self.pace:
            return now
        return self.ready + max(first, math.ceil((now - self.ready) / self.pace)) * self.pace


@dataclass(slots=True)
class Punctuality:
    """How many answers left when they should; for the holder's eyes only."""

    answers: int = 0
    late: int = 0


class Schedule:
    """The queues of all analysts, in the time that questions are allowed to take.

    Args:
        pace: seconds between two times at which an answer may leave; 0 lets answers leave at once.
        longest: seconds that an analyst's queue may reach into the future.
        clock: the time in seconds.
    """

    def __init__(self, pace: float, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.pace, self._longest, self._clock = pace, longest, clock
        self._ends: dict[str, float] = {}
        self._alarmed = -math.inf
        self.punctuality = Punctuality()

    def admit(self, analyst: str, seconds: float) -> Departure:
        """Queue a question that may take so many seconds.

        Analysts who are being served share the machine, so each of them is given that many times longer.

        Raises:
            Problem: the queue of this analyst is full; nothing was spent.
        """
        now = self._clock()
        if not self.pace:
            return Departure(now, 0.0)
        self._ends = {name: end for name, end in self._ends.items() if end > now}
        sharing = len(self._ends.keys() | {analyst})
        ready = max(now, self._ends.get(analyst, now)) + seconds * sharing
        # the first question is taken however long it may take
        if ready - now > self._longest and analyst in self._ends:
            wait = math.ceil(self._ends[analyst] - now)
            raise Problem("busy", headers={"Retry-After": str(max(wait, 1))})
        self._ends[analyst] = ready
        return Departure(ready, self.pace)

    def queued(self) -> int:
        """How many analysts have a question on its way."""
        now = self._clock()
        return sum(end > now for end in self._ends.values())

    def check(self, departure: Departure, slot: float) -> None:
        """Note that a step was done that should have been done by a slot; sound the alarm if it was not."""
        now = self._clock()
        if departure.pace and now > slot:
            self.punctuality.late += 1
            if now - self._alarmed >= _ALARM_SECONDS:
                self._alarmed = now
                warn("late", **{"late": self.punctuality.late, "answers": self.punctuality.answers})

    async def leave(self, departure: Departure) -> None:
        """Wait until an answer may be sent."""
        self.punctuality.answers += 1
        if departure.pace:
            self.check(departure, departure.slot(departure.ready, first=1))
            now = self._clock()
            await asyncio.sleep(departure.slot(now, first=1) - now)
