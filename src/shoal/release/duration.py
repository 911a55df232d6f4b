"""How long an internal page will take: a prepared release comes in, rough seconds leave; no record is looked at."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from shoal.report.risks import MOST_ROWS

if TYPE_CHECKING:
    from shoal.release.protect import Preparation

# rows of the made-up tables; the first one also pays for what is loaded and compiled once
_SIZES = (300, 1_000, 4_000)


def internal_seconds(prepared: Preparation) -> float:
    """Rough time of `internal_report` with its original, from pages about small made-up releases.

    Cost:
        That of pages about 300, 1,000 and 4,000 rows.
    """
    return _extrapolated(lambda rows: _page_seconds(prepared, rows), prepared.described.n)


def _extrapolated(run: Callable[[int], float], n: int) -> float:
    """A fixed part and one that grows with the rows; of more than 50,000 rows a sample is measured.

    >>> round(_extrapolated(lambda rows: 2.0 + rows / 1000, 50_000), 6), _extrapolated(lambda rows: 3.0, 200)
    (52.0, 3.0)
    """
    least = min(_SIZES[0], n)
    seconds = run(least)
    if n <= _SIZES[0]:
        return seconds
    _, small, large = _SIZES
    first = run(min(small, n))
    if n <= small:
        return first
    last = run(min(large, n))
    if n <= large:
        return last
    return last + max(last - first, 0.0) / (large - small) * (min(n, MOST_ROWS) - large)


def _page_seconds(prepared: Preparation, rows: int) -> float:
    from shoal.noise import Seeded
    from shoal.release.estimate import made_up
    from shoal.release.protect import carry_out
    from shoal.report.pages import internal_report

    described = made_up(prepared.described, rows)
    plan = prepared.mechanism.plan(prepared.method, described)
    release = carry_out(replace(prepared, described=described, plan=plan, source=Seeded(0)))
    started = time.perf_counter()
    internal_report(release, None, described.table)
    return time.perf_counter() - started
