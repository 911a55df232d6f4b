"""Names in columns: a column comes in, the text of its values leaves; text comes back as the column stores it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.io.column_types import type_of
from shoal.taxonomy.links import distinct, label, loose

if TYPE_CHECKING:
    from shoal.columns.schema import Attribute
    from shoal.io import Table


def texts(table: Table, name: str) -> tuple[list[str], NDArray[np.int64]]:
    """The different values of a column as text, and for each row which of them it holds (-1 where it is missing).

    Whole numbers have no decimals, whatever the library stores them as, and blanks around a text do not count.

    >>> import pyarrow as pa
    >>> from shoal.io import read
    >>> found, which = texts(read(pa.table({"code": [11.0, None, 12.0, 11.0]})), "code")
    >>> found, which.tolist()
    (['11', '12'], [0, -1, 1, 0])
    """
    values, which = distinct(table.series(name).to_native())
    # a float column of some libraries holds NaN beside what it calls missing
    gaps = [place for place, value in enumerate(values) if value != value]
    if gaps:
        which = np.where(np.isin(which, gaps), -1, which)
    return [label(value) for value in values], which


def stored_labels(table: Table, attribute: Attribute, labels: Sequence[str]) -> NDArray[np.object_]:
    """Labels as the column stores them: text, numbers, truth values, categories.

    A column of a declared type holds what that says, never what its values happen to be.

    Raises:
        InputError: the column's type has no place for one of them.

    >>> import pyarrow as pa
    >>> from shoal.io import read
    >>> from shoal.columns.schema import Attribute
    >>> stored_labels(read(pa.table({"code": [11, 12]})), Attribute("code", "nominal"), ["12", "14"]).tolist()
    [12, 14]
    """
    name = attribute.name
    if isinstance(table.dtype(name), nw.Unknown):
        raise InputError("column-no-value-all-so-type", column=name)
    # what a type lists is a fact about the records, unless nothing else is known
    known = _categories(table, name) if name in table.inferred else None
    kind = _type_of_values(table, attribute)
    found: NDArray[np.object_] = np.empty(len(labels), dtype=object)
    for place, text in enumerate(labels):
        value = known.get(text) if known is not None else parsed_label(text, kind)
        if value is None or not _fits(table, name, value):
            raise InputError(
                "column-stored-cannot-hold", column=name, stored=_type_words(table, name), found=text
            )
        found[place] = value
    return found


def _categories(table: Table, name: str) -> dict[str, Any] | None:
    """Values by their text, for a type that lists all it can hold."""
    if table.frame.implementation.is_pandas_like():
        listed = getattr(table.frame.to_native().dtypes[name], "categories", None)
    else:
        dtype = table.dtype(name)
        listed = dtype.categories if isinstance(dtype, nw.Enum) else None
    return None if listed is None else {label(value): value for value in listed}


def _type_of_values(table: Table, attribute: Attribute) -> str:
    """The type of the values of a column: the declared one, or that of its frame; polars lists texts only."""
    found = type_of(table.dtype(attribute.name))
    if attribute.name not in table.inferred and table.frame.implementation.is_pandas_like():
        found = attribute.type or found
    return found or attribute.type or "text"


def parsed_label(text: str, kind: str) -> Any:
    """A label as a value of the kind, None where it is no such value."""
    if kind == "text":
        return text
    if kind == "boolean":
        return {"true": True, "false": False}.get(loose(text))
    try:
        return int(text) if kind == "integer" else float(text) if kind == "decimal" else None
    except ValueError:
        return None


def _fits(table: Table, name: str, value: Any) -> bool:
    if not table.is_integer(name):
        return True
    lo, hi = table.integer_limits(name)
    return bool(lo <= value <= hi)


def _type_words(table: Table, name: str) -> str:
    return "a categorical type" if _categories(table, name) is not None else str(table.dtype(name))
