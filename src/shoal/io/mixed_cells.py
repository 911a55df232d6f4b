"""Cells that have types of their own (JSON, spreadsheets): Python values come in, one column leaves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any

from shoal.text import Message

_KINDS = {
    bool: "truth-value-cells",
    int: "number-cells",
    float: "number-cells",
    str: "text-cells",
    datetime: "date-cells",
    date: "date-cells",
    time: "time-cells",
}
_EXACT_WHOLE = 2**53


def column_of(name: str, cells: Sequence[Any]) -> tuple[Any, Message | None]:
    """An Arrow array, and a doubt where cells of several kinds stand in it; then all of them are text.

    >>> column_of("age", [34, None, 2.5])[0].to_pylist()
    [34.0, None, 2.5]
    """
    import pyarrow as pa

    kinds: dict[str, tuple[int, Any]] = {}
    for row, cell in enumerate(cells, start=1):
        if cell is not None:
            kinds.setdefault(_KINDS.get(type(cell), "other-cells"), (row, cell))
    if not kinds:
        return pa.nulls(len(cells)), None
    if len(kinds) > 1:
        (first, (row, cell)), (second, (other_row, other)) = list(kinds.items())[:2]
        texts = pa.array([None if value is None else plain_text(value) for value in cells], pa.string())
        facts = {"row": row, "cell": _short(cell), "other_row": other_row, "found": _short(other)}
        return texts, Message.of(
            "mixed-cells", column=name, kind=Message(first), other_kind=Message(second), **facts
        )
    (kind,) = kinds
    if kind == "number-cells":
        return _numbers(name, cells)
    if kind == "date-cells":
        moments = [
            cell if isinstance(cell, datetime) or cell is None else datetime(cell.year, cell.month, cell.day)
            for cell in cells
        ]
        whole = all(cell is None or cell.time() == time() for cell in moments)
        if whole:
            return pa.array([None if cell is None else cell.date() for cell in moments], pa.date32()), None
        return pa.array(moments, pa.timestamp("us")), None
    if kind in ("time-cells", "other-cells"):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string()), None
    return pa.array(cells, pa.bool_() if kind == "truth-value-cells" else pa.string()), None


def _numbers(name: str, cells: Sequence[Any]) -> tuple[Any, Message | None]:
    import pyarrow as pa

    whole = all(cell is None or isinstance(cell, int) for cell in cells)
    large = next(
        (
            (row, cell)
            for row, cell in enumerate(cells, start=1)
            if isinstance(cell, int) and abs(cell) > _EXACT_WHOLE
        ),
        None,
    )
    if large is not None and (not whole or abs(large[1]) >= 2**63):
        row, cell = large
        texts = pa.array([None if value is None else plain_text(value) for value in cells], pa.string())
        return texts, Message.of("too-many-digits", column=name, row=row, found=_short(cell))
    if whole:
        return pa.array(cells, pa.int64()), None
    return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64()), None


def plain_text(value: Any) -> str:
    """A cell as text: whole numbers have no decimals."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    return str(value)


def _short(value: Any) -> str:
    text = plain_text(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
