"""Statements of chapter 4: closed forms and linear programmes come in, verdicts leave."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from papers.study import Claim, counted, judged
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
from shoal.noise.box_shape import laplace_region

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
    yield Claim(
        "4, 4.4, 4.6, 8.1",
        "For one query Laplace noise is near-optimal: its variance is only slightly above the least.",
        "Variance saved by the best staircase: "
        + ", ".join(f"{gain:.1%} (ε = {epsilon:g})" for epsilon, gain in gains.items())
        + ". True up to ε = 1, which the tables stop at, and not beyond.",
        judged(gain <= _SLIGHTLY for gain in gains.values()),
    )
    shorter = {
        epsilon: 1 - Staircase.best(1.0, epsilon, "interval").interval(0.95) * epsilon / math.log(20)
        for epsilon in (0.1, 0.5, 1.0, 4.0)
    }
    yield Claim(
        "4.4",
        "Its 95% interval is longer than the shortest one, but close to it.",
        "Length saved: "
        + ", ".join(f"{gain:.2%} (ε = {epsilon:g})" for epsilon, gain in shorter.items())
        + ".",
        judged(0 < gain <= _SLIGHTLY for gain in shorter.values()),
    )
    by_epsilon = [Staircase.best(1.0, epsilon, "interval").centre for epsilon in (0.1, 0.5, 1.0)]
    yield Claim(
        "4.4",
        "The d of the shortest interval depends on ε and Δf.",
        "d/Δf = " + ", ".join(f"{d:.4f}" for d in by_epsilon) + " at ε = 0.1, 0.5, 1.",
        judged([len({round(d, 4) for d in by_epsilon}) == len(by_epsilon)]),
    )
    lattice = LatticeStaircase.best(1000, Fraction(1)).variance / 1000**2
    yield Claim(
        "4",
        "Discrete noise allows similar results, but can be used in very specific circumstances only.",
        f"Similar, yes: with 1,000 lattice steps the least variance is {lattice:.4f}, against "
        f"{Staircase.best(1.0, 1.0).variance:.4f}. Usable wherever values lie on a public lattice: all noise of a "
        "Shoal release is discrete.",
        "holds partly",
    )


def _two_queries() -> Iterator[Claim]:
    ratios = [(2 * (s1 + s2) ** 2) / (4 * s1 * s2) for s1, s2 in ((1, 1), (1, 10))]
    yield Claim(
        "4.5, Figures 4.4 and 4.5",
        "Laplace noise protects points outside S_f too, the more so the more unlike the components are.",
        f"Area of the square that is protected over that of S_f: {ratios[0]:.2f} for [-1, 1]², {ratios[1]:.2f} for "
        "[-1, 1] × [-10, 10].",
        judged([ratios[0] > 1, ratios[1] > ratios[0]]),
    )
    first, second = (EXAMPLE.variances[j] / 242 for j in (0, 1))
    yield Claim(
        "Example 5",
        "Against Laplace noise the variance of the first component is much smaller, that of the second about twice as "
        "big.",
        f"{first:.3f} and {second:.2f} times that of Laplace noise.",
        judged([first < 0.1, abs(second - 2) < 0.2]),
    )
    level = [1.0, 10.0, 20.0]
    box = [float(_within(a)) for a in level]
    laplace = [1 - math.exp(-a / 11) for a in level]
    yield Claim(
        "Example 5",
        "The piecewise constant noise has more probability around zero, in agreement with the definition of optimal.",
        "Around the origin, yes. In the sense of Definition 7 neither is smaller: P(|Y_2| ≤ a) is "
        + ", ".join(
            f"{one:.3f} against {two:.3f} for Laplace (a = {a:g})"
            for a, one, two in zip(level, box, laplace, strict=True)
        )
        + ".",
        judged(
            [
                float(EXAMPLE.density([0.0, 0.0])) > 1 / 22**2,
                all(one >= two for one, two in zip(box, laplace, strict=True)),
            ]
        ),
    )
    x = np.linspace(0.05, 45.05, 46)
    apart = max(float(np.abs(marginal(x, j) / marginal_by_integration(x, j) - 1).max()) for j in (0, 1))
    yield Claim(
        "4.5",
        "The densities of the two components.",
        f"The printed formulas and numerical integration of the density of the vector differ by {apart:.0e} at most.",
        judged([apart < 1e-3]),
    )
    sizes = {
        confidence: laplace_region(11, 2, confidence)[1] / EXAMPLE.region(confidence).size
        for confidence in (0.99, 0.95, 0.90)
    }
    # Laplace noise on each component in units of its own sensitivity, half of ε each
    fair = laplace_region(2, 2, 0.95)[1] * 10 / EXAMPLE.region(0.95).size
    yield Claim(
        "Example 5",
        "The smallest region of a given confidence is much smaller than with Laplace noise.",
        "Laplace over box: "
        + ", ".join(f"{ratio:.2f} ({confidence:.0%})" for confidence, ratio in sizes.items())
        + f". Against Laplace noise scaled to each component (scales 2 and 20, also ε = 1) it is {fair:.2f}.",
        judged([*(ratio > 2 for ratio in sizes.values()), fair > 1.5]),
    )
    by_number = {m: Box.best((1.0,) * m, 1.0).variances[0] / (2 * m**2) for m in (2, 4, 9, 13)}
    yield Claim(
        "abstract, 4, 4.5, 4.6, 8.1",
        "For several queries Laplace noise is far from optimal.",
        "Variance of box noise over Laplace noise with equal shares, ε = 1: "
        + ", ".join(f"{ratio:.2f} ({m} queries)" for m, ratio in by_number.items())
        + f"; in Example 5 with scales 2 and 20, {EXAMPLE.variances[0] / 8:.2f}.",
        judged(ratio < 0.6 for ratio in by_number.values()),
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
    yield Claim(
        "4.5, 4.6",
        "A query that is known as a whole allows better noise than components that become known one by one.",
        f"Two counts of which a record enters one: with S_f as it is, the lattice noise has variance {exact:.3f} per "
        f"count; with the box around it, {box:.3f}.",
        judged([exact < box]),
    )
    law = LatticeStaircase(10, 1.0, 4)
    places = np.arange(-60, 60)
    loss = 4 * float(np.abs(law.level(places + 1) - law.level(places)).max())
    yield Claim(
        "4.4",
        "All queries of one L1-sensitivity share one optimal noise.",
        "True of one number. It must not be read as a vector of numbers with that total: four cluster sums that move "
        f"by one lattice step each, of ten that one sum may move, lose {loss:.0f}ε under staircase noise and 0.4ε "
        "under Laplace noise of the same ε. Shoal refuses staircase and box noise there "
        "([proof](../proofs/staircase.md#4-where-it-must-be-refused)).",
        "holds" if loss <= 1 else "holds partly",
    )


def theorem_claims(count: int) -> Iterator[Claim]:
    """Statements that are theorems; `count` is the number of noises that Theorem 1 is tried on."""
    line = Line(_STEPS, 1.0)
    laplace = line.gain(laplace_on_lattice(line))
    built = constructed(1.0)
    closer = 1 - built.outside(GRID) - (1 - np.exp(-GRID))
    yield Claim(
        "abstract, 4.3, 8.1",
        "Laplace noise is not optimal: the noise built from it in section 4.3 is private and strictly smaller.",
        f"P(|Y| ≤ a) is never smaller and up to {closer.max():.3f} larger; density falls by e^ε at most within one "
        f"step ({_steepest(built):.4f}); the linear programme gains {laplace:.2f} over Laplace noise.",
        judged(
            [closer.min() >= -1e-12, closer.max() > 0, _steepest(built) <= math.e + 1e-9, laplace > _NOTHING]
        ),
    )
    near = round(built.centre * _STEPS - 0.5)
    optimal = line.gain(LatticeStaircase(_STEPS, 1.0, near).mass(line.places))
    yield Claim(
        "4.3",
        "The noise built there from Laplace noise is optimal itself.",
        f"It is a staircase with d = {built.centre:.4f}·Δf at ε = 1; of the nearest one on a lattice (d = "
        f"{near + 0.5:g}/{_STEPS}) the linear programme gains {optimal if optimal > _NOTHING else 0:.2g}.",
        judged([0 <= built.centre <= 1, optimal < _NOTHING]),
    )
    scales = {scale: _laplace_loss(scale) for scale in (0.9, 0.99, 1.0)}
    yield Claim(
        "4.1",
        "Among Laplace noises that of scale Δf/ε is the best: a smaller scale would not be private any more.",
        "Loss at ε = 1: "
        + ", ".join(f"{loss:.3f} (scale {scale:g})" for scale, loss in scales.items())
        + ".",
        judged([scales[1.0] <= 1 + 1e-9, scales[0.9] > 1, scales[0.99] > 1]),
    )
    # steps that do not fall on the places that are looked at
    shapes = [Staircase(1.0, epsilon, d) for epsilon in (0.8, 1.0, 1.3) for d in (0.2037, 0.7041)]
    by_density = [_steepest(shape) <= math.e + 1e-9 for shape in shapes]
    by_intervals = [_largest_ratio(shape) <= math.e + 1e-6 for shape in shapes]
    yield Claim(
        "4.2, Proposition 1",
        "Privacy can be read off the density: f(x) ≤ e^ε f(x + d).",
        "Staircases for ε = 0.8, 1 and 1.3 put to the test at ε = 1: densities and probabilities of intervals agree "
        f"on {counted(a == b for a, b in zip(by_density, by_intervals, strict=True))}, {sum(by_density)} are private. "
        "`tests/noise/test_staircase.py` and `test_box.py` check every lattice point.",
        judged(a == b for a, b in zip(by_density, by_intervals, strict=True)),
    )
    found = [
        dominating(inside, epsilon) for epsilon in (0.5, 1.0, 2.0) for inside in mixtures(epsilon, count)
    ]
    yield Claim(
        "Lemmata 1 and 2, Corollary 1, Theorem 1",
        "For every private noise there is a staircase that is at least as good.",
        f"Mixtures of staircases and Laplace noise at ε = 0.5, 1 and 2: a better staircase with 0 ≤ d ≤ Δf for "
        f"{counted(one is not None for one in found)}. As printed (one exponent too few) the form is another.",
        "holds partly" if all(one is not None for one in found) else "fails",
    )
    gains = {d: line.gain(LatticeStaircase(_STEPS, 1.0, d).mass(line.places)) for d in (0, 5, 11, 12, 17)}
    yield Claim(
        "Theorem 2",
        "Every staircase is optimal.",
        "Gain of the linear programme: "
        + ", ".join(
            f"{gain if gain > _NOTHING else 0:.2g} (d = {d + 0.5:g}/{_STEPS})" for d, gain in gains.items()
        )
        + ". True for d ≤ Δf, which the proof uses and the theorem does not say.",
        judged(gain < _NOTHING for gain in gains.values()),
    )
    q = math.exp(-1.0)
    shapes = [Staircase(1.0, 1.0, d) for d in (0.0, 0.3, 0.7, 1.0)]
    same = [
        math.isclose((1 - q - 2 * one.height * q) / (2 * (1 - q) * one.height), one.centre, abs_tol=1e-12)
        for one in shapes
    ]
    yield Claim(
        "4.4",
        "M_0 and d are one parameter: d = (1 - e^(-ε) - 2M_0 e^(-ε)Δf)/(2(1 - e^(-ε))M_0).",
        f"The formula gives d back from the height of the centre: {counted(same)}.",
        judged(same),
    )
    yield _not_symmetric()
    yield _any_criterion(line)
    boxes = {
        (steps, centre): box_gain(steps, centre, 1.0)
        for steps, centre in (((2, 2), (0, 0)), ((2, 2), (1, 1)), ((3, 2), (1, 1)), ((2, 3), (0, 2)))
    }
    outside = box_gain((2, 2), (2, 2), 1.0)
    yield Claim(
        "Theorem 3",
        "Box noise with S_0 ⊂ S_f is optimal.",
        f"No gain for {counted(gain < _NOTHING for gain in boxes.values())} boxes on a lattice of the plane; with S_0 "
        f"larger than S_f a gain of {outside:.2f}. The printed recursion of S_i is wrong (errata).",
        "holds partly" if all(gain < _NOTHING for gain in boxes.values()) and outside > _NOTHING else "fails",
    )
    yield Claim(
        "abstract, 8.1",
        "All optimal noises for one query are determined, and a family for several.",
        "For one query those that are symmetric; section 4.4 leaves the others out, 4.5 calls the general form for "
        "several queries out of scope.",
        "holds partly",
    )


def _not_symmetric() -> Claim:
    gains = {(a, b): lopsided_gain(_STEPS, a, b, 1.0) for a, b in ((4, 4), (2, 7), (0, 9), (3, 11))}
    return Claim(
        "4.4",
        "Optimal noises need not be symmetric.",
        "Staircases with a centre from -a to b, in twelfths of Δf, against all private noises: the linear programme "
        "gains "
        + ", ".join(
            f"{gain if gain > _NOTHING else 0:.2g} (a = {a}, b = {b})" for (a, b), gain in gains.items()
        )
        + ".",
        judged(gain < _NOTHING for gain in gains.values()),
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
    return Claim(
        "4, 4.1",
        "Whatever sensible criterion is chosen, the best noise for it is optimal in this sense.",
        f"The least {', '.join(names.values())} over all symmetric private noises is that of a staircase: "
        f"{counted(agree)}.",
        judged(agree),
    )


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
