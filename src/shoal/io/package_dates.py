"""Dates of statistics packages: numbers with a display format come in, dates leave, and back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

Family = Literal["day", "instant"]

# 1960-01-01 and 1582-10-14 in days before 1970-01-01
_STATA_DAYS = 3653
_SPSS_DAYS = 141428
_DAY_SECONDS = 86_400
_SPSS_DAY_WORDS = {"DATE", "ADATE", "EDATE", "JDATE", "SDATE", "QYR", "MOYR", "WKYR"}
_SPSS_INSTANT_WORDS = {"DATETIME", "YMDHMS"}
# the two that show a whole date whatever the column held before
DEFAULT_FORMATS: dict[tuple[str, Family], str] = {
    ("stata", "day"): "%td",
    ("stata", "instant"): "%tc",
    ("spss", "day"): "DATE11",
    ("spss", "instant"): "DATETIME20",
}


def family(format: str | None, source: str) -> Family | None:
    """Whether numbers shown in a format are days, instants, or neither (periods and durations stay numbers).

    >>> family("%tdDD/NN/CCYY", "stata"), family("EDATE10", "spss"), family("%tm", "stata"), family("F8.2", "spss")
    ('day', 'day', None, None)
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


def from_numbers(values: NDArray[np.float64], family: Family, source: str) -> pa.Array:
    """Dates (date32) or instants (timestamp in milliseconds) from a package's numbers; NaN is missing."""
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


def to_numbers(values: Any, family: Family, target: str) -> NDArray[np.float64]:
    """A package's numbers from Arrow dates or timestamps; missing is NaN."""
    import pyarrow as pa

    absent = np.asarray(values.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    if family == "day":
        days = _integers(values.cast(pa.date32()).cast(pa.int32()))
        numbers = days + _STATA_DAYS if target == "stata" else (days + _SPSS_DAYS) * _DAY_SECONDS
    else:
        # anything finer than a millisecond is cut off: neither package shows it
        milliseconds = _integers(values.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()))
        numbers = milliseconds + _STATA_DAYS * _DAY_SECONDS * 1000.0
        if target == "spss":
            numbers = milliseconds / 1000.0 + float(_SPSS_DAYS * _DAY_SECONDS)
    numbers[absent] = np.nan
    return numbers


def _integers(values: Any) -> NDArray[np.float64]:
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.float64)
