"""Minimal sample uniques as slow and as plain as possible: every set of keys is tried on every pattern."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from shoal.evaluation.disclosure.record_risk import only_person
from shoal.numbers import Integers
from shoal.partition import MISSING, Patterns


def minimal_uniques_one_by_one(found: Patterns) -> tuple[Integers, Integers]:
    """Whose each minimal sample unique is, and its keys as bits."""
    keys, size = found.codes.shape
    whose = only_person(found).tolist()
    owner, sets = [], []
    before: list[list[int]] = [[] for _ in range(size)]
    for many in range(1, keys + 1):
        for chosen in combinations(range(keys), many):
            bits = sum(1 << key for key in chosen)
            rows = [tuple(found.codes[list(chosen), row]) for row in range(size)]
            for row in range(size):
                same = {whose[other] for other in range(size) if rows[other] == rows[row]}
                if MISSING in rows[row] or whose[row] < 0 or same != {whose[row]}:
                    continue
                if not any(smaller & bits == smaller for smaller in before[row]):
                    owner.append(row)
                    sets.append(bits)
                    before[row].append(bits)
    return np.array(owner, dtype=np.int64), np.array(sets, dtype=np.int64)
