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
from shoal.schema import MISSING_VALUE, Attribute


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
    if attribute.kind == "nominal":
        return _value_places(table, attribute)
    return table.numeric(attribute.name)


def labels_of(table: Table, attribute: Attribute) -> list[str | None]:
    """The values of a nominal column as text, missing ones as None; an empty cell of text is missing."""
    series = table.series(attribute.name)
    if isinstance(series.dtype, nw.Boolean):
        return [None if value is None else str(bool(value)) for value in series.to_list()]
    if series.dtype.is_float():
        # whole numbers with gaps are stored as floats by some libraries
        return [None if value is None or value != value else f"{value:g}" for value in series.to_list()]
    return [value or None for value in series.cast(nw.String()).to_list()]


def _value_places(table: Table, attribute: Attribute) -> NDArray[np.float64]:
    """Places of values in the domain of the attribute's taxonomy."""
    tree = attribute.tree
    assert tree is not None
    codes = tree.encode(labels_of(table, attribute), f"column '{attribute.name}'", missing=-1)
    places = np.searchsorted(np.asarray(tree.domain), codes).astype(np.float64)
    if attribute.missing == "category":
        codes[codes < 0] = tree.code(MISSING_VALUE)
        return np.searchsorted(np.asarray(tree.domain), codes).astype(np.float64)
    places[codes < 0] = np.nan
    return places


def restored(table: Table, attribute: Attribute, values: NDArray[np.float64]) -> NDArray[Any]:
    """Numbers of a column that holds no numbers as the column stores them: labels, dates, or the text of dates.

    Those of a nominal column are codes of concepts in its taxonomy.
    """
    whole = np.rint(values).astype(np.int64)
    if attribute.kind == "nominal":
        return _labels(table, attribute, whole)
    if attribute.kind == "ordinal":
        kind: Any = np.int64 if table.is_integer(attribute.name) else object
        labels = [int(label) for label in attribute.ordered] if kind is np.int64 else list(attribute.ordered)
        return np.array(labels, dtype=kind)[whole]
    days = whole.astype("datetime64[D]")
    if table.dtype(attribute.name).is_temporal():
        return days
    return np.datetime_as_string(days).astype(object)


def _labels(table: Table, attribute: Attribute, codes: NDArray[np.int64]) -> NDArray[Any]:
    tree = attribute.tree
    assert tree is not None
    names = list(tree.labels)
    dtype = table.dtype(attribute.name)
    stored: list[Any] = names
    if isinstance(dtype, nw.Boolean):
        stored = [{"True": True, "False": False}.get(name) for name in names]
    elif dtype.is_numeric():
        stored = [_number(name) for name in names]
    as_stored: NDArray[np.object_] = np.empty(len(stored), dtype=object)
    as_stored[:] = [
        None if name == MISSING_VALUE else value for name, value in zip(names, stored, strict=True)
    ]
    return as_stored[codes]


def _number(name: str) -> Any:
    try:
        return int(name)
    except ValueError:
        return None


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
    if attribute.kind == "nominal":
        tree = attribute.tree
        assert tree is not None
        words = f"{len(tree.domain)} values" + (
            f" of a taxonomy with {tree.size} concepts" if tree.levels > 2 else ""
        )
        return {"domain": words, "step": ""}
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
