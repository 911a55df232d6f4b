"""Column types: declared types, and conversion of text or mixed cells to values.

Cells with only one reading are read that way. Where cells are ambiguous or nearly fit a type, the column has a doubt:
one line that names both readings and how to declare the right one.

The look of a file's cells is a fact about the records. A declared type is not: it decides how a column is read and in
what form it is released, independently of the records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from shoal.errors import InputError, OptionError, closest
from shoal.io.common import USUAL, DateFormat
from shoal.io.text_files import BLANKS, Conventions
from shoal.text import Message

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa


# cells that mean "missing", except in columns of text
EMPTY = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA"),
    *("NULL", "NaN", "n/a", "nan", "null"),
)
_TRUTH = {"true": True, "false": False}
_MOST_DIGITS = 18
_FEW = 1000
# from this share of numbers or dates on, a column of texts is assumed to contain mistakes
_NUMBERS_MIXED, _DATES_MIXED = 0.1, 0.5
_LEADING_ZERO = r"^[+-]?0\d"
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_ISO_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?")
ColumnType = Literal["integer", "decimal", "date", "timestamp", "text", "boolean"]
TYPES: tuple[ColumnType, ...] = get_args(ColumnType)
_ALSO: Mapping[str, ColumnType] = {"time stamp": "timestamp", "truth value": "boolean"}
DAY_TYPES: tuple[ColumnType, ...] = ("date", "timestamp")
_DECLARED_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
_EXACT_WHOLE = 2.0**53
# prefixes of Arrow's type names
_NUMBERS = ("int", "uint", "float", "double", "halffloat", "decimal", "bool")
_DAYS = ("date", "timestamp")
_KINDS = {
    bool: "truth-value-cells",
    int: "number-cells",
    float: "number-cells",
    str: "text-cells",
    datetime: "date-cells",
    date: "date-cells",
    time: "time-cells",
}
_EXACT_INTEGER = 2**53


@dataclass(frozen=True, slots=True)
class Signs:
    """Number format: the decimal sign, and the thousands separator, if any.

    >>> Signs(",", ".").plain("1.234,5"), Signs(",", ".").plain("1234.5")
    ('1234.5', None)
    """

    decimal: str = "."
    thousands: str = ""

    @property
    def pattern(self) -> str:
        """Regular expression of a number."""
        whole = r"\d+"
        if self.thousands:
            between = (
                f"[{BLANKS}]"
                if self.thousands == " "
                else "['’]"
                if self.thousands == "'"
                else rf"\{self.thousands}"
            )
            whole = rf"(?:\d+|\d{{1,3}}(?:{between}\d{{3}})+)"
        number = rf"(?:{whole}(?:\{self.decimal}\d*)?|\{self.decimal}\d+)(?:[eE][+-]?\d+)?"
        # infinite numbers cannot be released and are reported with their row
        return f"[+-]?(?:{number}|[iI]nf|[iI]nfinity)"

    def plain(self, text: str) -> str | None:
        """The number as plain digits with a decimal point, None if it is not a number."""
        if re.fullmatch(self.pattern, text) is None:
            return None
        for sign in self.marks:
            text = text.replace(sign, "")
        return text.replace(self.decimal, ".")

    @property
    def marks(self) -> str:
        """Characters accepted as thousands separators."""
        return BLANKS if self.thousands == " " else "'’" if self.thousands == "'" else self.thousands

    @property
    def words(self) -> Message:
        """The options that declare this format."""
        if not self.thousands:
            return Message.of("decimal-sign", decimal=self.decimal)
        code = "thousands-sign" if self.decimal == "." else "decimal-and-thousands-sign"
        return Message.of(code, decimal=self.decimal, thousands=self.thousands)


USUAL_SIGNS = (
    *(Signs(".", ""), Signs(",", ""), Signs(",", "."), Signs(".", ","), Signs(".", " "), Signs(",", " ")),
    *(Signs(".", "'"), Signs(",", "'")),
)


def signs_of(conventions: Conventions) -> Signs:
    return Signs(conventions.decimal_sign, conventions.thousands_sign)


def plain_numbers(values: Any, signs: Signs) -> Any:
    """Texts of numbers normalised to a decimal point only; a text that is not a number stays invalid.

    >>> import pyarrow as pa
    >>> plain_numbers(pa.array(["1.234,5", "7", "x"]), Signs(",", ".")).to_pylist()
    ['1234.5', '7', 'no number']
    """
    import pyarrow as pa
    from pyarrow import compute

    if signs == USUAL_SIGNS[0]:
        return values
    fits = compute.match_substring_regex(values, f"^(?:{signs.pattern})$")
    found = values
    for mark in signs.marks:
        found = compute.replace_substring(found, mark, "")
    if signs.decimal != ".":
        found = compute.replace_substring(found, signs.decimal, ".")
    return compute.if_else(fits, found, pa.scalar("no number", found.type))


def text_array(texts: Sequence[str]) -> Any:
    """An Arrow array of texts; building it from a plain Python list would load pandas, which is slow."""
    import pyarrow as pa

    spelled = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, spelled)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(spelled))]
    return pa.Array.from_buffers(pa.string(), len(spelled), buffers)


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """The converted values of a column, and a doubt about the conversion, if any."""

    values: Any
    doubt: Message | None = None


def settled(
    values: Any, name: str, conventions: Conventions, na: Sequence[str] = (), date_format: str | None = None
) -> TypedColumn:
    """The values of a column without a declared type.

    Args:
        values: an Arrow array of texts.
        date_format: the format of its dates, if any.

    >>> import pyarrow as pa
    >>> settled(pa.array(["7", "", "8"]), "age", Conventions()).values.to_pylist()
    [7, None, 8]
    >>> print(settled(pa.array(["35.000"]), "pay", Conventions()).doubt)  # doctest: +ELLIPSIS
    column 'pay': row 1 holds '35.000', which is 35 with decimal="." or 35000 with ...: specify which.
    """
    import pyarrow as pa
    from pyarrow import compute

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    trimmed = compute.utf8_trim_whitespace(values)
    gaps = compute.is_in(trimmed, value_set=text_array([*EMPTY, *na]).cast(trimmed.type))
    cells = compute.if_else(gaps, pa.nulls(len(trimmed), trimmed.type), trimmed)
    column = _CellColumn(name, cells, compute.unique(compute.drop_null(cells)))
    if not len(column.distinct):
        return TypedColumn(pa.nulls(len(values)))
    for attempt in (_as_dates_in(date_format), _as_numbers, _as_truth, _as_dates):
        found = attempt(column, conventions)
        if found is not None:
            return found
    return TypedColumn(values, _doubt_about_text(column, conventions))


@dataclass(frozen=True, slots=True, eq=False)
class _CellColumn:
    name: str
    cells: Any
    distinct: Any

    def matches(self, pattern: str) -> Any:
        """Which of the distinct values match."""
        from pyarrow import compute

        return compute.match_substring_regex(self.distinct, f"^(?:{pattern})$")

    def all_match(self, pattern: str) -> bool:
        from pyarrow import compute

        whole = f"^(?:{pattern})$"
        # most patterns fail early
        pieces = (self.distinct.slice(0, _FEW), self.distinct.slice(_FEW))
        return all(
            compute.all(compute.match_substring_regex(one, whole)).as_py() is not False for one in pieces
        )

    def any_match(self, pattern: str) -> str | None:
        """The first value that contains the pattern."""
        from pyarrow import compute

        found = compute.drop_null(self.distinct.filter(compute.match_substring_regex(self.distinct, pattern)))
        return str(found[0].as_py()) if len(found) else None

    @property
    def signs(self) -> list[str]:
        """The decimal and thousands signs that occur in numbers of any convention."""
        return [sign for sign in (".", ",", *BLANKS, "'", "’") if self.any_match(re.escape(sign)) is not None]

    def row_of(self, text: str) -> int:
        from pyarrow import compute

        return int(compute.index(self.cells, text).as_py()) + 1

    def doubt(self, code: str, text: str, **facts: Any) -> Message:
        """A doubt about a value, with the first row that holds it."""
        return Message.of(code, column=self.name, row=self.row_of(text), found=text, **facts)

    def share(self, which: Any) -> float:
        """Share of cells with one of the chosen distinct values."""
        from pyarrow import compute

        chosen = compute.is_in(self.cells, value_set=self.distinct.filter(which))
        present = len(self.cells) - self.cells.null_count
        count = compute.sum(chosen).as_py() or 0
        return float(count / max(present, 1))

    def first(self, which: Any, *, wanted: bool) -> str:
        """The first distinct value that is (or is not) among the chosen ones."""
        from pyarrow import compute

        chosen = self.distinct.filter(which if wanted else compute.invert(which))
        return str(chosen[0].as_py())

    def converted(self, convert: Callable[[str], Any], type: Any) -> Any:
        """All cells, each converted by the conversion of its value."""
        import pyarrow as pa

        encoded = self.cells.dictionary_encode()
        found = pa.array([convert(text) for text in encoded.dictionary.to_pylist()], type)
        return found.take(encoded.indices)


def thousands_doubt(values: Any, name: str) -> Message | None:
    """The doubt about texts such as 35.000, where the sign's meaning is undeclared."""
    from pyarrow import compute

    column = _CellColumn(name, values, compute.unique(compute.drop_null(values)))
    return _two_readings(column, USUAL_SIGNS[0]) if len(column.distinct) else None


