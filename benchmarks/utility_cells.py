"""The runs of the utility benchmark: measure them and keep their scores on disk, one line each.

A run already in the file is not measured again, so an interruption loses one run at most, or one table of Shoal's.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from benchmarks.utility_methods import OURS, THEIRS, Contestant, Preset, TooSlowError
from benchmarks.utility_scores import scores_of, trained_auc
from benchmarks.utility_tables import JUDGE, ROOT, Task

ORIGINAL = "the records themselves"
NIST_TABLE = "national2019"
# releases of a batch that go to the judges, which take longer than everything else
JUDGED = 5

Key = tuple[str, str, str, int]


@dataclass(frozen=True)
class Cell:
    """One run.

    Attributes:
        epsilon: as text; empty for the records themselves.
        failed: why there are no scores.
    """

    table: str
    method: str
    epsilon: str = ""
    seed: int = 0
    scores: dict[str, float] = field(default_factory=dict)
    seconds: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    failed: str = ""

    @property
    def key(self) -> Key:
        return self.table, self.method, self.epsilon, self.seed


def read_cells(path: Path) -> dict[Key, Cell]:
    """The runs of a file, the last one of each kind; a line cut off by an interruption is left out."""
    found: dict[Key, Cell] = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            cell = Cell(**json.loads(line))
        except json.JSONDecodeError:
            continue
        found[cell.key] = cell
    return found


def compact(cell: Cell) -> dict[str, Any]:
    """A run without what it has by default, scores with six digits."""
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


def drop_ours(path: Path, tables: Iterable[str], epsilons: Iterable[str]) -> None:
    """Forget the runs of Shoal on these tables: its code has changed."""
    ours, tables, epsilons = {method.name for method in OURS}, set(tables), set(epsilons)
    kept = [
        cell
        for cell in read_cells(path).values()
        if not (cell.method in ours and cell.table in tables and cell.epsilon in epsilons)
    ]
    lines = [json.dumps(compact(cell), ensure_ascii=False) + "\n" for cell in kept]
    path.write_text("".join(lines), "utf-8")


def judged(task: Task, released: Sequence[pa.Table]) -> list[dict[str, float]]:
    """Scores of SDMetrics, and of SDNist where the table is NIST's, for several releases at once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / f"{number}.parquet" for number in range(len(released) + 1)]
        for path, table in zip(paths, (task.records, *released), strict=True):
            for place, column in enumerate(table.column_names):
                if column in task.names:
                    # names that look like numbers may come back as numbers
                    texts = pa.array([str(value) for value in table[column].to_pylist()], pa.string())
                    table = table.set_column(place, column, texts)
            parquet.write_table(table, path, version="2.4")
        jobs = [
            {
                "records": str(paths[0]),
                "released": str(path),
                "names": list(task.names),
                "sdnist": task.name == NIST_TABLE,
            }
            for path in paths[1:]
        ]
        (folder / "jobs.json").write_text(json.dumps(jobs), "utf-8")
        command = [
            JUDGE / "bin" / "python",
            ROOT / "benchmarks" / "utility_judge.py",
            "jobs.json",
            "out.json",
        ]
        single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run(list(map(str, command)), cwd=folder, env={**os.environ, **single}, check=True)
        found: list[dict[str, float]] = json.loads((folder / "out.json").read_text("utf-8"))
        return found


def measure(task: Task, contestant: Contestant, epsilon: str, seeds: Sequence[int]) -> list[Cell]:
    """Release once for each seed and score all of them; a synthesiser that is stopped has a cell that says so."""
    cells, made = [], []
    for seed in seeds:
        cell = Cell(task.name, contestant.name, epsilon, seed)
        try:
            one = contestant.make(task, epsilon, seed)
        except TooSlowError as error:
            cells.append(replace(cell, failed=str(error)))
            continue
        own = scores_of(task, one.data)
        cells.append(replace(cell, scores=own, seconds=one.seconds, facts=dict(one.facts)))
        made.append(one.data)
    others = iter(judged(task, made[:JUDGED]) if made else ())
    return [cell if cell.failed else replace(cell, scores=cell.scores | next(others, {})) for cell in cells]


def fill(
    path: Path,
    task: Task,
    contestant: Contestant,
    epsilon: str,
    seeds: Sequence[int],
    say: Callable[[str], None],
) -> None:
    """Measure the runs that the file lacks: all seeds of Shoal together, those of a synthesiser one by one.

    A synthesiser that was stopped once on a table is not run there again.
    """
    known = read_cells(path)
    if task.target is not None and (task.name, ORIGINAL, "", 0) not in known:
        add_cell(path, Cell(task.name, ORIGINAL, scores={"learned": trained_auc(task, task.records)}))
    same = task.name, contestant.name, epsilon
    stopped = any(cell.failed for key, cell in known.items() if key[:3] == same)
    missing = [seed for seed in seeds if (*same, seed) not in known and not stopped]
    for batch in [missing] if isinstance(contestant, Preset) else [[seed] for seed in missing]:
        for cell in measure(task, contestant, epsilon, batch) if batch else ():
            add_cell(path, cell)
        if batch:
            say(f"{task.name}, {contestant.name}, ε = {epsilon}, seeds {', '.join(map(str, batch))}")


def missing_runs(
    cells: Iterable[Cell], tables: Sequence[str], epsilons: Sequence[str], runs: int
) -> dict[str, list[tuple[str, str, int]]]:
    """By synthesiser: table, ε and how many runs are still to be made."""
    counts: dict[tuple[str, str, str], int] = {}
    for cell in cells:
        place = cell.method, cell.table, cell.epsilon
        counts[place] = counts.get(place, 0) + 1
    return {
        one.name: [
            (table, epsilon, runs - counts.get((one.name, table, epsilon), 0))
            for table in tables
            for epsilon in epsilons
            if counts.get((one.name, table, epsilon), 0) < runs
        ]
        for one in THEIRS
    }
