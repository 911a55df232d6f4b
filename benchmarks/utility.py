"""The utility benchmark: compare pairs-dp with MST and AIM, and write results/utility.md.

python -m benchmarks.utility [--shoal-only [--reported]] [--page-only] [--tables Adult ...] [--epsilons 1 ...]
                             [--seeds 10] [--runs 3] [--keep results/utility_measured.jsonl] [--out results/utility.md]

MST and AIM run in an environment of their own, and so do the judges SDNist and SDMetrics: `make .venv-dpmm/.done
.venv-judge/.done`. Every run is written to a file at once: run the command again to resume after an interruption.
`--shoal-only` forgets the runs of Shoal and measures them again, in less than ten minutes, on the development tables;
with `--reported` on the others too, which is for the end, when no constant changes any more. `--page-only` rewrites the
page from the file.
"""

from __future__ import annotations

import argparse
import functools
from pathlib import Path

from benchmarks.utility_cells import drop_ours, fill, read_cells
from benchmarks.utility_methods import OURS, THEIRS
from benchmarks.utility_page import page
from benchmarks.utility_tables import DEVELOPMENT, REPORTED, tasks
from tools.results import RESULTS, put

MEASURED = RESULTS / "utility_measured.jsonl"
EPSILONS = ("1",)
# seeds by which nothing was chosen
FIRST, SEEDS, RUNS = 700, 10, 3

say = functools.partial(print, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shoal-only", action="store_true", help="measure Shoal again and no synthesiser")
    parser.add_argument("--reported", action="store_true", help="measure Shoal on the reported tables, too")
    parser.add_argument("--page-only", action="store_true", help="rewrite the page from the file")
    parser.add_argument("--tables", nargs="*", default=[*DEVELOPMENT, *REPORTED])
    parser.add_argument("--epsilons", nargs="*", default=list(EPSILONS))
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many, of Shoal")
    parser.add_argument("--runs", type=int, default=RUNS, help="how many, of MST and AIM")
    parser.add_argument("--keep", type=Path, default=MEASURED)
    parser.add_argument("--out", type=Path, default=RESULTS / "utility.md")
    given = parser.parse_args()
    if not given.page_only:
        measure_all(given)
    put(given.out, page(list(read_cells(given.keep).values()), RUNS))


def measure_all(given: argparse.Namespace) -> None:
    read = tasks(given.tables)
    ours = [name for name in given.tables if name in DEVELOPMENT or given.reported]
    if given.shoal_only:
        drop_ours(given.keep, ours, given.epsilons)
    for name in ours:
        task = read[name]()
        for epsilon in given.epsilons:
            for preset in OURS:
                fill(given.keep, task, preset, epsilon, range(FIRST, FIRST + given.seeds), say)
    if given.shoal_only:
        return
    # the first runs everywhere before the second ones; what takes less first: MST before AIM, few columns before many
    ordered = sorted(given.tables, key=lambda name: len((DEVELOPMENT | REPORTED)[name].domains))
    for run in range(given.runs):
        for synthesiser in THEIRS:
            for name in ordered:
                for epsilon in given.epsilons:
                    fill(given.keep, read[name](), synthesiser, epsilon, [run], say)


if __name__ == "__main__":
    main()
