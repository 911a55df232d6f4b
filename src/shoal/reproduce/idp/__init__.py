"""The experiments of the iDP paper, beside its statements: Census and Wine come in, docs/idp.md leaves.

python -m benchmarks.idp [--quick] [--out docs/idp.md]
"""

from __future__ import annotations

import argparse
import datetime
import math
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.machine import machine_words as machine
from shoal.reproduce.idp.claims import Claim, learning_claims, sse_claims
from shoal.reproduce.idp.measure import (
    CENSUS,
    CORRECTED,
    EPSILONS,
    METHODS,
    NARROW,
    PRINTED,
    WIDE,
    WINE,
    Cell,
    DataSet,
    Errors,
    Scores,
    bounds,
    error_cells,
    errors,
    expected,
    learning_cells,
    scores,
)
from shoal.reproduce.plots import COLOURS, Curve, Panel, panels

PAGE = Path(__file__).parents[1] / "docs" / "idp.md"
# log10 mean SSE of a throw-away prototype: (method, k) -> ε -> as printed and, where noted, corrected
PROTOTYPE: Mapping[tuple[str, int], Mapping[float, tuple[float, float | None]]] = {
    ("laplace", 0): {0.01: (-6.24, 0.77), 0.1: (-6.25, None), 1.0: (-6.27, None)},
    ("ranking-dp", 100): {0.01: (-6.31, 0.72), 0.1: (-6.54, None), 1.0: (-7.63, None)},
    ("idp-ls", 100): {0.01: (-6.28, 0.77), 0.1: (-6.69, None), 1.0: (-7.82, None)},
    ("idp-cbls", 15): {0.01: (-6.88, -0.08), 0.1: (-7.96, -1.03), 1.0: (-9.05, -1.90)},
}
PROTOTYPE_F = {"<=30000": 0.933, ">30000": 0.955}


@dataclass(frozen=True)
class Effort:
    """How much to compute."""

    runs: int
    learning_runs: Mapping[str, int]
    trees: int
    sets: tuple[DataSet, ...]


FULL = Effort(20, {"Census": 10, "Wine": 5}, 100, (CENSUS, WINE))
QUICK = Effort(
    2, {"Census": 2, "Wine": 1}, 10, (replace(CENSUS, ks=(3, 15, 50, 100)), replace(WINE, ks=(15, 400)))
)


@dataclass(frozen=True)
class Measured:
    """Everything about one data set."""

    data: DataSet
    errors: Errors
    expected: Mapping[Cell, tuple[float, float]]
    scores: Scores
    bounds: Mapping[str, Any]

    def level(self, cell: Cell, metric: int) -> float:
        """log10 of the mean SSE over the runs."""
        return math.log10(self.errors[cell][:, metric].mean())

    def expected_level(self, cell: Cell, metric: int) -> float:
        return math.log10(self.expected[cell][metric])

    @property
    def wide_k(self) -> int:
        """The size at which the wide domain was learned from."""
        return next(cell.k for cell in self.scores if cell.alpha == WIDE)


def measure(data: DataSet, effort: Effort) -> Measured:
    table = data.table()
    runs = effort.learning_runs[data.name]
    wide_k = 50 if 50 in data.ks else data.ks[1]
    values = data.matrix(table)
    found_errors, closed = {}, {}
    for cell in error_cells(data.ks):
        found_errors[cell] = errors(data, table, cell, effort.runs)
        closed[cell] = expected(values, cell)
    _say(f"{data.name}: errors")
    upper = bounds(data, table, runs, effort.trees)
    found_scores = {}
    for cell in learning_cells(data.ks, wide_k):
        found_scores[cell] = scores(data, table, cell, runs, effort.trees)
    _say(f"{data.name}: forests")
    return Measured(data, found_errors, closed, found_scores, upper)


