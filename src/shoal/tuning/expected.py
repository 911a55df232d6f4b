"""Expected errors of a setting: in closed form, or measured in repeated runs.

A cluster C is released as one value Y. Over its records, Σ(x - Y)² = SSE(C) + |C|·(Y - μ)² with μ their mean, so the
expectation depends only on the first two moments of Y: a centre moved by clipped Laplace noise. No noise is drawn.

Everything is in lattice steps of a cluster sum. The noise Z has P(z) proportional to exp(-|z|/b) on the integers;
the released value moves by Z, but by at most `below` down and `above` up, where the domain ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described
from shoal.errors import InputError, ShoalError
from shoal.evaluation import LearningSettings, evaluate, kept, learn
from shoal.mechanisms import ClusterMethod, Clusters, cluster_sum_scale
from shoal.noise import NOISES, Seeded
from shoal.numbers import Floats
from shoal.progress import silent
from shoal.release import Preparation, Release, carry_out
from shoal.text import Message

# From this scale on the noise is treated as continuous: the relative error is 1/(12 b²), below 1e-7.
_CONTINUOUS = 1024.0
# enough to distinguish settings; for final figures use `shoal protect --evaluate --target`
LEARNING = LearningSettings(folds=3, runs=1, trees=50)

Measures = dict[str, float | None]


def clipped_moments(scale: Floats, below: Floats, above: Floats) -> tuple[Floats, Floats]:
    """Mean and mean square of the shift that clipped noise causes, element by element.

    Args:
        scale: of the noise, at least 0; 0 is no noise.
        below: distance to the lower end, at least 0, perhaps infinite.
        above: distance to the upper end.

    Guarantee:
        Exact up to rounding for scales below 1024, and up to a relative error of 1e-7 from there on.

    >>> mean, square = clipped_moments(np.array([1e6]), np.array([np.inf]), np.array([np.inf]))
    >>> float(mean[0]), round(float(square[0]) / 2e12, 6)
    (0.0, 1.0)
    """
    scale, below, above = np.broadcast_arrays(
        np.asarray(scale, dtype=np.float64),
        np.asarray(below, dtype=np.float64),
        np.asarray(above, np.float64),
    )
    mean, square = np.zeros(scale.shape), np.zeros(scale.shape)
    for which, one_side in (
        ((scale > 0) & (scale < _CONTINUOUS), _discrete_side),
        (scale >= _CONTINUOUS, _continuous_side),
    ):
        down, down_square = one_side(scale[which], below[which])
        up, up_square = one_side(scale[which], above[which])
        mean[which] = up - down
        square[which] = up_square + down_square
    return mean, square


def _discrete_side(scale: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """E[min(Z, r); Z > 0] and E[min(Z, r)²; Z > 0], r the reach, from P(Z >= i) = q^i/(1+q), q = exp(-1/b).

    min(Z, r) is the sum of 1 over i <= m with Z >= i, m the whole part of r, and of r - m if Z > m; its square is the
    sum of 2i - 1, and of r² - m².
    """
    q = np.exp(-1.0 / scale)
    rest = -np.expm1(-1.0 / scale)
    # far enough out that the tail is negligible: infinite reaches become finite
    reach = np.minimum(reach, 800.0 * scale)
    whole = np.floor(reach)
    tail = np.exp(-(whole + 1.0) / scale)
    ones = q * -np.expm1(-whole / scale) / rest
    steps = (ones - whole * tail) / rest
    first = ones + (reach - whole) * tail
    second = 2.0 * steps - ones + (reach * reach - whole * whole) * tail
    return first / (1.0 + q), second / (1.0 + q)


def _continuous_side(scale: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """The same for continuous noise: b(1 - e^-x)/2 and b²(1 - (1+x) e^-x), x = r/b."""
    from scipy.special import gammainc

    x = reach / scale
    first = -0.5 * scale * np.expm1(-x)
    # the incomplete gamma function stays accurate where x is small
    second = scale * scale * gammainc(2.0, x)
    return first, second


def anywhere_square(scale: Floats) -> Floats:
    """Mean square of the shift by clipped continuous noise, averaged over positions in a domain of width 1.

    >>> anywhere_square(np.array([1e-4, 1e6])).round(9).tolist()
    [2e-08, 0.333333167]
    """
    from scipy.special import gammainc

    x = 1.0 / scale
    return np.asarray(2.0 * scale**3 * (x * gammainc(2.0, x) - 2.0 * gammainc(3.0, x)))


def has_closed_form(prepared: Preparation) -> bool:
    """Whether the expected row error of a release is known without making the release."""
    method, described = prepared.method, prepared.described
    return (
        isinstance(method, ClusterMethod)
        and method.sum_shares(described.n, prepared.plan) is not None
        and NOISES[method.noise].closed_form
        and not (described.nominal or described.flagged)
        and (method.link or len(described.columns) == 1)
    )


def expected_measures(prepared: Preparation, frozen: tuple[Clusters, ...]) -> dict[str, float | None]:
    """Expected SSE, normalised SSE and scaled SSE of a release, as `shoal.evaluate` would measure them on average.

    Args:
        prepared: the release; `has_closed_form` must hold.
        frozen: its clusters, from the method's `freeze`.

    Cost:
        One pass over the records and attributes.

    Reference:
        MDAI-2017 has the two terms for noise that is not clipped; docs/guide/tuning.md.
    """
    described = prepared.described
    errors = expected_errors(prepared, frozen)
    sse, normalised, scaled = [], [], []
    for name, error in errors.items():
        values = described.original(name)
        values = values[np.isfinite(values)]
        scaled.append(error / float(described.lattices[name].width) ** 2)
        if not described.attribute(name).kind_facts.measured or not values.size:
            continue
        sse.append(error)
        if values.min() < values.max():
            normalised.append(error / values.size / float(values.var()))
    return {
        "sse": math.fsum(sse) if sse else None,
        "normalised_sse": math.fsum(normalised) / len(normalised) if normalised else None,
        "scaled_sse": math.fsum(scaled),
    }


def expected_errors(prepared: Preparation, frozen: tuple[Clusters, ...]) -> dict[str, float]:
    """Expected sum of squared errors of each column, over the rows that have a value."""
    method, described = prepared.method, prepared.described
    assert isinstance(method, ClusterMethod)
    shares = method.sum_shares(described.n, prepared.plan)
    assert shares is not None
    found: dict[str, float] = {}
    for group, clusters in zip(method.resolve_groups(described.columns), frozen, strict=True):
        for number, name in enumerate(group):
            scales = None if clusters.scales is None else clusters.scales[number].astype(np.float64)
            found[name] = _column_error(described, name, method, clusters, shares[name], scales)
    return {name: found[name] for name in described.columns}


def _column_error(
    described: Described,
    name: str,
    method: ClusterMethod,
    clusters: Clusters,
    share: Fraction,
    scales: NDArray[np.float64] | None,
) -> float:
    partition, lattice = clusters.partition, described.lattices[name]
    sizes = partition.sizes.astype(np.float64)
    positions, _ = described.positions(name)
    sums = method.calibration.sums(positions, partition).astype(np.float64)
    if scales is None:
        scales = np.full(sizes.size, float(cluster_sum_scale(lattice.steps, share)))
    step = float(lattice.step)
    if method.clip:
        ends = sizes * (float(lattice.width) / step)
        sums = np.minimum(sums, ends)
        shift, square = clipped_moments(scales, sums, ends - sums)
    else:
        shift, square = clipped_moments(scales, np.full(sizes.size, np.inf), np.full(sizes.size, np.inf))
    shift, square = shift * step / sizes, square * (step / sizes) ** 2

    values = described.original(name)
    present = np.isfinite(values)
    labels, values = partition.labels[present], values[present]
    counts = np.bincount(labels, minlength=sizes.size)
    means = np.bincount(labels, weights=values, minlength=sizes.size) / np.maximum(counts, 1)
    within = float(np.sum((values - means[labels]) ** 2))
    off = lattice.values(sums / sizes) - means
    return within + float(np.sum(counts * (square + 2.0 * off * shift + off * off)))


@dataclass(frozen=True, slots=True)
class TuningRun:
    """One seeded release: its measures, and the time to make and to measure it."""

    seed: int
    measures: Measures
    seconds: float


@dataclass(frozen=True, slots=True)
class SettingOutcome:
    """What is known about a setting.

    Attributes:
        refused: why the setting cannot be used on these records; all other fields are then empty.
        expected: measures in closed form; empty where there is none.
        seconds: time for what all seeds share: the clusters.
        settled: closed forms and shared time are computed.
    """

    refused: Message | None = None
    expected: Measures = field(default_factory=dict)
    runs: tuple[TuningRun, ...] = ()
    seconds: float = 0.0
    settled: bool = False

    def complete(self, seeds: Sequence[int]) -> bool:
        """Whether all these seeds have run."""
        return self.refused is not None or (self.settled and not self.left(seeds))

    def left(self, seeds: Sequence[int]) -> tuple[int, ...]:
        """The seeds that have not run yet."""
        done = {run.seed for run in self.runs}
        return tuple(seed for seed in seeds if seed not in done)


def run_setting(prepared: Preparation, seeds: Sequence[int], target: str | None) -> SettingOutcome:
    """Make the clusters once, then one release per seed; return the reason if the records do not allow the setting."""
    try:
        started = time.perf_counter()
        frozen, expected = _settled(prepared)
        shared = time.perf_counter() - started
        runs = tuple(_run(prepared, frozen, seed, target) for seed in seeds)
        return SettingOutcome(None, expected, runs, shared, settled=True)
    except ShoalError as error:
        return SettingOutcome(refused=error.message)


def _settled(prepared: Preparation) -> tuple[Any, Measures]:
    """Clusters, where the method has them, and the closed forms derived from them."""
    if not prepared.method.freezes:
        return None, {}
    frozen = prepared.method.freeze(prepared.described, prepared.plan, silent)
    return frozen, expected_measures(prepared, frozen) if has_closed_form(prepared) else {}


def _run(prepared: Preparation, frozen: Any, seed: int, target: str | None) -> TuningRun:
    started = time.perf_counter()
    release = carry_out(replace(prepared, source=Seeded(seed)), frozen=frozen)
    measures = _measured(prepared.described.table, release, target)
    return TuningRun(seed, measures, time.perf_counter() - started)


def _measured(table: Any, release: Release, target: str | None) -> Measures:
    found = evaluate(table, release)
    measures: Measures = {one.name: getattr(found, one.part).get(one.name) for one in kept()}
    if target is not None:
        measures["learning"] = _learning_loss(table, release, target)
    return measures


def _learning_loss(table: Any, release: Release, target: str) -> float | None:
    """1 minus the F-measure: of the rarer of two classes, or the mean over more; None if it cannot be learned."""
    try:
        found = learn(table, release, target, LEARNING, bounds=False)
    except InputError:
        return None
    by_class, sizes = found["released"]["f"], found["classes"]
    if len(sizes) == 2:
        rarer = min(sizes, key=lambda name: sizes[name])
        return None if by_class[rarer] is None else 1.0 - by_class[rarer]
    known = [f for f in by_class.values() if f is not None]
    return 1.0 - sum(known) / len(known) if known else None
