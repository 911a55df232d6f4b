"""The work of a release on an engine: compute aggregates of all records, and route released rows to their places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from shoal.columns import CodedByRules, Described, coded
from shoal.display import internal
from shoal.engines import Elsewhere, Over, Runner, TaskStage, blobs_in, check_positions, unpacked
from shoal.mechanisms import Histogram
from shoal.noise import Source, fresh_key
from shoal.numbers import Integers
from shoal.privacy import Measurements
from shoal.progress import Progress
from shoal.release.in_parts.tasks import (
    Outgoing,
    Permutation,
    coordinate_counts,
    counted,
    heavy_rows,
    merged_counts,
    summed,
)
from shoal.release.protection import Preparation
from shoal.text import Message

# rows of a run in which heavy positions are counted
RUN = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """Stages that end in blobs of released rows, and what is known of the release.

    Attributes:
        out: the destinations of its rows.
        internal: private facts for the internal report.
        unchanged: columns that hold the records' own values.
        conditions: measured quantities, where they follow from published intermediate results.
        measurements: the noisy numbers behind the rows, if the method keeps them.
    """

    over: Over
    stages: tuple[TaskStage, ...]
    out: Outgoing
    internal: dict[str, Any]
    unchanged: frozenset[str] = field(default_factory=frozenset)
    conditions: tuple[Message, ...] = ()
    measurements: Measurements | None = None


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class ColumnsInParts:
    """The columns as a method that keeps rules measures them.

    Attributes:
        described: the table, in the coordinates of its rules if it has some.
        histograms: positions of all columns with their counts, without missing values.
        missing: number of records without a value, by column.
        internal: how many records break each rule.
    """

    described: Described
    histograms: list[Histogram]
    missing: Mapping[str, int]
    internal: dict[str, Any]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """A prepared release on an engine."""

    prepared: Preparation
    runner: Runner
    records: Elsewhere
    tell: Progress

    @property
    def described(self) -> Described:
        """The described table without access to the records: this is sent to tasks."""
        return self.prepared.described.without_records()

    @property
    def over(self) -> Over:
        return Over(self.records.reading.read)

    def source(self) -> Source:
        """The source of randomness for tasks: children of a new key, or of the seed."""
        return self.prepared.source if self.prepared.source.reproducible else fresh_key()

    def outgoing(self, rows: int, source: Source, *, linked: bool = True) -> Outgoing:
        columns = 1 if linked else len(self.prepared.described.columns)
        return Outgoing(
            tuple(Permutation.drawn(rows, source.child("order of rows", number)) for number in range(columns))
        )

    def histograms(self) -> list[Histogram]:
        """Positions of all columns with their counts. Private."""
        described = self.prepared.described
        check_positions(described.lattices, described.n)
        return [self.records.histogram(name, described.lattices) for name in described.columns]

    def columns(self) -> ColumnsInParts:
        """All columns for a method that keeps rules. Private."""
        described, here = self.prepared.described, coded(self.prepared.described)
        if not isinstance(here, CodedByRules):
            missing = {name: self.records.missing_of(name) for name in described.columns}
            return ColumnsInParts(here, self.histograms(), missing, {})
        assert here.book is not None
        check_positions({**described.lattices}, described.n)
        check_positions({**here.lattices}, described.n)
        positions: dict[str, list[tuple[Integers, Integers]]] = {}
        missing = {name: self.records.missing_of(name) for name in described.columns}
        missing |= {name: 0 for name in here.columns if here.ruled(name)}
        broken = {rule: 0 for rule, _ in here.book.numbered}
        task = partial(coordinate_counts, reading=self.records.reading, described=self.described)
        for kind, number, blob in blobs_in(
            self.runner.collect("counting values that rules concern", self.over, TaskStage(task))
        ):
            found = unpacked(blob)
            if kind == 1:
                broken[number] += int(found[0][0])
            elif kind == 2:
                missing[here.columns[number]] += int(found[0][0])
            else:
                positions.setdefault(here.columns[number], []).append((found[0], found[1]))
        none = np.zeros(0, dtype=np.int64)
        histograms = [
            Histogram(*merged_counts(positions.get(name, [(none, none)])))
            if here.ruled(name)
            else self.records.histogram(name, described.lattices)
            for name in here.columns
        ]
        facts = {rule.words: broken[number] for number, rule in here.book.numbered}
        return ColumnsInParts(here, histograms, missing, {"rules_broken": facts})

    def counts(self, what: str, count: Callable[[Described], Sequence[Integers]]) -> list[Integers]:
        """Tables of counts over all records. Private."""
        task = partial(counted, reading=self.records.reading, described=self.described, count=count)
        found: dict[int, Integers] = {}
        for _, part, blob in blobs_in(
            self.runner.collect(what, self.over, TaskStage(task, 1), TaskStage(summed))
        ):
            found[part] = unpacked(blob)[0].astype(np.int64)
        if not found:
            # no record takes part: the tables are those of an empty table
            return [table.ravel() for table in count(self.described)]
        return [found[part] for part in sorted(found)]

    def facts(self, **more: Any) -> dict[str, Any]:
        """Private facts: the number of clipped values, and other facts."""
        described = self.prepared.described
        clipped = {}
        for name in described.columns:
            lattice = described.lattices[name]
            ends = float(lattice.lo), float(lattice.hi)
            clipped[name] = self.records.outside(described.attribute(name), *ends, described.kept)
        return {"values_clipped": clipped, **more}

    def heavy_counts(
        self, heavy: Mapping[str, Sequence[int]]
    ) -> dict[tuple[int, int], tuple[Integers, Integers]]:
        """For a column's number and each heavy position: runs of rows, with the number of records in each. Private."""
        counts: dict[tuple[int, int], dict[int, int]] = {}
        if not heavy:
            return {}
        task = partial(
            heavy_rows, reading=self.records.reading, described=self.described, heavy=heavy, size=RUN
        )
        for _, part, blob in blobs_in(
            self.runner.collect("counting heavy values", self.over, TaskStage(task))
        ):
            (position,), runs, many = unpacked(blob)
            mine = counts.setdefault((part, int(position)), {})
            for run, count in zip(runs.tolist(), many.tolist(), strict=True):
                mine[run] = mine.get(run, 0) + count
        return {
            key: (
                np.array(sorted(found), dtype=np.int64),
                np.array([found[run] for run in sorted(found)], dtype=np.int64),
            )
            for key, found in counts.items()
        }


def cluster_facts(name: str, sizes: Integers) -> dict[str, Any]:
    """Facts about the clusters of a column for the internal report."""
    return {
        "columns": [name],
        "count": sizes.size,
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
    }
