"""Columns together: batches come in, two-way tables and the products that correlations are made from leave."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.evaluation.pair import numbers_of
from shoal.evaluation.utility import Parts, Products
from shoal.io import Table
from shoal.progress import Progress
from shoal.release.engines.blobs import batch_of, packed
from shoal.release.engines.stages import Stage
from shoal.release.measuring.side import Reading, Side
from shoal.release.measuring.tally import (
    MOST_LABELS,
    SUMS,
    Aggregates,
    Counted,
    Floats,
    Integers,
    Tally,
    added,
    gathered,
)
from shoal.release.measuring.values import Asked, Numbers, range_of

if TYPE_CHECKING:
    import pyarrow as pa

# cells in use of all two-way tables together
_MOST_CELLS = 1 << 24
_FEWEST_CELLS = 1 << 14
# categories of a column: the texts of both tables
MOST_ALONE = 2 * MOST_LABELS + 1


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """Numbers of a column as standardised ones; all of them 0 where there is no spread.

    Attributes:
        values, ranks: where ranks are standardised: the different values, and the standardised rank of each.
    """

    mean: float
    deviation: float
    values: Floats | None = None
    ranks: Floats | None = None

    @classmethod
    def of(cls, column: Numbers) -> Scale:
        moments = column.facts.moments
        return cls(moments.mean, math.sqrt(moments.variance) if moments.n else 0.0)

    @classmethod
    def of_ranks(cls, column: Numbers) -> Scale:
        found = column.distribution
        n = found.n
        if found.values.size < 2:
            return cls(0.0, 0.0, found.values, np.zeros(found.values.size))
        ranks = found.ranks() - (n + 1) / 2
        deviation = math.sqrt(float(np.sum(found.counts * ranks * ranks)) / n)
        return cls((n + 1) / 2, deviation, found.values, ranks / deviation)

    @property
    def constant(self) -> bool:
        return not self.deviation > 0

    def __call__(self, values: Floats) -> Floats:
        """Standardised numbers; 0 for a missing one."""
        there = ~np.isnan(values)
        out = np.zeros(values.size)
        if self.constant:
            return out
        if self.values is None or self.ranks is None:
            out[there] = (values[there] - self.mean) / self.deviation
        else:
            out[there] = self.ranks[range_of(values[there], self.values)]
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A column as categories: parts of a domain, or codes of texts, `gone` for a missing one."""

    asked: Asked
    parts: Parts | None = None
    codes: Mapping[str, int] | None = None
    size: int = 0
    gone: int = -1

    def of(self, table: Table) -> tuple[Integers, Floats | None]:
        """Category of every row, and the numbers they were made of."""
        if self.parts is not None:
            values = numbers_of(table, self.asked.name, self.asked.attribute)
            return self.parts(values), values
        assert self.codes is not None
        encoded = self.asked.texts(table).dictionary_encode()
        places = np.array(
            [*(self.codes[text] for text in encoded.dictionary.to_pylist()), self.gone], dtype=np.int64
        )
        which = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
        return places[which] + 1, None

    @property
    def cells(self) -> int:
        return self.size if self.parts is None else self.parts.size


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is counted of a table's columns together.

    Attributes:
        cuts: the columns as categories.
        scales: of columns of quantities, by their place.
        ranks: of columns with an order, by their place.
        pairs: two-way tables are counted, too.
    """

    cuts: tuple[Cut, ...]
    scales: Mapping[int, Scale]
    ranks: Mapping[int, Scale]
    pairs: bool = True

    @property
    def tables(self) -> list[tuple[int, ...]]:
        """Columns and pairs of them that are counted, in the order of their numbers."""
        alone: list[tuple[int, ...]] = [(place,) for place in range(len(self.cuts))]
        return alone + (list(combinations(range(len(self.cuts)), 2)) if self.pairs else [])

    def most_of(self, places: Sequence[int]) -> int:
        """Cells that may be in use: categories of a column alone are never too many."""
        return max(_FEWEST_CELLS, _MOST_CELLS // len(self.tables)) if len(places) > 1 else MOST_ALONE

    @property
    def most(self) -> int:
        return max((self.most_of(places) for places in self.tables), default=0)


def counted_together(
    batches: Iterator[pa.RecordBatch], reading: Reading, plan: Plan, shards: int
) -> Iterator[pa.RecordBatch]:
    """Counts of categories, alone and in pairs, and sums of products of standardised numbers and ranks."""
    tables = plan.tables
    tallies = [Tally(plan.most, math.prod(plan.cuts[place].cells for place in places)) for places in tables]
    sums = [_Sums(len(plan.scales)), _Sums(len(plan.ranks)), _Sums(len(plan.scales))]
    for table, _ in reading.parts(batches):
        found = [cut.of(table) for cut in plan.cuts]
        for places, tally in zip(tables, tallies, strict=True):
            if len(places) == 1:
                tally.add(found[places[0]][0])
            else:
                first, second = places
                tally.add(found[first][0] * plan.cuts[second].cells + found[second][0])
        for scales, total in ((plan.scales, sums[0]), (plan.ranks, sums[1])):
            total.add(scales, found)
        sums[2].add(plan.scales, found, complete=True)
    yield batch_of([(0, SUMS, packed(*(array for total in sums for array in total.arrays())))])
    for number, tally in enumerate(tallies):
        yield batch_of(list(tally.blobs(number, shards)))


class _Sums:
    """Sums of products over the rows of a pair of columns, as `Products` has them, and the ends of every column."""

    def __init__(self, size: int) -> None:
        self.count, self.total, self.squares, self.common = (np.zeros((size, size)) for _ in range(4))
        self.low, self.high = np.full(size, np.inf), np.full(size, -np.inf)

    def add(
        self,
        scales: Mapping[int, Scale],
        found: Sequence[tuple[Integers, Floats | None]],
        complete: bool = False,
    ) -> None:
        if not scales:
            return
        columns = [values for place in scales if (values := found[place][1]) is not None]
        there = np.column_stack([~np.isnan(values) for values in columns])
        standard = np.column_stack(
            [scale(values) for scale, values in zip(scales.values(), columns, strict=True)]
        )
        if complete:
            whole = there.all(axis=1)
            there, standard = there[whole], standard[whole]
            if not there.size:
                return
            self.low = np.minimum(self.low, standard.min(axis=0))
            self.high = np.maximum(self.high, standard.max(axis=0))
        mask = there.astype(np.float64)
        self.count += mask.T @ mask
        self.total += standard.T @ mask
        self.squares += (standard * standard).T @ mask
        self.common += standard.T @ standard

    def arrays(self) -> list[NDArray[np.float64]]:
        return [
            array.ravel()
            for array in (self.count, self.total, self.squares, self.common, self.low, self.high)
        ]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """Columns of a table together.

    Attributes:
        counts: categories and their counts, by the columns' places: one or two; None where too many cells are in use.
        products: of columns of quantities.
        ranks: of ranks of columns with an order.
        complete: of quantities in rows without a gap.
        pearson, gapless: correlations of quantities as statistical offices take them, with gaps and in rows without;
            None where they do not exist.
    """

    counts: Mapping[tuple[int, ...], Counted | None]
    products: Products
    ranks: Products
    pearson: Floats | None
    gapless: Floats | None


def count_together(side: Side, plan: Plan, tell: Progress) -> Together:
    """Two-way tables and products of a table: one pass."""
    shards = side.runner.shards
    task = partial(counted_together, reading=side.reading, plan=plan, shards=shards)
    names = [cut.asked.name for cut in plan.cuts]
    stages = Stage(task, shards), Stage(partial(added, most=plan.most))
    found = gathered(side.collect("counting pairs of columns", names, tell, *stages), plan.most)
    tables = plan.tables
    empty = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    sums = _summed(found, len(plan.scales), len(plan.ranks))
    constants = [
        np.array([scale.constant for scale in scales.values()], dtype=np.bool_)
        for scales in (plan.scales, plan.ranks)
    ]
    products, of_ranks = (
        Products(count, total, squares, common, constant)
        for (count, total, squares, common, *_), constant in zip(sums[:2], constants, strict=True)
    )
    return Together(
        {
            places: _few(found.counts.get(number, empty), plan.most_of(places))
            for number, places in enumerate(tables)
        },
        products,
        of_ranks,
        _pearson(products),
        _gapless(sums[2]),
    )


def _few(counted: Counted | None, most: int) -> Counted | None:
    return None if counted is None or counted[0].size > most else counted


def _summed(found: Aggregates, quantities: int, ordered: int) -> list[list[Floats]]:
    """The sums of all tasks, in the order of tasks."""
    sizes = (quantities, ordered, quantities)
    total: list[list[Floats]] = []
    for number, size in enumerate(sizes):
        arrays = [task[6 * number : 6 * number + 6] for task in found.sums]
        added_up = [
            np.sum([array[place] for array in arrays], axis=0).reshape(size, size) for place in range(4)
        ]
        total.append(
            [
                *added_up,
                np.min([array[4] for array in arrays], axis=0),
                np.max([array[5] for array in arrays], axis=0),
            ]
        )
    return total


def _pearson(found: Products) -> Floats | None:
    """Correlations over common rows of columns that are standardised by all their values, dividing by n - 1."""
    n = np.diag(found.count)
    if not n.size or found.constant.any() or (found.count < 2).any():
        return None
    factor = np.sqrt((n - 1.0) / n)
    common = found.common - found.total * found.total.T / found.count
    return np.asarray(np.outer(factor, factor) * common / (found.count - 1.0))


def _gapless(sums: Sequence[Floats]) -> Floats | None:
    """Correlations in rows without a gap."""
    count, total, _, common, low, high = sums
    if not count.size or count[0, 0] < 2 or not (high > low).all():
        return None
    covariance = common - total * total.T / count
    spread = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / np.outer(spread, spread))
