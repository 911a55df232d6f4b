"""Frequencies of patterns as plain as possible: every pattern is compared with every other."""

from __future__ import annotations

import numpy as np

from shoal.partition import MISSING, Patterns
from shoal.partition.groups import Frequencies


def frequencies_one_by_one(found: Patterns, alpha: float = 1.0) -> Frequencies:
    """What `as_wildcard` finds: sample and population frequency of each pattern."""
    size = found.counts.size
    fk, population = np.zeros(size), np.zeros(size)
    complete, empty = found.complete, (found.codes == MISSING).all(axis=0)
    for i in range(size):
        own = found.codes[:, i]
        for j in range(size):
            other = found.codes[:, j]
            if ((own == other) | (own == MISSING) | (other == MISSING)).all():
                share = 1.0 if complete[j] or empty[i] or i == j else alpha
                if complete[i] and empty[j] and len(own) > 1:
                    share = 0.0
                fk[i] += share * found.counts[j]
                population[i] += share * found.weights[j]
    return fk, population
