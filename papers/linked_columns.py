"""Why ranked columns must not be linked: what releases of two neighbouring tables reveal about the difference.

A released table shows which combinations of clusters occur in its rows, and noise does not hide that. One replaced
record can create rows that the other table never yields, and then no ε bounds the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import shoal
from papers.desk import Desk

# records at the corners of a square; the neighbour moves the second one, and both columns group alike
_TABLE = {"x": [0, 10, 90, 100], "y": [0, 100, 10, 90]}
_NEIGHBOUR = {"x": [0, 10, 90, 100], "y": [0, 5, 10, 90]}


@dataclass(frozen=True)
class Linked:
    """How many of the releases of each table have more than two different rows."""

    runs: int
    table: int
    neighbour: int

    @property
    def refutes(self) -> bool:
        """What the one table often shows, the other never does: no ε holds."""
        return self.neighbour == 0 and self.table > 0

    @property
    def words(self) -> str:
        return (
            f"four records in two columns, k = 2, ε = 1, domain 0 to 100: {self.table} of {self.runs} releases have "
            f"more than two different rows, and {self.neighbour} of {self.runs} once a single record is replaced"
        )


def linked(desk: Desk) -> Linked:
    """Releases of both tables by `ranking-dp` with linked columns, seeds 0, 1, 2, ..."""
    runs = 40 if desk.quick else 400
    found = desk.measure(
        "linked columns",
        {
            f"linked columns neighbour={neighbour} runs={runs}": partial(many_rows, neighbour, runs)
            for neighbour in (False, True)
        },
    )
    return Linked(runs, *found.values())


def many_rows(neighbour: bool, runs: int) -> int:
    """How many releases have more different rows than the two that two groups in each column can give alone."""
    import pyarrow as pa

    table = pa.table(_NEIGHBOUR if neighbour else _TABLE)
    domains = {"x": (0, 100), "y": (0, 100)}
    count = 0
    for seed in range(runs):
        released = shoal.protect(
            table, method="ranking-dp", epsilon=1, k=2, remainder="last", domains=domains, seed=seed
        ).data
        count += len(set(zip(released["x"].to_pylist(), released["y"].to_pylist(), strict=True))) > 2
    return count