def _two_readings(column: _CellColumn, mine: Signs) -> Message | None:
    """The doubt about numbers that would have another value with other signs."""
    import pyarrow as pa
    from pyarrow import compute

    if not column.all_match(mine.pattern):
        return None
    signs = "".join(column.signs)
    for other in USUAL_SIGNS:
        # a number without a thousands separator is the same under either convention
        telling = {*other.marks, *(other.decimal if other.decimal != mine.decimal else "")}
        if other == mine or telling.isdisjoint(signs) or not column.all_match(other.pattern):
            continue
        here, there = (
            plain_numbers(column.distinct, one).cast(pa.float64(), safe=False) for one in (mine, other)
        )
        apart = compute.index(compute.not_equal(here, there), True).as_py()
        if apart >= 0:
            text = str(column.distinct[apart].as_py())
            return column.doubt(
                "two-readings",
                text,
                number=here[apart].as_py(),
                signs=mine.words,
                other_number=there[apart].as_py(),
                other_signs=other.words,
            )
    return None


def _as_numbers(column: _CellColumn, conventions: Conventions) -> TypedColumn | None:
    import pyarrow as pa
    from pyarrow import compute

    signs = signs_of(conventions)
    if not column.all_match(signs.pattern):
        return None
    code = column.any_match(_LEADING_ZERO)
    doubt = None
    if code is not None:
        doubt = column.doubt("leading-zero", code)
    elif not conventions.signs_told:
        doubt = _two_readings(column, signs)
    plain = compute.replace_substring_regex(plain_numbers(column.cells, signs), r"^\+", "")
    if column.all_match(r"[+-]?[0-9]+") or (
        signs.thousands and not column.any_match(rf"\{signs.decimal}|[eE]")
    ):
        long = column.any_match(rf"[0-9]{{{_MOST_DIGITS + 1},}}")
        if long is None:
            return TypedColumn(plain.cast(pa.int64()), doubt)
        doubt = doubt or column.doubt("too-many-digits", long)
    return TypedColumn(plain.cast(pa.float64()), doubt)


