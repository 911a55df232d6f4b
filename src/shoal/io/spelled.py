"""A table as a text file writes it: values come in, texts by the conventions of the input leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shoal.io.conventions import Conventions
from shoal.io.date_formats import DateFormat
from shoal.io.spreadsheets import harmless

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.io.formats import Manner


def spelled(table: pa.Table, manner: Manner) -> pa.Table:
    """Numbers with the decimal and thousands signs, dates in their format, formulas made harmless if asked."""
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
    """The table with its dates as texts of their formats."""
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
    """A number as Arrow spells it with the signs of the conventions.

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
    """Every different value by itself, missing ones as they are."""
    import pyarrow as pa

    if as_text:
        column = column.cast(pa.string())
    encoded = column.combine_chunks().dictionary_encode()
    found = pa.array(
        [None if value is None else convert(value) for value in encoded.dictionary.to_pylist()], pa.string()
    )
    return pa.chunked_array([found.take(encoded.indices)])
