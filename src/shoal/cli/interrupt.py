"""Long work that Ctrl-C ends at once: the work runs in a second thread, the first one listens."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def interruptibly(work: Callable[[], Result]) -> Result:
    """Run `work` and return its result; Ctrl-C removes what it began to write and ends the process.

    A sort or a compiled kernel does not look for signals while it runs, and a table of millions of rows keeps it
    busy for long. Python delivers the signal to the main thread, which has nothing else to do here.
    """
    from shoal.release.bundle import remove_unfinished

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
        print("shoal: interrupted, nothing was written.", file=sys.stderr, flush=True)
        # the worker cannot be stopped from outside, only left behind
        os._exit(130)
    if errors:
        raise errors[0]
    return results[0]
