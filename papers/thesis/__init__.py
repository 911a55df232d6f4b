"""Reproduction of the thesis, chapter by chapter, as one study."""

from __future__ import annotations

from importlib import import_module

from papers.desk import Desk
from papers.study import Study
from papers.texts import wording
from papers.thesis import contributions

heading = wording("thesis/texts")

# in the order of the page; each has `study(desk) -> Study`
CHAPTERS = ("chapter3", "chapter4", "chapter5", "chapter6", "chapter7")


def study(desk: Desk) -> Study:
    """All chapters with tables, figures or checkable statements, in order."""
    # a chapter is loaded when it is computed: each brings its own heavy libraries
    parts: dict[str, Study] = {name: import_module(f"{__name__}.{name}").study(desk) for name in CHAPTERS}
    return Study(
        *heading("about"),
        [*(section for part in parts.values() for section in part.sections), contributions.section(parts)],
        [erratum for part in parts.values() for erratum in part.errata],
        [series for part in parts.values() for series in part.series],
    )
