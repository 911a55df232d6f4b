"""Singling out: released rows come in, predicates that ought to isolate one person leave, and how many do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shoal.evaluation.attacks.encode import Space
from shoal.evaluation.attacks.predicates import Predicates, isolating
from shoal.evaluation.attacks.risk import Rate, sampled
from shoal.evaluation.groups import row_groups

# columns of a predicate on several columns
COLUMNS = 3
# candidates tried for each predicate wanted, before the attacker gives up
TRIES = 100
BATCH = 1_000


def distinct_rows(released: NDArray[np.float64]) -> NDArray[np.float64]:
    """The released table with each row once."""
    return np.asfortranarray(released[row_groups(released.T).first])


def rare_values(
    rows: NDArray[np.float64], space: Space, attempts: int, rng: np.random.Generator
) -> Predicates:
    """A journalist looks for a person who is alone with one property: "exactly one person earns 83,402".

    The attacker sees only the released table, takes values that one distinct row has and no other, and the
    ends of numeric columns if one row alone reaches them, and claims that each isolates one person. Identical
    rows count once: k copies of a row are one hint, and a table without unique rows is attacked as well.

    Args:
        rows: distinct released rows.
        attempts: the largest number of predicates.

    Reference:
        Cohen and Nissim, Towards formalizing the GDPR's notion of singling out, PNAS 2020; Giomi et al.,
        PoPETs 2023.

    >>> space = Space(("age",), np.array([False]), np.array([9.0]))
    >>> found = rare_values(np.array([[20.0], [25.0], [29.0]]), space, 99, np.random.default_rng(1))
    >>> sorted(zip(found.low[:, 0].tolist(), found.high[:, 0].tolist()))
    [(-inf, 20.0), (20.0, 20.0), (25.0, 25.0), (29.0, 29.0), (29.0, inf)]
    """
    columns, low, high = [], [], []
    for j, nominal in enumerate(space.nominal):
        values, counts = np.unique(rows[:, j], return_counts=True)
        alone = values[counts == 1]
        ends = [] if nominal else [(-math.inf, values[0])] * bool(counts[0] == 1)
        ends += [] if nominal else [(values[-1], math.inf)] * bool(counts[-1] == 1)
        low += [*alone, *(end[0] for end in ends)]
        high += [*alone, *(end[1] for end in ends)]
        columns += [j] * (alone.size + len(ends))
    every = Predicates(
        np.array(columns, dtype=np.int64).reshape(-1, 1),
        np.array(low, dtype=np.float64).reshape(-1, 1),
        np.array(high, dtype=np.float64).reshape(-1, 1),
    )
    return every.pick(rng.permutation(len(every))[:attempts])


def corners(rows: NDArray[np.float64], space: Space, attempts: int, rng: np.random.Generator) -> Predicates:
    """A journalist combines properties: "exactly one person in the North is 81 or older and pays at least 900 rent".

    The attacker takes a released row and three of its columns. A number becomes "as large or larger" if it
    lies above the middle of the released column and "as small or smaller" if not; a name must be equal. If no
    other distinct released row fulfils all three, the attacker claims that one person does.

    Args:
        rows: distinct released rows.
        attempts: number of predicates.

    Fewer predicates than asked for leave if 100 times as many candidates did not yield enough.

    Reference:
        Giomi et al., A unified framework for quantifying privacy risk in synthetic data, PoPETs 2023.
    """
    medians = np.median(rows, axis=0)
    by_column = np.asfortranarray(rows)
    width = min(COLUMNS, rows.shape[1])
    found = Predicates(np.empty((0, width), dtype=np.int64), np.empty((0, width)), np.empty((0, width)))
    for row, columns in _candidates(rows, width, TRIES * attempts, rng):
        values = rows[row[:, None], columns]
        above, nominal = values > medians[columns], space.nominal[columns]
        low = np.where(above | nominal, values, -math.inf)
        high = np.where(above & ~nominal, math.inf, values)
        found = found.join(isolating(by_column, Predicates(columns, low, high))).distinct()
        if len(found) >= attempts:
            break
    return found.pick(np.arange(min(attempts, len(found))))


def random_predicates(
    released: NDArray[np.float64], space: Space, width: int, attempts: int, rng: np.random.Generator
) -> Predicates:
    """The baseline: conditions by somebody who knows the range of each column and no row.

    Random columns; for a number one of "=", "at least", "at most" with a value anywhere in the range (a whole
    number if the column has only those), for a name any of the names.
    """
    columns = _some_columns(released.shape[1], width, attempts, rng)
    values = np.empty(columns.shape)
    for j, nominal in enumerate(space.nominal):
        here = columns == j
        present = np.unique(released[:, j])
        if nominal:
            values[here] = rng.choice(present, int(here.sum()))
        elif np.all(present == np.floor(present)):
            values[here] = np.floor(rng.uniform(present[0], present[-1] + 1.0, int(here.sum())))
        else:
            values[here] = rng.uniform(present[0], present[-1], int(here.sum()))
    kind = np.where(space.nominal[columns], 0, rng.integers(3, size=columns.shape))
    return Predicates(columns, np.where(kind == 2, -math.inf, values), np.where(kind == 1, math.inf, values))


def isolation_rate(counts: NDArray[np.int64]) -> Rate:
    """Share of predicates fulfilled by exactly one record."""
    return sampled((counts == 1).astype(np.float64))


def control_rate(counts: NDArray[np.int64], rows: int, wanted: int) -> Rate:
    """Share of predicates that would isolate one record among `wanted` records like those of the control group.

    The chance to isolate depends on the number of records. A larger control group is thinned out exactly: the
    chance that one of the `counts` records that fulfil the predicate, and no other, is among `wanted` drawn
    from it. A smaller one is extrapolated, under the assumption that the share of people who fulfil a
    predicate is spread evenly between 0 and some limit, which is fitted to the rates at full and half size.

    Reference:
        Giomi et al., PoPETs 2023, for the assumption.

    >>> control_rate(np.array([1, 2, 0, 1]), 100, 100).value
    0.5
    >>> round(control_rate(np.array([1, 1]), 100, 50).value, 3)
    0.5
    """
    if wanted <= rows:
        return sampled(np.array([_alone(int(count), rows, wanted) for count in counts]))
    rate = isolation_rate(counts)
    half = float(np.mean([_alone(int(count), rows, rows // 2) for count in counts]))
    growth = _growth(half / rate.value, rows, wanted) if rate.value > 0 else wanted / rows
    low, high = (min(1.0, growth * limit) for limit in rate.interval)
    return Rate(min(1.0, growth * rate.value), (low, high), rate.attempts)


def _alone(count: int, rows: int, drawn: int) -> float:
    """Chance that exactly one of `count` marked rows is among `drawn` of `rows` rows."""
    if count == 0 or rows - count < drawn - 1 or drawn == 0:
        return 0.0
    return count * math.exp(_log_choose(rows - count, drawn - 1) - _log_choose(rows, drawn))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _growth(half_to_full: float, rows: int, wanted: int) -> float:
    """Factor of the isolation rate from `rows` to `wanted` records, from the rate at half of the rows."""

    def ratio(limit: float) -> float:
        return _isolated(rows // 2, limit) / _isolated(rows, limit)

    low, high = 1e-9 / rows, 1.0
    if half_to_full <= ratio(low):
        return wanted / rows
    if half_to_full >= ratio(high):
        return (rows + 1) / (wanted + 1)
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if ratio(middle) < half_to_full else (low, middle)
    return _isolated(wanted, low) / _isolated(rows, low)


def _isolated(n: int, limit: float) -> float:
    """Integral of n w (1-w)^(n-1) over w from 0 to the limit, without cancellation for small limits."""
    if n * limit < 1e-3:
        return n * limit * limit / 2.0
    return (1.0 - (n * limit + 1.0) * math.exp(n * math.log1p(-min(limit, 1.0 - 1e-15)))) / (n + 1)


def _candidates(
    rows: NDArray[np.float64], width: int, limit: int, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Batches of row numbers and columns: all there are in random order, or up to the limit at random."""
    n, m = rows.shape
    every = n * math.comb(m, width)
    if every <= limit:
        choices = np.array(list(itertools.combinations(range(m), width)), dtype=np.int64)
        order = rng.permutation(every)
        for start in range(0, every, BATCH):
            batch = order[start : start + BATCH]
            yield batch % n, choices[batch // n]
        return
    for _ in range(max(1, limit // BATCH)):
        yield rng.integers(n, size=BATCH), _some_columns(m, width, BATCH, rng)


def _some_columns(m: int, width: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Different columns in ascending order for each predicate."""
    return np.sort(rng.permuted(np.tile(np.arange(m), (size, 1)), axis=1)[:, :width], axis=1)
