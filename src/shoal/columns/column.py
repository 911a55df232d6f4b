"""Column values as numbers or labels, and back in the type in which a column is released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import MISSING_VALUE, Attribute
from shoal.columns.kinds import MAX_STEPS, Lattice, day_text, is_day
from shoal.errors import InputError, closest
from shoal.io import FORMATS, Table, type_of
from shoal.numbers import Bools, Floats, Integers, decimal_text
from shoal.taxonomy import distinct, label, loose
from shoal.text import Message

# minimum number of steps of the released values over the domain
_FEW_STEPS = 10_000
_MOST_DECIMALS = 17


def texts(table: Table, name: str) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct values of a column as text, and the index of each row's value (-1 where it is missing).

    Integers have no decimals, however the library stores them, and blanks around a text are ignored.

    >>> import pyarrow as pa
    >>> from shoal.io import read
    >>> found, which = texts(read(pa.table({"code": [11.0, None, 12.0, 11.0]})), "code")
    >>> found, which.tolist()
    (['11', '12'], [0, -1, 1, 0])
    """
    values, which = distinct(table.series(name).to_native())
    # a float column of some libraries holds NaN as well as missing values
    gaps = [place for place, value in enumerate(values) if value != value]
    if gaps:
        which = np.where(np.isin(which, gaps), -1, which)
    return [label(value) for value in values], which


def stored_labels(table: Table, attribute: Attribute, labels: Sequence[str]) -> NDArray[np.object_]:
    """Labels as the column stores them: text, numbers, booleans, categories.

    The type follows from the declared type, if there is one, never from the values.

    Raises:
        InputError: the column's type cannot store one of them.

    >>> import pyarrow as pa
    >>> from shoal.io import read
    >>> from shoal.columns.attribute import Attribute
    >>> stored_labels(read(pa.table({"code": [11, 12]})), Attribute("code", "nominal"), ["12", "14"]).tolist()
    [12, 14]
    """
    name = attribute.name
    if isinstance(table.dtype(name), nw.Unknown):
        raise InputError("column-no-value-all-so-type", column=name)
    # the values a type lists are a fact about the records, unless nothing else is known
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
    """Values by their text, for a type that lists its values."""
    if table.frame.implementation.is_pandas_like():
        listed = getattr(table.frame.to_native().dtypes[name], "categories", None)
    else:
        dtype = table.dtype(name)
        listed = dtype.categories if isinstance(dtype, nw.Enum) else None
    return None if listed is None else {label(value): value for value in listed}


def _type_of_values(table: Table, attribute: Attribute) -> str:
    """The type of a column's values: the declared one, or that of its frame; polars lists texts only."""
    found = type_of(table.dtype(attribute.name))
    if attribute.name not in table.inferred and table.frame.implementation.is_pandas_like():
        found = attribute.type or found
    return found or attribute.type or "text"


def parsed_label(text: str, kind: str) -> Any:
    """A label as a value of the kind, None if it is not one."""
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


def with_few_decimals(lattice: Lattice) -> Lattice:
    """The release lattice of a column without a step: about four digits of its public width.

    Further decimals are noise, and would only show how a number was computed. At least two are kept, within the
    precision of float64.

    >>> from fractions import Fraction
    >>> with_few_decimals(Lattice(Fraction(0), Fraction(200), Fraction(1, 2**20))).step
    Fraction(1, 100)
    """
    decimals = 2
    while Fraction(1, 10**decimals) * _FEW_STEPS > lattice.width:
        decimals += 1
    size = max(abs(lattice.lo), abs(lattice.hi))
    while decimals > 0 and size * 10**decimals > MAX_STEPS:
        decimals -= 1
    step = Fraction(1, 10**decimals)
    # integral multiples of the step inside the domain, so that values look like recorded numbers
    lo, hi = (step * end for end in (math.ceil(lattice.lo / step), math.floor(lattice.hi / step)))
    return lattice if lo >= hi or (hi - lo) / step > MAX_STEPS else Lattice(lo, hi, step)


def on_step(values: NDArray[np.float64], lattice: Lattice, *, clip: bool) -> NDArray[np.float64]:
    """Values rounded to the lattice, with no more decimals than its step.

    >>> from fractions import Fraction
    >>> on_step(np.array([1.2345]), Lattice(Fraction(0), Fraction(9), Fraction(1, 100)), clip=True).tolist()
    [1.23]
    """
    positions = np.rint((values - float(lattice.lo)) / float(lattice.step))
    if clip:
        positions = np.clip(positions, 0, math.floor(lattice.width / lattice.step))
    digits = max(_decimals(part) for part in (lattice.lo, lattice.step))
    return np.asarray(np.round(lattice.values(positions), digits))


def _decimals(value: Fraction) -> int:
    """Number of decimals of a number; the precision of float64 if they do not end."""
    return next((d for d in range(_MOST_DECIMALS) if (value * 10**d).denominator == 1), _MOST_DECIMALS)


def narrow_floats(
    values: NDArray[np.float64], lattice: Lattice, kind: type[np.floating[Any]], *, clip: bool
) -> NDArray[np.floating[Any]]:
    """Values in the storage type, inside the domain even after rounding to fewer digits."""
    limit = float(np.finfo(kind).max)
    rounded = np.clip(values, -limit, limit).astype(kind)
    if not clip:
        return rounded
    # compared as float64: a plain number would be converted to the array's type first
    above = rounded.astype(np.float64) > float(lattice.hi)
    below = rounded.astype(np.float64) < float(lattice.lo)
    rounded[above] = np.nextafter(rounded[above], kind(-np.inf))
    rounded[below] = np.nextafter(rounded[below], kind(np.inf))
    return rounded


