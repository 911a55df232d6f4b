"""Run a prepared release on an engine: choose the stages of its method and finish the bundle."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw

from shoal.columns import Described
from shoal.engines import (
    WORK,
    Delivered,
    Elsewhere,
    Runner,
    TaskStage,
    check_positions,
    give_up,
    remove_abandoned,
)
from shoal.errors import OptionError, OutputError
from shoal.io import Table, check_output, parquet_rows, read_columnwise, staged
from shoal.mechanisms import Method, check_alike
from shoal.privacy import MODELS, Measurements
from shoal.progress import Progress
from shoal.release.bundle import write_documents
from shoal.release.in_parts.tasks import assembled
from shoal.release.protection import Preparation, Release
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.release.in_parts.work import Made
    from shoal.report import Findings

    Look = Callable[[Release, Path], tuple[Release, Findings | None]]


# the advice where a table must be in memory: for files, and for a Spark frame, which only the Spark engine accepts
IN_MEMORY = Message("in-memory")
COLLECTED = Message("collected")
# optimal-dp holds a column in rank order on the driver
MOST_OPTIMAL = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseOutcome:
    """What is known of a release once it is written.

    Attributes:
        internal: private facts for the internal report.
        conditions: measured quantities, where they follow from published intermediate results.
        measurements: the noisy numbers behind the rows, if the method keeps them.
    """

    internal: dict[str, Any]
    conditions: tuple[Message, ...] = ()
    measurements: Measurements | None = None


def table_elsewhere(runner: Runner, *, counted: bool, na: tuple[str, ...] = ()) -> Table:
    """The table of a runner: its columns and types, and the object that computes facts about its records."""
    frame = nw.from_native(runner.schema.empty_table(), eager_only=True)
    inferred = frozenset(frame.columns)
    return Table(frame, "parquet", inferred=inferred, records=Elsewhere(runner, counted, na=na))


def refusal(method: Method, in_memory: Message = IN_MEMORY) -> Message | None:
    """Why a method cannot run on an engine, and the nearest one that can; None if it can.

    Args:
        in_memory: how the table gets into memory, `IN_MEMORY` or `COLLECTED`.
    """
    if not method.in_parts:
        code = "strata-not-in-parts" if method.strata else "method-not-in-parts"
        return Message.of(code, method=method.name, nearest=_nearest(method), in_memory=in_memory)
    if method.not_in_parts:
        return Message.of(method.not_in_parts, method=method.name, in_memory=in_memory)
    return None


def _nearest(method: Method) -> Message:
    """Methods with a similar claim that run on engines."""
    without: dict[str, Any] = {"strata": None}
    if method.strata and replace(method, **without).in_parts:
        return Message("it-without-strata")
    of_noise = any("dp" in case.model for case in method.claims.cases)
    return Message.of("one-of-methods", methods=("ranking-dp", "tree-dp") if of_noise else ("swap-ranking",))


def check_engine(prepared: Preparation, in_memory: Message = IN_MEMORY) -> None:
    """Refuse what would fail after the budget is used; `in_memory` as for `refusal`."""
    described, method = prepared.described, prepared.method
    if prepared.rakes:
        raise OptionError("refused-in-parts", reason=Message.of("raked-not-in-parts", in_memory=in_memory))
    provenance = described.provenance
    of_the_table = MODELS[prepared.statement.model].of_the_table
    one_row_each = provenance.rows_declared and provenance.rows_per_unit == 1
    if of_the_table and provenance.unit is not None and not one_row_each:
        raise OptionError(
            "method-counts-persons-group-values-takes",
            column=provenance.unit,
            method=method.name,
            unit=provenance.unit,
            in_memory=in_memory,
        )
    if method.in_parts != "by_record":
        check_positions(described.lattices, described.n)
    for name in described.table.records.reading.separating:
        missing = described.table.records.missing_of(name)
        if missing and not method.output.linked:
            raise OptionError("column-missing-values-stay-missing-link", column=name, in_memory=in_memory)
        if missing:
            check_alike(described.n - missing, (), method, empty=False)
            check_alike(missing, (name,), method, empty=True)
    if method.partition == "optimal" and described.n > MOST_OPTIMAL:
        raise OptionError(
            "method-finds-clusters-machine-from-up",
            method=method.name,
            most_optimal=MOST_OPTIMAL,
            n=described.n,
        )


def carry_out_on_engine(
    prepared: Preparation,
    runner: Runner,
    out: Path | str,
    internal: Path | None,
    tell: Progress,
    look: Look,
) -> tuple[Release, Delivered]:
    """Spend the budget of a prepared release on an engine and write its bundle, the statement last.

    The release has no aligned rows; its `data` is the path of the written file, or a frame that reads it. `look`
    computes, once the data are written, what the pages show and the internal report needs. A bundle for another
    file system is finished here first.

    Guarantee:
        The same as `shoal.protect` with the same arguments.
    """
    folder = runner.made_in(out)
    check_output(folder, internal)
    remove_abandoned(folder)
    rights = 0o755 if folder == out else 0o700
    with contextlib.ExitStack() as undo:
        with staged(folder, rights) as aside, runner.working_in(aside / WORK):
            written, made = write_release(prepared, runner, aside, tell)
            facts = made.internal
            rows = facts.get("rows_released", prepared.described.n)
            if (there := parquet_rows(written)) != rows:
                raise OutputError("rows-were-written", there=there, rows=rows)
            release = prepared.drawn(made.conditions, rows).release(
                data=read_columnwise(written),
                aligned=None,
                partitions=[],
                internal=facts,
                measurements=made.measurements,
            )
            seen, found = look(release, written)
            write_documents(seen, aside, undo, internal, None, None, tell, found)
            give_up(aside / WORK)
        delivered = runner.delivered(folder / written.name, out)
    return replace(release, data=delivered.data, kept=None), delivered


def write_release(
    prepared: Preparation, runner: Runner, folder: Path, tell: Progress
) -> tuple[Path, ReleaseOutcome]:
    """Spend the budget of a prepared release and write its data to a folder; return what was written, with facts.

    Guarantee:
        The same as `shoal.protect` with the same arguments, whatever tasks the runner runs again.
    """
    # imports every mechanism, which takes a while
    from shoal.release.in_parts import methods

    records = prepared.described.table.records
    runner.watched(tell)
    way: Callable[[methods.Work], Made] = getattr(methods, prepared.method.in_parts)
    made = way(methods.Work(prepared, runner, records, tell))
    described = prepared.described.without_records()
    schema = released_schema(described, prepared.method)
    last = TaskStage(
        partial(
            assembled,
            described=described,
            method=prepared.method,
            schema=schema,
            unchanged=made.unchanged,
            gapped=records.reading.separating,
        )
    )
    written = runner.write("writing rows", made.over, *made.stages, last, schema=schema, folder=folder)
    return written, ReleaseOutcome(made.internal, made.conditions, made.measurements)


def released_schema(described: Described, method: Method) -> pa.Schema:
    """Names and types of the released columns: frame libraries hide index and origin in a file's metadata."""
    import pyarrow as pa

    frame: pa.Table = described.table.frame.to_native()
    return pa.schema([pa.field(name, frame.schema.field(name).type) for name in described.columns])
