"""Records in, records whose attributes can be compared by one distance out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import OptionError, closest
from shoal.partition.base import as_matrix

_WAYS = ("none", "domain", "zscore")


def normalise(X: ArrayLike, how: str, widths: ArrayLike | None = None) -> NDArray[np.float64]:
    """Put the attributes on a common scale before distances are taken.

    Args:
        X: records, shape (n, d).
        how: `none` leaves the values; `domain` divides attribute j by its public width, the only scaling
            that does not look at the data; `zscore` subtracts the mean and divides by the population
            standard deviation (divisor n), and by 1 where an attribute is constant.
        widths: width of the public domain of each attribute, for `domain`.

    >>> normalise([[1.0, 7.0], [3.0, 7.0]], "zscore").tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    values = as_matrix(X)
    if how == "none":
        return values
    if how == "domain":
        return values / _checked_widths(widths, values.shape[1])
    if how == "zscore":
        constant = values.min(axis=0) == values.max(axis=0)
        # A mean of equal numbers can be off by a rounding; the value itself cannot.
        centre = np.where(constant, values[0], values.mean(axis=0))
        spread = values.std(axis=0)
        return np.asarray((values - centre) / np.where(constant | (spread == 0.0), 1.0, spread))
    raise OptionError(
        "how-not-scaling", option="how", found=how, allowed=tuple(_WAYS), hint=closest(how, _WAYS)
    )


def _checked_widths(widths: ArrayLike | None, columns: int) -> NDArray[np.float64]:
    if widths is None:
        raise OptionError("how-domain-needs-widths-width-public", option="how")
    result = np.asarray(widths, dtype=np.float64)
    if result.shape != (columns,):
        raise OptionError("widths-shape-expected-width-per-attribute", found=result.shape, columns=columns)
    if not (np.isfinite(result) & (result > 0)).all():
        column = int(np.flatnonzero(~(np.isfinite(result) & (result > 0)))[0])
        raise OptionError("width-not-above-0", column=column + 1, found=result[column])
    return result
