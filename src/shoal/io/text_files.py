"""Delimited text files (CSV, TSV): read and write by declared conventions.

Conventions are never guessed from the records: they are declared (an option, or the `[file]` table of a schema), stand
in the header, or have the usual default, such as UTF-8.

A file that could be read in two ways is refused with both. Released files use the conventions of the input.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from shoal.errors import InputError, OptionError, closest
from shoal.io.common import DateFormat, Unpacked
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.io.formats import Manner


_SEPARATOR_WORDS = {
    "tab": "\t",
    "\\t": "\t",
    "comma": ",",
    "semicolon": ";",
    "bar": "|",
    "pipe": "|",
    "space": " ",
    "blank": " ",
}
_THOUSANDS_WORDS = {"space": " ", "blank": " ", "none": "", "\u00a0": " ", "\u202f": " ", "’": "'"}
# characters accepted as blank thousands separators
BLANKS = " \u00a0\u202f"
_DECIMALS = (".", ",")
_THOUSANDS = ("", ".", ",", " ", "'")
NO_QUOTE = ""
_FORMULA = re.compile(r"^[=+\-@\t\r]")
# prefixes that `harmless` escapes
MARKED = r"^'([=+\-@\t\r])"
_NUMBER = re.compile(r"[+-]?[\d.,'\s]*\d[\d.,'\s]*([eE][+-]?\d+)?%?")
_USUAL_SEPARATORS = ",;\t|"
_WORDS = {
    sign: Message(code)
    for sign, code in ((",", "commas"), (";", "semicolons"), ("\t", "tabs"), ("|", "bars"), (" ", "blanks"))
}
# number of bytes within which the header must end
_OPENING = 1 << 20
_LOOKED_AT = 100
_PIECE = 1 << 20
_LONGEST_FIELD = 1 << 17


@dataclass(frozen=True, slots=True)
class Conventions:
    """Declared conventions of a file; None where undeclared.

    Attributes:
        encoding: of a text file, as Python names it.
        separator: the character between fields.
        decimal: the decimal sign, a point or a comma.
        thousands: the thousands separator; empty for none.
        quote: the character around a field that contains separators; empty if quotes are ordinary text.
        na: texts that stand for a missing value.
        date_format: the format of dates, such as DD.MM.YYYY, for columns without a format of their own.
        sheet: of a spreadsheet.
        header_row: number of the row with the column names, counted from 1; rows above it are not read.
        range: the cell range of the table in a sheet, such as B4:F200, header included.
        newline: the line ending.
        spreadsheet_safe: prefix texts that a spreadsheet would run as a formula with an apostrophe.

    >>> Conventions(separator="tab", decimal=",").separator
    '\\t'
    """

    encoding: str | None = None
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    quote: str | None = None
    na: tuple[str, ...] = ()
    date_format: str | None = None
    sheet: str | None = None
    header_row: int | None = None
    range: str | None = None
    newline: str | None = None
    spreadsheet_safe: bool = False

    def __post_init__(self) -> None:
        def settle(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        for name in (
            "encoding",
            "separator",
            "decimal",
            "thousands",
            "quote",
            "date_format",
            "sheet",
            "range",
            "newline",
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise OptionError("option-not-text", option=name, found=value)
        if self.encoding is not None:
            settle("encoding", _known_encoding(self.encoding))
        if self.separator is not None:
            settle("separator", _SEPARATOR_WORDS.get(self.separator.lower(), self.separator))
            _one_character("separator", self.separator)
        if self.quote is not None:
            settle("quote", NO_QUOTE if self.quote.lower() == "none" else self.quote)
            if self.quote:
                _one_character("quote", self.quote)
        if self.decimal is not None:
            settle("decimal", {"comma": ",", "point": "."}.get(self.decimal.lower(), self.decimal))
            if self.decimal not in _DECIMALS:
                raise OptionError("decimal-not-point-comma", option="decimal", found=self.decimal)
        if self.thousands is not None:
            settle("thousands", _THOUSANDS_WORDS.get(self.thousands.lower(), self.thousands))
            if self.thousands not in _THOUSANDS:
                raise OptionError(
                    "thousands-not-point-comma-blank-apostrophe", option="thousands", found=self.thousands
                )
        if self.thousands == "," and self.decimal is None:
            settle("decimal", ".")
        if self.thousands == "." and self.decimal is None:
            settle("decimal", ",")
        if self.thousands and self.thousands == self.decimal:
            raise OptionError("cannot-both-decimal-thousands-sign", decimal=self.decimal)
        if self.separator is not None and self.separator == self.quote:
            raise OptionError("cannot-both-separator-quote", separator=self.separator)
        if isinstance(self.na, str) or not all(isinstance(text, str) for text in self.na):
            raise OptionError("na-list-texts-such", option="na", found=self.na)
        settle("na", tuple(text.strip() for text in self.na))
        if self.date_format is not None:
            DateFormat.of(self.date_format)
        if isinstance(self.header_row, str) and self.header_row.isdigit():
            settle("header_row", int(self.header_row))
        if self.header_row is not None and (type(self.header_row) is not int or self.header_row < 1):
            raise OptionError("header-row-whole-number-least-1", option="header_row", found=self.header_row)
        if self.range is not None:
            settle("range", cells_of(self.range).text)
            if self.header_row is not None:
                raise OptionError("range-begins-row-names")
        if self.newline not in (None, "\n", "\r\n", "\r"):
            raise OptionError("newline-not-n-r-n-r", found=self.newline)
        if not isinstance(self.spreadsheet_safe, bool):
            raise OptionError(
                "spreadsheet-safe-true-false", option="spreadsheet_safe", found=self.spreadsheet_safe
            )

    @classmethod
    def of(cls, told: Conventions | Mapping[str, Any] | None) -> Conventions:
        """Conventions from a mapping, such as the `[file]` table of a schema."""
        if told is None:
            return cls()
        if isinstance(told, Conventions):
            return told
        if not isinstance(told, Mapping):
            raise OptionError("file-table-facts-such-encoding-separator", found=told)
        known = [field.name for field in fields(cls)]
        for key in told:
            if key not in known:
                raise OptionError("file-unknown-key", key=key, hint=closest(str(key), known))
        texts = told.get("na", ())
        return cls(
            **{
                **told,
                "na": tuple(texts) if isinstance(texts, Iterable) and not isinstance(texts, str) else texts,
            }
        )

    def with_told(self, told: Conventions | Mapping[str, Any] | None) -> Conventions:
        """The same, with further conventions on top; texts for missing values are combined."""
        more = Conventions.of(told)
        changes = {key: value for key, value in more.to_dict().items() if key != "na"}
        return replace(self, **changes, na=tuple(dict.fromkeys((*self.na, *more.na))))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without undeclared conventions."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            key: list(value) if key == "na" else value
            for key, value in found.items()
            if value not in (None, (), False)
        }

    def of_release(self) -> Conventions:
        """The conventions of a release in the format of this file: its header is the first row."""
        return replace(self, header_row=None, range=None)

    @property
    def signs_told(self) -> bool:
        """Whether the number format is declared."""
        return self.decimal is not None or self.thousands is not None

    @property
    def decimal_sign(self) -> str:
        return self.decimal or "."

    @property
    def thousands_sign(self) -> str:
        return self.thousands or ""


@dataclass(frozen=True, slots=True)
class SheetRange:
    """A rectangle of a sheet: first and last row and column, counted from 0; None for an open end."""

    top: int
    left: int
    bottom: int | None
    right: int | None
    text: str


def cells_of(text: str) -> SheetRange:
    """The rectangle of a range such as B4:F200, or B4: for everything from B4 on.

    >>> cells_of("b4:F200")
    SheetRange(top=3, left=1, bottom=199, right=5, text='B4:F200')
    """
    found = re.fullmatch(
        r"\s*([A-Za-z]{1,3})([1-9]\d{0,6})\s*:\s*(?:([A-Za-z]{1,3})([1-9]\d{0,6}))?\s*", text
    )
    if found is None:
        raise OptionError("range-not-form-b4-f200-b4", option="range", found=text)
    top, left = int(found[2]) - 1, _column_number(found[1])
    bottom, right = (None, None) if found[3] is None else (int(found[4]) - 1, _column_number(found[3]))
    if bottom is not None and right is not None and (bottom < top or right < left):
        raise OptionError("range-ends-before-begins", found=text)
    return SheetRange(top, left, bottom, right, "".join(text.split()).upper())


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def python_codec(encoding: str | None) -> str:
    """The codec for an encoding."""
    return encoding or "utf-8"


def _known_encoding(name: str) -> str:
    try:
        codec = codecs.lookup(name)
        "é".encode(codec.name, "replace").decode(codec.name)
    except (LookupError, ValueError, TypeError, AttributeError):
        raise OptionError(
            "encoding-not-known",
            option="encoding",
            found=name,
            hint=closest(name, ("utf-8", "latin-1", "windows-1252", "utf-16", "iso-8859-15", "mac-roman")),
        ) from None
    if not getattr(codec, "_is_text_encoding", True):
        raise OptionError("encoding-not-encoding-text", option="encoding", found=name)
    # the name the custodian used, where it has several
    return codec.name if codec.name.startswith("utf-8") else name.strip().lower()


def _one_character(name: str, value: str) -> None:
    if len(value) != 1 or not value.isascii() or value in "\r\n\0":
        raise OptionError("option-not-plain-character-such-tab", option=name, found=value)


def runs_as_formula(text: str) -> bool:
    """Whether a spreadsheet that opens a text file would run this as a formula.

    >>> runs_as_formula("=cmd|' /C calc'!A0"), runs_as_formula("-5"), runs_as_formula("clerk")
    (True, False, False)
    """
    return bool(_FORMULA.match(text)) and _NUMBER.fullmatch(text) is None


def harmless(text: str) -> str:
    """The text with an apostrophe in front, which spreadsheets read as "this is text".

    >>> harmless("=1+1"), harmless("clerk")
    ("'=1+1", 'clerk')
    """
    return f"'{text}" if runs_as_formula(text) else text


def first_formula(texts: Iterable[str | None]) -> str | None:
    """The first text that a spreadsheet would run as a formula."""
    return next((text for text in texts if text is not None and runs_as_formula(text)), None)


@dataclass(frozen=True, slots=True)
class _Header:
    names: tuple[str, ...]
    lines: int
    conventions: Conventions


def read_delimited(
    path: Path, told: Conventions, packing: str = "", usual: str | None = None
) -> tuple[pa.Table, Conventions]:
    """Columns of texts, and the conventions used to read the file.

    Args:
        told: declared conventions of the file.
        packing: extension of a compressed file.
        usual: the separator that the file's extension stands for.

    Raises:
        InputError: not text, not of that encoding, ragged, or ambiguous.
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
        # the apostrophe that escapes a formula is not part of the text
        columns = [compute.replace_substring_regex(column, MARKED, r"\1") for column in table.columns]
        return pa.table(columns, names=[re.sub(MARKED, r"\1", name) for name in names]), found
    return table.rename_columns(list(names)), found


