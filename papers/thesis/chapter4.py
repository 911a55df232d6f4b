"""Reproduction of chapter 4 of the thesis, optimal noise, from formulas."""

from __future__ import annotations

import math

import numpy as np

from papers.desk import Desk
from papers.plots import COLOURS, Curve, Panel, panels
from papers.study import Erratum, Figure, Number, Section, Series, Study
from papers.texts import numbering, printed_errors, rows, wording
from papers.thesis.chapter4_claims import EXAMPLE, claims, marginal, theorem_claims
from papers.thesis.chapter4_theorems import Floats, constructed
from shoal.noise import Box, LatticeStaircase, Staircase
from shoal.noise.families import laplace_region

number = numbering("thesis/chapter4")

heading = wording("thesis/chapter4")

_PRINTED = rows("thesis/chapter4-printed")
_PROTOTYPE = "a throw-away prototype"
_CUT = "print cuts off after two digits"
_EPSILONS = (0.1, 0.5, 1.0)
_CONFIDENCES = (0.99, 0.95, 0.90)


def study(desk: Desk) -> Study:
    curves = _by_centre()
    return Study(
        *heading("about"),
        [
            Section(
                *heading("chapter-4-query-tables"),
                [*_univariate(), *_univariate_prototype()],
                figures=[_densities(), _centres(curves)],
            ),
            Section(
                *heading("chapter-4-two-queries"),
                [*_bivariate(), *_bivariate_prototype()],
                figures=[_marginals()],
                claims=list(claims()),
            ),
            Section(*heading("chapter-4-theorems"), claims=list(theorem_claims(6 if desk.quick else 30))),
        ],
        _errata(),
        [
            Series("thesis-4-centres", ("d", "variance", "length_of_95"), curves),
            Series(
                "thesis-4-marginals",
                ("x", "box_first", "box_second", "laplace"),
                [
                    (
                        round(x, 6),
                        *(round(float(y), 8) for y in (marginal(x, 0), marginal(x, 1), _laplace(x))),
                    )
                    for x in _WIDE.tolist()
                ],
            ),
        ],
    )


def _univariate() -> list[Number]:
    numbers = []
    for epsilon, laplace, optimal in zip(_EPSILONS, *_PRINTED["table_4_1"].values(), strict=True):
        numbers += [
            Number("Table 4.1", f"ε = {epsilon:g}, Laplace, variance", laplace, 2 / epsilon**2),
            Number(
                "Table 4.1",
                f"ε = {epsilon:g}, least variance",
                optimal,
                Staircase.best(1.0, epsilon).variance,
            ),
        ]
    for epsilon, laplace, optimal in zip(_EPSILONS, *_PRINTED["table_4_2"].values(), strict=True):
        shortest = Staircase.best(1.0, epsilon, "interval").interval(0.95)
        numbers += [
            Number("Table 4.2", f"ε = {epsilon:g}, Laplace, 95%", laplace, 2 * math.log(20) / epsilon),
            Number("Table 4.2", f"ε = {epsilon:g}, shortest 95%", optimal, 2 * shortest, why=_CUT),
        ]
    best = Staircase.best(1.0, 1.0)
    return [
        *numbers,
        number("epsilon-1-d-least", best.centre),
        number("epsilon-1-least-variance", best.variance),
        number("epsilon-1-d-shortest", Staircase.best(1.0, 1.0, "interval").centre),
    ]


def _univariate_prototype() -> list[Number]:
    numbers = []
    known = _PRINTED["prototype"]
    for epsilon, centre, variance, length in zip(
        _EPSILONS, known["centre"], known["variance"], known["length"], strict=True
    ):
        best, short = Staircase.best(1.0, epsilon), Staircase.best(1.0, epsilon, "interval")
        numbers += [
            Number(_PROTOTYPE, f"ε = {epsilon:g}, d of the least variance", centre, best.centre),
            Number(_PROTOTYPE, f"ε = {epsilon:g}, least variance", variance, best.variance),
            Number(_PROTOTYPE, f"ε = {epsilon:g}, shortest 95%", length, 2 * short.interval(0.95)),
        ]
    return [*numbers, number("four-cluster-sums-move", 4 * _loss_of_one_step())]


def _loss_of_one_step() -> float:
    """By how many factors exp(ε) a staircase tells values that are one lattice step apart, at the worst."""
    law = LatticeStaircase(10, 1.0, 4)
    places = np.arange(-60, 60)
    return float(np.abs(law.level(places + 1) - law.level(places)).max())


def _bivariate() -> list[Number]:
    numbers = [
        number("f-s-f-1", sum((1.0, 1.0))),
        number("f", sum(EXAMPLE.widths)),
        *(number("var-y-laplace", 2 * sum(EXAMPLE.widths) ** 2, j) for j in (1, 2)),
        number("var-y-1-box", EXAMPLE.variances[0]),
        number("var-y-2-box", EXAMPLE.variances[1]),
    ]
    rounded = "print squares the rounded α: 2α²"
    for confidence, alpha, size in zip(_CONFIDENCES, *_PRINTED["table_4_3"].values(), strict=True):
        radius, area = laplace_region(sum(EXAMPLE.widths), 2, confidence)
        numbers += [
            Number("Table 4.3", f"{confidence:.2f}, α", alpha, radius),
            Number("Table 4.3", f"{confidence:.2f}, size", size, area, why=rounded),
        ]
    for confidence, beta, size, why_beta, why_size in zip(
        _CONFIDENCES, *_PRINTED["table_4_4"].values(), strict=True
    ):
        region = EXAMPLE.region(confidence)
        numbers += [
            Number(
                "Table 4.4", f"{confidence:.2f}, β (with the innermost box)", beta, region.reach, why=why_beta
            ),
            Number("Table 4.4", f"{confidence:.2f}, size", size, region.size, why=why_size),
        ]
    return numbers


