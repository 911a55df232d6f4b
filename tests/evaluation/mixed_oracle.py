"""Slow and plain versions of the mixed measures, from their definitions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any


def semantic_distance(a: Any, b: Any, parent_of: Mapping[Any, Any] | None, width: float) -> float:
    """Eq. 6.6 from sets of ancestors; without a tree all values hang below one root; None is missing."""
    if a is None or b is None:
        return 0.0 if a is b else width
    first, second = (_ancestors(value, parent_of) for value in (a, b))
    union, common = len(first | second), len(first & second)
    return math.log2(1 + (union - common) / union)


def _ancestors(value: Any, parent_of: Mapping[Any, Any] | None) -> set[Any]:
    if parent_of is None:
        return {value, ("the root",)}
    found = {value}
    while parent_of.get(value) is not None:
        value = parent_of[value]
        found.add(value)
    return found


def total_variation(before: Sequence[Any], after: Sequence[Any]) -> float:
    p, q = Counter(before), Counter(after)
    return sum(abs(p[cell] / len(before) - q[cell] / len(after)) for cell in {*p, *q}) / 2


def credits(distance: Any, n: int) -> list[float]:
    """1/|G| for each row whose own record is among the nearest; `distance(row, record)` of n rows and records."""
    out = []
    for row in range(n):
        gaps = [distance(row, record) for record in range(n)]
        reach = min(gaps) + 1e-9
        nearest = {record for record in range(n) if gaps[record] <= reach}
        out.append(1 / len(nearest) if row in nearest else 0.0)
    return out
