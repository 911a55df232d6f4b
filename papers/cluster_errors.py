"""Row errors of methods with noisy cluster means: expected ones, and those of seeded releases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from papers.desk import read_table
from shoal.io import Table, read
from shoal.mechanisms.cluster_methods import InsensitiveDP, PartitionMethod
from shoal.mechanisms.clusters import Clusters
from shoal.mechanisms.insensitive import paying_clusters
from shoal.noise import Seeded
from shoal.progress import silent
from shoal.release.protection import Preparation, carry_out, prepare
from shoal.tuning.expected import clipped_moments, expected_errors

if TYPE_CHECKING:
    import pyarrow as pa

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """A release that is measured: the domain of every column is 0 to 1.5 times its maximum, as in the papers.

    Attributes:
        options: settings of `shoal.protect`, epsilon and k among them.
        complete: rows with a missing value, in whatever column, are left out.
        rows: only so many rows, evenly spaced; 0 for all.
    """

    file: Path
    columns: tuple[str, ...]
    method: str
    options: tuple[tuple[str, Any], ...]
    complete: bool = False
    rows: int = 0

    @property
    def key(self) -> str:
        """Everything the result depends on, in words."""
        options = " ".join(f"{name}={value}" for name, value in self.options)
        words = f"{self.file.name} {','.join(self.columns)} {self.method} {options}"
        return f"{words}{' complete' if self.complete else ''}{f' rows={self.rows}' if self.rows else ''}"

    def table(self) -> Table:
        return _table(self.file, self.complete, self.rows)


@cache
def _table(file: Path, complete: bool, rows: int) -> Table:
    frame = complete_rows(file) if complete else read_table(file)
    if rows:
        frame = frame.take(np.linspace(0, frame.num_rows - 1, rows).round().astype(np.int64))
    return read(frame)


@cache
def complete_rows(file: Path) -> pa.Table:
    """The rows of a file in which nothing is missing or empty."""
    import pyarrow as pa
    from pyarrow import compute

    frame = read_table(file)
    complete = np.ones(frame.num_rows, dtype=bool)
    for column in frame.columns:
        complete &= compute.is_valid(column).to_numpy()
        if pa.types.is_string(column.type):
            complete &= compute.fill_null(compute.not_equal(column, ""), False).to_numpy()
    return frame.filter(pa.array(complete))


def settled(setting: Setting) -> tuple[Preparation, tuple[Clusters, ...]]:
    """The prepared release and its clusters."""
    prepared = prepare(
        setting.table(),
        method=setting.method,
        columns=setting.columns,
        domain_from_data=1.5,
        seed=0,
        **dict(setting.options),
    )
    return prepared, prepared.method.freeze(prepared.described, prepared.plan, silent)


def groups_of(prepared: Preparation) -> tuple[tuple[str, ...], ...]:
    """The columns that are clustered together."""
    assert isinstance(prepared.method, PartitionMethod)
    return prepared.method.resolve_groups(prepared.described.columns)


def expected(setting: Setting) -> dict[str, float]:
    """Expected SSE and SAE of a release over all rows and columns, and those of its clusters without noise.

    No noise is drawn: exact up to rounding for SSE, and for noise that is fine against the domain for SAE.
    """
    prepared, frozen = settled(setting)
    method, described, shares = prepared.method, prepared.described, dict(prepared.plan.shares)
    if isinstance(method, InsensitiveDP):
        paying = paying_clusters(described.n, method.size)
        shares = {name: share / paying for name, share in shares.items()}
    sse_alone = sae_alone = sae = 0.0
    for group, clusters in zip(groups_of(prepared), frozen, strict=True):
        made = clusters.partition
        for name in group:
            x, width = described.original(name), float(described.lattices[name].width)
            mean = made.centroids(x)[made.labels]
            scale = width / (float(shares[name]) * made.sizes[made.labels].astype(np.float64))
            sse_alone += float(((x - mean) ** 2).sum())
            sae_alone += float(np.abs(x - mean).sum())
            sae += float(absolute_error(x, mean, scale, width).sum())
    return {
        "sse": float(sum(expected_errors(prepared, frozen).values())),
        "sae": sae,
        "sse_alone": sse_alone,
        "sae_alone": sae_alone,
    }


def noise_of_every_row(setting: Setting) -> float:
    """Expected SSE if every copy of a centroid got noise of its own, of scale W/ε_j as for a record by itself."""
    prepared, frozen = settled(setting)
    described = prepared.described
    total = 0.0
    for group, clusters in zip(groups_of(prepared), frozen, strict=True):
        made = clusters.partition
        for name in group:
            lattice = described.lattices[name]
            step, x = float(lattice.step), described.original(name)
            mean = made.centroids(x)[made.labels]
            below, above = mean / step, (float(lattice.width) - mean) / step
            scale = np.full(x.size, lattice.steps / float(prepared.plan.shares[name]))
            shift, square = clipped_moments(scale, below, above)
            total += float((step**2 * square + 2 * step * (mean - x) * shift + (x - mean) ** 2).sum())
    return total


def absolute_error(x: Floats, centre: Floats, scale: Floats, width: float) -> Floats:
    """E|x - Y|, Y the centre with Laplace noise, clipped to 0..width.

    The chance that Y passes t is integrated, upwards from x to the upper end and downwards to the lower one.

    >>> float(absolute_error(np.array([5.0]), np.array([5.0]), np.array([0.1]), 10.0)[0])
    0.1
    """

    def tail(reach: Floats) -> Floats:
        """Integral of P(noise > s) over s from `reach` on."""
        far = 0.5 * scale * np.exp(-np.abs(reach) / scale)
        return np.where(reach >= 0, far, far - reach)

    return tail(x - centre) - tail(width - centre) + tail(centre - x) - tail(centre)


def measured(setting: Setting, runs: int) -> dict[str, float]:
    """Mean and standard deviation of SSE and SAE over releases with seeds 0, 1, 2, ..., on unrounded values."""
    prepared, frozen = settled(setting)
    original = np.stack([prepared.described.original(name) for name in setting.columns], axis=1)
    squares, sizes = [], []
    for seed in range(runs):
        release = carry_out(replace(prepared, source=Seeded(seed)), frozen=frozen)
        off = original - np.stack([np.asarray(release.aligned[name]) for name in setting.columns], axis=1)
        squares.append(float((off**2).sum()))
        sizes.append(float(np.abs(off).sum()))
    return {
        "sse": float(np.mean(squares)),
        "sse_sd": float(np.std(squares, ddof=1)),
        "sae": float(np.mean(sizes)),
        "sae_sd": float(np.std(sizes, ddof=1)),
    }


def standard_error(deviation: float, runs: int, printed_runs: int | None = None) -> float:
    """Of a mean of runs with this standard deviation, or of the difference to a printed one.

    >>> standard_error(3.0, 9), standard_error(3.0, 18, 18)
    (1.0, 1.0)
    """
    return float(deviation * np.sqrt(1 / runs + (1 / printed_runs if printed_runs else 0)))
