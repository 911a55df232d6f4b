"""Variations for the ablation of pairs-dp: constants and functions of its modules, changed one at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from shoal.mechanisms.pairs import budget, measure_one, measure_pairs, model, tables
from shoal.mechanisms.pairs import distributions as correlation
from shoal.mechanisms.pairs.budget import Concentrated, MeasurementShape, PureEpsilon
from shoal.mechanisms.tree import intervals
from shoal.mechanisms.tree.intervals import scale_of
from shoal.noise import discrete_laplace, round_up_scale
from shoal.privacy import Spend

DELTA = {"delta": "0.000001"}


@dataclass(frozen=True)
class Variation:
    """The method with something else in a place: constants and functions of its modules."""

    name: str
    changes: Sequence[tuple[Any, str, Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    method: str = "pairs-dp"


def _laplace_deviation(self: PureEpsilon, shape: MeasurementShape, share: Fraction) -> float:
    return self.factor * shape.unit * math.sqrt(2) * shape.blocks / float(share)


def _laplace_needed(self: PureEpsilon, shape: MeasurementShape, deviation: float) -> float:
    return self.factor * shape.unit * math.sqrt(2) * shape.blocks / deviation


def _laplace(self: PureEpsilon, exact: Any, shape: MeasurementShape, spend: Spend) -> Any:
    share, source = spend.take()
    scale = round_up_scale(shape.unit * self.factor * shape.blocks / share)
    noise = discrete_laplace(scale, exact.size, source)
    return (exact + noise.reshape(exact.shape)).astype(np.float64)


def _floor(noise: float) -> float:
    return min(max(0.6 * noise, 0.002), 0.03)


def _plain(correlations: Any, scale: Any, noise: float) -> Any:
    return correlation.nearest_correlation(correlations, _floor(noise))


def _as_one(correlations: Any, scale: Any, noise: float) -> Any:
    """All products shrunk alike, by how much of their variance noise explains."""
    off = ~np.eye(len(correlations), dtype=np.bool_)
    variance = float(((correlations * np.outer(scale, scale))[off] ** 2).mean())
    return correlation.nearest_correlation(correlations * max(0.0, 1 - noise**2 / variance), _floor(noise))


def _as_blocks(values: Any, moves: Any, spend: Spend) -> Any:
    """Laplace noise as wide as block noise on contrasts of all attributes at once would be; sums are left alone.

    Of B attributes with k contrasts each a block has k/√((k+1)(k+2)) of the deviation of Laplace noise where B is
    large, and a contrast is half as noisy, by variance, as the difference of two counts.
    """
    amount, source = spend.take()
    scale: Any
    if isinstance(moves, Sequence):
        scale = [scale_of(each, amount) for each in moves]
    else:
        contrasts = max(values.size // 2, 1)
        part = contrasts / math.sqrt((contrasts + 1) * (contrasts + 2)) / math.sqrt(2)
        scale = round_up_scale(scale_of(moves, amount) * Fraction(part))
    return (values + discrete_laplace(scale, values.size, source)).astype(np.float64)


def _independent(first: Any, second: Any, r: float) -> Any:
    return np.outer(first, second)


NO_TAILS = [(measure_pairs, "TOO_MUCH", 0.0)]
ALL_TAILS = [(measure_pairs, "TOO_MUCH", 1e9)]
# what rounds of bisection asked for before they looked for what is least known
FIXED = (0.5, 0.5, 0.2, 0.8, 0.5, 0.5, 0.1, 0.9, 0.5, 0.5)

VARIATIONS = (
    Variation("as it is"),
    Variation(
        "Laplace noise instead of noise fitted to a record",
        [
            (PureEpsilon, "deviation", _laplace_deviation),
            (PureEpsilon, "needed", _laplace_needed),
            (PureEpsilon, "measure", _laplace),
            (budget, "FEWEST_SIGNS", 10**6),
        ],
    ),
    Variation("blocks instead of elliptope noise", [(budget, "FEWEST_SIGNS", 10**6)]),
    Variation("bisection asks for fixed quantiles only", [(measure_one, "_QUANTILES", FIXED)]),
    Variation("four rounds of bisection", [(budget, "_MOST_ROUNDS", 4)]),
    Variation("eight rounds of bisection", [(budget, "_MOST_ROUNDS", 8)]),
    Variation("trees instead of bisection", [(budget, "_SHALLOW", 0)]),
    Variation("trees where they have three levels", [(budget, "_SHALLOW", 2)]),
    Variation("cut points: later levels get 1.6 times more", [(PureEpsilon, "cut_growth", Fraction(8, 5))]),
    Variation("correlations never shrunk", [(model, "shrunk", _plain)]),
    Variation("spectral shrinkage always", [(correlation, "_LITTLE_EDGE", 0.0)]),
    Variation("correlations shrunk as one", [(model, "shrunk", _as_one)]),
    Variation("hopeless only above twice the noise", [(PureEpsilon, "hopeless", 0.24)]),
    Variation("pairs measured however hopeless", [(PureEpsilon, "hopeless", 1e9)]),
    Variation("products of signs only", [(PureEpsilon, "worth", 1e9)]),
    Variation("tables start from independence", [(tables, "copula_table", _independent)]),
    Variation("no odd records", [(tables, "ODD", 0.0)]),
    Variation("contrasts fitted once, not in turn", [(tables, "_PASSES", 0)]),
    Variation("no polish", [(model, "SWEEPS", 0)]),
    Variation("no Gibbs sweeps", [(model, "GIBBS", 0)]),
    Variation("single attributes get 30%", [(PureEpsilon, "oneway", Fraction(3, 10))]),
    Variation("single attributes get 70%", [(PureEpsilon, "oneway", Fraction(7, 10))]),
    Variation("n private", options={"rows": None}),
    Variation("replace-one", options={"rows": None, "neighbours": "replace-one"}),
    Variation("without joint tails", NO_TAILS),
    Variation("joint tails whatever their noise", ALL_TAILS),
    Variation("values exchanged in all bins", [(measure_pairs, "_WIDE", -1.0)]),
    Variation("δ = 1e-6", options=DELTA),
    Variation("δ = 1e-6, without joint tails", NO_TAILS, DELTA),
    Variation("δ = 1e-6, joint tails whatever their noise", ALL_TAILS, DELTA),
    Variation("δ = 1e-6, pairs measured however hopeless", [(Concentrated, "hopeless", 1e9)], DELTA),
    # the same as above, measured by more scores
    Variation("pairs only", options={"triples": False}),
    Variation("with triples", options={"triples": True}),
    Variation("with triples, however small", [(measure_pairs, "LARGE", 0.0)], {"triples": True}),
    Variation("δ = 1e-6, pairs only", options={"triples": False, **DELTA}),
    Variation("δ = 1e-6, with triples", options={"triples": True, **DELTA}),
    Variation("tree-dp, add-remove", options={"neighbours": "add-remove"}, method="tree-dp"),
    Variation("tree-dp", options={"neighbours": "add-remove"}, method="tree-dp"),
    Variation(
        "tree-dp, interval counts as noisy as blocks would be",
        [(intervals, "noisy", _as_blocks)],
        {"neighbours": "add-remove"},
        "tree-dp",
    ),
)
_TRIPLES = [
    "pairs only",
    "with triples",
    "with triples, however small",
    "δ = 1e-6, pairs only",
    "δ = 1e-6, with triples",
    "tree-dp, add-remove",
]
_OWN = (
    *(v.name for v in VARIATIONS if v.method != "pairs-dp"),
    *_TRIPLES,
    "values exchanged in all bins",
)


@dataclass(frozen=True)
class Study:
    """Which variations are measured on which tables, and what they are to show."""

    title: str
    tables: Sequence[str]
    epsilons: Sequence[str]
    variations: Sequence[str]
    words: str = ""
    # scores of this study besides those of all
    scores: Sequence[str] = ()


STUDIES = {
    "ideas": Study(
        "One idea at a time",
        ("Census", "Wine", "EIA", "Diabetes"),
        ("1", "10"),
        [v.name for v in VARIATIONS if v.name not in _OWN and not v.name.startswith("δ = 1e-6,")],
    ),
    "levels": Study(
        "Where trees would have three levels",
        (*(f"{name} 4" for name in ("Normal", "Skewed", "Zeros", "Humps", "Atoms")), "RAND"),
        ("1",),
        (
            "as it is",
            "trees where they have three levels",
            "bisection asks for fixed quantiles only",
        ),
        "Made-up tables of 5,000 x 5 whose columns have one shape each: normal, skewed, zero "
        "for many, two humps, five values; and a real one with few values in most columns. Trees have cut points at "
        "private medians, and noise in their wide outer intervals moves means; bisection asks where most can be in "
        "the wrong place. Marginals and means of smooth columns are better. What pairs show is about as good, although "
        "they use one cut of a column then, not eight bins; of two humps the ranks are worse, and what neither goes "
        "up nor down together is lost. Eight bins from the curve of the bisection were tried (trials below): on Adult "
        "at ε = 0.1 with a δ, F fell from 0.53 to 0.42, with one cut it rose to 0.55.",
    ),
    "tails": Study(
        "Joint tails",
        ("EIA", *(f"{name} 4" for name in ("Lognormal", "Pareto", "Mixture", "Parts", "Together", "Mixed"))),
        ("10", "100"),
        (
            "as it is",
            "without joint tails",
            "joint tails whatever their noise",
            "values exchanged in all bins",
            "δ = 1e-6",
            "δ = 1e-6, without joint tails",
            "δ = 1e-6, joint tails whatever their noise",
        ),
        "For pairs with a heavy column, sums of products of values about their means are measured, and values are "
        "exchanged between rows of one wide bin until the rows have them. It is done where noise on the correlations "
        f"is at most {measure_pairs.TOO_MUCH:g} in the median of the pairs, which follows from ε, n and the "
        "noisy distributions of single columns; elsewhere a row is the same with and without. The made-up tables were "
        "not looked at while the rule was made: lognormal columns of two factors, power tails over a Gaussian copula, "
        "a few large firms among small ones, totals and their parts, Student's t with 3 degrees of freedom, and two "
        "heavy columns among others.",
    ),
    "triples": Study(
        "Triples",
        ("Exclusive or 4", "Weak exclusive or 4", "Known", "EIA", "Census", "Adult", "Wine", "Diabetes"),
        ("1", "10", "100"),
        _TRIPLES,
        "With `triples=True` up to three triples of columns are chosen privately, measured, and followed by the "
        "rows where the mean product of their signs is 0.2 or more away from what pairs say. In the first three "
        "tables a label says whether exactly one of two columns is high: it is wrong in 10, 30 and 20 of 100 rows, "
        "and no pair shows it. With triples F rises by 0.15 to 0.37, at ε = 1 already, where tree-dp sees nothing; "
        "from ε = 10 on tree-dp sees it as well, with three to ten times the error of correlations. The other five "
        "are there for the harm: triples cost a part of the share of pairs, a fifth at most, and nothing where "
        "they would not be found (then both rows are the same). Where they get the full fifth and find nothing, "
        "that shows: ranks of Census at ε = 1 with a δ are off by 0.063 instead of 0.051. Elsewhere no "
        "correlation, rank or F is worse beyond chance, with so few seeds. So it stays off by default. Following "
        "effects however small does no harm that shows, and gains little.",
        ("triple", "worst triple", "F"),
    ),
    "small": Study(
        "Small tables, and hopeless ones",
        [f"{name}, {rows} rows" for name in ("Census", "Wine") for rows in (30, 100, 300)],
        ("1", "10"),
        (
            "as it is",
            "pairs measured however hopeless",
            "n private",
            "δ = 1e-6",
            "δ = 1e-6, pairs measured however hopeless",
            "tree-dp",
        ),
        "The first rows of Census (10 columns) and Wine (12). Pairs count as hopeless where noise on products of signs "
        "would drown the correlations of so many columns: then all of ε goes to single columns. Measuring them all the "
        "same doubles the error of marginals and brings no correlation. With a δ the limit is laxer than it should be: "
        "Census with 100 rows at ε = 1 would be better off without pairs.",
    ),
    "tree": Study(
        "What tree-dp could take over",
        ("Census", "Wine", "Adult"),
        ("0.1", "1", "10"),
        ("tree-dp", "tree-dp, interval counts as noisy as blocks would be"),
        "An estimate: Laplace noise as wide as that of blocks, for the counts of intervals of single columns; cut "
        "points and boxes, whose noise blocks do not change, are as they were. Single columns gain 13% at most, "
        "relations nothing, so it was not built. Where ε is small, tree-dp has no cut points that joint bisection "
        "could replace: there it releases one interval.",
    ),
}
