"""A Parquet file comes in, a bundle leaves, and only about one column of work is in memory at a time.

Methods that treat every attribute by itself need no more than that. Columns go through temporary files in input
order; at the end one common random row order is applied to each. Noise is drawn in the same order as in
`shoal.protect`, so the same seed gives the same table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.io import read_columnwise
from shoal.progress import Progress, silent
from shoal.release.bundle import check_output, staged, write_documents
from shoal.release.protect import Preparation, Release

# rows per row group of the output, and per piece of work on a column
_ROWS = 1 << 20


def carry_out_columnwise(
    prepared: Preparation,
    folder: Path,
    internal: Path | None = None,
    progress: Progress | None = None,
    mark: str = "",
) -> Release:
    """Spend the budget of a prepared release column by column and write its bundle.

    The release has no aligned rows, and its `data` is the path of the written file.

    Guarantee:
        The same as `shoal.protect` with the same arguments.

    Cost:
        Time of one sort per attribute; memory for about four arrays of n words, whatever the number of columns;
        disk for twice the released columns beside `folder`.
    """
    if obstacle := not_by_column(prepared):
        raise OptionError(f"this cannot be done column by column: {obstacle}; use shoal.protect.")
    check_output(folder, internal)
    report = progress or silent
    with contextlib.ExitStack() as undo, staged(folder) as aside:
        work = aside / ".columns"
        work.mkdir()
        internal_facts = _mask(prepared, work, report)
        _shuffle(prepared, work, report)
        _assemble(prepared, work, aside / "data.parquet", report)
        work.rmdir()
        release = prepared.release(
            data=read_columnwise(aside / "data.parquet"), aligned=None, partitions=[], internal=internal_facts
        )
        write_documents(release, aside, undo, internal, None, prepared.described.table, report, mark)
    return replace(release, data=folder / "data.parquet")


def not_by_column(prepared: Preparation) -> str:
    """Why a release needs more than one column in memory, in words; empty if it does not."""
    if not prepared.method.columnwise:
        return f"method '{prepared.method.name}' looks at several columns together"
    if not prepared.described.plain:
        return "nominal columns and missing values that can be released as such are protected in memory"
    if prepared.rakes:
        return "weights are raked to margins of several columns"
    return ""


def _mask(prepared: Preparation, work: Path, report: Progress) -> dict[str, Any]:
    """Protect one column after the other; values go to disk in input order, private facts are returned."""
    described = prepared.described
    facts: dict[str, Any] = {"values_clipped": {}, "clusters": []}
    for number, attribute in enumerate(described.attributes):
        report("protecting columns", number, len(described.attributes))
        alone = replace(described, attributes=(attribute,))
        rebuilt = prepared.mechanism.run(prepared.method, alone, prepared.plan, prepared.source, silent, None)
        rebuilt.values[attribute.name].tofile(work / f"{number}.masked")
        facts["values_clipped"] |= rebuilt.internal["values_clipped"]
        facts["clusters"] += rebuilt.internal["clusters"]
        # before the next column comes in, not when its result takes this one's name
        del rebuilt
    report("protecting columns", len(described.attributes), len(described.attributes))
    return facts


def _shuffle(prepared: Preparation, work: Path, report: Progress) -> None:
    """Put every column into the released row order and storage type."""
    names = prepared.described.columns
    order: NDArray[np.int64] | None = None
    for number, name in enumerate(names):
        report("shuffling rows", number, len(names))
        if order is None or not prepared.method.link:
            order = prepared.source.permutation(prepared.described.n)
        values = np.fromfile(work / f"{number}.masked", dtype=np.float64)
        with (work / f"{number}.stored").open("wb") as file:
            for start in range(0, order.size, _ROWS):
                piece = values[order[start : start + _ROWS]]
                prepared.described.stored(name, piece, clip=prepared.method.clip).tofile(file)
        (work / f"{number}.masked").unlink()
    report("shuffling rows", len(names), len(names))


def _assemble(prepared: Preparation, work: Path, target: Path, report: Progress) -> None:
    """Write the released columns as one Parquet file, row group by row group."""
    import pyarrow as pa
    from pyarrow import parquet

    described = prepared.described
    names = described.columns
    frame: pa.Table = described.table.frame.to_native()
    # only names and types: frame libraries hide index and origin in a file's metadata
    schema = pa.schema([pa.field(name, frame.schema.field(name).type) for name in names])
    pieces = [
        _pieces(
            work / f"{number}.stored", described.stored(name, np.empty(0), clip=prepared.method.clip).dtype
        )
        for number, name in enumerate(names)
    ]
    with parquet.ParquetWriter(target, schema) as writer:
        for done, group in enumerate(zip(*pieces, strict=True)):
            report("writing", done * _ROWS, described.n)
            arrays = [pa.array(piece).cast(field.type) for piece, field in zip(group, schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    for number in range(len(names)):
        (work / f"{number}.stored").unlink()


def _pieces(path: Path, dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    with path.open("rb") as file:
        while (piece := np.fromfile(file, dtype=dtype, count=_ROWS)).size:
            yield piece
