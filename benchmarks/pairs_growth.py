"""Whether more rows or a larger ε ever make a column of pairs-dp worse: median errors over seeds, printed.

python -m benchmarks.pairs_growth [--tables Adult ...] [--rows 2000 20000 200000] [--epsilons 0.5 1 ...] [--seeds 20]

The error of a column is its Wasserstein distance in standard deviations, or the total variation distance of names.
Tables are resampled to every size. A cell is marked if its median is more than 1.1 times that of the next smaller
number of rows or ε.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

import shoal
from benchmarks.pairs import column_error
from benchmarks.pairs_tables import FRESH, TASKS, Task
from benchmarks.utility_tables import Numbers

ROWS = (2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
EPSILONS = ("0.5", "1", "3", "10")
TABLES = ("Census", "Adult", "Wine", "EIA", "RAND")
ALLOWED = 1.1


@dataclass(frozen=True)
class Cell:
    """The median error of a column, and by how much it exceeds that with less: rows, then ε."""

    table: str
    column: str
    rows: int
    epsilon: str
    error: float
    over_rows: float | None
    over_epsilon: float | None

    @property
    def worse(self) -> bool:
        return max(self.over_rows or 0.0, self.over_epsilon or 0.0) > ALLOWED


def resampled(task: Task, rows: int) -> Task:
    """The first rows of a fixed shuffle, or as many draws with replacement."""
    size = task.records.num_rows
    random = np.random.default_rng(0)
    chosen = random.permutation(size)[:rows] if rows <= size else random.integers(0, size, rows)
    return replace(task, records=task.records.take(chosen))


def medians(task: Task, epsilon: str, seeds: range) -> dict[str, float]:
    """The median error of every column."""
    found: dict[str, list[float]] = {name: [] for name in task.domains}
    for seed in seeds:
        made = shoal.protect(task.records, task.schema(), "pairs-dp", epsilon, seed=seed).data
        for name, domain in task.domains.items():
            error = column_error(task.records, made, name, domain)
            if isinstance(domain, Numbers):
                error *= domain.width / max(float(task.records[name].to_numpy().std()), 1e-12)
            found[name].append(error)
    return {name: float(np.median(errors)) for name, errors in found.items()}


def cells(
    makers: Mapping[str, Callable[[], Task]], rows: Sequence[int], epsilons: Sequence[str], seeds: range
) -> Iterator[Cell]:
    """All of them, table by table, in ascending order of rows and ε."""
    for name, make in makers.items():
        task = make()
        known: dict[tuple[int, int], dict[str, float]] = {}
        for i, j in product(range(len(rows)), range(len(epsilons))):
            known[i, j] = medians(resampled(task, rows[i]), epsilons[j], seeds)
            for column, error in known[i, j].items():
                before = [
                    error / max(known[less][column], 1e-12) if less in known else None
                    for less in ((i - 1, j), (i, j - 1))
                ]
                yield Cell(name, column, rows[i], epsilons[j], error, *before)


def line(cell: Cell) -> str:
    ratios = ["     -" if one is None else f"{one:6.2f}" for one in (cell.over_rows, cell.over_epsilon)]
    mark = " worse" if cell.worse else ""
    return (
        f"{cell.table:8} {cell.column:22} {cell.rows:7,} {cell.epsilon:>4} "
        f"{cell.error:8.4f} {' '.join(ratios)}{mark}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=(*TASKS, *FRESH))
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--epsilons", nargs="+", default=EPSILONS)
    parser.add_argument("--seeds", type=int, default=20)
    asked = parser.parse_args(arguments)
    makers = {name: (TASKS | FRESH)[name] for name in asked.tables}
    ordered = sorted(asked.rows), sorted(asked.epsilons, key=float)
    print(f"{'table':8} {'column':22} {'rows':>7} {'ε':>4} {'median':>8} {'/rows':>6} {'/ε':>6}")
    number, worse = 0, 0
    for cell in cells(makers, *ordered, range(asked.seeds)):
        print(line(cell), flush=True)
        number, worse = number + 1, worse + cell.worse
    print(f"{worse} of {number} medians are more than {ALLOWED} times that with fewer rows or a smaller ε")


if __name__ == "__main__":
    main()
