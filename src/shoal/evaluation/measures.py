"""Measures by name, including those that statistical offices compute for masked numbers.

A new measure is one entry with a function that computes it (`register_measure` adds a third-party one). It then
appears in `shoal.evaluate`, its tables, the internal report, `shoal tune` and the measures settings are ranked by.

x is the original, y the masked table, both (rows, columns) with NaN for a missing value; standard deviations divide by
n - 1. A measure that does not exist, because a column is constant or two are collinear, is None.

Missing values are NaN (infinite ones count as missing too); a measure that does not exist for the data is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal.columns import KIND_FACTS
from shoal.errors import OptionError
from shoal.evaluation.pair import Column, Nominal, Ordered
from shoal.numbers import Floats

# half the width of the dRisk interval, in standard deviations
INTERVAL = 0.05
# eigenvalues of a correlation matrix below this belong to collinear columns
_COLLINEAR = 1e-10
# takes the compared columns and whether their rows are in the same order; returns a number, or None where undefined
Compute = Callable[[Sequence["Column"], bool], "float | None"]
Metric = Literal["corrected", "paper"]
# power of the standard deviation that divides an error before it is squared
_POWERS = {"corrected": 1, "paper": 2}


def interval_disclosure(x: Floats, y: Floats, width: float = INTERVAL) -> float | None:
    """dRisk: share of the records that lie within `width` standard deviations of y around their masked values.

    A record counts if this holds in all columns; a comparison with a missing value counts as inside.

    Reference:
        Mateo-Sanz, Sebé and Domingo-Ferrer (2004).

    >>> interval_disclosure(np.array([[0.0], [10.0]]), np.array([[0.0], [5.0]]))
    0.5
    """
    if x.size == 0:
        return None
    spread = _deviations(y)
    # a column without values has no deviation, and no comparison outside
    outside = np.abs(x - y) > width * np.where(np.isnan(spread), np.inf, spread)
    return float(1.0 - outside.any(axis=1).mean())


def il1s(x: Floats, y: Floats) -> float | None:
    """Sum over all cells of |x - y| / (√2 sd(x)); cells with a missing value are left out.

    >>> round(il1s(np.array([[0.0], [2.0]]), np.array([[1.0], [2.0]])), 6)
    0.5
    """
    spread = _deviations(x)
    if x.size == 0 or not (spread > 0).all():
        return None
    return float(np.nansum(np.abs(x - y) / (math.sqrt(2.0) * spread)))


def il1(x: Floats, y: Floats) -> float | None:
    """Sum over all cells of 100 |x - y| / |x|; cells with a missing value, or where x is 0, are left out."""
    if x.size == 0:
        return None
    there = x != 0
    return float(100.0 * np.nansum(np.abs(x[there] - y[there]) / np.abs(x[there])))


def eigenvalue_change(x: Floats, y: Floats) -> float | None:
    """Σ |e - e'| / e over the eigenvalues of the correlation matrices, both in descending order.

    With gaps, columns are standardised by all their values, and their products averaged over the rows that both have.
    """
    return eigenvalues_moved(_correlations(x), _correlations(y))


def eigenvalues_moved(before: Floats | None, after: Floats | None) -> float | None:
    """The same from the correlation matrices; None where one does not exist."""
    if before is None or after is None:
        return None
    e, changed = (np.linalg.eigvalsh(matrix)[::-1] for matrix in (before, after))
    # a relative change of an eigenvalue of 0 is undefined
    return float((np.abs(e - changed) / e).sum()) if e[-1] > _COLLINEAR else None


def correlation_loss(x: Floats, y: Floats) -> float | None:
    """IL_correl: distance of the diagonals of the inverse correlation matrices, 0 to 1, on rows without a gap.

    Both diagonals are scaled to length 1, and their distance is divided by √2.

    Reference:
        Młodak (2020), with 1/√2 where the paper has 1/2.
    """
    return inverses_moved(*(_correlations(values[~np.isnan(values).any(axis=1)]) for values in (x, y)))


def inverses_moved(before: Floats | None, after: Floats | None) -> float | None:
    """The same from the correlation matrices of rows without a gap; None where one does not exist."""
    directions = []
    for matrix in (before, after):
        if matrix is None or np.linalg.eigvalsh(matrix)[0] <= _COLLINEAR:
            return None
        diagonal = np.diag(np.linalg.inv(matrix))
        directions.append(diagonal / np.linalg.norm(diagonal))
    return float(np.linalg.norm(directions[0] - directions[1]) / math.sqrt(2.0))


def _deviations(values: Floats) -> NDArray[np.float64]:
    return np.array([_deviation(column[~np.isnan(column)]) for column in values.T])


def _deviation(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) if values.size > 1 else math.nan


def _correlations(values: Floats) -> Floats | None:
    """Correlations of the columns; None where one of them is constant or two share fewer than two rows."""
    spread = _deviations(values)
    if values.size == 0 or not (spread > 0).all():
        return None
    there = (~np.isnan(values)).astype(np.float64)
    mean = np.nanmean(values, axis=0)
    scaled = np.where(there > 0, (values - mean) / spread, 0.0)
    common = there.T @ there
    if (common < 2).any():
        return None
    sums = scaled.T @ there
    return np.asarray((scaled.T @ scaled - sums * sums.T / common) / (common - 1.0))


def cell_loss(column: Column) -> NDArray[np.float64]:
    """The IL_variables loss of each cell of a column, 0 to 1.

    Nominal: 0 if equal, else 1. Ordinal: the distance as a share of the whole order. Numbers and dates:
    (2/π) atan|x - y|, which depends on the unit. One missing value of two is the largest loss, two are no loss.
    """
    if isinstance(column, Nominal):
        return np.asarray(column.before != column.after, dtype=np.float64)
    x, y = column.before, column.after
    gone, missing = np.isnan(x), np.isnan(y)
    apart = np.abs(x - y)
    if KIND_FACTS[column.kind].listed:
        loss = apart / column.width if column.width else apart
        worst = 1.0
    else:
        loss = 2.0 / math.pi * np.arctan(apart)
        known = x[~gone]
        worst = 2.0 / math.pi * math.atan(float(known.max() - known.min())) if known.size else 0.0
    return np.where(gone & missing, 0.0, np.where(gone | missing, worst, loss))


def variable_loss(columns: Sequence[Column]) -> float | None:
    """IL_variables: mean of `cell_loss` over all cells.

    Reference:
        Młodak (2020).
    """
    if not columns:
        return None
    return float(np.mean([cell_loss(column).mean() for column in columns]))


def numbers(columns: Sequence[Column]) -> tuple[Floats, Floats]:
    """The columns of quantities, before and after."""
    found = [one for one in columns if isinstance(one, Ordered) and KIND_FACTS[one.kind].measured]
    if not found:
        return np.empty((0, 0)), np.empty((0, 0))
    return np.column_stack([one.before for one in found]), np.column_stack([one.after for one in found])


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of utility loss or of the remaining risk.

    Attributes:
        title: its name in a table.
        good: which direction is good; empty for a measure that only explains another one.
        meaning: a short explanation.
        ranked: its name in a comparison of settings; empty where settings cannot be ranked by it.
        of_rows: it needs rows that correspond to records.
        kept: a comparison of settings keeps it; measures that settings are ranked by are always kept.
        most: its largest value.
        compute: its function of the whole table; None for those that `shoal.evaluation.result` computes together.
    """

    name: str
    part: Literal["utility", "risk"]
    title: str
    good: Literal["low", "high", ""]
    meaning: str
    ranked: str = ""
    of_rows: bool = False
    kept: bool = False
    most: float = math.inf
    compute: Compute | None = None


