"""Chapter 3 of the thesis computed again: Census and EIA come in, docs/thesis-chapter-3.md leaves.

python -m benchmarks.thesis3 [--runs 40] [--out docs/thesis-chapter-3.md]
"""

from __future__ import annotations

import argparse
import datetime
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyarrow import csv

from shoal.kanonymity import swap_mdav, swap_ranking
from shoal.noise import Seeded, Source
from shoal.partition import mdav

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
Matrix = NDArray[np.float64]
SIZES = (5, 7, 9, 11, 25, 50, 100, 200, 300)
METHODS = ("MDAV-ID", "MDAV-SWAP", "IR-SWAP")

# Tables 3.10 and 3.11: mean and standard deviation by method, one pair per k
PRINTED: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "Census": {
        "MDAV-ID": (
            *((".055", ".064"), (".062", ".071"), (".069", ".078"), (".078", ".085"), (".11", ".11")),
            *((".14", ".13"), (".17", ".15"), (".29", ".27"), (".38", ".39")),
        ),
        "MDAV-SWAP": (
            *((".037", ".045"), (".048", ".056"), (".055", ".064"), (".061", ".070"), (".091", ".093")),
            *((".13", ".12"), (".19", ".17"), (".31", ".28"), (".37", ".34")),
        ),
        "IR-SWAP": (
            *(
                (".0021", ".0041"),
                (".0022", ".0039"),
                (".0028", ".0049"),
                (".0038", ".0068"),
                (".0061", ".012"),
            ),
            *((".010", ".020"), (".020", ".030"), (".044", ".047"), (".087", ".071")),
        ),
    },
    "EIA": {
        "MDAV-ID": (
            *((".018", ".017"), (".02", ".017"), (".034", ".031"), (".039", ".036"), (".085", ".078")),
            *((".13", ".12"), (".15", ".14"), (".19", ".18"), (".2", ".18")),
        ),
        "MDAV-SWAP": (
            *((".017", ".035"), (".024", ".05"), (".028", ".053"), (".029", ".052"), (".043", ".081")),
            *((".053", ".089"), (".058", ".092"), (".09", ".11"), (".12", ".13")),
        ),
        "IR-SWAP": (
            *(
                (".00064", ".00075"),
                (".0012", ".0018"),
                (".0015", ".0018"),
                (".0019", ".0023"),
                (".0063", ".0072"),
            ),
            *((".011", ".011"), (".029", ".037"), (".093", ".074"), (".14", ".091")),
        ),
    },
}

# Tables 3.6 to 3.9: correlations of A1 .. A13 (lines) with A7 .. A13, upper triangle
CORRELATIONS: dict[str, str] = {
    "original": """
        .0038 -.027 -.024 .031 .032 .039 .036
        .98 .14 .2 .73 .71 .72 .7
        .44 -.12 -.058 .56 .55 .56 .55
        .98 .2 .28 .73 .69 .71 .69
        .78 .27 .27 .9 .85 .88 .86
        .79 .13 .22 .59 .57 .57 .56
        1 .17 .23 .72 .7 .71 .69
        1 .45 -.17 -.19 -.17 -.17
        1 .072 .061 .70 .075
        1 .96 .98 .96
        1 .91 .89
        1 .97
        1""",
    "MDAV-ID": """
        -.0035 -.035 -.055 .034 .035 .042 .04
        1 .18 .39 .8 .81 .8 .78
        .79 -.17 .084 .89 .9 .89 .89
        .99 .23 .45 .82 .8 .81 .8
        .86 .18 .4 .94 .92 .94 .93
        .95 .2 .43 .77 .76 .76 .75
        1 .2 .41 .8 .8 .79 .78
        1 .68 -.15 -.18 -.15 -.16
        1 .18 .14 .17 .16
        1 .98 1 .99
        1 .97 .97
        1 1
        1""",
    "MDAV-SWAP": """
        -.0011 -.028 -.034 .032 .033 .036 .032
        .81 .089 .17 .69 .67 .69 .67
        .42 -.020 .091 .48 .47 .48 .43
        .77 .093 .18 .68 .65 .68 .67
        .72 .086 .16 .80 .76 .79 .77
        .64 .086 .14 .54 .52 .54 .52
        1 .12 .17 .69 .67 .66 .65
        1 .19 -.013 -.022 -.042 -.011
        1 .11 .10 .10 .13
        1 .76 .81 .87
        1 .72 .70
        1 .77
        1""",
    "IR-SWAP": """
        .0041 -.017 -.018 .031 .038 .039 .038
        .98 .13 .20 .73 .71 .72 .70
        .44 -.12 -.041 .56 .55 .56 .55
        .98 .19 .27 .73 .68 .71 .69
        .78 .26 .26 .90 .85 .88 .86
        .79 -.12 .21 .59 .57 .57 .56
        1 .16 .23 .72 .69 .71 .69
        1 .42 -.17 -.19 -.17 -.17
        1 .077 .063 .075 .080
        1 .95 .98 .96
        1 .91 .89
        1 .97
        1""",
}


