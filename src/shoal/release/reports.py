"""Internal reports of releases that are made or read in parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from shoal.columns import MISSING_VALUE, Attribute, Schema
from shoal.display import internal
from shoal.engines import LocalRunner, Runner, TaskStage, batch_of, blobs_in
from shoal.errors import CancelledError, InputError, ShoalError
from shoal.evaluation import (
    MOST_ROWS,
    SAMPLE,
    BatchReading,
    CountedColumn,
    CountingPlan,
    Cut,
    DomainParts,
    Evaluation,
    Grouping,
    Numbers,
    RiskFigures,
    Side,
    Standardisation,
    TextCounts,
    Values,
    check_in_parts,
    count_groups,
    count_together,
    count_values,
    evaluate_in_parts,
    some_rows,
    unmatched,
)
from shoal.io import ROW, Table, frozen
from shoal.numbers import Floats, Integers
from shoal.progress import Progress, silent
from shoal.release.measure import evaluated
from shoal.report import (
    ColumnRange,
    CountedTable,
    Findings,
    OrderedMarginal,
    Subject,
    attacked,
    bundle_page,
    check_original,
    comparison,
    disclosed,
    of_release,
    sampled,
)
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.release.protection import Release


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A table as the report pages need it.

    Attributes:
        table: its columns, without records; answers come from the counts.
        attacked: the rows for the attacks, None where these were not requested.
        left_out: columns with more distinct values than are counted.
    """

    table: Table
    attacked: Table | None
    left_out: tuple[str, ...]


def shown(side: Side, attributes: Sequence[Attribute], tell: Progress, *, together: bool) -> Shown:
    """Count what pages show of some columns.

    Args:
        together: also correlations, and a sample of rows for joint figures; two passes more.
    """
    asked = [
        CountedColumn(one.name, one, one.kind_facts.ordered, not one.kind_facts.ordered) for one in attributes
    ]
    values = count_values(side, asked, tell)
    left_out = tuple(
        name
        for name, found in values.columns.items()
        if isinstance(found, TextCounts) and found.counts is None
    )
    asked = [one for one in asked if one.name not in left_out]
    ordered = [one for one in asked if one.ordered]
    empty = side.table()
    rows, attacked = empty, None
    related = np.empty((0, 0))
    if together:
        related = _correlations(side, ordered, values, tell)
        rows, attacked = _samples(side, [one.name for one in asked], tell)
    marginals, names = {}, {}
    for one in asked:
        found = values.columns[one.name]
        if isinstance(found, Numbers):
            marginals[one.name] = _marginal(found)
        else:
            counts = Counter(found.counts or {})
            if found.missing:
                counts[MISSING_VALUE] += found.missing
            names[one.name] = counts
    source = CountedTable(values.n, marginals, names, (tuple(one.name for one in ordered), related), rows)
    return Shown(replace(empty, records=source), attacked, left_out)


def _marginal(found: Numbers) -> OrderedMarginal:
    facts = found.facts
    ends = (
        None if facts.low is None or facts.high is None else ColumnRange(facts.low, facts.high, facts.whole)
    )
    return OrderedMarginal(found.distribution, facts.moments, ends, facts.missing)


def _correlations(side: Side, ordered: Sequence[CountedColumn], values: Values, tell: Progress) -> Floats:
    if len(ordered) < 2:
        return np.full((len(ordered), len(ordered)), np.nan)
    scales = {}
    for place, one in enumerate(ordered):
        found = values.columns[one.name]
        assert isinstance(found, Numbers)
        scales[place] = Standardisation.of(found)
    # categories are not needed: one part is enough
    cuts = tuple(Cut(one, DomainParts(0.0, 1.0, 1)) for one in ordered)
    plan = CountingPlan(cuts, scales, {}, pairs=False)
    return count_together(side, plan, tell).products.correlations()


def picked_rows(
    batches: Iterator[pa.RecordBatch], reading: BatchReading, names: Sequence[str], wanted: Integers
) -> Iterator[pa.RecordBatch]:
    """The rows with the given numbers, as they are read."""
    import pyarrow as pa

    for table, rows in reading.parts(batches):
        places = np.searchsorted(wanted, rows)
        mine = np.flatnonzero(wanted[np.minimum(places, wanted.size - 1)] == rows)
        if mine.size:
            few: pa.Table = table.rows(mine).frame.select(list(names)).to_arrow()
            few = few.append_column(ROW, pa.array(rows[mine]))
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, few.schema) as writer:
                writer.write_table(few)
            yield batch_of([(0, 0, sink.getvalue().to_pybytes())])


def _samples(side: Side, names: Sequence[str], tell: Progress) -> tuple[Table, Table]:
    """The sample of rows for joint figures, and the rows for the attacks."""
    import pyarrow as pa

    n = side.runner.rows
    together, attacked = sampled(n), some_rows(n, SAMPLE) if n > MOST_ROWS else np.arange(n)
    wanted = np.union1d(together, attacked)
    task = partial(picked_rows, reading=side.reading, names=tuple(names), wanted=wanted)
    pieces = [
        pa.ipc.open_stream(blob).read_all()
        for _, _, blob in blobs_in(side.collect("taking a sample of rows", names, tell, TaskStage(task)))
    ]
    whole = pa.concat_tables(pieces).sort_by(ROW)
    rows, frame = whole[ROW].to_numpy(), whole.drop_columns([ROW])
    few = [frame.take(pa.array(np.flatnonzero(np.isin(rows, some)))) for some in (together, attacked)]
    first, second = (Table(nw.from_native(one, eager_only=True), "parquet") for one in few)
    return first, second