def _as_truth(column: _CellColumn, conventions: Conventions) -> TypedColumn | None:
    import pyarrow as pa

    if not column.all_match("true|false|True|False|TRUE|FALSE"):
        return None
    return TypedColumn(column.converted(lambda text: _TRUTH.get(str(text).lower()), pa.bool_()))


def _as_dates_in(date_format: str | None) -> Callable[[_CellColumn, Conventions], TypedColumn | None]:
    def attempt(column: _CellColumn, conventions: Conventions) -> TypedColumn | None:
        """Dates of the declared format; if most cells are such dates, the others are mistakes."""
        import pyarrow as pa

        told = date_format or conventions.date_format
        if told is None:
            return None
        form = DateFormat.of(told)
        which = pa.array([form.reads(text) for text in column.distinct.to_pylist()])
        if column.share(which) < (_DATES_MIXED if date_format is None else 0.0):
            return None
        if False in which.to_pylist():
            return TypedColumn(column.cells, _half_dates(column, which, told))
        return _moments(column, form.read, whole=not form.has_time)

    return attempt


def _as_dates(column: _CellColumn, conventions: Conventions) -> TypedColumn | None:
    """Dates such as 1984-05-31, with or without a time."""
    import pyarrow as pa

    texts = column.distinct.to_pylist()
    shaped = [_ISO_DAY.fullmatch(text) or _ISO_MOMENT.fullmatch(text) for text in texts]
    if not any(shaped):
        return None
    which = pa.array([bool(shape) and _is_moment(text) for shape, text in zip(shaped, texts, strict=True)])
    if False in which.to_pylist():
        if column.share(which) < _DATES_MIXED:
            return None
        return TypedColumn(column.cells, _half_dates(column, which, "YYYY-MM-DD"))
    return _moments(column, datetime.fromisoformat, whole=all(len(text) == 10 for text in texts))


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _moments(column: _CellColumn, read: Callable[[str], datetime], *, whole: bool) -> TypedColumn:
    import pyarrow as pa

    if whole:
        return TypedColumn(
            column.converted(lambda text: None if text is None else read(text).date(), pa.date32())
        )
    return TypedColumn(
        column.converted(lambda text: None if text is None else read(text), pa.timestamp("us"))
    )