@dataclass(frozen=True)
class Experiment:
    """A data set, which attributes are protected, and which correlations count.

    Attributes:
        counted: marks the pairs of attributes whose correlations the printed tables are about.
        divisor: number of pairs that the printed means are taken over; those not counted are 0.
    """

    name: str
    values: Matrix
    protected: tuple[int, ...]
    counted: NDArray[np.bool_]
    divisor: int

    def differences(self, masked: Matrix) -> Matrix:
        """|change| of the counted correlations, filled up with zeros."""
        changed = np.abs(np.corrcoef(masked.T) - np.corrcoef(self.values.T))[self.counted]
        return np.concatenate((changed, np.zeros(self.divisor - changed.size)))


def census() -> Experiment:
    """A1 to A6 are kept, A7 to A13 protected; the pairs that touch one of these, over all 78 pairs."""
    table = csv.read_csv(DATA / "census.csv")
    values = np.stack([column.to_numpy() for column in table.columns], axis=1).astype(np.float64)
    pairs = np.triu(np.ones((13, 13), dtype=bool), 1)
    return Experiment("Census", values, tuple(range(6, 13)), pairs & (np.arange(13) >= 6), int(pairs.sum()))


def eia() -> Experiment:
    """The ten revenue and sales columns, all protected; all pairs, each attribute with itself included."""
    table = csv.read_csv(DATA / "eia.csv")
    values = np.stack([column.to_numpy() for column in table.columns[5:]], axis=1).astype(np.float64)
    pairs = np.triu(np.ones((10, 10), dtype=bool))
    return Experiment("EIA", values, tuple(range(10)), pairs, int(pairs.sum()))


def identical(experiment: Experiment, k: int, source: Source | None = None) -> Matrix:
    """MDAV-ID: every record replaced by the mean of its cluster, all attributes together, unscaled."""
    made = mdav(experiment.values, k)
    return made.centroids(experiment.values)[made.labels]


def swapped_mdav(experiment: Experiment, k: int, source: Source) -> Matrix:
    """MDAV-SWAP: one protected attribute after the other, against intruders who know all others."""
    masked = experiment.values.copy()
    made = swap_mdav(list(experiment.values.T), k, experiment.protected, source=source)
    for j, owners in made.owners.items():
        masked[:, j] = experiment.values[owners, j]
    return masked


def swapped_ranking(experiment: Experiment, k: int, source: Source) -> Matrix:
    """IR-SWAP: every protected attribute among its neighbours in rank."""
    masked = experiment.values.copy()
    made = swap_ranking([experiment.values[:, j] for j in experiment.protected], k, source=source)
    for number, j in enumerate(experiment.protected):
        masked[:, j] = experiment.values[made.owners[number], j]
    return masked


MASKS: dict[str, Callable[[Experiment, int, Source], Matrix]] = {
    "MDAV-ID": identical,
    "MDAV-SWAP": swapped_mdav,
    "IR-SWAP": swapped_ranking,
}


def measured(experiment: Experiment, method: str, k: int, runs: int) -> tuple[float, float, float]:
    """Mean and population standard deviation of |change|, and the standard error of the mean over runs."""
    source = Seeded(k)
    repeats = 1 if method == "MDAV-ID" else runs
    found = np.stack([experiment.differences(MASKS[method](experiment, k, source)) for _ in range(repeats)])
    spread = found.mean(axis=1).std(ddof=1) / np.sqrt(repeats) if repeats > 1 else 0.0
    return float(found.mean()), float(found.std(axis=1).mean()), float(spread)


def printed_matrix(name: str) -> tuple[Matrix, list[list[str]]]:
    """A printed table of correlations as numbers (NaN below the diagonal) and as text."""
    lines = [line.split() for line in CORRELATIONS[name].strip().splitlines()]
    values = np.full((13, 7), np.nan)
    for row, line in enumerate(lines):
        values[row, 7 - len(line) :] = [float(cell) for cell in line]
    return values, lines


def printed_digits(text: str) -> int:
    """Decimals of a printed number."""
    return len(text.partition(".")[2])


def rounds_to(value: float, text: str) -> bool:
    """Whether a computed value is the printed one at its digits."""
    return round(value, printed_digits(text)) == float(text)


def correlations(values: Matrix) -> Matrix:
    """Correlations with A7 .. A13, as the printed tables have them."""
    return np.asarray(np.corrcoef(values.T)[:, 6:])


