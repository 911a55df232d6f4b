"""Verdicts on the claims of chapter 4, from closed forms and linear programmes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from papers.study import Claim, counted
from papers.texts import judging
from papers.thesis.chapter4_theorems import (
    GRID,
    Floats,
    Line,
    box_gain,
    constructed,
    dominating,
    laplace_on_lattice,
    lopsided_gain,
    mixtures,
)
from shoal.noise import Box, LatticeBox, LatticeStaircase, Staircase
from shoal.noise.families import laplace_region

judge = judging("thesis/chapter4")

# Example 5
EXAMPLE = Box((1.0, 10.0), 1.0, (0.1, 1.0))
# "slightly worse", "near-optimal" and "close" mean: by no more than this share
_SLIGHTLY = 0.05
# what a linear programme gains by its tolerances
_NOTHING = 1e-6
_STEPS = 12


def marginal(x: ArrayLike, component: int) -> Floats:
    """The density of a component of Example 5 as section 4.5 prints it."""
    z, s = EXAMPLE.centre, EXAMPLE.widths
    other = 1 - component
    level = np.floor((np.abs(x) - z[component]) / s[component] + 1)
    height = float(EXAMPLE.density([0.0, 0.0]))
    rest = s[other] / math.expm1(EXAMPLE.epsilon)
    return np.asarray(2 * height * np.exp(-EXAMPLE.epsilon * level) * (z[other] + s[other] * level + rest))


def marginal_by_integration(x: Floats, component: int) -> Floats:
    """The same from the density of the vector."""
    reach = np.array(EXAMPLE.centre)[1 - component] + 60 * EXAMPLE.widths[1 - component]
    y = np.linspace(-reach, reach, 24_101)
    y = (y[1:] + y[:-1]) / 2
    places = np.empty((x.size, y.size, 2))
    places[..., component], places[..., 1 - component] = x[:, np.newaxis], y
    return np.asarray(EXAMPLE.density(places).sum(axis=1) * (y[1] - y[0]))


def claims() -> Iterator[Claim]:
    """Statements of sections 4, 4.4, 4.5 and 4.6, of the abstract and of chapter 8 on this chapter."""
    yield from _one_query()
    yield from _two_queries()
    yield from _use()


def _one_query() -> Iterator[Claim]:
    gains = {
        epsilon: 1 - Staircase.best(1.0, epsilon).variance * epsilon**2 / 2
        for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0)
    }
    yield judge(
        "query-laplace-noise-near",
        (gain <= _SLIGHTLY for gain in gains.values()),
        ", ".join(f"{gain:.1%} (ε = {epsilon:g})" for epsilon, gain in gains.items()),
    )
    shorter = {
        epsilon: 1 - Staircase.best(1.0, epsilon, "interval").interval(0.95) * epsilon / math.log(20)
        for epsilon in (0.1, 0.5, 1.0, 4.0)
    }
    yield judge(
        "95-interval-longer-shortest",
        (0 < gain <= _SLIGHTLY for gain in shorter.values()),
        ", ".join(f"{gain:.2%} (ε = {epsilon:g})" for epsilon, gain in shorter.items()),
    )
    by_epsilon = [Staircase.best(1.0, epsilon, "interval").centre for epsilon in (0.1, 0.5, 1.0)]
    yield judge(
        "d-shortest-interval-depends",
        [len({round(d, 4) for d in by_epsilon}) == len(by_epsilon)],
        ", ".join(f"{d:.4f}" for d in by_epsilon),
    )
    lattice = LatticeStaircase.best(1000, Fraction(1)).variance / 1000**2
    yield judge("discrete-noise-allows-similar", "holds partly", lattice, Staircase.best(1.0, 1.0).variance)


def _two_queries() -> Iterator[Claim]:
    ratios = [(2 * (s1 + s2) ** 2) / (4 * s1 * s2) for s1, s2 in ((1, 1), (1, 10))]
    yield judge("laplace-noise-protects-points", [ratios[0] > 1, ratios[1] > ratios[0]], ratios[0], ratios[1])
    first, second = (EXAMPLE.variances[j] / 242 for j in (0, 1))
    yield judge("against-laplace-noise-variance", [first < 0.1, abs(second - 2) < 0.2], first, second)
    level = [1.0, 10.0, 20.0]
    box = [float(_within(a)) for a in level]
    laplace = [1 - math.exp(-a / 11) for a in level]
    yield judge(
        "piecewise-constant-noise-more",
        [
            float(EXAMPLE.density([0.0, 0.0])) > 1 / 22**2,
            all(one >= two for one, two in zip(box, laplace, strict=True)),
        ],
        ", ".join(
            f"{one:.3f} against {two:.3f} for Laplace (a = {a:g})"
            for a, one, two in zip(level, box, laplace, strict=True)
        ),
    )
    x = np.linspace(0.05, 45.05, 46)
    apart = max(float(np.abs(marginal(x, j) / marginal_by_integration(x, j) - 1).max()) for j in (0, 1))
    yield judge("densities-two-components", [apart < 1e-3], apart)
    sizes = {
        confidence: laplace_region(11, 2, confidence)[1] / EXAMPLE.region(confidence).size
        for confidence in (0.99, 0.95, 0.90)
    }
    # Laplace noise on each component in units of its own sensitivity, half of ε each
    fair = laplace_region(2, 2, 0.95)[1] * 10 / EXAMPLE.region(0.95).size
    yield judge(
        "smallest-region-given-confidence",
        [*(ratio > 2 for ratio in sizes.values()), fair > 1.5],
        ", ".join(f"{ratio:.2f} ({confidence:.0%})" for confidence, ratio in sizes.items()),
        fair,
    )
    by_number = {m: Box.best((1.0,) * m, 1.0).variances[0] / (2 * m**2) for m in (2, 4, 9, 13)}
    yield judge(
        "several-queries-laplace-noise",
        (ratio < 0.6 for ratio in by_number.values()),
        ", ".join(f"{ratio:.2f} ({m} queries)" for m, ratio in by_number.items()),
        EXAMPLE.variances[0] / 8,
    )


def _within(a: float) -> float:
    """P(|Y_2| <= a) of Example 5, from the boxes it is a mixture of."""
    i = np.arange(200)
    weights = np.exp(-i) * np.prod(
        [z + i * s for z, s in zip(EXAMPLE.centre, EXAMPLE.widths, strict=True)], axis=0
    )
    return float(np.average(np.minimum(a / (EXAMPLE.centre[1] + i * EXAMPLE.widths[1]), 1), weights=weights))


def _use() -> Iterator[Claim]:
    q = math.exp(-1.0)
    box, exact = LatticeBox((1, 1), 1.0, (0, 0)).variances[0], 2 * q / (1 - q) ** 2
    yield judge("query-known-whole-allows", [exact < box], exact, box)
    law = LatticeStaircase(10, 1.0, 4)
    places = np.arange(-60, 60)
    loss = 4 * float(np.abs(law.level(places + 1) - law.level(places)).max())
    yield judge("all-queries-l1-sensitivity", "holds" if loss <= 1 else "holds partly", loss)


def theorem_claims(count: int) -> Iterator[Claim]:
    """Statements that are theorems; `count` is the number of noises that Theorem 1 is tried on."""
    line = Line(_STEPS, 1.0)
    laplace = line.gain(laplace_on_lattice(line))
    built = constructed(1.0)
    closer = 1 - built.outside(GRID) - (1 - np.exp(-GRID))
    yield judge(
        "laplace-noise-optimal-noise",
        [closer.min() >= -1e-12, closer.max() > 0, _steepest(built) <= math.e + 1e-9, laplace > _NOTHING],
        closer.max(),
        _steepest(built),
        laplace,
    )
    near = round(built.centre * _STEPS - 0.5)
    optimal = line.gain(LatticeStaircase(_STEPS, 1.0, near).mass(line.places))
    yield judge(
        "noise-built-there-laplace",
        [0 <= built.centre <= 1, optimal < _NOTHING],
        built.centre,
        near + 0.5,
        _STEPS,
        optimal if optimal > _NOTHING else 0,
    )
    scales = {scale: _laplace_loss(scale) for scale in (0.9, 0.99, 1.0)}
    yield judge(
        "among-laplace-noises-scale",
        [scales[1.0] <= 1 + 1e-9, scales[0.9] > 1, scales[0.99] > 1],
        ", ".join(f"{loss:.3f} (scale {scale:g})" for scale, loss in scales.items()),
    )
    # steps that do not fall on the places that are looked at
    shapes = [Staircase(1.0, epsilon, d) for epsilon in (0.8, 1.0, 1.3) for d in (0.2037, 0.7041)]
    by_density = [_steepest(shape) <= math.e + 1e-9 for shape in shapes]
    by_intervals = [_largest_ratio(shape) <= math.e + 1e-6 for shape in shapes]
    yield judge(
        "privacy-read-off-density",
        (a == b for a, b in zip(by_density, by_intervals, strict=True)),
        sum(by_density),
    )
    found = [
        dominating(inside, epsilon) for epsilon in (0.5, 1.0, 2.0) for inside in mixtures(epsilon, count)
    ]
    yield judge(
        "every-private-noise-there",
        "holds partly" if all(one is not None for one in found) else "fails",
        counted(one is not None for one in found),
    )
    gains = {d: line.gain(LatticeStaircase(_STEPS, 1.0, d).mass(line.places)) for d in (0, 5, 11, 12, 17)}
    yield judge(
        "every-staircase-optimal",
        (gain < _NOTHING for gain in gains.values()),
        ", ".join(
            f"{gain if gain > _NOTHING else 0:.2g} (d = {d + 0.5:g}/{_STEPS})" for d, gain in gains.items()
        ),
    )
    q = math.exp(-1.0)
    shapes = [Staircase(1.0, 1.0, d) for d in (0.0, 0.3, 0.7, 1.0)]
    same = [
        math.isclose((1 - q - 2 * one.height * q) / (2 * (1 - q) * one.height), one.centre, abs_tol=1e-12)
        for one in shapes
    ]
    yield judge("m-0-d-parameter", same)
    yield _not_symmetric()
    yield _any_criterion(line)
    boxes = {
        (steps, centre): box_gain(steps, centre, 1.0)
        for steps, centre in (((2, 2), (0, 0)), ((2, 2), (1, 1)), ((3, 2), (1, 1)), ((2, 3), (0, 2)))
    }
    outside = box_gain((2, 2), (2, 2), 1.0)
    yield judge(
        "box-noise-s-0",
        "holds partly" if all(gain < _NOTHING for gain in boxes.values()) and outside > _NOTHING else "fails",
        counted(gain < _NOTHING for gain in boxes.values()),
        outside,
    )
    yield judge("all-optimal-noises-query", "holds partly")


def _not_symmetric() -> Claim:
    gains = {(a, b): lopsided_gain(_STEPS, a, b, 1.0) for a, b in ((4, 4), (2, 7), (0, 9), (3, 11))}
    return judge(
        "optimal-noises-need-symmetric",
        (gain < _NOTHING for gain in gains.values()),
        ", ".join(
            f"{gain if gain > _NOTHING else 0:.2g} (a = {a}, b = {b})" for (a, b), gain in gains.items()
        ),
    )


def _any_criterion(line: Line) -> Claim:
    names = {1: "mean |x|", 2: "variance", 4: "fourth moment"}
    agree = []
    for power in names:
        values = np.arange(line.size + 400 * _STEPS, dtype=np.float64) ** power
        family = min(
            float(line.integral(values) @ LatticeStaircase(_STEPS, line.epsilon, d).mass(line.places))
            for d in range(_STEPS)
        )
        agree.append(abs(line.least(values) / family - 1) < _NOTHING)
    return judge("whatever-sensible-criterion-chosen", agree, ", ".join(names.values()))


def _laplace_loss(scale: float) -> float:
    """The largest loss of Laplace noise of this scale for answers one apart."""
    x = np.linspace(-5, 5, 1001)
    return float((np.abs(np.abs(x + 1) - np.abs(x)) / scale).max())


def _largest_ratio(shape: Staircase) -> float:
    """The largest ratio of the probabilities of a short interval and of the same moved by at most one step."""
    edges = np.linspace(-6, 6, 1201)
    above = np.sign(edges) * (1 - shape.outside(np.abs(edges))) / 2
    masses = np.diff(above)
    ahead = [masses[:-move] / masses[move:] for move in range(1, 101)]
    return float(max(max(one.max(), (1 / one).max()) for one in ahead))


def _steepest(shape: Staircase) -> float:
    """The largest ratio of densities at places at most one step apart."""
    x = np.linspace(-6, 6, 1201)
    density = shape.density(x)
    ahead = [density[:-move] / density[move:] for move in range(1, 101)]
    return float(max(max(one.max(), (1 / one).max()) for one in ahead))
