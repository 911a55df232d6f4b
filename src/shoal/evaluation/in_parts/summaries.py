"""Summaries of columns and pairs of columns for tables read in parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Attribute, labels_of
from shoal.display import internal
from shoal.engines import TaskStage, Wrong, batch_of, error_of, first_of, packed, wrong_in
from shoal.errors import ShoalError
from shoal.evaluation.in_parts.counts import (
    FACTS,
    MOST_LABELS,
    SUMS,
    Aggregates,
    BatchReading,
    Counted,
    Side,
    Tally,
    added,
    gathered,
    label_blobs,
    text_blob,
)
from shoal.evaluation.pair import numbers_of, texts_of
from shoal.evaluation.utility import Distribution, DomainParts, Moments, Products
from shoal.io import Table
from shoal.numbers import Floats, Integers
from shoal.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa


# distinct numbers of a column counted individually; beyond that, the number of ranges they are counted in
MOST_VALUES = 1 << 20
_WHAT = "counting values"


@dataclass(frozen=True, slots=True)
class CountedColumn:
    """A column to be counted.

    Attributes:
        attribute: its declaration, if any.
        ordered: its values are numbers; otherwise texts.
        labels: texts are spelled as in the report, not as stored.
    """

    name: str
    attribute: Attribute | None
    ordered: bool
    labels: bool = False

    def texts(self, table: Table) -> Any:
        """The texts of a batch as an arrow array, missing ones null."""
        import pyarrow as pa

        if not self.labels:
            return texts_of(table, self.name)
        assert self.attribute is not None
        return pa.array(labels_of(table, self.attribute), pa.large_string())


@internal()
@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """Facts about a column from one pass, whatever its type.

    Attributes:
        n: number of values present.
        missing: number of missing values.
        mean, square: mean, and sum of squared deviations from it.
        low, high: smallest and largest value.
        whole: all values are integers.
        wrong: the first row that cannot be read, and why.
    """

    n: int = 0
    missing: int = 0
    mean: float = 0.0
    square: float = 0.0
    low: float | None = None
    high: float | None = None
    whole: bool = True
    wrong: Wrong | None = None

    @classmethod
    def of(cls, values: Floats) -> ColumnSummary:
        """The summary of numbers, with NaN for missing ones."""
        present = values[~np.isnan(values)]
        missing = int(values.size - present.size)
        if not present.size:
            return cls(missing=missing)
        mean = float(present.mean())
        return cls(
            int(present.size),
            missing,
            mean,
            float(np.sum((present - mean) ** 2)),
            float(present.min()),
            float(present.max()),
            bool(np.all(present == np.rint(present))),
        )

    def joined(self, other: ColumnSummary) -> ColumnSummary:
        """Merge the facts about two parts of a column.

        Reference:
            Chan, Golub and LeVeque (1979), for the squares.
        """
        n = self.n + other.n
        gap, share = other.mean - self.mean, other.n / max(n, 1)
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return ColumnSummary(
            n,
            self.missing + other.missing,
            self.mean + gap * share,
            self.square + other.square + gap * gap * self.n * share,
            min(lows, default=None),
            max(highs, default=None),
            self.whole and other.whole,
            first_of((self.wrong, other.wrong)),
        )

    @property
    def moments(self) -> Moments:
        if not self.n:
            return Moments(0, math.nan, math.nan)
        # rounding leaves a constant with a tiny variance
        variance = 0.0 if self.low == self.high else self.square / self.n
        return Moments(self.n, self.mean, variance)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A column of numbers, counted.

    Attributes:
        distribution: the distinct values; of a column with too many, the lower ends of ranges of values.
        exact: all distinct values are counted individually.
    """

    facts: ColumnSummary
    distribution: Distribution
    exact: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class TextCounts:
    """A column of texts, counted; None where there are too many distinct ones."""

    counts: Mapping[str, int] | None
    missing: int


