"""The result of a method's run: the protected table before shuffling and rounding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described
from shoal.display import internal
from shoal.partition import Partition
from shoal.progress import Progress as Progress
from shoal.text import Message


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Rebuilt:
    """The protected table before shuffling and rounding.

    Attributes:
        values: unrounded values of each released column.
        partitions: one partition per attribute group (empty if records have no clusters).
        aligned: row i of the values belongs to record i, so errors can be measured row by row.
        internal: private facts for the internal report.
        measured: the values on which errors are measured, if synthetic rows are matched to records; never published.
        statistics: columns of the table of cluster statistics, if the method keeps them; may be published.
        gaps: suppressed cells, by column, row by row, beyond those that were empty before.
        unchanged: columns with the records' original values, which keep all their decimals.
        conditions: what was measured and how finely, where that follows from outputs released on the way; may
            be published.
    """

    values: dict[str, NDArray[np.float64]]
    partitions: list[Partition]
    aligned: bool
    internal: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, NDArray[np.float64]] | None = None
    statistics: dict[str, Any] | None = None
    unchanged: frozenset[str] = frozenset()
    gaps: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    conditions: tuple[Message, ...] = ()


def gap_terms(described: Described) -> list[Message]:
    """Statement messages about columns for which "missing" is a separate state."""
    return [Message.of("gaps-have-a-place", columns=described.flagged)] if described.flagged else []
