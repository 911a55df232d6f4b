"""Patterns of quasi-identifiers, and their frequencies in the sample and the population.

An intruder may know this combination of values of a person. Every risk measure is a function of the patterns, so it is
computed once for each of them. A missing value is a wildcard or a category.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.io import Table
from shoal.numbers import Floats, Integers
from shoal.partition.groups import MISSING, as_arrow, row_groups


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


Form = Literal["approximate", "exact"]

# closer to 1 than this, the closed forms lose digits that the series keeps
_NEARLY_ALL = 1e-3

# from this f on, the last term added is below 1e-17 of the first: 1 / C(f + terms, terms)
_SERIES_FROM, _SERIES_TERMS = 20, 60
MissingRule = Literal["wildcard", "category"]
Frequencies = tuple[Floats, Floats]


def exact(fk: Floats, population: Floats) -> Floats:
    """The mean of 1/F: p^f/f 2F1(f, f; f+1; 1-p), p = f/F the estimated sampling fraction of the cell.

    Evaluated as p/f 2F1(1, 1; f+1; 1-p), equal by Euler's transformation and between 0 and 1 for every f; the
    original form multiplies a number that is too small by one that is too large. For large f, where the library returns
    no value, the few significant terms of its series are added.

    Reference:
        Benedetti and Franconi (1998); Rinott (2003).

    >>> exact(np.array([1.0, 500.0]), np.array([4.0, 100_000.0])).round(6).tolist()
    [0.462098, 1e-05]
    """
    from scipy.special import hyp2f1

    p = _fraction(fk, population)
    series = np.ones_like(p)
    many = fk >= _SERIES_FROM
    term = np.ones(int(many.sum()))
    for place in range(_SERIES_TERMS):
        term = term * (place + 1.0) / (fk[many] + 1.0 + place) * (1.0 - p[many])
        series[many] += term
    series[~many] = hyp2f1(1.0, 1.0, fk[~many] + 1.0, 1.0 - p[~many])
    return np.asarray(p / fk * series)


def approximate(fk: Floats, population: Floats) -> Floats:
    """Closed forms for f of 1 and 2, p/(f - (1-p)) above; the mean of 1/F itself where none of them applies.

    >>> approximate(np.array([1.0, 2.0, 3.0]), np.array([4.0, 22.0, 21.5])).round(6).tolist()
    [0.462098, 0.076021, 0.065217]
    """
    p = _fraction(fk, population)
    found = p / (fk - (1.0 - p))
    # there is no closed form between integers, which partially counted wildcards produce
    rest = (fk < 2.0) | ((fk == 2.0) & (1.0 - p < _NEARLY_ALL))
    one, two = (fk == 1.0) & (1.0 - p >= _NEARLY_ALL), (fk == 2.0) & ~rest
    odds = p / np.where(p < 1.0, 1.0 - p, 1.0)
    found = np.where(one, odds * -np.log(p), found)
    found = np.where(two, odds - odds**2 * -np.log(p), found)
    rest &= ~one
    if rest.any():
        found[rest] = exact(fk[rest], population[rest])
    return found


def _fraction(fk: Floats, population: Floats) -> Floats:
    """Sampling fraction of a cell, at most 1 even for weights below 1."""
    return np.minimum(fk / population, 1.0)


def as_category(found: Patterns, alpha: float = 1.0) -> Frequencies:
    """fk and Fk of each pattern if a missing value is a category."""
    return found.counts.astype(np.float64), found.weights


def as_wildcard(found: Patterns, alpha: float = 1.0) -> Frequencies:
    """fk and Fk of each pattern if a missing value matches any value.

    Two records are compatible if they agree in every key that is missing in neither. A compatible record counts 1
    if it has no missing value or equals the given record, gaps included, and `alpha` otherwise.

    A person counts as much as their compatible record with the largest weight.

    A record with several keys, all missing, reveals nothing: it matches all records, for any alpha, and does not
    count for complete records, since otherwise a few such records would make everybody look safe.

    Cost:
        For every occurring set of missing keys, one pass over the patterns; at most 2^keys of them. If persons
        are counted, every pattern with a gap is compared with all others.

    >>> from shoal.partition.frequencies import patterns
    >>> found = patterns([np.array([0, 0, 1, MISSING])])
    >>> as_wildcard(found)[0][found.labels].tolist()
    [3.0, 3.0, 2.0, 4.0]
    """
    if found.complete.all():
        return as_category(found)
    if found.people is not None:
        people = found.people
        from shoal.partition._kernels import people_who_fit

        return people_who_fit(found.codes, people.starts, people.members, people.weights, alpha)
    gone = _missing_sets(found)
    sets = np.unique(gone)
    fk, population = np.zeros(found.counts.size), np.zeros(found.counts.size)
    share = np.where(gone == 0, 1.0, alpha)
    counts, weights = found.counts * share, found.weights * share
    for union in np.unique(sets[:, None] | sets[None, :]):
        # patterns that can be compared exactly in the keys outside `union`
        inside = np.flatnonzero((gone | union) == union)
        left = [key for key in range(len(found.codes)) if not union >> key & 1]
        labels = (
            row_groups(found.codes[key, inside] for key in left).labels if left else np.zeros_like(inside)
        )
        for asked in sets[(sets | union) == union]:
            if asked == 0 and not left and len(found.codes) > 1:
                continue
            met = (gone[inside] | asked) == union
            if not met.any():
                continue
            own = gone[inside] == asked
            size = int(labels.max()) + 1
            for total, values in ((fk, counts), (population, weights)):
                sums = np.bincount(labels[met], values[inside[met]], minlength=size)
                total[inside[own]] += sums[labels[own]]
    # records with the same gaps count in full
    partly = gone != 0
    fk[partly] += (1.0 - alpha) * found.counts[partly]
    population[partly] += (1.0 - alpha) * found.weights[partly]
    empty = (found.codes == MISSING).all(axis=0)
    fk[empty], population[empty] = found.counts.sum(), found.weights.sum()
    return fk, population


def _missing_sets(found: Patterns) -> NDArray[np.int64]:
    """The missing keys of each pattern, one bit each."""
    bits = np.int64(1) << np.arange(len(found.codes), dtype=np.int64)
    return np.asarray(bits @ (found.codes == MISSING).astype(np.int64))


RULES: Mapping[str, Callable[[Patterns, float], Frequencies]] = {
    "wildcard": as_wildcard,
    "category": as_category,
}
