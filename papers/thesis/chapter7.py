"""Reproduction of chapter 7 of the thesis, t-closeness and Anatomy, on its examples and Census."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from papers.desk import Desk
from papers.study import Erratum, Number, Section, Series, Study
from papers.texts import numbering, printed_errors, wording
from papers.thesis.chapter7_claims import claims, partition_claims
from papers.thesis.chapter7_worlds import (
    GROUPS,
    MEDICAL,
    census_facts,
    distance,
    greedy,
    overdrawn,
    ratio,
    theoretical,
)
from shoal.evaluation.assessment import check
from shoal.mechanisms.kanonymity.grouping_algorithms import (
    allot,
    bucket_count,
    bucket_distance,
    ordered_buckets,
)
from shoal.mechanisms.kanonymity.swap_algorithms import dissect
from shoal.noise import Seeded
from shoal.partition import Partition

number = numbering("thesis/chapter7")

heading = wording("thesis/chapter7")

_QUASI = ("ethnicity", "born", "sex")


def study(desk: Desk) -> Study:
    desk.file("census.csv")
    runs = 5 if desk.quick else 40
    facts = desk.measure("chapter 7", {f"thesis 7, Census {runs}": partial(census_facts, desk.data, runs)})
    census = facts[f"thesis 7, Census {runs}"]
    return Study(
        *heading("about"),
        [
            Section(*heading("chapter-7-anatomy-groups"), _medical(), claims=list(partition_claims(census))),
            Section(
                *heading("chapter-7-t-closeness"),
                [*_worked(), *_figures(), *_theory()],
                _overdrawn_table(),
                claims=list(claims(census)),
            ),
        ],
        _errata(),
        [
            Series(
                "thesis-7-overdrawn",
                ("N", "t", "l", "records_too_many"),
                [(1000, 2, one, overdrawn(1000, 2, one)) for one in range(1, 112)],
            )
        ],
    )


def medical_table(*, generalised: bool) -> pa.Table:
    """Table 7.2, or Table 7.3."""
    columns = list(zip(*MEDICAL, strict=True))
    if generalised:
        columns[1], columns[2] = ("[61,64]",) * len(MEDICAL), ("-",) * len(MEDICAL)
    return pa.table({name: list(column) for name, column in zip((*_QUASI, "problem"), columns, strict=True)})


def _medical() -> list[Number]:
    """k of the tables, and what Anatomy lists for each group."""
    ethnicity = [row[0] for row in MEDICAL]
    partition = Partition.from_labels(np.unique(ethnicity, return_inverse=True)[1])
    table = medical_table(generalised=False)
    made = dissect(
        {name: table[name].to_pylist() for name in _QUASI},
        {"problem": table["problem"].to_pylist()},
        partition,
        Seeded(1),
    )
    groups = np.unique(made.quasi["group"], return_counts=True)[1]
    return [
        number("records-smallest-group-equal", check(medical_table(generalised=True), _QUASI).k),
        number("groups", groups.size),
        number("records-each", float(groups.min())),
        number("rows-right-table", float(made.confidential["count"].sum())),
    ]


def _worked() -> list[Number]:
    """The worked example: print's groups, and those that `allot` makes."""
    buckets = ordered_buckets(np.arange(12), 2)
    sizes = np.bincount(buckets)
    made = allot(sizes, t=2, k=4)
    by_emphasis = made.counts[np.argsort(made.emphasis)]
    printed = [
        [
            sum(1 for g, b in zip(GROUPS, buckets, strict=True) if g == group and b == bucket)
            for bucket in range(3)
        ]
        for group in (1, 2, 3)
    ]
    numbers = [number("records-b", float(sizes[bucket]), bucket + 1) for bucket in range(3)]
    numbers += [
        Number(
            "Table 7.5", f"records of B_{j + 1} in P_{i + 1}", str(printed[i][j]), float(by_emphasis[i, j])
        )
        for i in range(3)
        for j in range(3)
    ]
    shares = by_emphasis[0] / by_emphasis[0].sum()
    return [
        *numbers,
        number("p-1-pr-b", float(shares[0])),
        number("p-1-pr-b-2", float(shares[1])),
        number("closeness-printed-groups", distance(GROUPS, buckets.tolist())),
        number("closeness-shoals-groups", bucket_distance(made.counts, sizes)),
    ]


def _figures() -> list[Number]:
    """Figures 7.6 and 7.7: density 2 on the middle third, 1/2 elsewhere, in three buckets and in two."""
    three, two = [1 / 6, 2 / 3, 1 / 6], [0.5, 0.5]
    return [
        number("number-buckets-t-2", bucket_count(2)),
        number("closeness-three-buckets", ratio(three, [1 / 3] * 3)),
        number("closeness-two-buckets", ratio(two, [0.5] * 2)),
    ]


def _theory() -> list[Number]:
    """Table 7.6 against the counts of a table large enough for exact shares."""
    numbers = []
    for t in (2, 3):
        size = 12 * (t + 1) * t
        made = allot(np.full(t + 1, size), t, size)
        shares = made.counts[0] / made.counts[0].sum()
        own = int(made.emphasis[0])
        other = (own + 1) % (t + 1)
        for name, place, value in (
            ("t/(t+1)", own, theoretical(t)[0, 0]),
            ("1/(t(t+1))", other, theoretical(t)[0, 1]),
        ):
            numbers.append(Number("Table 7.6", f"t = {t}, {name}", f"{value:.6f}", float(shares[place])))
    return numbers


def _overdrawn_table() -> str:
    """The recipe of section 7.2.2 for 1,000 records, t = 2, 21 groups."""
    sizes, taken = greedy(1000, 2, 7)
    solved = allot(sizes, 2, 47).counts
    lines = [
        "The printed recipe for 1,000 records, t = 2, seven groups for each bucket:",
        "",
        "| | B_1 | B_2 | B_3 |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, row in (
        ("records there are", sizes),
        ("records the recipe takes", taken.sum(axis=0)),
        ("records the transportation problem takes", solved.sum(axis=0)),
    ):
        lines.append(f"| {name} | " + " | ".join(str(int(count)) for count in row) + " |")
    return "\n".join(lines)


def _errata() -> list[Erratum]:
    return printed_errors("thesis/chapter7", {"7-2-2-recipe": (overdrawn(1000, 2, 7),)})
