"""Verdicts on the claims of chapter 6, from truth values and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from papers.thesis.chapter6_runs import Found, Runs

# "about" and "similar" mean: by no more than this factor
ABOUT = 1.5
LOW, HIGH = ("0.01", "0.1"), ("1", "10")
_ERRORS = 3.0


def about(value: float, said: float, factor: float = ABOUT) -> bool:
    return said / factor <= value <= said * factor


def not_rising(runs: Sequence[Runs]) -> list[bool]:
    """Whether each step goes down or stays, as far as three standard errors allow to say so."""
    return [
        later.mean - earlier.mean <= _ERRORS * math.hypot(later.error(), earlier.error())
        for earlier, later in pairwise(runs)
    ]


def gain(found: Found, k: int, epsilon: str) -> float:
    """SSE_f against k = 1."""
    return math.sqrt(found.sse(1, epsilon) / found.sse(k, epsilon))


def nearest(found: Found, k: int) -> int:
    return min(found.ks, key=lambda one: abs(one - k))


def extent(values: Iterable[float]) -> str:
    """The least and the largest, in words.

    >>> extent([0.5, 1234.5, 2])
    '0.5 to 1,234'
    """
    low, high = (f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}" for value in _ends(values))
    return f"{low} to {high}"


def _ends(values: Iterable[float]) -> tuple[float, float]:
    known = list(values)
    return min(known), max(known)


def rank_correlation(one: Sequence[float], two: Sequence[float]) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(one, two).statistic)
