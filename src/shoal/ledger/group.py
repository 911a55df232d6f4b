"""Group commit: operations of many threads come in one by one, and share a durable transaction.

A commit waits for the disk. Whatever arrives meanwhile is written together by the next one, so that many requests at
once cost little more than one.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from shoal.ledger.errors import LedgerError
from shoal.ledger.ledger import Ledger
from shoal.ledger.operations import Operation, Receipt

Then = Callable[[Receipt | Exception], None]
_LARGEST_GROUP = 512


class GroupCommit:
    """A thread that writes what was submitted, in order of arrival.

    Args:
        ledger: where it is written.
        noted: called after each transaction, before any of its results is handed out.
        after: called after each transaction, when all of its results were handed out.

    Attributes:
        failed: when a transaction last failed because of the database and not because of what the ledger holds.
    """

    def __init__(
        self,
        ledger: Ledger,
        noted: Callable[[], None] | None = None,
        after: Callable[[], None] | None = None,
    ) -> None:
        self._ledger = ledger
        self._noted, self._after = noted, after
        self.failed = -math.inf
        self._waiting: queue.SimpleQueue[tuple[Operation, Then] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="shoal-ledger", daemon=True)
        self._thread.start()

    def submit(self, operation: Operation, then: Then) -> None:
        """Have an operation written; `then` gets its result in the writing thread, and must be quick."""
        self._waiting.put((operation, then))

    def call(self, operation: Operation) -> Receipt:
        """Have an operation written and wait for it; a refusal is raised."""
        future: Future[Receipt] = Future()

        def settle(result: Receipt | Exception) -> None:
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

        self.submit(operation, settle)
        return future.result()

    def close(self) -> None:
        """Write what was submitted before, then end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        ending = False
        while not ending:
            group: list[tuple[Operation, Then]] = []
            item = self._waiting.get()
            while item is not None:
                group.append(item)
                if len(group) == _LARGEST_GROUP:
                    break
                try:
                    item = self._waiting.get_nowait()
                except queue.Empty:
                    break
            ending = item is None
            if group:
                self._write(group)

    def _write(self, group: list[tuple[Operation, Then]]) -> None:
        results: list[Receipt | Exception]
        try:
            results = self._ledger.commit([operation for operation, _ in group])
            self.failed = -math.inf
            if self._noted is not None:
                self._noted()
        except Exception as error:
            # nothing of this transaction is handed out, and whoever waits for it must hear so
            results = [error] * len(group)
            if not isinstance(error, LedgerError):
                self.failed = time.monotonic()
        for (_, then), result in zip(group, results, strict=True):
            then(result)
        if self._after is not None:
            self._after()
