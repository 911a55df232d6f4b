"""Raked weights: a released table and public margins come in, the table with a weight for each row leaves.

The weights follow from the released rows and from totals that everybody knows: post-processing, which no claim is
weakened by. Rows that are alike in the columns of the margins have the same weight, so it tells nothing about a row
that these columns do not tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns.column import texts
from shoal.errors import OptionError
from shoal.io import read
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns.schema import Margin, Schema

# relative difference from a margin that counts as none, and how often the margins are gone through
_CLOSE = 1e-10
_ROUNDS = 1_000


def rake(
    codes: Sequence[NDArray[np.int64]], totals: Sequence[NDArray[np.float64]], rows: int
) -> tuple[NDArray[np.float64], float]:
    """Weights whose sums by the values of each column are the given totals (iterative proportional fitting).

    Args:
        codes: for each margin, the place of each row's value among its totals; -1 for a value that has none.
        totals: the totals of each margin.
        rows: number of rows; all weights begin alike.

    Returns:
        The weights, and the largest relative difference that is left from a total that some row can help to reach.

    Reference:
        Deming and Stephan (1940), Annals of Mathematical Statistics 11(4).

    >>> weights, left = rake([np.array([0, 0, 1])], [np.array([10.0, 30.0])], 3)
    >>> weights.tolist(), left
    ([5.0, 5.0, 30.0], 0.0)
    """
    weights = np.full(rows, float(totals[0].sum()) / max(rows, 1))
    left = np.inf
    for _ in range(_ROUNDS):
        left = 0.0
        for which, wanted in zip(codes, totals, strict=True):
            sums = np.bincount(which + 1, weights=weights, minlength=wanted.size + 1)[1:]
            factors = np.divide(wanted, sums, out=np.ones_like(wanted), where=sums > 0)
            left = max(left, float(np.abs(1 / factors - 1).max(initial=0.0)))
            weights = weights * np.append(factors, 1.0)[which]
        if left <= _CLOSE:
            break
    return weights, left


def check_raking(schema: Schema | None, columns: Sequence[str]) -> None:
    """Refuse, before anything is spent, margins of columns that are not released."""
    assert schema is not None
    assert schema.weight is not None
    if schema.weight.name in columns:
        raise OptionError("column-released-already", column=schema.weight.name)
    for margin in schema.margins:
        if margin.column not in columns:
            raise OptionError(
                "weight-raked-margin-not-released", column=schema.weight.name, margin=margin.column
            )


def with_raked_weight(frame: Any, schema: Schema | None) -> tuple[Any, tuple[Message, ...]]:
    """The released table with its raked weight as last column, and notes about totals that could not be reached.

    Raises:
        OptionError: a column of a margin is in another table.
    """
    assert schema is not None
    assert schema.weight is not None
    table = read(frame)
    margins = schema.margins
    for margin in margins:
        if margin.column not in table.names:
            raise OptionError("margin-cannot-used", column=margin.column)
    codes = [_codes(table, margin) for margin in margins]
    totals = [np.array([float(total) for _, total in margin.totals]) for margin in margins]
    weights, left = rake(codes, totals, table.n)
    notes = []
    for margin, which in zip(margins, codes, strict=True):
        found = set(which.tolist())
        gone = [name for place, (name, _) in enumerate(margin.totals) if place not in found]
        if gone:
            notes.append(Message.of("total-not-reached", column=margin.column, values=gone))
        if -1 in found:
            notes.append(Message.of("value-without-total", column=margin.column))
    if left > 1e-6:
        notes.append(Message.of("raking-unsettled", percent=100 * left))
    column = nw.new_series(schema.weight.name, weights, backend=table.frame.implementation)
    native = table.frame.to_native()
    if table.frame.implementation.is_pandas_like():
        return native.assign(**{schema.weight.name: weights}), tuple(notes)
    return nw.from_native(native, eager_only=True).with_columns(column).to_native(), tuple(notes)


def _codes(table: Any, margin: Margin) -> NDArray[np.int64]:
    found, which = texts(table, margin.column)
    places = {name: place for place, (name, _) in enumerate(margin.totals)}
    known = np.array([*(places.get(text, -1) for text in found), -1], dtype=np.int64)
    coded: NDArray[np.int64] = known[which]
    return coded
