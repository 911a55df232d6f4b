"""One column of a table at a time: a prepared release of a Parquet table comes in, its written data leave.

Methods that treat every attribute by itself, but need all values of it at once, are done so on one machine. Columns go
through files in input order; at the end one common random row order is applied to each. Noise is drawn in the same
order as in memory, so the same seed gives the same table, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.progress import Progress, silent
from shoal.release.protect import Preparation

if TYPE_CHECKING:
    import pyarrow as pa

# rows per row group of the output, and per piece of work on a column
_ROWS = 1 << 20


def not_by_column(prepared: Preparation) -> str:
    """Why a release needs more than one column in memory, in words; empty if it does not."""
    described = prepared.described
    if not described.plain:
        return "nominal columns and missing values that are released as such are protected in memory"
    weight = described.schema.weight if described.schema is not None else None
    if weight is not None:
        return f"the weights in column '{weight.name}' are looked at beside every other column"
    return ""


def write_by_column(
    prepared: Preparation, work: Path, target: Path, schema: pa.Schema, tell: Progress
) -> dict[str, Any]:
    """Spend the budget of a prepared release column by column and write its data; private facts are returned.

    Guarantee:
        The same as `shoal.protect` with the same arguments.

    Cost:
        Time of one sort per attribute; memory for some arrays of n words, whatever the number of columns; disk for
        twice the released columns in `work`, which holds private values.
    """
    facts, unchanged = _masked(prepared, work, tell)
    _shuffled(prepared, work, unchanged, tell)
    _assembled(prepared, work, target, schema, tell)
    return facts


def _masked(prepared: Preparation, work: Path, tell: Progress) -> tuple[dict[str, Any], frozenset[str]]:
    """Protect one column after the other: values go to disk in input order."""
    described = prepared.described
    facts: dict[str, Any] = {}
    unchanged: frozenset[str] = frozenset()
    for number, attribute in enumerate(described.attributes):
        tell("protecting columns", number, len(described.attributes))
        alone = replace(described, attributes=(attribute,))
        rebuilt = prepared.mechanism.run(prepared.method, alone, prepared.plan, prepared.source, silent, None)
        rebuilt.values[attribute.name].tofile(_masked_file(work, number))
        facts = _joined(facts, rebuilt.internal)
        unchanged |= rebuilt.unchanged
        # before the next column comes in, not when its result takes this one's name
        del rebuilt
    tell("protecting columns", len(described.attributes), len(described.attributes))
    return facts, unchanged


def _joined(facts: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Facts about some columns and about another one, as facts about all of them.

    >>> _joined({"clusters": [1], "repairs": {"a": 1}}, {"clusters": [2], "repairs": {"a": 2, "b": 0}, "of x": 3})
    {'clusters': [1, 2], 'repairs': {'a': 3, 'b': 0}, 'of x': 3}
    """
    found = dict(facts)
    for name, value in more.items():
        if name not in found:
            found[name] = value
        elif isinstance(value, Mapping):
            found[name] = _joined(found[name], value)
        else:
            found[name] = found[name] + value
    return found


def _shuffled(prepared: Preparation, work: Path, unchanged: frozenset[str], tell: Progress) -> None:
    """Put every column into the released row order and storage type."""
    described, method = prepared.described, prepared.method
    order: NDArray[np.int64] | None = None
    for number, name in enumerate(described.columns):
        tell("shuffling rows", number, len(described.columns))
        if order is None or not method.link:
            order = prepared.source.permutation(described.n)
        values = np.fromfile(_masked_file(work, number), dtype=np.float64)
        with _stored_file(work, number).open("wb") as file:
            for start in range(0, order.size, _ROWS):
                piece = values[order[start : start + _ROWS]]
                described.stored(name, piece, clip=method.clip, computed=name not in unchanged).tofile(file)
        _masked_file(work, number).unlink()
    tell("shuffling rows", len(described.columns), len(described.columns))


def _assembled(prepared: Preparation, work: Path, target: Path, schema: pa.Schema, tell: Progress) -> None:
    """Write the released columns as one Parquet file, row group by row group."""
    import pyarrow as pa
    from pyarrow import parquet

    described, method = prepared.described, prepared.method
    pieces = []
    for number, name in enumerate(described.columns):
        dtype = described.stored(name, np.empty(0), clip=method.clip).dtype
        pieces.append(_pieces(_stored_file(work, number), dtype))
    with parquet.ParquetWriter(target, schema) as writer:
        for done, group in enumerate(zip(*pieces, strict=True)):
            tell("writing rows", done * _ROWS, described.n)
            arrays = [pa.array(piece).cast(field.type) for piece, field in zip(group, schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    for number in range(len(described.columns)):
        _stored_file(work, number).unlink()


def _masked_file(work: Path, number: int) -> Path:
    return work / f"{number}.masked"


def _stored_file(work: Path, number: int) -> Path:
    return work / f"{number}.stored"


def _pieces(path: Path, dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    with path.open("rb") as file:
        while (piece := np.fromfile(file, dtype=dtype, count=_ROWS)).size:
            yield piece
