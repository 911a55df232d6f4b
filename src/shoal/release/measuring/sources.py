"""What pages show of a table that is elsewhere: a side comes in, the table leaves, with answers instead of records.

Marginals and correlations are those of all records. Columns are looked at together, and attacked, on the same public
sample of rows as a table in memory is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np

from shoal.columns.attribute import MISSING_VALUE, Attribute
from shoal.display import internal
from shoal.evaluation.excerpt import MOST_ROWS, SAMPLE, some_rows
from shoal.evaluation.utility import Parts
from shoal.io import Table
from shoal.io.binary_files import ROW
from shoal.progress import Progress
from shoal.release.engines.blobs import batch_of, blobs_in
from shoal.release.engines.stages import Stage
from shoal.release.measuring.side import Reading, Side
from shoal.release.measuring.tally import Floats, Integers
from shoal.release.measuring.together import Cut, Plan, Scale, count_together
from shoal.release.measuring.values import Asked, Names, Numbers, Values, count_values
from shoal.report.source import Counted, Ends, Marginal, sampled

if TYPE_CHECKING:
    import pyarrow as pa


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A table that pages can show.

    Attributes:
        table: its columns, without a record; answers come from what was counted.
        attacked: the rows that attacks take, None where they were not asked for.
        left_out: columns with more names than are counted.
    """

    table: Table
    attacked: Table | None
    left_out: tuple[str, ...]


def shown(side: Side, attributes: Sequence[Attribute], tell: Progress, *, together: bool) -> Shown:
    """Count what pages show of some columns.

    Args:
        together: also correlations, and rows for what is looked at on a sample; two passes more.
    """
    asked = [Asked(one.name, one, one.kind_facts.ordered, not one.kind_facts.ordered) for one in attributes]
    values = count_values(side, asked, tell)
    left_out = tuple(
        name for name, found in values.columns.items() if isinstance(found, Names) and found.counts is None
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
    source = Counted(values.n, marginals, names, (tuple(one.name for one in ordered), related), rows)
    return Shown(replace(empty, records=source), attacked, left_out)


def _marginal(found: Numbers) -> Marginal:
    facts = found.facts
    ends = None if facts.low is None or facts.high is None else Ends(facts.low, facts.high, facts.whole)
    return Marginal(found.distribution, facts.moments, ends, facts.missing)


def _correlations(side: Side, ordered: Sequence[Asked], values: Values, tell: Progress) -> Floats:
    if len(ordered) < 2:
        return np.full((len(ordered), len(ordered)), np.nan)
    scales = {}
    for place, one in enumerate(ordered):
        found = values.columns[one.name]
        assert isinstance(found, Numbers)
        scales[place] = Scale.of(found)
    # categories are not wanted: one part is enough
    cuts = tuple(Cut(one, Parts(0.0, 1.0, 1)) for one in ordered)
    plan = Plan(cuts, scales, {}, pairs=False)
    return count_together(side, plan, tell).products.correlations()


def picked_rows(
    batches: Iterator[pa.RecordBatch], reading: Reading, names: Sequence[str], wanted: Integers
) -> Iterator[pa.RecordBatch]:
    """The rows of some numbers, as they are read."""
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
    """The rows that are looked at together, and those that are attacked."""
    import pyarrow as pa

    n = side.runner.rows
    together, attacked = sampled(n), some_rows(n, SAMPLE) if n > MOST_ROWS else np.arange(n)
    wanted = np.union1d(together, attacked)
    task = partial(picked_rows, reading=side.reading, names=tuple(names), wanted=wanted)
    pieces = [
        pa.ipc.open_stream(blob).read_all()
        for _, _, blob in blobs_in(side.collect("taking a sample of rows", names, tell, Stage(task)))
    ]
    whole = pa.concat_tables(pieces).sort_by(ROW)
    rows, frame = whole[ROW].to_numpy(), whole.drop_columns([ROW])
    few = [frame.take(pa.array(np.flatnonzero(np.isin(rows, some)))) for some in (together, attacked)]
    first, second = (Table(nw.from_native(one, eager_only=True), "parquet") for one in few)
    return first, second
