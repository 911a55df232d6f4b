"""Text files with separators (CSV, TSV): a file comes in, columns of texts leave, as it was written.

Nothing is guessed from the records: the encoding is UTF-8 unless it is told, the separator stands in the header, and
a file that could be read in two ways is refused with both.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from shoal.errors import InputError
from shoal.io.conventions import Conventions, python_codec
from shoal.io.limits import Unpacked
from shoal.io.spreadsheets import MARKED
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa

_USUAL_SEPARATORS = ",;\t|"
_WORDS = {
    sign: Message(code)
    for sign, code in ((",", "commas"), (";", "semicolons"), ("\t", "tabs"), ("|", "bars"), (" ", "blanks"))
}
# as much of a file as holds its header
_OPENING = 1 << 20
_LOOKED_AT = 100
_PIECE = 1 << 20
_LONGEST_FIELD = 1 << 17


@dataclass(frozen=True, slots=True)
class _Header:
    names: tuple[str, ...]
    lines: int
    conventions: Conventions


def read_delimited(
    path: Path, told: Conventions, packing: str = "", usual: str | None = None
) -> tuple[pa.Table, Conventions]:
    """Columns of texts, and the conventions that the file was read with.

    Args:
        told: what is known about the file.
        packing: ending of a compressed file.
        usual: the separator that the file's ending stands for.

    Raises:
        InputError: not text, not of that encoding, ragged, or readable in two ways.
    """
    import pyarrow as pa
    from pyarrow import compute
    from pyarrow import csv as arrow_csv

    header = _header(path, told, packing, usual)
    names, found = header.names, header.conventions
    separator, quote = str(found.separator), '"' if found.quote is None else found.quote
    _check_content(path, packing, found, quote, len(names))
    places = [f"column {number}" for number in range(len(names))]
    try:
        with closing(_opened(path, packing)) as file:
            # one thread: reader threads that outlive an error can abort the interpreter
            table = arrow_csv.read_csv(
                pa.PythonFile(file, mode="r"),
                read_options=arrow_csv.ReadOptions(
                    use_threads=False,
                    column_names=places,
                    skip_rows=header.lines,
                    encoding="utf8" if _is_utf8(found.encoding) else python_codec(found.encoding),
                    block_size=1 << 24,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=separator,
                    quote_char=quote or False,
                    newlines_in_values=True,
                    # a blank line is a missing value when there is only one column
                    ignore_empty_lines=len(names) > 1,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(places, pa.string()), null_values=[], strings_can_be_null=False
                ),
            )
    except pa.ArrowException as error:
        if "Empty CSV file" in str(error):
            return pa.table([pa.array([], pa.string()) for _ in names], names=list(names)), found
        raise _unreadable(path, packing, found, quote, len(names), error) from None
    if told.spreadsheet_safe:
        # the apostrophe that was put in front of what looks like a formula is no part of the text
        columns = [compute.replace_substring_regex(column, MARKED, r"\1") for column in table.columns]
        return pa.table(columns, names=[re.sub(MARKED, r"\1", name) for name in names]), found
    return table.rename_columns(list(names)), found


def _opened(path: Path, packing: str) -> IO[bytes]:
    return io.BufferedReader(Unpacked(path, packing), _PIECE) if packing else path.open("rb")


def _is_utf8(encoding: str | None) -> bool:
    return encoding in (None, "utf-8", "utf-8-sig")


def _header(path: Path, told: Conventions, packing: str, usual: str | None) -> _Header:
    """Names, separator and encoding: by what is told and by the header line."""
    with closing(_opened(path, packing)) as file:
        opening = file.read(_OPENING)
    if not opening:
        raise InputError("empty-header-line-least-row-needed", path=path)
    encoding = told.encoding
    if encoding is None:
        if opening.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InputError("looks-like-utf-16-text", path=path)
        if opening.startswith(codecs.BOM_UTF8):
            encoding = "utf-8-sig"
        if b"\0" in opening[:4096]:
            raise InputError("not-text-file", path=path)
    try:
        text = codecs.getincrementaldecoder(python_codec(encoding))().decode(opening)
    except (UnicodeDecodeError, UnicodeError):
        raise _bad_text(path, packing, encoding) from None
    text = text.removeprefix("\ufeff")
    newline = re.search(r"\r\n|\n|\r", text)
    conventions = replace(
        told, encoding=encoding, newline=told.newline or (newline.group() if newline else None)
    )
    skipped = 0
    # what spreadsheets write above the header to say which separator they used
    stated = re.match(r'"?sep=(.)"?(\r\n|\n|\r)', text)
    if stated is not None and told.separator in (None, stated.group(1)):
        conventions = replace(conventions, separator=stated.group(1))
        text, skipped = text[stated.end() :], 1
    above = (told.header_row or 1) - 1
    if above:
        lines = text.splitlines(keepends=True)
        if len(lines) <= above:
            raise InputError("no-row-could-hold-column-names", row=told.header_row, path=path)
        text, skipped = "".join(lines[above:]), skipped + above
    separator = conventions.separator or usual or _separator(path, text, told)
    conventions = replace(conventions, separator=separator)
    quote = '"' if told.quote is None else told.quote
    reader = csv.reader(io.StringIO(text, newline=""), **_dialect(separator, quote))
    try:
        names = next((row for row in reader if row), None)
    except csv.Error as error:
        raise InputError("header-cannot-read", path=path, reason=error) from None
    if names is None:
        raise InputError("holds-nothing-but-empty-lines", path=path)
    if told.quote is None and len(names) > 1 and all(re.fullmatch(r"\s*'.*'\s*", name) for name in names):
        raise InputError("column-names-between-apostrophes", path=path)
    if len(names) == 1 and told.separator is None and usual is None:
        _check_one_column(path, text, names[0])
    return _Header(tuple(names), reader.line_num + skipped, conventions)


def _dialect(separator: str, quote: str) -> dict[str, Any]:
    plain = {"delimiter": separator, "doublequote": True, "strict": True}
    return {**plain, "quotechar": quote} if quote else {**plain, "quoting": csv.QUOTE_NONE, "quotechar": None}


def _separator(path: Path, text: str, told: Conventions) -> str:
    """The usual separator that stands in the header; two of them could each be it."""
    line = text.lstrip("\r\n")
    quote = '"' if told.quote is None else told.quote
    # a separator inside a quoted column name does not count
    bare = re.sub(f"{re.escape(quote)}[^{re.escape(quote)}]*{re.escape(quote)}", "", line) if quote else line
    first = re.split(r"\r\n|\n|\r", bare, maxsplit=1)[0]
    there = [sign for sign in _USUAL_SEPARATORS if sign in first]
    if len(there) > 1:
        # a sign that leaves the rows ragged cannot be it
        there = [sign for sign in there if _parts_alike(text, sign, quote)] or there
    if len(there) > 1:
        ways = (
            Message.of(
                "columns-between", columns=first.count(sign) + 1, signs=_WORDS[sign], sign=_written(sign)
            )
            for sign in there
        )
        way = reduce(lambda one, other: Message.of("one-way-or-another", one=one, other=other), ways)
        raise InputError("can-be-read-as", path=path, way=way)
    return there[0] if there else ","


def _parts_alike(text: str, separator: str, quote: str) -> bool:
    """Whether the first rows have as many fields as the header."""
    lines = text.splitlines(keepends=True)
    complete = lines if len(text) < _OPENING // 4 else lines[:-1]
    reader = csv.reader(complete[: _LOOKED_AT + 1], **_dialect(separator, quote))
    try:
        counts = [len(row) for row in reader if row]
    except csv.Error:
        return False
    return len(set(counts)) == 1


def _written(sign: str) -> str:
    return "tab" if sign == "\t" else sign


def _check_one_column(path: Path, text: str, name: str) -> None:
    """Refuse a header of one name whose signs part every line alike: they may be separators."""
    lines = [line for line in re.split(r"\r\n|\n|\r", text)[: _LOOKED_AT + 1] if line]
    for sign in dict.fromkeys(re.sub(r"[\w\"'.+-]", "", lines[0])):
        count = lines[0].count(sign)
        if sign.isascii() and len(lines) > 1 and all(line.count(sign) == count for line in lines):
            raise InputError(
                "one-column-or-several",
                path=path,
                name=name,
                columns=count + 1,
                signs=_WORDS.get(sign, repr(sign)),
                sign=sign,
            )


def _texts(path: Path, packing: str, encoding: str | None) -> Iterator[str]:
    """The file as text, piece by piece."""
    decoder = codecs.getincrementaldecoder(python_codec(encoding))()
    with closing(_opened(path, packing)) as file:
        while piece := file.read(_PIECE):
            yield decoder.decode(piece)
        yield decoder.decode(b"", True)


def _check_content(path: Path, packing: str, found: Conventions, quote: str, fields: int) -> None:
    """Refuse bytes that are no text of the encoding, and quotes that are not closed."""
    quoted = False
    try:
        for piece in _texts(path, packing, found.encoding):
            quoted = quoted or bool(quote and quote in piece)
    except (UnicodeDecodeError, UnicodeError):
        raise _bad_text(path, packing, found.encoding) from None
    if quoted:
        _check_rows(path, packing, found, quote, fields)


def _check_rows(path: Path, packing: str, found: Conventions, quote: str, fields: int) -> None:
    """Go through all rows strictly; an error names the row."""
    with closing(_opened(path, packing)) as file:
        lines = io.TextIOWrapper(file, python_codec(found.encoding), newline="")
        for _ in range((found.header_row or 1) - 1):
            lines.readline()
        if (first := lines.readline()).removeprefix("\ufeff")[:5].strip('"')[:4] != "sep=":
            # the mark at the beginning belongs to no field
            rows = csv.reader(
                chain([first.removeprefix("\ufeff")], lines), **_dialect(str(found.separator), quote)
            )
        else:
            rows = csv.reader(lines, **_dialect(str(found.separator), quote))
        number = -1
        try:
            for row in rows:
                if row or fields == 1:
                    number += 1
                if row and len(row) != fields:
                    raise _ragged(path, number, len(row), fields, str(found.separator))
        except csv.Error as error:
            reason = Message("quote-not-closed")
            if "expected after" in str(error):
                reason = Message("quote-followed-by-text")
            elif "field larger" in str(error):
                reason = Message.of("quote-not-closed-within", most=_LONGEST_FIELD)
            raise InputError("quote-misplaced", path=path, **_in_row(number + 1), reason=reason) from None


def _in_row(row: int) -> dict[str, Any]:
    """Where something is, as facts of an error; the header is row 0."""
    return (
        {"row": row, "where": Message.of("row-number", row=row)} if row else {"where": Message("the-header")}
    )


def _ragged(path: Path, row: int, found: int, wanted: int, separator: str) -> InputError:
    return InputError(
        "row-field-where-header",
        row=row,
        path=path,
        found=found,
        wanted=wanted,
        separator=_written(separator),
    )


def _unreadable(
    path: Path, packing: str, found: Conventions, quote: str, fields: int, error: Exception
) -> InputError:
    if "Expected" in str(error) and "columns" in str(error):
        try:
            _check_rows(path, packing, found, quote, fields)
        except InputError as better:
            return better
    return InputError("cannot-read-csv", path=path, reason=str(error).strip().splitlines()[0][:160])


def _bad_text(path: Path, packing: str, encoding: str | None) -> InputError:
    """The first byte that is no text of the encoding, by its row."""
    decoder = codecs.getincrementaldecoder(python_codec(encoding))()
    lines, byte = 0, None
    with closing(_opened(path, packing)) as file:
        while byte is None:
            piece = file.readline(_PIECE)
            try:
                text = decoder.decode(piece, not piece)
            except UnicodeError as error:
                start = getattr(error, "start", 0)
                inside = getattr(error, "object", piece)
                byte = f"0x{inside[start]:02X}" if start < len(inside) else Message("incomplete-character")
                break
            lines += text.count("\n")
            if not piece:
                break
    name = "UTF-8" if _is_utf8(encoding) else str(encoding)
    return InputError("not-in-encoding", path=path, name=name, **_in_row(lines), found=byte or "")


def write_delimited(table: pa.Table, path: Path, conventions: Conventions, packing: str = "") -> None:
    """Write columns as the conventions say; a missing value is the first text that stands for one, or empty."""
    import pyarrow as pa

    quote = '"' if conventions.quote is None else conventions.quote
    separator, newline = conventions.separator or ",", conventions.newline or "\n"
    # the fast way puts quotes around every text, as files of Shoal always had them
    gap = conventions.na[0] if conventions.na else ""
    usual = conventions.encoding in (None, "utf-8") and not gap
    plain = quote == '"' and newline == "\n" and separator == "," and usual
    with _target(path, packing) as file:
        if plain:
            from pyarrow import csv as arrow_csv

            arrow_csv.write_csv(
                table,
                pa.PythonFile(file, mode="w"),
                arrow_csv.WriteOptions(quoting_style="needed", delimiter=separator),
            )
            return
        text = io.TextIOWrapper(file, python_codec(conventions.encoding), newline="")
        settings = _dialect(separator, quote) | {"lineterminator": newline}
        writer = csv.writer(text, **{key: value for key, value in settings.items() if key != "strict"})
        if not quote:
            check_unquoted(table, separator)
        writer.writerow(table.column_names)
        for batch in table.to_batches(max_chunksize=1 << 16):
            columns = [_spelled(column, gap) for column in batch.columns]
            writer.writerows(zip(*columns, strict=True))
        text.flush()
        text.detach()


def check_unquoted(table: pa.Table, separator: str) -> None:
    """Refuse texts that need quotes where the file has none."""
    texts = [*table.column_names]
    for name in table.column_names:
        column = table.column(name)
        if str(column.type) in ("string", "large_string"):
            texts += [text for text in column.unique().to_pylist() if text is not None]
    wrong = next((text for text in texts if separator in text or "\n" in text or "\r" in text), None)
    if wrong is not None:
        raise InputError(
            "holds-separator-line-break-file-no", found=wrong[:40], separator=_written(separator)
        )


def _spelled(column: Any, gap: str) -> Sequence[str]:
    """Cells as Arrow spells them, so that both ways of writing agree."""
    import pyarrow as pa

    texts = column.cast(pa.string()).to_pylist()
    return [gap if text is None else text for text in texts]


def _target(path: Path, packing: str) -> Any:
    """The file to write to, compressed without a moment or a name."""
    import contextlib

    if packing == ".gz":
        import gzip

        @contextlib.contextmanager
        def packed() -> Iterator[Any]:
            with path.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
                yield file

        return packed()
    if packing == ".zst":
        import pyarrow as pa

        return pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd")
    return path.open("wb")
