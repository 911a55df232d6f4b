"""Progress of long work: what is being done, how much of it is done and how much there is; and a way to stop it.

Whoever wants to stop the work raises `shoal.CancelledError` in the callback. Work asks between its steps only, so a
sort or a compiled kernel is finished first.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.errors import CancelledError

# called with what is being done, how much of it is done, and how much there is
Progress = Callable[[str, int, int], None]
# says whether the work should stop, such as `threading.Event().is_set`
Cancel = Callable[[], bool]


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def watched(progress: Progress | None, cancel: Cancel | None = None) -> Progress:
    """Progress that stops the work once `cancel` says so.

    >>> watched(None, lambda: True)("reading the table", 0, 1)
    Traceback (most recent call last):
    shoal.errors.CancelledError: cancelled while reading the table: nothing was written.
    """
    tell = progress or silent
    if cancel is None:
        return tell
    stop: Cancel = cancel

    def report(what: str, done: int, total: int) -> None:
        if stop():
            raise CancelledError("cancelled-while-nothing-written", what=what)
        tell(what, done, total)

    return report
