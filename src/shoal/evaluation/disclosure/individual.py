"""Individual risk: how often a record's keys occur comes in, the chance that it is found again leaves.

The intruder knows that the keys fit, and picks one of the F people of the population who share them. F is not known;
given the f of the sample it is modelled as negative binomial, and the risk is the mean of 1/F.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from shoal.evaluation.disclosure.keys import Codes, Floats
from shoal.evaluation.groups import row_groups

Form = Literal["approximate", "exact"]

# closer to 1 than this, the closed forms lose digits that the series keeps
_NEARLY_ALL = 1e-3
# from this f on, the last term added is below 1e-17 of the first: 1 / C(f + terms, terms)
_SERIES_FROM, _SERIES_TERMS = 20, 60
# records above this are shown as endangered, if they also stand out
HIGH_RISK = 0.1
_MAD_TO_SD = 1.4826


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
