"""Anatomy: records and groups come in, two tables leave that are linked by a group number and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.display import internal
from shoal.errors import InputError
from shoal.noise import Source
from shoal.noise import source as noise_source
from shoal.partition import Partition


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Anatomy:
    """Two linked tables, columns by name.

    Attributes:
        quasi: one row per record in random order: the quasi-identifiers as they are, and the number of the group.
        confidential: one row per group and value (or combination of values): the number of the group, the
            confidential attributes, and how many records of the group have them. Sorted by group and value.
        group: name of the column that links them.
        count: name of the column with the number of records.
    """

    quasi: dict[str, NDArray[Any]]
    confidential: dict[str, NDArray[Any]]
    group: str
    count: str


def dissect(
    quasi: Mapping[str, ArrayLike],
    confidential: Mapping[str, ArrayLike],
    partition: Partition,
    source: Source | None = None,
) -> Anatomy:
    """Part quasi-identifiers and confidential attributes into two tables linked by group.

    Args:
        quasi: the quasi-identifiers by name, one value per record.
        confidential: the confidential attributes by name, one value per record.
        partition: the groups.
        source: where row order and group numbers come from; the operating system's entropy by default.

    Guarantee:
        Probabilistic k-anonymity, k the size of the smallest group: which row of the first table a value of the
        second belongs to is known with probability count/|group| at most, to somebody who knows no more than the
        two tables. A value that a whole group shares is disclosed: see `diversify`.

    Reference: the thesis, section 7.1.2, after the Anatomy method.

    >>> from shoal.noise import Seeded
    >>> made = dissect({"age": [31, 35, 60, 62]}, {"ill": ["a", "b", "b", "b"]}, Partition.from_labels([0, 0, 1, 1]),
    ...                Seeded(1))
    >>> sorted(made.quasi["age"].tolist()), made.confidential["count"].tolist()
    ([31, 35, 60, 62], [1, 1, 2])
    """
    from shoal.partition.groups import row_groups

    columns = {**quasi, **confidential}
    for name, values in columns.items():
        if np.shape(values)[:1] != (partition.n,):
            raise InputError("column-needs-value-per-record", column=name, n=partition.n)
    if not quasi or not confidential:
        raise InputError("two-linked-tables-need-least-quasi")
    drawn = source or noise_source(None)
    group, count = _free("group", columns), _free("count", columns)
    # numbers in the order of creation would tell outlying groups from others
    numbers = drawn.permutation(len(partition))[partition.labels] + 1
    order = drawn.permutation(partition.n)
    combined = row_groups([numbers, *(_numbered(values) for values in confidential.values())])
    first = combined.first
    return Anatomy(
        {**{name: np.asarray(values)[order] for name, values in quasi.items()}, group: numbers[order]},
        {
            group: numbers[first],
            **{name: np.asarray(values)[first] for name, values in confidential.items()},
            count: combined.sizes,
        },
        group,
        count,
    )


def _numbered(values: ArrayLike) -> NDArray[np.int64]:
    raw = np.asarray(values)
    if raw.dtype != object:
        return np.unique(raw, return_inverse=True)[1].astype(np.int64)
    # what is missing has no place among texts: it comes first
    distinct = sorted(set(raw.tolist()), key=lambda value: (value is not None, value))
    numbers = {value: number for number, value in enumerate(distinct)}
    return np.array([numbers[value] for value in raw.tolist()], dtype=np.int64)


def _free(wanted: str, taken: Mapping[str, object]) -> str:
    """The name, with as many underscores as it takes to be unlike every column."""
    while wanted in taken:
        wanted += "_"
    return wanted
