"""Excel workbooks: a sheet comes in, columns leave; columns come back as a sheet that runs nothing."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError, closest, needs_extra
from shoal.io.conventions import Cells, Conventions, cells_of
from shoal.io.limits import check_zip
from shoal.io.mixed_cells import column_of
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa

_ERRORS = ("#N/A", "#NULL!", "#NAME?", "#REF!", "#DIV/0!", "#VALUE!", "#NUM!")
_MOST_ROWS, _MOST_COLUMNS = 1_048_575, 16_384
# the earliest moment that an archive can hold
_EPOCH = (1980, 1, 1, 0, 0, 0)


def library() -> Any:
    """openpyxl, or one line that says how to get it."""
    with needs_extra("excel", "Excel files need"):
        import openpyxl
    return openpyxl


def read_excel(path: Path, told: Conventions) -> tuple[pa.Table, dict[str, Message], Conventions]:
    """Columns of the sheet, the first row or the one that was told holding their names; doubts about mixed columns.

    Raises:
        InputError: no workbook, several sheets and none named, an error or a formula without a value in a cell.
    """
    import pyarrow as pa

    library()
    check_zip(path)
    cells = (
        Cells((told.header_row or 1) - 1, 0, None, None, "") if told.range is None else cells_of(told.range)
    )
    sheet, rows = _rows(path, told.sheet, cells, values=True)
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()
    if not rows:
        if told.range is not None:
            raise InputError("range-empty", path=path, sheet=sheet, range=told.range)
        if told.header_row is not None:
            raise InputError("sheet-empty-from-row", path=path, sheet=sheet, row=told.header_row)
        raise InputError("empty-row-names-least-row-needed", path=path, sheet=sheet)
    width = max(
        max((place + 1 for place, cell in enumerate(row) if cell is not None), default=0) for row in rows
    )
    rows = [[*row[:width], *[None] * (width - len(row))] for row in rows]
    _check_formulas(path, sheet, rows, cells)
    names = ["" if cell is None else str(cell) for cell in rows[0]]
    columns, doubts = [], {}
    for place, name in enumerate(names):
        column, doubt = column_of(name, [row[place] for row in rows[1:]])
        columns.append(column)
        if doubt is not None:
            doubts[name] = doubt
    return pa.table(columns, names=names), doubts, told


@contextmanager
def _workbook(path: Path, *, values: bool) -> Iterator[Any]:
    """The workbook, with the values or with the formulas of its cells."""
    openpyxl = library()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(path, read_only=True, data_only=values, keep_links=False)
    except InputError:
        raise
    except Exception as error:  # a broken workbook breaks in the parsers of several libraries
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise InputError("cannot-read-excel", path=path, reason=reason) from None
    try:
        yield book
    finally:
        book.close()


def _rows(path: Path, wanted: str | None, cells: Cells, *, values: bool) -> tuple[str, list[list[Any]]]:
    """The title of the sheet, and its rows inside the cells that hold the table."""
    with _workbook(path, values=values) as book:
        names = [sheet.title for sheet in book.worksheets]
        if wanted is None and len(names) > 1:
            raise InputError("several-sheets", path=path, count=len(names), allowed=tuple(names[:8]))
        if wanted is not None and wanted not in names:
            raise InputError("has-no-sheet", path=path, found=wanted, hint=closest(wanted, names))
        if not names:
            raise InputError("no-sheet-cells", path=path)
        sheet = book[wanted or names[0]]
        try:
            # a file may say that it is smaller than it is
            sheet.reset_dimensions()
            rows = [list(row) for row in sheet.iter_rows(values_only=True)]
            last_row = None if cells.bottom is None else cells.bottom + 1
            last_column = None if cells.right is None else cells.right + 1
            return sheet.title, [row[cells.left : last_column] for row in rows[cells.top : last_row]]
        except Exception as error:
            reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            raise InputError("cannot-read-excel", path=path, reason=reason) from None


def _check_formulas(path: Path, sheet: str, rows: list[list[Any]], cells: Cells) -> None:
    """Refuse cells that hold an error, and formulas of which the file keeps no value."""
    for number, row in enumerate(rows):
        for place, cell in enumerate(row):
            if isinstance(cell, str) and cell in _ERRORS and cell != "#N/A":
                wrong = _cell(cells.top + number, cells.left + place)
                raise InputError("cell-sheet-holds-error", path=path, place=wrong, sheet=sheet, found=cell)
            if cell == "#N/A":
                row[place] = None
    with zipfile.ZipFile(path) as archive:
        parts = [name for name in archive.namelist() if re.match(r"xl/worksheets/[^/]+\.xml$", name)]
        if not any(b"<f" in archive.read(part) for part in parts):
            return
    _, formulas = _rows(path, sheet, cells, values=False)
    for number, row in enumerate(rows):
        for place, cell in enumerate(row):
            there = (
                formulas[number][place] if number < len(formulas) and place < len(formulas[number]) else None
            )
            if cell is None and isinstance(there, str) and there.startswith("="):
                named = _cell(cells.top + number, cells.left + place)
                raise InputError(
                    "cell-sheet-holds-formula-without-value", path=path, place=named, sheet=sheet
                )


def _cell(row: int, place: int) -> str:
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return f"{letters}{row + 1}"


def check_size(names: Any) -> None:
    """Refuse, before any work is done, what a sheet cannot hold."""
    library()
    if len(names) > _MOST_COLUMNS:
        raise InputError("sheet-too-many-columns", most=_MOST_COLUMNS, found=len(names))


def write_excel(table: pa.Table, path: Path, conventions: Conventions, formats: dict[str, str]) -> None:
    """One sheet; texts are texts, whatever sign they begin with, and nobody can tell when it was written."""
    from shoal.errors import OutputError

    if table.num_rows > _MOST_ROWS:
        raise OutputError("sheet-most-rows", most=_MOST_ROWS)
    openpyxl = library()
    from openpyxl.cell import WriteOnlyCell

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet(_title(conventions.sheet))

    def cell(value: Any, form: str | None = None) -> Any:
        made = WriteOnlyCell(sheet, value=value)
        if isinstance(value, str):
            made.data_type = "s"
        elif form is not None and isinstance(value, date):
            made.number_format = form
        return made

    names = table.column_names
    sheet.append([cell(name) for name in names])
    forms = [formats.get(name, conventions.date_format) for name in names]
    for batch in table.to_batches(max_chunksize=1 << 14):
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            sheet.append([cell(_storable(value), form) for value, form in zip(row, forms, strict=True)])
    book.save(path)
    _without_clock(path)


def _title(sheet: str | None) -> str:
    return re.sub(r"[\[\]:*?/\\]", "_", sheet or "data")[:31] or "data"


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        # control characters have no place in XML
        return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "\ufffd", value)
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.isoformat()
    return value


def _without_clock(path: Path) -> None:
    """The archive again, without the moments at which its parts were written."""
    aside = path.with_name(path.name + ".part")
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as after:
        for part in before.infolist():
            content = before.read(part)
            if part.filename == "docProps/core.xml":
                content = re.sub(
                    rb"(<dcterms:\w+[^>]*>)[^<]*(</dcterms)", rb"\g<1>1980-01-01T00:00:00Z\g<2>", content
                )
                content = re.sub(rb"(<dc:creator>)[^<]*(</dc:creator>)", rb"\g<1>\g<2>", content)
            after.writestr(zipfile.ZipInfo(part.filename, _EPOCH), content, zipfile.ZIP_DEFLATED)
    aside.replace(path)
