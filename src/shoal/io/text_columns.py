"""Cells of text as values: the texts of a column come in, numbers, dates or texts leave, or two ways to read them.

What can be read in one way only is read so. Where cells can be read in two ways, or hardly in any, the column has a
doubt: one line that names both ways and how to say which is meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from shoal.io.conventions import BLANKS, Conventions
from shoal.io.date_formats import USUAL, DateFormat
from shoal.io.number_signs import USUAL_SIGNS, Signs, plain_numbers, signs_of
from shoal.text import Message

# cells that stand for nothing, in any column but one of texts
EMPTY = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA"),
    *("NULL", "NaN", "n/a", "nan", "null"),
)
_TRUTH = {"true": True, "false": False}
_MOST_DIGITS = 18
_FEW = 1000
# from this share of numbers or dates on, a column of texts is taken for one with something wrong in it
_NUMBERS_MIXED, _DATES_MIXED = 0.1, 0.5
_LEADING_ZERO = r"^[+-]?0\d"
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_ISO_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?")


def text_array(texts: Sequence[str]) -> Any:
    """An Arrow array of texts; made of Python's own list it would load pandas, which takes a while."""
    import pyarrow as pa

    spelled = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, spelled)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(spelled))]
    return pa.Array.from_buffers(pa.string(), len(spelled), buffers)


@dataclass(frozen=True, slots=True)
class Settled:
    """A column of cells as values, and what is doubtful about that, if anything."""

    values: Any
    doubt: Message | None = None


def settled(
    values: Any, name: str, conventions: Conventions, na: Sequence[str] = (), date_format: str | None = None
) -> Settled:
    """The values of a column whose type nobody declared.

    Args:
        values: an Arrow array of texts.
        date_format: how its dates are written, if it holds dates.

    >>> import pyarrow as pa
    >>> settled(pa.array(["7", "", "8"]), "age", Conventions()).values.to_pylist()
    [7, None, 8]
    >>> print(settled(pa.array(["35.000"]), "pay", Conventions()).doubt)
    column 'pay': row 1 holds '35.000', which is 35 with decimal="." or 35000 with decimal="," thousands=".": say which.
    """
    import pyarrow as pa
    from pyarrow import compute

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    trimmed = compute.utf8_trim_whitespace(values)
    gaps = compute.is_in(trimmed, value_set=text_array([*EMPTY, *na]).cast(trimmed.type))
    cells = compute.if_else(gaps, pa.nulls(len(trimmed), trimmed.type), trimmed)
    column = _Column(name, cells, compute.unique(compute.drop_null(cells)))
    if not len(column.distinct):
        return Settled(pa.nulls(len(values)))
    for attempt in (_as_dates_in(date_format), _as_numbers, _as_truth, _as_dates):
        found = attempt(column, conventions)
        if found is not None:
            return found
    return Settled(values, _doubt_about_text(column, conventions))


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    name: str
    cells: Any
    distinct: Any

    def matches(self, pattern: str) -> Any:
        """Which of the different values match."""
        from pyarrow import compute

        return compute.match_substring_regex(self.distinct, f"^(?:{pattern})$")

    def all_match(self, pattern: str) -> bool:
        from pyarrow import compute

        whole = f"^(?:{pattern})$"
        # most patterns fail early
        pieces = (self.distinct.slice(0, _FEW), self.distinct.slice(_FEW))
        return all(
            compute.all(compute.match_substring_regex(one, whole)).as_py() is not False for one in pieces
        )

    def any_match(self, pattern: str) -> str | None:
        """The first value that holds the pattern."""
        from pyarrow import compute

        found = compute.drop_null(self.distinct.filter(compute.match_substring_regex(self.distinct, pattern)))
        return str(found[0].as_py()) if len(found) else None

    @property
    def signs(self) -> list[str]:
        """The signs that occur in numbers of any convention."""
        return [sign for sign in (".", ",", *BLANKS, "'", "’") if self.any_match(re.escape(sign)) is not None]

    def row_of(self, text: str) -> int:
        from pyarrow import compute

        return int(compute.index(self.cells, text).as_py()) + 1

    def doubt(self, code: str, text: str, **facts: Any) -> Message:
        """What is doubtful about a value, with the first row that holds it."""
        return Message.of(code, column=self.name, row=self.row_of(text), found=text, **facts)

    def share(self, which: Any) -> float:
        """Share of the cells whose value is among some of the different ones."""
        from pyarrow import compute

        chosen = compute.is_in(self.cells, value_set=self.distinct.filter(which))
        present = len(self.cells) - self.cells.null_count
        count = compute.sum(chosen).as_py() or 0
        return float(count / max(present, 1))

    def first(self, which: Any, *, wanted: bool) -> str:
        """The first of the different values that is among the chosen ones, or not."""
        from pyarrow import compute

        chosen = self.distinct.filter(which if wanted else compute.invert(which))
        return str(chosen[0].as_py())

    def converted(self, convert: Callable[[str], Any], type: Any) -> Any:
        """Every cell by its value's own conversion."""
        import pyarrow as pa

        encoded = self.cells.dictionary_encode()
        found = pa.array([convert(text) for text in encoded.dictionary.to_pylist()], type)
        return found.take(encoded.indices)


