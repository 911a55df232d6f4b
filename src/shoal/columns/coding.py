"""Kinds of values as numbers: a column comes in, float64 goes on; numbers come back as the column's own values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import MISSING_VALUE, Attribute
from shoal.columns.dates import day_text, is_day
from shoal.columns.labels import stored_labels, texts
from shoal.columns.lattice import Lattice
from shoal.columns.rounding import narrow_floats, on_step, whole_numbers, with_few_decimals
from shoal.decimals import decimal_text
from shoal.errors import InputError, closest
from shoal.io import FORMATS, Table
from shoal.taxonomy.links import label
from shoal.text import Message


def numbers(table: Table, attribute: Attribute) -> NDArray[np.float64]:
    """A column as numbers, missing values as NaN: places in the declared order, days since 1970, or the values.

    >>> import pyarrow as pa
    >>> from shoal.io import read
    >>> sizes = Attribute("size", "ordinal", ordered=("S", "M", "L"))
    >>> numbers(read(pa.table({"size": ["M", "L", None]})), sizes).tolist()
    [1.0, 2.0, nan]
    """
    if attribute.kind_facts.listed:
        return _places(table, attribute)
    if attribute.kind_facts.days:
        return _days(table, attribute.name)
    if not attribute.kind_facts.ordered:
        return _value_places(table, attribute)
    return table.numeric(attribute.name)


def labels_of(table: Table, attribute: Attribute) -> list[str | None]:
    """The values of a nominal column as text, missing ones as None; an empty cell of text is missing."""
    found, which = texts(table, attribute.name)
    names = np.array([*(text or None for text in found), None], dtype=object)
    rows: list[str | None] = names[which].tolist()
    return rows


def _value_places(table: Table, attribute: Attribute) -> NDArray[np.float64]:
    """Places of values in the domain of the attribute's taxonomy."""
    tree = attribute.tree
    assert tree is not None
    listed = attribute.taxonomy is None
    labels = labels_of(table, attribute)
    what = Message.of("column-named", column=attribute.name)
    codes = tree.encode(labels, what, missing=-1, listed_values=listed)
    if attribute.missing == "category":
        codes[codes < 0] = tree.code(MISSING_VALUE)
    places = np.searchsorted(np.asarray(tree.domain), codes).astype(np.float64)
    places[codes < 0] = np.nan
    return places


def restored(table: Table, attribute: Attribute, values: NDArray[np.float64]) -> NDArray[Any]:
    """Numbers of a column that holds no numbers as the column stores them: labels, dates, or the text of dates.

    Those of a nominal column are codes of concepts in its taxonomy.
    """
    whole = np.rint(values).astype(np.int64)
    if not attribute.kind_facts.ordered:
        return _labels(table, attribute, whole)
    if attribute.kind_facts.listed:
        return stored_labels(table, attribute, attribute.ordered)[whole]
    days = whole.astype("datetime64[D]")
    if table.dtype(attribute.name).is_temporal():
        return days
    return np.datetime_as_string(days).astype(object)


def _labels(table: Table, attribute: Attribute, codes: NDArray[np.int64]) -> NDArray[Any]:
    tree = attribute.tree
    assert tree is not None
    # only what is there: a group of values may have no place in the column's type, and is then never released
    used, which = np.unique(codes, return_inverse=True)
    names = [tree.labels[code] for code in used]
    present = [name for name in names if name != MISSING_VALUE]
    as_stored = dict(zip(present, stored_labels(table, attribute, present), strict=True))
    found: NDArray[np.object_] = np.empty(len(names), dtype=object)
    found[:] = [as_stored.get(name) for name in names]
    return found[which]


def stored_numbers(
    table: Table,
    attribute: Attribute,
    lattice: Lattice,
    values: NDArray[np.float64],
    *,
    clip: bool,
    computed: bool = True,
) -> NDArray[Any]:
    """Values as the column stores them: rounded here, as the very last step.

    Args:
        computed: they are no values of records, so that they need no more decimals than say something.
    """
    if not attribute.kind_facts.ordered:
        return restored(table, attribute, values)
    if not attribute.kind_facts.measured:
        return restored(table, attribute, np.clip(values, float(lattice.lo), float(lattice.hi)))
    if table.is_integer(attribute.name):
        return whole_numbers(values, lattice, table.integer_limits(attribute.name), clip=clip)
    if attribute.declared_step is not None:
        values = on_step(values, lattice, clip=clip)
    elif computed:
        values = on_step(values, with_few_decimals(lattice), clip=clip)
    return narrow_floats(values, lattice, table.float_type(attribute.name), clip=clip)


