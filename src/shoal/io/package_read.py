"""A Stata or SPSS file comes in; a table of texts, numbers and dates leaves, with its codebook."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import InputError, needs_extra
from shoal.io import package_dates as dates
from shoal.io.codebook import Code, Codebook, Variable
from shoal.io.column_types import ColumnType
from shoal.io.package_names import TITLES

if TYPE_CHECKING:
    import pyarrow as pa

# formats that show no decimals: %8.0f and %12.0fc, F8.0, F8 and COMMA6
_WHOLE = re.compile(r"%-?0?\d+\.0fc?$|(F|N|COMMA|DOT|DOLLAR)\d+(\.0)?$")
_EXACT_WHOLE = 2.0**53


def library() -> Any:
    """pyreadstat, or one line that says how to get it."""
    with needs_extra("files", "Stata and SPSS files need"):
        import pyreadstat
    return pyreadstat


def read_package(
    path: Path, source: str, types: Mapping[str, ColumnType] | None = None
) -> tuple[pa.Table, Codebook]:
    """Columns whose values have labels become text; values declared as missing become missing.

    Args:
        types: declared types by column: text shows labels, a number shows codes. Without one that depends on the
            values that occur.

    Raises:
        InputError: the file is not what its ending says.
        MissingExtraError: pyreadstat is not installed.
    """
    import pyarrow as pa

    known = library()
    reader = known.read_dta if source == "stata" else known.read_sav
    try:
        # the ranges of missing values are told only to those who ask for the values themselves
        _, described = reader(path, metadataonly=True, user_missing=True, output_format="dict")
        columns, meta = reader(path, output_format="dict", disable_datetime_conversion=True)
    except (known.ReadstatError, known.PyreadstatError, UnicodeDecodeError) as error:
        raise InputError(
            "package-read-cannot-be-read-as", path=path, titles=TITLES[source], reason=error
        ) from None
    arrays: dict[str, pa.Array] = {}
    variables: dict[str, Variable] = {}
    for name in meta.column_names:
        stored = meta.readstat_variable_types[name]
        variable = _variable(name, meta, described.missing_ranges.get(name, ()))
        # older versions of the library say NaN where there is no value
        values = pa.array(list(columns[name]), from_pandas=True)
        arrays[name], variables[name] = _column(values, stored, variable, source, (types or {}).get(name))
    return pa.table(arrays), Codebook(source, variables)


def _variable(name: str, meta: Any, missing: Any) -> Variable:
    labels: dict[Code, str] = {}
    tags: dict[Code, str] = {}
    text_codes = meta.readstat_variable_types[name] in ("string", "string_ref")
    for code, label in meta.variable_value_labels.get(name, {}).items():
        if isinstance(code, str) and not text_codes:
            tags[code] = label
        else:
            labels[_code(code)] = label
    measure = meta.variable_measure.get(name)
    return Variable(
        label=meta.column_names_to_labels.get(name) or None,
        format=meta.original_variable_types.get(name),
        measure=measure if measure in ("nominal", "ordinal", "scale") else None,
        labels=labels,
        missing=tuple((_code(span["lo"]), _code(span["hi"])) for span in missing),
        tags=tags,
        width=meta.variable_display_width.get(name) or None,
    )


def _column(
    values: Any, stored: str, variable: Variable, source: str, declared: ColumnType | None
) -> tuple[Any, Variable]:
    """One column as the table shows it; what is declared decides, or else what occurs."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_null(values.type):
        values = values.cast(pa.string() if stored in ("string", "string_ref") else pa.float64())
    if pa.types.is_string(values.type):
        # an empty text is how both packages store that there is none
        values = compute.if_else(compute.equal(values, ""), None, values)
    else:
        family = dates.family(variable.format, source)
        if family is not None:
            numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
            return dates.from_numbers(numbers, family, source), variable
        if stored in ("float", "double") and declared is None:
            values = _numbers(values, stored, variable.format)
    if not variable.labels or declared not in (None, "text"):
        return values, variable
    encoded = values.dictionary_encode()
    codes = [_code(code) for code in encoded.dictionary.to_pylist()]
    if declared is None and not _categorical(variable, codes):
        return values, variable
    variable = variable.showing_labels()
    texts = pa.array([variable.text_of(code) for code in codes], pa.string())
    return pa.DictionaryArray.from_arrays(encoded.indices, texts).cast(pa.string()), variable


def _numbers(values: Any, stored: str, format: str | None) -> Any:
    """Integers where the format shows no decimals and there are none; missing values stay missing."""
    import pyarrow as pa

    numbers = values.to_numpy(zero_copy_only=False)
    present = numbers[~np.isnan(numbers)]
    if format and _WHOLE.match(format):
        whole = (present == np.rint(present)) & (np.abs(present) < _EXACT_WHOLE)
        if whole.all():
            return values.cast(pa.int64())
    return values.cast(pa.float32()) if stored == "float" else values


def _categorical(variable: Variable, codes: list[Code]) -> bool:
    """Whether a labelled column holds names rather than numbers of which a few have a label."""
    labelled = {code for code in variable.labels if not variable.is_missing(code)}
    if not labelled:
        return False
    return variable.measure in ("nominal", "ordinal") or labelled.issuperset(codes)


def _code(value: Any) -> Code:
    """A value as the codebook holds it: whole numbers as int."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    code: Code = value
    return code
