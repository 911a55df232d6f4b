"""The figures of a page: comparisons and measures come in, numbered drawings and the sections that hold them leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.evaluation.risk_lines import RiskLine
from shoal.io import Table
from shoal.method.statement import domain_words
from shoal.report.attribute_figures import distribution, quantiles
from shoal.report.compare import compare
from shoal.report.drawing import Figure
from shoal.report.relation_figures import correlation_figures, moved_figure, pair_figures
from shoal.report.relations import correlate, pair_tables
from shoal.report.risk_figures import cluster_figure, learning_figure, risk_figure
from shoal.report.subject import Subject

Placed = dict[str, Any]


@dataclass(slots=True)
class Album:
    """Drawings in the order of the page, under the names by which the page finds them."""

    specs: dict[str, Any] = field(default_factory=dict)

    def add(self, figure: Figure) -> Placed:
        """What a template needs of a figure; the drawing itself is kept."""
        name = f"figure-{len(self.specs) + 1}"
        self.specs[name] = figure.spec | ({"flat": True} if figure.flat else {})
        return {
            "id": name,
            "caption": figure.caption,
            "alt": figure.alt,
            "wide": figure.wide,
            "height": figure.height,
        }

    def clusters(self, groups: Sequence[tuple[str, NDArray[np.int64]]]) -> Placed:
        return self.add(cluster_figure(groups))

    def learning(self, learning: dict[str, Any]) -> Placed:
        return self.add(learning_figure(learning))

    def risks(self, lines: Sequence[RiskLine]) -> Placed:
        return self.add(risk_figure(lines))


def attribute_sections(album: Album, subject: Subject, before: Table | None) -> list[dict[str, Any]]:
    """One section for each column: distribution, quantiles and changes."""
    sections = []
    for number, found in enumerate(compare(subject, before), start=1):
        figures = [distribution(found), quantiles(found)]
        stated = subject.statement["attributes"].get(found.name)
        sections.append(
            {
                "id": f"column-{number}",
                "name": found.name,
                "kind": found.kind,
                "share": subject.share(found.name),
                "domain": "" if stated is None else domain_words(stated),
                "moved": found.distribution.moved,
                "figures": [album.add(figure) for figure in figures if figure is not None],
                "changes": found.changes,
                "missing": found.missing,
            }
        )
    return sections


def relation_sections(album: Album, subject: Subject, before: Table | None) -> dict[str, Any]:
    """Correlation matrices and two-way tables, as far as there are any."""
    related, pairs = correlate(subject, before), pair_tables(subject, before)
    moved = None if pairs is None else moved_figure(pairs)
    return {
        "correlations": [] if related is None else [album.add(f) for f in correlation_figures(related)],
        "moved": None if moved is None else album.add(moved),
        "pairs": []
        if pairs is None
        else [
            {
                "title": f"{pair.first.name} and {pair.second.name}",
                "moved": pair.moved,
                "figures": [album.add(figure) for figure in pair_figures(pair)],
            }
            for pair in pairs.shown
        ],
        "left_out": () if pairs is None else pairs.left_out,
    }