def _compared(experiment: Experiment, runs: int) -> list[str]:
    lines = [
        f"| k | {' | '.join(f'{m} print | {m} here' for m in METHODS)} |",
        f"| ---: | {' | '.join(['---: | ---:'] * len(METHODS))} |",
    ]
    for number, k in enumerate(SIZES):
        cells = []
        for method in METHODS:
            mean, spread = PRINTED[experiment.name][method][number]
            own, own_spread, error = measured(experiment, method, k, runs)
            margin = f" ± {error:.1g}" if error else ""
            cells.append(f"{mean} / {spread} | {own:.3g}{margin} / {own_spread:.3g}")
        lines.append(f"| {k} | {' | '.join(cells)} |")
    return [*lines, ""]


def _matrix_lines(text: list[list[str]], cell: Callable[[int, int, str], str]) -> list[str]:
    lines = [
        f"| | {' | '.join(f'A{j}' for j in range(7, 14))} |",
        f"| --- | {' | '.join(['---:'] * 7)} |",
    ]
    for row, cells in enumerate(text):
        first = 7 - len(cells)
        shown = [""] * first + [cell(row, first + j, printed) for j, printed in enumerate(cells)]
        lines.append(f"| A{row + 1} | {' | '.join(shown)} |")
    return [*lines, ""]


def _single_runs(experiment: Experiment, runs: int) -> list[str]:
    """Tables 3.6 to 3.9 beside print."""
    original = correlations(experiment.values)
    _, text = printed_matrix("original")
    lines = [
        "## Table 3.6: correlations in Census",
        "",
        "Computed here; where the printed digits differ, they follow in brackets.",
        "",
        *_matrix_lines(text, lambda i, j, t: _with_print(original[i, j], t)),
    ]
    identical_12 = correlations(identical(experiment, 12))
    _, text = printed_matrix("MDAV-ID")
    lines += [
        "## Table 3.7: MDAV-ID, k = 12",
        "",
        "The method draws nothing, so a single execution is the whole of it.",
        "",
        *_matrix_lines(text, lambda i, j, t: _with_print(identical_12[i, j], t)),
    ]
    for number, method in ((8, "MDAV-SWAP"), (9, "IR-SWAP")):
        source = Seeded(12)
        drawn = np.stack([correlations(MASKS[method](experiment, 12, source)) for _ in range(runs)])
        low, high = drawn.min(axis=0), drawn.max(axis=0)
        values, text = printed_matrix(method)
        inside = [
            low[i, j] - 0.5 * 10.0 ** -printed_digits(cell)
            <= values[i, j]
            <= high[i, j] + 0.5 * 10.0 ** -printed_digits(cell)
            for i, line in enumerate(text)
            for j, cell in zip(range(7 - len(line), 7), line, strict=True)
        ]
        mean = drawn.mean(axis=0)
        lines += [
            f"## Table 3.{number}: {method}, k = 12",
            "",
            f"Mean of {runs} executions, the printed single execution in brackets; {sum(inside)} of {len(inside)} "
            f"printed values lie between the least and the greatest of these executions.",
            "",
            *_matrix_lines(text, lambda i, j, t, mean=mean: f"{mean[i, j]:.2g} ({t})"),  # type: ignore[misc]
        ]
    return lines


def _with_print(value: float, text: str) -> str:
    shown = f"{value:.{printed_digits(text)}f}".replace("0.", ".", 1)
    return shown if rounds_to(value, text) else f"{shown} ({text})"


def report(runs: int) -> str:
    both = (census(), eia())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    lines = [
        "# Chapter 3 of the thesis, computed again",
        "",
        f"Written by `python -m benchmarks.thesis3 --runs {runs}` on {datetime.date.today()}, {os.cpu_count()} cores, "
        f"{memory:.0f} GiB of memory.",
        "",
        "What produced the printed tables: MDAV on unscaled values. MDAV-ID replaces all attributes by cluster means. "
        "MDAV-SWAP takes one protected attribute after the other, groups by all other columns as they are by then, and "
        "permutes that attribute inside groups. IR-SWAP permutes each protected attribute among neighbours in rank.",
        "",
        *_single_runs(both[0], runs),
    ]
    about = {
        "Census": "## Table 3.10: change of correlations, Census",
        "EIA": "## Table 3.11: change of correlations, EIA",
    }
    conventions = {
        "Census": "A7 to A13 are protected; the 63 pairs that touch one of them count, the mean is over all 78 pairs.",
        "EIA": "The ten revenue and sales columns, all protected; 55 pairs, each attribute with itself included.",
    }
    for experiment in both:
        lines += [
            about[experiment.name],
            "",
            f"{conventions[experiment.name]} Mean / standard deviation of |change|; here with the standard error of "
            f"the mean over {runs} executions where something is drawn (print: 100).",
            "",
            *_compared(experiment, runs),
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("docs/thesis-chapter-3.md"))
    arguments = parser.parse_args()
    arguments.out.write_text(report(arguments.runs), "utf-8")


if __name__ == "__main__":
    main()
