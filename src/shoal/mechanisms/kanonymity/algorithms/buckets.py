"""Buckets of confidential values: values come in, a bucket number per record leaves, no value in two buckets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import OptionError
from shoal.mechanisms.kanonymity.algorithms.diversity import value_numbers
from shoal.partition import mdav
from shoal.partition.base import as_matrix


def bucket_count(t: int) -> int:
    """How many buckets use up a ratio of t: a group can hold t times the share of one and 1/t of the others."""
    if isinstance(t, bool) or int(t) != t or t < 1:
        raise OptionError("t-whole-number-least-1", option="t", found=t)
    return int(t) + 1


def ordered_buckets(values: ArrayLike, t: int) -> NDArray[np.int64]:
    """t + 1 buckets of consecutive values with nearly equal numbers of records.

    Cuts are after record ⌊iN/(t+1) + 1/2⌋ of the sorted attribute, or at the nearest place where the value changes.
    Where a value is so frequent that two cuts fall together, there are fewer buckets.

    Reference: the thesis, section 7.2.

    >>> ordered_buckets([1, 2, 3, 4, 5, 6], 2).tolist()
    [0, 0, 1, 1, 2, 2]
    >>> ordered_buckets([1, 7, 7, 7, 7, 9], 2).tolist()
    [0, 1, 1, 1, 1, 2]
    """
    count = bucket_count(t)
    raw = np.asarray(values)
    n = raw.shape[0]
    numbers = value_numbers(raw, n)
    # records up to and including each value
    reached = np.cumsum(np.bincount(numbers))
    wanted = np.array([(2 * i * n + count) // (2 * count) for i in range(1, count)], dtype=np.int64)
    inner = reached[:-1]
    if inner.size == 0:
        return np.zeros(n, dtype=np.int64)
    after = np.clip(np.searchsorted(inner, wanted), 0, inner.size - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.where(np.abs(inner[before] - wanted) < np.abs(inner[after] - wanted), before, after)
    # the bucket of a value is the number of cuts before it
    return np.searchsorted(np.unique(nearer), numbers, side="left").astype(np.int64)


def nominal_buckets(values: ArrayLike, t: int, order: Sequence[object] | None = None) -> NDArray[np.int64]:
    """At most t + 1 buckets of values without an order: each value its own, or sets of nearly equal numbers.

    Args:
        values: the attribute, of any type.
        t: the ratio to be used up.
        order: values from similar to similar, such as the leaves of a taxonomy; buckets are then runs of it.
            Otherwise the most frequent values come first, each into the bucket that is least full.

    >>> nominal_buckets(["a", "a", "a", "b", "c", "c"], 1).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    count = bucket_count(t)
    raw = np.asarray(values)
    if order is not None:
        place = {value: number for number, value in enumerate(order)}
        unknown = [value for value in np.unique(raw).tolist() if value not in place]
        if unknown:
            raise OptionError("order-does-not-list-value", unknown=unknown[0])
        return ordered_buckets([place[value] for value in raw.tolist()], t)
    numbers = value_numbers(raw, raw.shape[0])
    frequency = np.bincount(numbers)
    bucket = np.zeros(frequency.size, dtype=np.int64)
    filled = np.zeros(min(count, frequency.size), dtype=np.int64)
    for value in np.argsort(-frequency, kind="stable").tolist():
        bucket[value] = int(np.argmin(filled))
        filled[bucket[value]] += frequency[value]
    return bucket[numbers]


def compound_buckets(X: ArrayLike, t: int) -> NDArray[np.int64]:
    """t + 1 buckets of records that are close in several confidential attributes together, by MDAV.

    Args:
        X: the confidential attributes, scaled for distances.
        t: the ratio to be used up.

    Equal records go where most of them are, so a bucket is a set of combinations of values.

    Reference: the thesis, section 7.1.1 (a single compound attribute).

    >>> X = [[1.0, 1.0], [1.1, 1.0], [5.0, 5.0], [5.1, 5.0], [9.0, 0.0], [9.1, 0.0]]
    >>> np.bincount(compound_buckets(X, 2)).tolist()
    [2, 2, 2]
    """
    from shoal.partition.groups import row_groups

    values = as_matrix(X)
    count = min(bucket_count(t), values.shape[0])
    made = mdav(values, values.shape[0] // count).labels
    equal = row_groups(values.T).labels
    pairs, frequency = np.unique(equal * (made.max() + 1) + made, return_counts=True)
    # the last entry of a combination is its most frequent bucket
    by_frequency = np.lexsort((frequency, pairs // (made.max() + 1)))
    bucket = np.empty(int(equal.max()) + 1, dtype=np.int64)
    bucket[pairs[by_frequency] // (made.max() + 1)] = pairs[by_frequency] % (made.max() + 1)
    return value_numbers(bucket[equal], equal.size)
