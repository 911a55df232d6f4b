"""What every idea of pairs-dp is worth: one is left out, or done another way, at a time; docs/pairs-quality.md leaves.

python -m benchmarks.pairs [--runs 10] [--first 200] [--studies tails ...] [--tables Census ...]
                           [--variations "as it is" ...] [--page-only]
                           [--keep benchmarks/pairs_measured.jsonl] [--out docs/pairs-quality.md]

Seeds start at 200, where neither the constants nor docs/utility.md were looked at. What was measured is kept in a file
at once: run the command again to go on. Trials by which something was chosen have seeds from 300 on, and are recorded.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import itertools
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

import shoal
from benchmarks.pairs_tables import MORE
from benchmarks.utility_scores import correlation_error, marginal_error, mean_error, rank_error
from benchmarks.utility_tables import FRESH, TASKS, Task
from shoal.mechanisms.pairs import correlation, currency, joint, model, oneway, plan, rows, tables
from shoal.mechanisms.pairs.currency import Concentrated, PureEpsilon, Shape
from shoal.mechanisms.tree import intervals
from shoal.noise import discrete_laplace, round_up_scale
from shoal.workers import machine_words

ROOT = Path(__file__).parents[1]
# trials by which something was chosen, or dropped
RECORDED = ROOT / "benchmarks" / "pairs_recorded.jsonl"
# what the page is made of
MEASURED = ROOT / "benchmarks" / "pairs_measured.jsonl"
ALL = TASKS | FRESH | MORE
SCORES = {
    "marginal": marginal_error,
    "mean": mean_error,
    "correlation": correlation_error,
    "rank": rank_error,
}
DELTA = {"delta": "0.000001"}


@dataclass(frozen=True)
class Variation:
    """The method with something else in a place: constants and functions of its modules."""

    name: str
    changes: Sequence[tuple[Any, str, Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    method: str = "pairs-dp"


def _laplace_deviation(self: PureEpsilon, shape: Shape, share: Fraction) -> float:
    return self.factor * shape.unit * math.sqrt(2) * shape.blocks / float(share)


def _laplace_needed(self: PureEpsilon, shape: Shape, deviation: float) -> float:
    return self.factor * shape.unit * math.sqrt(2) * shape.blocks / deviation


def _laplace(self: PureEpsilon, exact: Any, shape: Shape, share: Fraction, source: Any) -> Any:
    scale = round_up_scale(shape.unit * self.factor * shape.blocks / share)
    noise = discrete_laplace(scale, exact.size, source)
    return (exact + noise.reshape(exact.shape)).astype(np.float64)


def _floor(noise: float) -> float:
    return min(max(0.6 * noise, 0.002), 0.03)


def _plain(correlations: Any, scale: Any, noise: float) -> Any:
    return correlation.nearest_correlation(correlations, _floor(noise))


def _as_one(correlations: Any, scale: Any, noise: float) -> Any:
    """All products shrunk alike, by how much of their variance noise explains."""
    off = ~np.eye(len(correlations), dtype=np.bool_)
    variance = float(((correlations * np.outer(scale, scale))[off] ** 2).mean())
    return correlation.nearest_correlation(correlations * max(0.0, 1 - noise**2 / variance), _floor(noise))


def _as_blocks(values: Any, scale: Any, source: Any) -> Any:
    """Laplace noise as wide as block noise on contrasts of all attributes at once would be; sums are left alone.

    Of B attributes with k contrasts each a block has k/√((k+1)(k+2)) of the deviation of Laplace noise where B is
    large, and a contrast is half as noisy, by variance, as the difference of two counts.
    """
    if isinstance(scale, Fraction):
        contrasts = max(values.size // 2, 1)
        part = contrasts / math.sqrt((contrasts + 1) * (contrasts + 2)) / math.sqrt(2)
        scale = round_up_scale(scale * Fraction(part))
    return (values + discrete_laplace(scale, values.size, source)).astype(np.float64)


def _independent(first: Any, second: Any, r: float) -> Any:
    return np.outer(first, second)


NO_TAILS = [(joint, "TOO_MUCH", 0.0)]
ALL_TAILS = [(joint, "TOO_MUCH", 1e9)]
# what rounds of bisection asked for before they looked for what is least known
FIXED = (0.5, 0.5, 0.2, 0.8, 0.5, 0.5, 0.1, 0.9, 0.5, 0.5)

VARIATIONS = (
    Variation("as it is"),
    Variation(
        "Laplace noise instead of noise fitted to a record",
        [
            (PureEpsilon, "deviation", _laplace_deviation),
            (PureEpsilon, "needed", _laplace_needed),
            (PureEpsilon, "measure", _laplace),
            (currency, "FEWEST_SIGNS", 10**6),
        ],
    ),
    Variation("blocks instead of elliptope noise", [(currency, "FEWEST_SIGNS", 10**6)]),
    Variation(
        "bisection asks for fixed quantiles only",
        [(oneway, "_QUANTILES", FIXED), (oneway, "_MORE_QUANTILES", FIXED)],
    ),
    Variation("four rounds of bisection", [(plan, "_MOST_ROUNDS", 4)]),
    Variation("eight rounds of bisection", [(plan, "_MOST_ROUNDS", 8)]),
    Variation("trees instead of bisection", [(plan, "_SHALLOW", 0)]),
    Variation("trees where they have three levels", [(plan, "_SHALLOW", 2)]),
    Variation("bisection for three levels, one cut for pairs", [(plan, "_HALVED", 9)]),
    Variation("cut points: later levels get 1.6 times more", [(PureEpsilon, "cut_growth", Fraction(8, 5))]),
    Variation("correlations never shrunk", [(model, "shrunk", _plain)]),
    Variation("spectral shrinkage always", [(correlation, "_LITTLE_EDGE", 0.0)]),
    Variation("correlations shrunk as one", [(model, "shrunk", _as_one)]),
    Variation("hopeless only above twice the noise", [(PureEpsilon, "hopeless", 0.24)]),
    Variation("pairs measured however hopeless", [(PureEpsilon, "hopeless", 1e9)]),
    Variation("products of signs only", [(PureEpsilon, "worth", 1e9)]),
    Variation("tables start from independence", [(tables, "copula_table", _independent)]),
    Variation("no odd records", [(tables, "_ODD", 0.0)]),
    Variation("contrasts fitted once, not in turn", [(tables, "_PASSES", 0)]),
    Variation("no polish", [(rows, "SWEEPS", 0)]),
    Variation("no Gibbs sweeps", [(rows, "GIBBS", 0)]),
    Variation("single attributes get 30%", [(PureEpsilon, "oneway", Fraction(3, 10))]),
    Variation("single attributes get 70%", [(PureEpsilon, "oneway", Fraction(7, 10))]),
    Variation("n private", options={"rows": None}),
    Variation("replace-one", options={"rows": None, "neighbours": "replace-one"}),
    Variation("without joint tails", NO_TAILS),
    Variation("joint tails whatever their noise", ALL_TAILS),
    Variation("values exchanged in all bins", [(joint, "_WIDE", -1.0)]),
    Variation("δ = 1e-6", options=DELTA),
    Variation("δ = 1e-6, without joint tails", NO_TAILS, DELTA),
    Variation("δ = 1e-6, joint tails whatever their noise", ALL_TAILS, DELTA),
    Variation("δ = 1e-6, pairs measured however hopeless", [(Concentrated, "hopeless", 1e9)], DELTA),
    Variation("tree-dp", options={"neighbours": "add-remove"}, method="tree-dp"),
    Variation(
        "tree-dp, interval counts as noisy as blocks would be",
        [(intervals, "noisy", _as_blocks)],
        {"neighbours": "add-remove"},
        "tree-dp",
    ),
)
_OWN = (*(v.name for v in VARIATIONS if v.method != "pairs-dp"), "values exchanged in all bins")


@dataclass(frozen=True)
class Study:
    """Which variations are measured on which tables, and what they are to show."""

    title: str
    tables: Sequence[str]
    epsilons: Sequence[str]
    variations: Sequence[str]
    words: str = ""


STUDIES = {
    "ideas": Study(
        "One idea at a time",
        ("Census", "Wine", "EIA", "Diabetes"),
        ("1", "10"),
        [v.name for v in VARIATIONS if v.name not in _OWN and not v.name.startswith("δ = 1e-6,")],
    ),
    "levels": Study(
        "Where trees would have three levels",
        (*(f"{name} 4" for name in ("Normal", "Skewed", "Zeros", "Humps", "Atoms")), "RAND"),
        ("1",),
        (
            "as it is",
            "trees where they have three levels",
            "bisection for three levels, one cut for pairs",
            "bisection asks for fixed quantiles only",
        ),
        "Made-up tables of 5,000 x 5 whose columns have one shape each: normal, skewed, zero "
        "for many, two humps, five values; and a real one with few values in most columns. Trees have cut points at "
        "private medians, and noise in their wide outer intervals moves means; bisection asks where most can be in "
        "the wrong place. It is better for smooth columns, and for means everywhere; trees are better for columns of "
        "few values and for what is learned from these.",
    ),
    "tails": Study(
        "Joint tails",
        ("EIA", *(f"{name} 4" for name in ("Lognormal", "Pareto", "Mixture", "Parts", "Together", "Mixed"))),
        ("10", "100"),
        (
            "as it is",
            "without joint tails",
            "joint tails whatever their noise",
            "values exchanged in all bins",
            "δ = 1e-6",
            "δ = 1e-6, without joint tails",
            "δ = 1e-6, joint tails whatever their noise",
        ),
        "For pairs with a heavy column, sums of products of values about their means are measured, and values are "
        "exchanged between rows of one wide bin until the rows have them. It is done where noise on the correlations "
        f"is at most {joint.TOO_MUCH:g} in the median of the pairs, which follows from ε, the number of rows, and the "
        "noisy distributions of single columns; elsewhere a row is the same with and without. The made-up tables were "
        "not looked at while the rule was made: lognormal columns of two factors, power tails over a Gaussian copula, "
        "a few large firms among small ones, totals and their parts, Student's t with 3 degrees of freedom, and two "
        "heavy columns among others.",
    ),
    "small": Study(
        "Small tables, and hopeless ones",
        [f"{name}, {rows} rows" for name in ("Census", "Wine") for rows in (30, 100, 300)],
        ("1", "10"),
        (
            "as it is",
            "pairs measured however hopeless",
            "n private",
            "δ = 1e-6",
            "δ = 1e-6, pairs measured however hopeless",
            "tree-dp",
        ),
        "The first rows of Census (10 columns) and Wine (12). Pairs count as hopeless where noise on products of signs "
        "would drown the correlations of so many columns: then all of ε goes to single columns.",
    ),
    "tree": Study(
        "What tree-dp could take over",
        ("Census", "Wine", "Adult"),
        ("0.1", "1", "10"),
        ("tree-dp", "tree-dp, interval counts as noisy as blocks would be"),
        "An estimate: Laplace noise as wide as that of blocks, for the counts of intervals of single columns; cut "
        "points and boxes, whose noise blocks do not change, are as they were. Single columns gain a tenth at most, "
        "relations nothing, so it was not built. Where ε is small, tree-dp has no cut points that joint bisection "
        "could replace: there it releases one interval.",
    ),
}


def scores(task: Task, variation: Variation, epsilon: str, seeds: range) -> dict[str, list[float]]:
    """Every score of every seed."""
    found: dict[str, list[float]] = {name: [] for name in (*SCORES, "seconds")}
    options = {"rows": task.records.num_rows, **variation.options}
    with contextlib.ExitStack() as stack:
        for place, name, value in variation.changes:
            stack.enter_context(mock.patch.object(place, name, value))
        for seed in seeds:
            started = time.process_time()
            made = shoal.protect(
                task.records, task.schema(), variation.method, epsilon, seed=seed, **options
            ).data
            found["seconds"].append(time.process_time() - started)
            for name, score in SCORES.items():
                found[name].append(score(task.records, made, task.domains))
    return found


@dataclass(frozen=True)
class Figure:
    """Means over seeds and their standard errors, by score; seconds are a median."""

    table: str
    epsilon: str
    variation: str
    first: int
    runs: int
    means: Mapping[str, float]
    errors: Mapping[str, float]
    seconds: float | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.table, self.epsilon, self.variation


def measured(task: Task, variation: Variation, epsilon: str, seeds: range) -> Figure:
    found = scores(task, variation, epsilon, seeds)
    root = math.sqrt(len(seeds))
    return Figure(
        task.name,
        epsilon,
        variation.name,
        seeds.start,
        len(seeds),
        {name: float(np.mean(found[name])) for name in SCORES},
        {name: float(np.std(found[name], ddof=1)) / root for name in SCORES},
        float(np.median(found["seconds"])),
    )


@dataclass(frozen=True)
class Time:
    """Processor time of one release."""

    what: str
    rows: int
    columns: int
    seconds: float


def sized(number: int, columns: int) -> Time:
    """Of a made-up table of this size."""
    random = np.random.default_rng(0)
    weights = random.normal(size=(columns, columns)) * 0.4 + np.eye(columns)
    values = np.clip(random.normal(size=(number, columns)) @ weights.T * 15 + 50, 0, 100)
    table = pd.DataFrame(values, columns=[f"c{i}" for i in range(columns)])
    entries = [{"name": name, "lo": 0, "hi": 100} for name in table]
    return timed("made up", table, shoal.Schema.from_dict({"attribute": entries}))


def timed(what: str, table: Any, schema: shoal.Schema) -> Time:
    started = time.process_time()
    released = shoal.protect(table, schema, "pairs-dp", 1).data
    return Time(what, len(released), len(schema.attributes), time.process_time() - started)


# rows and columns: growth in n, then in d
SIZES = (
    (1_000, 10),
    (10_000, 10),
    (100_000, 10),
    (1_000_000, 10),
    (20_000, 5),
    (20_000, 10),
    (20_000, 20),
    (20_000, 40),
    (20_000, 60),
)
# rows, columns, seconds of processor time that were aimed at
LIMITS = {"Adult": 3.0, "made up": 30.0}


def times() -> Iterator[Time]:
    """Processor time of tables of growing size; the first release compiles, and is not counted."""
    sized(500, 3)
    adult = TASKS["Adult"]()
    yield timed("Adult", adult.records, adult.schema())
    for number, columns in SIZES:
        yield sized(number, columns)


HEAD = (
    "Every row leaves one idea of [`pairs-dp`](proofs/pairs.md) out, or does it another way. Domains are "
    "those of `benchmarks/utility_tables.py`, the number of rows is given, one record is added or removed, "
    "and there is no δ, unless a row says so. Constants were chosen on Census, Wine and Adult with other "
    "seeds, two of them (the floor of latent variances, the share of odd records) with a look at EIA.",
    "",
    "Errors: *marginal*, mean Wasserstein distance in parts of the domain (names: total variation); *mean*, of the "
    "mean of the column that is off most, in standard deviations; "
    "*correlation*, mean absolute difference of Pearson correlations; *rank*, of rank correlations. Means ± "
    "the standard error of the mean.",
)

TRIALS = (
    "By these something was chosen, or dropped; errors as above. Shrinkage: *spectral* removes what eigenvalues of "
    "noise explain, *diagonal kept* does so with ones on the diagonal, *as one* shrinks all products alike, *never* "
    "takes the nearest correlation matrix. None is best everywhere. The rule that was kept looks at the noise: "
    "spectral where noise alone makes eigenvalues above a half. Pairs that count as hopeless are not measured: a "
    "larger limit brought no better correlations, and on Census worse marginals. Made-up tables have 3 or 4 common "
    "factors. `tree-dp`, one record added or removed: the density that places values inside intervals here does not "
    "help it everywhere (outer intervals reach to the ends of the domain), and it keeps its own. Block noise and joint "
    "bisection were not tried there.",
)

TRIED = (
    "## What was tried and is not there",
    "",
    "Seen on a few development seeds, and not measured again here.",
    "",
    "- *One block of noise for all nodes of a pair* at each fineness, as in the first design: a pivot whose "
    "nodes are cells apart has 1.2 to 1.5 times less noise for the same budget "
    "([why](proofs/pairs.md#5-pairs)).",
    "- *Plain halving of intervals* instead of asking where the answers so far put a quantile, with values "
    "spread evenly between thresholds: larger errors of marginals.",
    "- *Latent normals placed independently at first*, then by Gibbs sweeps: with strong correlations the "
    "sweeps do not mix.",
    "- *A fixed floor for the variance of latent normals*: Pearson correlations of heavy tails stop improving.",
    "- *Fewer odd records* than 2%: rank correlations at a large ε get worse.",
    "",
    "Not built: products of three signs (with or without a column to predict), so that structure of three columns "
    "that no two of them show is lost. A measured joint tail of two heavy columns is not there either: a prototype "
    "that spent a fifth of the pairs' budget on sums of products of clipped values, and exchanged values inside bins "
    "until the rows had them, about halved the error of Pearson correlations on EIA at ε = 100 (trials above), but at "
    "ε = 1, and at ε = 10 with a δ, it was larger, and on a made-up lognormal table at ε = 10 nothing was gained. "
    "These are three or four development seeds; a rule that tells beforehand where it helps is missing.",
)


def read(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def add(path: Path, one: Figure | Time) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")


def _figures(entries: Sequence[Mapping[str, Any]]) -> list[Figure]:
    return list({f.key: f for f in (Figure(**one) for one in entries if "variation" in one)}.values())


def figure_table(found: Sequence[Figure]) -> list[str]:
    """One row for each variation."""
    known = [score for score in SCORES if any(score in one.means for one in found)]
    timed = any(one.seconds is not None for one in found)
    head = ["", *known, *(["seconds"] if timed else [])]
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    for one in found:
        cells = [f"{one.means[s]:.4f} ± {one.errors[s]:.4f}" if s in one.means else "-" for s in known]
        cells += [f"{one.seconds:.2f}" if one.seconds is not None else "-"] * timed
        lines.append(f"| {one.variation} | {' | '.join(cells)} |")
    return lines


def _sections(found: Sequence[Figure], level: str) -> list[str]:
    lines: list[str] = []
    for table, epsilon in dict.fromkeys((one.table, one.epsilon) for one in found):
        these = [one for one in found if (one.table, one.epsilon) == (table, epsilon)]
        seeds = {(one.first, one.runs) for one in these}
        words = "; ".join(f"{first} to {first + runs - 1}" for first, runs in sorted(seeds))
        lines += [f"{level} {table}, ε = {epsilon}", "", f"Seeds {words}.", "", *figure_table(these), ""]
    return lines


def _speed(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    found = [Time(**one) for one in entries if "what" in one]
    if not found:
        return []
    lines = [
        "## Speed",
        "",
        "Processor time of one release at ε = 1 on one core, reading not counted, compiled kernels at hand. Aims: "
        f"Adult under {LIMITS['Adult']:g} seconds, a million rows of ten columns under {LIMITS['made up']:g}.",
        "",
        "| table | rows | columns | seconds |",
        "| --- | ---: | ---: | ---: |",
    ]
    latest = {(one.what, one.columns, round(math.log10(one.rows), 1)): one for one in found}
    lines += [f"| {t.what} | {t.rows:,} | {t.columns} | {t.seconds:.2f} |" for t in latest.values()]
    return [*lines, ""]


def _study(study: Study, found: Sequence[Figure]) -> list[str]:
    order = [list(study.tables), list(study.epsilons), list(study.variations)]
    these = [one for one in found if all(part in known for part, known in zip(one.key, order, strict=True))]
    if not these:
        return []
    these.sort(key=lambda one: [known.index(part) for part, known in zip(one.key, order, strict=True)])
    words = [study.words, ""] if study.words else []
    return [f"## {study.title}", "", *words, *_sections(these, "###")]


def page(kept: Sequence[Mapping[str, Any]], recorded: Sequence[Mapping[str, Any]]) -> str:
    found = _figures(kept)
    lines = [
        "# Quality of pairs-dp",
        "",
        f"Written by `python -m benchmarks.pairs` on {datetime.date.today()}, {machine_words()}.",
        "",
        *HEAD,
        "",
    ]
    for study in STUDIES.values():
        lines += _study(study, found)
    lines += _speed(kept)
    trials = _figures(recorded)
    if trials:
        lines += ["## Trials on development seeds", "", *TRIALS, "", *_sections(trials, "###")]
    return "\n".join([*lines, *TRIED, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [variation.name for variation in VARIATIONS]
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first", type=int, default=200)
    parser.add_argument("--studies", nargs="*", default=list(STUDIES), choices=list(STUDIES))
    parser.add_argument(
        "--tables", nargs="*", default=list(ALL), choices=list(ALL), help="measure only these"
    )
    parser.add_argument("--variations", nargs="*", default=names, choices=names, help="measure only these")
    parser.add_argument("--speed", action="store_true", help="measure times only")
    parser.add_argument("--page-only", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--keep", type=Path, default=MEASURED, help="what was measured")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pairs-quality.md")
    arguments = parser.parse_args()
    entries = read(arguments.keep)
    if not arguments.page_only and not arguments.speed:
        seeds = range(arguments.first, arguments.first + arguments.runs)
        known = {one.key for one in _figures(entries)}
        for study in (STUDIES[name] for name in arguments.studies):
            for table in (name for name in study.tables if name in arguments.tables):
                task = ALL[table]()
                for epsilon, variation in itertools.product(study.epsilons, VARIATIONS):
                    wanted = variation.name in study.variations and variation.name in arguments.variations
                    if not wanted or (task.name, epsilon, variation.name) in known:
                        continue
                    found = measured(task, variation, epsilon, seeds)
                    add(arguments.keep, found)
                    known.add(found.key)
                    print(found.key, flush=True)
    if not arguments.page_only and (arguments.speed or not any("what" in one for one in entries)):
        for time_taken in times():
            add(arguments.keep, time_taken)
            print(time_taken, flush=True)
    arguments.out.write_text(page(read(arguments.keep), read(RECORDED)), "utf-8")
    print(f"Written to {arguments.out}.")


if __name__ == "__main__":
    main()