def releasable(table: Table, attribute: Attribute, *, generalise: bool) -> list[Any] | None:
    """What a column of names may hold when it is released, as it stores it; None for other columns."""
    if attribute.kind_facts.listed:
        return list(stored_labels(table, attribute, attribute.ordered))
    tree = attribute.tree
    if tree is None:
        return None
    # in the order of the schema, then what the taxonomy adds
    names = dict.fromkeys((*map(label, attribute.values), *(tree.labels if generalise else tree.values)))
    allowed = set(tree.labels if generalise else tree.values) - {MISSING_VALUE}
    return list(stored_labels(table, attribute, [name for name in names if name in allowed]))


def check_storable(table: Table, attribute: Attribute, *, generalise: bool) -> None:
    """An error, before any work is done, if column or file have no place for a label that may be released."""
    labels = releasable(table, attribute, generalise=generalise) or ()
    encoding = table.conventions.encoding
    if encoding is None or not FORMATS[table.format].text:
        return
    for text in (attribute.name, *map(str, labels)):
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            raise InputError(
                "column-no-place-file-encoding", column=attribute.name, found=text, encoding=encoding
            ) from None


def public_facts(attribute: Attribute, lattice: Lattice) -> dict[str, str]:
    """Ends and step of a domain in words that belong to its kind."""
    if attribute.kind_facts.listed:
        return {"lo": attribute.ordered[0], "hi": attribute.ordered[-1], "step": "one place in the order"}
    if attribute.kind_facts.days:
        step = decimal_text(lattice.step)
        return {
            "lo": day_text(lattice.lo) if is_day(lattice.lo) else decimal_text(lattice.lo),
            "hi": day_text(lattice.hi) if is_day(lattice.hi) else decimal_text(lattice.hi),
            "step": f"{step} day{'s' if step != '1' else ''}",
        }
    if not attribute.kind_facts.ordered:
        tree = attribute.tree
        assert tree is not None
        words = f"{len(tree.domain)} value{'s' if len(tree.domain) > 1 else ''}" + (
            f" of a taxonomy with {tree.size} concepts" if tree.levels > 2 else ""
        )
        return {"domain": words, "step": ""}
    return {
        "lo": decimal_text(lattice.lo),
        "hi": decimal_text(lattice.hi),
        "step": decimal_text(lattice.step),
    }


def _places(table: Table, attribute: Attribute) -> NDArray[np.float64]:
    place = {label(text): float(number) for number, text in enumerate(attribute.ordered)}
    # an empty cell of a CSV file is no label, unless it is declared as one
    place = {"": np.nan, **place}
    found, which = texts(table, attribute.name)
    strange = [number for number, text in enumerate(found) if text not in place]
    if strange:
        row = int(np.argmax(np.isin(which, strange)))
        text = found[int(which[row])]
        raise InputError(
            "column-holds-row-order-does-not",
            column=attribute.name,
            row=row + 1,
            found=text,
            hint=closest(text, attribute.ordered),
        )
    places: NDArray[np.float64] = np.array([*(place[text] for text in found), np.nan])[which]
    return places


def _days(table: Table, name: str) -> NDArray[np.float64]:
    series = table.series(name)
    if table.is_numeric(name):
        raise InputError("column-should-hold-dates-but-holds", column=name)
    # an empty cell of text, and what pandas calls not a time, are missing
    absent = series.is_null().to_list()
    values = [
        None if gap or value == "" or value != value else value
        for gap, value in zip(absent, series.to_list(), strict=True)
    ]
    try:
        days = np.array(values, dtype="datetime64[D]")
    except (ValueError, TypeError):
        row = next(number for number, value in enumerate(values) if not _is_date(value))
        raise InputError(
            "column-should-hold-dates-such-1984", column=name, row=row + 1, found=str(values[row])[:40]
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
