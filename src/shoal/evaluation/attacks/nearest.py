"""Linkability and attribute inference by the nearest released rows.

Distance: sum over the columns of |difference| / range for numbers and of 0 or 1 for nominal values (Gower).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.evaluation.attacks.singling import Space
from shoal.evaluation.linkage import THREADS_FROM, TIE_ULPS, TREE_SLACK, tie_width
from shoal.partition import row_groups


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A released table restricted to some columns, with identical rows grouped.

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
            With numbers only, a tree: O(log n) for a target in few columns. With nominal columns, a scan of all
            distinct rows, each up to the column that puts it out of reach. Memory O(n).
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
    from shoal.evaluation.attacks._kernels import nearest_candidates as scan

    # nominal columns first: most rows are out of reach after a few of them
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
        # a later row may have been nearer than the nearest so far
        out.append(near[:seen][gaps[:seen] <= reach])
    return out


def inference(
    targets: NDArray[np.float64],
    released: NDArray[np.float64],
    space: Space,
    secret: int,
    margin: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """The attacker knows everything about a person except one attribute, and infers that from the release.

    The attacker knows all other columns of the target exactly, looks up the nearest released row and takes
    its secret for that of the target. Among equally near rows each is taken with the same chance, so the
    credit of a target is the share of correct secrets among them. What holds for people in general (taxes
    follow income) is also learnt by this attack: only the success above that of a control group is due to
    the target being in the data.

    Args:
        secret: position of the unknown column.
        margin: how far off a correct guess of a number may be, one for all or one per target; nominal values must
            be equal.

    Reference:
        Giomi et al., A unified framework for quantifying privacy risk in synthetic data, PoPETs 2023.

    >>> space = Space(("age", "pay"), np.array([False, False]), np.array([50.0, 100.0]))
    >>> rows = np.array([[20.0, 0.0], [60.0, 90.0], [60.0, 50.0]])
    >>> inference(np.array([[25.0, 3.0], [61.0, 93.0], [62.0, 70.0]]), rows, space, 1, 5.0).tolist()
    [1.0, 0.5, 0.0]
    """
    known = [j for j in range(len(space.names)) if j != secret]
    rows = Rows.over(released[:, known], space.part(known))
    order = np.argsort(rows.labels, kind="stable")
    starts = np.concatenate(([0], np.cumsum(rows.sizes)))
    guesses = released[order, secret]
    allowed = np.broadcast_to(0.0 if space.nominal[secret] else margin, len(targets))
    credits = np.zeros(len(targets))
    for i, near in enumerate(rows.nearest(targets[:, known])):
        guess = np.concatenate([guesses[starts[group] : starts[group + 1]] for group in near])
        credits[i] = np.mean(np.abs(guess - targets[i, secret]) <= allowed[i])
    return credits


def inference_by_guessing(
    secrets: NDArray[np.float64], released: NDArray[np.float64], margin: float | NDArray[np.float64]
) -> float:
    """Chance that the secret of a random released row is right, mean over the targets.

    >>> inference_by_guessing(np.array([1.0, 5.0]), np.array([1.0, 2.0, 5.0, 9.0]), 1.0)
    0.375
    """
    values = np.sort(released)
    right = np.searchsorted(values, secrets + margin, "right") - np.searchsorted(values, secrets - margin)
    return float(right.mean() / values.size)


def linkability(
    targets: NDArray[np.float64],
    released: NDArray[np.float64],
    space: Space,
    first: Sequence[int],
    second: Sequence[int],
) -> NDArray[np.float64]:
    """The attacker joins two files about the same people that have no column in common.

    One source knows some columns of a person, the other source other columns: a clinic and a shop. The
    attacker looks up the released row nearest to each half of the person's record and claims that the halves
    belong together if both lookups end at the same row. Among equally near rows each is taken with the same
    chance, so the credit of a target is |A ∩ B| / (|A| |B|), A and B being the rows nearest to its halves:
    behind k identical rows it is 1/k.

    Args:
        targets: records whose halves are to be joined, all columns.
        released: the released table, all columns.
        first: positions of the columns the first source knows.
        second: those of the second source.

    Reference:
        Giomi et al., A unified framework for quantifying privacy risk in synthetic data, PoPETs 2023.

    >>> space = Space(("a", "b"), np.array([False, False]), np.array([9.0, 9.0]))
    >>> rows = np.array([[0.0, 0.0], [0.0, 0.0], [9.0, 9.0]])
    >>> linkability(np.array([[1.0, 2.0], [8.0, 8.0], [0.0, 9.0]]), rows, space, [0], [1]).tolist()
    [0.5, 1.0, 0.0]
    """
    halves = [Rows.over(released[:, list(part)], space.part(part)) for part in (first, second)]
    near = [rows.nearest(targets[:, list(part)]) for rows, part in zip(halves, (first, second), strict=True)]
    # released rows sorted by their group in the first half, to walk from a group to its rows
    order = np.argsort(halves[0].labels, kind="stable")
    starts = np.concatenate(([0], np.cumsum(halves[0].sizes)))
    is_near = np.zeros(len(halves[1].values), dtype=bool)
    credits = np.zeros(len(targets))
    for i, (one, other) in enumerate(zip(*near, strict=True)):
        rows = np.concatenate([order[starts[group] : starts[group + 1]] for group in one])
        is_near[other] = True
        shared = int(is_near[halves[1].labels[rows]].sum())
        is_near[other] = False
        credits[i] = shared / (rows.size * int(halves[1].sizes[other].sum()))
    return credits


def linkability_by_guessing(released_rows: int) -> float:
    """Chance that two random rows are the same one."""
    return 1.0 / released_rows
