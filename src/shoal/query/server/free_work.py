"""Work that costs no budget: reading, pricing, previews, lists of earlier answers, with a quota of CPU time.

It is done by one thread, which takes the tokens in turns, and not by the workers that compute answers: whoever asks for
much of it waits for it, and nobody else does.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from shoal.query.server.guard import RateLimit
from shoal.query.server.problems import Problem
from shoal.query.server.work_queue import WorkQueue

_MOST_WAITING = 20
_Result = TypeVar("_Result")
_Piece = tuple[Callable[[], Any], asyncio.Future[Any]]


class FreeWork:
    """Does free work; made inside the event loop that waits for it.

    Args:
        seconds: CPU seconds per second and token, on average; 0 for no limit.
        burst: CPU seconds at once before the average counts.
    """

    def __init__(self, seconds: float, burst: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._quota = RateLimit(seconds, burst)
        self._queue: WorkQueue[_Piece] = WorkQueue()
        self._thread = threading.Thread(target=self._run, name="shoal-free", daemon=True)
        self._thread.start()

    async def run(self, token: str, work: Callable[[], _Result]) -> _Result:
        """Have a piece of work done when it is the token's turn.

        Raises:
            Problem: its quota is used up, or too much of its work is waiting.
        """
        self._quota.check(token)
        if self._queue.waiting(token) >= _MOST_WAITING:
            raise Problem("too_many", headers={"Retry-After": "1"})
        future: asyncio.Future[_Result] = self._loop.create_future()
        self._queue.put(token, (work, future))
        return await future

    def at_once(self, token: str, work: Callable[[], _Result]) -> _Result:
        """Do a short piece of work here and now, within the same quota."""
        self._quota.check(token)
        return self.metered(token, work)

    def metered(self, token: str, work: Callable[[], _Result]) -> _Result:
        """Do a piece of work in this thread; what it takes counts, however it ends."""
        began = time.thread_time()
        try:
            return work()
        finally:
            self._quota.spend(token, time.thread_time() - began)

    def close(self) -> None:
        self._queue.close()
        self._thread.join()

    def _run(self) -> None:
        while (task := self._queue.take()) is not None:
            token, (work, future) = task
            result: Any = None
            error: Exception | None = None
            try:
                # whoever does not wait any more needs no answer
                if not future.cancelled():
                    result = self.metered(token, work)
            except Exception as raised:
                error = raised
            finally:
                self._queue.done(token)
            # nobody waits any more once the loop is closed
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_settle, future, result, error)


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
