"""l-diversity, record by record: groups and sensitive values come in, the diversity of each group leaves.

A missing sensitive value tells nothing, and could be any value. So what is counted is what is certain: the least
diversity over all values that the missing ones could have, which they have when each is the commonest of its group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.evaluation.disclosure.keys import Codes, Floats
from shoal.evaluation.distributions import count_groups, distinct_values, entropies
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


def diversity(labels: Codes, values: Codes, c: float = 2.0) -> Diversity:
    """Distinct, entropy and recursive (c, l)-diversity of each record's group.

    Args:
        labels: group of each record, from 0, none empty; a missing key is a value of its own.
        values: number of each record's sensitive value, below 0 for a missing one.
        c: constant of the recursive measure.

    Cost: two sorts of n words.

    Reference:
        Machanavajjhala et al. (2007).

    >>> found = diversity(np.zeros(4, dtype=np.int64), np.array([1, -1, -1, -1]))
    >>> found.distinct.tolist(), found.entropy.tolist(), found.recursive.tolist()
    ([1, 1, 1, 1], [1.0, 1.0, 1.0, 1.0], [1, 1, 1, 1])
    """
    counts = count_groups(labels, places(_filled(labels, values)))
    return Diversity(
        distinct_values(counts)[labels],
        np.exp(entropies(counts))[labels],
        _recursive(counts.group, counts.count, counts.sizes.size, c)[labels],
    )


def _filled(labels: Codes, values: Codes) -> Codes:
    """The values, missing ones replaced by the commonest value of their group."""
    gone = values < 0
    if not gone.any():
        return values
    known = count_groups(places(labels[~gone]), places(values[~gone])) if not gone.all() else None
    # of a group that has no value, any one
    commonest = np.zeros(int(labels.max()) + 1, dtype=np.int64)
    if known is not None:
        groups, kinds = np.unique(labels[~gone]), np.unique(values[~gone])
        # the last entry of a group is the one with the largest count
        order = np.lexsort((known.count, known.group))
        commonest[groups[known.group[order]]] = kinds[known.value[order]]
    return np.where(gone, commonest[labels], values)


def _recursive(group: Codes, count: Codes, groups: int, c: float) -> NDArray[np.int64]:
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
