"""The iDP paper recomputed: a desk comes in; its propositions, figures and statements beside ours leave."""

from __future__ import annotations

from papers.desk import Desk
from papers.idp import (
    claims_closing,
    claims_errors,
    claims_learning,
    claims_theory,
    numbers,
    tables,
)
from papers.idp.results import Measured, gather
from papers.idp.settings import FULL, QUICK
from papers.study import Claim, Erratum, Section, Study

_ABOUT = (
    "The iDP paper masks cluster means with plain Laplace noise (DP, `laplace`), after univariate "
    "microaggregation with "
    "global sensitivity (DP-UM, `ranking-dp`), with local sensitivity (iDP-LS, `idp-ls`) and with "
    "cluster-based local "
    "sensitivity (iDP-CBLS, `idp-cbls`). Domains are 0 to α times the maximum, taken from the data as in the "
    "paper, so "
    "nothing here is for publication; results are clipped to the domain. The four methods claim different "
    "things (see "
    "`docs/claims.md`): less noise under individual DP given the partition is no better differential "
    "privacy.\n\n"
    "The paper draws its results and prints hardly any numbers. Rows marked *prototype* are numbers of a "
    "throw-away "
    "prototype, not of the paper; how many runs it averaged is not known, so the error of its side is taken "
    "to be the "
    "standard deviation of one run, combined with the standard error of ours."
)


def study(desk: Desk) -> Study:
    """Recompute the paper with the desk's effort."""
    effort = QUICK if desk.quick else FULL
    census, wine = (gather(desk, data, effort) for data in effort.sets)
    return study_of(census, wine)


def study_of(census: Measured, wine: Measured) -> Study:
    """The study that follows from what was measured."""
    sets = (census, wine)
    return Study(
        "The iDP paper, recomputed",
        _ABOUT,
        [
            Section(
                "Propositions, and what they rest on",
                "Clusters of Census and Wine as they are, records replaced one at a time. Losses are in "
                "units of ε.",
                claims=list(claims_theory.claims(census, wine)),
            ),
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
        "Clusters without noise",
        "A cluster of equal values has a cluster-based sensitivity of 0 (proposition 3): iDP-CBLS releases "
        "it as it is. "
        "The paper does not say how often that happens. On Wine, whose values are coarse, it explains most "
        "of what the "
        "paper finds: at small k nearly all values are published unchanged. The last two columns are medians "
        "of the "
        "noise scale relative to DP-UM.",
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
    claims.insert(
        0,
        Claim(
            f"section 4, {found.data.name}",
            "all attributes are non-negative",
            f"smallest value {least:g}",
            "holds" if least >= 0 else "fails",
        ),
    )
    return Section(
        f"Figure {figure}: errors on {found.data.name}",
        f"{len(found.data.columns)} attributes. Mean of {effort.runs} runs{known} (the paper: 10), then "
        "log10; in the table "
        "as the paper's equation (5) prints it, in parentheses corrected. With equation (5) "
        f"{tables.carried(found)}.",
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
        f"Figure {figure}: a random forest on {data.name}",
        f"Target `{data.target}`, trained on the first 66% of the released rows with their true classes, "
        "tested on the other "
        f"original rows; {effort.trees} trees, {effort.learning_runs} runs (the paper: 10), each with a "
        "release of its own. "
        f"F-measures of {' / '.join(data.class_names)} ± standard error; α = 1.5 where nothing else is "
        f"said.{fewer} A loss is "
        "1 - F / F of the original, averaged over both classes; a difference is one from three standard "
        "errors on. The best "
        "k is picked on the tested rows, which flatters every method alike. At small k the noise of iDP-CBLS "
        "is scaled to "
        "the spread of a few neighbouring values: a good F-measure there says little about protection.",
        numbers=rows,
        more=tables.f_table(found),
        figures=[tables.f_figure(found, figure)],
        claims=list(claims_learning.claims(found)),
    )


def _errata(census: Measured, wine: Measured) -> list[Erratum]:
    means = census.clusters[100]
    without, clusters = census.without_noise[3]
    return [
        Erratum(
            "equation (5)",
            "differences of an attribute are divided by its variance inside the square: an error of units",
            "divide by the standard deviation, (d_j/σ_j)²",
            f"`tests/evaluation/test_mean_sse.py`; on Census {tables.carried(census)}; on Wine "
            f"{tables.carried(wine)}",
        ),
        Erratum(
            "section 3.1",
            "sequential composition is called theorem 2, parallel composition theorem 1",
            "the other way round",
            "the theorems themselves",
        ),
        Erratum(
            "sections 3.1, 3.2.1",
            "clusters are disjoint, so by parallel composition each centroid can be masked by itself",
            "only given the clusters, which depend on the records too",
            "the first table of this page; `tests/test_local_sensitivity.py`",
        ),
        Erratum(
            "section 3.2.1",
            "noise is scaled to the local sensitivity at the microaggregated table",
            "at the original one, as in proposition 2: for 0, 50, 100 on the domain 0 to 100 the former is "
            "half the latter",
            "`tests/papers/test_idp.py`; on Census with k = 100 too small in "
            f"{means['at_means_too_small']} of "
            f"{means['clusters']} clusters, by up to {1 - means['at_means_least']:.0%}",
        ),
        Erratum(
            "section 3.2.2",
            "of 3, 3, 3, 4, 5, 6, 6 the value 6 is called the second smallest",
            "second largest",
            "the definition two lines below it",
        ),
        Erratum(
            "section 3.2.2",
            "iDP-CBLS makes an ε-individual DP data set",
            "given the clusters, with scales frozen at those of the actual table, and with clusters of sensitivity 0 "
            "released as they are",
            f"`tests/test_local_sensitivity.py`; on Census with k = 3 {without} of {clusters:,} clusters get no noise; "
            "12 evenly spaced records lose 4ε when clusters follow the record",
        ),
        Erratum(
            "section 4.1",
            "iDP-CBLS is not affected by the domain",
            "its noise scales are not; its results are, since they are clipped to the domain",
            "the tables of figures 3 and 4, α = 1.5 and 3",
        ),
        Erratum(
            "section 4.2.2",
            "Not Excellent has 3.5 times more records than Excellent",
            _classes(wine),
            "the row under figure 6",
        ),
    ]


def _classes(wine: Measured) -> str:
    low, high = wine.bounds["classes"].values()
    return f"{low:,} and {high:,} records, {low / high:.2f} times as many"
