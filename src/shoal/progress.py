"""Progress and cancellation of long work: the current step, how much of it is done, and the total.

To cancel, raise `shoal.CancelledError` in the callback. It is called between steps only, so a sort or a compiled
kernel is finished first.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.errors import CancelledError

# called with the current step, how much of it is done, and the total
Progress = Callable[[str, int, int], None]
# returns whether to cancel the work, such as `threading.Event().is_set`
Cancel = Callable[[], bool]


def silent(what: str, done: int, total: int) -> None:
    """Progress that is not reported."""


def watched(progress: Progress | None, cancel: Cancel | None = None) -> Progress:
    """Progress that cancels the work once `cancel` returns True.

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
