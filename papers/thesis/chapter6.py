"""Reproduction of chapter 6 of the thesis on Census and Adult: its tables, figures and claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from papers.desk import Desk
from papers.study import Claim, Figure, Number, Section, Series, Study
from papers.texts import numbering, wording
from papers.thesis import chapter6_adult as adult
from papers.thesis import chapter6_census as census
from papers.thesis import chapter6_replaced as replaced
from papers.thesis.chapter6_claims import errors
from papers.thesis.chapter6_claims_rest import Strict, conclusions, statistics
from papers.thesis.chapter6_claims_risk import risks
from papers.thesis.chapter6_claims_theory import theory
from papers.thesis.chapter6_effort import FULL, QUICK, Effort
from papers.thesis.chapter6_errata import errata
from papers.thesis.chapter6_print import KS, PROTOTYPE_SSE, RUNS
from papers.thesis.chapter6_replaced import Replaced
from papers.thesis.chapter6_runs import Found
from papers.thesis.chapter6_scatter import scatters
from papers.thesis.chapter6_tables import TREES, curves, picture, strict_table, table_numbers

number = numbering("thesis/chapter6")

heading = wording("thesis/chapter6")

_BOXES = {
    "insensitive": "as behind the printed numbers",
    "wide": "corners at 1.5 times the largest value",
    "text": "those corners in the sequence of section 6.3.3",
}


@dataclass(frozen=True)
class Measured:
    """All that was measured."""

    census: Found
    adult: Found
    strict: Strict
    replaced: Mapping[str, Replaced]
    broken: Mapping[int, tuple[int, int]]
    corners: Mapping[tuple[int, int], float]
    folder: Path


def study(desk: Desk) -> Study:
    """Tables 6.1 to 6.5, Figures 6.1 to 6.5, every statement of the chapter, and what the correction costs."""
    effort = QUICK if desk.quick else FULL
    found = measure(desk, effort)
    drawings, points = scatters()
    series = [
        points,
        curves("figure-6-4", found.census),
        curves("figure-6-5", found.adult),
        _strict_series(found.strict),
        _replaced_series(found.replaced),
    ]
    sections = [
        Section(*heading("chapter-6-data-clusters"), [*sizes(found.folder), *_beyond_print(found)]),
        _theory(found, drawings),
        *_tables(found, effort),
        _discussion(found, effort),
        _one_record(found),
        _corrected(found, effort),
    ]
    return Study(
        *heading("chapter-6-thesis-recomputed"), sections, errata(found.census, found.replaced), series
    )


def measure(desk: Desk, effort: Effort) -> Measured:
    folder = desk.file(census.FILE).parent
    changed, broken = replaced.measure(desk, effort)
    return Measured(
        census.measure(desk, effort),
        adult.measure(desk, effort),
        census.measure_strict(desk, effort),
        changed,
        broken,
        {(k, count): census.from_corners(folder, k, count) for k in KS for count in (2, 4, 8, 16)},
        folder,
    )


def sizes(folder: Path) -> Iterator[Number]:
    """Data and trees."""
    records, data = census.census(folder), adult.adult(folder)
    where = "section 6.4.1"
    yield number("census-different-records", len(np.unique(records, axis=0)))
    yield number("adult-records-without-missing", data.n)
    yield number("adult-different-records", data.pairs)
    for name, values, concepts, ours, diameter, tree in zip(
        ("OCCUPATION", "NATIVE-COUNTRY"),
        ("14", "41"),
        ("122", "127"),
        ("28", "57"),
        (".8931", ".9069"),
        data.trees,
        strict=True,
    ):
        yield Number(where, f"{name}, values", values, len(tree.domain))
        yield Number(
            where, f"{name}, concepts", concepts, tree.size, why=f"minimal tree of another taxonomy: {TREES}"
        )
        yield Number("prototype, Adult", f"{name}, concepts", ours, tree.size)
        yield Number("prototype, Adult", f"{name}, diameter", diameter, tree.diameter)


def _beyond_print(found: Measured) -> Iterator[Number]:
    """What a throw-away prototype found on Census."""
    for k, printed in PROTOTYPE_SSE.items():
        yield Number(
            "prototype, Census",
            f"insensitive clusters, k = {k}, SSE",
            printed,
            found.census.alone["insensitive"][k].sse,
        )
    some = found.replaced["text"]
    yield number("clusters-k-5", some.of)
    yield number("clusters-changed-replaced-record", max(one.clusters for one in found.replaced.values()))


def _theory(found: Measured, drawings: list[Figure]) -> Section:
    records = census.census(found.folder)
    single = int(((records == records.max(axis=0)).sum(axis=0) == 1).sum())
    stable = {k: replaced.hardly_changed(found.folder, range(0, 1080, 108), k) for k in KS}
    claims = theory(
        found.census,
        found.adult,
        adult.adult(found.folder).trees,
        found.replaced,
        found.broken,
        single,
        stable,
    )
    return Section(*heading("chapter-6-sections-6"), figures=drawings, claims=claims)


def _tables(found: Measured, effort: Effort) -> list[Section]:
    numbers = table_numbers(found.census, found.adult)
    return [
        Section(*heading("chapter-6-table-6-1", effort.table_runs, RUNS), numbers["6.1"]),
        Section(*heading("chapter-6-table-6"), numbers["6.2"]),
        Section(*heading("chapter-6-table-6-3", effort.adult_runs), numbers["6.3"]),
        Section(*heading("chapter-6-table-6-4"), numbers["6.4"]),
        Section(*heading("chapter-6-table-6-5"), numbers["6.5"], claims=list(statistics(found.census))),
    ]


def _discussion(found: Measured, effort: Effort) -> Section:
    figures = [
        Figure(
            f"figure-{place}",
            f"Figure {place.replace('-', '.')}: SSE and RL over k on {name}",
            picture(f"Figure {place.replace('-', '.')}, {name}", data),
        )
        for place, name, data in (("6-4", "Census", found.census), ("6-5", "Adult", found.adult))
    ]
    claims: list[Claim] = [
        *errors(found.census, found.adult, found.corners),
        *risks(found.census, found.adult),
    ]
    return Section(
        *heading("chapter-6-figures-6", effort.figure_runs, effort.adult_figure_runs),
        figures=figures,
        claims=claims,
    )


def _one_record(found: Measured) -> Section:
    lines = [
        "| clusters of 5 on Census | changed | own row, W/k | another row, W/k | loss of the published noise, ε |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for box, one in found.replaced.items():
        lines.append(
            f"| {_BOXES[box]} | {one.clusters} of {one.of} | {one.own:.2f} | {one.others:.2f} | {one.loss:.1f} |"
        )
    return Section(
        *heading("chapter-6-replaced-record", next(iter(found.replaced.values())).tables),
        more="\n".join(lines),
    )


def _corrected(found: Measured, effort: Effort) -> Section:
    claims = conclusions(found.census, found.adult, found.strict, found.replaced["insensitive"])
    return Section(
        *heading("chapter-6-corrected-method", effort.strict_runs),
        more=strict_table(found.strict),
        claims=list(claims),
    )


def _strict_series(found: Strict) -> Series:
    rows = [
        (method, k or "", epsilon, f"{runs.mean:.6g}", f"{runs.error():.2g}", runs.values.size)
        for (method, k, epsilon), runs in found.items()
    ]
    return Series("chapter-6-corrected", ("method", "k", "epsilon", "sse", "standard_error", "runs"), rows)


def _replaced_series(found: Mapping[str, Replaced]) -> Series:
    rows = [
        (
            _BOXES[box],
            one.clusters,
            one.of,
            f"{one.own:.4f}",
            f"{one.others:.4f}",
            f"{one.loss:.3f}",
            one.tables,
        )
        for box, one in found.items()
    ]
    columns = ("clusters", "changed", "of", "own_row", "other_row", "loss_in_epsilon", "tables")
    return Series("chapter-6-replaced", columns, rows)
