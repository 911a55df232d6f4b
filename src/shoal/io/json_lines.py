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

if TYPE_CHECKING:
    import pyarrow as pa


def read_json_lines(path: Path, packing: str = "") -> tuple[pa.Table, dict[str, str]]:
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
                f"'{path}' is not UTF-8 text, which JSON is: after row {len(rows)} it holds the byte "
                f"0x{error.object[error.start]:02X}."
            ) from None
    columns: dict[str, Any] = {}
    doubts: dict[str, str] = {}
    for name in names:
        columns[name], doubt = column_of(name, [row.get(name) for row in rows])
        if doubt is not None:
            doubts[name] = doubt
    return pa.table(columns), doubts


def _object(path: Path, line: str, row: int) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise InputError(f"'{path}': row {row} has a name twice: correct it.")
        return found

    def refuse(word: str) -> Any:
        raise InputError(
            f"'{path}': row {row} holds {word}, which is no value of JSON: write null for what is missing."
        )

    try:
        found = json.loads(line, object_pairs_hook=once, parse_constant=refuse)
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"'{path}': row {row} is not a JSON object on a line of its own: {str(error).splitlines()[0]}."
        ) from None
    if not isinstance(found, dict):
        raise InputError(f"'{path}': row {row} is not a JSON object, such as {{\"age\": 34}}.")
    for name, value in found.items():
        if isinstance(value, dict | list):
            raise InputError(
                f"'{path}': row {row} holds a list or an object in '{name}': a table has one value per cell, write "
                "them as "
                "columns."
            )
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
