"""Reproduction of the cross-moment paper on Census and EIA: its table, figures, propositions and claims."""

from __future__ import annotations

from papers.cross_moment import (
    closing,
    coefficients,
    crossings,
    curves,
    effort,
    eigen,
    plain,
    quoted,
    ranking,
    remarks,
    remarks_claims,
    rows,
    theory,
)
from papers.cross_moment.measure import cell_tasks
from papers.desk import Desk
from papers.linked_columns import linked
from papers.study import Study
from papers.texts import wording

heading = wording("cross_moment/texts")


def study(desk: Desk) -> Study:
    """Table 1, Figures 7 to 14, every quoted number and statement, and the propositions."""
    # all at once: processes start once
    found = desk.measure(
        "releases",
        {
            **quoted.tasks(desk),
            **cell_tasks(desk, rows.wanted(desk)),
            **cell_tasks(desk, curves.wanted(desk)),
            **plain.tasks(desk),
            **effort.tasks(desk),
            **remarks.tasks(desk),
        },
    )
    over_k = curves.curves_of(desk, found)
    return Study(
        *heading("about"),
        [
            closing.data_section(desk),
            plain.section(desk, found, over_k),
            quoted.section(desk, found),
            coefficients.section(over_k),
            rows.section(rows.rows_of(desk, found), over_k),
            crossings.section(over_k),
            ranking.section(over_k),
            eigen.section(over_k),
            theory.section(),
            remarks_claims.section(
                over_k, remarks.facts_of(found), remarks.eigen_errors(desk, found), linked(desk)
            ),
            closing.section(over_k, effort.releases(found)),
            effort.methods_section(found),
            effort.speed_section(desk),
        ],
        [*theory.errata(desk), *closing.errata(desk)],
        [over_k.series()],
    )