def _opened(path: Path, packing: str) -> IO[bytes]:
    return io.BufferedReader(Unpacked(path, packing), _PIECE) if packing else path.open("rb")


def _is_utf8(encoding: str | None) -> bool:
    return encoding in (None, "utf-8", "utf-8-sig")


def _header(path: Path, told: Conventions, packing: str, usual: str | None) -> _Header:
    """Names, separator and encoding, from declared conventions and the header line."""
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
    # a line that spreadsheets write above the header to declare the separator
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
    """The usual separator that occurs in the header; an error if two are possible."""
    line = text.lstrip("\r\n")
    quote = '"' if told.quote is None else told.quote
    # a separator inside a quoted column name is ignored
    bare = re.sub(f"{re.escape(quote)}[^{re.escape(quote)}]*{re.escape(quote)}", "", line) if quote else line
    first = re.split(r"\r\n|\n|\r", bare, maxsplit=1)[0]
    there = [sign for sign in _USUAL_SEPARATORS if sign in first]
    if len(there) > 1:
        # a character that makes the rows ragged is not the separator
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
    """Refuse a one-column header whose signs split every line alike: they may be separators."""
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
    """The content of the file as text, piece by piece."""
    decoder = codecs.getincrementaldecoder(python_codec(encoding))()
    with closing(_opened(path, packing)) as file:
        while piece := file.read(_PIECE):
            yield decoder.decode(piece)
        yield decoder.decode(b"", True)


