"""Key variables: columns as codes, and the distinct patterns of their values.

An intruder may know this combination of values of a person. Every risk measure is a function of the patterns, so it is
computed once for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.io import Table
from shoal.numbers import Floats, Integers
from shoal.partition.groups import as_arrow, row_groups

MISSING = -1


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column as integer codes.

    Attributes:
        codes: index of each value in `levels`, -1 for a missing one.
        levels: the distinct values in ascending order.
    """

    codes: Integers
    levels: tuple[Any, ...]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class People:
    """The persons behind the records, if one person can have several records.

    Attributes:
        units: person of each record, numbered from 0.
        weights: weight of each person: the smallest of their records.
        starts: index in `members` of the first person of each pattern, with a final end index.
        members: the distinct persons of each pattern, pattern by pattern.
    """

    units: Integers
    weights: Floats
    starts: Integers
    members: Integers


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """The distinct combinations of key values, with "missing" as one more value.

    Attributes:
        codes: (keys, patterns), -1 for a missing value.
        labels: pattern of each record.
        counts: number of records of each pattern, or of persons with it.
        weights: sum of their weights.
        people: the persons with each pattern, if persons are counted.
    """

    codes: Integers
    labels: Integers
    counts: Integers
    weights: Floats
    people: People | None = None

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which patterns have no missing value."""
        return np.asarray((self.codes != MISSING).all(axis=0))


def coded(table: Table, name: str) -> Coded:
    """The values of a column as codes; NaN and an empty text are missing values."""
    import pyarrow as pa
    from pyarrow import compute

    values = as_arrow(table.series(name))
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_floating(values.type):
        values = compute.if_else(compute.is_nan(values), None, values)
        # zero is zero, whatever its sign
        values = compute.if_else(compute.equal(values, 0.0), pa.scalar(0.0, values.type), values)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        # an empty cell of a text file is missing, as everywhere in Shoal
        values = compute.if_else(compute.equal(values, ""), None, values)
    try:
        encoded = values.dictionary_encode()
        order = compute.sort_indices(encoded.dictionary).to_numpy().astype(np.int64)
    except pa.ArrowException:
        # lists and other nested values have neither codes nor an order
        encoded = pa.array([None if value is None else str(value) for value in values.to_pylist()])
        encoded = encoded.dictionary_encode()
        order = compute.sort_indices(encoded.dictionary).to_numpy().astype(np.int64)
    place = np.empty(order.size + 1, dtype=np.int64)
    place[order] = np.arange(order.size)
    place[-1] = MISSING
    codes = encoded.indices.fill_null(order.size).to_numpy(zero_copy_only=False)
    return Coded(place[codes], tuple(encoded.dictionary.take(pa.array(order)).to_pylist()))


def patterns(
    keys: Sequence[Integers], weights: Floats | None = None, units: Integers | None = None
) -> Patterns:
    """The distinct combinations of several columns of codes.

    Args:
        weights: weights of the records.
        units: person of each record, from 0 without gaps, if persons are counted instead of records.

    >>> found = patterns([np.array([0, 0, 1, MISSING])], np.array([2.0, 3.0, 1.0, 1.0]))
    >>> found.codes.tolist(), found.labels.tolist(), found.counts.tolist(), found.weights.tolist()
    ([[-1, 0, 1]], [1, 1, 2, 0], [1, 2, 1], [1.0, 5.0, 1.0])
    """
    groups = row_groups(keys)
    if units is not None:
        return _of_people(np.array([key[groups.first] for key in keys]), groups.labels, weights, units)
    total = np.bincount(groups.labels, weights).astype(np.float64)
    return Patterns(np.array([key[groups.first] for key in keys]), groups.labels, groups.sizes, total)


def _of_people(codes: Integers, labels: Integers, weights: Floats | None, units: Integers) -> Patterns:
    own = np.full(int(units.max()) + 1, np.inf)
    np.minimum.at(own, units, 1.0 if weights is None else weights)
    pairs = row_groups([labels, units]).first
    pattern, members = labels[pairs], units[pairs]
    counts = np.bincount(pattern)
    starts = np.concatenate(([0], np.cumsum(counts)))
    total = np.bincount(pattern, own[members]).astype(np.float64)
    return Patterns(codes, labels, counts, total, People(units, own, starts, members))
