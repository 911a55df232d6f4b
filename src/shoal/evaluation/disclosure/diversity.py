"""l-diversity, record by record: groups and sensitive values come in, the diversity of each group leaves.

A missing sensitive value tells nothing, and could be any value. So what is counted is what is certain: the least
diversity over all values that the missing ones could have, which they have when each is the commonest of its group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.evaluation.disclosure.keys import MISSING, Codes, Floats
from shoal.evaluation.distributions import Counts, count_groups, distinct_for_units
from shoal.evaluation.groups import places


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
