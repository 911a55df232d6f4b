"""Re-identification risk of records: frequencies, individual risk, population uniques, l-diversity.

The intruder knows that the keys match, and picks one of the F people of the population who share them. F is unknown;
given the f of the sample it is modelled as negative binomial, and the risk is the mean of 1/F.

The number of people in a cell of the table of all keys is modelled as Poisson, its mean fitted to the margins of the
sample: large where the values of the keys are common, small where they are rare.

fk is the number of records that are compatible with a record, Fk the sum of their weights, which estimates the number
of such people in the population. Where persons have several records, fk is the number of persons with a compatible
one, and Fk the sum of their weights, each person's once.

A missing sensitive value could be any value. What is reported is therefore certain: the least diversity over all
values that the missing ones could have, attained when each is the commonest of its group.
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
from shoal.numbers import Floats, Integers
from shoal.partition import (
    MISSING,
    Counts,
    Patterns,
    approximate,
    count_groups,
    distinct_for_units,
    exact,
    places,
    row_groups,
)

# records with a higher risk are reported as high-risk if they also stand out
HIGH_RISK = 0.1
_MAD_TO_SD = 1.4826

# cells of the full table, which only a model with interactions needs
MOST_CELLS = 20_000_000
_ROUNDS, _CLOSE = 200, 1e-10
FORMS: Mapping[str, Callable[[Floats, Floats], Floats]] = {"approximate": approximate, "exact": exact}


def household_risks(risks: Floats, households: Integers, units: Integers | None = None) -> Floats:
    """The chance that at least one member of a record's household is re-identified: 1 - Π (1 - r).

    Args:
        risks: of each record.
        households: of each record, numbered from 0.
        units: person of each record, where a person can have several: every member counts once.

    >>> household_risks(np.array([0.5, 0.5, 0.1]), np.array([0, 0, 1])).round(4).tolist()
    [0.75, 0.75, 0.1]
    """
    members = households
    if units is not None:
        own = row_groups([households, units])
        risks, members = risks_of_units(risks, own.labels), households[own.first]
    with np.errstate(divide="ignore"):
        # a risk of 1 makes the whole household certain
        safe = np.bincount(members, np.log1p(-np.minimum(risks, 1.0)))
    return np.asarray(-np.expm1(safe)[households])


def risks_of_units(risks: Floats, units: Integers) -> Floats:
    """The risk of each person: that of the person's riskiest record.

    >>> risks_of_units(np.array([0.5, 0.1, 0.2]), np.array([0, 0, 1])).tolist()
    [0.5, 0.2]
    """
    found = np.zeros(int(units.max()) + 1)
    np.maximum.at(found, units, risks)
    return found


def risk_threshold(risks: Floats, tolerated: float, counts: Integers | None = None) -> float | None:
    """The risk above which records must be protected for a global risk of less than `tolerated`.

    If the risks of all records above it were lowered to the threshold, their mean would be below `tolerated`.

    Args:
        risks: of the records, or of groups of them.
        counts: the number of records of each group.

    Returns:
        A risk that occurs; None where the table is already below, 0 where no threshold suffices.

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


def endangered(risks: Floats, counts: Integers | None = None) -> int:
    """Number of records with a risk above 0.1 that is also above the median by 3 scaled deviations.

    >>> endangered(np.array([0.01] * 8 + [0.5])), endangered(np.array([0.5, 0.01]), np.array([1, 8]))
    (1, 1)
    """
    many = np.ones(risks.size, dtype=np.int64) if counts is None else counts
    middle = _median(risks, many)
    spread = _MAD_TO_SD * _median(np.abs(risks - middle), many)
    return int(many[(risks > middle + 3.0 * spread) & (risks > HIGH_RISK)].sum())


def _median(values: Floats, counts: Integers) -> float:
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
        weights: of each pattern's only record; None means that the table is the population.
        margins: key sets whose joint table the model fits in addition to that of each key.
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
    """Fitted mean of each pattern's cell under independent keys: n times the product of shares."""
    n = found.counts.sum()
    fitted = np.full(found.counts.size, float(n))
    for key in found.codes:
        fitted *= np.bincount(key + 1, found.counts)[key + 1] / n
    return fitted


