"""Tests of the theorems of chapter 4: search for better noise on a lattice by linear programming.

One noise is better than another if its mass is nearer to zero (definitions 6 and 7). On a lattice all symmetric noises
that satisfy ε-differential privacy form a polytope, so optimality can be decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.noise import LatticeBox, Seeded, Staircase

Floats = NDArray[np.float64]
_TAIL = 400


class Line:
    """All symmetric private noises on the integers of which one step of the query is `steps` integers.

    Beyond `blocks` steps every noise falls by exp(-ε) per step (Lemma 2), so that a finite number of masses is enough.
    """

    def __init__(self, steps: int, epsilon: float, blocks: int = 4) -> None:
        self.steps, self.epsilon, self.size = steps, epsilon, steps * blocks
        self.places = np.arange(self.size)

    @cached_property
    def _twice(self) -> Floats:
        return np.where(self.places > 0, 2.0, 1.0)

    def integral(self, powers: Floats) -> Floats:
        """Weights of the masses in a sum of a function of |x| over all integers; `powers` has its values from 0 on."""
        weights = self._twice * powers[: self.size]
        last = self.places[-self.steps :]
        for block in range(1, (powers.size - self.size) // self.steps):
            weights[-self.steps :] += 2 * math.exp(-self.epsilon * block) * powers[last + block * self.steps]
        return weights

    @cached_property
    def _total(self) -> Floats:
        return self.integral(np.ones(self.size + _TAIL * self.steps))

    @cached_property
    def _inequalities(self) -> Any:
        """p(x) <= e^ε p(y) for all x, y at most one step of the query apart."""
        from scipy.sparse import csr_matrix

        rows, columns, entries, count = [], [], [], 0
        factor = math.exp(self.epsilon)
        for place in range(self.size):
            for move in range(-self.steps, self.steps + 1):
                other, share = abs(place + move), 1.0
                if other >= self.size:
                    other, share = other - self.steps, math.exp(-self.epsilon)
                if other == place:
                    continue
                for a, b, x, y in ((place, other, 1.0, share), (other, place, share, 1.0)):
                    rows += [count, count]
                    columns += [a, b]
                    entries += [x, -factor * y]
                    count += 1
        return csr_matrix((entries, (rows, columns)), shape=(count, self.size))

    def least(self, powers: Floats) -> float:
        """The least expected value of a function of |x| that any private noise has."""
        from scipy.optimize import linprog

        found = linprog(
            self.integral(powers),
            A_ub=self._inequalities,
            b_ub=np.zeros(self._inequalities.shape[0]),
            A_eq=self._total[np.newaxis],
            b_eq=[1.0],
        )
        return float(found.fun or 0.0)

    def gain(self, masses: Floats) -> float:
        """How much mass can be moved towards zero, summed over all intervals around zero; 0 if nothing is better."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_matrix, vstack

        inside = np.tril(np.ones((self.size, self.size))) * self._twice
        wanted = inside @ masses
        found = linprog(
            -inside.sum(axis=0),
            A_ub=vstack([self._inequalities, csr_matrix(-inside)]),
            b_ub=np.concatenate((np.zeros(self._inequalities.shape[0]), -wanted + 1e-12)),
            A_eq=self._total[np.newaxis],
            b_eq=[1.0],
        )
        return float(-(found.fun or 0.0) - wanted.sum())


