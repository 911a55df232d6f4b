"""Figures 6.1 to 6.3: drawings of the clusters of small tables, and the points as a series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from papers.plots import COLOURS, opened
from papers.study import Figure, Series
from papers.thesis.chapter6_small import TOY_TOP, toy, toy_clusters
from shoal.partition import Partition, insensitive

_SIDE, _GAP, _EDGE = 230, 30, 12
# a regular grid of records shows the form of the clusters
_GRID, _GRID_K = 16, 16


@dataclass(frozen=True)
class Scatter:
    """Records of two attributes from 0 to `top` and their clusters."""

    title: str
    records: NDArray[np.int64]
    made: Partition
    top: int
    centroids: bool = True


def scatters() -> tuple[list[Figure], Series]:
    """Figures 6.1 and 6.2 on one table of our own (print has none), Figure 6.3 on a grid."""
    moved = [
        Scatter(f"{words}, {when}", table, toy_clusters(table, name), TOY_TOP)
        for name, words in (("MDAV", "MDAV (6.1)"), ("single", "insensitive MDAV (6.2)"))
        for when, table in (("before", toy(changed=False)), ("after", toy(changed=True)))
    ]
    grid = np.stack(np.meshgrid(np.arange(_GRID), np.arange(_GRID)), axis=2).reshape(-1, 2)
    bounds = [(0, _GRID - 1)] * 2
    forms = [
        Scatter(
            words, grid, insensitive(grid, _GRID_K, bounds=bounds, order=order), _GRID - 1, centroids=False
        )
        for words, order in (("one reference point", "single"), ("four corners in turn", "corners"))
    ]
    one = (
        "Figures 6.1 and 6.2: clusters of 5 and their centroids (crosses), one record moved to the low corner"
    )
    two = "Figure 6.3: clusters of 16 on a grid, from one reference point and from the four corners"
    return [
        Figure("figure-6-1-and-6-2", one, drawn("Figures 6.1 and 6.2", moved)),
        Figure("figure-6-3", two, drawn("Figure 6.3", forms)),
    ], Series(
        "figures-6-1-to-6-3",
        ("panel", "first", "second", "cluster"),
        [
            (panel.title, *record, label)
            for panel in (*moved, *forms)
            for record, label in zip(panel.records.tolist(), panel.made.labels.tolist(), strict=True)
        ],
    )


def drawn(title: str, shown: Sequence[Scatter]) -> str:
    """Panels side by side, two in a row."""
    rows = (len(shown) + 1) // 2
    width, height = 2 * (_SIDE + _GAP) + _GAP, 30 + rows * (_SIDE + 2 * _GAP)
    parts = opened(title, width, height)
    for number, panel in enumerate(shown):
        x, y = _GAP + number % 2 * (_SIDE + _GAP), 30 + _GAP + number // 2 * (_SIDE + 2 * _GAP)
        parts += [f'<g transform="translate({x} {y})">', *_panel(panel), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Scatter) -> list[str]:
    def place(point: Sequence[float]) -> tuple[float, float]:
        step = (_SIDE - 2 * _EDGE) / panel.top
        return _EDGE + point[0] * step, _SIDE - _EDGE - point[1] * step

    parts = [
        f'<text x="0" y="-6">{escape(panel.title)}</text>',
        f'<rect width="{_SIDE}" height="{_SIDE}" fill="none" stroke="#777"/>',
    ]
    for record, label in zip(panel.records.tolist(), panel.made.labels.tolist(), strict=True):
        x, y = place(record)
        colour, hollow = COLOURS[label % len(COLOURS)], label // len(COLOURS) % 2
        fill = "white" if hollow else colour
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{colour}" stroke-width="2"/>'
        )
    if panel.centroids:
        for label, centre in enumerate(panel.made.centroids(panel.records).tolist()):
            x, y = place(centre)
            parts.append(
                f'<path d="M{x - 6:.1f} {y:.1f}h12M{x:.1f} {y - 6:.1f}v12" stroke="{COLOURS[label % len(COLOURS)]}" '
                'stroke-width="2.5"/>'
            )
    return parts
