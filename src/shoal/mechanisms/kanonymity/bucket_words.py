"""Buckets in words: bucket numbers come in, the range or the set of values of each leaves as text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.columns.kinds import day_text
from shoal.mechanisms.kanonymity.columns import Columns


def bucket_words(
    columns: Columns, names: Sequence[str], buckets: NDArray[np.int64]
) -> dict[str, NDArray[np.object_]]:
    """For each record the bucket of its confidential values, column by column.

    A bucket of an ordered column is written `least to greatest`, one of a nominal column `a | b | c`.
    """
    return {name: _words(columns, name, buckets)[buckets] for name in names}


def _words(columns: Columns, name: str, buckets: NDArray[np.int64]) -> NDArray[np.object_]:
    values = columns.values[name]
    words = np.empty(int(buckets.max()) + 1, dtype=object)
    for bucket in range(words.size):
        own = np.unique(values[buckets == bucket])
        if not columns.kind(name).ordered:
            words[bucket] = " | ".join(_shown(columns, name, value) for value in own.tolist())
        elif own.size == 1:
            words[bucket] = _shown(columns, name, float(own[0]))
        else:
            words[bucket] = (
                f"{_shown(columns, name, float(own[0]))} to {_shown(columns, name, float(own[-1]))}"
            )
    return words


def _shown(columns: Columns, name: str, value: float) -> str:
    attribute = columns.described.attribute(name)
    if attribute.kind_facts.days:
        return day_text(round(value))
    if attribute.kind_facts.listed:
        return attribute.ordered[round(value)]
    if not attribute.kind_facts.ordered:
        assert attribute.tree is not None
        return attribute.tree.labels[round(value)]
    return f"{value:.15g}"
