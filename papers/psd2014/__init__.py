"""PSD-2014 recomputed: Adult comes in; its figure as series, its lemmas and statements with verdicts leave."""

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

_ABOUT = (
    "Sánchez, Domingo-Ferrer and Martínez, *Improving the utility of differential privacy via univariate "
    "microaggregation*, PSD 2014: noise on the means of k consecutive values, attribute by attribute, here "
    "`ranking-dp` with `split=equal` and `remainder=last`. Its data are AGE and HOURS-PER-WEEK of Adult (training "
    "part, complete records), domain 0 to 1.5 times the maximum. Its figure is not in the text at hand; a throw-away "
    "prototype written without this library gives numbers to compare with, and the series are drawn anew."
)


def study(desk: Desk) -> Study:
    """Every number, figure and statement of the paper for which the data is at hand."""
    over_k = curves(desk)
    return Study(
        "PSD-2014: noise after individual ranking",
        _ABOUT,
        [_data(desk), guarantee.section(desk, over_k, linked(desk)), _figure(desk, over_k)],
        _errata(),
        [_series(over_k)],
    )


def _data(desk: Desk) -> Section:
    file = desk.file("adult.csv")
    lattices = settled(setting(file, "laplace", epsilon="1"))[0].described.lattices
    return Section(
        "Data",
        "Rows with a missing value in any column are left out, as in the paper. How many rows remain, and domains of "
        "1.5 times the maximum, depend on the data: a release made so is tainted.",
        [
            Number("section 5", "complete records of Adult", "30162", rows(file)),
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
        "Figure 1: log10(SSE/m) over k",
        f"Numbers: means of {runs} releases, unrounded values; the prototype's number of runs is not recorded and "
        f"taken to be the paper's, {PAPER_RUNS}. Curves: expected errors in closed form, with clipping.",
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
    return [
        Erratum(
            "section 5",
            "ε = 0.1 with k = 100 loses about as much as plain noise at ε = 1",
            "as plain noise at ε = 10",
            "7.49 and 7.49 above; the noise depends on k·ε only",
        ),
        Erratum(
            "Lemma 4",
            "the output for m attributes is mε-differentially private",
            "given the partition; or for columns that are not linked, each shuffled by itself; or for one attribute in "
            "shuffled rows",
            "`tests/papers/test_psd2014.py`; `tests/auditing/test_audit.py`, row ranking-dp, linked",
        ),
        Erratum(
            "section 2, Laplace density",
            "ε/(2Δ)·exp(-|x|/Δ), which integrates to ε",
            "ε/(2Δ)·exp(-ε|x|/Δ)",
            "`tests/papers/test_psd2014.py`",
        ),
        Erratum(
            "section 4, before Lemma 1",
            "a total order with the triangle inequality d(r1, r2) + d(r2, r3) ≥ d(r1, r3)",
            "distances that add up along the order, d(r1, r2) + d(r2, r3) = d(r1, r3): the inequality holds for every "
            "distance, and does not suffice",
            "the claim on it above; `tests/papers/test_psd2014.py`",
        ),
        Erratum(
            "Lemma 1",
            "one group may be larger, without saying which",
            "its rank must be fixed in advance; univariate MDAV does not do that",
            "the table of small worlds above; `tests/test_sensitivity.py`",
        ),
        Erratum(
            "proof of Lemma 1",
            "the centroid increases by Δ/k; (x' - x)/k = Δ/k",
            "by (x' - x)/k, which is at most Δ/k",
            "the statement of the lemma, |x' - x| ≤ Δ",
        ),
        Erratum(
            "proof of Lemma 4; section 5",
            "sequential composition is needed because attributes are correlated",
            "because one record has a value in every attribute, correlated or not",
            "`tests/test_sensitivity.py`, attributes together cost at most ε, and reach it",
        ),
        Erratum(
            "section 5",
            "domains of 1.5 times the maximum, incomplete records removed",
            "both look at the data; public bounds, and a rule for missing values that keeps n, are needed",
            "the statement of such a release names the domains as data-dependent",
        ),
    ]


__all__ = ["study"]
