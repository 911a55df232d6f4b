"""Stata and SPSS files: read and write tables with their codebook, preserving codes, labels and formats."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError, OutputError, needs_extra
from shoal.io.cell_types import ColumnType
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa


DateFamily = Literal["day", "instant"]

# 1960-01-01 and 1582-10-14 in days before 1970-01-01
_STATA_DAYS = 3653
_SPSS_DAYS = 141428
_DAY_SECONDS = 86_400
_SPSS_DAY_WORDS = {"DATE", "ADATE", "EDATE", "JDATE", "SDATE", "QYR", "MOYR", "WKYR"}
_SPSS_INSTANT_WORDS = {"DATETIME", "YMDHMS"}
# the display formats that show a whole date, whatever the original format
DEFAULT_DATE_FORMATS: dict[tuple[str, DateFamily], str] = {
    ("stata", "day"): "%td",
    ("stata", "instant"): "%tc",
    ("spss", "day"): "DATE11",
    ("spss", "instant"): "DATETIME20",
}
Code = int | float | str
TITLES: Mapping[str, str] = {"stata": "Stata", "spss": "SPSS"}

_STATA_WORDS = {
    *("_all", "_b", "_coef", "_cons", "_n", "_N", "_pi", "_pred", "_rc", "_skip", "byte", "double", "float"),
    *("if", "in", "int", "long", "strL", "using", "with"),
}
_SPSS_WORDS = {"ALL", "AND", "BY", "EQ", "GE", "GT", "LE", "LT", "NE", "NOT", "OR", "TO", "WITH"}
_RULES = {"stata": Message("names-of-stata"), "spss": Message("names-of-spss")}
# formats that show no decimals: %8.0f and %12.0fc, F8.0, F8 and COMMA6
_WHOLE = re.compile(r"%-?0?\d+\.0fc?$|(F|N|COMMA|DOT|DOLLAR)\d+(\.0)?$")
_EXACT_WHOLE = 2.0**53
# readable by Stata 14 and later; the newest version is for tables of more than 32,767 columns
_STATA_VERSION = 14
# larger numbers of a Stata `long` stand for missing values
_LARGEST_LONG = 2_147_483_620
_EXACT_INTEGER = 2**53
_STATA_LABEL_CHARACTERS = 80
_SPSS_LABEL_BYTES = 255
_SPSS_VALUE_LABEL_BYTES = 120
# where the header of an SPSS file stores the time of writing: nine bytes of a date, eight of a time
_SPSS_MOMENT = 92


def date_family(format: str | None, source: str) -> DateFamily | None:
    """Whether numbers in a display format are days or instants; None for others (periods and durations stay numbers).

    >>> date_family("%tdDD/NN/CCYY", "stata"), date_family("EDATE10", "spss")
    ('day', 'day')
    >>> date_family("%tm", "stata"), date_family("F8.2", "spss")
    (None, None)
    """
    if format is None:
        return None
    if source == "stata":
        found = re.match(r"%-?(td|d|tc|tC)", format)
        return None if found is None else ("day" if found[1] in ("td", "d") else "instant")
    word = re.match(r"[A-Z]+", format)
    if word is None:
        return None
    if word[0] in _SPSS_DAY_WORDS:
        return "day"
    return "instant" if word[0] in _SPSS_INSTANT_WORDS else None


def dates_from_numbers(values: NDArray[np.float64], family: DateFamily, source: str) -> pa.Array:
    """Dates (date32) or instants (timestamp in milliseconds) from a statistics package's numbers; NaN is missing."""
    import pyarrow as pa

    absent = ~np.isfinite(values)
    filled = np.where(absent, 0.0, values)
    if family == "day":
        days = (
            np.floor(filled) - _STATA_DAYS
            if source == "stata"
            else np.floor(filled / _DAY_SECONDS) - _SPSS_DAYS
        )
        return pa.array(days.astype(np.int32), pa.int32(), mask=absent).cast(pa.date32())
    if source == "stata":
        milliseconds = np.rint(filled) - _STATA_DAYS * _DAY_SECONDS * 1000
    else:
        milliseconds = np.rint((filled - _SPSS_DAYS * _DAY_SECONDS) * 1000)
    return pa.array(milliseconds.astype(np.int64), pa.int64(), mask=absent).cast(pa.timestamp("ms"))


