"""How long a release will take: a prepared method comes in, a rough estimate of time and memory leaves.

The probe runs the method on small made-up tables with the same lattices and extrapolates; no record is looked at.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.io import read
from shoal.noise import Seeded

if TYPE_CHECKING:
    from shoal.release.protect import Preparation

_FIRST_PROBE = 2_000
_LARGEST_PROBE = 256_000
# a probe that took this long is long enough to extrapolate from
_ENOUGH_SECONDS = 0.3
_WORD = 8
# words that an engine holds whatever the table, and rows of a range of ranks
_IN_PARTS, _RANGE = 1 << 26, 1 << 20


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rough time and memory, and the probe they come from."""

    seconds: float
    bytes: int
    probe: str

    def longer(self, seconds: float, what: str) -> Estimate:
        """With further work counted.

        >>> str(Estimate(1.0, 10, "p").longer(2.0, "the report included"))
        'about 3 seconds and 1 MB of memory (p, the report included)'
        """
        return replace(self, seconds=self.seconds + seconds, probe=f"{self.probe}, {what}")

    def __str__(self) -> str:
        return f"about {_duration(self.seconds)} and {_size(self.bytes)} of memory ({self.probe})"


def estimate(prepared: Preparation, *, in_parts: bool = False) -> Estimate:
    """Extrapolate from growing probes.

    Args:
        in_parts: the table is never in memory as a whole.
    """
    n = max(prepared.described.n, 1)
    smallest = max(_FIRST_PROBE, 4 * prepared.method.size)
    rows, seconds, exponent = _probe(lambda size: _run_seconds(prepared, size), min(n, smallest), n)
    expected = seconds * (n / rows) ** exponent
    columns = len(prepared.described.columns)
    words = (4 + 5 * columns) * n
    if in_parts:
        words = _IN_PARTS + 4 * columns * _RANGE
    return Estimate(
        expected, words * _WORD, f"from a probe of {rows} made-up rows, growth exponent {exponent:.2f}"
    )


def _probe(run: Callable[[int], float], first: int, n: int) -> tuple[int, float, float]:
    """The last probe's size and time, and how time grows with size (between linear and quadratic)."""
    rows, seconds, exponent = first, run(first), 1.0
    # at least two sizes are needed to see the growth
    while rows < n and rows * 2 <= _LARGEST_PROBE and (seconds < _ENOUGH_SECONDS or rows == first):
        larger = min(rows * 2, n)
        took = run(larger)
        if took > 6 * max(seconds, 1e-3):
            # the first use of a kernel includes its preparation
            took = run(larger)
        exponent = min(max(math.log(took / seconds) / math.log(larger / rows), 1.0), 2.0)
        rows, seconds = larger, took
    return rows, seconds, exponent


def _run_seconds(prepared: Preparation, rows: int) -> float:
    described = made_up(prepared.described, rows)
    started = time.perf_counter()
    plan = prepared.mechanism.plan(prepared.method, described)
    prepared.mechanism.run(prepared.method, described, plan, Seeded(0), lambda *_: None, None)
    return max(time.perf_counter() - started, 1e-6)


def made_up(described: Described, rows: int) -> Described:
    """A heavy-tailed table on the same lattices."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    columns: dict[str, NDArray[Any]] = {}
    for name, lattice in described.lattices.items():
        tail = np.minimum(rng.lognormal(-3.0, 1.5, rows), 1.0)
        columns[name] = np.minimum(lattice.values(np.floor(tail * lattice.steps)), float(lattice.hi))
    # made-up values are numbers whatever the kind, only names stay names
    plain = []
    for attribute in described.attributes:
        # the value that stands for missing ones is no text in a table
        bare = replace(attribute, missing=None, type=None, decimals=None, format=None)
        tree = bare.tree
        if tree is None:
            plain.append(replace(bare, kind="numeric", ordered=()))
            continue
        plain.append(bare)
        columns[attribute.name] = np.array(tree.values, dtype=object)[
            columns[attribute.name].astype(np.int64) % len(tree.values)
        ]
    return replace(described, table=read(pa.table(columns)), attributes=tuple(plain), kept=None, gaps={})


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "a second"
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _size(count: int) -> str:
    return f"{max(count / 1e6, 1):.0f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"
