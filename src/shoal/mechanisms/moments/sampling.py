"""Draw rows with given moments: repair a noisy matrix, draw, post-process and match."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.moments.statistics import MomentSummary, cluster_order
from shoal.noise import Source
from shoal.numbers import Floats, Integers
from shoal.partition import Partition

# Eigenvalues above this are zero up to rounding.
NEGATIVE = -1e-9
_TOLERANCE = 1e-8
_MOST_ROUNDS = 60
_LINE_SEARCH = 12


def variance_caps(sizes: Integers) -> Floats:
    """The largest unbiased variance that values in an interval of length 1 can have, for each cluster size.

    Half of the values sit at each end: |C|/(4·(|C|-1)) for an even number of them, (|C|+1)/(4·|C|) for an odd one.

    >>> variance_caps(np.array([2, 3, 4])).tolist()
    [0.5, 0.3333333333333333, 0.3333333333333333]
    """
    return np.where(sizes % 2 == 0, sizes / (4.0 * np.maximum(sizes - 1, 1)), (sizes + 1) / (4.0 * sizes))


def skewness_caps(sizes: Integers) -> Floats:
    """The largest skewness of this many records: Fisher's third moment over the cube of the deviation is √|C|.

    Attained by one record apart from all others. For moments with divisor |C| the bound is the well-known
    (|C|-2)/√(|C|-1).

    >>> skewness_caps(np.array([4, 100])).tolist()
    [2.0, 10.0]
    """
    return np.asarray(np.sqrt(sizes))


def correlations(covariances: Floats) -> Floats:
    """Correlation matrices of noisy covariance matrices: entries in [-1, 1], 0 beside a variance of 0."""
    deviations = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 0.0))
    outer = deviations[:, :, np.newaxis] * deviations[:, np.newaxis, :]
    found = np.zeros_like(covariances)
    np.divide(covariances, outer, out=found, where=outer > 0)
    np.clip(found, -1.0, 1.0, out=found)
    diagonal = np.arange(covariances.shape[1])
    found[:, diagonal, diagonal] = 1.0
    return found


def possible(matrices: Floats) -> NDArray[np.bool_]:
    """Whether each symmetric matrix has no negative eigenvalue, up to rounding."""
    return np.linalg.eigvalsh(matrices)[:, 0] >= NEGATIVE


def nearest_correlations(matrices: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The nearest correlation matrices, in Frobenius norm, to symmetric ones with unit diagonal; and which changed.

    Newton's method on the dual problem, all matrices at once: find y such that the positive part of A + diag(y) has
    a unit diagonal. It takes a handful of iterations where alternating projections need hundreds.

    Cost:
        A few eigendecompositions of each matrix that is not a correlation matrix already.

    Reference:
        Qi and Sun, "A quadratically convergent Newton method for computing the nearest correlation matrix"; named
        by the cross-moment paper, section 5.2.

    >>> far = np.array([[[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]]])
    >>> near, moved = nearest_correlations(far)
    >>> moved.tolist(), near[0].round(6).tolist()
    ([True], [[1.0, 0.5, -0.5], [0.5, 1.0, 0.5], [-0.5, 0.5, 1.0]])
    """
    found = np.linalg.eigh(matrices)
    moved = found.eigenvalues[:, 0] < NEGATIVE
    repaired = matrices.copy()
    if moved.any():
        repaired[moved] = _newton(matrices[moved], found.eigenvalues[moved], found.eigenvectors[moved])
    return repaired, moved


