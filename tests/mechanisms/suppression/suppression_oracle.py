"""The reference tool's suppression, slow and one by one, from the words of its definition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]


def counts_of(codes: Codes, alpha: float) -> list[float]:
    """fk of every record, 0 an empty cell: as the reference counts records without any key."""
    n, keys = codes.shape
    found = []
    for i in range(n):
        if not codes[i].any():
            found.append(float(n))
            continue
        total = 0.0
        for j in range(n):
            if ((codes[i] != codes[j]) & (codes[i] > 0) & (codes[j] > 0)).any():
                continue
            if codes[j].all() or (codes[i] == codes[j]).all():
                total += 1.0
            elif keys == 1 or codes[j].any() or not codes[i].all():
                total += alpha
        found.append(total)
    return found


class NothingDiffersError(ValueError):
    """A record lacks its k, and all others fit it: what the reference does then is not known."""


def reference_run(codes: Codes, k: int, ranks: list[int], alpha: float = 1.0) -> Codes:
    """The codes after suppression; ranks are m for the key that goes first."""
    seen: dict[tuple[int, ...], int] = {}
    kept = []
    for row, own in enumerate(map(tuple, codes.tolist())):
        seen[own] = seen.get(own, 0) + 1
        if seen[own] <= k:
            kept.append(row)
    work = codes[kept].copy()
    order = sorted(range(codes.shape[1]), key=lambda key: -ranks[key])
    while True:
        counts = counts_of(work, alpha)
        problems = sorted((count, row) for row, count in enumerate(counts) if count < k)
        if not problems:
            break
        for _, row in problems:
            apart = ((work != work[row]) & (work > 0) & (work[row] > 0)).sum(axis=1)
            if not (apart > 0).any():
                raise NothingDiffersError
            near = work[apart == apart[apart > 0].min()]
            for key in order:
                if work[row, key] > 0 and ((near[:, key] > 0) & (near[:, key] != work[row, key])).any():
                    work[row, key] = 0
                    break
    found = codes.copy()
    found[kept] = work
    return found
