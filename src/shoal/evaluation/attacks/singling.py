"""Singling out: predicates that isolate one person, and the rate at which attacks succeed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal._moved import renamed
from shoal.arguments import as_names, renamed_attributes
from shoal.columns import KIND_FACTS, Kind, stored_kind
from shoal.display import internal
from shoal.errors import InputError, OptionError, closest
from shoal.evaluation.learning import Interval, wilson
from shoal.io import Table, first_row
from shoal.partition import row_groups
from shoal.text import Message

# columns of a multivariate predicate
COLUMNS = 3
# candidates tried per predicate wanted, before the attacker gives up
TRIES = 100
BATCH = 1_000


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """The columns' meaning, and the distance of two values.

    Attributes:
        nominal: whether a column is nominal; two different values are at distance 1.
        widths: range of a numeric column over the original and the released table; differences are divided
            by it. 0 for a constant column, which is ignored.
    """

    names: tuple[str, ...]
    nominal: NDArray[np.bool_]
    widths: NDArray[np.float64]

    def part(self, columns: Sequence[int]) -> Space:
        """The same for a subset of the columns."""
        picked = np.asarray(columns, dtype=np.int64)
        return Space(tuple(self.names[j] for j in columns), self.nominal[picked], self.widths[picked])


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """The tables as matrices, columns contiguous; nominal values become integer codes common to all tables."""

    space: Space
    original: NDArray[np.float64]
    released: NDArray[np.float64]
    control: NDArray[np.float64] | None


def encode(
    original: Table, released: Table, control: Table | None, columns: str | Sequence[str] | None
) -> Encoded:
    """Encode the tables in one common space.

    Numbers, dates and times are numeric; text and Boolean values are nominal.

    Raises:
        InputError: no common column, an unknown one, a missing value, or different types under one name.
    """
    tables = {"original": original, "released": released}
    if control is not None:
        tables["control"] = control
    for which, table in tables.items():
        if table.n == 0:
            raise InputError("encode-table-no-rows", which=which)
    names = _common(tables, columns)
    kinds = [_common_kind(tables, name) for name in names]
    matrices = {
        which: np.empty((table.n, len(names)), dtype=np.float64, order="F") for which, table in tables.items()
    }
    for j, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        for which, values in _column(tables, name, kind).items():
            matrices[which][:, j] = values
    nominal = np.array([not KIND_FACTS[kind].ordered for kind in kinds])
    ends = [matrices[which] for which in ("original", "released")]
    highest = np.maximum(*(matrix.max(axis=0) for matrix in ends))
    lowest = np.minimum(*(matrix.min(axis=0) for matrix in ends))
    widths = np.where(nominal, 1.0, highest - lowest)
    return Encoded(
        Space(names, nominal, widths), matrices["original"], matrices["released"], matrices.get("control")
    )


def _common(tables: Mapping[str, Table], columns: str | Sequence[str] | None) -> tuple[str, ...]:
    original, released = tables["original"], tables["released"]
    if columns is None:
        names = tuple(name for name in original.names if name in released.names)
        if not names:
            raise InputError("no-common-column", original=original.names, released=released.names)
    else:
        names = tuple(dict.fromkeys(as_names(columns)))
        if not names:
            raise OptionError("columns-is-empty", option="columns")
    for which, table in tables.items():
        for name in names:
            if name not in table.names:
                hint = closest(name, table.names)
                raise InputError("there-no-column-table", column=name, which=which, hint=hint)
    return names


def _common_kind(tables: Mapping[str, Table], name: str) -> Kind:
    kinds = {which: stored_kind(table.dtype(name)) for which, table in tables.items()}
    for which, kind in kinds.items():
        if kind != kinds["original"]:
            raise InputError(
                "column-holds-original-table",
                column=name,
                cell=KIND_FACTS[kinds["original"]].cell,
                cell_2=KIND_FACTS[kind].cell,
                which=which,
            )
    return kinds["original"]


def _column(tables: Mapping[str, Table], name: str, kind: Kind) -> dict[str, NDArray[np.float64]]:
    """One column of every table as numbers, without missing values."""
    if not KIND_FACTS[kind].ordered:
        return _codes({which: _text(table, name, which) for which, table in tables.items()})
    out: dict[str, NDArray[np.float64]] = {}
    for which, table in tables.items():
        values = table.numeric(name) if KIND_FACTS[kind].measured else _moments(table.series(name))
        _refuse(~np.isfinite(values), name, which)
        out[which] = values
    return out


def _moments(series: nw.Series[Any]) -> NDArray[np.float64]:
    return np.asarray(series.dt.timestamp("ms").cast(nw.Float64()).to_numpy(), dtype=np.float64)


def _text(table: Table, name: str, which: str) -> Any:
    import pyarrow as pa

    series = table.series(name)
    _refuse(np.asarray(series.is_null().to_numpy(), dtype=bool), name, which)
    if series.dtype == nw.Boolean():
        # frame libraries write Boolean values differently
        return pa.array(
            np.where(np.asarray(series.to_numpy(), dtype=bool), "true", "false"), pa.large_string()
        )
    return pa.array([str(value) for value in series.to_list()], pa.large_string())


def _codes(texts: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    import pyarrow as pa

    codes = pa.concat_arrays(list(texts.values())).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    ends = np.cumsum([len(text) for text in texts.values()])
    return {
        which: part.astype(np.float64) for which, part in zip(texts, np.split(codes, ends[:-1]), strict=True)
    }


def _refuse(missing: NDArray[np.bool_], name: str, which: str) -> None:
    if missing.any():
        raise InputError(
            "column-table-missing-infinite-value-row", column=name, row=first_row(missing), which=which
        )


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Predicates:
    """Conjunctions of conditions low <= value <= high, one line each.

    Attributes:
        columns: positions of the columns, the same number in each predicate.
        low: lower limits, -inf for none.
        high: upper limits; equal to `low` for an equation.
    """

    columns: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.columns)

    def pick(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> Predicates:
        return Predicates(self.columns[which], self.low[which], self.high[which])

    def join(self, other: Predicates) -> Predicates:
        return Predicates(
            np.concatenate((self.columns, other.columns)),
            np.concatenate((self.low, other.low)),
            np.concatenate((self.high, other.high)),
        )

    def distinct(self) -> Predicates:
        """Each predicate once; the first of equal ones stays in its place."""
        lines = np.column_stack((self.columns, self.low, self.high))
        _, first = np.unique(lines, axis=0, return_index=True)
        return self.pick(np.sort(first))


def count_matches(
    values: NDArray[np.float64], predicates: Predicates, enough: int | None = None
) -> NDArray[np.int64]:
    """How many rows fulfil each predicate.

    Args:
        values: (rows, columns).
        enough: stop counting here; larger counts are not needed.

    Cost:
        O(n) for a predicate that few rows fulfil, less where counting stops early.

    >>> low, high = np.array([[2.0, -np.inf], [1.0, 5.0]]), np.array([[np.inf, 6.0], [1.0, 5.0]])
    >>> rows = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 6.0], [4.0, 7.0]])
    >>> count_matches(rows, Predicates(np.array([[0, 1], [0, 1]]), low, high)).tolist()
    [2, 1]
    """
    from shoal.evaluation._kernels import matching_rows as count

    counts = np.zeros(len(predicates), dtype=np.int64)
    count(
        np.asfortranarray(values, dtype=np.float64),
        predicates.columns,
        predicates.low,
        predicates.high,
        len(values) + 1 if enough is None else enough,
        counts,
    )
    return counts


def isolating(rows: NDArray[np.float64], predicates: Predicates) -> Predicates:
    """The predicates that exactly one row fulfils."""
    return predicates.pick(count_matches(rows, predicates, enough=2) == 1)


@internal()
@dataclass(frozen=True, slots=True)
class Rate:
    """Share of attempts that succeeded, 0 to 1.

    Attributes:
        interval: 95% Wilson interval; a single point where the rate was computed and not sampled.
        attempts: number of attempts; 0 where the rate was computed.
    """

    value: float
    interval: Interval
    attempts: int


@renamed_attributes(secret="sensitive")
@internal()
@dataclass(frozen=True, slots=True)
class AttackRisk:
    """One attack on one table.

    Attributes:
        attack: its name.
        known: what the attacker knows or uses.
        success: on the records that were released.
        baseline: by guessing at random.
        control: the same attack on records that were not released; None without a control group.
        excess: (success - control) / (1 - control), 0 for no risk and 1 for the largest, below 0 by chance;
            None without a control group or if the attack always succeeds on it.
        sensitive: the inferred column; None for an attack on identity.
    """

    attack: str
    known: Message
    success: Rate
    baseline: Rate
    control: Rate | None = None
    excess: float | None = None
    excess_interval: Interval | None = None
    sensitive: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = asdict(self)
        del found["sensitive"]
        return {**found, "known": str(self.known)}


def sampled(credits: NDArray[np.float64]) -> Rate:
    """The rate of attempts with the given credits, 0 to 1 each.

    >>> sampled(np.array([1.0, 0.0, 0.5, 0.5])).value
    0.5
    """
    value = float(credits.mean())
    return Rate(value, wilson(value, credits.size), int(credits.size))


def computed(value: float) -> Rate:
    """A rate known without sampling."""
    return Rate(value, (value, value), 0)


def attack_risk(
    attack: str,
    known: Message,
    success: Rate,
    baseline: Rate,
    control: Rate | None,
    sensitive: str | None = None,
) -> AttackRisk:
    """Combine the rates and compare them with the control group, if there is one."""
    if control is None or control.value >= 1.0:
        return AttackRisk(attack, known, success, baseline, control, sensitive=sensitive)
    value, interval = excess(success, control)
    return AttackRisk(attack, known, success, baseline, control, value, interval, sensitive)


def excess(success: Rate, control: Rate) -> tuple[float, Interval]:
    """Success above that of the control group, as a share of the possible gain.

    The limits combine the two Wilson intervals by the method of variance estimates recovery: from the point
    estimate, the square root of the sum of squares of what each limit alone would move it. Valid for
    independent samples; conservative when successes are positively correlated.

    Reference:
        Zou and Donner, Statistics in Medicine 27, 2008; Giomi et al., PoPETs 2023, for the excess itself.

    >>> success, control = sampled(np.repeat([1.0, 0.0], 50)), sampled(np.repeat([1.0, 0.0], [20, 80]))
    >>> value, (low, high) = excess(success, control)
    >>> round(value, 3), round(low, 2), round(high, 2)
    (0.375, 0.23, 0.5)
    """
    r, c = success.value, control.value
    value = _gain(r, c)
    # the excess grows with the success and falls with the control
    low = value - math.hypot(value - _gain(success.interval[0], c), value - _gain(r, control.interval[1]))
    high = value + math.hypot(_gain(success.interval[1], c) - value, _gain(r, control.interval[0]) - value)
    return value, (low, min(high, 1.0))


def _gain(success: float, control: float) -> float:
    # where the control group may always succeed, no gain is possible
    if control >= 1.0:
        return 0.0 if success >= 1.0 else -math.inf
    return (success - control) / (1.0 - control)


def distinct_rows(released: NDArray[np.float64]) -> NDArray[np.float64]:
    """The released table with each distinct row once."""
    return np.asfortranarray(released[row_groups(released.T).first])


def rare_values(
    rows: NDArray[np.float64], space: Space, attempts: int, rng: np.random.Generator
) -> Predicates:
    """The attacker looks for people with a unique value: "exactly one person earns 83,402".

    The attacker sees only the released table, takes values that one distinct row has and no other, and the
    ends of numeric columns if only one row reaches them, and claims that each isolates one person. Identical
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
    """The attacker combines attributes: "exactly one person in the North is 81 or older and pays at least 900 rent".

    The attacker takes a released row and three of its columns. A number becomes "as large or larger" if it
    lies above the median of the released column and "as small or smaller" if not; a nominal value must be equal. If no
    other distinct released row fulfils all three, the attacker claims that one person does.

    Args:
        rows: distinct released rows.
        attempts: number of predicates.

    Fewer predicates are returned if 100 times as many candidates did not yield enough.

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
    """The baseline: random conditions by somebody who knows the range of each column but no row.

    Random columns; for a number one of "=", "at least", "at most" with a value anywhere in the range (an integer
    if the column has only integers), for a nominal column any of its values.
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
    """Batches of row numbers and columns: all of them in random order, or a random sample up to the limit."""
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
    """Distinct columns in ascending order for each predicate."""
    return np.sort(rng.permuted(np.tile(np.arange(m), (size, 1)), axis=1)[:, :width], axis=1)


__getattr__ = renamed(__name__, Risk="AttackRisk")