def _newton(matrices: Floats, values: Floats, vectors: Floats) -> Floats:
    """The repaired matrices; `values` and `vectors` are eigenvalues and eigenvectors of the given ones."""
    shift = np.zeros(values.shape)
    residual = _diagonal(values, vectors) - 1.0
    active = np.arange(len(matrices))
    for _ in range(_MOST_ROUNDS):
        active = active[np.abs(residual[active]).max(axis=1) > _TOLERANCE]
        if not active.size:
            break
        step = _newton_step(values[active], vectors[active], residual[active])
        value = _dual(values[active], shift[active])
        slope = (residual[active] * step).sum(axis=1)
        length = np.ones(active.size)
        pending = np.arange(active.size)
        for _ in range(_LINE_SEARCH):
            tried = shift[active[pending]] + length[pending, np.newaxis] * step[pending]
            found_values, found_vectors = _decomposed(matrices[active[pending]], tried)
            lower = (
                _dual(found_values, tried) <= value[pending] + 1e-4 * length[pending] * slope[pending] + 1e-12
            )
            places = active[pending[lower]]
            shift[places], values[places], vectors[places] = (
                tried[lower],
                found_values[lower],
                found_vectors[lower],
            )
            pending = pending[~lower]
            if not pending.size:
                break
            length[pending] /= 2
        residual[active] = _diagonal(values[active], vectors[active]) - 1.0
    return _unit_diagonal(values, vectors)


def _decomposed(matrices: Floats, shift: Floats) -> tuple[Floats, Floats]:
    shifted = matrices.copy()
    diagonal = np.arange(shift.shape[1])
    shifted[:, diagonal, diagonal] += shift
    found = np.linalg.eigh(shifted)
    return found.eigenvalues, found.eigenvectors


def _dual(values: Floats, shift: Floats) -> Floats:
    """The convex function whose gradient is the diagonal of the positive part minus 1."""
    return np.asarray(0.5 * (np.maximum(values, 0.0) ** 2).sum(axis=1) - shift.sum(axis=1))


def _diagonal(values: Floats, vectors: Floats) -> Floats:
    return np.asarray(np.einsum("nik,nk->ni", vectors**2, np.maximum(values, 0.0)))


def _newton_step(values: Floats, vectors: Floats, residual: Floats) -> Floats:
    """Solve with the generalised Jacobian of the diagonal of the positive part, formed explicitly."""
    positive = np.maximum(values, 0.0)
    size = values.shape[1]
    # the sum over all pairs of eigenvectors is symmetric: every pair once, two different ones count twice
    one, two = np.triu_indices(size)
    apart = values[:, one] - values[:, two]
    same = np.abs(apart) < 1e-14
    quotient = (positive[:, one] - positive[:, two]) / np.where(same, 1.0, apart)
    weights = np.where(same, (values[:, one] > 0) & (values[:, two] > 0), quotient) * np.where(
        one == two, 1.0, 2.0
    )
    products = vectors[:, :, one] * vectors[:, :, two]
    jacobian = (products * weights[:, np.newaxis, :]) @ products.transpose(0, 2, 1)
    diagonal = np.arange(size)
    # a singular Jacobian is regularised by a term that vanishes with the residual
    jacobian[:, diagonal, diagonal] += (
        np.minimum(1e-3, np.abs(residual).max(axis=1) * 1e-3)[:, np.newaxis] + 1e-12
    )
    return np.asarray(-np.linalg.solve(jacobian, residual[:, :, np.newaxis])[:, :, 0], dtype=np.float64)


def _unit_diagonal(values: Floats, vectors: Floats) -> Floats:
    """The positive part, scaled so that its diagonal is 1 to the last digit."""
    positive = np.einsum("nik,nk,njk->nij", vectors, np.maximum(values, 0.0), vectors)
    deviations = np.sqrt(np.maximum(np.diagonal(positive, axis1=1, axis2=2), 1e-300))
    scaled = positive / (deviations[:, :, np.newaxis] * deviations[:, np.newaxis, :])
    diagonal = np.arange(scaled.shape[1])
    scaled[:, diagonal, diagonal] = 1.0
    return np.asarray((scaled + scaled.transpose(0, 2, 1)) / 2)


# A skew-normal variable has |skewness| below (4-π)/2 · (2/(π-2))^1.5 = 0.99527.
LARGEST_SKEWNESS = 0.995
# Number of ranks of one attribute whose rows are drawn from one random stream.
BLOCK = 1 << 16
_HALF_NORMAL_MEAN = float(np.sqrt(2 / np.pi))


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class ClusterShape:
    """The distribution of a cluster's rows around its mean; one row of each array per cluster.

    Attributes:
        deviations: standard deviations.
        correlation: correlation matrices; None draws attributes independently.
        skewness: marginal skewnesses; None draws normal rows.
    """

    deviations: Floats
    correlation: Floats | None = None
    skewness: Floats | None = None