def dates_to_numbers(values: Any, family: DateFamily, target: str) -> NDArray[np.float64]:
    """A statistics package's numbers from Arrow dates or timestamps; missing is NaN."""
    import pyarrow as pa

    absent = np.asarray(values.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    if family == "day":
        days = _date_numbers(values.cast(pa.date32()).cast(pa.int32()))
        numbers = days + _STATA_DAYS if target == "stata" else (days + _SPSS_DAYS) * _DAY_SECONDS
    else:
        # fractions of a millisecond are cut off: neither package shows them
        milliseconds = _date_numbers(values.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()))
        numbers = milliseconds + _STATA_DAYS * _DAY_SECONDS * 1000.0
        if target == "spss":
            numbers = milliseconds / 1000.0 + float(_SPSS_DAYS * _DAY_SECONDS)
    numbers[absent] = np.nan
    return numbers


def _date_numbers(values: Any) -> NDArray[np.float64]:
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Variable:
    """The codebook entry of one column in a statistics package.

    Attributes:
        label: the variable label, such as the question asked.
        format: display format in the package's notation.
        measure: nominal, ordinal or scale, if recorded.
        labels: value labels by code, including those of missing values.
        texts: the text shown for each labelled code; empty if the codes themselves are shown.
        missing: ranges (lo, hi) of codes for missing values.
        tags: labels of Stata's missing values .a to .z.
        width: display width.
        reserved: codes in use whose labels are not published.
        declared: texts that the schema lists: each has a code, whether or not it occurs.
    """

    label: str | None = None
    format: str | None = None
    measure: str | None = None
    labels: Mapping[Code, str] = field(default_factory=dict)
    texts: Mapping[Code, str] = field(default_factory=dict)
    missing: tuple[tuple[Code, Code], ...] = ()
    tags: Mapping[Code, str] = field(default_factory=dict)
    width: int | None = None
    reserved: frozenset[Code] = frozenset()
    declared: tuple[str, ...] = ()

    @property
    def shows_labels(self) -> bool:
        """Whether the table shows texts instead of the codes."""
        return bool(self.texts or self.reserved)

    def is_missing(self, code: Code) -> bool:
        """Whether a code means "missing"."""
        return any(
            isinstance(code, str) == isinstance(lo, str) and lo <= code <= hi  # type: ignore[operator]
            for lo, hi in self.missing
        )

    @property
    def categories(self) -> tuple[str, ...]:
        """The texts of all values in the order of their codes."""
        return tuple(self.texts[code] for code in sorted(self.texts, key=_order))

    def showing_labels(self) -> Variable:
        """The variable with a text for every labelled code, independent of the records.

        Codes that share a label, and codes whose label reads like another code, keep their code in the text.

        >>> Variable(labels={1: "yes", 2: "other", 3: "other", 4: "7"}).showing_labels().texts
        {1: 'yes', 2: 'other (2)', 3: 'other (3)', 4: '7 (4)'}
        """
        labels = {code: label.strip() for code, label in self.labels.items() if not self.is_missing(code)}
        spelled = {code: label or str(code) for code, label in labels.items()}
        unclear = _repeated(spelled.values()) | {
            text for code, text in spelled.items() if _number(text) not in (None, code)
        }
        texts = {code: f"{text} ({code})" if text in unclear else text for code, text in spelled.items()}
        if _repeated(texts.values()):
            texts = {code: f"{code}: {text}" for code, text in spelled.items()}
        return replace(self, texts=texts)

    def text_of(self, code: Code | None) -> str | None:
        """The text shown for a code; without a label, the code as text."""
        return None if code is None else self.texts.get(code, str(code))

    def codes_of(self, texts: Iterable[str]) -> dict[str, Code]:
        """A code for each text: that of its label, the number it spells, or a new one.

        Codes depend on labels and these texts only, so the texts must be those of the schema: codes that depend
        on the values in the records would reveal them.

        >>> Variable(texts={1: "cat", 2: "dog"}, missing=((3, 3),)).codes_of(["dog", "animal", "7"])
        {'dog': 2, '7': 7, 'animal': 8}
        """
        wanted = dict.fromkeys((*self.declared, *texts))
        codes = {text: code for code, text in self.texts.items() if text in wanted}
        taken = {*self.labels, *self.texts, *self.reserved}
        for text in wanted:
            own = self._own_code(text)
            if text not in codes and own is not None and own not in taken:
                codes[text] = own
        taken.update(codes.values())
        for text in sorted(wanted.keys() - codes.keys()):
            codes[text] = self._fresh(text, taken)
            taken.add(codes[text])
        return codes

    def _own_code(self, text: str) -> Code | None:
        """The code spelled by a text without a label, in a column of such codes."""
        known = {*self.labels, *self.texts, *self.reserved}
        own: Code | None = text if any(isinstance(code, str) for code in known) else _number(text)
        return None if own is None or self.is_missing(own) else own

    def _fresh(self, text: str, taken: Collection[Code]) -> Code:
        if any(isinstance(code, str) for code in taken):
            while text in taken or self.is_missing(text):
                text += "*"
            return text
        usual = [code for code in taken if not isinstance(code, str) and not self.is_missing(code)]
        spans = [(lo, hi) for lo, hi in self.missing if not isinstance(lo, str) and not isinstance(hi, str)]
        code = math.floor(max(usual, default=0)) + 1
        while code in taken or self.is_missing(code):
            ends = [hi for lo, hi in spans if lo <= code <= hi]
            if any(math.isinf(end) for end in ends):
                return self._fresh_below(min(usual, default=0), taken)
            code = math.floor(max([code, *ends])) + 1
        return code

    def _fresh_below(self, lowest: int | float, taken: Collection[Code]) -> int:
        code = math.ceil(lowest) - 1
        while code in taken or self.is_missing(code):
            code -= 1
        return code


