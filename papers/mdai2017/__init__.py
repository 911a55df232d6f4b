"""Reproduction of MDAI-2017 on Census: its figures as series, its propositions and claims with verdicts."""

from __future__ import annotations

import math

from papers.cluster_errors import standard_error
from papers.desk import Desk
from papers.linked_columns import linked
from papers.mdai2017 import facts, outlook, protection
from papers.mdai2017.comparisons import baseline_claims, figure_claims
from papers.mdai2017.curves import (
    BASELINE_EPSILON,
    EPSILONS,
    INSENSITIVE,
    IR_1,
    IR_2,
    IR_OURS,
    MDAV,
    PLAIN_2,
    PUBLISHED,
    Curves,
    curves,
    figure_expectations,
    figure_releases,
    figure_runs,
)
from papers.mdai2017.printed import NOISE_FACTORS, PROTOTYPE_RUNS, REFERENCE_LOSS, SAE_FIGURES, SSE_FIGURES
from papers.plots import COLOURS, Curve, Panel, panels
from papers.study import Erratum, Figure, Number, Section, Series, Study
from papers.texts import numbering, printed_errors, wording

number = numbering("mdai2017/texts")

heading = wording("mdai2017/texts")

_TEAL, _RED, _VIOLET, _GREEN, _GREY = COLOURS


def study(desk: Desk) -> Study:
    """Every number, figure and statement of the paper for which the data is at hand."""
    over_k = curves(desk)
    pairs = linked(desk)
    return Study(
        *heading("about"),
        [
            _foundations(desk),
            protection.section(desk, over_k, pairs),
            _figures(desk, over_k),
            _baseline(over_k),
            outlook.section(desk, over_k),
        ],
        _errata(),
        [_series(over_k)],
    )


def _foundations(desk: Desk) -> Section:
    table = desk.table("census.csv")
    file = desk.file("census.csv")
    losses = facts.information_losses(desk)
    readings = facts.univariate_mdav_errors(desk)
    return Section(
        *heading("data-mdav-noise"),
        [
            number("records-census", table.num_rows),
            number("numerical-attributes-census", table.num_columns),
            *(
                Number(
                    "literature, MDAV",
                    f"100·SSE/SST, {name.removesuffix('.csv')}, k = {k}",
                    text,
                    losses[name, k],
                )
                for (name, k), text in REFERENCE_LOSS.items()
            ),
            *(
                Number(
                    "prototype, Census-4",
                    f"Σ W²/ε² at ε = 1, split {split}",
                    text,
                    facts.noise_factor(file, split),
                )
                for split, text in NOISE_FACTORS.items()
            ),
        ],
        "IR_MDAV can be read as MDAV on each attribute, whose larger last cluster sits where the data say, or with "
        "that cluster at a fixed rank (`remainder=middle`, used here, since only then a single attribute is "
        "differentially private). SSE without noise: "
        + "; ".join(f"k = {k}: {one:.4g} and {other:.4g}" for k, (one, other) in readings.items())
        + ".",
    )


def _figures(desk: Desk, over_k: Curves) -> Section:
    runs = figure_runs(desk.quick)
    releases = figure_releases(desk)
    numbers = [
        Number(
            "prototype, Figure 3" if what == "sse" else "prototype, Figure 4",
            f"{what.upper()}, {method}, split {split}, ε = {epsilon}, k = {k}",
            text,
            found[what],
            standard_error(found[f"{what}_sd"], runs, PROTOTYPE_RUNS),
        )
        for what, printed in (("sse", SSE_FIGURES), ("sae", SAE_FIGURES))
        for (method, split, epsilon, k), text in printed.items()
        for found in [releases[method, split, epsilon, k]]
    ]
    expectations = figure_expectations(desk)
    apart = max(
        abs(found[what] - expectations[case][what]) / standard_error(found[f"{what}_sd"], runs)
        for case, found in releases.items()
        for what in ("sse", "sae")
    )
    return Section(
        *heading("figures-3-4-errors", runs, PROTOTYPE_RUNS, apart),
        numbers,
        figures=[_drawing(over_k, what) for what in ("sse", "sae")],
        claims=figure_claims(over_k, desk.file("census.csv")),
    )


def _drawing(over_k: Curves, what: str) -> Figure:
    number, words = ("3", "squared") if what == "sse" else ("4", "absolute")
    shown = []
    for epsilon in EPSILONS:
        drawn = [
            *((name, colour, False, over_k.over_k(name, epsilon, what)) for name, colour in _STYLES.items()),
            ("MDAV alone", _TEAL, True, over_k.over_k(MDAV, epsilon, f"{what}_alone")),
            ("IR_MDAV alone", _VIOLET, True, over_k.over_k(IR_1, epsilon, f"{what}_alone")),
            ("INS+DP, ε = 10", _GREY, True, over_k.over_k(INSENSITIVE, BASELINE_EPSILON, what)),
        ]
        lines = [
            Curve(name, over_k.ks, [math.log10(value) for value in values], colour, dashed)
            for name, colour, dashed, values in drawn
        ]
        plain = math.log10(over_k.plain[PLAIN_2, epsilon][what])
        lines.append(Curve("plain, proportional", (over_k.ks[0],), (plain,), _GREY))
        shown.append(Panel(f"ε = {epsilon}: log10 {what.upper()}", lines))
    return Figure(
        f"figure{number}",
        f"Figure {number}: expected sum of {words} errors over k, Census-4, ε = 1 and ε = 2",
        panels(f"MDAI-2017, Figure {number}", shown),
    )


_STYLES = {MDAV: _TEAL, IR_1: _RED, IR_2: _VIOLET, IR_OURS: _GREEN}


def _baseline(over_k: Curves) -> Section:
    lines = [
        f"| k | {IR_1}, ε = 1 | {IR_2}, ε = 1 | {MDAV}, ε = 1 | {INSENSITIVE}, ε = 1 | {INSENSITIVE}, ε = 10 | "
        f"{PUBLISHED}, ε = 10 |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for k in over_k.ks:
        cells = [
            *(over_k.points[name, 1, k]["sse"] for name in (IR_1, IR_2, MDAV, INSENSITIVE)),
            over_k.points[INSENSITIVE, BASELINE_EPSILON, k]["sse"],
            over_k.published[k],
        ]
        lines.append(f"| {k} | " + " | ".join(f"{cell:.3g}" for cell in cells) + " |")
    return Section(
        *heading("insensitive-baseline-epsilon-10", INSENSITIVE, PUBLISHED),
        more="\n".join(lines),
        claims=baseline_claims(over_k),
    )


def _series(over_k: Curves) -> Series:
    rows: list[tuple[object, ...]] = [
        (name, epsilon, k, *(f"{point[what]:.6g}" for what in ("sse", "sae", "sse_alone", "sae_alone")))
        for (name, epsilon, k), point in over_k.points.items()
    ]
    rows += [
        (name, epsilon, 1, f"{point['sse']:.6g}", f"{point['sae']:.6g}", 0, 0)
        for (name, epsilon), point in over_k.plain.items()
    ]
    rows += [
        (PUBLISHED, BASELINE_EPSILON, k, f"{sse:.6g}", "", "", "") for k, sse in over_k.published.items()
    ]
    return Series("curves", ("method", "epsilon", "k", "sse", "sae", "sse_alone", "sae_alone"), rows)


def _errata() -> list[Erratum]:
    return printed_errors("mdai2017/texts")


__all__ = ["study"]
