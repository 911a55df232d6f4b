"""A prepared release on an engine: which methods have one, and what becomes of their stages."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw

from shoal.columns.describe import Described
from shoal.errors import OptionError, OutputError
from shoal.io import Table, read_columnwise
from shoal.io.arrow_files import parquet_rows
from shoal.mechanisms.table import ENTRIES
from shoal.method.method import Method
from shoal.method.stages import PARTITIONS
from shoal.progress import Progress
from shoal.release.bundle import check_output, staged, write_documents
from shoal.release.engines.by_column import not_by_column, write_by_column
from shoal.release.engines.local import LocalRunner
from shoal.release.engines.look import Elsewhere, check_positions
from shoal.release.engines.stages import Runner, Stage
from shoal.release.engines.staging import WORK, remove_abandoned
from shoal.release.engines.tasks import assembled
from shoal.release.protect import Preparation, Release

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.release.engines.methods import Made


RAKED = "weights are raked to margins of several columns, which takes the table in memory: use engine=memory."
# optimal-dp holds a column in order of rank on the driver
MOST_OPTIMAL = 1 << 24
# on one machine, which holds a column as a whole
_BY_COLUMN = "by_column"


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What is known of a release once it is written.

    Attributes:
        internal: private facts for the internal report.
        conditions: what was measured in words, where it follows from what was let out on the way.
    """

    internal: dict[str, Any]
    conditions: tuple[str, ...] = ()


def table_elsewhere(runner: Runner, *, counted: bool, na: tuple[str, ...] = ()) -> Table:
    """The table of a runner: its columns and types, and who answers for its records."""
    frame = nw.from_native(runner.schema.empty_table(), eager_only=True)
    return Table(frame, "parquet", records=Elsewhere(runner, counted, na=na))


def way_of(method: Method) -> str:
    """How a method is done on an engine, a function of `methods` or `by_column`; empty where it cannot be done."""
    if method.groups is not None or method.strata:
        return ""
    way = ENTRIES[method.mechanism].in_parts
    if way == _BY_COLUMN:
        return way if method.columnwise else ""
    if way != "stage":
        return way
    return PARTITIONS["alone" if method.stability == "record" else method.partition].in_parts


def by_column(method: Method) -> bool:
    """Whether a method is done one column at a time, which takes the table as a file of this machine."""
    return way_of(method) == _BY_COLUMN


def refusal(method: Method, *, on_cluster: bool) -> str:
    """Why a method has no engine, in words, and the nearest that has; empty if it has one."""
    if way_of(method) and not (on_cluster and by_column(method)):
        return ""
    if method.strata:
        return "groups within strata are made where all rows are: use engine=memory, or leave strata out"
    if by_column(method):
        return (
            f"method '{method.name}' needs all values of a column on one machine, and cannot be distributed exactly: "
            f"use ranking-dp or tree-dp, or engine=local"
        )
    return (
        f"method '{method.name}' looks at the records one after the other, or at all of them at once, and cannot be "
        f"distributed exactly: use ranking-dp or tree-dp, or engine=memory"
    )


def check_engine(prepared: Preparation) -> None:
    """Refuse what would fail once the budget is spent."""
    described, method = prepared.described, prepared.method
    if prepared.rakes:
        raise OptionError(RAKED)
    if by_column(method):
        if obstacle := not_by_column(prepared):
            raise OptionError(
                f"method '{method.name}' is done one column at a time: {obstacle}; use engine=memory."
            )
    elif way_of(method) != "by_record":
        check_positions(described.lattices, described.n)
    if method.partition == "optimal" and described.n > MOST_OPTIMAL:
        raise OptionError(
            f"method '{method.name}' finds its clusters on one machine, from up to {MOST_OPTIMAL:,} rows, and there "
            f"are {described.n:,}: use ranking-dp."
        )


def carry_out_on_engine(
    prepared: Preparation,
    runner: Runner,
    folder: Path,
    internal: Path | None,
    tell: Progress,
    mark: str = "",
    original: Any = None,
) -> Release:
    """Spend the budget of a prepared release on an engine and write its bundle, the statement last.

    The release has no aligned rows; its `data` is the path of the written file, or a frame that reads it.

    Guarantee:
        The same as `shoal.protect` with the same arguments.
    """
    check_output(folder, internal)
    remove_abandoned(folder)
    with contextlib.ExitStack() as undo, staged(folder) as aside, runner.working_in(aside / WORK):
        written, made = write_release(prepared, runner, aside, tell)
        facts = made.internal
        rows = facts.get("rows_released", prepared.described.n)
        if (found := parquet_rows(written)) != rows:
            raise OutputError(f"{found:,} of {rows:,} rows were written: probably a bug, please report.")
        saying = prepared.saying(made.conditions)
        release = saying.release(data=read_columnwise(written), aligned=None, partitions=[], internal=facts)
        write_documents(release, aside, undo, internal, None, original, tell, mark)
        shutil.rmtree(aside / WORK, ignore_errors=True)
    return replace(release, data=runner.released(folder / written.name), kept=None)


def write_release(
    prepared: Preparation, runner: Runner, folder: Path, tell: Progress
) -> tuple[Path, Outcome]:
    """Spend the budget of a prepared release, and write its data into a folder: what was written, and what is known.

    Guarantee:
        The same as `shoal.protect` with the same arguments, whatever tasks the runner runs again.
    """
    if by_column(prepared.method):
        return _written_by_column(prepared, runner, folder, tell)
    # every mechanism comes along, which takes a while
    from shoal.release.engines import methods

    records = prepared.described.table.records
    runner.watched(tell)
    way: Callable[[methods.Work], Made] = getattr(methods, way_of(prepared.method))
    made = way(methods.Work(prepared, runner, records, tell))
    described = prepared.described.without_records()
    schema = released_schema(described, prepared.method)
    last = Stage(
        partial(
            assembled,
            described=described,
            method=prepared.method,
            schema=schema,
            unchanged=made.unchanged,
        )
    )
    written = runner.write("writing rows", made.over, *made.stages, last, schema=schema, folder=folder)
    return written, Outcome(made.internal, made.conditions)


def _written_by_column(
    prepared: Preparation, runner: Runner, folder: Path, tell: Progress
) -> tuple[Path, Outcome]:
    if not isinstance(runner, LocalRunner) or runner.folder is None:
        raise OptionError(f"{refusal(prepared.method, on_cluster=True)}.")
    target = folder / "data.parquet"
    schema = released_schema(prepared.described, prepared.method)
    runner.files.check_unchanged()
    facts = write_by_column(prepared, runner.folder, target, schema, tell)
    # columns were read at different moments
    runner.files.check_unchanged()
    return target, Outcome(facts)


def released_schema(described: Described, method: Method) -> pa.Schema:
    """Names and types of the released columns: frame libraries hide index and origin in a file's metadata."""
    import pyarrow as pa

    frame: pa.Table = described.table.frame.to_native()
    return pa.schema([pa.field(name, frame.schema.field(name).type) for name in described.columns])
