"""Reproduction of the iDP paper: its propositions, figures and claims next to ours."""

from __future__ import annotations

from papers.desk import Desk
from papers.idp import claims_closing, claims_errors, claims_learning, claims_theory, numbers, tables
from papers.idp.results import Measured, gather
from papers.idp.settings import FULL, QUICK
from papers.study import Erratum, Section, Study
from papers.texts import judging, printed_errors, wording

judge = judging("idp/texts")
heading = wording("idp/texts")


def study(desk: Desk) -> Study:
    """Recompute the paper with the desk's effort."""
    effort = QUICK if desk.quick else FULL
    census, wine = (gather(desk, data, effort) for data in effort.sets)
    return study_of(census, wine)


def study_of(census: Measured, wine: Measured) -> Study:
    """The study that follows from what was measured."""
    sets = (census, wine)
    return Study(
        *heading("about"),
        [
            Section(*heading("propositions-what-rest"), claims=list(claims_theory.claims(census, wine))),
            _without_noise(census, wine),
            _errors(census, 3),
            _errors(wine, 4),
            _learning(census, 5),
            _learning(wine, 6),
            Section("Abstract, introduction, conclusions", claims=list(claims_closing.claims(sets))),
        ],
        list(_errata(census, wine)),
        [series for found in sets for series in tables.series(found)],
    )


def _without_noise(census: Measured, wine: Measured) -> Section:
    return Section(
        *heading("clusters-without-noise"),
        numbers=list(numbers.cluster_numbers(census)),
        more=tables.cluster_table((census, wine)),
    )


def _errors(found: Measured, figure: int) -> Section:
    effort = found.effort
    known = f", {effort.known_runs} at the settings of the prototype" if found.data.name == "Census" else ""
    rows = list(numbers.table_numbers(found))[:1]
    claims = list(claims_errors.claims(found))
    if found.data.name == "Census":
        rows += numbers.error_numbers(found)
    least = float(found.values.min())
    claims.insert(0, judge("all-attributes-non-negative", least >= 0, found.data.name, least))
    return Section(
        *heading(
            "figure-errors",
            figure,
            found.data.name,
            len(found.data.columns),
            effort.runs,
            known,
            tables.carried(found),
        ),
        numbers=rows,
        more=f"{tables.error_table(found)}\n\n{tables.agreement(found)}",
        figures=[tables.error_figure(found, figure)],
        claims=claims,
    )


def _learning(found: Measured, figure: int) -> Section:
    effort, data = found.effort, found.data
    rows = (
        [*claims_learning.printed_losses(found), *numbers.forest_numbers(found)]
        if data.name == "Census"
        else list(numbers.table_numbers(found))[1:]
    )
    left_out = ", ".join(str(k) for k in data.ks if k not in data.learning_ks)
    fewer = f" To save time there are no forests for k = {left_out}." if left_out else ""
    return Section(
        *heading(
            "figure-random-forest",
            figure,
            data.name,
            data.target,
            effort.trees,
            effort.learning_runs,
            " / ".join(data.class_names),
            fewer,
        ),
        numbers=rows,
        more=tables.f_table(found),
        figures=[tables.f_figure(found, figure)],
        claims=list(claims_learning.claims(found)),
    )


def _errata(census: Measured, wine: Measured) -> list[Erratum]:
    means = census.clusters[100]
    without, clusters = census.without_noise[3]
    return printed_errors(
        "idp/texts",
        {
            "equation-5-differences-attribute": (tables.carried(census), tables.carried(wine)),
            "section-3-2-1": (means["at_means_too_small"], means["clusters"], 1 - means["at_means_least"]),
            "section-3-2-2-idp": (without, clusters),
            "section-4-2-2": (_classes(wine),),
        },
    )


def _classes(wine: Measured) -> str:
    low, high = wine.bounds["classes"].values()
    return f"{low:,} and {high:,} records, {low / high:.2f} times as many"