def _of_numbers(compute: Callable[[Floats, Floats], float | None]) -> Compute:
    return lambda columns, matched: compute(*numbers(columns))


_MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("sse", "utility", "SSE", "low", "sum of squared errors", of_rows=True),
        Measure("sae", "utility", "SAE", "low", "sum of absolute errors", of_rows=True),
        Measure("log10_sse", "utility", "log10 SSE", "low", "SSE on a log scale", of_rows=True),
        Measure("log2_sse", "utility", "log2 SSE", "low", "SSE on a log scale", of_rows=True),
        Measure(
            "log10_mean_sse", "utility", "log10 mean SSE", "low", "iDP paper, errors over sd", of_rows=True
        ),
        Measure(
            "log10_mean_sse_paper",
            "utility",
            "  as printed",
            "low",
            "errors over the variance",
            of_rows=True,
        ),
        Measure(
            "normalised_sse",
            "utility",
            "normalised SSE",
            "low",
            "1 = as if every row were the mean",
            ranked="squared error / variance",
            of_rows=True,
        ),
        Measure("semantic_sse", "utility", "semantic SSE", "low", "squared distances of names", of_rows=True),
        Measure(
            "scaled_sse",
            "utility",
            "scaled SSE",
            "low",
            "all kinds, in domain widths",
            ranked="squared error in domain widths",
            of_rows=True,
        ),
        Measure("mean_variation", "utility", "mean variation", "low", "relative change of the means"),
        Measure(
            "variance_variation", "utility", "variance variation", "low", "relative change of the variances"
        ),
        Measure(
            "correlation_difference",
            "utility",
            "correlation diff.",
            "low",
            "mean |change| of correlations",
            ranked="mean change of correlations",
        ),
        Measure(
            "wasserstein",
            "utility",
            "Wasserstein-1",
            "low",
            "shift in standard deviations",
            ranked="Wasserstein-1 distance / standard deviation",
        ),
        Measure(
            "total_variation",
            "utility",
            "total variation",
            "low",
            "share of rows moved, per column",
            ranked="share of rows moved, per column",
        ),
        Measure("pair_total_variation", "utility", "  of pairs", "low", "the same in two-way tables"),
        Measure(
            "il1s",
            "utility",
            "IL1s",
            "low",
            "sum of |errors| in deviations",
            of_rows=True,
            compute=_of_numbers(il1s),
        ),
        Measure(
            "il1",
            "utility",
            "IL1",
            "low",
            "sum of |errors| in percent of values",
            of_rows=True,
            compute=_of_numbers(il1),
        ),
        Measure(
            "eigen",
            "utility",
            "eigenvalues",
            "low",
            "relative change, of correlations",
            compute=_of_numbers(eigenvalue_change),
        ),
        Measure(
            "il_correl",
            "utility",
            "IL_correl",
            "low",
            "change of inverse correlations",
            most=1.0,
            compute=_of_numbers(correlation_loss),
        ),
        Measure(
            "il_variables",
            "utility",
            "IL_variables",
            "low",
            "mean loss of a cell, 0 to 1",
            of_rows=True,
            most=1.0,
            compute=lambda columns, matched: variable_loss(columns),
        ),
        Measure(
            "record_linkage",
            "risk",
            "record linkage %",
            "low",
            "rows nearest to their own record",
            of_rows=True,
            kept=True,
            most=100.0,
        ),
        Measure("record_linkage_interval", "risk", "  95% interval", "", "Wilson interval of the line above"),
        Measure(
            "record_linkage_chance",
            "risk",
            "  by guessing %",
            "",
            "linked by picking any record",
            kept=True,
            most=100.0,
        ),
        Measure(
            "drisk",
            "risk",
            "dRisk",
            "low",
            "share of records near their masked values",
            of_rows=True,
            most=1.0,
            compute=_of_numbers(interval_disclosure),
        ),
        Measure("actual_k", "risk", "actual k", "high", "smallest group of identical rows"),
        Measure("unique_share", "risk", "unique rows", "low", "share of rows unlike any other"),
    )
}
MEASURES: Mapping[str, Measure] = _MEASURES
# predictive utility is measured separately, and only where there is a target
LEARNING = "learning"
_LEARNING_WORDS = "1 - F-measure of a random forest"


