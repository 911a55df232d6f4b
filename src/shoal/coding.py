"""Kinds of values as numbers: a column comes in, float64 goes on; numbers come back as the column's own values."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.dates import day_text, is_day
from shoal.errors import InputError, did_you_mean
from shoal.io import Table
from shoal.lattice import Lattice, decimal_text
from shoal.schema import Attribute


def numbers(table: Table, attribute: Attribute) -> NDArray[np.float64]:
    """A column as numbers, missing values as NaN: places in the declared order, days since 1970, or the values.

    >>> import pyarrow as pa
    >>> from shoal.io import read
    >>> sizes = Attribute("size", "ordinal", ordered=("S", "M", "L"))
    >>> numbers(read(pa.table({"size": ["M", "L", None]})), sizes).tolist()
    [1.0, 2.0, nan]
    """
    if attribute.kind == "ordinal":
        return _places(table, attribute)
    if attribute.kind == "date":
        return _days(table, attribute.name)
    return table.numeric(attribute.name)


def restored(table: Table, attribute: Attribute, values: NDArray[np.float64]) -> NDArray[Any]:
    """Numbers of an ordinal or date column as the column stores them: labels, dates, or the text of dates."""
    whole = np.rint(values).astype(np.int64)
    if attribute.kind == "ordinal":
        kind: Any = np.int64 if table.is_integer(attribute.name) else object
        labels = [int(label) for label in attribute.ordered] if kind is np.int64 else list(attribute.ordered)
        return np.array(labels, dtype=kind)[whole]
    days = whole.astype("datetime64[D]")
    if table.dtype(attribute.name).is_temporal():
        return days
    return np.datetime_as_string(days).astype(object)


def public_facts(attribute: Attribute, lattice: Lattice) -> dict[str, str]:
    """Ends and step of a domain in words that belong to its kind."""
    if attribute.kind == "ordinal":
        return {"lo": attribute.ordered[0], "hi": attribute.ordered[-1], "step": "one place in the order"}
    if attribute.kind == "date":
        step = decimal_text(lattice.step)
        return {
            "lo": day_text(lattice.lo) if is_day(lattice.lo) else decimal_text(lattice.lo),
            "hi": day_text(lattice.hi) if is_day(lattice.hi) else decimal_text(lattice.hi),
            "step": f"{step} day{'s' if step != '1' else ''}",
        }
    return {
        "lo": decimal_text(lattice.lo),
        "hi": decimal_text(lattice.hi),
        "step": decimal_text(lattice.step),
    }


def _places(table: Table, attribute: Attribute) -> NDArray[np.float64]:
    place: dict[Any, float] = {label: float(number) for number, label in enumerate(attribute.ordered)}
    # an empty cell of a CSV file is no label, unless it is declared as one
    place = {None: np.nan, "": np.nan, **place}
    labels = table.series(attribute.name).cast(nw.String()).to_list()
    found = [place.get(label) for label in labels]
    if None in found:
        row = found.index(None)
        hint = did_you_mean(str(labels[row]), attribute.ordered)
        raise InputError(
            f"column '{attribute.name}' holds '{labels[row]}' in row {row + 1}, which its order does not list: correct "
            f"it, or add it to ordered in the schema.{hint}"
        )
    return np.array(found, dtype=np.float64)


def _days(table: Table, name: str) -> NDArray[np.float64]:
    series = table.series(name)
    if table.is_numeric(name):
        raise InputError(f"column '{name}' should hold dates, but it holds numbers: declare it as numeric.")
    values = [None if value == "" else value for value in series.to_list()]
    try:
        days = np.array(values, dtype="datetime64[D]")
    except (ValueError, TypeError):
        row = next(number for number, value in enumerate(values) if not _is_date(value))
        raise InputError(
            f"column '{name}' should hold dates such as 1984-05-31, but row {row + 1} holds '{str(values[row])[:40]}': "
            "correct it, or leave the column out."
        ) from None
    found = days.astype(np.int64).astype(np.float64)
    found[np.isnat(days)] = np.nan
    return found


def _is_date(value: Any) -> bool:
    try:
        np.array([value], dtype="datetime64[D]")
    except (ValueError, TypeError):
        return False
    return True