def _half_dates(column: _CellColumn, which: Any, form: str) -> Message:
    date, other = column.first(which, wanted=True), column.first(which, wanted=False)
    facts = {"row": column.row_of(date), "date": date, "other_row": column.row_of(other)}
    return Message.of("half-dates", column=column.name, form=form, found=_short_text(other), **facts)


def _doubt_about_text(column: _CellColumn, conventions: Conventions) -> Message | None:
    """Why a column of texts looks like another type."""
    return (
        _other_signs(column, conventions)
        or _other_dates(column)
        or _half_numbers(column, signs_of(conventions))
    )


def _other_signs(column: _CellColumn, conventions: Conventions) -> Message | None:
    mine = signs_of(conventions)
    fitting = [signs for signs in USUAL_SIGNS if signs != mine and column.all_match(signs.pattern)]
    if not fitting:
        return None
    if conventions.signs_told:
        text = str(column.distinct[0].as_py())
        return column.doubt("not-with-signs-of-file", text, signs=mine.words)
    doubt = _two_readings(column, fitting[0])
    if doubt is not None:
        return doubt
    text = column.any_match(r"[.,' \x{00a0}\x{202f}’]") or str(column.distinct[0].as_py())
    code = "numbers-with-decimal-commas" if fitting[0].decimal == "," else "numbers-with-thousands"
    return column.doubt(code, text, signs=fitting[0].words)


def _other_dates(column: _CellColumn) -> Message | None:
    import pyarrow as pa

    texts = column.distinct.to_pylist()
    # a sample suffices to exclude dates
    forms = [form for form in map(DateFormat.of, USUAL) if any(form.reads(text) for text in texts[:20])]
    fitting = [form for form in forms if all(form.reads(text) for text in texts)]
    if not fitting:
        for form in forms:
            which = pa.array([form.reads(text) for text in texts])
            if column.share(which) >= _DATES_MIXED:
                return _half_dates(column, which, form.text)
        return None
    first = fitting[0]
    for other in fitting[1:]:
        for text in texts:
            if first.read(text) != other.read(text):
                return column.doubt(
                    "two-date-readings",
                    text,
                    day=first.read(text).date(),
                    form=first.text,
                    other_day=other.read(text).date(),
                    other_form=other.text,
                )
    return column.doubt("looks-like-dates", str(texts[0]), form=first.text)


