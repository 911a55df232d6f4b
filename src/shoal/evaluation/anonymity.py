"""The k a table actually has: a table comes in, the sizes of its groups of identical rows leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.evaluation.groups import row_groups
from shoal.io import Table


@dataclass(frozen=True, slots=True)
class ActualK:
    """Groups of identical rows over some columns.

    Attributes:
        k: size of the smallest group.
        groups: number of distinct rows.
        unique_share: share of the rows that no other row equals, 0 to 1.
        per_attribute: the same k for each column by itself.
    """

    k: int
    groups: int
    unique_share: float
    per_attribute: dict[str, int]


def actual_k(table: Table, columns: Sequence[str]) -> ActualK:
    """Size of the smallest group of rows that agree in all the columns; missing values agree with each other.

    Cost:
        One sort per column, O(n) memory.

    >>> import pyarrow as pa
    >>> from shoal.io import read
    >>> actual_k(read(pa.table({"a": [1, 1, 2, 2], "b": ["x", "x", "y", "z"]})), ["a", "b"])
    ActualK(k=1, groups=3, unique_share=0.5, per_attribute={'a': 2, 'b': 1})
    """
    codes = {name: column_codes(table, name) for name in columns}
    sizes = row_groups(codes.values()).sizes
    return ActualK(
        k=int(sizes.min()),
        groups=int(sizes.size),
        unique_share=int((sizes == 1).sum()) / table.n,
        per_attribute={name: int(np.bincount(code).min()) for name, code in codes.items()},
    )


def column_codes(table: Table, name: str) -> NDArray[np.int64]:
    """A whole number per row that is equal exactly where the values are: text, dates and large integers too."""
    if table.is_numeric(name) and not table.is_integer(name):
        return np.unique(table.numeric(name), return_inverse=True)[1].astype(np.int64)
    encoded = as_arrow(table.series(name)).dictionary_encode(null_encoding="encode")
    if hasattr(encoded, "combine_chunks"):
        encoded = encoded.combine_chunks()
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.int64)


def as_arrow(series: nw.Series[Any]) -> Any:
    import pyarrow as pa

    try:
        values = series.to_arrow()
    except pa.ArrowException:
        # a pandas column of mixed types: what is written to a file is its text
        return pa.array([None if value is None else str(value) for value in series.to_list()])
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
