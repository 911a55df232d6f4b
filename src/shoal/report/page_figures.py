"""The figures of a page: comparisons and measures come in, the sections that hold their drawings leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.io import Table
from shoal.method.statement import domain_words
from shoal.report.attribute_figures import distribution, quantiles, spark
from shoal.report.compare import compare
from shoal.report.groups import grouped
from shoal.report.relation_figures import correlation_figures, group_figure, moved_figure, pair_figures
from shoal.report.relations import MOST_KEPT, correlate, pair_tables
from shoal.report.subject import Subject

# columns that changed most are open when a page is
_OPEN = 1


def attribute_sections(
    subject: Subject, before: Table | None, measured: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """One section for each column: distribution, quantiles and changes.

    How much moved is what `shoal.evaluate` measured, so that every part of a page says the same.
    """
    sections = []
    compared = compare(subject, before)
    lines = {} if measured is None else measured["utility"]["attributes"]
    shares = {
        found.name: lines[found.name]["total_variation"] if found.name in lines else found.distribution.moved
        for found in compared
    }
    moves = sorted((share or 0.0 for share in shares.values()), reverse=True)
    for number, found in enumerate(compared, start=1):
        moved = shares[found.name]
        stated = subject.statement["attributes"].get(found.name)
        figures = (distribution(found), quantiles(found))
        sections.append(
            {
                "id": f"column-{number}",
                "name": found.name,
                "kind": found.kind,
                "share": subject.share(found.name),
                "domain": "" if stated is None else domain_words(stated),
                "moved": moved,
                "open": moved is not None and moved >= moves[_OPEN - 1],
                "spark": spark(found),
                "figures": [figure for figure in figures if figure is not None],
                "changes": found.changes,
                "statistics": found.statistics,
                "missing": found.missing,
            }
        )
    return sections


def relation_sections(subject: Subject, before: Table | None) -> dict[str, Any]:
    """Correlation matrices, two-way tables and groups, as far as there are any."""
    related, pairs = correlate(subject, before), pair_tables(subject, before)
    moved = None if pairs is None else moved_figure(pairs)
    kept = () if pairs is None else [pair for pair in pairs.kept if pair.word != "none to keep"]
    return {
        "correlations": [] if related is None else correlation_figures(related),
        "moved": moved,
        "kept": kept[:MOST_KEPT],
        "kept_counts": {
            word: sum(pair.word == word for pair in kept) for word in ("kept", "weakened", "lost")
        },
        "groups": [group_figure(found) for found in grouped(subject, before, pairs)],
        "pairs": []
        if pairs is None
        else [
            {
                "title": f"{pair.first.name} and {pair.second.name}",
                "moved": pair.moved,
                "figures": pair_figures(pair),
            }
            for pair in pairs.shown
        ],
        "left_out": () if pairs is None else pairs.left_out,
    }
