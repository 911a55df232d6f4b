"""Equivalence classes of equal rows and patterns of quasi-identifiers: counts, distances, and frequencies.

An intruder may know a pattern, a combination of values of a person. Every risk measure is a function of the patterns,
so it is computed once for each of them. A missing value is a wildcard or a category.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.io import Table
from shoal.numbers import Floats, Integers
from shoal.partition.base import MISSING

# a lookup table with this many entries per value is faster than a sort
_COUNTED = 8

# integers if records are counted, fractions if persons are counted
Counts = NDArray[np.int64] | NDArray[np.float64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class RowGroups:
    """The groups of identical rows.

    Attributes:
        labels: group number of each row.
        sizes: number of rows of each group.
        first: index of one row of each group.
    """

    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]
    first: NDArray[np.int64]


def row_groups(columns: Iterable[NDArray[np.float64] | NDArray[np.int64]]) -> RowGroups:
    """Group identical rows; missing values (NaN) equal each other.

    At most one sort per column instead of one sort of whole rows: no row is ever copied. Groups are numbered in the
    order of their values.

    >>> row_groups([np.array([1.0, 1.0, 2.0]), np.array([5.0, 5.0, 5.0])]).sizes.tolist()
    [2, 1]
    """
    labels: NDArray[np.int64] | None = None
    for column in columns:
        codes = places(column)
        # both factors are below the number of rows, so the product stays far below 64 bits
        labels = codes if labels is None else places(labels * (codes.max(initial=0) + 1) + codes)
    if labels is None:
        raise ValueError("at least one column is needed to compare rows.")
    sizes = np.bincount(labels)
    first = np.empty(sizes.size, dtype=np.int64)
    # the last write wins: the first row of each group
    first[labels[::-1]] = np.arange(labels.size)[::-1]
    return RowGroups(labels, sizes.astype(np.int64), first)


def places(values: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.int64]:
    """The rank of each value among the distinct values, ascending.

    Integers within a small range are counted instead of sorted.

    >>> places(np.array([7, 5, 7, 9])).tolist()
    [1, 0, 1, 2]
    """
    if values.size and np.issubdtype(values.dtype, np.integer):
        low, high = int(values.min()), int(values.max())
        if high - low < _COUNTED * values.size:
            moved = values - low
            there = np.zeros(high - low + 1, dtype=bool)
            there[moved] = True
            return np.asarray((np.cumsum(there) - 1)[moved], dtype=np.int64)
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def units_of_groups(labels: NDArray[np.int64], units: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of different units among the rows of each group.

    Args:
        labels: group of each row, from 0, none empty.
        units: unit of each row, from 0: the person a row is about.

    >>> units_of_groups(np.array([0, 0, 0, 1, 1]), np.array([4, 4, 4, 4, 2])).tolist()
    [1, 2]
    """
    pairs = _pairs(labels, units)
    return np.bincount(labels[pairs.first], minlength=int(labels.max(initial=-1)) + 1).astype(np.int64)


