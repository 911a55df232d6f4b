"""The values of every column, counted: batches come in, moments, distributions and labels of columns leave."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.columns.attribute import Attribute
from shoal.columns.column import labels_of
from shoal.display import internal
from shoal.errors import ShoalError
from shoal.evaluation.pair import numbers_of, texts_of
from shoal.evaluation.utility import Distribution, Moments
from shoal.io import Table
from shoal.progress import Progress
from shoal.release.engines.blobs import batch_of, packed
from shoal.release.engines.reading import Wrong, error_of, first_of, wrong_in
from shoal.release.engines.stages import Stage
from shoal.release.measuring.side import Reading, Side
from shoal.release.measuring.tally import (
    FACTS,
    MOST_LABELS,
    SUMS,
    Floats,
    Integers,
    Tally,
    added,
    gathered,
    label_blobs,
    text_blob,
)

if TYPE_CHECKING:
    import pyarrow as pa

# different numbers of a column that are counted one by one; of more, as many ranges between values that occur
MOST_VALUES = 1 << 20
_WHAT = "counting values"


@dataclass(frozen=True, slots=True)
class Asked:
    """A column whose values are counted.

    Attributes:
        attribute: what is declared about it, if anything is.
        ordered: its values are numbers; otherwise texts.
        labels: texts are spelled as the report shows them, and not as they are stored.
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
class Facts:
    """What one pass says about a column, whatever its values are.

    Attributes:
        n: values that are there.
        missing: rows without one.
        mean, square: mean, and sum of squared deviations from it.
        low, high: smallest and largest value.
        whole: all values are whole numbers.
        wrong: the first row that cannot be read, and what is wrong with it.
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
    def of(cls, values: Floats) -> Facts:
        """Of numbers with NaN for missing ones."""
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

    def joined(self, other: Facts) -> Facts:
        """Facts about two parts of a column together.

        Reference:
            Chan, Golub and LeVeque (1979), for the squares.
        """
        n = self.n + other.n
        gap, share = other.mean - self.mean, other.n / max(n, 1)
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return Facts(
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
        # rounding leaves a constant a little variance
        variance = 0.0 if self.low == self.high else self.square / self.n
        return Moments(self.n, self.mean, variance)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A column of numbers, counted.

    Attributes:
        distribution: the different values; of a column with too many, the lower ends of ranges of values.
        exact: all different values are there.
    """

    facts: Facts
    distribution: Distribution
    exact: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """A column of texts, counted; None where there are too many different ones."""

    counts: Mapping[str, int] | None
    missing: int