def _check_content(path: Path, packing: str, found: Conventions, quote: str, fields: int) -> None:
    """Refuse invalid bytes for the encoding, and unclosed quotes."""
    quoted = False
    try:
        for piece in _texts(path, packing, found.encoding):
            quoted = quoted or bool(quote and quote in piece)
    except (UnicodeDecodeError, UnicodeError):
        raise _bad_text(path, packing, found.encoding) from None
    if quoted:
        _check_rows(path, packing, found, quote, fields)


def _check_rows(path: Path, packing: str, found: Conventions, quote: str, fields: int) -> None:
    """Parse all rows strictly; an error names the row."""
    with closing(_opened(path, packing)) as file:
        lines = io.TextIOWrapper(file, python_codec(found.encoding), newline="")
        for _ in range((found.header_row or 1) - 1):
            lines.readline()
        if (first := lines.readline()).removeprefix("\ufeff")[:5].strip('"')[:4] != "sep=":
            # a byte order mark belongs to no field
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
    """A position, as facts of an error; the header is row 0."""
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
    """An error for the first invalid byte for the encoding, with its row."""
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
    """Write columns by the conventions; a missing value is written as the first text for missing values, or empty."""
    import pyarrow as pa

    quote = '"' if conventions.quote is None else conventions.quote
    separator, newline = conventions.separator or ",", conventions.newline or "\n"
    # the fast path quotes every text, as files of Shoal always have
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
    """Refuse texts that need quotes if the file has none."""
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
    """Cells in Arrow's spelling, so that both writers agree."""
    import pyarrow as pa

    texts = column.cast(pa.string()).to_pylist()
    return [gap if text is None else text for text in texts]


