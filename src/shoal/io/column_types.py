"""Types of columns as public facts: the cells of a column come in, values of its declared type leave.

What a file's cells look like is a fact about the records. A declared type is not: it decides how a column is read, and
in what form it is released, whoever is in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import narwhals as nw

from shoal.errors import InputError, OptionError, closest
from shoal.io.conventions import Conventions
from shoal.io.date_formats import USUAL, DateFormat
from shoal.io.number_signs import USUAL_SIGNS, plain_numbers, signs_of
from shoal.io.text_columns import EMPTY, text_array, thousands_doubt
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa

ColumnType = Literal["integer", "decimal", "date", "timestamp", "text", "boolean"]
TYPES: tuple[ColumnType, ...] = get_args(ColumnType)
_ALSO: Mapping[str, ColumnType] = {"time stamp": "timestamp", "truth value": "boolean"}
DAY_TYPES: tuple[ColumnType, ...] = ("date", "timestamp")
_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
_EXACT_WHOLE = 2.0**53
# how names of Arrow's types begin
_NUMBERS = ("int", "uint", "float", "double", "halffloat", "decimal", "bool")
_DAYS = ("date", "timestamp")


def known_type(word: object, column: str) -> ColumnType:
    """The word of a column's type, or an error that lists them.

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
    """The type that a frame's own type stands for; None for one that holds anything."""
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
    """How a file's column of a type is stored."""
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
    """A column of Arrow values as values of a type.

    Args:
        values: an Arrow array of any type; texts are read as a person writes them.
        na: further texts that stand for a missing value.
        conventions: the decimal and thousands signs of texts.
        date_format: how texts write dates, such as DD.MM.YYYY; 1984-05-31 otherwise.

    Raises:
        InputError: a value is none of that type; names the column, the row and the way out.

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
        # Arrow computes nothing with floats of 16 bits
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
    """What a text that does not fit its type looks like."""
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
    """Dates of one format and no other; a time in it does not count where dates are declared."""
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
    """Every different value by itself: columns repeat theirs."""
    import pyarrow as pa

    encoded = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    encoded = encoded.dictionary_encode()
    found = pa.array([convert(value) for value in encoded.dictionary.to_pylist()], arrow_type(type))
    return found.take(encoded.indices)


def _whole(values: Any) -> Any:
    """Numbers as integers, or an error where one has a fraction."""
    import pyarrow as pa
    from pyarrow import compute

    if not str(values.type).startswith(_NUMBERS):
        raise ValueError("no number")
    if pa.types.is_floating(values.type):
        # beyond this, neighbouring floats stand for several whole numbers
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
    """A value as text: whole numbers have no decimals, whatever the library stores them as."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _day_of_text(value: str) -> Any:
    from datetime import date, datetime

    # a time behind the day does not count: the column holds dates
    return date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value).date()


def _moment_of_text(value: str) -> Any:
    from datetime import datetime

    found = datetime.fromisoformat(value)
    if len(value) < 10 or found.tzinfo is not None:
        raise ValueError("a time stamp has a day and no zone")
    return found


def _iso(convert: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Days as 1984-05-31 only: other forms that Python reads, such as 19840531 or 1984-W22, are no dates here."""

    def strictly(value: str | None) -> Any:
        if value is None:
            return None
        if len(value) < 10 or value[4] != "-" or value[7] != "-":
            raise ValueError("not of the form 1984-05-31")
        return convert(value)

    return strictly


def _cast(type: ColumnType, *, of: tuple[str, ...]) -> Callable[[Any], Any]:
    """A conversion that Arrow does, from types whose name begins so."""

    def convert(values: Any) -> Any:
        if not str(values.type).startswith(of):
            raise ValueError(f"no {type}")
        return values.cast(arrow_type(type), safe=False)

    return convert


def _truth(value: Any) -> bool | None:
    if value is None:
        return None
    try:
        return _TRUTH[str(value).lower()]
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
    """A type in a statement.

    >>> type_words("decimal", 2), type_words("timestamp")
    ('decimal, 2 decimals', 'time stamp')
    """
    named = {"timestamp": "time stamp", "boolean": "truth value", None: ""}.get(type, type)
    return (
        f"{named}, {decimals} decimal{'s' if decimals != 1 else ''}" if decimals is not None else str(named)
    )