def with_margins(found: Patterns, levels: Sequence[int], margins: Sequence[Sequence[int]]) -> Floats:
    """The same with the joint tables of some keys fitted too, by iterative proportional fitting on the full table."""
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


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Diversity:
    """Diversity of one sensitive column among the people with the same keys; one number per record.

    Attributes:
        distinct: number of different values.
        entropy: exponential of the entropy of the values.
        recursive: the largest l with r1 < c (r_l + ... + r_m), the counts in descending order; 1 if there is none.
    """

    distinct: NDArray[np.int64]
    entropy: Floats
    recursive: NDArray[np.int64]


def diversity(labels: Integers, values: Integers, c: float = 2.0, units: Integers | None = None) -> Diversity:
    """Distinct, entropy and recursive (c, l)-diversity of each record's group.

    Args:
        labels: group of each record, from 0, none empty; a missing key is a separate value.
        values: code of each record's sensitive value, below 0 for a missing one.
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
    # a missing value comes first, as code 0, and is mapped back to -1
    shifted = np.maximum(values, MISSING) + 1
    kinds = places(shifted)
    counted = count_groups(labels, kinds, units)
    value = counted.value - int(bool(shifted.size) and int(shifted.min()) == 0)
    found = by_group(counted.group, value, counted.count, counted.sizes.size, c)
    if units is not None:
        most = _distinct(labels, values, units)
        # several values of one person add no protection
        found = Diversity(most, np.minimum(found.entropy, most), np.minimum(found.recursive, most))
    return Diversity(found.distinct[labels], found.entropy[labels], found.recursive[labels])


def _distinct(labels: Integers, values: Integers, units: Integers) -> NDArray[np.int64]:
    """Distinct values of each group; persons without a value add none, and a group without any value has one."""
    known = values >= 0
    found = np.zeros(int(labels.max()) + 1, dtype=np.int64)
    own = distinct_for_units(labels[known], places(values[known]), units[known])
    found[: own.size] = own
    return np.maximum(found, 1)


def by_group(group: Integers, value: Integers, count: Counts, groups: int, c: float = 2.0) -> Diversity:
    """The same for each group, from the count of each value in it.

    Args:
        group: of each entry, ascending; none of the `groups` without an entry.
        value: of each entry, ascending inside a group; below 0 for a missing one.
        count: how many records have that value in that group.
    """
    gone = value < 0
    missing = np.bincount(group[gone], count[gone], minlength=groups).astype(count.dtype)
    known, counts = group[~gone], count[~gone].copy()
    # the last entry of a group, by count, is its commonest value: missing values are counted as it
    order = np.lexsort((counts, known))
    ordered = known[order]
    last = order[np.append(ordered[1:] != ordered[:-1], True)] if order.size else order
    counts[last] += missing[known[last]]
    # for a group without any value, any one
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


def _recursive(group: Integers, count: NDArray[Any], groups: int, c: float) -> NDArray[np.int64]:
    """The largest l of each group for which the commonest value is less than c times the l-th and rarer ones."""
    order = np.lexsort((-count, group))
    group, count = group[order], count[order]
    entries = np.bincount(group, minlength=groups)
    first = np.cumsum(entries) - entries
    running = np.cumsum(count)
    ends = running[first + entries - 1][group]
    # total count of the value at a place and all rarer ones
    tail = ends - running + count
    rank = np.arange(group.size) - first[group] + 1
    best = np.ones(groups, dtype=np.int64)
    holds = count[first][group] < c * tail
    np.maximum.at(best, group[holds], rank[holds])
    return best


Points = Literal["original", "ihsn"]
# sets of keys are bits of one word, and all of them may have to be visited
MOST_KEYS = 30


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Suda:
    """Special uniques of a table.

    Attributes:
        scores: of each record, 0 for one that is not unique.
        dis: DIS-SUDA of each record, the chance that a match with it is correct.
        points: (records, keys), the part of the score that sets with this key contribute.
        sizes: number of minimal sample uniques by their number of keys, from 1.
    """

    scores: Floats
    dis: Floats
    points: Floats
    sizes: tuple[int, ...]

    @property
    def contributions(self) -> Floats:
        """(records, keys), the share of the score that sets with this key contribute; shares overlap."""
        whole = self.scores[:, None]
        return np.divide(self.points, whole, out=np.zeros_like(self.points), where=whole > 0)

    @property
    def key_contributions(self) -> Floats:
        """The same share of each key over all records, in percent; they sum to more than 100."""
        total = self.scores.sum()
        return np.asarray(
            100.0 * self.points.sum(axis=0) / total if total else np.zeros(self.points.shape[1])
        )

    def level_contributions(self, codes: Integers, key: int, levels: int) -> Floats:
        """Share of a key's points that records with each of its levels have, in percent; they sum to 100."""
        # a record with a missing key has no points for it
        by_level = np.bincount(codes + 1, self.points[:, key], minlength=levels + 1)[1:]
        total = by_level.sum()
        return np.asarray(100.0 * by_level / total if total else by_level)