def _target(path: Path, packing: str) -> Any:
    """The file to write to, compressed without time stamp or name."""
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


def spelled(table: pa.Table, manner: Manner) -> pa.Table:
    """Numbers with the decimal and thousands signs, dates in their format, formulas escaped if asked."""
    import pyarrow as pa

    conventions = manner.conventions
    table = dates_spelled(table, manner)
    if conventions.decimal_sign != "." or conventions.thousands_sign:
        for place, name in enumerate(table.column_names):
            column = table.column(name)
            if (
                pa.types.is_integer(column.type)
                or pa.types.is_floating(column.type)
                or pa.types.is_decimal(column.type)
            ):
                table = table.set_column(
                    place, name, _each(column, lambda text: number_text(text, conventions))
                )
    if conventions.spreadsheet_safe:
        for place, name in enumerate(table.column_names):
            column = table.column(name)
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                table = table.set_column(place, name, _each(column, harmless))
        table = table.rename_columns([harmless(name) for name in table.column_names])
    return table


def dates_spelled(table: pa.Table, manner: Manner) -> pa.Table:
    """The table with its dates as texts in their formats."""
    import pyarrow as pa

    for place, name in enumerate(table.column_names):
        column = table.column(name)
        form = manner.dates.get(name, manner.conventions.date_format)
        if form is None or not (pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)):
            continue
        written = DateFormat.of(form)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz))
        table = table.set_column(place, name, _each(column, written.write, as_text=False))
    return table


def number_text(text: str, conventions: Conventions) -> str:
    """A number in Arrow's spelling, rewritten with the signs of the conventions.

    >>> number_text("-1234567.5", Conventions(decimal=",", thousands="."))
    '-1.234.567,5'
    """
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    mantissa, e, exponent = digits.partition("e")
    whole, point, rest = mantissa.partition(".")
    if conventions.thousands_sign and not e and whole.isdigit():
        whole = f"{int(whole):,}".replace(",", conventions.thousands_sign)
    return f"{sign}{whole}{conventions.decimal_sign if point else ''}{rest}{e}{exponent}"


def _each(column: Any, convert: Callable[[Any], str], *, as_text: bool = True) -> Any:
    """Convert every distinct value once; missing ones stay missing."""
    import pyarrow as pa

    if as_text:
        column = column.cast(pa.string())
    encoded = column.combine_chunks().dictionary_encode()
    found = pa.array(
        [None if value is None else convert(value) for value in encoded.dictionary.to_pylist()], pa.string()
    )
    return pa.chunked_array([found.take(encoded.indices)])
