"""Sample and population frequencies of quasi-identifier patterns; a missing value is a wildcard or a category."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal.numbers import Floats
from shoal.partition.groups import row_groups
from shoal.partition.row_patterns import MISSING, Patterns

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

    >>> from shoal.partition.row_patterns import patterns
    >>> found = patterns([np.array([0, 0, 1, MISSING])])
    >>> as_wildcard(found)[0][found.labels].tolist()
    [3.0, 3.0, 2.0, 4.0]
    """
    if found.complete.all():
        return as_category(found)
    if found.people is not None:
        people = found.people
        from shoal.partition._kernels_patterns import people_who_fit

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
