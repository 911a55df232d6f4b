"""Long work that Ctrl-C ends at once: the work runs in a second thread, the first one listens."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from shoal.progress import Progress

Result = TypeVar("Result")


def interruptibly(work: Callable[[], Result], spent: Callable[[], str] = lambda: "") -> Result:
    """Run `work` and return its result; Ctrl-C removes what it began to write and ends the process.

    `spent` says what cannot be taken back.

    A sort or a compiled kernel does not look for signals while it runs, and a table of millions of rows keeps it
    busy for long. Python delivers the signal to the main thread, which has nothing else to do here.
    """
    from shoal.io.folders import remove_unfinished

    results: list[Result] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    worker = threading.Thread(target=body, daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(0.1)
    except KeyboardInterrupt:
        remove_unfinished()
        print(f"shoal: interrupted, nothing was written.{spent()}", file=sys.stderr, flush=True)
        # the worker cannot be stopped from outside, only left behind
        os._exit(130)
    if errors:
        raise errors[0]
    return results[0]


def charge_words(seen: Collection[tuple[str, bool]]) -> str:
    """What an interrupted publication says about its charge, from the stages that were seen."""
    from shoal.release.publish import CHARGING
    from shoal.text import Message

    if (CHARGING, True) in seen:
        return f" {Message('ledger-charge-stays')}"
    return f" {Message('ledger-charge-may-stand')}" if (CHARGING, False) in seen else ""


def noting(progress: Progress, seen: set[tuple[str, bool]]) -> Progress:
    """Progress that also keeps the stages that were begun, and those that were finished."""

    def report(what: str, done: int, total: int) -> None:
        seen.add((what, done == total))
        progress(what, done, total)

    return report