def whole_numbers(
    values: NDArray[np.float64], lattice: Lattice, limits: tuple[int, int], *, clip: bool
) -> NDArray[np.int64]:
    """Values of an integer column, rounded as the very last step, within the domain and the storage type."""
    lo, hi = limits
    if clip:
        lo, hi = max(lo, math.ceil(lattice.lo)), min(hi, math.floor(lattice.hi))
    rounded = np.clip(np.rint(values), float(lo), float(hi)).astype(np.int64)
    # float64 cannot represent every 64-bit limit
    return np.clip(rounded, lo, hi)


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
    """Numbers of a non-numeric column converted back as the column stores them: labels, dates, or texts of dates.

    For a nominal column they are codes of concepts in its taxonomy.
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
    # only concepts that occur: a group of values may have no form in the column's type, and is then never released
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
    """Values as the column stores them; rounding, the very last step, happens here.

    Args:
        computed: the values are not those of records, so only meaningful decimals are kept.
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
    """The values a released nominal column may hold, as it stores them; None for other columns."""
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
    """Raise, before any work is done, if column or file cannot store a label that may be released."""
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
    """Bounds and step of a domain, in the terms of its kind."""
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
    # an empty cell of a CSV file is not a label, unless it is declared as one
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
    # empty text cells and pandas' "not a time" are missing
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


def spelled(value: str, known: Sequence[str]) -> str | None:
    """A value as its column spells it: `true` of a TOML file is `True`, and 1.0 is 1; None if it has no such value."""
    if value in known:
        return value
    return next((name for name in known if name.lower() == value.lower()), None)


@dataclass(frozen=True, slots=True)
class Field:
    """A column as the rules see it: the lattice of its records and that of released values, the names of listed
    values, and whether it can be missing."""

    name: str
    fine: Lattice
    lattice: Lattice
    labels: tuple[str, ...]
    days: bool
    can_miss: bool
    # the concept of each place of a nominal column, and the place that stands for a missing value
    codes: tuple[int, ...] | None = None
    gap: int | None = None

    @classmethod
    def of(cls, attribute: Attribute, lattice: Lattice, *, integer: bool) -> Field:
        """The column of an attribute; `integer`: it is stored as whole numbers."""
        stepped = integer or not attribute.kind_facts.measured or attribute.declared_step is not None
        shown = lattice if stepped else with_few_decimals(lattice)
        tree, facts = attribute.tree, attribute.kind_facts
        if tree is not None:
            labels = tuple(tree.labels[code] for code in tree.domain)
            gap = labels.index(MISSING_VALUE) if MISSING_VALUE in labels else None
            return cls(
                attribute.name,
                lattice,
                shown,
                labels,
                False,
                gap is not None,
                tuple(map(int, tree.domain)),
                gap,
            )
        labels = tuple(attribute.ordered) if facts.listed else ()
        return cls(attribute.name, lattice, shown, labels, facts.days, attribute.flagged)

    @property
    def step(self) -> float:
        return float(self.lattice.step)

    @property
    def ends(self) -> tuple[float, float]:
        return float(self.lattice.lo), float(self.lattice.hi)

    @property
    def slack(self) -> float:
        """Differences below this are rounding errors of floating-point numbers."""
        return self.step * 1e-6

    def place(self, label: object) -> float:
        """The place of a named value, or the number itself; NaN if the column has no such value."""
        if not self.labels:
            return float(label)  # type: ignore[arg-type]
        name = spelled(str(label), self.labels)
        return np.nan if name is None else float(self.labels.index(name))

    def rounded(self, values: Floats) -> Floats:
        """The nearest values of the lattice, inside the domain."""
        with np.errstate(invalid="ignore"):
            return on_step(values, self.lattice, clip=True)

    def of_positions(self, positions: Integers, absent: Bools | None) -> Floats:
        """Values at lattice positions."""
        found = positions.astype(np.float64) if self.labels else self.rounded(self.fine.values(positions))
        if self.gap is not None:
            found = np.where(positions == self.gap, np.nan, found)
        return found if absent is None else np.where(absent, np.nan, found)

    def to_positions(self, values: Floats) -> Integers:
        """Lattice positions of values; those of missing values are arbitrary unless they are listed."""
        filled = np.where(np.isnan(values), self.ends[0], values)
        places = np.rint(filled).astype(np.int64) if self.labels else self.fine.positions(filled)
        return places if self.gap is None else np.where(np.isnan(values), self.gap, places)

    def of_drawn(self, values: Floats) -> Floats:
        """Drawn values, where nominal ones are concepts."""
        if self.codes is None:
            return values if self.labels else self.rounded(values)
        found = np.searchsorted(self.codes, values).astype(np.float64)
        return found if self.gap is None else np.where(found == self.gap, np.nan, found)

    def to_drawn(self, values: Floats) -> Floats:
        if self.codes is None:
            return values
        return np.asarray(self.codes, dtype=np.float64)[self.to_positions(values)]
