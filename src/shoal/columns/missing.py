"""Policies for missing values: rows to keep, or cells that stay empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.errors import InputError, Problems
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns.describe import Absent, Records

POLICIES: Mapping[str, str] = {
    "error": "a missing value is an error",
    "keep": "a missing value may occur in the release, in the way that the claim of the method covers",
    "drop": "rows with a missing value are left out; the number of rows then depends on the records",
    "category": "a missing value counts as one more value",
    "separate": "rows with missing values form clusters of their own, and the values stay missing",
}


# codes for missing values are few: does not know, refused, not applicable
_MOST_CODES = 4


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """Where values are missing, after the policies were applied.

    Attributes:
        kept: numbers of the rows that take part, None for all.
        separate: for each column with such gaps, which of the kept rows have one.
        dropping, separating: a column has that policy, whether or not it was needed.
    """

    kept: NDArray[np.int64] | None
    separate: Mapping[str, NDArray[np.bool_]]
    dropping: bool
    separating: bool


def settle_gaps(
    absent: Mapping[str, Absent], policies: Mapping[str, str], records: Records, problems: Problems
) -> Gaps:
    """Apply each column's policy to its missing values.

    Args:
        absent: the missing values of each protected column that has some.
        policies: a policy of `POLICIES` for each of them.
        records: who knows which rows are left.
        problems: takes note of columns where a missing value is an error.

    Raises:
        InputError: no row is left.
    """
    for name, gaps in absent.items():
        if policies[name] == "error":
            problems.add(InputError("missing-values", column=name, row=gaps.first + 1, option="missing"))
    dropping = [name for name in absent if policies[name] == "drop"]
    kept = records.kept(dropping) if dropping else None
    if kept is not None and kept.size == 0:
        raise InputError("every-row-missing-value-protected-column")
    separate: dict[str, NDArray[np.bool_]] = {}
    for name, gaps in absent.items():
        if policies[name] == "separate" and gaps.rows is not None:
            here = gaps.rows if kept is None else gaps.rows[kept]
            if here.any():
                separate[name] = here
    return Gaps(kept, separate, "drop" in policies.values(), "separate" in policies.values())


def missing_codes_hint(name: str, outside: NDArray[np.float64]) -> Message | None:
    """One more sentence where all values outside a range look like codes for missing values: 9, 99, -9, 998.

    It names none of them: which values lie outside is a fact about the records.

    >>> missing_codes_hint("hours", np.array([99.0, 98.0, 99.0])).code
    'outside-are-codes'
    >>> missing_codes_hint("hours", np.array([99.0, 120.0]))
    """
    found = np.unique(outside)
    if not 0 < found.size <= _MOST_CODES or not all(map(_looks_like_a_code, found)):
        return None
    return Message.of("outside-are-codes", column=name)


def _looks_like_a_code(value: float) -> bool:
    """Whether a number is written as nines, the last digit perhaps 6 to 8, or is a small negative one."""
    if value != int(value):
        return False
    digits = str(abs(int(value)))
    return (set(digits[:-1]) <= {"9"} and digits[-1] in "6789") or -9 <= value <= -1


def patterns(separate: Mapping[str, NDArray[np.bool_]], columns: tuple[str, ...]) -> NDArray[np.int64] | None:
    """Which rows miss the same of these columns: one number per row, 0 for those that miss none; None if all do."""
    gaps = [separate[column] for column in columns if column in separate]
    if not gaps:
        return None
    # a row without gaps comes first in the order, and is added so that it is always there
    rows = np.vstack([np.stack(gaps, axis=1), np.zeros((1, len(gaps)), dtype=np.bool_)])
    _, numbers = np.unique(rows, axis=0, return_inverse=True)
    return np.asarray(numbers.ravel()[:-1], dtype=np.int64)


def with_gaps(values: NDArray[Any], gaps: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Values as objects, None where one is missing."""
    filled = values.astype(object)
    filled[gaps] = None
    return filled
