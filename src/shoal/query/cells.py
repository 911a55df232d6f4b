"""Cells of a histogram. In: edges or labels. Out: cells that have no record in common, and their exact counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.columns.schema import Attribute
from shoal.errors import OptionError
from shoal.query.facts import Facts, QueryTable
from shoal.query.parsing import EDGE, as_list, as_text
from shoal.query.where import Where, matching, place
from shoal.text import Message

_MOST_CELLS = 10_000
_CELL = Message.of("part-cell")


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of a histogram that have no record in common.

    Attributes:
        names: what the cells are called in the answer.
        bounds: for a column on a lattice, the positions from .. to of each cell, both included.
        labels: for other columns, the label of each cell.
    """

    column: str
    names: tuple[str, ...]
    bounds: tuple[tuple[int, int], ...] = ()
    labels: tuple[str, ...] = ()

    def counts(self, table: QueryTable, where: Where | None) -> list[int]:
        """The exact counts: private. The same work however many records are counted."""
        chosen = matching(where, table)
        if self.labels:
            codes = [table.code(self.column, label) for label in self.labels]
            # no row has a code beyond the largest, where a label goes that nobody has
            unknown = len(table.labels[self.column])
            edges = np.array([[code if code >= 0 else unknown] * 2 for code in codes], dtype=np.int64)
        else:
            edges = np.array(self.bounds, dtype=np.int64).reshape(-1, 2)
        found: list[int] = table.orders[self.column].between(chosen, edges[:, 0], edges[:, 1]).tolist()
        return found


def cells_of(facts: Facts, options: dict[str, Any]) -> Cells:
    """The cells that a query names: edges of bins, single values, or nothing for all values of an order."""
    attribute = facts.attribute(options["column"])
    if attribute.role in ("identifier", "unit"):
        raise OptionError("column-identifies-persons", column=attribute.name)
    if "edges" in options and "cells" in options:
        raise OptionError("histogram-either-edges-cells")
    if "edges" in options:
        return _bins(facts, attribute, options["edges"])
    if "cells" in options:
        labels = tuple(as_text(_CELL, cell) for cell in as_list("cells", options["cells"], _MOST_CELLS))
    else:
        labels = facts.labels(attribute)
    if not labels:
        raise OptionError("histogram-column-needs-edges-cells", column=attribute.name)
    if len(set(labels)) < len(labels):
        raise OptionError("cells-names-value-twice", option="cells")
    if not facts.has_lattice(attribute):
        return Cells(attribute.name, labels, labels=labels)
    lattice = facts.lattice(attribute.name)
    points = [place(attribute, lattice, label) for label in labels]
    if len(set(points)) < len(points):
        raise OptionError("cells-names-value-twice", option="cells")
    if any(point.denominator != 1 or not 0 <= point <= lattice.steps for point in points):
        raise OptionError("cells-values-domain", option="cells")
    return Cells(attribute.name, labels, tuple((int(point), int(point)) for point in points))


def _bins(facts: Facts, attribute: Attribute, raw: Any) -> Cells:
    """A bin starts at its lower edge; the last one includes its upper edge."""
    if not facts.has_lattice(attribute):
        raise OptionError("column-labels-without-order", column=attribute.name)
    lattice = facts.lattice(attribute.name)
    texts = [as_text(EDGE, edge) for edge in as_list("edges", raw, _MOST_CELLS + 1)]
    places = [place(attribute, lattice, text) for text in texts]
    if len(texts) < 2 or any(a >= b for a, b in pairwise(places)):
        raise OptionError("edges-grow-inside-domain-there-least", option="edges")
    starts = [max(math.ceil(one), 0) for one in places]
    stops = [start - 1 for start in starts[1:-1]] + [math.floor(places[-1])]
    names = [f"[{a}, {b})" for a, b in pairwise(texts)]
    names[-1] = names[-1][:-1] + "]"
    # an empty bin ends right before its start
    bounds = [(start, max(stop, start - 1)) for start, stop in zip(starts, stops, strict=False)]
    return Cells(attribute.name, tuple(names), tuple(bounds))
