"""Nearest released rows: known columns of a table and of targets come in, the nearest rows of each target leave.

Distance: sum over the columns of |difference| / range for numbers and of 0 or 1 for names (Gower).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.evaluation.attacks.encode import Space
from shoal.evaluation.groups import row_groups
from shoal.evaluation.linkage import THREADS_FROM, TIE_ULPS, TREE_SLACK, tie_width

# entries of the block of distances held at once
BLOCK = 4_000_000


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A released table seen through some columns: identical rows are one group.

    Attributes:
        values: one row of each group.
        labels: group of each released row.
        sizes: number of released rows of each group.
    """

    space: Space
    values: NDArray[np.float64]
    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def over(cls, released: NDArray[np.float64], space: Space) -> Rows:
        groups = row_groups(released.T)
        return cls(space, np.asfortranarray(released[groups.first]), groups.labels, groups.sizes)

    def nearest(self, targets: NDArray[np.float64]) -> list[NDArray[np.int64]]:
        """The groups nearest to each target; several where distances are equal up to rounding.

        Cost:
            With numbers only, a tree: O(log n) for a target in few columns. With names, a scan of all distinct
            rows, each up to the column that puts it out of reach. Memory O(n).
        """
        used = self.space.widths > 0
        if not used.any():
            return [np.arange(len(self.values)) for _ in targets]
        space = self.space.part(np.flatnonzero(used).tolist())
        rows, points = self.values[:, used], np.asfortranarray(targets[:, used])
        numeric = ~space.nominal
        slack = np.full(len(points), TIE_ULPS * np.finfo(np.float64).eps * space.nominal.size)
        slack += tie_width(rows[:, numeric], points[:, numeric], space.widths[numeric])
        if numeric.all():
            return _by_tree(rows, points, space, slack)
        return _by_kernel(rows, points, space, slack)


def distances(points: NDArray[np.float64], rows: NDArray[np.float64], space: Space) -> NDArray[np.float64]:
    """All distances between points and rows.

    >>> space = Space(("age", "town"), np.array([False, True]), np.array([50.0, 1.0]))
    >>> distances(np.array([[20.0, 0.0]]), np.array([[45.0, 0.0], [20.0, 1.0]]), space).tolist()
    [[0.5, 1.0]]
    """
    total = np.zeros((len(points), len(rows)))
    for j, nominal in enumerate(space.nominal):
        a, b = points[:, j, None], rows[None, :, j]
        total += (a != b) if nominal else np.abs(a - b) / space.widths[j]
    return total


def _by_tree(
    rows: NDArray[np.float64], points: NDArray[np.float64], space: Space, slack: NDArray[np.float64]
) -> list[NDArray[np.int64]]:
    from scipy.spatial import cKDTree

    centre = rows.mean(axis=0)
    tree = cKDTree((rows - centre) / space.widths)
    scaled = (points - centre) / space.widths
    workers = -1 if len(points) >= THREADS_FROM else 1
    near, _ = tree.query(scaled, p=1, workers=workers)
    balls = tree.query_ball_point(scaled, near + TREE_SLACK * slack, p=1, workers=workers)
    out = []
    for i, ball in enumerate(balls):
        around = np.sort(np.asarray(ball, dtype=np.int64))
        gaps = distances(points[i : i + 1], rows[around], space)[0]
        out.append(around[gaps <= gaps.min() + slack[i]])
    return out


def _by_kernel(
    rows: NDArray[np.float64], points: NDArray[np.float64], space: Space, slack: NDArray[np.float64]
) -> list[NDArray[np.int64]]:
    from shoal.evaluation.attacks._nearest_kernel import scan

    # names first: most rows are out of reach after a few of them
    order = np.argsort(~space.nominal, kind="stable")
    scale = np.where(space.nominal, 1.0, 1.0 / space.widths)[order]
    rough_points, rough_rows = (np.ascontiguousarray(table[:, order] * scale) for table in (points, rows))
    points, rows = np.ascontiguousarray(points), np.ascontiguousarray(rows)
    names = int(space.nominal.sum())
    near, gaps = np.empty(len(rows), dtype=np.int64), np.empty(len(rows))
    out = []
    for i in range(len(points)):
        seen, reach = scan(
            points[i],
            rows,
            space.nominal,
            space.widths,
            float(slack[i]),
            rough_points[i],
            rough_rows,
            names,
            near,
            gaps,
        )
        # what was nearest so far may have been beaten by a later row
        out.append(near[:seen][gaps[:seen] <= reach])
    return out


def _by_scan(
    rows: NDArray[np.float64], points: NDArray[np.float64], space: Space, slack: NDArray[np.float64]
) -> list[NDArray[np.int64]]:
    """The slow reference of the kernel: every distance of a block of rows."""
    best = np.full(len(points), np.inf)
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    step = max(1, BLOCK // len(points))
    for start in range(0, len(rows), step):
        gaps = distances(points, rows[start : start + step], space)
        np.minimum(best, gaps.min(axis=1), out=best)
        who, where = np.nonzero(gaps <= (best + slack)[:, None])
        found.append((who, where + start, gaps[who, where]))
    who, where, gap = (np.concatenate(part) for part in zip(*found, strict=True))
    # what was nearest in its block may have been beaten in a later one
    kept = gap <= (best + slack)[who]
    who, where = who[kept], where[kept]
    order = np.lexsort((where, who))
    return np.split(where[order], np.cumsum(np.bincount(who, minlength=len(points)))[:-1])