def lopsided_gain(steps: int, left: int, right: int, epsilon: float, blocks: int = 4) -> float:
    """How much mass of a staircase with a centre from -left to right can be moved towards zero; 0 if it is optimal.

    Among all private noises of the integers, symmetric or not; one step of the query is `steps` integers.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix, vstack

    end = steps * blocks
    places = np.arange(-end, end + 1)
    level = np.maximum(-(-np.maximum(places - right, -left - places) // steps), 0)
    # beyond the last step on either side every noise falls by exp(-ε) per step
    weights = np.where(np.abs(places) > end - steps, 1 / -math.expm1(-epsilon), 1.0)
    masses = np.exp(-epsilon * level)
    masses /= weights @ masses
    pairs = sorted({pair for place in places.tolist() for pair in _within_a_step(place, steps, end)})
    factor = math.exp(epsilon)
    entries = [entry for _, _, share in pairs for entry in (1.0, -factor * math.exp(-epsilon * share))]
    columns = [column + end for one, other, _ in pairs for column in (one, other)]
    private: Any = csr_matrix(
        (entries, (np.repeat(np.arange(len(pairs)), 2), columns)), shape=(len(pairs), places.size)
    )
    inside = (np.minimum(0, places)[:, np.newaxis] <= places) & (
        places <= np.maximum(0, places)[:, np.newaxis]
    )
    between = inside.astype(np.float64)
    wanted = between @ masses
    found = linprog(
        -between.sum(axis=0),
        A_ub=vstack([private, csr_matrix(-between)]),
        b_ub=np.concatenate((np.zeros(len(pairs)), -wanted + 1e-12)),
        A_eq=weights[np.newaxis],
        b_eq=[1.0],
    )
    return float(-(found.fun or 0.0) - wanted.sum())


def _within_a_step(place: int, steps: int, end: int) -> Iterator[tuple[int, int, int]]:
    """p(one) <= e^ε p(other) e^(-ε·share) for places at most a step apart; share is ±1 where one lies in a tail."""
    for move in range(-steps, steps + 1):
        other = place + move
        share = int(abs(other) > end)
        other -= share * int(math.copysign(steps, other))
        if other != place:
            yield place, other, share
            yield other, place, -share


def laplace_on_lattice(line: Line) -> Floats:
    """Mass of the cells around the integers under Laplace noise of the scale that the query needs."""
    scale = line.steps / line.epsilon
    edges = np.append(line.places, line.places[-1] + 1) - 0.5
    below = np.where(
        edges < 0, 0.5 * np.exp(-np.abs(edges) / scale), 1 - 0.5 * np.exp(-np.abs(edges) / scale)
    )
    return np.diff(below)


def box_gain(steps: tuple[int, int], centre: tuple[int, int], epsilon: float, levels: int = 2) -> float:
    """How much mass of box noise can be moved towards zero inside its first levels, by total distance (Theorem 3).

    Points of one quadrant stand for their reflections. A move goes to a point of the box between a point and zero.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    law = LatticeBox(steps, epsilon, centre)
    ends = [z + (levels + 1) * s for z, s in zip(centre, steps, strict=True)]
    points = [(x, y) for x in range(ends[0] + 1) for y in range(ends[1] + 1)]
    number = {point: place for place, point in enumerate(points)}
    masses, level = law.mass(points), law.level(points)
    reflections = [(2 if x else 1) * (2 if y else 1) for x, y in points]
    free = np.flatnonzero(level <= levels).tolist()
    moves = [
        (start, number[x, y])
        for start in free
        for x in range(points[start][0] + 1)
        for y in range(points[start][1] + 1)
        if (x, y) != points[start]
    ]
    changed = csr_matrix(
        (
            [share for a, b in moves for share in (-1 / reflections[a], 1 / reflections[b])],
            ([place for move in moves for place in move], np.repeat(np.arange(len(moves)), 2)),
        ),
        shape=(len(points), len(moves)),
    )
    one, other = np.array(sorted(_neighbours(points, number, free, steps))).T
    factor = math.exp(epsilon)
    distance = [sum(points[a]) - sum(points[b]) for a, b in moves]
    found = linprog(
        -np.array(distance, dtype=np.float64),
        A_ub=changed[one] - factor * changed[other],
        b_ub=factor * masses[other] - masses[one],
    )
    return -float(found.fun or 0.0)


def _neighbours(
    points: Sequence[tuple[int, int]],
    number: dict[tuple[int, int], int],
    free: Sequence[int],
    steps: tuple[int, int],
) -> Iterator[tuple[int, int]]:
    """Pairs of points, in both orders, that one record can move into each other, one of them free."""
    for place in free:
        x, y = points[place]
        for right in range(-steps[0], steps[0] + 1):
            for up in range(-steps[1], steps[1] + 1):
                other = number.get((abs(x + right), abs(y + up)))
                if other is not None and other != place:
                    yield place, other
                    yield other, place


def constructed(epsilon: float) -> Staircase:
    """The noise of section 4.3: the mass of Laplace noise in every step moved to the inner part of the step."""
    q = math.exp(-epsilon)
    return Staircase(1.0, epsilon, (1 - q - epsilon * q) / (epsilon * (1 - q)))


def mixtures(epsilon: float, count: int) -> Iterator[Floats]:
    """P(|Y| <= a) on `GRID` of private noises of many forms: mixtures of staircases and of Laplace noise.

    Every second one falls by exp(-ε) from step to step, as an optimal one must; the others fall more slowly.
    """
    source = Seeded(4)
    for trial in range(count):
        wide = trial % 2
        drawn = source.below(1000, 6) / 1000
        parts = [Staircase(1.0, epsilon, (1 + wide) * float(share)).outside(GRID) for share in drawn[:3]]
        parts += [np.exp(-epsilon * GRID / (1 + 2 * wide * float(share))) for share in drawn[3:]]
        weights = source.below(1000, 6) + 1
        yield 1 - np.average(parts, axis=0, weights=weights)


GRID = np.linspace(0, 12, 2401)


def dominating(inside: Floats, epsilon: float) -> float | None:
    """The half-width d of a staircase that is better than a noise with P(|Y| <= a) = inside on `GRID` (Theorem 1)."""
    low, high = 0.0, 1.0
    # the better ones may fill a narrow range, so that the search closes in on the best
    for _ in range(8):
        centres = np.linspace(low, high, 41)
        margins = [
            (1 - Staircase(1.0, epsilon, float(centre)).outside(GRID) - inside).min() for centre in centres
        ]
        best = int(np.argmax(margins))
        if margins[best] >= -1e-12:
            return float(centres[best])
        low, high = float(centres[max(best - 1, 0)]), float(centres[min(best + 1, 40)])
    return None
