"""Bands of numbers: values come in, breaks taken from them or the band of each leave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.decimals import exact
from shoal.errors import OptionError
from shoal.text import Message

Spacing = Literal["equal", "log", "quantiles"]


def breaks_of(values: ArrayLike, classes: int, spacing: Spacing = "equal") -> tuple[Fraction, ...]:
    """Breaks of bands, taken from the records: their source is "these records", and they taint a statement.

    Args:
        values: of the column, missing ones as NaN.
        classes: number of bands; with 1 the only band reaches from the least value minus 1 to the largest plus 1.
        spacing: `equal` widths from the least value minus 1 to the largest plus 1, `log`: the same of logarithms,
            both in whole numbers if these are different; `quantiles`: about as many records in each.

    Bands with these breaks include both ends (`both_ends`), unless there is one class only.

    >>> [int(b) for b in breaks_of([17, 30, 90], 5)]
    [16, 31, 46, 61, 76, 91]
    """
    if type(classes) is not int or classes < 1:
        raise OptionError("classes-whole-number-least-1", option="classes", found=classes)
    if spacing not in get_args(Spacing):
        raise OptionError(
            "unknown-spacing", option="spacing", found=spacing, allowed=tuple(get_args(Spacing))
        )
    found = np.asarray(values, dtype=np.float64)
    found = found[np.isfinite(found)]
    if not found.size:
        raise OptionError("there-no-value-take-breaks-from")
    least, largest = float(found.min()), float(found.max())
    if classes == 1:
        ends = np.array([least - 1, largest + 1])
    elif spacing == "quantiles":
        # equal quantiles are one break
        ends = np.unique(np.quantile(found, np.linspace(0, 1, classes + 1)))
    else:
        if spacing == "log" and least <= 0:
            raise OptionError("log-spacing-needs-positive-values-least", found=least)
        low, high = (math.log(least), math.log(largest)) if spacing == "log" else (least, largest)
        ends = np.linspace(low - 1, high + 1, classes + 1)
        ends = np.exp(ends) if spacing == "log" else ends
        whole = np.rint(ends)
        ends = whole if np.unique(whole).size == ends.size else ends
    return tuple(exact(float(end), Message("a-break")) for end in ends)


def places_in(
    breaks: Sequence[float], values: NDArray[np.float64], *, right: bool = True, both_ends: bool = False
) -> NDArray[np.int64]:
    """The band of each value; -1 for a missing one, -2 outside of all bands.

    Args:
        right: the upper bound belongs to a band, not the lower one.
        both_ends: the outermost bound on the open side belongs to its band too.
    """
    ends = np.array(breaks)
    places = np.searchsorted(ends, values, side="left" if right else "right").astype(np.int64) - 1
    if both_ends:
        edge, band = (ends[0], 0) if right else (ends[-1], len(ends) - 2)
        places = np.where(values == edge, band, places)
    places = np.where((places < 0) | (places > len(ends) - 2), -2, places)
    return np.where(np.isnan(values), -1, places)
