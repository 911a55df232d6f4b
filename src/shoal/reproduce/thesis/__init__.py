"""The thesis recomputed, chapter by chapter: its data sets come in, one study leaves."""

from __future__ import annotations

from shoal.reproduce.desk import Desk
from shoal.reproduce.study import Study
from shoal.reproduce.thesis import chapter3, chapter4, chapter5, chapter6, chapter7

_ABOUT = (
    "The doctoral thesis behind much of Shoal: probabilistic k-anonymity (chapter 3), optimal noise (4), answers by "
    "knowledge refinement (5), insensitive microaggregation before differential privacy (6), t-closeness by "
    "bucketisation (7)."
)


def study(desk: Desk) -> Study:
    """All chapters with tables, figures or checkable statements, in order."""
    parts = [part.study(desk) for part in (chapter3, chapter4, chapter5, chapter6, chapter7)]
    return Study(
        "The thesis, recomputed",
        _ABOUT,
        [section for part in parts for section in part.sections],
        [erratum for part in parts for erratum in part.errata],
        [series for part in parts for series in part.series],
    )
