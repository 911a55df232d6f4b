"""What commands print with: one console for results, one for messages, progress only on a terminal."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from shoal.mechanisms.base import Progress


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