def _half_numbers(column: _CellColumn, signs: Signs) -> Message | None:
    which = column.matches(signs.pattern)
    if column.share(which) < _NUMBERS_MIXED:
        return None
    number, other = column.first(which, wanted=True), column.first(which, wanted=False)
    facts = {"row": column.row_of(number), "number": number, "other_row": column.row_of(other)}
    return Message.of("half-numbers", column=column.name, found=_short_text(other), **facts)


def _short_text(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def known_type(word: object, column: str) -> ColumnType:
    """A type by its name, or an error that lists the types.

    >>> known_type("truth value", "member")
    'boolean'
    """
    for name in TYPES:
        if word == name:
            return name
    if isinstance(word, str) and word in _ALSO:
        return _ALSO[word]
    raise OptionError(
        "unknown-type", column=column, found=word, allowed=tuple(TYPES), hint=closest(str(word), TYPES)
    )


def type_of(dtype: nw.dtypes.DType) -> ColumnType | None:
    """The type that corresponds to a frame's dtype; None for object types."""
    import narwhals as nw

    if isinstance(dtype, nw.Boolean):
        return "boolean"
    if dtype.is_numeric():
        return "integer" if dtype.is_integer() else "decimal"
    if isinstance(dtype, nw.Date):
        return "date"
    if isinstance(dtype, nw.Datetime):
        return "timestamp"
    return "text" if isinstance(dtype, nw.String | nw.Categorical | nw.Enum) else None


def arrow_type(type: ColumnType) -> pa.DataType:
    """The storage type of a column in a file."""
    import pyarrow as pa

    return {
        "integer": pa.int64(),
        "decimal": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("ms"),
        "text": pa.string(),
        "boolean": pa.bool_(),
    }[type]


def converted(
    values: Any,
    type: ColumnType,
    name: str,
    na: Sequence[str] = (),
    conventions: Conventions | None = None,
    date_format: str | None = None,
) -> Any:
    """A column of Arrow values converted to a type.

    Args:
        values: an Arrow array of any type; texts are read in the usual human notations.
        na: additional texts for missing values.
        conventions: the decimal and thousands signs of texts.
        date_format: the format of dates in texts, such as DD.MM.YYYY; 1984-05-31 otherwise.

    Raises:
        InputError: a value is not of that type; names the column, the row and the solution.

    >>> import pyarrow as pa
    >>> converted(pa.array(["7", "8.0", ""]), "integer", "age").to_pylist()
    [7, 8, None]
    """
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_null(values.type):
        return values.cast(arrow_type(type))
    textual = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    if textual and type != "text":
        trimmed = compute.utf8_trim_whitespace(values)
        gaps = compute.is_in(trimmed, value_set=text_array([*EMPTY, *na]).cast(trimmed.type))
        values = compute.if_else(gaps, None, trimmed)
        told = conventions or Conventions()
        if type in ("integer", "decimal") and not told.signs_told:
            doubt = thousands_doubt(values, name)
            if doubt is not None:
                raise InputError.saying(doubt)
    elif pa.types.is_floating(values.type):
        # Arrow does no arithmetic with 16-bit floats
        values = values.cast(pa.float32()) if pa.types.is_float16(values.type) else values
        values = compute.if_else(compute.is_nan(values), None, values)
    convert = (_FROM_TEXT if textual else _FROM_VALUES)[type]
    if textual and type in ("integer", "decimal"):
        signs, plainly = signs_of(conventions or Conventions()), convert
        convert = lambda texts: plainly(plain_numbers(texts, signs))  # noqa: E731
    elif textual and type in DAY_TYPES and date_format is not None:
        convert = _in_format(date_format, type)
    try:
        return convert(values)
    except (pa.ArrowException, ValueError, OverflowError):
        row = _first_wrong(values, convert)
        found = str(values[row - 1].as_py())[:40]
        raise InputError(
            "not-of-its-type",
            column=name,
            row=row,
            found=found,
            type=type,
            looks_like=_looks_like(type, found, textual, date_format),
        ) from None


def _looks_like(type: ColumnType, found: str, textual: bool, date_format: str | None) -> Message | str:
    """What a text that does not fit its type looks like instead."""
    if not textual:
        return ""
    if type in ("integer", "decimal"):
        for signs in USUAL_SIGNS[1:]:
            plain = signs.plain(found)
            if plain is not None and (type == "decimal" or float(plain).is_integer()):
                return Message.of("number-with-signs", signs=signs.words)
    if type in DAY_TYPES:
        if date_format is not None:
            return Message.of("not-of-date-format", form=date_format)
        form = next((form for form in USUAL if DateFormat.of(form).reads(found)), None)
        return Message.of("of-date-format", form=form) if form else ""
    return ""


def _in_format(date_format: str, type: ColumnType) -> Callable[[Any], Any]:
    """Conversion of dates in exactly one format; a time is ignored where dates are declared."""
    form = DateFormat.of(date_format)

    def read(text: str | None) -> Any:
        if text is None:
            return None
        moment = form.read(text)
        return moment.date() if type == "date" else moment

    return lambda values: _each(values, type, read)


def _first_wrong(values: Any, convert: Callable[[Any], Any]) -> int:
    """One-based number of the first row that cannot be converted."""
    import pyarrow as pa

    sound, broken = 0, len(values)
    while broken - sound > 1:
        middle = (sound + broken) // 2
        try:
            convert(values.slice(sound, middle - sound))
            sound = middle
        except (pa.ArrowException, ValueError, OverflowError):
            broken = middle
    return sound + 1


def _each(values: Any, type: ColumnType, convert: Callable[[Any], Any]) -> Any:
    """Convert every distinct value once, since columns repeat values."""
    import pyarrow as pa

    encoded = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    encoded = encoded.dictionary_encode()
    found = pa.array([convert(value) for value in encoded.dictionary.to_pylist()], arrow_type(type))
    return found.take(encoded.indices)


def _whole(values: Any) -> Any:
    """Numbers as integers; an error if one has a fractional part."""
    import pyarrow as pa
    from pyarrow import compute

    if not str(values.type).startswith(_NUMBERS):
        raise ValueError("no number")
    if pa.types.is_floating(values.type):
        # beyond this, several integers round to the same float
        large = compute.greater_equal(compute.abs(values), _EXACT_WHOLE)
        if compute.any(large).as_py():
            raise ValueError("too large")
    return values.cast(pa.int64())


def _whole_text(values: Any) -> Any:
    import pyarrow as pa

    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:
        return _whole(values.cast(pa.float64()))


def _plain_text(value: Any) -> str:
    """A value as text: integers without decimals, however the library stores them."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _day_of_text(value: str) -> Any:
    from datetime import date, datetime

    # a time after the day is ignored: the column holds dates
    return date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value).date()


def _moment_of_text(value: str) -> Any:
    from datetime import datetime

    found = datetime.fromisoformat(value)
    if len(value) < 10 or found.tzinfo is not None:
        raise ValueError("a time stamp has a day and no zone")
    return found


def _iso(convert: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Days in the form 1984-05-31 only; other forms that Python accepts, such as 19840531 or 1984-W22, are refused."""

    def strictly(value: str | None) -> Any:
        if value is None:
            return None
        if len(value) < 10 or value[4] != "-" or value[7] != "-":
            raise ValueError("not of the form 1984-05-31")
        return convert(value)

    return strictly


def _cast(type: ColumnType, *, of: tuple[str, ...]) -> Callable[[Any], Any]:
    """A conversion by Arrow, from types whose name has one of these prefixes."""

    def convert(values: Any) -> Any:
        if not str(values.type).startswith(of):
            raise ValueError(f"no {type}")
        return values.cast(arrow_type(type), safe=False)

    return convert


def _truth(value: Any) -> bool | None:
    if value is None:
        return None
    try:
        return _DECLARED_TRUTH[str(value).lower()]
    except KeyError:
        raise ValueError("no truth value") from None


_FROM_TEXT: Mapping[ColumnType, Callable[[Any], Any]] = {
    "integer": _whole_text,
    "decimal": lambda values: values.cast(arrow_type("decimal")),
    "date": lambda values: _each(values, "date", _iso(_day_of_text)),
    "timestamp": lambda values: _each(values, "timestamp", _iso(_moment_of_text)),
    "text": lambda values: values.cast(arrow_type("text")),
    "boolean": lambda values: _each(values, "boolean", _truth),
}
_FROM_VALUES: Mapping[ColumnType, Callable[[Any], Any]] = {
    "integer": _whole,
    "decimal": _cast("decimal", of=_NUMBERS),
    "date": _cast("date", of=_DAYS),
    "timestamp": _cast("timestamp", of=_DAYS),
    "text": lambda values: _each(values, "text", lambda value: None if value is None else _plain_text(value)),
    "boolean": lambda values: _each(values, "boolean", _truth),
}


def type_words(type: ColumnType | None, decimals: int | None = None) -> str:
    """The name of a type in a statement.

    >>> type_words("decimal", 2), type_words("timestamp")
    ('decimal, 2 decimals', 'time stamp')
    """
    named = {"timestamp": "time stamp", "boolean": "truth value", None: ""}.get(type, type)
    return (
        f"{named}, {decimals} decimal{'s' if decimals != 1 else ''}" if decimals is not None else str(named)
    )


def column_of(name: str, cells: Sequence[Any]) -> tuple[Any, Message | None]:
    """An Arrow array, and a doubt if cells have several types; then all of them become text.

    >>> column_of("age", [34, None, 2.5])[0].to_pylist()
    [34.0, None, 2.5]
    """
    import pyarrow as pa

    kinds: dict[str, tuple[int, Any]] = {}
    for row, cell in enumerate(cells, start=1):
        if cell is not None:
            kinds.setdefault(_KINDS.get(type(cell), "other-cells"), (row, cell))
    if not kinds:
        return pa.nulls(len(cells)), None
    if len(kinds) > 1:
        (first, (row, cell)), (second, (other_row, other)) = list(kinds.items())[:2]
        texts = pa.array([None if value is None else plain_text(value) for value in cells], pa.string())
        facts = {"row": row, "cell": _short_value(cell), "other_row": other_row, "found": _short_value(other)}
        return texts, Message.of(
            "mixed-cells", column=name, kind=Message(first), other_kind=Message(second), **facts
        )
    (kind,) = kinds
    if kind == "number-cells":
        return _numbers(name, cells)
    if kind == "date-cells":
        moments = [
            cell if isinstance(cell, datetime) or cell is None else datetime(cell.year, cell.month, cell.day)
            for cell in cells
        ]
        whole = all(cell is None or cell.time() == time() for cell in moments)
        if whole:
            return pa.array([None if cell is None else cell.date() for cell in moments], pa.date32()), None
        return pa.array(moments, pa.timestamp("us")), None
    if kind in ("time-cells", "other-cells"):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string()), None
    return pa.array(cells, pa.bool_() if kind == "truth-value-cells" else pa.string()), None


def _numbers(name: str, cells: Sequence[Any]) -> tuple[Any, Message | None]:
    import pyarrow as pa

    whole = all(cell is None or isinstance(cell, int) for cell in cells)
    large = next(
        (
            (row, cell)
            for row, cell in enumerate(cells, start=1)
            if isinstance(cell, int) and abs(cell) > _EXACT_INTEGER
        ),
        None,
    )
    if large is not None and (not whole or abs(large[1]) >= 2**63):
        row, cell = large
        texts = pa.array([None if value is None else plain_text(value) for value in cells], pa.string())
        return texts, Message.of("too-many-digits", column=name, row=row, found=_short_value(cell))
    if whole:
        return pa.array(cells, pa.int64()), None
    return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64()), None


def plain_text(value: Any) -> str:
    """A cell as text: integers without decimals."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    return str(value)


def _short_value(value: Any) -> str:
    text = plain_text(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