def thousands_doubt(values: Any, name: str) -> Message | None:
    """The doubt about texts such as 35.000, where nobody said what the point means."""
    from pyarrow import compute

    column = _Column(name, values, compute.unique(compute.drop_null(values)))
    return _two_readings(column, USUAL_SIGNS[0]) if len(column.distinct) else None


def _two_readings(column: _Column, mine: Signs) -> Message | None:
    """The doubt about numbers that other signs would make other numbers."""
    import pyarrow as pa
    from pyarrow import compute

    if not column.all_match(mine.pattern):
        return None
    signs = "".join(column.signs)
    for other in USUAL_SIGNS:
        # without its sign between thousands, a number is the same as with no such sign at all
        telling = {*other.marks, *(other.decimal if other.decimal != mine.decimal else "")}
        if other == mine or telling.isdisjoint(signs) or not column.all_match(other.pattern):
            continue
        here, there = (
            plain_numbers(column.distinct, one).cast(pa.float64(), safe=False) for one in (mine, other)
        )
        apart = compute.index(compute.not_equal(here, there), True).as_py()
        if apart >= 0:
            text = str(column.distinct[apart].as_py())
            return column.doubt(
                "two-readings",
                text,
                number=here[apart].as_py(),
                signs=mine.words,
                other_number=there[apart].as_py(),
                other_signs=other.words,
            )
    return None


def _as_numbers(column: _Column, conventions: Conventions) -> Settled | None:
    import pyarrow as pa
    from pyarrow import compute

    signs = signs_of(conventions)
    if not column.all_match(signs.pattern):
        return None
    code = column.any_match(_LEADING_ZERO)
    doubt = None
    if code is not None:
        doubt = column.doubt("leading-zero", code)
    elif not conventions.signs_told:
        doubt = _two_readings(column, signs)
    plain = compute.replace_substring_regex(plain_numbers(column.cells, signs), r"^\+", "")
    if column.all_match(r"[+-]?[0-9]+") or (
        signs.thousands and not column.any_match(rf"\{signs.decimal}|[eE]")
    ):
        long = column.any_match(rf"[0-9]{{{_MOST_DIGITS + 1},}}")
        if long is None:
            return Settled(plain.cast(pa.int64()), doubt)
        doubt = doubt or column.doubt("too-many-digits", long)
    return Settled(plain.cast(pa.float64()), doubt)


def _as_truth(column: _Column, conventions: Conventions) -> Settled | None:
    import pyarrow as pa

    if not column.all_match("true|false|True|False|TRUE|FALSE"):
        return None
    return Settled(column.converted(lambda text: _TRUTH.get(str(text).lower()), pa.bool_()))


def _as_dates_in(date_format: str | None) -> Callable[[_Column, Conventions], Settled | None]:
    def attempt(column: _Column, conventions: Conventions) -> Settled | None:
        """Dates of the format that was told; if most cells are such dates, the others are mistakes."""
        import pyarrow as pa

        told = date_format or conventions.date_format
        if told is None:
            return None
        form = DateFormat.of(told)
        which = pa.array([form.reads(text) for text in column.distinct.to_pylist()])
        if column.share(which) < (_DATES_MIXED if date_format is None else 0.0):
            return None
        if False in which.to_pylist():
            return Settled(column.cells, _half_dates(column, which, told))
        return _moments(column, form.read, whole=not form.has_time)

    return attempt