def ranked_by() -> dict[str, str]:
    """The measures that settings can be ranked by, as text."""
    found = {name: measure.ranked for name, measure in MEASURES.items() if measure.ranked}
    return {**found, LEARNING: _LEARNING_WORDS}


def kept() -> tuple[Measure, ...]:
    """The measures that a comparison of settings keeps of an evaluation."""
    return tuple(measure for measure in MEASURES.values() if measure.ranked or measure.kept)


def needs_rows(name: str) -> bool:
    """Whether a measure needs rows that correspond to records."""
    return name in MEASURES and MEASURES[name].of_rows


def most(name: str) -> float:
    """The largest possible value of a measure."""
    return 1.0 if name == LEARNING else MEASURES[name].most


def computed(
    part: Literal["utility", "risk"], columns: Sequence[Column], matched: bool
) -> dict[str, float | None]:
    """The measures with a function of their own."""
    return {
        name: measure.compute(columns, matched) if matched or not measure.of_rows else None
        for name, measure in MEASURES.items()
        if measure.part == part and measure.compute is not None
    }


def register_measure(measure: Measure) -> None:
    """Register a third-party measure.

    Raises:
        OptionError: its name is taken, or it has no function that computes it.
    """
    if measure.name in MEASURES:
        raise OptionError("there-measure-already", measure=measure.name)
    if measure.compute is None:
        raise OptionError("measure-needs-function-computes-compute", measure=measure.name)
    _MEASURES[measure.name] = measure


def mean_sse(
    original: NDArray[np.float64], released: NDArray[np.float64], metric: Metric = "corrected"
) -> float:
    """Mean over the records of the squared distance (1/m²) Σ_j (d_j / σ_j)².

    m is the number of attributes and σ_j² the sample variance of the original. `metric="paper"` divides by the
    variance inside the square, (d_j / σ_j²)², as equation (5) prints it: an error of units, which gives the
    attributes with the smallest numbers the most weight. Attributes that are constant in the original do not count.

    Reference:
        The iDP paper, equations (4) and (5).

    >>> x, y = np.array([[0.0, 0.0], [2.0, 20.0]]), np.array([[1.0, 0.0], [2.0, 10.0]])
    >>> round(mean_sse(x, y), 6), round(mean_sse(x, y, "paper"), 6)
    (0.125, 0.031562)
    """
    if metric not in _POWERS:
        raise OptionError("unknown-metric", option="metric", metric=metric, allowed=tuple(_POWERS))
    parts = []
    for truth, found in zip(original.T, released.T, strict=True):
        present = truth[np.isfinite(truth)]
        both = np.isfinite(truth) & np.isfinite(found)
        if present.size < 2 or present.min() == present.max() or not both.any():
            continue
        scale = float(present.std(ddof=1)) ** _POWERS[metric]
        parts.append(float(np.mean(((found[both] - truth[both]) / scale) ** 2)))
    return math.fsum(parts) / len(parts) ** 2 if parts else math.nan
