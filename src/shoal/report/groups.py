"""Groups before and after: an original (or none) and a released table come in, means of numbers inside groups leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.columns.column import numbers
from shoal.io import Table
from shoal.report.relations import Axis, Pairs
from shoal.report.source import source_of
from shoal.report.subject import Subject

Floats = NDArray[np.float64]

MOST_GROUPED = 3
# a mean of fewer rows says more about them than about their group
_FEWEST_ROWS = 5
_MOST_GROUPS = 12


@dataclass(frozen=True, slots=True)
class Grouped:
    """The mean of one column inside the groups that another makes.

    Attributes:
        labels: of the groups, at most twelve of them, the largest first.
        before, after: the means; None for a group with hardly any row, and all of `before` without an original.
    """

    measured: str
    by: str
    labels: tuple[str, ...]
    before: tuple[float | None, ...] | None
    after: tuple[float | None, ...]

    @property
    def words(self) -> str:
        """What changed most, in words."""
        if self.before is None:
            return f"{len(self.labels)} groups of the released table"
        gaps = [
            (abs(second - first), label, first, second)
            for label, first, second in zip(self.labels, self.before, self.after, strict=True)
            if first is not None and second is not None
        ]
        if not gaps:
            return "no group has enough rows in both tables"
        _, label, first, second = max(gaps)
        return f"the group that moves most is {label}, from {first:,.4g} to {second:,.4g}"


def grouped(subject: Subject, original: Table | None, pairs: Pairs | None) -> list[Grouped]:
    """Means of measured columns inside the groups of named ones: the pairs that belong together most."""
    if pairs is None:
        return []
    tables = [subject.table] if original is None else [original, subject.table]
    samples = [source_of(table).sample() for table in tables]
    found: list[Grouped] = []
    for first, second in pairs.strongest:
        one, other = pairs.axes[first], pairs.axes[second]
        for measured, by in ((one, other), (other, one)):
            facts = measured.attribute.kind_facts
            if facts.measured and not facts.days and by.edges is None and by.size > 1:
                means = [
                    _means(numbers(sample, measured.attribute), by.codes[number], by.size)
                    for number, sample in enumerate(samples)
                ]
                found += _of_groups(measured.name, by, means)
        if len(found) >= MOST_GROUPED:
            break
    return found[:MOST_GROUPED]


def _means(values: Floats, codes: NDArray[np.int64], size: int) -> list[float | None]:
    here = np.isfinite(values) & (codes >= 0)
    counts = np.bincount(codes[here], minlength=size)
    sums = np.bincount(codes[here], weights=values[here], minlength=size)
    return [
        float(total / count) if count >= _FEWEST_ROWS else None
        for total, count in zip(sums, counts, strict=True)
    ]


def _of_groups(name: str, by: Axis, means: Sequence[list[float | None]]) -> list[Grouped]:
    counts = np.bincount(by.codes[0][by.codes[0] >= 0], minlength=by.size)
    order = [int(code) for code in np.argsort(-counts, kind="stable")]
    shown = [code for code in order if any(found[code] is not None for found in means)][:_MOST_GROUPS]
    if len(shown) < 2 or not any(means[-1][code] is not None for code in shown):
        return []
    # ordered names keep their order
    if by.attribute.kind_facts.listed:
        shown = sorted(shown)
    return [
        Grouped(
            name,
            by.name,
            tuple(by.labels[code] for code in shown),
            tuple(means[0][code] for code in shown) if len(means) == 2 else None,
            tuple(means[-1][code] for code in shown),
        )
    ]
