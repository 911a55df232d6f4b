"""Whether more rows or a larger ε ever make a column of pairs-dp worse: writes results/pairs-growth.md.

python -m benchmarks.pairs_growth [--tables Adult ...] [--rows 2000 20000 200000] [--epsilons 0.5 1 ...] [--seeds 20]
                                  [--keep results/pairs_growth.jsonl] [--out results/pairs-growth.md] [--anew]

Every release is written to a file at once: run the command again to resume after an interruption, and with `--anew`
after a change of the method. One seed everywhere comes before the next one, so that what is on file is a whole grid.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

import shoal
from benchmarks.pairs import column_error
from benchmarks.pairs_tables import FRESH, TASKS, Task
from benchmarks.utility_tables import Numbers
from shoal.numbers import Floats
from shoal.workers import machine_words
from tools.results import RESULTS, put

ROWS = (2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
EPSILONS = ("0.5", "1", "3", "10")
TABLES = ("Census", "Adult", "Wine", "EIA", "RAND")
ALLOWED = 1.1
_RESAMPLES = 2_000

# table, rows, ε, and by seed the error of each column
Place = tuple[str, int, str]
Known = dict[Place, dict[int, dict[str, float]]]


@dataclass(frozen=True)
class Ratio:
    """The median error of a column divided by that with fewer rows or a smaller ε.

    Attributes:
        less: the other number of rows or ε, as text.
        low: the lower end of its 95% interval, over seeds.
    """

    table: str
    column: str
    rows: int
    epsilon: str
    less: str
    error: float
    value: float
    low: float

    @property
    def worse(self) -> bool:
        return self.value > ALLOWED

    @property
    def clear(self) -> bool:
        """Whether it is too large even at the lower end of its interval."""
        return self.low > ALLOWED


def resampled(task: Task, rows: int) -> Task:
    """The first rows of a fixed shuffle, or as many draws with replacement."""
    size = task.records.num_rows
    random = np.random.default_rng(0)
    chosen = random.permutation(size)[:rows] if rows <= size else random.integers(0, size, rows)
    return replace(task, records=task.records.take(chosen))


def errors(task: Task, epsilon: str, seed: int) -> dict[str, float]:
    """The error of every column of one release."""
    made = shoal.protect(task.records, task.schema(), "pairs-dp", epsilon, seed=seed).data
    found = {}
    for name, domain in task.domains.items():
        error = column_error(task.records, made, name, domain)
        if isinstance(domain, Numbers):
            error *= domain.width / max(float(task.records[name].to_numpy().std()), 1e-12)
        found[name] = float(f"{error:.4g}")
    return found


def read(path: Path) -> Known:
    """The releases of a file; a line cut off by an interruption is left out."""
    found: Known = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            table, rows, epsilon, seed, own = json.loads(line)
        except json.JSONDecodeError:
            continue
        found.setdefault((table, rows, epsilon), {})[seed] = own
    return found


def measure(
    path: Path,
    makers: Mapping[str, Callable[[], Task]],
    rows: Sequence[int],
    epsilons: Sequence[str],
    seeds: int,
) -> None:
    """Make the releases that the file lacks: seed by seed, small tables first."""
    known = read(path)
    for seed, size, name, epsilon in product(range(seeds), rows, makers, epsilons):
        if seed not in known.get((name, size, epsilon), ()):
            own = errors(resampled(makers[name](), size), epsilon, seed)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, size, epsilon, seed, own], ensure_ascii=False) + "\n")


def ratios(known: Known) -> list[Ratio]:
    """Of every column, size and ε to the next smaller ones on file, by the seeds that both sides have."""
    found = []
    for table in dict.fromkeys(place[0] for place in known):
        sizes = sorted({rows for name, rows, _ in known if name == table})
        epsilons = sorted({epsilon for name, _, epsilon in known if name == table}, key=float)
        for (i, rows), (j, epsilon) in product(enumerate(sizes), enumerate(epsilons)):
            pairs = [(sizes[i - 1], epsilon, f"{sizes[i - 1]:,} rows")] if i else []
            pairs += [(rows, epsilons[j - 1], f"ε = {epsilons[j - 1]}")] if j else []
            own = known.get((table, rows, epsilon), {})
            for size, smaller, less in pairs:
                other = known.get((table, size, smaller), {})
                common = sorted(own.keys() & other.keys())
                for column in own[common[0]] if common else ():
                    more, fewer = (np.array([side[seed][column] for seed in common]) for side in (own, other))
                    found.append(Ratio(table, column, rows, epsilon, less, *_compared(more, fewer)))
    return found


def _compared(more: Floats, fewer: Floats) -> tuple[float, float, float]:
    """The median of one side, its ratio to that of the other, and the lower end of the 95% interval of the ratio."""

    def ratio(one: Floats, other: Floats) -> Floats:
        # two exact columns are as good as each other
        return (np.median(one, axis=-1) + 1e-12) / (np.median(other, axis=-1) + 1e-12)

    random = np.random.default_rng(0)
    drawn = [side[random.integers(0, side.size, (_RESAMPLES, side.size))] for side in (more, fewer)]
    low = float(np.quantile(ratio(*drawn), 0.025))
    return float(np.median(more)), float(ratio(more, fewer)), low


def page(known: Known) -> str:
    found = ratios(known)
    worse = sorted((one for one in found if one.worse), key=lambda one: -one.value)
    seeds = sorted({len(own) for own in known.values()})
    said = f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else "".join(f"{one} seeds" for one in seeds)
    lines = [
        "# Growth of pairs-dp",
        "",
        f"Written by `python -m benchmarks.pairs_growth` on {datetime.date.today()}, {machine_words()}.",
        "",
        "More rows or a larger ε should not make a column worse. The error of a column is its Wasserstein distance in "
        "standard deviations, or the total variation distance of names. Each table is resampled to every size, and its "
        f"median error over {said} is compared with that of the next smaller number of rows or ε. There is no δ, and "
        "the number of rows is private.",
        "",
        f"A ratio above {ALLOWED} is a violation. It is clear if the lower end of its 95% interval (over seeds, by "
        f"bootstrap) is above {ALLOWED} too: medians of few seeds vary.",
        "",
        f"Measured: {', '.join(f'{size:,}' for size in sorted({place[1] for place in known}))} rows; "
        f"ε = {', '.join(sorted({place[2] for place in known}, key=float))}.",
        "",
        "| table | ratios | violations | clear | largest ratio |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    parts = {
        table: [one for one in found if one.table == table] for table in dict.fromkeys(o.table for o in found)
    }
    lines += [f"| {table} | {_counted(own)} |" for table, own in {**parts, "all": found}.items() if own]
    lines += ["", "## Violations", ""]
    if not worse:
        return "\n".join([*lines, "None.", ""])
    lines += [
        "| table | column | rows | ε | compared with | error | ratio | at least |",
        "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: |",
        *(
            f"| {one.table} | {one.column} | {one.rows:,} | {one.epsilon} | {one.less} | {one.error:.4f} "
            f"| {one.value:.2f} | {one.low:.2f} |"
            for one in worse
        ),
    ]
    return "\n".join([*lines, ""])


def _counted(own: Sequence[Ratio]) -> str:
    counts = len(own), sum(one.worse for one in own), sum(one.clear for one in own)
    return " | ".join([*map(str, counts), f"{max(one.value for one in own):.2f}"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=(*TASKS, *FRESH))
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--epsilons", nargs="+", default=EPSILONS)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--keep", type=Path, default=RESULTS / "pairs_growth.jsonl")
    parser.add_argument("--out", type=Path, default=RESULTS / "pairs-growth.md")
    parser.add_argument("--anew", action="store_true", help="forget the releases on file")
    asked = parser.parse_args(arguments)
    if asked.anew:
        asked.keep.unlink(missing_ok=True)
    makers = {name: partial(_made, name, {}) for name in asked.tables}
    try:
        measure(asked.keep, makers, sorted(asked.rows), sorted(asked.epsilons, key=float), asked.seeds)
    finally:
        put(asked.out, page(read(asked.keep)))


def _made(name: str, kept: dict[str, Task]) -> Task:
    """A table, read once."""
    if name not in kept:
        kept[name] = (TASKS | FRESH)[name]()
    return kept[name]


if __name__ == "__main__":
    main()
