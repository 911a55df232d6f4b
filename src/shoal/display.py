"""What a value shows of itself in a notebook, a log or a traceback: a value comes in, short text or HTML leaves.

Only public facts. A value that holds facts about the records names itself and says where they can be read.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

Value = TypeVar("Value")
# a line of a summary, a cell of a table, names in a list, rows and columns of a table
_LINE, _CELL, _NAMES, _ROWS, _COLUMNS = 300, 40, 8, 5, 12


@dataclass(frozen=True, slots=True)
class Summary:
    """What may be shown.

    Attributes:
        title: what it is.
        lines: a few facts.
        table: a released table, of which HTML shows the first rows.
    """

    title: str
    lines: tuple[str, ...] = ()
    table: Any = field(default=None, repr=False)


def displayed(summarise: Callable[[Any], Summary]) -> Callable[[type[Value]], type[Value]]:
    """Give a class the `repr` and the HTML that its summary has."""

    def decorate(cls: type[Value]) -> type[Value]:
        cls.__repr__ = lambda self: as_text(summarise(self))  # type: ignore[method-assign]
        cls._repr_html_ = lambda self: as_html(summarise(self))  # type: ignore[attr-defined]
        return cls

    return decorate


def internal(where: str = "its attributes") -> Callable[[type[Value]], type[Value]]:
    """Have a class show nothing but its name and where its content can be read.

    >>> @internal(".figures")
    ... @dataclass(frozen=True)
    ... class Counts:
    ...     figures: tuple[int, ...]
    >>> Counts((17, 4))
    <Counts: internal, it holds facts about the original records; see .figures>
    """
    return displayed(lambda value: internal_summary(type(value).__name__, where))


def internal_summary(title: str, where: str) -> Summary:
    return Summary(f"{title}: internal, it holds facts about the original records; see {where}")


def as_text(summary: Summary) -> str:
    """Angle brackets, because it is no expression that makes the value again.

    >>> as_text(Summary("Schema of 1 column", ("age (numeric)",)))
    '<Schema of 1 column: age (numeric)>'
    """
    lines = " ".join(shortened(line) for line in summary.lines)
    return f"<{shortened(summary.title)}{': ' if lines else ''}{lines}>"


def as_html(summary: Summary) -> str:
    """
    >>> as_html(Summary("Schema", ("<b> (numeric)",)))
    '<div><p><strong>Schema</strong></p><p>&lt;b&gt; (numeric)</p></div>'
    """
    lines = "".join(f"<p>{_escaped(line)}</p>" for line in summary.lines)
    return f"<div><p><strong>{_escaped(summary.title)}</strong></p>{lines}{_table(summary.table)}</div>"


def shortened(text: str, length: int = _LINE) -> str:
    """
    >>> shortened("a long text", 6)
    'a lon…'
    """
    return text if len(text) <= length else f"{text[: length - 1]}…"


def names_in_words(names: Sequence[str]) -> str:
    """The first few names, and how many others there are.

    >>> names_in_words([f"c{number}" for number in range(10)])
    'c0, c1, c2, c3, c4, c5, c6, c7 and 2 more'
    """
    shown = ", ".join(shortened(name, _CELL) for name in names[:_NAMES])
    return shown if len(names) <= _NAMES else f"{shown} and {len(names) - _NAMES} more"


def counted(number: int, what: str) -> str:
    """
    >>> counted(1, "column"), counted(3, "column")
    ('1 column', '3 columns')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def _head(frame: Any) -> tuple[tuple[str, ...], ...]:
    """Names and first rows of a table, as text."""
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    names = table.columns[:_COLUMNS]
    rows = table.select(names).head(_ROWS).rows()
    return (tuple(names), *(tuple("" if cell is None else str(cell) for cell in row) for row in rows))


def _table(frame: Any) -> str:
    if frame is None:
        return ""
    head = _head(frame)
    lines = [
        "<tr>" + "".join(f"<{tag}>{_escaped(shortened(cell, _CELL))}</{tag}>" for cell in row) + "</tr>"
        for tag, row in zip(["th", *["td"] * (len(head) - 1)], head, strict=True)
    ]
    return f"<table>{''.join(lines)}</table>"


def _escaped(text: str) -> str:
    return html.escape(shortened(text))
