"""The measures, one record each: what it is called, which way is good, and what settings are ranked by.

A new measure is one entry with a function that computes it (`register_measure` adds one from outside the package):
`shoal.evaluate`, its tables, the internal report, `shoal tune` and its list of measures to rank by have it then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shoal.errors import OptionError
from shoal.evaluation import information_loss as loss

if TYPE_CHECKING:
    from shoal.evaluation.columns import Column

# the columns that are compared, and whether their rows are in the same order: a number, or None where there is none
Compute = Callable[[Sequence["Column"], bool], "float | None"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One number about what was lost, or about the risk that is left.

    Attributes:
        title: its name in a table.
        good: which direction is good; empty for what only explains another measure.
        meaning: in a few words.
        ranked: what a comparison of settings calls it; empty where settings are not ranked by it.
        of_rows: it needs rows that belong to somebody.
        kept: a comparison of settings keeps it; those that settings are ranked by are kept anyway.
        most: its largest value.
        compute: of the whole table; None for those that `shoal.evaluation.measure` computes together.
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


def _of_numbers(compute: Callable[[loss.Matrix, loss.Matrix], float | None]) -> Compute:
    return lambda columns, matched: compute(*loss.numbers(columns))


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
            compute=_of_numbers(loss.il1s),
        ),
        Measure(
            "il1",
            "utility",
            "IL1",
            "low",
            "sum of |errors| in percent of values",
            of_rows=True,
            compute=_of_numbers(loss.il1),
        ),
        Measure(
            "eigen",
            "utility",
            "eigenvalues",
            "low",
            "relative change, of correlations",
            compute=_of_numbers(loss.eigenvalue_change),
        ),
        Measure(
            "il_correl",
            "utility",
            "IL_correl",
            "low",
            "change of inverse correlations",
            most=1.0,
            compute=_of_numbers(loss.correlation_loss),
        ),
        Measure(
            "il_variables",
            "utility",
            "IL_variables",
            "low",
            "mean loss of a cell, 0 to 1",
            of_rows=True,
            most=1.0,
            compute=lambda columns, matched: loss.variable_loss(columns),
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
            compute=_of_numbers(loss.interval_disclosure),
        ),
        Measure("actual_k", "risk", "actual k", "high", "smallest group of identical rows"),
        Measure("unique_share", "risk", "unique rows", "low", "share of rows unlike any other"),
    )
}
MEASURES: Mapping[str, Measure] = _MEASURES
# what is learned from a release is measured apart, and only where there is a target
LEARNING = "learning"
_LEARNING_WORDS = "1 - F-measure of a random forest"


def ranked_by() -> dict[str, str]:
    """What settings can be ranked by, in words."""
    found = {name: measure.ranked for name, measure in MEASURES.items() if measure.ranked}
    return {**found, LEARNING: _LEARNING_WORDS}


def kept() -> tuple[Measure, ...]:
    """What a comparison of settings keeps of an evaluation."""
    return tuple(measure for measure in MEASURES.values() if measure.ranked or measure.kept)


def needs_rows(name: str) -> bool:
    """Whether a measure needs rows that belong to somebody."""
    return name in MEASURES and MEASURES[name].of_rows


def most(name: str) -> float:
    """The largest value that a measure can have."""
    return 1.0 if name == LEARNING else MEASURES[name].most


def computed(
    part: Literal["utility", "risk"], columns: Sequence[Column], matched: bool
) -> dict[str, float | None]:
    """The measures that bring a function of their own."""
    return {
        name: measure.compute(columns, matched) if matched or not measure.of_rows else None
        for name, measure in MEASURES.items()
        if measure.part == part and measure.compute is not None
    }


def register_measure(measure: Measure) -> None:
    """Add a measure from outside the package.

    Raises:
        OptionError: its name is taken, or it has no function that computes it.
    """
    if measure.name in MEASURES:
        raise OptionError("there-measure-already", measure=measure.name)
    if measure.compute is None:
        raise OptionError("measure-needs-function-computes-compute", measure=measure.name)
    _MEASURES[measure.name] = measure