Column = Numbers | Names


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The columns of a table, counted.

    Attributes:
        n: rows that take part.
    """

    n: int
    columns: Mapping[str, Column] = field(default_factory=dict)


def ordered_keys(values: Floats) -> Integers:
    """Numbers as whole ones in the same order, none lost.

    >>> keys = ordered_keys(np.array([-1.5, -0.0, 0.0, 2.0]))
    >>> (np.diff(keys) >= 0).all(), numbers_behind(keys).tolist()
    (np.True_, [-1.5, 0.0, 0.0, 2.0])
    """
    bits = (values + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


def numbers_behind(keys: Integers) -> Floats:
    """The numbers of `ordered_keys`."""
    return np.where(keys < 0, keys ^ np.int64(0x7FFFFFFFFFFFFFFF), keys).view(np.float64)


def counted_values(
    batches: Iterator[pa.RecordBatch], reading: Reading, asked: Sequence[Asked], shards: int
) -> Iterator[pa.RecordBatch]:
    """Moments of numbers, and how often every value and every text occurs."""
    facts = {one.name: Facts() for one in asked}
    tallies = {one.name: Tally(MOST_VALUES) for one in asked if one.ordered}
    texts: dict[str, dict[str, int] | None] = {one.name: {} for one in asked if not one.ordered}
    kept = 0
    for table, rows in _readable(batches, reading, facts):
        kept += rows.size
        for one in asked:
            try:
                if one.ordered:
                    values = numbers_of(table, one.name, one.attribute)
                    found = Facts.of(values)
                    tallies[one.name].add(ordered_keys(values[~np.isnan(values)]))
                else:
                    found = _counted_texts(one.texts(table), texts, one.name)
            except ShoalError as error:
                first = int(rows[0])
                found = Facts(wrong=wrong_in(error, first))
            facts[one.name] = facts[one.name].joined(found)
    told = {"kept": kept, "facts": {name: asdict(found) for name, found in facts.items()}}
    yield batch_of([text_blob(0, FACTS, told)])
    for number, one in enumerate(asked):
        if one.ordered:
            yield batch_of(list(tallies[one.name].blobs(number, shards)))
        else:
            yield batch_of([label_blobs(number, texts[one.name], shards)])


def _readable(
    batches: Iterator[pa.RecordBatch], reading: Reading, facts: dict[str, Facts]
) -> Iterator[tuple[Table, Integers]]:
    """The parts of batches; what cannot be read as declared is a fact about the first column."""
    for batch in batches:
        try:
            yield from reading.parts(iter([batch]))
        except ShoalError as error:
            first = int(batch.column(batch.num_columns - 1)[0].as_py())
            name = next(iter(facts))
            wrong = Facts(wrong=wrong_in(error, first))
            facts[name] = facts[name].joined(wrong)


def _counted_texts(values: pa.Array, texts: dict[str, dict[str, int] | None], name: str) -> Facts:
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
    return Facts(n=len(values) - missing, missing=missing)


def sampled_values(
    batches: Iterator[pa.RecordBatch], reading: Reading, asked: Sequence[Asked], stride: int
) -> Iterator[pa.RecordBatch]:
    """Values of every stride-th row: a public choice, for columns with too many different values."""
    for table, rows in reading.parts(batches):
        mine = np.flatnonzero(rows % stride == 0)
        if mine.size:
            few = table.rows(mine)
            found = [numbers_of(few, one.name, one.attribute) for one in asked]
            yield batch_of([(0, SUMS, packed(*found))])


def counted_ranges(
    batches: Iterator[pa.RecordBatch],
    reading: Reading,
    asked: Sequence[Asked],
    ends: Sequence[Floats],
    shards: int,
) -> Iterator[pa.RecordBatch]:
    """How many values lie in each range; `ends` are the lower ends of each column's ranges."""
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
    """The range that each value lies in, by the ranges' lower ends."""
    return np.maximum(np.searchsorted(lower, values, side="right") - 1, 0).astype(np.int64)


def count_values(side: Side, asked: Sequence[Asked], tell: Progress) -> Values:
    """The columns of a table, counted: one pass, and two more where a column has too many different values.

    Raises:
        InputError: a value cannot be read as declared; the sentence names the row as in memory.
    """
    shards = side.runner.shards
    names = [one.name for one in asked]
    task = partial(counted_values, reading=side.reading, asked=tuple(asked), shards=shards)
    merge = Stage(partial(added, most=MOST_VALUES))
    found = gathered(side.collect(_WHAT, names, tell, Stage(task, shards), merge), MOST_VALUES)
    facts = {name: Facts() for name in names}
    for told in found.facts:
        for name, some in told["facts"].items():
            facts[name] = facts[name].joined(Facts(**some))
    for about in facts.values():
        if about.wrong is not None:
            raise error_of(*about.wrong[1:])
    columns: dict[str, Column] = {}
    many: list[Asked] = []
    for number, one in enumerate(asked):
        if not one.ordered:
            columns[one.name] = Names(found.labels.get(number, {}), facts[one.name].missing)
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
    side: Side, asked: Sequence[Asked], facts: Mapping[str, Facts], tell: Progress
) -> list[Distribution]:
    """Distributions of columns with too many different values, in ranges that hold about equally many records."""
    names, shards = [one.name for one in asked], side.runner.shards
    stride = max(1, side.runner.rows // MOST_VALUES)
    task = partial(sampled_values, reading=side.reading, asked=tuple(asked), stride=stride)
    sample = gathered(side.collect(_WHAT, names, tell, Stage(task)), MOST_VALUES).sums
    ends = []
    for number, one in enumerate(asked):
        some = np.unique(np.concatenate([arrays[number] for arrays in sample] or [np.empty(0)]))
        low = facts[one.name].low
        assert low is not None
        ends.append(np.unique(np.append(some[~np.isnan(some)], low)))
    count = partial(counted_ranges, reading=side.reading, asked=tuple(asked), ends=tuple(ends), shards=shards)
    merge = Stage(partial(added, most=2 * MOST_VALUES))
    found = gathered(side.collect(_WHAT, names, tell, Stage(count, shards), merge), 4 * MOST_VALUES)
    made = []
    for number, lower in enumerate(ends):
        counted = found.counts[number]
        assert counted is not None
        made.append(Distribution(lower[counted[0]], counted[1]))
    return made