@dataclass(frozen=True, slots=True)
class Codebook:
    """The variables of a file, by column name; `source` is the package whose formats they use."""

    source: str
    variables: Mapping[str, Variable]

    def of(self, name: str) -> Variable:
        return self.variables.get(name, Variable())

    def public(self, data: Any, declared: Mapping[str, Collection[str]]) -> Codebook:
        """The part that may be published with a released table: its columns, and labels released or in the schema.

        A set of labels can list every value of the original data (Stata's `encode` makes such sets), so a label
        that is neither released nor declared is withheld, but its code is not reused. Labels of missing values are
        kept.
        """
        frame = nw.from_native(data, eager_only=True)
        kept: dict[str, Variable] = {}
        for name in frame.columns:
            variable = self.of(name)
            if variable.labels or variable.texts:
                found = {*frame.get_column(name).unique().to_list(), *declared.get(name, ())}
                texts = {code: text for code, text in variable.texts.items() if text in found}
                labels = {
                    code: label
                    for code, label in variable.labels.items()
                    if code in texts or variable.is_missing(code) or (not variable.texts and code in found)
                }
                variable = replace(
                    variable,
                    labels=labels,
                    texts=texts,
                    reserved=frozenset(variable.texts).difference(texts),
                    declared=tuple(declared.get(name, ())),
                )
            kept[name] = variable
        return Codebook(self.source, kept)


def _number(text: str) -> int | float | None:
    """The number a text spells, None for other texts."""
    try:
        found = float(text)
    except ValueError:
        return None
    if not math.isfinite(found):
        return None
    return int(found) if found.is_integer() else found


def _order(code: Code) -> tuple[bool, Code]:
    return isinstance(code, str), code


