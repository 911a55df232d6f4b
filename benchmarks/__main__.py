"""`python -m benchmarks [--quick]`: run all benchmarks and write results/benchmarks.md with date and machine size."""

from __future__ import annotations

import argparse
import datetime

from benchmarks import estimates, kanonymity, noise, partition, ranking
from shoal.workers import machine_words
from tools.results import RESULTS, put

PAGE = RESULTS / "benchmarks.md"


def page(quick: bool) -> str:
    """The whole page, every section measured now."""
    command = "make bench" if not quick else "python -m benchmarks --quick"
    return "\n".join(
        [
            "# Benchmarks",
            "",
            f"Written by `{command}` on {datetime.date.today()}, {machine_words()}. Times depend on the machine and on "
            "what else it does; the ratios were measured in one run.",
            "",
            "## Exact discrete Laplace noise",
            "",
            noise.table(),
            "## MDAV",
            "",
            partition.table(quick),
            "## Individual ranking",
            "",
            ranking.table(quick),
            kanonymity.HEADING,
            "",
            kanonymity.table(quick),
            estimates.HEADING,
            "",
            estimates.table(quick),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, a few minutes")
    arguments = parser.parse_args()
    put(PAGE, page(arguments.quick))
    print(f"Written to {PAGE}.")


if __name__ == "__main__":
    main()