def suda(found: Patterns, levels: Sequence[int], fraction: float = 0.01, points: Points = "original") -> Suda:
    """Scores by minimal sample uniques, and DIS scores.

    With m keys, a minimal sample unique of s keys adds (m-s)! to the score of its record; by `ihsn`
    (2^(m-s) - 1) s! (m-s)! / m! instead.

    Args:
        found: the different combinations of key values.
        levels: number of values of each key.
        fraction: share of the population that is in the sample, for DIS.
        points: how a minimal sample unique is weighted.

    Cost:
        Patterns times key sets at worst; sets whose subsets separate all records are not visited.

    Reference:
        Elliot, Manning and Ford (2002); Manning, Haglin and Keane (2008); Skinner and Elliot (2002) for DIS.
    """
    from shoal.evaluation._kernels import minimal_uniques

    owner, sets = minimal_uniques(found.codes, np.array(levels, dtype=np.int64), only_person(found))
    return scored(found, owner, sets, fraction, points)


def only_person(found: Patterns) -> Integers:
    """The only person (or record, where those are counted) that has each pattern; -1 where several have it."""
    alone = found.counts == 1
    if found.people is None:
        return np.where(alone, np.arange(alone.size), -1)
    return np.where(alone, found.people.members[found.people.starts[:-1]], -1)


def scored(found: Patterns, owner: Integers, sets: Integers, fraction: float, points: Points) -> Suda:
    """Scores from the minimal sample uniques, given the pattern of each and its keys as bits."""
    keys, size = found.codes.shape
    inside = (sets[:, None] >> np.arange(keys)) & 1
    sizes = inside.sum(axis=1)
    worth = np.array([0.0, *(msu_points(keys, one, points) for one in range(1, keys + 1))])[sizes]
    scores = np.bincount(owner, worth, minlength=size).astype(np.float64)
    by_key = np.stack([np.bincount(owner, worth * inside[:, key], minlength=size) for key in range(keys)])
    pairs = int(2 * (found.counts == 2).sum())
    dis = dis_scores(scores, pairs, keys, fraction)
    by_size = np.bincount(sizes, minlength=keys + 1)[1:]
    return Suda(
        scores[found.labels],
        dis[found.labels],
        np.ascontiguousarray(by_key.T[found.labels]),
        tuple(int(one) for one in by_size),
    )


def msu_points(keys: int, size: int, points: Points = "original") -> float:
    """What a minimal sample unique of `size` keys adds to a score.

    >>> [msu_points(4, size) for size in (1, 2, 3, 4)]
    [6.0, 2.0, 1.0, 1.0]
    >>> [round(msu_points(3, size, "ihsn"), 4) for size in (1, 2, 3)]
    [1.0, 0.3333, 0.0]
    """
    rest = math.factorial(keys - size)
    if points == "original":
        return float(rest)
    return float((2 ** (keys - size) - 1) * math.factorial(size) * rest / math.factorial(keys))


def dis_scores(scores: Floats, pairs: int, keys: int, fraction: float) -> Floats:
    """DIS-SUDA: the chance that a match with a unique record is correct, distributed in proportion to the scores.

    Args:
        scores: of the unique records, 0 for others.
        pairs: number of records whose keys exactly two records have.
        keys: number of keys.
        fraction: share of the population that is in the sample.
    """
    special = scores > 0
    power = 1.0 + (8 - keys) / 20
    raised = np.power(scores, power, out=np.ones_like(scores), where=special)
    total = (1.0 / raised[special]).sum()
    others = pairs * (1.0 - fraction) / fraction
    return np.where(special, 1.0 / (1.0 + others / (raised * total if special.any() else 1.0)), 0.0)
