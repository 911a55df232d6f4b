"""JSON lines: a file with one object per line comes in, columns leave; columns come back, one object per row."""

from __future__ import annotations

import io
import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError
from shoal.io.conventions import Conventions
from shoal.io.delimited import _opened, _target
from shoal.io.mixed_cells import column_of
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa


def read_json_lines(path: Path, packing: str = "") -> tuple[pa.Table, dict[str, Message]]:
    """Columns in the order in which their names first occur, and doubts about those that mix kinds of values.

    A name that a line does not have is a missing value there.

    Raises:
        InputError: a line is no flat object; names the row.
    """
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    names: dict[str, None] = {}
    with closing(_opened(path, packing)) as file:
        lines = io.TextIOWrapper(file, "utf-8-sig", newline="\n")
        try:
            for line in lines:
                if line.strip():
                    rows.append(_object(path, line, len(rows) + 1))
                    names.update(dict.fromkeys(rows[-1]))
        except UnicodeDecodeError as error:
            raise InputError(
                "not-utf-8-text-json", row=len(rows), path=path, found=error.object[error.start]
            ) from None
    columns: dict[str, Any] = {}
    doubts: dict[str, Message] = {}
    for name in names:
        columns[name], doubt = column_of(name, [row.get(name) for row in rows])
        if doubt is not None:
            doubts[name] = doubt
    return pa.table(columns), doubts


def _object(path: Path, line: str, row: int) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise InputError("row-name-twice", row=row, path=path)
        return found

    def refuse(word: str) -> Any:
        raise InputError("row-holds-no-value-json", row=row, path=path, found=word)

    try:
        found = json.loads(line, object_pairs_hook=once, parse_constant=refuse)
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            "row-not-json-object-line-own", row=row, path=path, reason=str(error).splitlines()[0]
        ) from None
    if not isinstance(found, dict):
        raise InputError("row-not-json-object-such", row=row, path=path)
    for name, value in found.items():
        if isinstance(value, dict | list):
            raise InputError("row-holds-list-object-table-value", row=row, path=path, column=name)
    return found


def write_json_lines(table: pa.Table, path: Path, conventions: Conventions, packing: str = "") -> None:
    """One object per row; a missing value is null."""
    names = table.column_names
    with _target(path, packing) as file:
        for batch in table.to_batches(max_chunksize=1 << 16):
            columns = [_plain(column) for column in batch.columns]
            for row in zip(*columns, strict=True):
                line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)
                file.write(f"{line}\n".encode())


def _plain(column: Any) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    if pa.types.is_floating(column.type):
        return [None if value != value else value for value in column.to_pylist()]
    return list(column.to_pylist())
