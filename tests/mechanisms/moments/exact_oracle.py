"""Moments by their definitions, in fractions: slow, and plainly right."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Row = Sequence[Fraction | int]


def mean(rows: Sequence[Row], a: int) -> Fraction:
    return Fraction(sum(row[a] for row in rows), len(rows))


def covariance(rows: Sequence[Row], a: int, b: int) -> Fraction:
    """The unbiased sample covariance, as the cross-moment paper prints it in (1)."""
    centre_a, centre_b = mean(rows, a), mean(rows, b)
    return sum(((row[a] - centre_a) * (row[b] - centre_b) for row in rows), Fraction(0)) / (len(rows) - 1)


def coskewness(rows: Sequence[Row], a: int, b: int, c: int) -> Fraction:
    """Fisher's sample coskewness, as printed in (2)."""
    n = len(rows)
    centres = mean(rows, a), mean(rows, b), mean(rows, c)
    total = sum(
        ((row[a] - centres[0]) * (row[b] - centres[1]) * (row[c] - centres[2]) for row in rows), Fraction(0)
    )
    return Fraction(n, (n - 1) * (n - 2)) * total
