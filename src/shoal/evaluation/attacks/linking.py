"""Linkability: targets and released rows come in, the chance of each target to have its two halves linked leaves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.evaluation.attacks.encode import Space
from shoal.evaluation.attacks.nearest import Rows


def linkability(
    targets: NDArray[np.float64],
    released: NDArray[np.float64],
    space: Space,
    first: Sequence[int],
    second: Sequence[int],
) -> NDArray[np.float64]:
    """Two files about the same people have no column in common, and the attacker wants to join them.

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
    """Chance that two rows picked at random are the same one."""
    return 1.0 / released_rows
