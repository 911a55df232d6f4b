"""Units with several rows, such as households, that stay whole: one group for all rows, equal attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described
from shoal.errors import InputError, OptionError, closest
from shoal.mechanisms.kanonymity.columns import Columns, survey_weights
from shoal.mechanisms.kanonymity.methods import GroupMethod
from shoal.mechanisms.strata import Stratum, units_of
from shoal.numbers import Integers
from shoal.partition import Partition, mdav, places, vmdav
from shoal.text import Message


def check_unit_columns(
    method: GroupMethod, described: Described, classes: Sequence[Stratum], least: int, labels: Any = None
) -> None:
    """Refuse attributes of a unit that differ within one, and units that cannot stay whole.

    Args:
        classes: the records among which groups are made.
        least: the largest number of units that a group needs.
        labels: the caller's clusters.
    """
    if method.unit_columns is None:
        return
    unit = described.provenance.unit
    if unit is None:
        raise OptionError("unit-columns-need-a-unit", option="unit_columns")
    for name in method.unit_columns:
        if name not in described.columns:
            raise OptionError(
                "setting-names-column-not-released",
                column=name,
                option="unit_columns",
                hint=closest(name, described.columns),
            )
    units = units_of(described)
    if units is None:
        return
    first = first_rows(units)
    rows = np.arange(described.n) if described.kept is None else described.kept
    for name in method.unit_columns:
        positions, _ = described.positions(name)
        absent = described.gaps.get(name, np.zeros(described.n, dtype=np.bool_))
        differs = (positions != positions[first][units]) | (absent != absent[first][units])
        if differs.any():
            row = int(rows[np.argmax(differs)]) + 1
            raise InputError("column-differs-within-unit", column=name, unit=unit, row=row)
    weights = survey_weights(described)
    if weights is not None and (weights != weights[first][units]).any():
        raise OptionError("weight-differs-within-unit", option="unit_columns", unit=unit)
    for own in classes:
        inside = np.zeros(described.n, dtype=np.bool_)
        inside[own.rows] = True
        if (inside != inside[first][units]).any():
            raise OptionError("unit-in-several-strata", option="strata", unit=unit)
        if np.unique(units[own.rows]).size < least:
            raise OptionError(
                "fewer-units-than-k",
                option="k",
                unit=unit,
                least=least,
                where=own.where or Message("the-table"),
            )
    if labels is not None and method.partition == "given":
        found = np.asarray(labels)[rows]
        if (found != found[first][units]).any():
            raise OptionError("labels-divide-a-unit", option="labels", unit=unit)


def first_rows(units: Integers) -> Integers:
    """The first row of each unit."""
    return np.unique(units, return_index=True)[1].astype(np.int64)


def whole_units(method: GroupMethod, columns: Columns, names: Sequence[str], least: int) -> Partition | None:
    """Groups of at least k units close in some columns, by the mean of their rows; None if rows are grouped.

    All rows of a unit get the group of their unit, so a group has at least k units, and rows of no other.

    Cost: that of grouping the units.
    """
    if method.unit_columns is None or columns.units is None or method.partition == "given":
        return None
    units = places(columns.units)
    points = _means(columns.points(names), units)
    made = vmdav(points, least, float(method.gamma)) if method.partition == "vmdav" else mdav(points, least)
    return _of_rows(made.labels, units)


def _means(values: NDArray[np.float64], units: Integers) -> NDArray[np.float64]:
    sizes = np.bincount(units)
    table = values if values.ndim > 1 else values[:, np.newaxis]
    found = np.stack([np.bincount(units, column) / sizes for column in table.T], axis=1)
    # the rows of a unit that are equal have exactly their value as their mean
    first = table[first_rows(units)]
    equal = np.ones(found.shape, dtype=np.bool_)
    for place, column in enumerate(table.T):
        np.logical_and.at(equal[:, place], units, column == first[units, place])
    found = np.where(equal, first, found)
    return found if values.ndim > 1 else found[:, 0]


def _of_rows(labels: Integers, units: Integers) -> Partition:
    """A partition of units as one of their rows."""
    own = labels[units]
    return Partition(own, np.bincount(own, minlength=int(labels.max()) + 1))


def table_of_units(columns: Columns) -> tuple[Columns, Integers, Integers]:
    """One row for each unit, the first row of each, and the unit of each row.

    Columns that differ within a unit get the mean of its rows, or for names the first of their order.
    """
    assert columns.units is not None
    units = places(columns.units)
    first = first_rows(units)
    values = {}
    for name, own in columns.values.items():
        if columns.kind(name).ordered:
            values[name] = _means(own, units)
        else:
            least = np.full(first.size, np.inf)
            np.minimum.at(least, units, own)
            values[name] = least
    weights = None if columns.weights is None else columns.weights[first]
    return replace(columns, values=values, weights=weights, units=None), first, units


def classes_of_units(classes: Sequence[Stratum], first: Integers, units: Integers) -> list[Stratum]:
    """The units of each class of rows; every unit is in one class."""
    place = np.zeros(units.size, dtype=np.int64)
    for number, one in enumerate(classes):
        place[one.rows] = number
    return [replace(one, rows=np.flatnonzero(place[first] == number)) for number, one in enumerate(classes)]


def rows_of_units(owners: Integers, first: Integers, units: Integers) -> Integers:
    """For each row, a row of the unit whose value its unit got."""
    return first[owners[units]]


def groups_of_rows(group: Partition, units: Integers) -> Partition:
    """A partition of units as one of their rows, for the internal report."""
    return replace(_of_rows(group.labels, units), columns=group.columns)