def error_table(found: Measured, epsilon: float) -> Iterator[str]:
    """log10 mean SSE by k, corrected and as printed, with the wide domain behind."""
    yield (
        "| k | "
        + " | ".join(METHODS.values())
        + " | "
        + " | ".join(f"{n}, α = 3" for n in METHODS.values())
        + " |"
    )
    yield "| ---: |" + " ---: |" * (2 * len(METHODS))
    for k in found.data.ks:
        cells = [
            Cell(method, alpha, epsilon, 0 if method == "laplace" else k)
            for alpha in (NARROW, WIDE)
            for method in METHODS
        ]
        shown = (f"{found.level(c, CORRECTED):.2f} ({found.level(c, PRINTED):.2f})" for c in cells)
        yield f"| {k} | " + " | ".join(shown) + " |"


def prototype_table(found: Measured) -> Iterator[str]:
    """Census at the settings that were known before, with the closed form as arbiter."""
    yield (
        "| ε | method | k | as printed: mean of runs | expected | prototype | sd of one run | corrected: mean of runs "
        "| expected | prototype |"
    )
    yield "| ---: | --- |" + " ---: |" * 8
    for epsilon in EPSILONS[:3]:
        for (method, k), known in PROTOTYPE.items():
            cell = Cell(method, NARROW, epsilon, k)
            printed, corrected = known[epsilon]
            yield (
                f"| {epsilon:g} | {METHODS[method]} | {k or ''} | {found.level(cell, PRINTED):.3f} "
                f"| {found.expected_level(cell, PRINTED):.3f} | {printed:.2f} | {one_run(found, cell):.2f} "
                f"| {found.level(cell, CORRECTED):.3f} | {found.expected_level(cell, CORRECTED):.3f} "
                f"| {'' if corrected is None else f'{corrected:.2f}'} |"
            )


def one_run(found: Measured, cell: Cell) -> float:
    """Standard deviation of log10 of the mean SSE as printed, from run to run."""
    return float(np.log10(found.errors[cell][:, PRINTED]).std(ddof=1))


def prototype_words(found: Measured) -> str:
    """Which known figures do not come out, and by how much."""
    off = []
    for epsilon in (0.1, 1.0):
        for (method, k), known in PROTOTYPE.items():
            cell = Cell(method, NARROW, epsilon, k)
            gap = known[epsilon][0] - found.expected_level(cell, PRINTED)
            if abs(gap) > 0.05:
                spread = abs(gap) / one_run(found, cell)
                off.append(f"{METHODS[method]} at ε = {epsilon:g} by {gap:+.2f}, {spread:.1f} sd of one run")
    if not off:
        return "At ε = 0.1 and 1 every figure of the prototype is within 0.05 of the expected one."
    return (
        "At ε = 0.1 and 1 the prototype is within 0.05 of the expected value except for "
        + "; ".join(off)
        + ". How many runs the prototype averaged is not known; figures so far off are usual for few."
    )


def agreement(found: Measured) -> str:
    """How far the means of runs are from the closed form."""
    gaps = {
        (cell, metric): abs(found.level(cell, metric) - found.expected_level(cell, metric))
        for cell in found.errors
        for metric in (CORRECTED, PRINTED)
    }
    cell, _ = max(gaps, key=gaps.__getitem__)
    return (
        f"Over all {len(found.errors)} settings and both metrics, the tables and the expectation in closed form differ "
        f"by {np.median(list(gaps.values())):.3f} in the median and {max(gaps.values()):.2f} at most "
        f"({METHODS[cell.method]}, ε = {cell.epsilon:g}, k = {cell.k}, α = {cell.alpha:g}): a few clusters of large "
        "spread carry the error of iDP-CBLS, which makes averages of few runs uncertain."
    )


