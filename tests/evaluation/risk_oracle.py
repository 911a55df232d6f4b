"""Disclosure risk from its definitions, record by record, without any code of the library."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

Column = Sequence[Any]


def frequencies(
    keys: Sequence[Column], weights: Sequence[float], alpha: float
) -> tuple[list[float], list[float]]:
    rows = list(zip(*keys, strict=True))
    fk, population = [], []
    for own in rows:
        shares = [_share(own, other, alpha) for other in rows]
        fk.append(sum(shares))
        population.append(sum(share * weight for share, weight in zip(shares, weights, strict=True)))
    return fk, population


def _share(own: tuple[Any, ...], other: tuple[Any, ...], alpha: float) -> float:
    if any(a is not None and b is not None and a != b for a, b in zip(own, other, strict=True)):
        return 0.0
    if own == other or None not in other or set(own) == {None}:
        return 1.0
    if len(own) > 1 and set(other) == {None} and None not in own:
        return 0.0
    return alpha


def individual(fk: float, population: float) -> float:
    p = fk / population
    if fk == population:
        return 1 / fk
    if fk == 1:
        return p / (1 - p) * math.log(1 / p)
    if fk == 2:
        return p / (1 - p) - (p / (1 - p)) ** 2 * math.log(1 / p)
    return p / (fk - (1 - p))


def threshold(risks: Sequence[float], tolerated: float) -> float | None:
    ordered, n = sorted(risks, reverse=True), len(risks)
    if sum(ordered) < tolerated * n:
        return None
    for place, risk in enumerate(ordered):
        repeated = place > 0 and ordered[place - 1] == risk
        if not repeated and sum(ordered[place:]) + risk * place < tolerated * n:
            return risk
    return 0.0


def households(risks: Sequence[float], ids: Column) -> list[float]:
    safe: dict[Any, float] = {}
    for risk, own in zip(risks, ids, strict=True):
        safe[own] = safe.get(own, 1.0) * (1 - risk)
    return [1 - safe[own] for own in ids]


def suda(
    keys: Sequence[Column], fraction: float, *, ihsn: bool
) -> tuple[list[float], list[float], list[list[float]]]:
    """Scores, DIS scores and the points of each key."""
    m, rows = len(keys), list(zip(*keys, strict=True))
    scores, points = [0.0] * len(rows), [[0.0] * m for _ in rows]
    minimal: list[list[set[int]]] = [[] for _ in rows]
    for size in range(1, m + 1):
        worth = float(math.factorial(m - size))
        if ihsn:
            worth *= (2 ** (m - size) - 1) * math.factorial(size) / math.factorial(m)
        for chosen in combinations(range(m), size):
            seen = [tuple(row[key] for key in chosen) for row in rows]
            times = Counter(seen)
            for row, own in enumerate(seen):
                if None in own or times[own] > 1 or any(smaller <= set(chosen) for smaller in minimal[row]):
                    continue
                minimal[row].append(set(chosen))
                scores[row] += worth
                for key in chosen:
                    points[row][key] += worth
    twice = Counter(rows)
    pairs = sum(twice[row] == 2 for row in rows)
    power = 1 + (8 - m) / 20
    total = sum(score**-power for score in scores if score > 0)
    dis = [
        1 / (1 + pairs * (1 - fraction) / fraction / (score**power * total)) if score > 0 else 0.0
        for score in scores
    ]
    return scores, dis, points


def diversity(keys: Sequence[Column], values: Column, c: float) -> list[tuple[int, float, int]]:
    rows = list(zip(*keys, strict=True))
    found = []
    for own in rows:
        inside = Counter(value for row, value in zip(rows, values, strict=True) if row == own)
        counts = sorted(inside.values(), reverse=True)
        n = sum(counts)
        entropy = math.exp(-sum(count / n * math.log(count / n) for count in counts))
        fits = [place for place in range(1, len(counts) + 1) if counts[0] < c * sum(counts[place - 1 :])]
        found.append((len(counts), entropy, max(fits, default=1)))
    return found
