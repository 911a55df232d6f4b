"""What commands print with: one console for results, one for messages, progress only on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from shoal.mechanisms import Progress


def results() -> Console:
    """Standard output; plain text when it is a pipe."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def messages() -> Console:
    """Standard error, for everything that is not the result."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def complain(text: str) -> None:
    """One line on standard error that says what is wrong and what to do."""
    line = " ".join(text.split())
    print(f"shoal: {line}", file=sys.stderr)


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A callback that draws bars on a terminal and nothing in a pipe."""
    console = messages()
    if not console.is_terminal:
        yield lambda what, done, total: None
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