def standard_normal(count: int, source: Source) -> Floats:
    """Normal deviates by inversion, one 64-bit word each."""
    from scipy.special import ndtri

    uniform = ((source.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(ndtri(uniform))


def draw_rows(means: Floats, shape: ClusterShape, labels: Integers, source: Source) -> tuple[Floats, int]:
    """One row for every record, from the distribution of its cluster, and the number of clusters with reduced skewness.

    Without skewness rows are multivariate normal, otherwise multivariate skew-normal; means and variances are kept.

    Reference:
        Azzalini and Dalla Valle, "The multivariate skew-normal distribution"; the cross-moment paper, section 5.2.
    """
    if shape.skewness is None:
        drawn, adjusted = _correlated(shape.correlation, means.shape[1], labels, source), 0
    elif shape.correlation is None:
        drawn, adjusted = _skewed_apart(shape.skewness, labels, source), 0
    else:
        drawn, adjusted = _skewed_together(shape.correlation, shape.skewness, labels, source)
    return means[labels] + shape.deviations[labels] * drawn, adjusted


def draw_ranks(
    means: Floats,
    deviations: Floats,
    skewness: Floats | None,
    sizes: Integers,
    first: int,
    source: Source,
) -> Floats:
    """One attribute of the records of consecutive ranks, from the distributions of their clusters.

    The value of a rank does not depend on the ranks before it: each block of ranks has its own random stream, so
    that any part of a column can be drawn separately.

    Args:
        means: means of the clusters in order of rank, like the deviations and skewnesses.
        sizes: number of ranks of each cluster.
        first: the first rank.

    >>> from shoal.noise import Seeded
    >>> whole, tail = np.array([70_000, 9]), np.array([9])
    >>> drawn = draw_ranks(np.array([0.0, 5.0]), np.array([1.0, 2.0]), None, whole, 0, Seeded(1))
    >>> bool((drawn[-9:] == draw_ranks(np.array([5.0]), np.array([2.0]), None, tail, 70_000, Seeded(1))).all())
    True
    """
    labels = np.repeat(np.arange(sizes.size), sizes)
    if skewness is None:
        (drawn,) = _normals_of_ranks(first, labels.size, 1, source)
    else:
        delta = skewness_parameter(skewness)
        half, other = _normals_of_ranks(first, labels.size, 2, source)
        drawn = _skewed(delta[labels], half, other)
    return np.asarray(means[labels] + deviations[labels] * drawn)


def _normals_of_ranks(first: int, count: int, each: int, source: Source) -> Floats:
    """Normal deviates of consecutive ranks, several for each."""
    found = np.empty((each, count))
    for block in range(first // BLOCK, -(-(first + count) // BLOCK)):
        # a block is always drawn as a whole, even if only part of it is needed
        drawn = standard_normal(each * BLOCK, source.child("ranks", block)).reshape(each, BLOCK)
        low, high = max(first, block * BLOCK), min(first + count, (block + 1) * BLOCK)
        found[:, low - first : high - first] = drawn[:, low - block * BLOCK : high - block * BLOCK]
    return found


def skewness_parameter(skewness: Floats) -> Floats:
    """Azzalini's δ of standardised skew-normal variables with these skewnesses, at most 0.995 in size.

    >>> float(skewness_parameter(np.array(0.0))), round(float(skewness_parameter(np.array(0.995))), 3)
    (0.0, 1.0)
    """
    root = np.cbrt(2 * skewness / (4 - np.pi))
    return np.asarray(root / np.sqrt(1 + root**2) / _HALF_NORMAL_MEAN)


def _skewed_apart(skewness: Floats, labels: Integers, source: Source) -> Floats:
    """Independent skew-normal attributes of mean 0 and variance 1: δ|U| + √(1-δ²)·V, standardised."""
    delta = skewness_parameter(skewness)
    shape = (labels.size, skewness.shape[1])
    half = standard_normal(labels.size * shape[1], source).reshape(shape)
    other = standard_normal(labels.size * shape[1], source).reshape(shape)
    return _skewed(delta[labels], half, other)


def _skewed(delta: Floats, half: Floats, other: Floats) -> Floats:
    drawn = delta * np.abs(half) + np.sqrt(np.maximum(1 - delta**2, 0.0)) * other
    return _standardised(drawn, delta)


def _skewed_together(
    correlation: Floats, skewness: Floats, labels: Integers, source: Source
) -> tuple[Floats, int]:
    """Skew-normal rows: normal ones with an additional component, whose sign is applied to all others.

    The components' correlation matrix is bordered by δ. If no such matrix exists, the nearest one is used, which
    reduces skewness and correlations.
    """
    delta = skewness_parameter(skewness)
    centre = _HALF_NORMAL_MEAN * delta
    spread = np.sqrt(1 - centre**2)
    count, number = delta.shape
    joint = np.empty((count, number + 1, number + 1))
    joint[:, 0, 0] = 1.0
    joint[:, 0, 1:] = joint[:, 1:, 0] = delta
    joint[:, 1:, 1:] = (
        correlation * spread[:, :, np.newaxis] * spread[:, np.newaxis, :]
        + centre[:, :, np.newaxis] * centre[:, np.newaxis, :]
    )
    joint, moved = nearest_correlations(joint)
    drawn = _correlated(joint, number + 1, labels, source)
    signed = np.where(drawn[:, :1] < 0, -drawn[:, 1:], drawn[:, 1:])
    return _standardised(signed, joint[:, 0, 1:][labels]), int(moved.sum())


def _standardised(drawn: Floats, delta: Floats) -> Floats:
    centre = _HALF_NORMAL_MEAN * delta
    return np.asarray((drawn - centre) / np.sqrt(1 - centre**2))


def _correlated(correlation: Floats | None, number: int, labels: Integers, source: Source) -> Floats:
    """Normal rows of mean 0 with the correlation matrix of their cluster."""
    normal = standard_normal(labels.size * number, source).reshape(labels.size, number)
    if correlation is None:
        return normal
    values, vectors = np.linalg.eigh(correlation)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, np.newaxis, :]
    order = cluster_order(labels)
    sizes = np.bincount(labels, minlength=len(roots))
    starts = np.cumsum(sizes) - sizes
    # one product for all clusters of a size: there are few different sizes
    for size in np.unique(sizes[sizes > 0]).tolist():
        clusters = np.flatnonzero(sizes == size)
        records = order[starts[clusters][:, np.newaxis] + np.arange(size)]
        normal[records] = normal[records] @ roots[clusters].transpose(0, 2, 1)
    return normal


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class ClusterStatistics:
    """Statistics of all clusters, attributes divided by their widths; safe to post-process.

    Attributes:
        means: shape (clusters, d), 0 at the low end of the domain and 1 at the high end.
        covariances: shape (clusters, d, d), zero where the summary has no entry; None for order 0.
        coskewnesses: one column per entry of the summary; None below order 2.
    """

    means: Floats
    covariances: Floats | None = None
    coskewnesses: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Possible:
    """Statistics after repair.

    Attributes:
        shape: the distribution of the rows; None for order 0, where every row is the mean.
        repairs: the repairs, and the number of cases of each.
    """

    statistics: ClusterStatistics
    shape: ClusterShape | None
    repairs: dict[str, int] = field(default_factory=dict)


def make_possible(
    noisy: ClusterStatistics, sizes: Integers, summary: MomentSummary, *, clip: bool
) -> Possible:
    """Repair statistics: means into the domain, variances up to their maximum, correlations to the nearest valid ones.

    Variances are kept when correlations are repaired. Matrices reassembled from noisy eigenvalues are covariance
    matrices: they keep their correlations when variances are capped. A skewness beyond the maximum for that many
    records is capped; rows are drawn with at most 0.995, the limit of a skew-normal variable.

    Reference:
        the cross-moment paper, sections 4.3 and 5.2.
    """
    repairs: dict[str, int] = {}
    means = noisy.means
    if clip:
        means = np.clip(means, 0.0, 1.0)
        repairs["means outside the domain"] = int((means != noisy.means).sum())
    if noisy.covariances is None:
        return Possible(ClusterStatistics(means), None, repairs)
    found = np.diagonal(noisy.covariances, axis1=1, axis2=2)
    caps = variance_caps(sizes)[:, np.newaxis]
    variances = np.clip(found, 0.0, caps)
    repairs["variances below 0"] = int((found < 0).sum())
    # exact variances reach the cap, up to rounding
    repairs["variances above the largest possible"] = int((found > caps * (1 + 1e-12)).sum())
    deviations = np.sqrt(variances)
    correlation = None
    if summary.correlated:
        capped = noisy.covariances.copy()
        diagonal = np.arange(summary.attributes)
        capped[:, diagonal, diagonal] = variances
        valid = noisy.covariances if summary.form == "eigen" else capped
        correlation, moved = nearest_correlations(correlations(valid))
        covariances = _covariances(deviations, correlation)
        changed = moved if summary.form == "eigen" else np.abs(covariances - capped).max(axis=(1, 2)) > 1e-9
        repairs["covariance matrices that are none"] = int(changed.sum())
    else:
        covariances = _covariances(deviations, None)
    if noisy.coskewnesses is None:
        return Possible(ClusterStatistics(means, covariances), ClusterShape(deviations, correlation), repairs)
    marginal = [summary.coskewness_entries.index((i, i, i)) for i in range(summary.attributes)]
    cubes = deviations**3
    raw = noisy.coskewnesses[:, marginal]
    largest = skewness_caps(sizes)[:, np.newaxis] * cubes
    coskewnesses = noisy.coskewnesses.copy()
    coskewnesses[:, marginal] = np.clip(raw, -largest, largest)
    repairs["skewness above the largest possible"] = int((np.abs(raw) > largest * (1 + 1e-9)).sum())
    ratio = np.zeros_like(cubes)
    np.divide(raw, cubes, out=ratio, where=cubes > 0)
    skewness = np.clip(ratio, -LARGEST_SKEWNESS, LARGEST_SKEWNESS)
    repairs["skewness beyond 0.995"] = int((skewness != ratio).sum())
    return Possible(
        ClusterStatistics(means, covariances, coskewnesses),
        ClusterShape(deviations, correlation, skewness),
        repairs,
    )


def _covariances(deviations: Floats, correlation: Floats | None) -> Floats:
    outer = deviations[:, :, np.newaxis] * deviations[:, np.newaxis, :]
    return outer * (np.eye(deviations.shape[1]) if correlation is None else correlation)


def matched(drawn: Floats, original: Floats, partition: Partition, how: str) -> Floats:
    """Rows of each cluster in the order that fits its records.

    `none` leaves them as drawn. `rank` pairs the values of each attribute in order of size, attribute by attribute:
    the minimum error that values of these columns can have. `assignment` pairs whole rows so that the sum of squared
    errors is minimal.

    Cost:
        A sort per attribute; for `assignment` the cube of the cluster size, for each cluster.

    >>> one = Partition.from_labels([0, 0])
    >>> matched(np.array([[9.0, 1.0], [1.0, 9.0]]), np.array([[0.0, 0.0], [5.0, 5.0]]), one, "rank").tolist()
    [[1.0, 1.0], [9.0, 9.0]]
    """
    if how == "none":
        return drawn
    result = np.empty_like(drawn)
    if how == "rank" or drawn.shape[1] == 1:
        for j in range(drawn.shape[1]):
            places = np.lexsort((original[:, j], partition.labels))
            result[places, j] = drawn[np.lexsort((drawn[:, j], partition.labels)), j]
        return result
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    order = np.argsort(partition.labels, kind="stable")
    for end, size in zip(np.cumsum(partition.sizes).tolist(), partition.sizes.tolist(), strict=True):
        records = order[end - size : end]
        rows, columns = linear_sum_assignment(cdist(original[records], drawn[records], "sqeuclidean"))
        result[records[rows]] = drawn[records[columns]]
    return result
