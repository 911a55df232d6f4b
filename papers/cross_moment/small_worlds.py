"""The propositions on small worlds: the largest changes of statistics, by sizes and numbers of columns.

Every value lies in [0, 1]. Statistics of different columns are affine in every coordinate of a record, so that tables
of zeros and ones hold the extremes; tests/mechanisms/moments/test_moment_sensitivity.py searches further, and in exact
fractions.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np

from papers.cross_moment.measure import Floats
from papers.cross_moment.printed_bounds import eigenvector_changes_as_printed
from shoal.mechanisms.moments.spectra import Spectrum
from shoal.mechanisms.moments.statistics import (
    MomentSummary,
    eigenvector_changes,
)


def _statistics(rows: Floats, order: int) -> Floats:
    """Means, covariances and coskewnesses of many clusters, shape (clusters, records, columns), each entry once."""
    size, columns = rows.shape[1:]
    centred = rows - rows.mean(axis=1, keepdims=True)
    summary = MomentSummary(columns, order, coskewness="full")
    parts = [rows.mean(axis=1)]
    for entries, factor in (
        (summary.covariance_entries, 1 / (size - 1)),
        (summary.coskewness_entries, size / ((size - 1) * (size - 2)) if order > 1 else 0.0),
    ):
        parts += [
            factor * np.prod(centred[:, :, list(index)], axis=2).sum(axis=1)[:, np.newaxis]
            for index in entries
        ]
    return np.concatenate(parts, axis=1)


def _changes(size: int, columns: int, order: int) -> Floats:
    """How far each statistic moves, for all clusters of corners and all replacements of one record."""
    corners = np.array(list(product((0.0, 1.0), repeat=columns)))
    found = []
    for others in combinations_with_replacement(range(len(corners)), size - 1):
        clusters = np.stack([np.vstack([corners[list(others)], own]) for own in corners])
        statistics = _statistics(clusters, order)
        found.append(
            np.abs(statistics[:, np.newaxis] - statistics[np.newaxis]).reshape(-1, statistics.shape[1])
        )
    return np.concatenate(found)


def largest_entry(size: int, order: int) -> float:
    """The most that one mean (order 0), covariance (1) or coskewness (2) of different columns moves.

    >>> round(3 * largest_entry(3, 2), 9), round(4 * largest_entry(4, 2), 9)
    (2.0, 1.0)
    """
    if order == 0:
        return float(_changes(size, 1, 0).max())
    # the entry of all different columns is the last but those that repeat the last column
    summary = MomentSummary(order + 1, order, coskewness="full")
    entries = summary.covariance_entries if order == 1 else summary.coskewness_entries
    place = summary.means + (summary.covariances if order == 2 else 0)
    place += entries.index(tuple(range(order + 1)))
    return float(_changes(size, order + 1, order)[:, place].max())


def largest_variance(size: int) -> float:
    """The largest unbiased variance of a cluster.

    >>> round(largest_variance(5), 9)
    0.3
    """
    return max(float(np.var([1.0] * ones + [0.0] * (size - ones), ddof=1)) for ones in range(size + 1))


def largest_joint(size: int, columns: int, order: int) -> float:
    """The most that all statistics of a cluster move together, in L1 norm.

    >>> round(3 * largest_joint(3, 2, 2), 9), round(4 * largest_joint(4, 2, 2), 9)
    (10.0, 9.0)
    """
    return float(_changes(size, columns, order).sum(axis=1).max())


def lemma_7(size: int) -> tuple[float, float, float]:
    """The largest sizes of the three quadratic forms of Lemma 7, over all corners.

    >>> lemma_7(5)
    (12.0, 12.0, 12.0)
    """
    points = np.array(list(product((0.0, 1.0), repeat=size - 1)))
    sums = points.sum(axis=1)
    first = size * points @ points.T - 2 * np.outer(sums, sums)
    second = first + (size - 2) * sums[np.newaxis, :]
    third = second + (size - 2) * sums[:, np.newaxis] - (size - 1) * (size - 2)
    b, c, d = (float(np.abs(one).max()) for one in (first, second, third))
    return b, c, d


def wrong_cases(tries: int = 2_000) -> float:
    """The share of random clusters of 5 for which Expressions (5) to (8) are not the largest change, widths 1, 10."""
    rng = np.random.default_rng(0)
    size, (one, other) = 5, (1.0, 10.0)
    a, b = rng.random((2, tries)) * np.array([[one], [other]]) * (size - 1)
    corners = np.stack(
        [x * y - a / (size - 1) * y - b / (size - 1) * x for x in (0.0, one) for y in (0.0, other)]
    )
    largest = (corners.max(axis=0) - corners.min(axis=0)) / size
    high = one * other * (size - 1) > one * b + other * a
    printed = np.where(
        high,
        one * other * (size - 1) - np.where(a > b, one * b, other * a),
        np.where(a > b, other * a, one * b),
    ) / (size * (size - 1))
    return float((np.abs(printed - largest) > 1e-9).mean())


def eigenvalue_ratio(size: int) -> float:
    """The most that the eigenvalues of a covariance matrix of two columns move, over the printed bounds.

    All clusters of corners; the larger of all eigenvalues together over √d·d/k and of a single one over d/k.

    >>> eigenvalue_ratio(4) <= 1
    True
    """
    corners = np.array(list(product((0.0, 1.0), repeat=2)))
    worst = 0.0
    for others in combinations_with_replacement(range(len(corners)), size - 1):
        clusters = np.stack([np.vstack([corners[list(others)], own]) for own in corners])
        values = Spectrum.of(_covariances(clusters)).values
        moved = np.abs(values[:, np.newaxis] - values[np.newaxis])
        worst = max(worst, float(moved.sum(axis=2).max()) / 2**1.5, float(moved.max()) / 2)
    return worst * size


def eigen_form_ratios() -> dict[str, float]:
    """The most that means, eigenvalues and eigenvectors of a covariance matrix move together, over Theorem 11 (ii)."""
    found = {"as a solver finds them": _total_ratio(*_random_neighbours(), aligned=False)}
    return {**found, "the better sign": _total_ratio(*_axis_worlds(), aligned=True)}


def _total_ratio(before: Floats, after: Floats, *, aligned: bool) -> float:
    size, columns = before.shape[1:]
    one, two = (Spectrum.of(_covariances(rows)) for rows in (before, after))
    signs = np.where((one.vectors * two.vectors).sum(axis=1) < 0, -1.0, 1.0)[:, np.newaxis, :]
    vectors = two.vectors * signs if aligned else two.vectors
    moved = (
        np.abs(before.mean(axis=1) - after.mean(axis=1)).sum(axis=1)
        + np.abs(one.values - two.values).sum(axis=1)
        + np.abs(one.vectors - vectors).sum(axis=(1, 2))
    )
    entry = np.full(len(before), 1 / size)
    printed = eigenvector_changes_as_printed(one.values, entry).sum(axis=1)
    return float((moved / (columns / size + columns**1.5 / size + printed)).max())


def slice_ratios() -> dict[str, float]:
    """The most that an eigenvector of a slice of the coskewness moves, over the bound of Proposition 10."""
    before, after = _random_neighbours()
    one, two = (Spectrum.of(_slices(rows)) for rows in (before, after))
    signs = np.where((one.vectors * two.vectors).sum(axis=1) < 0, -1.0, 1.0)[:, np.newaxis, :]
    printed = eigenvector_changes_as_printed(one.values, np.full(len(before), 1 / before.shape[1]))
    found = {
        "as a solver finds them": (one.vectors, two.vectors),
        "largest component positive": (_largest_positive(one.vectors), _largest_positive(two.vectors)),
        "the better sign": (one.vectors, two.vectors * signs),
    }
    return {rule: float((np.abs(a - b).sum(axis=1) / printed).max()) for rule, (a, b) in found.items()}


def _slices(rows: Floats) -> Floats:
    """The first slice of the coskewness of many clusters."""
    size = rows.shape[1]
    centred = rows - rows.mean(axis=1, keepdims=True)
    factor = size / ((size - 1) * (size - 2))
    return np.asarray(factor * np.einsum("tn,tni,tnj->tij", centred[:, :, 0], centred, centred))


def eigenvector_ratios() -> dict[str, float]:
    """The largest change of an eigenvector over the printed bound, by rule for signs, and over the corrected one.

    Clusters of 200 records that are spread out, close together or on a line; one record moves to a corner.
    """
    rows, changed = _random_neighbours()
    entry = np.full(len(rows), 1 / rows.shape[1])
    before, after = (Spectrum.of(_covariances(one)) for one in (rows, changed))
    printed = eigenvector_changes_as_printed(before.values, entry)
    aligned = np.where((before.vectors * after.vectors).sum(axis=1) < 0, -1.0, 1.0)[:, np.newaxis, :]
    found = {
        "as a solver finds them": (before.vectors, after.vectors),
        "largest component positive": (_largest_positive(before.vectors), _largest_positive(after.vectors)),
    }
    ratios = {
        rule: float((np.abs(one - two).sum(axis=1) / printed).max()) for rule, (one, two) in found.items()
    }
    corrected = np.abs(before.vectors - after.vectors * aligned).sum(axis=1) / eigenvector_changes(
        before.values, entry
    )
    return {**ratios, "the better sign": _axis_to_axis(), "corrected bound": float(corrected.max())}


@cache
def _random_neighbours(size: int = 200, tries: int = 2_000) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(3)
    rows = np.choose(
        rng.integers(0, 3, (tries, 1, 1)),
        [
            rng.random((tries, size, 2)),
            np.clip(rng.random((tries, 1, 2)) + rng.normal(0, 0.02, (tries, size, 2)), 0, 1),
            np.clip(rng.random((tries, size, 1)) + rng.normal(0, 0.01, (tries, size, 2)), 0, 1),
        ],
    )
    changed = rows.copy()
    changed[:, 0] = rng.integers(0, 2, (tries, 2))
    return rows, changed


def _axis_worlds() -> tuple[Floats, Floats]:
    """Among 1000 records at the origin one moves from one axis to the other, and the first eigenvector with it."""
    before = np.zeros((1, 1000, 2))
    before[0, 1] = 0.95, 0.0
    after = before.copy()
    before[0, 0], after[0, 0] = (1.0, 0.0), (0.0, 1.0)
    return before, after


def _axis_to_axis() -> float:
    before, after = _axis_worlds()
    one, two = (Spectrum.of(_covariances(rows)) for rows in (before, after))
    aligned = np.where((one.vectors * two.vectors).sum(axis=1) < 0, -1.0, 1.0)[:, np.newaxis, :]
    moved = np.abs(one.vectors - two.vectors * aligned).sum(axis=1)
    return float((moved / eigenvector_changes_as_printed(one.values, np.array([0.001]))).max())


def _covariances(rows: Floats) -> Floats:
    centred = rows - rows.mean(axis=1, keepdims=True)
    return np.asarray(np.einsum("tni,tnj->tij", centred, centred) / (rows.shape[1] - 1))


def _largest_positive(vectors: Floats) -> Floats:
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=1)[:, np.newaxis], axis=1)
    return np.asarray(vectors * np.sign(largest))