def _as_dates(column: _Column, conventions: Conventions) -> Settled | None:
    """Dates as 1984-05-31, with or without a time behind them."""
    import pyarrow as pa

    texts = column.distinct.to_pylist()
    shaped = [_ISO_DAY.fullmatch(text) or _ISO_MOMENT.fullmatch(text) for text in texts]
    if not any(shaped):
        return None
    which = pa.array([bool(shape) and _is_moment(text) for shape, text in zip(shaped, texts, strict=True)])
    if False in which.to_pylist():
        if column.share(which) < _DATES_MIXED:
            return None
        return Settled(column.cells, _half_dates(column, which, "YYYY-MM-DD"))
    return _moments(column, datetime.fromisoformat, whole=all(len(text) == 10 for text in texts))


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _moments(column: _Column, read: Callable[[str], datetime], *, whole: bool) -> Settled:
    import pyarrow as pa

    if whole:
        return Settled(
            column.converted(lambda text: None if text is None else read(text).date(), pa.date32())
        )
    return Settled(column.converted(lambda text: None if text is None else read(text), pa.timestamp("us")))


def _half_dates(column: _Column, which: Any, form: str) -> Message:
    date, other = column.first(which, wanted=True), column.first(which, wanted=False)
    facts = {"row": column.row_of(date), "date": date, "other_row": column.row_of(other)}
    return Message.of("half-dates", column=column.name, form=form, found=_short(other), **facts)


def _doubt_about_text(column: _Column, conventions: Conventions) -> Message | None:
    """What makes a column of texts look like one of something else."""
    return (
        _other_signs(column, conventions)
        or _other_dates(column)
        or _half_numbers(column, signs_of(conventions))
    )


def _other_signs(column: _Column, conventions: Conventions) -> Message | None:
    mine = signs_of(conventions)
    fitting = [signs for signs in USUAL_SIGNS if signs != mine and column.all_match(signs.pattern)]
    if not fitting:
        return None
    if conventions.signs_told:
        text = str(column.distinct[0].as_py())
        return column.doubt("not-with-signs-of-file", text, signs=mine.words)
    doubt = _two_readings(column, fitting[0])
    if doubt is not None:
        return doubt
    text = column.any_match(r"[.,' \x{00a0}\x{202f}’]") or str(column.distinct[0].as_py())
    code = "numbers-with-decimal-commas" if fitting[0].decimal == "," else "numbers-with-thousands"
    return column.doubt(code, text, signs=fitting[0].words)


def _other_dates(column: _Column) -> Message | None:
    import pyarrow as pa

    texts = column.distinct.to_pylist()
    # a few tell that a column of texts holds no dates at all
    forms = [form for form in map(DateFormat.of, USUAL) if any(form.reads(text) for text in texts[:20])]
    fitting = [form for form in forms if all(form.reads(text) for text in texts)]
    if not fitting:
        for form in forms:
            which = pa.array([form.reads(text) for text in texts])
            if column.share(which) >= _DATES_MIXED:
                return _half_dates(column, which, form.text)
        return None
    first = fitting[0]
    for other in fitting[1:]:
        for text in texts:
            if first.read(text) != other.read(text):
                return column.doubt(
                    "two-date-readings",
                    text,
                    day=first.read(text).date(),
                    form=first.text,
                    other_day=other.read(text).date(),
                    other_form=other.text,
                )
    return column.doubt("looks-like-dates", str(texts[0]), form=first.text)


def _half_numbers(column: _Column, signs: Signs) -> Message | None:
    which = column.matches(signs.pattern)
    if column.share(which) < _NUMBERS_MIXED:
        return None
    number, other = column.first(which, wanted=True), column.first(which, wanted=False)
    facts = {"row": column.row_of(number), "number": number, "other_row": column.row_of(other)}
    return Message.of("half-numbers", column=column.name, found=_short(other), **facts)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