def f_table(found: Measured) -> Iterator[str]:
    """F-measures of both classes by ε, method and k, with half the length of the interval."""
    names = list(found.bounds["original"]["f"])
    yield f"| ε | trained on | {' | '.join(f'k = {k}' for k in found.data.ks)} | α = 3 |"
    yield "| ---: | --- |" + " ---: |" * (len(found.data.ks) + 1)
    for label in ("original", "majority"):
        part = found.bounds[label]
        words = {"original": "the original", "majority": "the majority class"}[label]
        shown = " / ".join(f"{_f(part['f'][name])}{_half(part['f_interval'][name])}" for name in names)
        yield f"| | {words} | {shown} |" + " |" * len(found.data.ks)
    for epsilon in EPSILONS:
        for method in ("idp-ls", "idp-cbls"):
            cells = [Cell(method, NARROW, epsilon, k) for k in found.data.ks]
            cells.append(Cell(method, WIDE, epsilon, found.wide_k))
            shown = (
                " / ".join(
                    f"{_f(found.scores[c]['f'][n])}{_half(found.scores[c]['f_interval'][n])}" for n in names
                )
                for c in cells
            )
            yield f"| {epsilon:g} | {METHODS[method]} | " + " | ".join(shown) + " |"


def _f(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _half(interval: list[float] | None) -> str:
    return "" if interval is None else f" ± {(interval[1] - interval[0]) / 2:.3f}"


def claim_table(claims: Iterator[Claim]) -> Iterator[str]:
    yield "| the paper | measured | verdict |"
    yield "| --- | --- | --- |"
    for claim in claims:
        yield f"| {claim.said} | {claim.measured} | {claim.verdict} |"


def figures(found: Measured) -> Iterator[tuple[str, str]]:
    """Names and pictures: errors by ε, then F-measures by class."""
    ks = found.data.ks
    name = found.data.name.lower()
    shown = []
    for epsilon in EPSILONS:
        curves = []
        for colour, (method, title) in zip(COLOURS, METHODS.items(), strict=False):
            for alpha in (NARROW, WIDE):
                sizes = (0,) if method == "laplace" else ks
                values = [found.expected_level(Cell(method, alpha, epsilon, k), CORRECTED) for k in sizes]
                curves.append(Curve(f"{title}, α = {alpha:g}", sizes, values, colour, alpha == WIDE))
        shown.append(Panel(f"ε = {epsilon:g}", curves))
    yield f"idp-{name}-sse", panels(f"{found.data.name}: expected log10 mean SSE, corrected metric", shown)
    classes = list(found.bounds["original"]["f"])
    shown = []
    for label, words in zip(classes, found.data.class_names, strict=True):
        curves = [Curve("original", (0,), (found.bounds["original"]["f"][label],), COLOURS[4], True)]
        for colour, epsilon in zip(COLOURS, EPSILONS, strict=False):
            for method in ("idp-ls", "idp-cbls"):
                values = [found.scores[Cell(method, NARROW, epsilon, k)]["f"][label] or 0.0 for k in ks]
                curves.append(
                    Curve(f"{METHODS[method]}, ε = {epsilon:g}", ks, values, colour, method == "idp-ls")
                )
        shown.append(Panel(words, curves))
    yield f"idp-{name}-f", panels(f"{found.data.name}: F-measure of a random forest", shown, common=False)


def section(found: Measured, effort: Effort) -> Iterator[str]:
    data = found.data
    yield from (f"## {data.name}", "")
    yield from (
        f"{len(data.columns)} attributes, {found.bounds['rows_used']['original']:,} records. log10 mean SSE in the "
        "corrected metric, in parentheses as the paper prints it.",
        "",
        f"![log10 mean SSE over k](figures/idp-{data.name.lower()}-sse.svg)",
        "",
    )
    for epsilon in EPSILONS:
        yield from (f"ε = {epsilon:g}:", "", *error_table(found, epsilon), "")
    levels = {cell: found.expected_level(cell, PRINTED) for cell in found.expected}
    yield from (
        agreement(found),
        "",
        f"### Statements on the error, {data.name}",
        "",
        "ε up to 1, the metric as printed, expectations in closed form, so that no verdict depends on the runs.",
        "",
        *claim_table(sse_claims(data, levels)),
        "",
    )
    yield from (
        f"### Random forest, {data.name}",
        "",
        f"Target `{data.target}`, trained on the first 66% of the released rows with their true classes, tested on "
        f"the other original rows; {effort.trees} trees, {effort.learning_runs[data.name]} runs, each with a release "
        f"of its own; ± half a 95% interval over the runs. F-measures of {' / '.join(data.class_names)}; "
        f"α = 1.5, in the last column α = 3 with k = {found.wide_k}.",
        "",
        f"![F-measures over k](figures/idp-{data.name.lower()}-f.svg)",
        "",
        *f_table(found),
        "",
        f"### Statements on learning, {data.name}",
        "",
        "A loss is 1 - F / F of the original, averaged over both classes, ± half its interval; *unclear* means that "
        "the runs cannot tell. The best k is picked on the tested rows, which flatters every method alike. At small k "
        "the noise of iDP-CBLS is scaled to the spread of a few neighbouring values, however wide the domain: a good "
        "F-measure there says little about protection.",
        "",
        *claim_table(learning_claims(data, found.scores, found.bounds)),
        "",
    )


def targets(census: Measured) -> Iterator[str]:
    """The known figures of Census beside ours."""
    yield from ("## Census, beside a prototype", "")
    yield from (
        "The paper draws its results and prints no numbers. The numbers below were known from a throw-away prototype. "
        "*Expected* is the closed form, what infinitely many runs would average; *sd of one run* is the standard "
        f"deviation of log10 from run to run. {prototype_words(census)}",
        "",
        *prototype_table(census),
        "",
        "| class | F of the original | prototype | iDP-CBLS, ε = 1, k = 15 | difference | difference over all k |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    )
    for name, known in PROTOTYPE_F.items():
        own = census.bounds["original"]["f"][name]
        f = {k: census.scores[Cell("idp-cbls", NARROW, 1.0, k)]["f"][name] for k in census.data.ks}
        ends = f"{min(f.values()) / own - 1:+.2%} to {max(f.values()) / own - 1:+.2%}"
        yield f"| {name} | {own:.3f} | {known:.3f} | {f[15]:.3f} | {f[15] / own - 1:+.2%} | {ends} |"
    yield ""


def page(found: list[Measured], effort: Effort, command: str) -> str:
    lines = [
        "# Individual DP, measured",
        "",
        f"Written by `{command}` on {datetime.date.today()}, {machine()}.",
        "",
        "The experiments of the iDP paper: plain Laplace noise (DP, `laplace`), univariate microaggregation with "
        "global sensitivity (DP-UM, `ranking-dp`), with local sensitivity (iDP-LS, `idp-ls`) and with cluster-based "
        "local sensitivity (iDP-CBLS, `idp-cbls`). Domains are 0 to α times the maximum, taken from the data as in the "
        "paper, so nothing here is for publication. Results are clipped to the domain. "
        f"Errors are averaged over {effort.runs} runs with seeds 0, 1, 2, ... before taking the logarithm. The four "
        "methods claim different things (see [Claims](claims.md)): less noise under individual DP given the partition "
        "is no better differential privacy.",
        "",
        "The paper's equation (5) divides by the variance inside the square, an error of units. The corrected metric "
        "divides by the standard deviation: mean over the records of (1/m²) Σ (d_j/σ_j)².",
        "",
        *targets(found[0]),
    ]
    for item in found:
        lines += section(item, effort)
    return "\n".join(lines)


def _say(text: str) -> None:
    print(f"{time.process_time():.0f} s of processor time: {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer settings and runs, under a minute")
    parser.add_argument("--out", type=Path, default=PAGE)
    arguments = parser.parse_args()
    effort = QUICK if arguments.quick else FULL
    found = [measure(data, effort) for data in effort.sets]
    command = "python -m benchmarks.idp" + (" --quick" if arguments.quick else "")
    arguments.out.write_text(page(found, effort, command), "utf-8")
    folder = arguments.out.parent / "figures"
    folder.mkdir(exist_ok=True)
    for item in found:
        for name, picture in figures(item):
            (folder / f"{name}.svg").write_text(picture, "utf-8")
    print(f"Written to {arguments.out} and {folder}.")


if __name__ == "__main__":
    main()
