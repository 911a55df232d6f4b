"""l-diversity and earth mover's t-closeness of any partition: groups come in, joined groups that satisfy it leave."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import InputError, OptionError
from shoal.mechanisms.kanonymity.algorithms.merging import Lacking, Merged, merge_until
from shoal.partition import Partition
from shoal.partition.groups import (
    EMD,
    count_groups,
    distinct_for_units,
    distinct_values,
    most_rows_of_a_unit,
    ratio_distances,
    units_of_groups,
    within,
)

Numbers = NDArray[np.int64]


def lacks_persons(units: Numbers, k: int, *, even: bool) -> Lacking:
    """Which groups hold fewer than k persons; if `even`, in which one somebody has more than one row in k.

    A value that is swapped inside a group is a person's with the probability of that person's share of its rows. Where
    nobody has more than one row in k there are at least k persons, and both stay so when groups are joined.
    """

    def lacking(current: Partition) -> NDArray[np.bool_]:
        if even:
            return np.asarray(current.sizes < k * most_rows_of_a_unit(current.labels, units))
        return np.asarray(units_of_groups(current.labels, units) < k)

    return lacking


def lacks_values(coded: Sequence[Numbers], l: int, units: Numbers | None = None) -> Lacking:  # noqa: E741
    """Which groups have fewer than l different values of an attribute, each of another person where those count."""

    def distinct(labels: Numbers, values: Numbers) -> Numbers:
        if units is None:
            return distinct_values(count_groups(labels, values))
        return distinct_for_units(labels, values, units)

    def lacking(current: Partition) -> NDArray[np.bool_]:
        return np.asarray(np.logical_or.reduce([distinct(current.labels, values) < l for values in coded]))

    return lacking


def lacks_closeness(coded: Sequence[Numbers], t: float, ground: str, units: Numbers | None = None) -> Lacking:
    """Which groups are farther than t from the table in an attribute: in earth mover's distance, or in the ratio of
    shares for the ground `ratio`."""
    distances = ratio_distances if ground == "ratio" else EMD[ground]

    def lacking(current: Partition) -> NDArray[np.bool_]:
        found = [~within(distances(count_groups(current.labels, values, units)), t) for values in coded]
        return np.asarray(np.logical_or.reduce(found))

    return lacking


def any_of(conditions: Sequence[Lacking]) -> Lacking:
    """Which groups lack something."""

    def lacking(current: Partition) -> NDArray[np.bool_]:
        return np.asarray(np.logical_or.reduce([condition(current) for condition in conditions]))

    return lacking


def diversify(partition: Partition, X: ArrayLike, confidential: Sequence[ArrayLike], l: int) -> Merged:  # noqa: E741
    """Join groups until each has at least l different values of every confidential attribute.

    Args:
        partition: groups from any algorithm; their minimum size is kept.
        X: the quasi-identifiers, scaled for distances: a group joins the one whose mean is nearest.
        confidential: the confidential attributes, a vector each, of any type.
        l: least number of different values.

    Returns:
        The groups, and what joining cost.

    Guarantee:
        Distinct l-diversity of the groups.

    Cost: see `merge_until`.

    Reference: left open by the thesis, section 3.5.

    >>> made = diversify(Partition.from_labels([0, 0, 1, 1]), [1.0, 1.1, 5.0, 5.1], [["a", "a", "a", "b"]], l=2)
    >>> made.partition.sizes.tolist(), made.cost["groups_before"]
    ([4], 2)
    """
    if l < 1:
        raise OptionError("l-least-1", option="l", found=l)
    coded = [value_numbers(values, partition.n) for values in confidential]
    for number, values in enumerate(coded, start=1):
        if int(values.max()) + 1 < l:
            raise OptionError("l-cannot-reached", l=l, number=number, values=int(values.max()) + 1)
    return merge_until(partition, X, lacks_values(coded, l))


def bring_close(
    partition: Partition, X: ArrayLike, confidential: Sequence[ArrayLike], t: float, ground: str = "ordered"
) -> Merged:
    """Join groups until each is within earth mover's distance t of the table in every confidential attribute.

    Args:
        partition: groups from any algorithm; their minimum size is kept.
        X: the quasi-identifiers, scaled for distances: a group joins the one whose mean is nearest.
        confidential: the confidential attributes, a vector each, of any type that can be sorted.
        t: largest distance, from 0 to 1.
        ground: how far apart two values are: `ordered` counts the values between them, as a share of all, `equal`
            is 1 for any two.

    Guarantee:
        t-closeness in the usual sense: what a group says about a member differs from what the table says by at
        most t in earth mover's distance. That bounds no ratio of probabilities.

    Cost: see `merge_until`.

    >>> values = [1, 2, 3, 4]
    >>> bring_close(Partition.from_labels([0, 0, 1, 1]), [0.0, 1.0, 2.0, 3.0], [values], t=0.2).partition.sizes.tolist()
    [4]
    """
    if not 0 <= t <= 1:
        raise OptionError("t-from-0-1", option="t", found=t)
    if ground not in EMD:
        raise OptionError("unknown-ground", option="ground", ground=ground, allowed=tuple(EMD))
    coded = [value_numbers(values, partition.n) for values in confidential]
    return merge_until(partition, X, lacks_closeness(coded, t, ground))


def value_numbers(values: ArrayLike, n: int) -> NDArray[np.int64]:
    """The place of each record's value among the different values of the table, lowest first."""
    raw = np.asarray(values)
    if raw.shape != (n,):
        raise InputError("confidential-attribute-needs-value-per-record", n=n, np=np.shape(values))
    return np.unique(raw, return_inverse=True)[1].astype(np.int64)