_NO_LEVELS: dict[str, float | None] = {"k": None, "l": None, "t_emd": None, "t_ratio": None}


def beside(runner: Runner, path: Path | None = None) -> Runner:
    """A runner of the same kind for other files, or another one for the same files."""
    files: Any = runner.files if path is None else frozen(path)  # type: ignore[attr-defined]
    session = getattr(runner, "session", None)
    if session is None:
        return LocalRunner(files)
    from shoal.engines import SparkRunner

    return SparkRunner(session, files, log=getattr(runner, "_log", None))


def report_in_parts(
    subject: Subject,
    folder: Path,
    runners: Sequence[Runner],
    progress: Progress | None = None,
) -> str:
    """The page of `shoal.report.bundle_report`, for a bundle and an original that runners read.

    Args:
        folder: of the bundle, as errors name it.
        runners: of the original, if any, and of the released table.
    """
    tell = progress or silent
    after = Side(runners[-1], BatchReading(_after_steps(subject.schema), subject.na))
    if len(runners) == 1:
        found = shown(after, _of(subject), tell, together=True)
        ((_, groups),) = count_groups(after, [Grouping(subject.columns)], tell)
        source = replace(found.table.records, different=int(groups.sum()))
        found = replace(found, table=replace(found.table, records=source))
        return bundle_page(_with(subject, found))
    before = Side(runners[0], BatchReading(subject.schema, subject.na))
    check_original(subject, before.table(), folder)
    measured = evaluated(runners, subject, na=subject.na, progress=tell)
    return comparison(_findings(subject, before, after, measured, subject.schema, tell))


def _after_steps(schema: Schema) -> Schema:
    """The declarations about a table after its preprocessing steps."""
    return replace(schema, steps=(), before=None)


def _of(subject: Subject) -> list[Any]:
    return [subject.attribute(name) for name in subject.columns]


def _with(subject: Subject, found: Shown, but: Sequence[str] = ()) -> Subject:
    kept = tuple(name for name in subject.columns if name not in (*found.left_out, *but))
    return replace(subject, table=found.table, columns=kept)


def _findings(
    subject: Subject,
    before: Side,
    after: Side,
    measured: Evaluation,
    schema: Schema,
    tell: Progress,
) -> Findings:
    """The findings from both tables together."""
    first, second = (shown(side, _of(subject), tell, together=True) for side in (before, after))
    both = _with(subject, second, first.left_out)
    sides = {"original": before, "released": after}
    of = first.table.n, second.table.n
    assert first.attacked is not None
    assert second.attacked is not None
    risks = attacked(first.attacked, second.attacked, both.columns, progress=tell, of=of)

    def measure(table: Table, keys: Sequence[str], known: Schema, sensitive: Sequence[str]) -> RiskFigures:
        side = sides["original" if table is first.table else "released"]
        try:
            checked = check_in_parts(side, keys, sensitive, known, _NO_LEVELS, tell)
            if checked.disclosure is None:
                raise InputError.saying(checked.told[0])
        except CancelledError:
            raise
        except ShoalError as error:
            # the section is left out, as in memory; here the page gives the reason
            refused.append(Message.of("risk-section-refused", reason=error))
            raise
        return checked.disclosure

    refused: list[Message] = []
    disclosure = disclosed(first.table, both, schema, tell, measure)
    left_out = sorted({*first.left_out, *second.left_out})
    if left_out:
        refused.append(Message.of("names-not-counted-in-parts", columns=left_out))
    told = (*measured.told, *refused)
    return Findings(both, first.table, measured.to_dict(), risks, told, disclosure)


@dataclass(eq=False)
class ReleaseReview:
    """What is computed once an engine has written a release: the content of its pages, and the measures.

    Attributes:
        runner: of the original records.
        evaluate: measures are requested.
        internal: the internal report is requested.
        evaluation: the measures.
    """

    runner: Runner
    evaluate: bool
    internal: bool
    tell: Progress
    evaluation: Evaluation | None = None

    def __call__(self, release: Release, written: Path) -> tuple[Release, Findings | None]:
        """The release with a table that pages can show, and what the internal report needs."""
        after = Side(beside(self.runner, written), BatchReading(_after_steps(release.schema)))
        attributes = [release.schema[name] for name in release.columns]
        if not (self.evaluate or self.internal):
            return replace(release, data=shown(after, attributes, self.tell, together=False).table), None
        declared = release.declared
        dropping = tuple(
            attribute for attribute in attributes if (attribute.missing or declared.missing) == "drop"
        )
        reading = BatchReading(release.schema, declared.na, declared.types, declared.file, dropping)
        before = Side(beside(self.runner), reading)
        pair = unmatched(before.table(), after.table(), release)
        measured = evaluate_in_parts(before, after, pair, None, self.tell)
        self.evaluation = replace(measured, told=(*measured.told, Message("rows-not-kept-in-parts")))
        if not self.internal:
            return replace(release, data=shown(after, attributes, self.tell, together=False).table), None
        subject = of_release(release)
        found = _findings(
            subject, before, after, self.evaluation, release.declared.schema or subject.schema, self.tell
        )
        return replace(release, data=found.subject.table), found
