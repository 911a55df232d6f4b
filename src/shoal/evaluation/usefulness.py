"""What a release is still good for: measures of loss come in, a level and one sentence in words leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shoal.method.verdict import LEVELS, Level

# for each figure: up to where it is good, and from where on poor
SHIFT = (0.1, 0.3)
MOVED = (0.15, 0.35)
KEPT = (0.8, 0.5)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was measured on the original records, and how it is to be taken; never published.

    Attributes:
        code: "usefulness", "records-linked", "above-chance" or "not-above-chance".
    """

    level: Level
    code: str
    text: str


def usefulness(utility: Mapping[str, Any], estimates: Mapping[str, Any] | None = None) -> Finding | None:
    """How useful a release is, by its worst figure; None where nothing could be compared.

    Args:
        utility: the measures of loss of `shoal.evaluate`.
        estimates: survey estimates before and after, where there is a weight: averages are then weighted.

    >>> print(usefulness({"mean_shift_max": 0.03, "rank_correlations": 45, "rank_correlations_kept": 41}).text)
    Averages move by at most 3% of their spread; of 45 rank correlations 41 keep sign and size.
    """
    words, found = [], []
    shift = largest_shift(utility, estimates)
    if shift is not None:
        words.append(f"{shift.what} {shift.words}")
        found.append(upwards(shift.value, SHIFT))
    pairs = utility.get("rank_correlations") or 0
    if pairs:
        kept = utility["rank_correlations_kept"]
        words.append(relation_words(kept, pairs))
        found.append(downwards(kept / pairs, KEPT))
    moved = most_moved(utility)
    if moved is not None:
        words.append(moved.words)
        found.append(upwards(moved.value, MOVED))
    if not found:
        return None
    text = "; ".join(words)
    return Finding(max(found, key=LEVELS.index), "usefulness", f"{text[0].upper()}{text[1:]}.")


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest figure of all columns, and the words that name the column.

    Attributes:
        what: what it is a figure of, where the words do not say it.
    """

    value: float
    words: str
    what: str = ""


def largest_shift(utility: Mapping[str, Any], estimates: Mapping[str, Any] | None = None) -> Worst | None:
    """The average that moves most; of a survey with weights, that of the population.

    >>> largest_shift({"mean_shift_max": 0.03, "attributes": {"age": {"mean_shift": 0.03}}}).words
    'move by at most 3% of their spread (age)'
    """
    shifts = dict((estimates or {}).get("mean_shifts") or {})
    if shifts:
        column = max(shifts, key=lambda name: shifts[name])
        moved = percent(shifts[column])
        return Worst(
            shifts[column], f"move by at most {moved} of their spread ({column})", "weighted averages"
        )
    shift = utility.get("mean_shift_max")
    if shift is None:
        return None
    column = _of_column(utility, "mean_shift")
    return Worst(shift, f"move by at most {percent(shift)} of their spread{column}", "averages")


def most_moved(utility: Mapping[str, Any]) -> Worst | None:
    """The column whose distribution changes most.

    >>> most_moved({"total_variation_max": 0.12, "attributes": {"age": {"total_variation": 0.12}}}).words
    "at most 12% of a column's values move (age)"
    """
    moved = utility.get("total_variation_max")
    if moved is None:
        return None
    column = _of_column(utility, "total_variation")
    return Worst(moved, f"at most {percent(moved)} of a column's values move{column}")


def _of_column(utility: Mapping[str, Any], figure: str) -> str:
    """The column that a largest figure is of, in brackets."""
    found = {
        name: line[figure]
        for name, line in utility.get("attributes", {}).items()
        if line.get(figure) is not None
    }
    return f" ({max(found, key=lambda name: found[name])})" if found else ""


def relation_words(kept: int, pairs: int) -> str:
    """How many relations of columns are left.

    >>> relation_words(41, 45), relation_words(1, 1)
    ('of 45 rank correlations 41 keep sign and size', 'of 1 rank correlation 1 keeps sign and size')
    """
    many = "rank correlation" if pairs == 1 else "rank correlations"
    return f"of {pairs:,} {many} {kept:,} {'keeps' if kept == 1 else 'keep'} sign and size"


def upwards(value: float, limits: tuple[float, float]) -> Level:
    """The level of a figure that should be small."""
    good, poor = limits
    return "green" if value <= good else "amber" if value <= poor else "red"


def downwards(value: float, limits: tuple[float, float]) -> Level:
    """The level of a figure that should be large."""
    good, poor = limits
    return "green" if value >= good else "amber" if value >= poor else "red"


def percent(share: float) -> str:
    """A share in percent as one says it.

    >>> percent(0.0312), percent(0.004), percent(0.00001), percent(4.2)
    ('3%', '0.4%', 'less than 0.1%', '420%')
    """
    if 0 < share < 0.0005:
        return "less than 0.1%"
    return f"{100 * share:.1f}%" if 0 < share < 0.0095 else f"{100 * share:.0f}%"
