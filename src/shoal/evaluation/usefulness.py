"""What a release is still good for: measures of loss come in, a level and what to say leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shoal.method.verdict import LEVELS, Level
from shoal.text import Message, capital

# for each figure: up to where it is good, and from where on poor
SHIFT = (0.1, 0.3)
MOVED = (0.15, 0.35)
KEPT = (0.8, 0.5)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was measured on the original records, and how it is to be taken; never published."""

    level: Level
    message: Message

    @property
    def text(self) -> str:
        return capital(str(self.message))


def usefulness(utility: Mapping[str, Any], estimates: Mapping[str, Any] | None = None) -> Finding | None:
    """How useful a release is, by its worst figure; None where nothing could be compared.

    Args:
        utility: the measures of loss of `shoal.evaluate`.
        estimates: survey estimates before and after, where there is a weight: averages are then weighted.

    >>> print(usefulness({"mean_shift_max": 0.03, "rank_correlations": 45, "rank_correlations_kept": 41}).text)
    Averages move by at most 3% of their spread; of 45 rank correlations 41 keep sign and size.
    """
    figures, found = [], []
    shift = largest_shift(utility, estimates)
    if shift is not None:
        code = "weighted-averages-move" if shift.weighted else "averages-move"
        figures.append(Message.of(code, shift=shift.message))
        found.append(upwards(shift.value, SHIFT))
    pairs = utility.get("rank_correlations") or 0
    if pairs:
        kept = utility["rank_correlations_kept"]
        figures.append(relations(kept, pairs))
        found.append(downwards(kept / pairs, KEPT))
    moved = most_moved(utility)
    if moved is not None:
        figures.append(moved.message)
        found.append(upwards(moved.value, MOVED))
    if not found:
        return None
    return Finding(max(found, key=LEVELS.index), Message.of("usefulness", figures=tuple(figures)))


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest figure of all columns, and what to say of it and its column.

    Attributes:
        weighted: it is one of the population, by the weights of a survey.
    """

    value: float
    message: Message
    weighted: bool = False


def largest_shift(utility: Mapping[str, Any], estimates: Mapping[str, Any] | None = None) -> Worst | None:
    """The average that moves most; of a survey with weights, that of the population.

    >>> str(largest_shift({"mean_shift_max": 0.03, "attributes": {"age": {"mean_shift": 0.03}}}).message)
    'move by at most 3% of their spread (age)'
    """
    shifts = dict((estimates or {}).get("mean_shifts") or {})
    if shifts:
        column = max(shifts, key=lambda name: shifts[name])
        return Worst(shifts[column], _shift(shifts[column], column), weighted=True)
    shift = utility.get("mean_shift_max")
    if shift is None:
        return None
    return Worst(shift, _shift(shift, _of_column(utility, "mean_shift")))


def _shift(shift: float, column: str | None) -> Message:
    return Message.of(
        "moves-at-most" if column is None else "moves-at-most-column", shift=shift, column=column
    )


def most_moved(utility: Mapping[str, Any]) -> Worst | None:
    """The column whose distribution changes most.

    >>> str(most_moved({"total_variation_max": 0.12, "attributes": {"age": {"total_variation": 0.12}}}).message)
    "at most 12% of a column's values move (age)"
    """
    moved = utility.get("total_variation_max")
    if moved is None:
        return None
    column = _of_column(utility, "total_variation")
    code = "values-move" if column is None else "values-move-column"
    return Worst(moved, Message.of(code, share=moved, column=column))


def _of_column(utility: Mapping[str, Any], figure: str) -> str | None:
    """The column that a largest figure is of; None where no column has one."""
    found = {
        name: line[figure]
        for name, line in utility.get("attributes", {}).items()
        if line.get(figure) is not None
    }
    return max(found, key=lambda name: found[name], default=None)


def relations(kept: int, pairs: int) -> Message:
    """How many relations of columns are left.

    >>> str(relations(41, 45)), str(relations(1, 1))
    ('of 45 rank correlations 41 keep sign and size', 'of 1 rank correlation 1 keeps sign and size')
    """
    return Message.of("relation-kept" if kept == 1 else "relations-kept", kept=kept, pairs=pairs)


def upwards(value: float, limits: tuple[float, float]) -> Level:
    """The level of a figure that should be small."""
    good, poor = limits
    return "green" if value <= good else "amber" if value <= poor else "red"


def downwards(value: float, limits: tuple[float, float]) -> Level:
    """The level of a figure that should be large."""
    good, poor = limits
    return "green" if value >= good else "amber" if value >= poor else "red"
