"""Five measures that anybody understands: an evaluation comes in, a line with a judgement for each leaves."""

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
    relations,
    upwards,
)
from shoal.method.verdict import Level
from shoal.text import Message

_GOOD: Mapping[Level, str] = {"green": "good", "amber": "fair", "red": "poor"}
_RISK: Mapping[Level, str] = {"green": "low", "amber": "notable", "red": "high"}


@dataclass(frozen=True, slots=True)
class Line:
    """One measure for everybody; the judgement is empty where none can be given."""

    title: str
    message: Message
    judgement: str = ""

    @property
    def words(self) -> str:
        return str(self.message)


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
        return Line("averages", Message.of("no-average"))
    title = "weighted averages" if shift.weighted else "averages"
    return Line(title, shift.message, _GOOD[upwards(shift.value, SHIFT)])


def _relations(utility: Mapping[str, Any]) -> Line:
    pairs = utility.get("rank_correlations") or 0
    if not pairs:
        return Line("relations", Message.of("no-ordered-pair"))
    kept = utility["rank_correlations_kept"]
    return Line("relations", relations(kept, pairs), _GOOD[downwards(kept / pairs, KEPT)])


def _distributions(utility: Mapping[str, Any]) -> Line:
    moved = most_moved(utility)
    if moved is None:
        return Line("distributions", Message.of("distributions-not-comparable"))
    return Line("distributions", moved.message, _GOOD[upwards(moved.value, MOVED)])


def _traced(measured: Mapping[str, Any]) -> Line:
    risk = measured["risk"]
    share = risk.get("record_linkage")
    if share is None:
        return Line("rows traced back", Message.of("not-traceable"))
    chance = risk["record_linkage_chance"]
    low = risk["record_linkage_interval"][0]
    level: Level = "red" if low > 9 else "amber" if low > chance else "green"
    traced = Message.of("rows-traced", share=share / 100, chance=chance / 100)
    return Line("rows traced back", traced, _RISK[level])


def _crowd(measured: Mapping[str, Any]) -> Line:
    k = measured["risk"].get("actual_k")
    if k is None:
        return Line("smallest crowd", Message.of("crowd-not-counted"))
    if measured.get("synthetic"):
        # being unlike any other row says nothing about a person where no row is anybody's
        return Line("smallest crowd", Message.of("crowd-of-synthetic-rows"))
    return Line("smallest crowd", Message.of("row-alone" if k == 1 else "crowd-of-rows", rows=k))
