"""Record linkage of mixed tables: columns of matching rows come in, how many records are linked leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.evaluation.columns import Codes, Column, Nominal, Ordered
from shoal.evaluation.groups import row_groups
from shoal.evaluation.interval import wilson
from shoal.evaluation.linkage import TIE_ULPS, Linkage, tie_width

# comparisons of a row with a record that fit into a few seconds; beyond them rows are sampled
MOST_COMPARISONS = 400_000_000
LEAST_ROWS = 1_000
# entries of the distance tables in memory at a time
_TABLE_ENTRIES = 4_000_000
# which rows are looked at is no secret, and the same call should give the same number
_SAMPLE_SEED = 20170901


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Records:
    """The distinct original records, one line each.

    Attributes:
        codes: place of each record's value among `values`, per nominal attribute.
        values: the different original codes of each nominal attribute.
        numbers: numeric attributes divided by their widths.
        weights: how many records each distinct one stands for.
        of_row: the distinct record that each row came from.
    """

    codes: NDArray[np.int32]
    values: list[Codes]
    numbers: NDArray[np.float64]
    weights: Codes
    of_row: Codes


def mixed_linkage(columns: Sequence[Column], comparisons: int = MOST_COMPARISONS) -> Linkage | None:
    """The intruder holds the original records and links released rows to the nearest of them.

    The distance is that of Eq. 6.7: every attribute's difference, numeric or semantic, divided by the width of its
    domain, and Euclidean then. Rows with a missing number do not take part; a missing name is a value of its own.
    None if no row is left.

    Args:
        columns: of matching rows.
        comparisons: of rows with distinct records; a random sample of rows is linked if all would take more.

    Cost:
        Rows linked times distinct records at most; a row is settled by the first record that is nearer than its own.

    Reference:
        The thesis, section 6.4.2 and Eq. 6.7.

    >>> job = Nominal("job", np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([0, 0, 1]), size=2)
    >>> round(mixed_linkage([job]).percent, 4)
    50.0
    """
    nominal = [column for column in columns if isinstance(column, Nominal) and column.width > 0]
    ordered = [column for column in columns if isinstance(column, Ordered) and column.width > 0]
    complete = np.ones(columns[0].before.size, dtype=bool)
    for column in columns:
        if isinstance(column, Ordered):
            complete &= ~np.isnan(column.before) & ~np.isnan(column.after)
    rows = np.flatnonzero(complete)
    if rows.size == 0:
        return None
    # attributes with many values tell most records apart: the scan looks at them first
    nominal.sort(key=lambda column: -np.count_nonzero(np.bincount(column.before + 1)))
    if not nominal and not ordered:
        credits = np.full(rows.size, 1.0 / rows.size)
    else:
        records = _records(nominal, ordered, rows)
        picked = _sample(rows.size, records.weights.size, comparisons)
        credits = _credits(nominal, ordered, rows, picked, records)
    mean = float(credits.mean())
    low, high = wilson(mean, credits.size)
    return Linkage(100.0 * mean, (100.0 * low, 100.0 * high), 100.0 / rows.size, rows.size, credits.size)


def _records(nominal: Sequence[Nominal], ordered: Sequence[Ordered], rows: Codes) -> _Records:
    coded = [np.unique(column.before[rows], return_inverse=True) for column in nominal]
    numbers = [column.before[rows] for column in ordered]
    groups = row_groups([*(codes.astype(np.int64) for _, codes in coded), *numbers])
    # neighbours in the file are often alike: a random order finds a nearer record sooner
    order = np.random.default_rng(_SAMPLE_SEED).permutation(groups.first.size)
    first = groups.first[order]
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    return _Records(
        codes=_side_by_side([codes[first] for _, codes in coded], first.size).astype(np.int32),
        values=[values for values, _ in coded],
        numbers=_side_by_side(
            [values[first] / column.width for values, column in zip(numbers, ordered, strict=True)],
            first.size,
        ),
        weights=groups.sizes[order],
        of_row=place[groups.labels],
    )


def _sample(rows: int, records: int, comparisons: int) -> Codes:
    """All rows, or as many of them, chosen at random, as the comparisons allow."""
    most = max(LEAST_ROWS, comparisons // records)
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(_SAMPLE_SEED).choice(rows, most, replace=False)).astype(np.int64)


def _credits(
    nominal: Sequence[Nominal], ordered: Sequence[Ordered], rows: Codes, picked: Codes, records: _Records
) -> NDArray[np.float64]:
    from shoal.evaluation._linkage_kernel import scan

    chosen = rows[picked]
    slack = np.full(chosen.size, TIE_ULPS * np.finfo(np.float64).eps * len(nominal))
    ours = _side_by_side([column.after[chosen] / column.width for column in ordered], chosen.size)
    slack += tie_width(records.numbers, ours, np.ones(len(ordered)))
    longest = max((values.size for values in records.values), default=1)
    at_once = max(1, _TABLE_ENTRIES // longest)
    parts: list[NDArray[np.float64]] = []
    for start in range(0, chosen.size, at_once):
        block = slice(start, start + at_once)
        lines: list[Codes] = []
        tables: list[NDArray[np.float64]] = []
        begin = 0
        for column, values in zip(nominal, records.values, strict=True):
            found, line = np.unique(column.after[chosen[block]], return_inverse=True)
            gaps = column.distances(found[:, np.newaxis], values) / column.width
            lines.append(begin + line.astype(np.int64) * values.size)
            tables.append((gaps * gaps).ravel())
            begin += gaps.size
        parts.append(
            scan(
                np.concatenate(tables) if tables else np.empty(0),
                _side_by_side(lines, ours[block].shape[0]).astype(np.int64),
                records.codes,
                ours[block],
                records.numbers,
                records.weights,
                records.of_row[picked[block]],
                slack[block],
            )
        )
    return np.concatenate(parts)


def _side_by_side(columns: Sequence[NDArray[Any]], rows: int) -> NDArray[Any]:
    """One line per row, contiguous; also without any column."""
    return np.column_stack(columns) if columns else np.empty((rows, 0))
