"""Compiled loops over patterns with missing values, imported late because numba is slow to import."""

from __future__ import annotations

import numpy as np

from shoal.kernels import compiled
from shoal.numbers import Floats, Integers
from shoal.partition.row_patterns import MISSING


@compiled
def people_who_fit(
    codes: Integers, starts: Integers, members: Integers, weights: Floats, alpha: float
) -> tuple[Floats, Floats]:
    """fk and Fk of each pattern in persons; `frequencies.as_wildcard` defines the weights."""
    keys, size = codes.shape
    gaps = np.zeros(size, dtype=np.int64)
    for pattern in range(size):
        for key in range(keys):
            gaps[pattern] += codes[key, pattern] == MISSING
    partly = np.flatnonzero(gaps > 0)
    every = np.arange(size)
    fk, population = np.zeros(size), np.zeros(size)
    counted = np.zeros(weights.size)
    touched = np.empty(weights.size, dtype=np.int64)
    for own in range(size):
        number = 0
        # a pattern without gaps matches itself and some with gaps; it is in neither list twice
        others = partly if gaps[own] == 0 else every
        for place in range(-1, others.size):
            other = own if place < 0 else others[place]
            if place >= 0 and other == own:
                continue
            fits = True
            for key in range(keys):
                a, b = codes[key, own], codes[key, other]
                if a != b and a != MISSING and b != MISSING:
                    fits = False
                    break
            if not fits:
                continue
            share = alpha
            if other == own or gaps[other] == 0 or gaps[own] == keys:
                share = 1.0
            elif keys > 1 and gaps[own] == 0 and gaps[other] == keys:
                share = 0.0
            for at in range(starts[other], starts[other + 1]):
                unit = members[at]
                if share > counted[unit]:
                    if counted[unit] == 0.0:
                        touched[number] = unit
                        number += 1
                    counted[unit] = share
        for at in range(number):
            unit = touched[at]
            fk[own] += counted[unit]
            population[own] += counted[unit] * weights[unit]
            counted[unit] = 0.0
    return fk, population
