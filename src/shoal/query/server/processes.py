"""Several processes as one: pieces of work come in, each runs in a process of its own, and all end together."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from types import FrameType

from shoal.errors import ShoalError


class ProcessEndedError(ShoalError):
    """One of the processes ended by itself, and so all were stopped."""


def run_together(work: Sequence[Callable[[], None]]) -> None:
    """Run all pieces until a signal ends them. They are forked, so that what was read before is shared.

    Raises:
        ProcessEndedError: one ended without being told to.
    """
    # forked, not started afresh: the records were read once, and are in the memory of all
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_obedient, args=(piece,)) for piece in work]
    told: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        told.append(number)
        for process in processes:
            if process.is_alive():
                process.terminate()

    for process in processes:
        process.start()
    before = signal.signal(signal.SIGTERM, stop)
    try:
        wait([process.sentinel for process in processes])
    except KeyboardInterrupt:
        told.append(signal.SIGINT)
    finally:
        for process in processes:
            process.terminate()
            process.join()
        signal.signal(signal.SIGTERM, before)
    if not told:
        raise ProcessEndedError("server-processes-ended-unexpectedly-so-server")


def _obedient(piece: Callable[[], None]) -> None:
    """The work, ended when the process that started it is gone, however that happened."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, daemon=True).start()
    piece()