def _repeated(texts: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    twice: set[str] = set()
    for text in texts:
        (twice if text in seen else seen).add(text)
    return twice


def check_column_names(names: Sequence[str], format: str) -> None:
    """Refuse, before any work is done, column names that a file of the format cannot hold.

    >>> check_column_names(["net_income"], "stata")
    """
    rule = {"stata": _stata_name, "spss": _spss_name}.get(format)
    if rule is None:
        return
    for name in names:
        if not rule(name):
            raise InputError(
                "column-cannot-written-file", column=name, titles=TITLES[format], rules=_RULES[format]
            )
    if format == "spss":
        seen: dict[str, str] = {}
        for name in names:
            other = seen.setdefault(name.lower(), name)
            if other != name:
                raise InputError("columns-have-name-spss-file-where", other=other, name=name)


def _stata_name(name: str) -> bool:
    return (
        len(name) <= 32
        and name.isidentifier()
        and name not in _STATA_WORDS
        and not re.fullmatch(r"str\d+", name)
    )


def _spss_name(name: str) -> bool:
    return (
        len(name.encode()) <= 64
        and re.fullmatch(r"[^\W\d_][\w.$#@]*", name) is not None
        and not name.endswith(".")
        and name.upper() not in _SPSS_WORDS
    )


def library() -> Any:
    """pyreadstat, or a one-line error that says how to install it."""
    with needs_extra("files", "Stata and SPSS files need"):
        import pyreadstat
    return pyreadstat


def read_package(
    path: Path, source: str, types: Mapping[str, ColumnType] | None = None
) -> tuple[pa.Table, Codebook]:
    """Columns; labelled values become text, and values declared as missing become missing.

    Args:
        types: declared types by column: text shows labels, a number shows codes. Without one the choice depends
            on the values that occur.

    Raises:
        InputError: the content of the file does not match its extension.
        MissingExtraError: pyreadstat is not installed.
    """
    import pyarrow as pa

    known = library()
    reader = known.read_dta if source == "stata" else known.read_sav
    try:
        # ranges of missing values are only returned together with the raw values
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
        # older versions of the library return NaN for missing values
        values = pa.array(list(columns[name]), from_pandas=True)
        arrays[name], variables[name] = _column_read(
            values, stored, variable, source, (types or {}).get(name)
        )
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


def _column_read(
    values: Any, stored: str, variable: Variable, source: str, declared: ColumnType | None
) -> tuple[Any, Variable]:
    """One column as shown in the table, decided by the declared type, otherwise by the values."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_null(values.type):
        values = values.cast(pa.string() if stored in ("string", "string_ref") else pa.float64())
    if pa.types.is_string(values.type):
        # both packages store a missing text as an empty one
        values = compute.if_else(compute.equal(values, ""), None, values)
    else:
        family = date_family(variable.format, source)
        if family is not None:
            numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
            return dates_from_numbers(numbers, family, source), variable
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
    """Integers if neither the format nor the values have decimals; missing values stay missing."""
    import pyarrow as pa

    numbers = values.to_numpy(zero_copy_only=False)
    present = numbers[~np.isnan(numbers)]
    if format and _WHOLE.match(format):
        whole = (present == np.rint(present)) & (np.abs(present) < _EXACT_WHOLE)
        if whole.all():
            return values.cast(pa.int64())
    return values.cast(pa.float32()) if stored == "float" else values


def _categorical(variable: Variable, codes: list[Code]) -> bool:
    """Whether a labelled column is categorical rather than numeric with a few labelled values."""
    labelled = {code for code in variable.labels if not variable.is_missing(code)}
    if not labelled:
        return False
    return variable.measure in ("nominal", "ordinal") or labelled.issuperset(codes)


def _code(value: Any) -> Code:
    """A value in the form of the codebook: integral numbers as int."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    code: Code = value
    return code


@dataclass(frozen=True, slots=True, eq=False)
class _WrittenColumn:
    """One column ready to be written.

    Attributes:
        values: a numpy array, or a pandas one for integers with missing values.
        labels: value labels by code.
        format: display format, None for the library's default.
        missing: ranges of codes for missing values (SPSS).
    """

    values: Any
    labels: Mapping[Code, str] = field(default_factory=dict)
    format: str | None = None
    missing: tuple[tuple[Code, Code], ...] = ()


def check_package(names: Any, target: str) -> None:
    """Refuse, before any work is done, a table that could not be written at the end."""
    library()
    with needs_extra("files", f"writing {TITLES[target]} files needs"):
        import pandas  # type: ignore[import-untyped]  # noqa: F401
    check_column_names(names, target)


def write_package(table: pa.Table, path: Path, target: str, codebook: Codebook | None = None) -> None:
    """Write texts that have a code as that code with its label, and other texts unchanged.

    A text without a code in a labelled column (an inner concept of a taxonomy) gets a new code.

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
        name: _column_to_write(name, table.column(name), variable, book.source, target)
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
                # the display width follows the longest text
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
    """Replace the time of writing, which both formats store, by a constant."""
    with path.open("r+b") as file:
        head = file.read(4096)
        start, length = _SPSS_MOMENT, 17
        if target == "stata":
            mark = b"<timestamp>"
            # preceded by a length byte
            start = head.index(mark) + len(mark) + 1
            length = head[start - 1]
        moment = b"01 Jan 1970 00:00" if target == "stata" else b"01 Jan 7000:00:00"
        file.seek(start)
        file.write(moment[:length].ljust(length))


def _column_to_write(name: str, values: Any, variable: Variable, source: str, target: str) -> _WrittenColumn:
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
    """The part another package can use: codes with labels, without formats and missing-value definitions."""
    labels = {code: label for code, label in variable.labels.items() if not variable.is_missing(code)}
    taken = variable.reserved.union(variable.labels) if variable.shows_labels else variable.reserved
    return Variable(
        labels=labels,
        texts=variable.texts,
        reserved=taken.difference(variable.texts),
        declared=variable.declared,
    )


def _text(values: Any, variable: Variable) -> _WrittenColumn:
    # both packages store a missing text as an empty one
    texts = np.array(values.fill_null("").to_pylist(), dtype=object)
    spans = tuple((lo, hi) for lo, hi in variable.missing if isinstance(lo, str) and not (texts == lo).any())
    return _WrittenColumn(texts, missing=spans)


def _coded(values: Any, variable: Variable, target: str) -> _WrittenColumn:
    """Texts converted back to their codes."""
    encoded = values.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    codes = variable.codes_of(texts)
    every = [*codes.values(), *variable.labels]
    words = any(isinstance(code, str) for code in every)
    if target == "stata" and not all(isinstance(code, int) and abs(code) <= _LARGEST_LONG for code in every):
        # Stata labels integers only: keep the texts themselves
        return _text(values, Variable())
    labels = dict(variable.labels)
    # a number without a label stands for itself, but a text without one may not be a code
    unlabelled = {text: code for text, code in codes.items() if code not in variable.texts}
    labels |= {code: text for text, code in unlabelled.items() if isinstance(code, str) or text != str(code)}
    place = encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    if words:
        known = np.array([*(codes[text] for text in texts), ""], dtype=object)
        return _WrittenColumn(known[place], labels, missing=variable.missing)
    numbers = np.array([*(codes[text] for text in texts), np.nan], dtype=np.float64)[place]
    format = _number_format(variable, target)
    if all(isinstance(code, int) and abs(code) <= _LARGEST_LONG for code in every):
        tagged: dict[Code, str] = {**labels, **variable.tags}
        return _WrittenColumn(_integers(numbers), tagged, format, variable.missing)
    return _WrittenColumn(numbers, labels, format, variable.missing)


def _whole(name: str, values: Any, variable: Variable, target: str) -> _WrittenColumn:
    import pyarrow as pa

    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    present = values.drop_null().to_numpy(zero_copy_only=False)
    largest = max(abs(int(present.min())), abs(int(present.max()))) if present.size else 0
    if largest > _EXACT_INTEGER:
        raise InputError("column-holds-whole-numbers-beyond-2", column=name, titles=TITLES[target])
    numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    if largest > _LARGEST_LONG:
        digits = len(str(largest)) + 1
        wide = f"%{digits}.0f" if target == "stata" else f"F{digits}.0"
        return _WrittenColumn(numbers, format=wide, missing=_untouched(variable, numbers))
    column = _numeric(numbers, variable, target)
    labels: dict[Code, str] = {
        code: label for code, label in column.labels.items() if not isinstance(code, float)
    }
    return _WrittenColumn(_integers(numbers), labels, column.format, column.missing)


def _numeric(numbers: NDArray[np.float64], variable: Variable, target: str) -> _WrittenColumn:
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
    return _WrittenColumn(numbers, labels, _number_format(variable, target), missing)


def _dates(values: Any, variable: Variable, target: str) -> _WrittenColumn:
    import pyarrow as pa

    family: DateFamily = "day" if pa.types.is_date(values.type) else "instant"
    numbers = dates_to_numbers(values, family, target)
    format = variable.format
    if date_family(format, target) != family:
        format = DEFAULT_DATE_FORMATS[target, family]
    return _WrittenColumn(numbers, format=format, missing=_untouched(variable, numbers))


def _untouched(variable: Variable, numbers: NDArray[np.float64]) -> tuple[tuple[Code, Code], ...]:
    """The declared missing values, without those that a released number would be mistaken for."""
    for lo, hi in variable.missing:
        if isinstance(lo, str) or isinstance(hi, str) or ((numbers >= lo) & (numbers <= hi)).any():
            return ()
    return variable.missing


def _number_format(variable: Variable, target: str) -> str | None:
    format = variable.format
    if format is None or date_family(format, target) is not None:
        return None
    is_text = format.endswith("s") if target == "stata" else format.startswith("A")
    return None if is_text and not format.startswith("ADATE") else format


def _integers(numbers: NDArray[np.float64]) -> Any:
    import pandas as pd

    absent = np.isnan(numbers)
    whole = np.where(absent, 0.0, numbers).astype(np.int32)
    return pd.arrays.IntegerArray(whole, absent) if absent.any() else whole


def _finite(bound: Code) -> Code:
    """Open ends of a range are stored as the largest possible number."""
    if isinstance(bound, float) and math.isinf(bound):
        return math.copysign(sys.float_info.max, bound)
    return bound


def _cut(label: str | None, target: str, *, value: bool = False) -> str | None:
    """A label cut to the length the format allows, in whole characters."""
    if label is None:
        return None
    if target == "stata":
        return label if value else label[:_STATA_LABEL_CHARACTERS]
    room = _SPSS_VALUE_LABEL_BYTES if value else _SPSS_LABEL_BYTES
    return label.encode()[:room].decode(errors="ignore")
