"""SUDA2: find special uniques and compute their scores.

A record made unique by few of its keys is more special, and likelier unique in the population, than one that needs all
of them. A minimal sample unique (MSU) is a set of keys in which a record is unique while no subset makes it unique.
A missing value is never part of a minimal sample unique, and matches no other record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shoal.display import internal
from shoal.numbers import Floats, Integers
from shoal.partition import Patterns

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
    from shoal.evaluation.disclosure._kernels import minimal_uniques

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
