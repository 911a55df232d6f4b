"""The markdown tables, figures and CSV rows of the iDP paper's reproduction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from papers.idp.expectation import CORRECTED, PRINTED, mean_squares, shares
from papers.idp.results import Measured
from papers.idp.settings import CLUSTERED, EPSILONS, LARGER, METHODS, NARROW, NOISELESS, WIDE, Cell
from papers.idp.verdicts import standard_error
from papers.plots import COLOURS, Curve, Panel, panels
from papers.study import Figure, Series


def error_table(found: Measured) -> str:
    """log10 mean SSE as printed (corrected) by ε, method and domain over k."""
    ks = found.data.ks
    lines = [
        f"| ε | method | α | {' | '.join(f'k = {k}' for k in ks)} |",
        "| ---: | --- | ---: |" + " ---: |" * len(ks),
    ]
    for epsilon in EPSILONS:
        for method in METHODS:
            for alpha in (NARROW, WIDE):
                sizes = ks if method in CLUSTERED else (0,)
                shown = [_levels(found, Cell(method, alpha, epsilon, k)) for k in sizes]
                rest = [""] * (len(ks) - len(shown))
                lines.append(
                    f"| {epsilon:g} | {METHODS[method]} | {alpha:g} | {' | '.join([*shown, *rest])} |"
                )
    return "\n".join(lines)


def _levels(found: Measured, cell: Cell) -> str:
    return f"{found.level(cell, PRINTED):.2f} ({found.level(cell, CORRECTED):.2f})"


def f_table(found: Measured) -> str:
    """F-measures of both classes by training data over k, with standard errors."""
    ks = found.data.learning_ks
    lines = [f"| trained on | {' | '.join(f'k = {k}' for k in ks)} |", "| --- |" + " ---: |" * len(ks)]
    for label, words in (("original", "the original"), ("majority", "the majority class")):
        lines.append(f"| {words} | {_f(found, found.bounds[label])} |" + " |" * (len(ks) - 1))
    for epsilon in (*EPSILONS, LARGER[0]):
        shown = _f(found, found.scores[Cell("laplace", NARROW, epsilon, 0)])
        lines.append(f"| DP, ε = {epsilon:g} | {shown} |" + " |" * (len(ks) - 1))
    rows = [(method, NARROW, epsilon) for epsilon in EPSILONS for method in ("idp-ls", "idp-cbls")]
    rows += [("idp-ls", WIDE, epsilon) for epsilon in EPSILONS[1:]] + [("idp-cbls", NARROW, NOISELESS)]
    for method, alpha, epsilon in rows:
        cells = [Cell(method, alpha, epsilon, k) for k in ks]
        shown = " | ".join(_f(found, found.scores[c]) if c in found.scores else "" for c in cells)
        budget = "no noise" if epsilon == NOISELESS else f"ε = {epsilon:g}"
        domain = f", α = {alpha:g}" if alpha != NARROW else ""
        lines.append(f"| {METHODS[method]}, {budget}{domain} | {shown} |")
    return "\n".join(lines)


def _f(found: Measured, scores: object) -> str:
    part: dict[str, dict[str, float | None]] = scores  # type: ignore[assignment]
    words = []
    for name in part["f"]:
        value = part["f"][name]
        error = standard_error(part, name, found.effort.learning_runs)
        words.append("-" if value is None else f"{value:.3f} ± {error:.3f}")
    return " / ".join(words)


def cluster_table(sets: Sequence[Measured]) -> str:
    """By table and k: what noise the clusters get."""
    lines = [
        "| | k | clusters | without noise | values released as they are | iDP-LS / DP-UM | iDP-CBLS / DP-UM "
        "|",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for found in sets:
        for k, facts in found.clusters.items():
            without, number = found.without_noise[k]
            lines.append(
                f"| {found.data.name} | {k} | {number:,} | {without:,} | {facts['values_exact']:.1%} "
                f"| {facts['local_median']:.2f} | {facts['inner_median']:.4f} |"
            )
    return "\n".join(lines)


def carried(found: Measured) -> str:
    """Which attribute decides the metric as printed, in words."""
    cell = Cell("laplace", NARROW, 1.0, 0)
    corrected, printed = shares(found.values, mean_squares(found.values, cell))
    place = int(np.argmax(printed))
    return (
        f"{found.data.columns[place]} alone makes {printed[place] / printed.sum():.1%} of the mean SSE of DP "
        "at ε = 1 as "
        f"printed, and {corrected[place] / corrected.sum():.1%} of it corrected"
    )


def agreement(found: Measured) -> str:
    """How far the means of runs are from the closed form, in words."""
    cells = [cell for cell in found.errors if cell in found.expected]
    gaps = {
        (cell, metric): abs(found.level(cell, metric) - found.expected_level(cell, metric))
        for cell in cells
        for metric in (CORRECTED, PRINTED)
    }
    cell, _ = max(gaps, key=gaps.__getitem__)
    return (
        f"Over all {len(cells)} settings and both metrics, the means of runs differ from the expectation in "
        "closed form by "
        f"{np.median(list(gaps.values())):.3f} in the median and {max(gaps.values()):.2f} at most "
        f"({METHODS[cell.method]}, "
        f"ε = {cell.epsilon:g}, k = {cell.k}, α = {cell.alpha:g}): a few clusters of large spread carry the "
        "error of "
        "iDP-CBLS, which makes averages of few runs uncertain. Verdicts on errors follow the closed form."
    )


def error_figure(found: Measured, number: int) -> Figure:
    """Figure 3 or 4."""
    shown = []
    for epsilon in EPSILONS:
        curves = []
        for colour, (method, title) in zip(COLOURS, METHODS.items(), strict=False):
            for alpha in (NARROW, WIDE):
                sizes = found.data.ks if method in CLUSTERED else (0,)
                values = [found.expected_level(Cell(method, alpha, epsilon, k), PRINTED) for k in sizes]
                curves.append(Curve(f"{title}, α = {alpha:g}", sizes, values, colour, alpha == WIDE))
        shown.append(Panel(f"ε = {epsilon:g}", curves))
    title = f"{found.data.name}: log10 mean SSE as printed, in expectation"
    return Figure(f"figure-{number}", f"Figure {number}. {title}", panels(title, shown, columns=3))


def f_figure(found: Measured, number: int) -> Figure:
    """Figure 5 or 6."""
    ks = found.data.learning_ks
    classes = list(found.bounds["original"]["f"])
    shown = []
    for label, words in zip(classes, found.data.class_names, strict=True):
        curves = [Curve("original", (0,), (found.bounds["original"]["f"][label],), COLOURS[4], True)]
        for colour, epsilon in zip(COLOURS, EPSILONS, strict=False):
            for method in ("idp-ls", "idp-cbls"):
                values = [found.scores[Cell(method, NARROW, epsilon, k)]["f"][label] or 0.0 for k in ks]
                name = f"{METHODS[method]}, ε = {epsilon:g}"
                curves.append(Curve(name, ks, values, colour, method == "idp-ls"))
        shown.append(Panel(words, curves))
    title = f"{found.data.name}: F-measure of a random forest, α = 1.5"
    return Figure(f"figure-{number}", f"Figure {number}. {title}", panels(title, shown, common=False))


def series(found: Measured) -> Iterator[Series]:
    """Everything measured about a table, setting by setting."""
    name = found.data.name.lower()
    yield Series(
        f"{name}-errors",
        (
            "method",
            "partition",
            "alpha",
            "epsilon",
            "k",
            "runs",
            *(
                f"{what}_{metric}"
                for metric in ("printed", "corrected")
                for what in ("log10_mean_sse", "standard_error", "expected")
            ),
        ),
        [_error_row(found, cell) for cell in found.errors],
    )
    classes = list(found.bounds["original"]["f"])
    yield Series(
        f"{name}-forests",
        (
            "method",
            "alpha",
            "epsilon",
            "k",
            "runs",
            *(f"{what} {c}" for c in classes for what in ("F", "standard error")),
        ),
        [
            ("original", "", "", "", *_f_row(found, found.bounds["original"])),
            ("majority", "", "", "", *_f_row(found, found.bounds["majority"])),
            *(
                (cell.method, cell.alpha, cell.epsilon, cell.k, *_f_row(found, scores))
                for cell, scores in found.scores.items()
            ),
        ],
    )
    yield Series(
        f"{name}-clusters",
        ("k", *next(iter(found.clusters.values()))),
        [(k, *facts.values()) for k, facts in found.clusters.items()],
    )


def _error_row(found: Measured, cell: Cell) -> tuple[object, ...]:
    shown: list[object] = [
        cell.method,
        cell.partition,
        cell.alpha,
        cell.epsilon,
        cell.k,
        len(found.errors[cell]),
    ]
    for metric in (PRINTED, CORRECTED):
        shown += [f"{found.level(cell, metric):.4f}", f"{found.level_error(cell, metric):.4f}"]
        shown.append(f"{found.expected_level(cell, metric):.4f}" if cell in found.expected else "")
    return tuple(shown)


def _f_row(found: Measured, scores: object) -> list[object]:
    part: dict[str, dict[str, float | None]] = scores  # type: ignore[assignment]
    runs = found.effort.learning_runs
    shown: list[object] = [runs]
    for name in part["f"]:
        value = part["f"][name]
        shown += ["" if value is None else f"{value:.4f}", f"{standard_error(part, name, runs):.4f}"]
    return shown