Column = Numbers | TextCounts


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The columns of a table, counted.

    Attributes:
        n: number of participating rows.
    """

    n: int
    columns: Mapping[str, Column] = field(default_factory=dict)


def ordered_keys(values: Floats) -> Integers:
    """Numbers as integers in the same order, without loss.

    >>> keys = ordered_keys(np.array([-1.5, -0.0, 0.0, 2.0]))
    >>> (np.diff(keys) >= 0).all(), numbers_behind(keys).tolist()
    (np.True_, [-1.5, 0.0, 0.0, 2.0])
    """
    bits = (values + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


def numbers_behind(keys: Integers) -> Floats:
    """The numbers that `ordered_keys` encoded."""
    return np.where(keys < 0, keys ^ np.int64(0x7FFFFFFFFFFFFFFF), keys).view(np.float64)


def counted_values(
    batches: Iterator[pa.RecordBatch], reading: BatchReading, asked: Sequence[CountedColumn], shards: int
) -> Iterator[pa.RecordBatch]:
    """Moments of numbers, and counts of every value and every text."""
    facts = {one.name: ColumnSummary() for one in asked}
    tallies = {one.name: Tally(MOST_VALUES) for one in asked if one.ordered}
    texts: dict[str, dict[str, int] | None] = {one.name: {} for one in asked if not one.ordered}
    kept = 0
    for table, rows in _readable(batches, reading, facts):
        kept += rows.size
        for one in asked:
            try:
                if one.ordered:
                    values = numbers_of(table, one.name, one.attribute)
                    found = ColumnSummary.of(values)
                    tallies[one.name].add(ordered_keys(values[~np.isnan(values)]))
                else:
                    found = _counted_texts(one.texts(table), texts, one.name)
            except ShoalError as error:
                first = int(rows[0])
                found = ColumnSummary(wrong=wrong_in(error, first))
            facts[one.name] = facts[one.name].joined(found)
    told = {"kept": kept, "facts": {name: asdict(found) for name, found in facts.items()}}
    yield batch_of([text_blob(0, FACTS, told)])
    for number, one in enumerate(asked):
        if one.ordered:
            yield batch_of(list(tallies[one.name].blobs(number, shards)))
        else:
            yield batch_of([label_blobs(number, texts[one.name], shards)])


def _readable(
    batches: Iterator[pa.RecordBatch], reading: BatchReading, facts: dict[str, ColumnSummary]
) -> Iterator[tuple[Table, Integers]]:
    """The parts of batches; an unreadable value is recorded as a fact about the first column."""
    for batch in batches:
        try:
            yield from reading.parts(iter([batch]))
        except ShoalError as error:
            first = int(batch.column(batch.num_columns - 1)[0].as_py())
            name = next(iter(facts))
            wrong = ColumnSummary(wrong=wrong_in(error, first))
            facts[name] = facts[name].joined(wrong)


def _counted_texts(values: pa.Array, texts: dict[str, dict[str, int] | None], name: str) -> ColumnSummary:
    found = values.value_counts()
    so_far = texts[name]
    missing = int(values.null_count)
    if so_far is not None:
        pairs = zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True)
        for text, count in pairs:
            if text is not None:
                so_far[text] = so_far.get(text, 0) + count
        if len(so_far) > MOST_LABELS:
            texts[name] = None
    return ColumnSummary(n=len(values) - missing, missing=missing)


def sampled_values(
    batches: Iterator[pa.RecordBatch], reading: BatchReading, asked: Sequence[CountedColumn], stride: int
) -> Iterator[pa.RecordBatch]:
    """Values of every stride-th row, a public choice, for columns with too many distinct values."""
    for table, rows in reading.parts(batches):
        mine = np.flatnonzero(rows % stride == 0)
        if mine.size:
            few = table.rows(mine)
            found = [numbers_of(few, one.name, one.attribute) for one in asked]
            yield batch_of([(0, SUMS, packed(*found))])


def counted_ranges(
    batches: Iterator[pa.RecordBatch],
    reading: BatchReading,
    asked: Sequence[CountedColumn],
    ends: Sequence[Floats],
    shards: int,
) -> Iterator[pa.RecordBatch]:
    """Number of values in each range; `ends` are the lower ends of each column's ranges."""
    tallies = [np.zeros(lower.size, dtype=np.int64) for lower in ends]
    for table, _ in reading.parts(batches):
        for one, lower, counts in zip(asked, ends, tallies, strict=True):
            values = numbers_of(table, one.name, one.attribute)
            found = np.bincount(range_of(values[~np.isnan(values)], lower))
            counts[: found.size] += found
    yield batch_of(
        [
            (number % shards, number, packed(np.flatnonzero(counts), counts[counts > 0], shrink=True))
            for number, counts in enumerate(tallies)
        ]
    )


