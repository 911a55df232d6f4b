"""The published statistics: those of a group's clusters come in, one row per cluster leaves, in the columns' units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.moments.statistics import Summary
from shoal.mechanisms.moments.statistics.process import Statistics
from shoal.mechanisms.partition_stage import Group
from shoal.partition import Partition


def statistics_columns(
    group: Group, partition: Partition, found: Statistics, summary: Summary
) -> dict[str, NDArray[Any]]:
    """Columns by name, one entry per cluster: the attributes, the size, means, covariances and coskewnesses.

    Rows are sorted by their statistics: the order in which clusters were made says something about the records.
    """
    lattices = group.lattices
    widths = [float(lattice.step) * lattice.steps for lattice in lattices]
    columns: dict[str, NDArray[Any]] = {
        "columns": np.full(len(partition), ", ".join(group.columns), dtype=object),
        "size": partition.sizes,
    }
    for place, (name, lattice) in enumerate(zip(group.columns, lattices, strict=True)):
        columns[f"mean of {name}"] = float(lattice.lo) + found.means[:, place] * widths[place]
    if found.covariances is not None:
        for i, j in summary.covariance_entries:
            what = f"variance of {group.columns[i]}"
            if i != j:
                what = f"covariance of {group.columns[i]} and {group.columns[j]}"
            columns[what] = found.covariances[:, i, j] * (widths[i] * widths[j])
    if found.coskewnesses is not None:
        for place, (a, b, c) in enumerate(summary.coskewness_entries):
            names = [group.columns[number] for number in (a, b, c)]
            columns[f"coskewness of {names[0]}, {names[1]} and {names[2]}"] = found.coskewnesses[:, place] * (
                widths[a] * widths[b] * widths[c]
            )
    order = np.lexsort(found.means.T[::-1])
    return {name: values[order] for name, values in columns.items()}


def joined(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The groups' rows one after the other; a statistic that a group does not have is NaN."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: np.concatenate([part.get(name, np.full(part["size"].size, np.nan)) for part in parts])
        for name in names
    }
