"""How often a combination of key values occurs: patterns come in, fk in the sample and Fk in the population leave.

fk is the number of records that are compatible with a record, Fk the sum of their weights, which estimates how many
people of the population are. Where persons have several records, fk is the number of persons with a compatible one, and
Fk the sum of their weights, each person's once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal.evaluation.disclosure.keys import MISSING, Floats, Patterns
from shoal.evaluation.groups import row_groups

MissingRule = Literal["wildcard", "category"]
Frequencies = tuple[Floats, Floats]


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
        from shoal.evaluation.disclosure._fit_kernel import people_who_fit

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