def range_of(values: Floats, lower: Floats) -> Integers:
    """The range of each value, given the ranges' lower ends."""
    return np.maximum(np.searchsorted(lower, values, side="right") - 1, 0).astype(np.int64)


def count_values(side: Side, asked: Sequence[CountedColumn], tell: Progress) -> Values:
    """Count the columns of a table: one pass, and two more where a column has too many distinct values.

    Raises:
        InputError: a value cannot be read as declared; the message names the row as in memory.
    """
    shards = side.runner.shards
    names = [one.name for one in asked]
    task = partial(counted_values, reading=side.reading, asked=tuple(asked), shards=shards)
    merge = TaskStage(partial(added, most=MOST_VALUES))
    found = gathered(side.collect(_WHAT, names, tell, TaskStage(task, shards), merge), MOST_VALUES)
    facts = {name: ColumnSummary() for name in names}
    for told in found.facts:
        for name, some in told["facts"].items():
            facts[name] = facts[name].joined(ColumnSummary(**some))
    for about in facts.values():
        if about.wrong is not None:
            raise error_of(*about.wrong[1:])
    columns: dict[str, Column] = {}
    many: list[CountedColumn] = []
    for number, one in enumerate(asked):
        if not one.ordered:
            columns[one.name] = TextCounts(found.labels.get(number, {}), facts[one.name].missing)
        elif (counted := found.counts.get(number, _none())) is None:
            many.append(one)
        else:
            keys, counts = counted
            columns[one.name] = Numbers(facts[one.name], Distribution(numbers_behind(keys), counts))
    if many:
        for one, distribution in zip(many, _by_ranges(side, many, facts, tell), strict=True):
            columns[one.name] = Numbers(facts[one.name], distribution, exact=False)
    return Values(sum(told["kept"] for told in found.facts), {name: columns[name] for name in names})


def _none() -> tuple[Integers, Integers]:
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


