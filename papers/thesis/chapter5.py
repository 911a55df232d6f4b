"""Reproduction of chapter 5 of the thesis, answers by knowledge refinement, from formulas."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np

from papers.desk import Desk
from papers.plots import COLOURS, Curve, Panel, panels
from papers.study import Erratum, Figure, Number, Section, Series, Study
from papers.texts import numbering, printed_errors, rows, wording
from papers.thesis.chapter5_claims import claims
from papers.thesis.chapter5_worlds import boolean, printed_deltas, two_persons, unit_interval
from shoal.noise import Seeded
from shoal.query.refinement import Factors, Refined, absolute, categorical, nominal, refine, sample, uniform

number = numbering("thesis/chapter5")

heading = wording("thesis/chapter5")

_PROTOTYPE = "a throw-away prototype"
# the lattice that stands for the interval [0, 1]
_STEPS = 1 << 14
_ONE = Fraction(1)
_LAPLACE = "not a probability of this noise: it stays within ±1/2 with 1 - exp(-ε/2)"
_CUT = "print cuts off"
_VALUES = {
    "0.1": (0.1, Factors.individual(Fraction(1, 10))),
    "ln 2": (math.log(2), Factors(Fraction(2), Fraction(1, 2))),
    "1": (1.0, Factors.individual(_ONE)),
    "2": (2.0, Factors.individual(Fraction(2))),
}
# ε, its factors, the printed line and that of the prototype
TABLE_5_5 = tuple(
    (name, *_VALUES[name], printed.split(), prototype.split())
    for name, (printed, prototype) in rows("thesis/chapter5-printed")["table_5_5"].items()
)
_COLUMNS = ("Laplace, variance", "Laplace, P(within [0, 1])", "variance", "size of U_u", "P(U_u)")


def study(desk: Desk) -> Study:
    draws = 10_000 if desk.quick else 100_000
    frequencies = desk.measure(
        "chapter 5",
        {f"thesis 5, Boolean {truth} {draws}": partial(answered_one, truth, draws) for truth in (0, 1)},
    )
    return Study(
        *heading("about"),
        [
            Section(
                *heading(
                    "chapter-5-continuous-attribute",
                    _STEPS,
                    ", ".join(f"{lattice_variance(line[2]):.4f}" for line in TABLE_5_5),
                ),
                [*_table_5_5(), *_table_5_5_prototype()],
                figures=[_densities()],
            ),
            Section(
                *heading("chapter-5-boolean-attributes", draws),
                [*_boolean(list(frequencies.values()), draws), *_pairs()],
            ),
            Section(*heading("chapter-5-statements"), claims=list(claims(quick=desk.quick))),
        ],
        _errata(),
        [
            Series(
                "thesis-5-densities",
                ("epsilon", "x", "refined", "laplace"),
                [(name, *row) for name, epsilon, _, _, _ in TABLE_5_5 for row in _curve(epsilon)],
            )
        ],
    )


def variance(factors: Factors) -> Fraction:
    """Of the refined uniform distribution on [0, 1] around the truth 1/2."""
    size = factors.mass_up
    return (factors.up * size**3 + factors.down * (1 - size**3)) / 12


def lattice_variance(factors: Factors) -> float:
    """The same on the lattice, from the law that is drawn from."""
    prior = uniform(unit_interval(_STEPS))
    law: Refined = refine(prior, absolute(prior.support, _STEPS // 2), factors)
    chances = np.array([float(chance) for chance in law.probabilities()])
    return float((chances * (np.arange(_STEPS + 1) / _STEPS - 0.5) ** 2).sum())


def answered_one(truth: int, draws: int) -> float:
    """How often the Boolean example answers 1, by exact samples."""
    prior = categorical({"0": "0.99", "1": "0.01"})
    law = refine(prior, nominal(prior.support, truth), Factors.individual(_ONE))
    source = Seeded(truth)
    return sum(sample(law, source) for _ in range(draws)) / draws


def _table_5_5() -> list[Number]:
    numbers = []
    for name, epsilon, factors, printed, _ in TABLE_5_5:
        found = (
            2 / epsilon**2,
            -math.expm1(-epsilon / 2),
            float(variance(factors)),
            float(factors.mass_up),
            float(factors.chance_up),
        )
        for column, text, value in zip(_COLUMNS, printed, found, strict=True):
            why = _LAPLACE if column == _COLUMNS[1] else _CUT
            numbers.append(Number("Table 5.5", f"ε = {name}, {column}", text, value, why=why))
    return numbers


def _table_5_5_prototype() -> list[Number]:
    numbers = []
    for name, _, factors, _, digits in TABLE_5_5:
        found = (float(variance(factors)), float(factors.mass_up), float(factors.chance_up))
        for column, text, value in zip(_COLUMNS[2:], digits, found, strict=True):
            numbers.append(Number(_PROTOTYPE, f"ε = {name}, {column}", text, value))
    return numbers


def _boolean(frequencies: list[float], draws: int) -> list[Number]:
    absent, present = boolean(Fraction(1, 100), _ONE)
    laplace = math.exp(-1) / 2
    crude = laplace * 0.99 + (1 - laplace) * 0.01
    answered = float(absent[1] * Fraction(99, 100) + present[1] * Fraction(1, 100))
    half = boolean(Fraction(1, 2), _ONE)
    numbers = [
        number("laplace-p-1-0", laplace),
        number("laplace-p-1-1", 1 - laplace),
        number("laplace-p-1", crude),
    ]
    for what, text, digits, value in (
        ("P(1 | 0)", "0.003678", ".003679", absent[1]),
        ("P(0 | 0)", "0.996322", ".996321", absent[0]),
        ("P(1 | 1)", "0.027182", ".027183", present[1]),
        ("P(0 | 1)", "0.972817", ".972817", present[0]),
    ):
        why = _CUT if what.startswith("P(1") else "print subtracts from 1 what it cut off"
        numbers += [
            Number("5.5.1", f"refined, {what}", text, float(value), why=why),
            Number(_PROTOTYPE, f"refined, {what}", digits, float(value)),
        ]
    numbers += [
        number("refined-p-1", answered),
        number("p-1-0", float(half[0][1])),
        number("p-1-1", float(half[1][1])),
    ]
    for truth, text, frequency in zip((0, 1), ("0.003678", "0.027182"), frequencies, strict=True):
        chance = float((absent, present)[truth][1])
        error = math.sqrt(chance * (1 - chance) / draws)
        numbers.append(Number("5.5.1", f"refined, P(1 | {truth}), sampled", text, frequency, error))
    return numbers


def _pairs() -> list[Number]:
    """Cells of tables 5.3 and 5.4: the printed formula at α_d = 1/e beside the product of exact laws."""
    a = math.exp(-1)
    inner, outer = 1 - a / 2, a / 2
    formulas = {
        "both there": (
            "Table 5.3",
            ("(1 - α_d/2)²", inner**2),
            ("(1 - α_d/2)·α_d/2", inner * outer),
            ("(1 - α_d/2)·α_d/2", inner * outer),
            ("α_d²/4", outer**2),
        ),
        "first missing": (
            "Table 5.4",
            ("(1 - α_d/2)/2", inner / 2),
            ("α_d/4", outer / 2),
            ("(1 - α_d/2)/2", inner / 2),
            ("α_d/4", outer / 2),
        ),
        "second missing": (
            "Table 5.4",
            ("(1 - α_d/2)/2", inner / 2),
            ("(1 - α_d/2)/2", inner / 2),
            ("α_d/4", outer / 2),
            ("α_d/4", outer / 2),
        ),
    }
    laws = two_persons(_ONE)
    numbers = []
    for who, (table, *cells) in formulas.items():
        for place, (formula, value) in enumerate(cells):
            what = f"{who}, P({place // 2}, {place % 2}) = {formula}"
            numbers.append(Number(table, what, f"{value:.6f}", float(laws[who][place])))
    return numbers


def _curve(epsilon: float) -> list[tuple[float, float, float]]:
    """Figure 5.7: places, refined density, density of Laplace noise around 1/2."""
    up, down = math.exp(epsilon), math.exp(-epsilon)
    half = (1 - down) / (up - down) / 2
    rows = []
    for x in np.linspace(-1, 2, 301).tolist():
        refined = 0.0 if not 0 <= x <= 1 else up if abs(x - 0.5) <= half else down
        laplace = epsilon / 2 * math.exp(-epsilon * abs(x - 0.5))
        rows.append((round(x, 6), round(refined, 6), round(laplace, 6)))
    return rows


def _densities() -> Figure:
    shown = []
    for name, epsilon, _, _, _ in TABLE_5_5:
        places, refined, laplace = zip(*_curve(epsilon), strict=True)
        shown.append(
            Panel(
                f"ε = {name}",
                [
                    Curve("refined uniform prior", places, refined, COLOURS[0]),
                    Curve("Laplace noise", places, laplace, COLOURS[1]),
                ],
                "answer",
            )
        )
    title = "Distribution of the answer about one person, truth 0.5"
    return Figure(
        "thesis-5-densities", f"{title} (Figure 5.7).", panels(title, shown, common=False, logarithmic=False)
    )


def printed_total(factors: Factors) -> Fraction:
    """Total mass of the law of Algorithm 5.1 if p_u is as printed, (α_u - 1)/(α_u - α_d)."""
    printed = (factors.up - 1) / (factors.up - factors.down)
    return factors.up * printed + factors.down * (1 - printed)


def _errata() -> list[Erratum]:
    total = float(printed_total(Factors.individual(_ONE)))
    person, statistic = printed_deltas(Fraction(1, 5))
    return printed_errors(
        "thesis/chapter5",
        {
            "5-2-algorithm-5": (total,),
            "5-2-epsilon-may": (person,),
            "5-2-epsilon-2": (statistic,),
            "table-5-5-laplace": (", ".join(f"{-math.expm1(-line[1] / 2):.3f}" for line in TABLE_5_5),),
        },
    )