def most_rows_of_a_unit(labels: NDArray[np.int64], units: NDArray[np.int64]) -> NDArray[np.int64]:
    """The largest number of rows of one unit in each group; arguments as above.

    >>> most_rows_of_a_unit(np.array([0, 0, 0, 1, 1]), np.array([4, 4, 4, 4, 2])).tolist()
    [3, 1]
    """
    pairs = _pairs(labels, units)
    most = np.zeros(int(labels.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(most, labels[pairs.first], pairs.sizes)
    return most


def _pairs(labels: NDArray[np.int64], units: NDArray[np.int64]) -> RowGroups:
    return row_groups([labels, units])


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class GroupCounts:
    """Frequency of each value in each group, without pairs that do not occur.

    Attributes:
        group: group of each entry, ascending.
        value: value number of each entry, ascending within a group.
        count: number of records with that value in that group.
        sizes: number of records of each group.
        totals: number of records of each value in the whole table.

    If units are counted, a unit with several records counts once in a group and once in the table, in equal parts
    for its records there.
    """

    group: NDArray[np.int64]
    value: NDArray[np.int64]
    count: Counts
    sizes: Counts
    totals: Counts

    @property
    def shares(self) -> NDArray[np.float64]:
        """Share of the entry's value in its group."""
        return self.count / self.sizes[self.group]


def count_groups(
    labels: NDArray[np.int64], values: NDArray[np.int64], units: NDArray[np.int64] | None = None
) -> GroupCounts:
    """Count values by group.

    Args:
        labels: group of each record, 0 .. groups - 1, no group empty.
        values: value number of each record, 0 .. values - 1 in the order of the values, no value empty.
        units: the unit of each record, from 0, if units are counted instead of records.

    Cost: one sort of n words.

    >>> counts = count_groups(np.array([0, 0, 1]), np.array([1, 1, 0]))
    >>> counts.group.tolist(), counts.value.tolist(), counts.count.tolist()
    ([0, 1], [1, 0], [2, 1])
    >>> count_groups(np.array([0, 0, 0]), np.array([0, 1, 1]), np.array([7, 7, 8])).count.tolist()
    [0.5, 1.5]
    """
    if units is not None:
        return _count_units(labels, values, units)
    sizes, totals = np.bincount(labels), np.bincount(values)
    # both factors are at most the number of records
    pairs, count = np.unique(labels * totals.size + values, return_counts=True)
    return GroupCounts(pairs // totals.size, pairs % totals.size, count.astype(np.int64), sizes, totals)


def _count_units(
    labels: NDArray[np.int64], values: NDArray[np.int64], units: NDArray[np.int64]
) -> GroupCounts:
    kinds = int(values.max()) + 1
    whole = _unit_masses(np.zeros_like(labels), values, units)
    pair, mass, sizes = _unit_masses(labels, values, units)
    pairs, place = np.unique(pair, return_inverse=True)
    count = np.bincount(place.ravel(), weights=mass)
    totals = np.bincount(whole[0], weights=whole[1], minlength=kinds)
    return GroupCounts(pairs // kinds, pairs % kinds, count, sizes, totals)


def _unit_masses(
    labels: NDArray[np.int64], values: NDArray[np.int64], units: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Group and value as one number, with the fraction of each unit that has them, for every unit and value of a
    group; and the number of units of each group."""
    member = places(labels * (units.max() + 1) + units)
    rows = np.bincount(member)
    group = np.empty(rows.size, dtype=np.int64)
    group[member] = labels
    kinds = int(values.max()) + 1
    every, count = np.unique(member * kinds + values, return_counts=True)
    owner = every // kinds
    sizes = np.bincount(group, minlength=int(labels.max()) + 1).astype(np.float64)
    return group[owner] * kinds + every % kinds, count / rows[owner], sizes


def distinct_for_units(
    labels: NDArray[np.int64], values: NDArray[np.int64], units: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Distinct l-diversity of each group in units: the most units that can be assigned different values.

    A unit with many values counts for one of them only: this is a maximum matching of units and values.

    Args:
        labels: group of each record, 0 .. groups - 1; a group may be empty here.
        values, units: value and unit of each record, from 0.

    Cost: that of Hopcroft and Karp, on one edge for each unit and value in a group.

    >>> distinct_for_units(np.array([0, 0, 0]), np.array([0, 1, 2]), np.array([5, 5, 6])).tolist()
    [2]
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if not labels.size:
        return np.zeros(0, dtype=np.int64)
    members = places(labels * (units.max() + 1) + units)
    kinds = places(labels * (values.max() + 1) + values)
    edges = coo_matrix((np.ones(labels.size, dtype=np.int8), (members, kinds))).tocsr()
    group = np.empty(edges.shape[0], dtype=np.int64)
    group[members] = labels
    matched = maximum_bipartite_matching(edges, perm_type="column") >= 0
    return np.bincount(group[matched], minlength=int(labels.max()) + 1).astype(np.int64)


def distinct_values(counts: GroupCounts) -> NDArray[np.int64]:
    """Number of different values of each group: distinct l-diversity."""
    return np.bincount(counts.group, minlength=counts.sizes.size).astype(np.int64)


def ratio_distances(counts: GroupCounts) -> NDArray[np.float64]:
    """Largest ratio, either way, of a value's share in the group to its share in the table; infinite if one is absent.

    Reference: the thesis, Definition 15 and Proposition 10.

    >>> ratio_distances(count_groups(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 0, 1, 1]))).round(4).tolist()
    [1.5, 1.5]
    """
    ratios = counts.shares / (counts.totals / counts.totals.sum())[counts.value]
    largest = np.zeros(counts.sizes.size)
    np.maximum.at(largest, counts.group, np.maximum(ratios, 1.0 / ratios))
    largest[distinct_values(counts) < counts.totals.size] = np.inf
    return largest


def equal_distances(counts: GroupCounts) -> NDArray[np.float64]:
    """Earth mover's distance of each group to the table, with equal distances between all values."""
    table = (counts.totals / counts.totals.sum())[counts.value]
    # values absent from a group contribute their whole share
    present = np.bincount(counts.group, weights=table, minlength=counts.sizes.size)
    differences = np.bincount(
        counts.group, weights=np.abs(counts.shares - table), minlength=counts.sizes.size
    )
    return np.asarray(0.5 * (differences + np.maximum(1.0 - present, 0.0)))


def ordered_distances(counts: GroupCounts) -> NDArray[np.float64]:
    """Earth mover's distance of each group to the table, for equally spaced values with a total range of length 1.

    The cumulative share of a group is constant between two of its values, that of the table increases; so the sum
    of their absolute differences over a run of absent values takes one search and four lookups.

    Cost: O(log values) for each value of each group.

    >>> counts = count_groups(np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3]))
    >>> ordered_distances(counts).round(6).tolist()
    [0.333333, 0.333333]
    """
    kinds = counts.totals.size
    if kinds == 1:
        return np.zeros(counts.sizes.size)
    total = counts.totals.sum()
    table = np.cumsum(counts.totals) / total
    before = np.concatenate(([0.0], np.cumsum(table)))
    entries = np.bincount(counts.group, minlength=counts.sizes.size)
    first = np.cumsum(entries) - entries
    running = np.cumsum(counts.count)
    own = (running - np.repeat(running[first] - counts.count[first], entries)) / counts.sizes[counts.group]
    # each value starts a run that lasts until the group's next value; one more run precedes its first value
    ends = np.append(counts.value[1:], kinds)
    ends[first[1:] - 1] = kinds
    starts = np.concatenate((counts.value, np.zeros(first.size, dtype=np.int64)))
    ends = np.concatenate((ends, counts.value[first]))
    heights = np.concatenate((own, np.zeros(first.size)))
    groups = np.concatenate((counts.group, np.arange(first.size)))
    crossing = np.clip(np.searchsorted(table, heights, side="right"), starts, ends)
    above = heights * (crossing - starts) - (before[crossing] - before[starts])
    below = (before[ends] - before[crossing]) - heights * (ends - crossing)
    work = np.bincount(groups, weights=above + below, minlength=counts.sizes.size)
    return np.asarray(np.maximum(work, 0.0) / (kinds - 1))


def within(found: float | NDArray[np.float64], limit: float) -> NDArray[np.bool_]:
    """Whether distances are at most the limit, up to the rounding error of a computed fraction.

    >>> bool(within(0.1 + 0.2, 0.3))
    True
    """
    return np.asarray(np.asarray(found) <= limit * (1 + 1e-12) + 1e-12)


# earth mover's distances of groups from the whole table, by the ground distance between values
EMD: Mapping[str, Callable[[GroupCounts], NDArray[np.float64]]] = {
    "ordered": ordered_distances,
    "equal": equal_distances,
}


@dataclass(frozen=True, slots=True)
class ActualK:
    """Equivalence classes over some columns.

    Attributes:
        k: size of the smallest class.
        groups: number of distinct rows.
        unique_share: share of the rows that are unique, 0 to 1.
        per_attribute: the same k for each column on its own.
    """

    k: int
    groups: int
    unique_share: float
    per_attribute: dict[str, int]


def actual_k(table: Table, columns: Sequence[str]) -> ActualK:
    """Size of the smallest equivalence class over the columns; missing values are equal to each other.

    Cost:
        One sort per column, O(n) memory.

    >>> import pyarrow as pa
    >>> from shoal.io import read
    >>> actual_k(read(pa.table({"a": [1, 1, 2, 2], "b": ["x", "x", "y", "z"]})), ["a", "b"])
    ActualK(k=1, groups=3, unique_share=0.5, per_attribute={'a': 2, 'b': 1})
    """
    codes = {name: column_codes(table, name) for name in columns}
    sizes = row_groups(codes.values()).sizes
    return ActualK(
        k=int(sizes.min()),
        groups=int(sizes.size),
        unique_share=int((sizes == 1).sum()) / table.n,
        per_attribute={name: int(np.bincount(code).min()) for name, code in codes.items()},
    )


def column_codes(table: Table, name: str) -> NDArray[np.int64]:
    """An integer per row, equal exactly where the values are equal: also for text, dates and large integers."""
    if table.is_numeric(name) and not table.is_integer(name):
        return np.unique(table.numeric(name), return_inverse=True)[1].astype(np.int64)
    encoded = as_arrow(table.series(name)).dictionary_encode(null_encoding="encode")
    if hasattr(encoded, "combine_chunks"):
        encoded = encoded.combine_chunks()
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.int64)


def as_arrow(series: nw.Series[Any]) -> Any:
    import pyarrow as pa

    try:
        values = series.to_arrow()
    except pa.ArrowException:
        # a pandas column of mixed types: files store its text
        return pa.array([None if value is None else str(value) for value in series.to_list()])
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


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

    >>> from shoal.partition.groups import patterns
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
