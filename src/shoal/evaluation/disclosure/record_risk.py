"""Re-identification risk of records: frequencies, individual risk, population uniques, l-diversity.

The intruder knows that the keys fit, and picks one of the F people of the population who share them. F is not known;
given the f of the sample it is modelled as negative binomial, and the risk is the mean of 1/F.

The number of people in a cell of the table of all keys is modelled as Poisson, its mean fitted to the margins of the
sample: large where the values of the keys are common, small where they are rare.

fk is the number of records that are compatible with a record, Fk the sum of their weights, which estimates how many
people of the population are. Where persons have several records, fk is the number of persons with a compatible one, and
Fk the sum of their weights, each person's once.

A missing sensitive value tells nothing, and could be any value. So what is counted is what is certain: the least
diversity over all values that the missing ones could have, which they have when each is the commonest of its group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.errors import OptionError
from shoal.evaluation.anonymity import Counts, count_groups, distinct_for_units, places, row_groups
from shoal.evaluation.disclosure.keys import MISSING, Codes, Floats, Patterns

Form = Literal["approximate", "exact"]

# closer to 1 than this, the closed forms lose digits that the series keeps
_NEARLY_ALL = 1e-3
# from this f on, the last term added is below 1e-17 of the first: 1 / C(f + terms, terms)
_SERIES_FROM, _SERIES_TERMS = 20, 60
# records above this are shown as endangered, if they also stand out
HIGH_RISK = 0.1
_MAD_TO_SD = 1.4826
# cells of the full table, which only a model with interactions needs
MOST_CELLS = 20_000_000
_ROUNDS, _CLOSE = 200, 1e-10
MissingRule = Literal["wildcard", "category"]
Frequencies = tuple[Floats, Floats]


def exact(fk: Floats, population: Floats) -> Floats:
    """The mean of 1/F: p^f/f 2F1(f, f; f+1; 1-p), p = f/F the estimated sampling fraction of the cell.

    Evaluated as p/f 2F1(1, 1; f+1; 1-p), which is the same by Euler's transformation and lies inside 0 and 1 for every
    f; the other one multiplies a number that is too small by one that is too large. For large f, where the library has
    no value, the few terms of its series that count are added.

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
    """Closed forms for f of 1 and 2, p/(f - (1-p)) above; the mean of 1/F itself where none of them holds.

    >>> approximate(np.array([1.0, 2.0, 3.0]), np.array([4.0, 22.0, 21.5])).round(6).tolist()
    [0.462098, 0.076021, 0.065217]
    """
    p = _fraction(fk, population)
    found = p / (fk - (1.0 - p))
    # between two whole numbers, as wildcards that count in part make them, there is no closed form
    rest = (fk < 2.0) | ((fk == 2.0) & (1.0 - p < _NEARLY_ALL))
    one, two = (fk == 1.0) & (1.0 - p >= _NEARLY_ALL), (fk == 2.0) & ~rest
    odds = p / np.where(p < 1.0, 1.0 - p, 1.0)
    found = np.where(one, odds * -np.log(p), found)
    found = np.where(two, odds - odds**2 * -np.log(p), found)
    rest &= ~one
    if rest.any():
        found[rest] = exact(fk[rest], population[rest])
    return found


FORMS: Mapping[str, Callable[[Floats, Floats], Floats]] = {"approximate": approximate, "exact": exact}


def _fraction(fk: Floats, population: Floats) -> Floats:
    """Sampling fraction of a cell; weights below 1 would make it more than all."""
    return np.minimum(fk / population, 1.0)


def household_risks(risks: Floats, households: Codes, units: Codes | None = None) -> Floats:
    """The chance that at least one member of a record's household is found: 1 - Π (1 - r).

    Args:
        risks: of each record.
        households: of each record, numbered from 0.
        units: person of each record, where several can be one person's: every member counts once.

    >>> household_risks(np.array([0.5, 0.5, 0.1]), np.array([0, 0, 1])).round(4).tolist()
    [0.75, 0.75, 0.1]
    """
    members = households
    if units is not None:
        own = row_groups([households, units])
        risks, members = risks_of_units(risks, own.labels), households[own.first]
    with np.errstate(divide="ignore"):
        # a risk of 1 is certain for all
        safe = np.bincount(members, np.log1p(-np.minimum(risks, 1.0)))
    return np.asarray(-np.expm1(safe)[households])


def risks_of_units(risks: Floats, units: Codes) -> Floats:
    """The risk of each person: that of the record by which they are found most easily.

    >>> risks_of_units(np.array([0.5, 0.1, 0.2]), np.array([0, 0, 1])).tolist()
    [0.5, 0.2]
    """
    found = np.zeros(int(units.max()) + 1)
    np.maximum.at(found, units, risks)
    return found


