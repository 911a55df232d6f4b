"""Suppression where an empty cell matches any value: choose the cells to empty. No guarantee.

Every record should have k compatible ones: those that agree with it in all keys that are missing in neither. An emptied
cell makes other records safer, too, but does not hide that a row with all its cells is unique; so nothing is
claimed for it (docs/suppression.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.kernels import compiled
from shoal.numbers import Floats, Integers
from shoal.partition import approximate, as_wildcard, patterns, places

Codes = NDArray[np.int32]

_SLACK = 1e-9
# number of recounts of the frequencies when restoring cells
_MOST_TRIES = 400
# closer to 1 than this, the closed forms of the risk lose digits
_NEARLY_ALL = 1e-3


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """The requirement: k compatible records, or a maximum individual risk.

    Attributes:
        alpha: weight of a compatible record with a missing key, unless it has the same gaps.
        risk: maximum individual risk, None for a requirement on k.
        weights: weights of the records, for the risk.
        units: the person of each record, if persons are counted.
    """

    k: int
    alpha: float = 1.0
    risk: float | None = None
    weights: Floats | None = None
    units: Integers | None = None

    def of(self, rows: Integers) -> Wish:
        """The requirement for some of the records."""
        return replace(
            self,
            weights=None if self.weights is None else self.weights[rows],
            units=None if self.units is None else places(self.units[rows]),
        )

    def frequencies(self, codes: Integers) -> tuple[Floats, Floats]:
        """fk and Fk of every record; codes are 0 for an empty cell."""
        found = patterns([codes[:, column] - 1 for column in range(codes.shape[1])], self.weights, self.units)
        sample, population = as_wildcard(found, self.alpha)
        return sample[found.labels], population[found.labels]

    def open(self, codes: Integers) -> Integers:
        """The records that do not satisfy it yet, those at highest risk first."""
        sample, population = self.frequencies(codes)
        if self.risk is None:
            missed = np.flatnonzero(sample < self.k - _SLACK)
            return missed[np.argsort(sample[missed], kind="stable")]
        risks = approximate(sample, population)
        missed = np.flatnonzero(risks > self.risk + _SLACK)
        return missed[np.argsort(-risks[missed], kind="stable")]


def emptied(
    codes: Integers, wish: Wish, order: Integers, progress: Callable[[int, int], None] | None = None
) -> NDArray[np.bool_]:
    """The cells to empty to satisfy a requirement.

    In each pass, every record that does not satisfy it loses the least important key in which a nearest record
    differs. Finally needless cells are restored; if persons are counted, many at a time.

    Args:
        codes: (records, keys), 0 for an empty cell.
        order: the keys, the least important first.

    Cost:
        A comparison of every record at risk with all others, at most k of equal ones.

    Reference: Templ, Kowarik and Meindl (2015), section 4.2; restoring cells is ours.
    """
    by_rows = wish.risk is None and wish.units is None
    kept = _first_of_equal(codes, wish.k) if by_rows else np.arange(codes.shape[0])
    work = np.ascontiguousarray(codes[kept].T.astype(np.int32))
    own = wish.of(kept)
    first = None
    while (missed := own.open(work.T.astype(np.int64))).size:
        first = first or missed.size
        if progress is not None:
            progress(first - missed.size, first)
        if not blank_once(work, missed, order):
            break
    before = np.ascontiguousarray(codes[kept].T.astype(np.int32))
    if own.units is not None:
        work = _given_back_in_parts(work, before, own, order)
    else:
        sample, population = own.frequencies(work.T.astype(np.int64))
        weights = np.ones(kept.size) if own.weights is None else own.weights
        limit = math.inf if own.risk is None else own.risk + _SLACK
        least = own.k - _SLACK if own.risk is None else 0.0
        give_back(work, before, sample, population, weights, order, least, limit, own.alpha)
    found = np.zeros(codes.shape, dtype=np.bool_)
    found[kept] = (work.T == 0) & (codes[kept] > 0)
    return found


def _given_back_in_parts(codes: Codes, before: Codes, wish: Wish, order: Integers) -> Codes:
    """Codes with emptied cells restored, important keys first: all at once, then halves of them, and so on.

    Args:
        codes, before: (keys, records).
    """
    cells = [(key, row) for key in order[::-1].tolist() for row in np.flatnonzero(codes[key] != before[key])]
    waiting, tries = [cells], 0
    while waiting and tries < _MOST_TRIES:
        part = waiting.pop()
        tries += 1
        trial = codes.copy()
        places_of = tuple(np.array(part, dtype=np.int64).reshape(-1, 2).T)
        trial[places_of] = before[places_of]
        if not wish.open(trial.T.astype(np.int64)).size:
            codes = trial
        elif len(part) > 1:
            half = len(part) // 2
            waiting += [part[half:], part[:half]]
    return codes


def _first_of_equal(codes: Integers, k: int) -> Integers:
    """The first k of all equal records: more of them are safe already and do not help others."""
    labels = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], labels[order])
    return np.sort(order[np.arange(order.size) - starts < k])


@compiled
def blank_once(codes: Codes, missed: Integers, order: Integers) -> int:
    """One pass: each of the given records loses a cell; returns how many did.

    Args:
        codes: (keys, records), changed in place.
    """
    keys, n = codes.shape
    apart = np.empty(n, dtype=np.uint8)
    changed = 0
    for record in missed:
        apart[:] = 0
        for key in range(keys):
            own = codes[key, record]
            if own != 0:
                column = codes[key]
                for other in range(n):
                    apart[other] += (column[other] != own) & (column[other] != 0)
        least = 255
        for other in range(n):
            if 0 < apart[other] < least:
                least = apart[other]
        chosen = -1
        for key in order:
            own = codes[key, record]
            if own == 0:
                continue
            if least == 255:
                # all are compatible and still too few count: only fewer values can help
                chosen = key
                break
            column = codes[key]
            for other in range(n):
                if apart[other] == least and column[other] != own and column[other] != 0:
                    chosen = key
                    break
            if chosen >= 0:
                break
        if chosen >= 0:
            codes[chosen, record] = 0
            changed += 1
    return changed


@compiled
def _counts_for(gaps: int, other: int, alpha: float, all_keys: int) -> float:
    """The weight of a compatible record with some gaps for one with other gaps: as in `as_wildcard`."""
    if gaps == 0 or gaps == other or other == all_keys:
        return 1.0
    return 0.0 if other == 0 and gaps == all_keys and all_keys > 1 else alpha


@compiled
def _holds(sample: float, population: float, least: float, limit: float) -> bool:
    """Whether a record with such frequencies has its k, or certainly a small enough risk."""
    if limit == np.inf:
        return sample >= least
    p = min(sample / population, 1.0)
    if sample > 2.0:
        return p / (sample - (1.0 - p)) <= limit
    if 1.0 - p < _NEARLY_ALL or (sample != 1.0 and sample != 2.0):
        # no closed form, or one that loses digits: the risk is never above that of a full sample
        return 1.0 / sample <= limit
    odds = p / (1.0 - p)
    if sample == 1.0:
        return bool(odds * -math.log(p) <= limit)
    return bool(odds - odds * odds * -math.log(p) <= limit)


@compiled
def give_back(
    codes: Codes,
    before: Codes,
    sample: Floats,
    population: Floats,
    weights: Floats,
    order: Integers,
    least: float,
    limit: float,
    alpha: float,
) -> int:
    """Restore emptied cells, important keys first, as long as the requirement holds for every record.

    Args:
        codes: (keys, records), changed in place.
        before: the same before anything was emptied.
        sample, population: fk and Fk of each record, changed in place.
        weights: of the records.
        least: lower limit of fk.
        limit: upper limit of the risk; infinite for a requirement on k.
    """
    keys, n = codes.shape
    gaps = np.zeros(n, dtype=np.int64)
    for key in range(keys):
        for record in range(n):
            gaps[record] |= np.int64(codes[key, record] == 0) << key
    given = 0
    all_keys = (1 << keys) - 1
    differ = np.empty(n, dtype=np.uint8)
    for place in range(keys - 1, -1, -1):
        key = order[place]
        for record in range(n):
            value = before[key, record]
            if codes[key, record] != 0 or value == 0:
                continue
            differ[:] = 0
            for other_key in range(keys):
                own = codes[other_key, record]
                if own != 0:
                    column = codes[other_key]
                    for other in range(n):
                        differ[other] |= (column[other] != own) & (column[other] != 0)
            old, new = gaps[record], gaps[record] & ~(np.int64(1) << key)
            total, people = 1.0, weights[record]
            fine = True
            column = codes[key]
            for other in range(n):
                if other == record or differ[other]:
                    continue
                apart = column[other] != 0 and column[other] != value
                if not apart:
                    counted = _counts_for(gaps[other], new, alpha, all_keys)
                    total += counted
                    people += counted * weights[other]
                more = _more(apart, old, new, gaps[other], alpha, all_keys)
                if more != 0.0 and not _holds(
                    sample[other] + more, population[other] + more * weights[record], least, limit
                ):
                    fine = False
                    break
            if not fine or not _holds(total, people, least, limit):
                continue
            for other in range(n):
                if other == record or differ[other]:
                    continue
                apart = column[other] != 0 and column[other] != value
                more = _more(apart, old, new, gaps[other], alpha, all_keys)
                sample[other] += more
                population[other] += more * weights[record]
            sample[record], population[record] = total, people
            gaps[record], codes[key, record] = new, value
            given += 1
    return given


@compiled
def _more(apart: bool, old: int, new: int, other: int, alpha: float, all_keys: int) -> float:
    """The increase of a record's weight for another one under new gaps."""
    after = 0.0 if apart else _counts_for(new, other, alpha, all_keys)
    return after - _counts_for(old, other, alpha, all_keys)
