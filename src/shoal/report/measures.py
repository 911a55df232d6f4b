"""All measures as lines of a page: the nested values of an evaluation come in, names and short texts leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def measure_lines(found: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Every measure that exists; those of a column are named after it.

    >>> measure_lines({"sse": 1234567.891, "sae": None, "attributes": {"age": {"sse": 0.25, "kind": "numeric"}}})
    [('sse', '1.23457e+06'), ('age, sse', '0.25')]
    """
    lines: list[tuple[str, str]] = []
    for key, value in found.items():
        if value is None or key == "kind":
            continue
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            lines += measure_lines(value, before if key == "attributes" else f"{name}, ")
        else:
            lines.append((name, _words(value)))
    return lines


def _words(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return (
            " to ".join(_words(part) for part in value)
            if _interval(value)
            else ", ".join(map(str, value)) or "none"
        )
    return str(value)


def _interval(value: Sequence[Any]) -> bool:
    return len(value) == 2 and all(isinstance(part, float) for part in value)