def risk_threshold(risks: Floats, tolerated: float, counts: Codes | None = None) -> float | None:
    """The risk above which records have to be protected for a global risk of less than `tolerated`.

    If the risks of all records above it were lowered to the threshold, their mean would be below what is tolerated.

    Args:
        risks: of the records, or of groups of them.
        counts: the number of records of each group.

    Returns:
        A risk that occurs; None where the table is below already, 0 where no threshold does.

    Reference:
        µ-Argus manual, the threshold of the individual risk.

    >>> risk_threshold(np.array([0.9, 0.5, 0.1, 0.1]), 0.2)
    0.1
    >>> risk_threshold(np.array([0.9, 0.5, 0.1]), 0.2, np.array([1, 1, 2]))
    0.1
    >>> risk_threshold(np.array([0.1, 0.1]), 0.2) is None
    True
    """
    order = np.argsort(risks, kind="stable")[::-1]
    descending = risks[order]
    many = np.ones(risks.size, dtype=np.int64) if counts is None else counts[order]
    limit = tolerated * int(many.sum())
    before = np.cumsum(many) - many
    # sums from the smallest risk up
    rest = np.cumsum((descending * many)[::-1])[::-1]
    if rest.size == 0 or rest[0] < limit:
        return None
    new = np.ones(risks.size, dtype=bool)
    new[1:] = descending[1:] < descending[:-1]
    enough = np.flatnonzero(new & (rest + descending * before < limit))
    return float(descending[enough[0]]) if enough.size else 0.0


def endangered(risks: Floats, counts: Codes | None = None) -> int:
    """How many records have a risk above 0.1 that also stands out: above the median by 3 scaled deviations.

    >>> endangered(np.array([0.01] * 8 + [0.5])), endangered(np.array([0.5, 0.01]), np.array([1, 8]))
    (1, 1)
    """
    many = np.ones(risks.size, dtype=np.int64) if counts is None else counts
    middle = _median(risks, many)
    spread = _MAD_TO_SD * _median(np.abs(risks - middle), many)
    return int(many[(risks > middle + 3.0 * spread) & (risks > HIGH_RISK)].sum())


