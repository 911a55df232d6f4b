"""Attribute inference: targets, released rows and a secret column come in, the chance of each guess leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.evaluation.attacks.encode import Space
from shoal.evaluation.attacks.nearest import Rows


def inference(
    targets: NDArray[np.float64],
    released: NDArray[np.float64],
    space: Space,
    secret: int,
    margin: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """A neighbour knows everything about a person except one thing, and wants to find that out.

    The attacker knows all other columns of the target exactly, looks up the nearest released row and takes
    its secret for that of the target. Among equally near rows each is taken with the same chance, so the
    credit of a target is the share of right secrets among them. What holds for people in general (taxes
    follow income) is learnt by this attack as well: only the success above that of a control group is due to
    the target being in the data.

    Args:
        secret: position of the unknown column.
        margin: how far off a right guess of a number may be, one for all or one for each target; names must
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
    """Chance that the secret of a released row picked at random is right, mean over the targets.

    >>> inference_by_guessing(np.array([1.0, 5.0]), np.array([1.0, 2.0, 5.0, 9.0]), 1.0)
    0.375
    """
    values = np.sort(released)
    right = np.searchsorted(values, secrets + margin, "right") - np.searchsorted(values, secrets - margin)
    return float(right.mean() / values.size)
