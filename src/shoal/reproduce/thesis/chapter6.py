"""Chapter 6 of the thesis recomputed: Census and Adult come in, its tables, figures and statements leave."""

from __future__ import annotations

from shoal.reproduce.desk import Desk
from shoal.reproduce.study import Figure, Section, Series, Study
from shoal.reproduce.thesis import chapter6_adult as adult
from shoal.reproduce.thesis import chapter6_census as census
from shoal.reproduce.thesis.chapter6_effort import FULL, QUICK
from shoal.reproduce.thesis.chapter6_tables import curves, picture, strict_table, table_numbers

_ABOUT = "Insensitive microaggregation before differential privacy, taxonomies, mixed data."


def study(desk: Desk) -> Study:
    """Tables 6.1 to 6.5, Figures 6.4 and 6.5, and what the correction costs."""
    effort = QUICK if desk.quick else FULL
    on_census, on_adult = census.measure(desk, effort), adult.measure(desk, effort)
    strict = census.measure_strict(desk, effort)
    tables = table_numbers(on_census, on_adult)
    sections = [
        Section("Chapter 6: Table 6.1, Census against MDAV", numbers=tables["6.1"]),
        Section("Chapter 6: Table 6.2, Census against k = 1", numbers=tables["6.2"]),
        Section("Chapter 6: Table 6.3, Adult against MDAV", numbers=tables["6.3"]),
        Section("Chapter 6: Table 6.4, Adult against k = 1", numbers=tables["6.4"]),
        Section("Chapter 6: Table 6.5, means and variances on Census", numbers=tables["6.5"]),
        Section(
            "Chapter 6: Figures 6.4 and 6.5",
            figures=[
                Figure(
                    "figure-6-4",
                    "Figure 6.4: SSE and RL over k on Census",
                    picture("Figure 6.4, Census", on_census),
                ),
                Figure(
                    "figure-6-5",
                    "Figure 6.5: SSE and RL over k on Adult",
                    picture("Figure 6.5, Adult", on_adult),
                ),
            ],
        ),
        Section("Chapter 6: the corrected method", more=strict_table(strict)),
    ]
    series: list[Series] = [curves("figure-6-4", on_census), curves("figure-6-5", on_adult)]
    return Study("Chapter 6 of the thesis, recomputed", _ABOUT, sections, [], series)
