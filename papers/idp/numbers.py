"""Published and known numbers of the iDP paper next to measured ones, with verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from papers.idp.clusters import evenly_spaced
from papers.idp.expectation import CORRECTED, PRINTED
from papers.idp.results import PROTOTYPE, PROTOTYPE_F, Measured
from papers.idp.settings import EPSILONS, METHODS, NARROW, Cell
from papers.idp.verdicts import standard_error
from papers.study import Number
from papers.texts import numbering

number = numbering("idp/texts")

_FEW = "how many runs the prototype averaged is not known"


def cluster_numbers(census: Measured) -> Iterator[Number]:
    """What the prototype counted: nothing here is drawn."""
    without, clusters = census.without_noise[3]
    yield number("k-3-clusters-all", clusters)
    yield number("k-3-clusters-idp", without)
    yield number("loss-epsilon-when-clusters", evenly_spaced(4))


def error_numbers(census: Measured) -> Iterator[Number]:
    """log10 mean SSE at known settings; the error of the prototype's side is the standard deviation of one run."""
    for epsilon in EPSILONS:
        for (method, k, at), known in PROTOTYPE.items():
            if at != epsilon:
                continue
            cell = Cell(method, NARROW, epsilon, k)
            # the corrected metric was not noted everywhere
            for metric, printed, words in zip(
                (PRINTED, CORRECTED), known, ("eq. (5)", "corrected"), strict=False
            ):
                size = f", k = {k}" if k else ""
                yield Number(
                    "prototype, Census",
                    f"log10 mean SSE, {words}: {METHODS[method]}{size}, ε = {epsilon:g}",
                    printed,
                    census.level(cell, metric),
                    math.hypot(census.level_error(cell, metric), census.one_run(cell, metric)),
                    why=_FEW,
                    logarithm=True,
                )


def forest_numbers(census: Measured) -> Iterator[Number]:
    """F-measures of the prototype, its error taken to be that of one run."""
    runs = census.effort.learning_runs
    own = census.bounds["original"]
    masked = census.scores[Cell("idp-cbls", NARROW, 1.0, 15)]
    for (name, known), words in zip(PROTOTYPE_F.items(), census.data.class_names, strict=True):
        error = standard_error(own, name, runs)
        yield Number(
            "prototype, Census",
            f"F of {words}, trained on the original",
            known,
            own["f"][name],
            error * math.sqrt(1 + runs),
            why=_FEW,
        )
        relative = math.hypot(error, standard_error(masked, name, runs)) / own["f"][name]
        yield number(
            "f-idp-cbls-epsilon",
            100 * (1 - masked["f"][name] / own["f"][name]),
            words,
            error=100 * relative * math.sqrt(1 + runs),
        )


def table_numbers(found: Measured) -> Iterator[Number]:
    """What section 4 says about the tables themselves."""
    printed = {"Census": "1080", "Wine": "4898"}[found.data.name]
    yield Number("section 4", f"records of {found.data.name}", printed, len(found.values))
    if found.data.name == "Wine":
        low, high = found.bounds["classes"].values()
        yield number("records-excellent-each-excellent", low / high, low, high)
