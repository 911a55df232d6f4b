"""Five measures that anybody understands: an evaluation comes in, a line in words with a judgement for each leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shoal.evaluation.usefulness import (
    KEPT,
    MOVED,
    SHIFT,
    downwards,
    largest_shift,
    most_moved,
    percent,
    relation_words,
    upwards,
)
from shoal.method.verdict import Level

_GOOD: Mapping[Level, str] = {"green": "good", "amber": "fair", "red": "poor"}
_RISK: Mapping[Level, str] = {"green": "low", "amber": "notable", "red": "high"}


@dataclass(frozen=True, slots=True)
class Line:
    """One measure for everybody; the judgement is empty where none can be given."""

    title: str
    words: str
    judgement: str = ""


def five(measured: Mapping[str, Any]) -> tuple[Line, ...]:
    """Averages, relations, distributions, rows traced back and crowds.

    Args:
        measured: an `Evaluation` as plain values.
    """
    return (
        _averages(measured),
        _relations(measured["utility"]),
        _distributions(measured["utility"]),
        _traced(measured),
        _crowd(measured),
    )


def _averages(measured: Mapping[str, Any]) -> Line:
    shift = largest_shift(measured["utility"], measured.get("estimates"))
    if shift is None:
        return Line("averages", "no column has one")
    return Line(shift.what, shift.words, _GOOD[upwards(shift.value, SHIFT)])


def _relations(utility: Mapping[str, Any]) -> Line:
    pairs = utility.get("rank_correlations") or 0
    if not pairs:
        return Line("relations", "no two columns with an order")
    kept = utility["rank_correlations_kept"]
    return Line("relations", relation_words(kept, pairs), _GOOD[downwards(kept / pairs, KEPT)])


def _distributions(utility: Mapping[str, Any]) -> Line:
    moved = most_moved(utility)
    if moved is None:
        return Line("distributions", "not comparable")
    return Line("distributions", moved.words, _GOOD[upwards(moved.value, MOVED)])


def _traced(measured: Mapping[str, Any]) -> Line:
    risk = measured["risk"]
    share = risk.get("record_linkage")
    if share is None:
        return Line("rows traced back", "not measured: no row of the release is known to belong to a record")
    chance = risk["record_linkage_chance"]
    low = risk["record_linkage_interval"][0]
    level: Level = "red" if low > 9 else "amber" if low > chance else "green"
    return Line(
        "rows traced back", f"{percent(share / 100)}, by guessing {percent(chance / 100)}", _RISK[level]
    )


def _crowd(measured: Mapping[str, Any]) -> Line:
    k = measured["risk"].get("actual_k")
    if k is None:
        return Line("smallest crowd", "not counted")
    if measured.get("synthetic"):
        # being unlike any other row says nothing about a person where no row is anybody's
        return Line(
            "smallest crowd", "rows are synthetic and nobody's: how many are alike is no risk of a person"
        )
    rows = "1 row, unlike any other" if k == 1 else f"{k:,} equal rows"
    return Line("smallest crowd", f"{rows}, over all columns; 'shoal check' counts over those others know")