def _median(values: Floats, counts: Codes) -> float:
    order = np.argsort(values, kind="stable")
    running = np.cumsum(counts[order])
    n = int(running[-1])
    low, high = np.searchsorted(running, [(n - 1) // 2, n // 2], side="right")
    return float((values[order[low]] + values[order[high]]) / 2)


@internal()
@dataclass(frozen=True, slots=True)
class PopulationUniques:
    """Sample uniques, and how many of them are expected to be unique in the population.

    Attributes:
        sample_uniques: records whose keys no other record has.
        tau1: expected number of them that are unique in the population too.
        tau2: expected number of correct matches of sample uniques with the population.
    """

    sample_uniques: int
    tau1: float
    tau2: float


def population_uniques(
    found: Patterns,
    levels: Sequence[int],
    weights: Floats | None = None,
    margins: Sequence[Sequence[int]] = (),
    fraction: float | None = None,
) -> PopulationUniques:
    """τ1 = Σ exp(-(1-π) λ) and τ2 = Σ (1 - exp(-(1-π) λ)) / ((1-π) λ) over sample uniques, λ = μ/π.

    μ is the fitted mean of the sample in the cell, π the share of its people who are in the sample: 1/weight, or the
    same `fraction` for all. A missing value counts as one more value of its key.

    Args:
        found: the different combinations of key values.
        levels: number of values of each key.
        weights: of each pattern's one record; None means that everybody is in the table.
        margins: sets of keys whose joint table the model keeps beside the one of each key.
        fraction: share of the population that is in the sample, instead of 1/weight.

    Raises:
        OptionError: the full table of all keys is too large for a model with interactions.

    Reference:
        Skinner and Holmes (1998); Skinner and Shlomo (2008).
    """
    alone = np.flatnonzero(found.counts == 1)
    fitted = main_effects(found)[alone] if not margins else with_margins(found, levels, margins)[alone]
    if fraction is not None:
        share = np.full(alone.size, fraction)
    else:
        share = np.ones(alone.size) if weights is None else 1.0 / weights[alone]
    share = np.minimum(share, 1.0)
    outside = (1.0 - share) * fitted / share
    # (1 - e^-x) / x, which is 1 at 0
    matches = np.divide(-np.expm1(-outside), outside, out=np.ones_like(outside), where=outside > 0)
    return PopulationUniques(
        int(alone.size), math.fsum(np.exp(-outside).tolist()), math.fsum(matches.tolist())
    )


def main_effects(found: Patterns) -> Floats:
    """Fitted mean of each pattern's cell where keys are independent: n times the product of shares."""
    n = found.counts.sum()
    fitted = np.full(found.counts.size, float(n))
    for key in found.codes:
        fitted *= np.bincount(key + 1, found.counts)[key + 1] / n
    return fitted


def with_margins(found: Patterns, levels: Sequence[int], margins: Sequence[Sequence[int]]) -> Floats:
    """The same with joint tables of some keys kept, by iterative proportional fitting on the full table."""
    gaps = [bool((key < 0).any()) for key in found.codes]
    shape = tuple(many + gap for many, gap in zip(levels, gaps, strict=True))
    cells = math.prod(shape)
    if cells > MOST_CELLS:
        raise OptionError("table-all-keys-cells-more-than", cells=cells, most_cells=MOST_CELLS)
    # a missing value is the last level of its key
    places = tuple(np.where(key < 0, size - 1, key) for key, size in zip(found.codes, shape, strict=True))
    sample = np.zeros(shape)
    np.add.at(sample, places, found.counts)
    fitted = np.full(shape, sample.sum() / cells)
    kept = [tuple(margin) for margin in margins]
    kept += [(key,) for key in range(len(shape)) if not any(key in margin for margin in kept)]
    for _ in range(_ROUNDS):
        largest = 0.0
        for margin in kept:
            others = tuple(key for key in range(len(shape)) if key not in margin)
            wanted, there = sample.sum(others, keepdims=True), fitted.sum(others, keepdims=True)
            largest = max(largest, float(np.abs(wanted - there).max()))
            fitted *= np.divide(wanted, there, out=np.zeros_like(wanted), where=there > 0)
        if largest < _CLOSE * sample.sum():
            break
    return np.asarray(fitted[places])


def as_category(found: Patterns, alpha: float = 1.0) -> Frequencies:
    """fk and Fk of each pattern where a missing value is one more value."""
    return found.counts.astype(np.float64), found.weights


def as_wildcard(found: Patterns, alpha: float = 1.0) -> Frequencies:
    """fk and Fk of each pattern where a missing value fits any value.

    Two records are compatible if they agree in every key that neither of them misses. A compatible record counts 1 if
    it misses nothing or is equal to the record asked about, gaps included, and `alpha` otherwise.

    A person counts as much as the one of their compatible records that counts most.

    A record that misses all of several keys shows nothing: it is one of all records, whatever alpha, and does not count
    for those that miss nothing, else a few of them would make everybody look safe.

    Cost:
        For every set of missing keys that occurs, one pass over the patterns; at most 2^keys of them. Where persons are
        counted, every pattern with a gap is compared with all others.

    >>> from shoal.evaluation.disclosure.keys import patterns
    >>> found = patterns([np.array([0, 0, 1, MISSING])])
    >>> as_wildcard(found)[0][found.labels].tolist()
    [3.0, 3.0, 2.0, 4.0]
    """
    if found.complete.all():
        return as_category(found)
    if found.people is not None:
        people = found.people
        from shoal.evaluation.disclosure._kernels import people_who_fit

        return people_who_fit(found.codes, people.starts, people.members, people.weights, alpha)
    gone = _missing_sets(found)
    sets = np.unique(gone)
    fk, population = np.zeros(found.counts.size), np.zeros(found.counts.size)
    share = np.where(gone == 0, 1.0, alpha)
    counts, weights = found.counts * share, found.weights * share
    for union in np.unique(sets[:, None] | sets[None, :]):
        # patterns that can be compared in the keys outside of `union`, and in no more
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
    """Which keys each pattern misses, one bit each."""
    bits = np.int64(1) << np.arange(len(found.codes), dtype=np.int64)
    return np.asarray(bits @ (found.codes == MISSING).astype(np.int64))


RULES: Mapping[str, Callable[[Patterns, float], Frequencies]] = {
    "wildcard": as_wildcard,
    "category": as_category,
}


def frequencies_one_by_one(found: Patterns, alpha: float = 1.0) -> Frequencies:
    """The slow reference of `as_wildcard`: every pattern is compared with every other."""
    size = found.counts.size
    fk, population = np.zeros(size), np.zeros(size)
    complete, empty = found.complete, (found.codes == MISSING).all(axis=0)
    for i in range(size):
        own = found.codes[:, i]
        for j in range(size):
            other = found.codes[:, j]
            if ((own == other) | (own == MISSING) | (other == MISSING)).all():
                share = 1.0 if complete[j] or empty[i] or i == j else alpha
                if complete[i] and empty[j] and len(own) > 1:
                    share = 0.0
                fk[i] += share * found.counts[j]
                population[i] += share * found.weights[j]
    return fk, population


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Diversity:
    """What the people with the same keys share of one sensitive column; one number per record.

    Attributes:
        distinct: number of different values.
        entropy: exponential of the entropy of the values.
        recursive: the largest l with r1 < c (r_l + ... + r_m), the counts in descending order; 1 if there is none.
    """

    distinct: NDArray[np.int64]
    entropy: Floats
    recursive: NDArray[np.int64]


def diversity(labels: Codes, values: Codes, c: float = 2.0, units: Codes | None = None) -> Diversity:
    """Distinct, entropy and recursive (c, l)-diversity of each record's group.

    Args:
        labels: group of each record, from 0, none empty; a missing key is a value of its own.
        values: number of each record's sensitive value, below 0 for a missing one.
        c: constant of the recursive measure.
        units: the person of each record, from 0, where persons are counted: see `count_groups` for the shares of values
            and `distinct_for_units` for different ones, which bound the other two measures.

    Cost: two sorts of n words.

    Reference:
        Machanavajjhala et al. (2007).

    >>> found = diversity(np.zeros(4, dtype=np.int64), np.array([1, -1, -1, -1]))
    >>> found.distinct.tolist(), found.entropy.tolist(), found.recursive.tolist()
    ([1, 1, 1, 1], [1.0, 1.0, 1.0, 1.0], [1, 1, 1, 1])
    """
    # a missing value is the first one, and -1 again afterwards
    shifted = np.maximum(values, MISSING) + 1
    kinds = places(shifted)
    counted = count_groups(labels, kinds, units)
    value = counted.value - int(bool(shifted.size) and int(shifted.min()) == 0)
    found = by_group(counted.group, value, counted.count, counted.sizes.size, c)
    if units is not None:
        most = _distinct(labels, values, units)
        # the many values of one person protect nobody
        found = Diversity(most, np.minimum(found.entropy, most), np.minimum(found.recursive, most))
    return Diversity(found.distinct[labels], found.entropy[labels], found.recursive[labels])


def _distinct(labels: Codes, values: Codes, units: Codes) -> NDArray[np.int64]:
    """For each group; persons without a value add none, and a group without any has one all the same."""
    known = values >= 0
    found = np.zeros(int(labels.max()) + 1, dtype=np.int64)
    own = distinct_for_units(labels[known], places(values[known]), units[known])
    found[: own.size] = own
    return np.maximum(found, 1)


def by_group(group: Codes, value: Codes, count: Counts, groups: int, c: float = 2.0) -> Diversity:
    """The same for each group, from how often each value occurs in it.

    Args:
        group: of each entry, ascending; none of the `groups` without an entry.
        value: of each entry, ascending inside a group; below 0 for a missing one.
        count: how many records have that value in that group.
    """
    gone = value < 0
    missing = np.bincount(group[gone], count[gone], minlength=groups).astype(count.dtype)
    known, counts = group[~gone], count[~gone].copy()
    # the last entry of a group, by count, is its commonest value: the missing ones are taken for it
    order = np.lexsort((counts, known))
    ordered = known[order]
    last = order[np.append(ordered[1:] != ordered[:-1], True)] if order.size else order
    counts[last] += missing[known[last]]
    # of a group that has no value at all, any one
    empty = np.setdiff1d(np.arange(groups), known)
    entries = np.concatenate((known, empty))
    numbers = np.concatenate((counts, missing[empty]))
    order = np.argsort(entries, kind="stable")
    entries, numbers = entries[order], numbers[order]
    sizes = np.bincount(entries, numbers, minlength=groups)
    shares = numbers / sizes[entries]
    entropy = np.bincount(entries, -shares * np.log(shares), minlength=groups)
    return Diversity(
        np.bincount(entries, minlength=groups).astype(np.int64),
        np.exp(entropy),
        _recursive(entries, numbers, groups, c),
    )


def _recursive(group: Codes, count: NDArray[Any], groups: int, c: float) -> NDArray[np.int64]:
    """The largest l of each group for which the commonest value is less than c times the l-th and rarer ones."""
    order = np.lexsort((-count, group))
    group, count = group[order], count[order]
    entries = np.bincount(group, minlength=groups)
    first = np.cumsum(entries) - entries
    running = np.cumsum(count)
    ends = running[first + entries - 1][group]
    # what the value at a place and all rarer ones have together
    tail = ends - running + count
    rank = np.arange(group.size) - first[group] + 1
    best = np.ones(groups, dtype=np.int64)
    holds = count[first][group] < c * tail
    np.maximum.at(best, group[holds], rank[holds])
    return best
