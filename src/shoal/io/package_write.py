"""A table and its codebook come in, a Stata or SPSS file is written: the same codes, labels and formats as before."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError, OutputError, needs_extra
from shoal.io import package_dates as dates
from shoal.io.codebook import Code, Codebook, Variable
from shoal.io.package_names import TITLES, check_column_names
from shoal.io.package_read import library

if TYPE_CHECKING:
    import pyarrow as pa

# Stata 14 and later read it; the newest version is for tables of more than 32,767 columns
_STATA_VERSION = 14
# larger numbers of a Stata `long` stand for missing values
_LARGEST_LONG = 2_147_483_620
_EXACT_WHOLE = 2**53
_STATA_LABEL_CHARACTERS = 80
_SPSS_LABEL_BYTES = 255
_SPSS_VALUE_LABEL_BYTES = 120
# where the header of an SPSS file says when it was written: nine bytes of a date, eight of a time
_SPSS_MOMENT = 92


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """One column ready to be written.

    Attributes:
        values: a numpy array, or a pandas one for integers with missing values.
        labels: value labels by code.
        format: display format, None for the library's own choice.
        missing: ranges of codes that stand for missing values (SPSS).
    """

    values: Any
    labels: Mapping[Code, str] = field(default_factory=dict)
    format: str | None = None
    missing: tuple[tuple[Code, Code], ...] = ()


def check_package(names: Any, target: str) -> None:
    """Refuse, before any work is done, what could not be written at the end."""
    library()
    with needs_extra("files", f"writing {TITLES[target]} files needs"):
        import pandas  # type: ignore[import-untyped]  # noqa: F401
    check_column_names(names, target)


def write_package(table: pa.Table, path: Path, target: str, codebook: Codebook | None = None) -> None:
    """Texts that have a code are written as the code with its label; other texts as they are.

    A text without a code in a labelled column (an inner concept of a taxonomy) gets a fresh code.

    Raises:
        InputError: a column has a name or a type that the format cannot hold.
        MissingExtraError: pyreadstat or pandas is not installed.
    """
    check_package(table.column_names, target)
    import pandas as pd

    known = library()
    book = codebook or Codebook(target, {})
    variables = {name: book.of(name) for name in table.column_names}
    columns = {
        name: _column(name, table.column(name), variable, book.source, target)
        for name, variable in variables.items()
    }
    frame = pd.DataFrame({name: column.values for name, column in columns.items()}, copy=False)
    settings: dict[str, Any] = {
        "column_labels": {name: _cut(v.label, target) for name, v in variables.items()},
        "variable_value_labels": {
            name: {code: _cut(label, target, value=True) for code, label in column.labels.items()}
            for name, column in columns.items()
            if column.labels
        },
        "variable_format": {name: column.format for name, column in columns.items() if column.format},
    }
    same = book.source == target
    if target == "stata":
        tags = {name: list(v.tags) for name, v in variables.items() if v.tags and columns[name].labels}
        settings |= {"version": _STATA_VERSION, "missing_user_values": tags or None}
    else:
        settings |= {
            "compress": path.suffix.lower() == ".zsav",
            "missing_ranges": {
                name: [{"lo": _finite(lo), "hi": _finite(hi)} for lo, hi in column.missing]
                for name, column in columns.items()
                if column.missing
            },
            "variable_measure": {name: v.measure for name, v in variables.items() if same and v.measure},
            "variable_display_width": {
                # how wide texts are shown follows the longest of them
                name: v.width
                for name, v in variables.items()
                if same and v.width and columns[name].values.dtype != object
            },
        }
    try:
        (known.write_dta if target == "stata" else known.write_sav)(frame, path, **settings)
    except (known.ReadstatError, known.PyreadstatError) as error:
        raise OutputError(
            "cannot-written-file", path=path.name, titles=TITLES[target], reason=error
        ) from None
    _without_clock(path, target)


def _without_clock(path: Path, target: str) -> None:
    """Both formats note when the file was written, which nobody needs to know: the place holds a fixed moment."""
    with path.open("r+b") as file:
        head = file.read(4096)
        start, length = _SPSS_MOMENT, 17
        if target == "stata":
            mark = b"<timestamp>"
            # a byte says how long the moment is
            start = head.index(mark) + len(mark) + 1
            length = head[start - 1]
        moment = b"01 Jan 1970 00:00" if target == "stata" else b"01 Jan 7000:00:00"
        file.seek(start)
        file.write(moment[:length].ljust(length))


def _column(name: str, values: Any, variable: Variable, source: str, target: str) -> _Column:
    import pyarrow as pa

    values = values.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    native = variable if source == target else _abroad(variable)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _coded(values, native, target) if variable.shows_labels else _text(values, native)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _dates(values, native, target)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return _whole(name, values, native, target)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return _numeric(values.cast(pa.float64()).to_numpy(zero_copy_only=False), native, target)
    raise InputError("column-type-cannot-written-file", column=name, kind=kind, titles=TITLES[target])


def _abroad(variable: Variable) -> Variable:
    """What another package can take over: codes with labels, but neither formats nor ways to say what is missing."""
    labels = {code: label for code, label in variable.labels.items() if not variable.is_missing(code)}
    taken = variable.reserved.union(variable.labels) if variable.shows_labels else variable.reserved
    return Variable(
        labels=labels,
        texts=variable.texts,
        reserved=taken.difference(variable.texts),
        declared=variable.declared,
    )


def _text(values: Any, variable: Variable) -> _Column:
    # an empty text is how both packages store that there is none
    texts = np.array(values.fill_null("").to_pylist(), dtype=object)
    spans = tuple((lo, hi) for lo, hi in variable.missing if isinstance(lo, str) and not (texts == lo).any())
    return _Column(texts, missing=spans)


def _coded(values: Any, variable: Variable, target: str) -> _Column:
    """Texts back to their codes."""
    encoded = values.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    codes = variable.codes_of(texts)
    every = [*codes.values(), *variable.labels]
    words = any(isinstance(code, str) for code in every)
    if target == "stata" and not all(isinstance(code, int) and abs(code) <= _LARGEST_LONG for code in every):
        # Stata labels whole numbers only: the texts themselves are what is left
        return _text(values, Variable())
    labels = dict(variable.labels)
    # a number without a label is its own text, but a text without one is not known to be a code
    unlabelled = {text: code for text, code in codes.items() if code not in variable.texts}
    labels |= {code: text for text, code in unlabelled.items() if isinstance(code, str) or text != str(code)}
    place = encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    if words:
        known = np.array([*(codes[text] for text in texts), ""], dtype=object)
        return _Column(known[place], labels, missing=variable.missing)
    numbers = np.array([*(codes[text] for text in texts), np.nan], dtype=np.float64)[place]
    format = _number_format(variable, target)
    if all(isinstance(code, int) and abs(code) <= _LARGEST_LONG for code in every):
        tagged: dict[Code, str] = {**labels, **variable.tags}
        return _Column(_integers(numbers), tagged, format, variable.missing)
    return _Column(numbers, labels, format, variable.missing)


def _whole(name: str, values: Any, variable: Variable, target: str) -> _Column:
    import pyarrow as pa

    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    present = values.drop_null().to_numpy(zero_copy_only=False)
    largest = max(abs(int(present.min())), abs(int(present.max()))) if present.size else 0
    if largest > _EXACT_WHOLE:
        raise InputError("column-holds-whole-numbers-beyond-2", column=name, titles=TITLES[target])
    numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    if largest > _LARGEST_LONG:
        digits = len(str(largest)) + 1
        wide = f"%{digits}.0f" if target == "stata" else f"F{digits}.0"
        return _Column(numbers, format=wide, missing=_untouched(variable, numbers))
    column = _numeric(numbers, variable, target)
    labels: dict[Code, str] = {
        code: label for code, label in column.labels.items() if not isinstance(code, float)
    }
    return _Column(_integers(numbers), labels, column.format, column.missing)


def _numeric(numbers: NDArray[np.float64], variable: Variable, target: str) -> _Column:
    missing = _untouched(variable, numbers)
    labels: dict[Code, str] = {
        code: label
        for code, label in variable.labels.items()
        if not isinstance(code, str) and (missing == variable.missing or not variable.is_missing(code))
    }
    if target == "stata":
        labels = {code: label for code, label in labels.items() if isinstance(code, int)} | dict(
            variable.tags
        )
    return _Column(numbers, labels, _number_format(variable, target), missing)


def _dates(values: Any, variable: Variable, target: str) -> _Column:
    import pyarrow as pa

    family: dates.Family = "day" if pa.types.is_date(values.type) else "instant"
    numbers = dates.to_numbers(values, family, target)
    format = variable.format
    if dates.family(format, target) != family:
        format = dates.DEFAULT_FORMATS[target, family]
    return _Column(numbers, format=format, missing=_untouched(variable, numbers))


def _untouched(variable: Variable, numbers: NDArray[np.float64]) -> tuple[tuple[Code, Code], ...]:
    """The declared missing values, unless a released number would be taken for one of them."""
    for lo, hi in variable.missing:
        if isinstance(lo, str) or isinstance(hi, str) or ((numbers >= lo) & (numbers <= hi)).any():
            return ()
    return variable.missing


def _number_format(variable: Variable, target: str) -> str | None:
    format = variable.format
    if format is None or dates.family(format, target) is not None:
        return None
    is_text = format.endswith("s") if target == "stata" else format.startswith("A")
    return None if is_text and not format.startswith("ADATE") else format


def _integers(numbers: NDArray[np.float64]) -> Any:
    import pandas as pd

    absent = np.isnan(numbers)
    whole = np.where(absent, 0.0, numbers).astype(np.int32)
    return pd.arrays.IntegerArray(whole, absent) if absent.any() else whole


def _finite(bound: Code) -> Code:
    """Open ends of a range are the largest number there is, in the file."""
    if isinstance(bound, float) and math.isinf(bound):
        return math.copysign(sys.float_info.max, bound)
    return bound


def _cut(label: str | None, target: str, *, value: bool = False) -> str | None:
    """A label no longer than the format allows, whole characters only."""
    if label is None:
        return None
    if target == "stata":
        return label if value else label[:_STATA_LABEL_CHARACTERS]
    room = _SPSS_VALUE_LABEL_BYTES if value else _SPSS_LABEL_BYTES
    return label.encode()[:room].decode(errors="ignore")
