"""The clusters behind individual DP: sensitivities and losses for a table and k, as JSON values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers.desk import read_table
from papers.idp.expectation import clusters
from papers.idp.settings import DATA_SETS, NARROW, WIDE
from shoal.mechanisms.sensitivity import (
    changes_of_inner_sums,
    changes_of_sums,
    clusterwise_maximum,
    inner_sums,
)
from shoal.partition import ranking

Whole = NDArray[np.int64]


def sensitivities(path: str, name: str, k: int) -> dict[str, Any]:
    """How the three sensitivities of the clusters of all attributes compare; `top` is the width of the domain."""
    data = DATA_SETS[name]
    columns = data.matrix(read_table(Path(path))).T
    made = [clusters(x, k, NARROW) for x in columns]
    wide = [clusters(x, k, WIDE) for x in columns]
    local = np.concatenate([c.local / c.top for c in made])
    inner = np.concatenate([c.inner / c.top for c in made])
    at_means = np.concatenate([np.maximum(c.top - c.means, c.means) / c.top for c in made])
    exact = sum(int(c.sizes[c.inner == 0].sum()) for c in made)
    return {
        "clusters": int(local.size),
        "without_noise": int((inner == 0).sum()),
        "values_exact": exact / sum(x.size for x in columns),
        "touching": sum(int(((c.at(0) == 0) | (c.at(-1) == c.top)).sum()) for c in made),
        "local_is_global": int((local == 1).sum()),
        "local_least": float(local.min()),
        "local_median": float(np.median(local)),
        "inner_median": float(np.median(inner)),
        "inner_mean": float(inner.mean()),
        "inner_above_local": int((inner > local).sum()),
        "inner_above_global": int((inner > 1).sum()),
        "inner_moved_by_domain": sum(
            int((a.inner != b.inner).sum()) for a, b in zip(made, wide, strict=True)
        ),
        "at_means_too_small": int((at_means < local * (1 - 1e-12)).sum()),
        "at_means_least": float((at_means / local).min()),
    }


def brute_force(path: str, name: str, k: int) -> dict[str, int]:
    """Every record of every cluster replaced by many values: how often the propositions miss the largest change.

    Values tried: both ends of the domain, every value of the cluster and those next to them, and 16 places of the
    domain.
    """
    data = DATA_SETS[name]
    found = {"clusters": 0, "tried": 0, "global": 0, "local": 0, "inner": 0, "left_range": 0}
    for x in data.matrix(read_table(Path(path))).T:
        made = clusters(x, k, NARROW)
        for start, size, local, inner in zip(made.starts, made.sizes, made.local, made.inner, strict=True):
            cluster = made.values[start : start + size]
            plain, within, out, tried = _largest_changes(cluster, made.top)
            found["clusters"] += 1
            found["tried"] += tried
            found["global"] += plain > made.top
            found["local"] += plain != local
            found["inner"] += within != inner
            found["left_range"] += out
    return {key: int(value) for key, value in found.items()}


def _largest_changes(cluster: NDArray[np.float64], top: float) -> tuple[float, float, int, int]:
    """Largest changes of the plain and the inner sum, how often the inner values left the range, and of how many."""
    places = np.clip(np.concatenate([cluster - 1, cluster, cluster + 1]), 0, top)
    values = np.unique(np.concatenate([places, np.floor(np.linspace(0, top, 16)), [top]]))
    n = cluster.size
    changed = np.broadcast_to(cluster, (n, values.size, n)).copy()
    changed[np.arange(n), :, np.arange(n)] = values
    plain = np.abs(changed.sum(axis=-1) - cluster.sum()).max()
    before, after = _preprocessed(cluster), _preprocessed(changed)
    inner = np.abs(after.sum(axis=-1) - before.sum()).max()
    out = int(((after < cluster[0]) | (after > cluster[-1])).any(axis=-1).sum())
    return float(plain), float(inner), out, n * values.size


def _preprocessed(clusters_of_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Section 3.2.2, word for word."""
    ordered = np.sort(clusters_of_values, axis=-1)
    ordered[..., 0] = ordered[..., 1]
    ordered[..., -1] = ordered[..., -2]
    return ordered


def reclustered(path: str, name: str, k: int, every: int) -> dict[str, Any]:
    """Records replaced by one at either end of all domains, and the clusters formed anew.

    Losses are in units of ε, with the scales of the actual table: Σ over clusters of change / sensitivity, averaged
    over the attributes, each of which has ε / m. Where the method is applied to both tables, a cluster
    without noise in only one of them makes the loss unbounded.
    """
    data = DATA_SETS[name]
    columns = data.matrix(read_table(Path(path))).T.astype(np.int64)
    replaced = [(record, end) for record in range(0, columns.shape[1], every) for end in (0, 1)]
    local, inner = np.zeros(len(replaced)), np.zeros(len(replaced))
    moved, unbounded = np.zeros(len(replaced), dtype=np.int64), np.zeros(len(replaced), dtype=bool)
    for x in columns:
        top = int(NARROW * int(x.max()))
        before = _sums(x, top, k)
        for place, (record, end) in enumerate(replaced):
            other = x.copy()
            other[record] = end * top
            after = _sums(other, top, k)
            local[place] += np.sum(np.abs(after.plain - before.plain) / before.local) / len(columns)
            inner[place] += _ratio(np.abs(after.within - before.within), before.inner) / len(columns)
            moved[place] += int((after.plain != before.plain).sum())
            unbounded[place] |= bool(((after.inner == 0) != (before.inner == 0)).any())
    return {
        "replacements": len(replaced),
        "local_above": int((local > 1 + 1e-9).sum()),
        "local_most": float(local.max()),
        "inner_above": int((inner > 1 + 1e-9).sum()),
        "inner_median": float(np.median(inner)),
        "inner_most": float(inner.max()),
        "moved_median": float(np.median(moved)),
        "moved_most": int(moved.max()),
        "unbounded": int(unbounded.sum()),
    }


def evenly_spaced(number: int) -> float:
    """Evenly spaced records in so many clusters of 3, the first goes beyond the last: the loss in units of ε."""
    x = np.arange(3 * number, dtype=np.int64)
    other = np.where(x == 0, x.size, x)
    before, after = _sums(x, x.size, 3), _sums(other, x.size, 3)
    return _ratio(np.abs(after.within - before.within), before.inner)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums of all clusters, plain and inner, and how far one record moves them."""

    plain: Whole
    within: Whole
    local: NDArray[np.number]
    inner: NDArray[np.number]


def _sums(x: Whole, top: int, k: int) -> _Sums:
    made = ranking(x, k)
    return _Sums(
        made.sums(x),
        inner_sums(x, made),
        clusterwise_maximum(changes_of_sums(x, top, made), made),
        clusterwise_maximum(changes_of_inner_sums(x, top, made), made),
    )


def _ratio(change: Whole, reach: NDArray[np.number]) -> float:
    """Σ change / reach; a change where nothing could move would be an infinite loss."""
    if bool((change[reach == 0] > 0).any()):
        return float("inf")
    noisy = reach > 0
    return float(np.sum(change[noisy] / reach[noisy]))
