"""Reproduction of PSD-2014 on Adult: its figure as series, its lemmas and claims with verdicts."""

from __future__ import annotations

import math

from papers.cluster_errors import expected, settled, standard_error
from papers.desk import Desk
from papers.linked_columns import linked
from papers.plots import COLOURS, Curve, Panel, panels
from papers.psd2014 import guarantee
from papers.psd2014.curves import (
    EPSILONS,
    Curves,
    curves,
    figure_releases,
    figure_runs,
    logarithm,
    rows,
    setting,
)
from papers.psd2014.printed import ALONE, FIGURE, PAPER_RUNS, WIDTHS
from papers.psd2014.readings import readings
from papers.study import Erratum, Figure, Number, Section, Series, Study
from papers.texts import numbering, printed_errors, wording

number = numbering("psd2014/texts")

heading = wording("psd2014/texts")


def study(desk: Desk) -> Study:
    """Every number, figure and statement of the paper for which the data is at hand."""
    over_k = curves(desk)
    return Study(
        *heading("about"),
        [_data(desk), guarantee.section(desk, over_k, linked(desk)), _figure(desk, over_k)],
        _errata(),
        [_series(over_k)],
    )


def _data(desk: Desk) -> Section:
    file = desk.file("adult.csv")
    lattices = settled(setting(file, "laplace", epsilon="1"))[0].described.lattices
    return Section(
        *heading("data"),
        [
            number("complete-records-adult", rows(file)),
            *(
                Number(
                    "prototype, Adult", f"width of the domain of {name}", text, float(lattices[name].width)
                )
                for name, text in WIDTHS.items()
            ),
        ],
    )


def _figure(desk: Desk, over_k: Curves) -> Section:
    file, runs = desk.file("adult.csv"), figure_runs(desk.quick)
    releases = figure_releases(desk)
    numbers = []
    for (epsilon, k), text in FIGURE.items():
        found = releases[epsilon, k]
        # of a logarithm: relative error over ln 10
        error = standard_error(found["sse_sd"], runs, PAPER_RUNS) / found["sse"] / math.log(10)
        words = f"ε = {epsilon}, {'plain noise' if k == 1 else f'k = {k}'}"
        numbers.append(
            Number("prototype, Figure 1", words, text, logarithm(found["sse"]), error, logarithm=True)
        )
    for (k, remainder), text in ALONE.items():
        alone = expected(setting(file, "ranking-dp", epsilon="1", k=k, remainder=remainder))["sse_alone"]
        numbers.append(
            Number(
                "prototype, Figure 1",
                f"individual ranking alone, k = {k}, remainder {remainder}",
                text,
                logarithm(alone),
                logarithm=True,
            )
        )
    return Section(
        *heading("figure-1-log10-sse", runs, PAPER_RUNS),
        numbers,
        figures=[_drawing(over_k)],
        claims=readings(over_k),
    )


def _drawing(over_k: Curves) -> Figure:
    ours, plain = [], []
    for epsilon, colour in zip(EPSILONS, COLOURS, strict=False):
        values = [logarithm(sse) for sse in over_k.over_k(epsilon)]
        ours.append(Curve(f"ε = {epsilon}", over_k.ks, values, colour))
        level = logarithm(over_k.plain[epsilon])
        plain.append(Curve(f"plain, ε = {epsilon}", (over_k.ks[0],), (level,), colour, dashed=True))
    alone = [logarithm(sse) for sse in over_k.over_k("1", "sse_alone")]
    prior = [
        Curve(
            f"ε = {epsilon}",
            over_k.prior_ks,
            [logarithm(over_k.prior[epsilon, k]) for k in over_k.prior_ks],
            colour,
        )
        for epsilon, colour in zip(EPSILONS, COLOURS, strict=False)
    ]
    return Figure(
        "figure1",
        "Figure 1: log10(SSE/m) over k, Adult, AGE and HOURS-PER-WEEK; right: the earlier, insensitive method",
        panels(
            "PSD-2014, Figure 1",
            [
                Panel(
                    "individual ranking with noise",
                    [*ours, Curve("ranking alone", over_k.ks, alone, COLOURS[-1]), *plain],
                ),
                Panel("insensitive microaggregation with noise, strict", [*prior, *plain]),
            ],
        ),
    )


def _series(over_k: Curves) -> Series:
    found: list[tuple[object, ...]] = [
        ("individual ranking", epsilon, k, _text(point["sse"]), _text(point["sse_alone"]))
        for (epsilon, k), point in over_k.points.items()
    ]
    found += [("plain", epsilon, 1, _text(sse), "") for epsilon, sse in over_k.plain.items()]
    found += [
        ("insensitive, strict", epsilon, k, _text(sse), "") for (epsilon, k), sse in over_k.prior.items()
    ]
    return Series("curves", ("method", "epsilon", "k", "log10_sse_over_m", "without_noise"), found)


def _text(sse: float) -> str:
    return f"{logarithm(sse):.4f}"


def _errata() -> list[Erratum]:
    return printed_errors("psd2014/texts")


__all__ = ["study"]
