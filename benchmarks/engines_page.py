"""Speed and a cost model of the engines for docs/scale.md, from the records of `benchmarks.engines`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tools.results import DOCS, between

if TYPE_CHECKING:
    from benchmarks.engines import Cell

PAGE = DOCS / "scale.md"
_METHODS = ("laplace", "ranking-dp", "tree-dp", "pairs-dp")
_LARGE, _COLUMNS, _CORES = 10**9, 10, 32
# bytes that tasks send on for a value of a table of four columns: value and place, or position and row before that
_SENT = {"laplace": 9, "ranking-dp": 20, "tree-dp": 9, "pairs-dp": 9}


def write_page(cells: Sequence[Cell]) -> None:
    """Write figures and cost model between the markers of the page."""
    machine = cells[0].machine if cells else "nothing recorded"
    head = f"Written by `python -m benchmarks.engines` ({machine}, other work running at the same time)."
    text = between(PAGE.read_text("utf-8"), "engines", f"{head}\n\n{_figures(cells)}")
    PAGE.write_text(between(text, "model", _model(cells)), "utf-8")


def _of(cells: Sequence[Cell], engine: str, method: str, rows: int) -> Cell | None:
    found = [c for c in cells if (c.engine, c.method, c.rows) == (engine, method, rows)]
    return found[0] if found else None


def _figures(cells: Sequence[Cell]) -> str:
    lines = [
        "| rows | method | memory | local | Spark | local / memory | Spark / memory |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for rows in sorted({cell.rows for cell in cells}):
        for method in _METHODS:
            found = {engine: _of(cells, engine, method, rows) for engine in ("memory", "local", "spark")}
            if not any(found.values()):
                continue
            shown = [
                "" if cell is None else f"{cell.rate / 1000:,.0f}k, {cell.peak / 1e9:.1f} GB"
                for cell in found.values()
            ]
            memory = found["memory"]
            ratios = [
                "" if memory is None or cell is None else f"{cell.rate / memory.rate:.2f}"
                for cell in (found["local"], found["spark"])
            ]
            lines.append(f"| {rows:,} | `{method}` | {' | '.join(shown)} | {' | '.join(ratios)} |")
    return "\n".join(lines)


def _model(cells: Sequence[Cell]) -> str:
    lines = ["| method | measured at | minutes | bytes between stages |", "| --- | --- | --- | --- |"]
    for method in _METHODS:
        measured = [cell for cell in cells if cell.engine == "spark" and cell.method == method]
        if not measured:
            continue
        cell = max(measured, key=lambda one: one.rows)
        minutes = _LARGE * _COLUMNS / 4 / cell.rate / _CORES / 60
        size = _SENT[method] * _LARGE * _COLUMNS / 1e9
        lines.append(
            f"| `{method}` | {cell.rows:,} rows | {minutes:,.0f} | {size:,.0f} GB before compression |"
        )
    return "\n".join(lines)
