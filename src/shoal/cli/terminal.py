"""Output on a terminal or in a pipe, progress, and work that Ctrl-C interrupts."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from shoal.cli.command import flag

if TYPE_CHECKING:
    from rich.console import Console

    from shoal.errors import Coded
    from shoal.evaluation import Evaluation
    from shoal.evaluation.verdict import Verdict
    from shoal.privacy.statement import PrivacyStatement
    from shoal.privacy.verdict import PublicVerdict
    from shoal.progress import Progress
    from shoal.text import Message


def results() -> Console:
    """Standard output; plain text when it is a pipe."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def messages() -> Console:
    """Standard error, for everything that is not the result."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def worded(said: Message | Coded | str) -> str:
    """What the library says, with the flags of the command line."""
    return said if isinstance(said, str) else said.rendered(flag)


def complain(said: Message | Coded | str) -> None:
    """One line on standard error that says what is wrong and what to do."""
    line = " ".join(worded(said).split())
    print(f"shoal: {line}", file=sys.stderr)


def say_note(said: Message | str) -> None:
    """What the custodian should know, in pale letters."""
    messages().print(f"note: {worded(said)}", markup=False, style="dim")


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns of text: the first as wide as it needs, the others share what is left of the line.

    Without rich, which takes longer to load than a list of methods to make.
    """
    first = max(len(row[0]) for row in [head, *rows])
    left = max(shutil.get_terminal_size((100, 24)).columns, 60) - first
    longest = [max(len(row[place]) for row in [head, *rows]) for place in range(1, len(head))]
    widths = [first, *(max(12, min(most, left * most // sum(longest)) - 2) for most in longest)]
    for row in [head, *rows]:
        cells = [textwrap.wrap(text, width) or [""] for text, width in zip(row, widths, strict=True)]
        for line in range(max(map(len, cells))):
            parts = [cell[line] if line < len(cell) else "" for cell in cells]
            print("  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip())


# work shorter than this is not worth a line in a pipe; then one line so often
_PATIENCE, _PACE = 30.0, 10.0


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A callback that draws bars on a terminal, and in a pipe prints plain lines about work that takes long."""
    console = messages()
    if not console.is_terminal:
        yield plain_lines(lambda text: print(text, file=sys.stderr, flush=True))
        return
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as bars:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                # what is announced without steps ends when the next thing begins
                for other in bars.tasks:
                    bars.update(other.id, visible=other.total != 1)
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield report


def plain_lines(say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> Progress:
    """Progress as lines of text, none in the first seconds, and one every ten seconds at most.

    >>> moments = iter([0.0, 1.0, 31.0, 32.0, 50.0])
    >>> tell = plain_lines(print, lambda: next(moments))
    >>> for done in range(4):
    ...     tell("auditing", done, 4)
    auditing: 25%
    auditing: 75%
    """
    began = clock()
    last = began + _PATIENCE - _PACE

    def report(what: str, done: int, total: int) -> None:
        nonlocal last
        now = clock()
        if now - last < _PACE:
            return
        last = now
        say(f"{what}: {done / total:.0%}" if total > 1 else f"{what} ...")

    return report


def say_measures(
    measured: Evaluation, everything: bool, about: str = "internal: facts about the original data"
) -> None:
    """What was measured: five lines for everybody, or all of it; then what was not."""
    if everything:
        results().print(measured)
    else:
        results().print(measured.summary(about))
        results().print("Every measure: --all.", markup=False)
    for remark in measured.remarks:
        results().print(str(remark), markup=False)


def say_verdict(verdict: Verdict | PublicVerdict) -> None:
    """The verdict, in the words that every command has for it."""
    for line in verdict.lines:
        results().print(line, markup=False)


def say_promise(statement: PrivacyStatement) -> None:
    """What the promise means to a person first, then its terms, then whether it may be published."""
    from shoal.report.words import explanation

    console = results()
    console.print(explanation(statement.to_dict()).sentence, markup=False)
    console.print(statement.sentence, markup=False)


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