def _bivariate_prototype() -> list[Number]:
    return [
        Number(_PROTOTYPE, f"size of the region of {confidence:.2f}", size, EXAMPLE.region(confidence).size)
        for confidence, size in zip(_CONFIDENCES, _PRINTED["prototype"]["size"], strict=True)
    ] + [number("region-0-99", EXAMPLE.region(0.99).reach)]


def _by_centre() -> list[tuple[float, float, float]]:
    """Figures 4.2 and 4.3: variance and length of the 95% interval by the half-width of the centre, ε = 1."""
    shapes = [Staircase(1.0, 1.0, float(d)) for d in np.linspace(0, 1, 101)]
    return [(shape.centre, shape.variance, 2 * shape.interval(0.95)) for shape in shapes]


def _centres(curves: list[tuple[float, float, float]]) -> Figure:
    d = [one[0] for one in curves]
    shown = []
    for title, column, laplace in (("variance", 1, 2.0), ("length of the 95% interval", 2, 2 * math.log(20))):
        shown.append(
            Panel(
                title,
                [
                    Curve("staircase", d, [one[column] for one in curves], COLOURS[0]),
                    Curve("Laplace", [0], [laplace], COLOURS[1], dashed=True),
                ],
                "d",
            )
        )
    title = "Variance and interval by the half-width d of the centre, ε = 1"
    caption = f"{title} (Figures 4.2 and 4.3)."
    return Figure("thesis-4-centres", caption, panels(title, shown, common=False, logarithmic=False))


def _densities() -> Figure:
    x = np.linspace(-4, 4, 401)
    shown = [
        Panel(
            f"ε = {epsilon:g}",
            [
                Curve("built from Laplace", x.tolist(), constructed(epsilon).density(x).tolist(), COLOURS[0]),
                Curve(
                    "Laplace", x.tolist(), (epsilon * np.exp(-epsilon * np.abs(x)) / 2).tolist(), COLOURS[1]
                ),
            ],
            "x",
        )
        for epsilon in (1.0, 2.0)
    ]
    title = "The noise of section 4.3 beside Laplace noise"
    return Figure(
        "thesis-4-densities", f"{title} (Figure 4.1, and ε = 2).", panels(title, shown, logarithmic=False)
    )


_WIDE = np.linspace(-40, 40, 401)


def _laplace(x: float) -> float:
    return math.exp(-abs(x) / 11) / 22


def _marginals() -> Figure:
    laplace = [_laplace(x) for x in _WIDE.tolist()]
    shown = [
        Panel(
            f"{name} component",
            [
                Curve("box", _WIDE.tolist(), marginal(_WIDE, component).tolist(), COLOURS[0]),
                Curve("Laplace, scale 11", _WIDE.tolist(), laplace, COLOURS[1]),
            ],
            "x",
        )
        for component, name in enumerate(("first", "second"))
    ]
    title = "Both components of the noise of Example 5"
    return Figure(
        "thesis-4-marginals", f"{title} (Figure 4.7).", panels(title, shown, common=False, logarithmic=False)
    )


def printed_variance() -> tuple[float, float]:
    """Variance at d* and ε = 1 of the density as Theorem 1 prints it, and of the one that section 4.4 computes with."""
    best = Staircase.best(1.0, 1.0)
    # with e^{-iε} from i = 0 on, the first block beyond d is as high as the centre
    return Staircase(1.0, 1.0, best.centre + 1.0).variance, best.variance


def theorem_3_total() -> float:
    """Total mass of the box density if S_{i+1} leaves out S_0 .. S_{i-1} only, as Theorem 3 prints it."""
    q, z, s = math.exp(-1.0), 0.1, 1.0
    # in units of the widths; area of the union up to level i, and of S_i with the part of S_{i-1} counted again
    area = [(2 * (z + i * s)) ** 2 for i in range(80)]
    right = area[0] + sum(q**i * (area[i] - area[i - 1]) for i in range(1, 80))
    printed = area[0] + q * area[1] + sum(q**i * (area[i] - area[i - 2]) for i in range(2, 80))
    return printed / right


def laplace_total(epsilon: float) -> float:
    """The integral of the density of section 2.9 as printed, ε/(2Δ)·exp(-|x|/Δ)."""
    x: Floats = np.linspace(0, 60, 600_001)
    return float(2 * np.trapezoid(epsilon / 2 * np.exp(-x), x))


def _errata() -> list[Erratum]:
    wrong, right = printed_variance()
    beta = Box(EXAMPLE.widths, 1.0, EXAMPLE.centre).region(0.99).reach
    return printed_errors(
        "thesis/chapter4",
        {
            "2-9-laplace-density": (laplace_total(0.5),),
            "theorem-1-m-0": (wrong, right),
            "theorem-3-s-i": (theorem_3_total(),),
            "4-5-table-4": (beta - 0.1,),
        },
    )
