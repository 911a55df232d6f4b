"""The cells of the utility benchmark: measure them and keep their scores on disk, one line each.

A cell is one method on one table at one ε with one seed. Cells already in the file, with the same settings,
are not measured again, so an interruption loses one cell at most.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.utility_methods import Contestant, Made, Synthesiser
from benchmarks.utility_scores import (
    correlation_error,
    f_measure,
    labels_kept,
    marginal_error,
    rank_error,
    row_error,
    trivial_f,
)
from benchmarks.utility_tables import Task

ORIGINAL, LARGER_CLASS, ALWAYS_YES = "the records themselves", "always the larger class", "always yes"
BOUNDS = (ORIGINAL, LARGER_CLASS, ALWAYS_YES)

Key = tuple[str, str, str, int, str]


@dataclass(frozen=True)
class Cell:
    """One measurement.

    Attributes:
        epsilon: as text; empty for the bounds, which have none.
        settings: of the method, as JSON text; part of what identifies the cell.
        claim: model of the statement; empty for the bounds.
        scores: by name, those that exist: rows that were made up have no row error.
        failed: why there are no scores.
    """

    table: str
    method: str
    epsilon: str = ""
    seed: int = 0
    settings: str = "{}"
    claim: str = ""
    neighbours: str = ""
    scores: dict[str, float] = field(default_factory=dict)
    seconds: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    failed: str = ""

    @property
    def key(self) -> Key:
        return self.table, self.method, self.epsilon, self.seed, self.settings


def read_cells(path: Path) -> dict[Key, Cell]:
    """The cells of a file, the last one of each kind; a line cut off by an interruption is left out."""
    found: dict[Key, Cell] = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            cell = Cell(**json.loads(line))
        except json.JSONDecodeError:
            continue
        found[cell.key] = cell
    return found


def compact(cell: Cell) -> dict[str, Any]:
    """A cell without what it has by default, scores with six digits."""
    digits = replace(
        cell,
        scores={name: float(f"{score:.6g}") for name, score in cell.scores.items()},
        seconds=None if cell.seconds is None else float(f"{cell.seconds:.3g}"),
    )
    nothing = asdict(Cell(cell.table, cell.method))
    always = ("table", "method")
    return {name: part for name, part in asdict(digits).items() if name in always or part != nothing[name]}


def add_cell(path: Path, cell: Cell) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cut_off = path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" * cut_off + json.dumps(compact(cell), ensure_ascii=False) + "\n")


def scores_of(task: Task, made: Made, seed: int) -> dict[str, float]:
    """Every score that a release has."""
    found = {}
    if made.aligned is not None:
        found["row"] = row_error(task.records, made.aligned, task.domains)
        found["labels"] = labels_kept(task.records, made.aligned)
    return found | {
        "marginal": marginal_error(task.records, made.data, task.domains),
        "correlation": correlation_error(task.records, made.data, task.domains),
        "rank": rank_error(task.records, made.data, task.domains),
        "f": f_measure(made.data, task.held_out, task.domains, seed),
    }


def bounds_of(task: Task, seeds: Sequence[int]) -> list[Cell]:
    """What the records themselves teach, and what can be said without any."""
    larger, yes = trivial_f(task.held_out)
    return [
        *(
            Cell(
                task.name,
                ORIGINAL,
                seed=seed,
                scores={"f": f_measure(task.records, task.held_out, task.domains, seed)},
            )
            for seed in seeds
        ),
        Cell(task.name, LARGER_CLASS, scores={"f": larger}),
        Cell(task.name, ALWAYS_YES, scores={"f": yes}),
    ]


def measure(task: Task, contestant: Contestant, epsilon: str, seed: int, limit: float) -> Cell:
    """Release once and score it; a synthesiser is stopped after `limit` seconds, and the cell says so."""
    settings = json.dumps(contestant.settings(task, epsilon), sort_keys=True)
    cell = Cell(task.name, contestant.name, epsilon, seed, settings)
    try:
        if isinstance(contestant, Synthesiser):
            made = contestant.make(task, epsilon, seed, limit=limit)
        else:
            made = contestant.make(task, epsilon, seed)
    except subprocess.TimeoutExpired:
        return replace(cell, failed=f"stopped after {limit:.0f} s")
    return replace(
        cell,
        claim=made.claim,
        neighbours=made.neighbours,
        scores=scores_of(task, made, seed),
        seconds=made.seconds,
        facts=dict(made.facts),
    )


def fill(
    path: Path,
    task: Task,
    contestants: Sequence[Contestant],
    epsilons: Sequence[str],
    seeds: Sequence[int],
    dear_seeds: Sequence[int],
    limit: float,
    say: Callable[[str], None],
) -> None:
    """Measure the cells that the file lacks; dear methods have seeds of their own, fewer ones."""
    known = read_cells(path)
    if not any(cell.table == task.name and cell.method == ORIGINAL for cell in known.values()):
        for cell in bounds_of(task, seeds):
            add_cell(path, cell)
    for contestant in contestants:
        for epsilon in epsilons:
            settings = json.dumps(contestant.settings(task, epsilon), sort_keys=True)
            for seed in (dear_seeds if contestant.dear else seeds) if contestant.can(task) else ():
                if (task.name, contestant.name, epsilon, seed, settings) in known:
                    continue
                cell = measure(task, contestant, epsilon, seed, limit)
                add_cell(path, cell)
                say(
                    f"{task.name}, {contestant.name}, ε = {epsilon}, seed {seed}: {cell.failed or cell.scores}"
                )
