"""What is learned from: a pair of tables comes in, number matrices for a learner leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns.column import numbers
from shoal.display import internal
from shoal.errors import InputError
from shoal.evaluation.pair import Pair
from shoal.io import Table

_MOST_LABELS = 50
Columns = list[NDArray[np.float64]]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The same attributes of both tables, missing values as NaN.

    Attributes:
        names: the columns that are used; a column of text has one 0/1 column for each label of the original.
        before: of the original rows.
        after: of the released rows, in the order of `before` if the pair is matched.
    """

    names: tuple[str, ...]
    before: NDArray[np.float64]
    after: NDArray[np.float64]


def make_features(pair: Pair, target: str, columns: Sequence[str] | None) -> Features:
    """The released columns beside the target, as numbers.

    Raises:
        InputError: no released column can be used.
    """
    names, before, after = [], [], []
    for name in pair.released if columns is None else columns:
        found = None if name == target or name not in pair.before.names else _both(pair, name)
        if found is not None:
            names.append(name)
            before += found[0]
            after += found[1]
    if not names:
        raise InputError("no-released-column-beside-target-can", target=target)
    return Features(tuple(names), np.column_stack(before), np.column_stack(after))


def _both(pair: Pair, name: str) -> tuple[Columns, Columns] | None:
    attribute = pair.attributes.get(name)
    if attribute is not None and (attribute.kind_facts.ordered and not attribute.kind_facts.measured):
        after = pair.after.numeric(name) if pair.matched else numbers(pair.after, attribute)
        return [_finite(numbers(pair.before, attribute))], [_finite(after)]
    tables = (pair.before, pair.after)
    if all(table.is_numeric(name) for table in tables):
        return [_finite(pair.before.numeric(name))], [_finite(pair.after.numeric(name))]
    if all(table.dtype(name).is_temporal() for table in tables):
        return [_moments(pair.before, name)], [_moments(pair.after, name)]
    if any(table.dtype(name).is_numeric() or table.dtype(name).is_temporal() for table in tables):
        return None
    return _indicators(pair, name)


def _indicators(pair: Pair, name: str) -> tuple[Columns, Columns] | None:
    """One 0/1 column for each label of the original; None for a column with too many, such as a name."""
    before, after = (table.series(name).to_list() for table in (pair.before, pair.after))
    labels = sorted({str(value) for value in before if value is not None})
    if not 1 < len(labels) <= _MOST_LABELS:
        return None
    return _one_hot(before, labels), _one_hot(after, labels)


def _one_hot(values: list[Any], labels: list[str]) -> Columns:
    texts = np.array([str(value) for value in values], dtype=object)
    return [(texts == label).astype(np.float64) for label in labels]


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Infinite values count as missing."""
    return np.where(np.isfinite(values), values, np.nan)


def _moments(table: Table, name: str) -> NDArray[np.float64]:
    series = table.series(name).cast(nw.Datetime("ms")).dt.timestamp("ms")
    return np.asarray(series.cast(nw.Float64()).to_numpy(), dtype=np.float64)