def _by_ranges(
    side: Side, asked: Sequence[CountedColumn], facts: Mapping[str, ColumnSummary], tell: Progress
) -> list[Distribution]:
    """Distributions of columns with too many distinct values, in ranges that hold about equally many records."""
    names, shards = [one.name for one in asked], side.runner.shards
    stride = max(1, side.runner.rows // MOST_VALUES)
    task = partial(sampled_values, reading=side.reading, asked=tuple(asked), stride=stride)
    sample = gathered(side.collect(_WHAT, names, tell, TaskStage(task)), MOST_VALUES).sums
    ends = []
    for number, one in enumerate(asked):
        some = np.unique(np.concatenate([arrays[number] for arrays in sample] or [np.empty(0)]))
        low = facts[one.name].low
        assert low is not None
        ends.append(np.unique(np.append(some[~np.isnan(some)], low)))
    count = partial(counted_ranges, reading=side.reading, asked=tuple(asked), ends=tuple(ends), shards=shards)
    merge = TaskStage(partial(added, most=2 * MOST_VALUES))
    found = gathered(side.collect(_WHAT, names, tell, TaskStage(count, shards), merge), 4 * MOST_VALUES)
    made = []
    for number, lower in enumerate(ends):
        counted = found.counts[number]
        assert counted is not None
        made.append(Distribution(lower[counted[0]], counted[1]))
    return made


# cells in use over all two-way tables
_MOST_CELLS = 1 << 24
_FEWEST_CELLS = 1 << 14
# categories of a column: the texts of both tables
MOST_ALONE = 2 * MOST_LABELS + 1


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Standardisation:
    """How to standardise the numbers of a column; all become 0 where there is no spread.

    Attributes:
        values, ranks: where ranks are standardised: the distinct values, and the standardised rank of each.
    """

    mean: float
    deviation: float
    values: Floats | None = None
    ranks: Floats | None = None

    @classmethod
    def of(cls, column: Numbers) -> Standardisation:
        moments = column.facts.moments
        return cls(moments.mean, math.sqrt(moments.variance) if moments.n else 0.0)

    @classmethod
    def of_ranks(cls, column: Numbers) -> Standardisation:
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
    """A column cut into categories: parts of a domain, or codes of texts, with `gone` for a missing value."""

    asked: CountedColumn
    parts: DomainParts | None = None
    codes: Mapping[str, int] | None = None
    size: int = 0
    gone: int = -1

    def of(self, table: Table) -> tuple[Integers, Floats | None]:
        """The category of every row, and the numbers behind the categories."""
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
class CountingPlan:
    """What is counted jointly over a table's columns.

    Attributes:
        cuts: the columns as categories.
        scales: of columns of quantities, by their place.
        ranks: of columns with an order, by their place.
        pairs: whether two-way tables are counted too.
    """

    cuts: tuple[Cut, ...]
    scales: Mapping[int, Standardisation]
    ranks: Mapping[int, Standardisation]
    pairs: bool = True

    @property
    def tables(self) -> list[tuple[int, ...]]:
        """The columns and pairs of columns counted, in the order of their numbers."""
        alone: list[tuple[int, ...]] = [(place,) for place in range(len(self.cuts))]
        return alone + (list(combinations(range(len(self.cuts)), 2)) if self.pairs else [])

    def most_of(self, places: Sequence[int]) -> int:
        """Limit on the cells in use: the categories of a single column are never too many."""
        return max(_FEWEST_CELLS, _MOST_CELLS // len(self.tables)) if len(places) > 1 else MOST_ALONE

    @property
    def most(self) -> int:
        return max((self.most_of(places) for places in self.tables), default=0)


def counted_together(
    batches: Iterator[pa.RecordBatch], reading: BatchReading, plan: CountingPlan, shards: int
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
    """Sums of products over the rows of a pair of columns, as in `Products`, and the ends of every column."""

    def __init__(self, size: int) -> None:
        self.count, self.total, self.squares, self.common = (np.zeros((size, size)) for _ in range(4))
        self.low, self.high = np.full(size, np.inf), np.full(size, -np.inf)

    def add(
        self,
        scales: Mapping[int, Standardisation],
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
class JointColumns:
    """The joint summaries of a table's columns.

    Attributes:
        counts: categories and their counts, by the columns' places: one or two; None where too many cells are in use.
        products: of columns of quantities.
        ranks: of ranks of columns with an order.
        complete: of quantities in rows without a missing value.
        pearson, gapless: correlations of quantities as computed by statistical offices, with gaps and in complete rows;
            None where they do not exist.
    """

    counts: Mapping[tuple[int, ...], Counted | None]
    products: Products
    ranks: Products
    pearson: Floats | None
    gapless: Floats | None


def count_together(side: Side, plan: CountingPlan, tell: Progress) -> JointColumns:
    """Count two-way tables and sum products of a table: one pass."""
    shards = side.runner.shards
    task = partial(counted_together, reading=side.reading, plan=plan, shards=shards)
    names = [cut.asked.name for cut in plan.cuts]
    stages = TaskStage(task, shards), TaskStage(partial(added, most=plan.most))
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
    return JointColumns(
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
    """The sums over all tasks, in task order."""
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
    """Correlations over common rows of columns standardised by all their values, dividing by n - 1."""
    n = np.diag(found.count)
    if not n.size or found.constant.any() or (found.count < 2).any():
        return None
    factor = np.sqrt((n - 1.0) / n)
    common = found.common - found.total * found.total.T / found.count
    return np.asarray(np.outer(factor, factor) * common / (found.count - 1.0))


def _gapless(sums: Sequence[Floats]) -> Floats | None:
    """Correlations over complete rows."""
    count, total, _, common, low, high = sums
    if not count.size or count[0, 0] < 2 or not (high > low).all():
        return None
    covariance = common - total * total.T / count
    spread = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / np.outer(spread, spread))
