"""The experiments of the cross-moment paper beside its print: Census and EIA come in, docs/cross-moment.md leaves.

python -m benchmarks.cross_moment [--quick] [--workers 2] [--keep FILE] [--out docs/cross-moment.md]
"""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import shoal
from shoal.machine import machine_words as machine
from shoal.reproduce.cross_moment.figures import CENSUS, EPSILONS, FIRST, Figures
from shoal.reproduce.cross_moment.measure import SETS, Cell, errors, plain_noise, table
from shoal.io import read
from shoal.presets import PRESETS
from shoal.release import prepare

PAGE = Path(__file__).parents[1] / "docs" / "cross-moment.md"

# Table 1 of the paper: plain Laplace noise, log2 SSE at the six ε
TABLE_1: Mapping[str, tuple[float, ...]] = {
    "Census 2": (47.68, 47.16, 46.71, 46.33, 45.99, 45.68),
    "Census 3": (49.13, 48.60, 48.16, 47.77, 47.44, 47.14),
    "Census 4": (49.97, 49.44, 49.00, 48.61, 48.27, 47.97),
    "EIA 2": (60.28, 59.75, 59.30, 58.92, 58.58, 58.27),
    "EIA 3": (61.45, 60.93, 60.48, 60.09, 59.76, 59.46),
    "EIA 4": (62.87, 62.34, 61.89, 61.50, 61.16, 60.86),
}
# the k from which order 1 beats order 0, as printed for ε = 1 and ε = 2
K_MIN = {
    "Census 2": (283, 167),
    "Census 3": (400, 239),
    "Census 4": (510, 350),
    "EIA 2": (736, 491),
    "EIA 3": (959, 608),
    "EIA 4": (1050, 689),
}


def table_1(runs: int) -> list[str]:
    lines = [
        "## Table 1: plain Laplace noise",
        "",
        f"log2 SSE, not clipped, mean of {runs} runs, beside the printed value.",
        "",
        "| ε | " + " | ".join(SETS) + " |",
        "| --- |" + " ---: |" * len(SETS),
    ]
    worst = 0.0
    for place, epsilon in enumerate(EPSILONS):
        found = {data: plain_noise(data, epsilon, runs) for data in SETS}
        worst = max(worst, *(abs(found[data] - TABLE_1[data][place]) for data in SETS))
        cells = [f"{found[data]:.2f} ({TABLE_1[data][place]:.2f})" for data in SETS]
        lines.append(f"| {epsilon:g} | " + " | ".join(cells) + " |")
    return [*lines, "", f"Largest difference: {worst:.2f}.", ""]


def single_figures(runs: int) -> list[str]:
    """The two numbers of section 5.5 that a reader can look up."""
    baseline = errors(Cell("Census 2", "xm-b1", 100, 0.0), 1).median
    rank = errors(Cell("Census 2", "xm-6", 390, 2.0, "rank"), runs)
    assigned = errors(Cell("Census 2", "xm-6", 390, 2.0, "assignment"), runs)
    none = errors(Cell("Census 2", "xm-6", 390, 2.0, "none"), runs)
    return [
        "## Figures quoted in the text",
        "",
        "| | printed | found |",
        "| --- | ---: | ---: |",
        f"| B1, Census 2, k = 100 | 35.4 | {baseline:.2f} |",
        f"| method 6, Census 2, k = 390, ε = 2, match=rank | 34.9 | {rank.median:.2f} |",
        f"| the same, match=assignment | 34.9 | {assigned.median:.2f} |",
        f"| the same, match=none | 34.9 | {none.median:.2f} |",
        "",
        f"Medians of {runs} runs; the middle half of the runs with match=rank lies between "
        f"{np.quantile(rank.values, 0.25):.2f} and {np.quantile(rank.values, 0.75):.2f}. The paper does not say how a "
        "drawn row was given to a record, nor how many runs it shows.",
        "",
    ]


def k_min_lines(figures: Figures) -> list[str]:
    lines = [
        "## From which k moments pay off",
        "",
        "The k from which the median of log2 SSE stays below that of method 1, by straight lines between the sizes "
        "that were measured, match=rank. Method 2 keeps covariances, method 3 variances only.",
        "",
        "| data | printed, ε = 1 | method 3 | method 2 | printed, ε = 2 | method 3 | method 2 |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for data, printed in K_MIN.items():
        cells = []
        for epsilon, value in zip((1.0, 2.0), printed, strict=True):
            three, two = (figures.k_min(data, method, epsilon) for method in ("xm-3", "xm-2"))
            cells += [f"{value}", _differing(three, value), _differing(two, value)]
        lines.append(f"| {data} | " + " | ".join(cells) + " |")
    others = [
        ("order 2 (method 12), Census 3, ε = 2", "370", figures.k_min("Census 3", "xm-12", 2.0)),
        ("order 2 (method 12), Census 4, ε = 2", "493", figures.k_min("Census 4", "xm-12", 2.0)),
        ("order 2 (method 12), EIA 2, ε = 1", "about 1000", figures.k_min("EIA 2", "xm-12", 1.0)),
        ("ranking (21 against 20), Census 4, ε = 1", "364", figures.k_min("Census 4", "xm-21", 1.0, "xm-20")),
        ("ranking (21 against 20), Census 4, ε = 2", "351", figures.k_min("Census 4", "xm-21", 2.0, "xm-20")),
        ("ranking (24 against 20), Census 4, ε = 2", "364", figures.k_min("Census 4", "xm-24", 2.0, "xm-20")),
        (
            "ranking (21 against 20), EIA 4, ε = 1",
            "close to 1000",
            figures.k_min("EIA 4", "xm-21", 1.0, "xm-20"),
        ),
        (
            "ranking (21 against 20), EIA 4, ε = 2",
            "around 800",
            figures.k_min("EIA 4", "xm-21", 2.0, "xm-20"),
        ),
    ]
    lines += ["", "| | printed | found |", "| --- | ---: | ---: |"]
    lines += [f"| {what} | {printed} | {_plain(found)} |" for what, printed, found in others]
    return [*lines, ""]


def _plain(found: float | None) -> str:
    return "never" if found is None else f"{found:.0f}"


def _differing(found: float | None, printed: int) -> str:
    return "never" if found is None else f"{found:.0f} ({found / printed - 1:+.0%})"


def statements(figures: Figures) -> list[str]:
    """What the paper says about its figures, and whether it is found again."""
    sizes = {data: figures.sizes(data) for data in SETS}

    def least(data: str, methods: Sequence[str], epsilon: float) -> list[str]:
        columns = [figures.medians(data, method, epsilon) for method in methods]
        return [methods[int(np.argmin(values))] for values in zip(*columns, strict=True)]

    def share(hits: list[bool]) -> str:
        return f"{sum(hits)} of {len(hits)}"

    first = [
        name in ("xm-3", "xm-6") for data in CENSUS for e in (1.0, 2.0) for name in least(data, FIRST[1:], e)
    ]
    two = [
        name == "xm-2"
        for name, k in zip(least("EIA 2", FIRST[1:], 1.0), sizes["EIA 2"], strict=True)
        if k >= 469
    ]
    second = [
        name == "xm-12"
        for data in SETS
        for e in (1.0, 2.0)
        for name in least(data, [f"xm-{n}" for n in range(8, 14)], e)
    ]
    eigen = [f"xm-{n}" for n in range(14, 20)]
    fifteen = [name == "xm-15" for data in SETS for name in least(data, eigen, 2.0)]
    worse = [
        min(values) > base
        for data in SETS
        for base, values in zip(
            figures.medians(data, "xm-1", 2.0),
            zip(*(figures.medians(data, name, 2.0) for name in eigen), strict=True),
            strict=True,
        )
    ]
    joint = [
        min(a, b) > max(rest)
        for data in SETS
        for a, b, *rest in zip(
            *(figures.medians(data, f"xm-{n}", 2.0) for n in (14, 17, 15, 16, 18, 19)), strict=True
        )
    ]
    return [
        "## What the paper says of its figures",
        "",
        "| statement | found, of the points measured |",
        "| --- | --- |",
        f"| Census: methods 3 and 6 have the least error of order 1 | {share(first)} |",
        f"| EIA 2, ε = 1: method 2 is better than method 3 from k = 469 on | {share(two)} |",
        f"| method 12 is the best of order 2 | {share(second)} |",
        f"| method 1 beats every eigen method | {share(worse)} |",
        f"| method 15 is the best eigen method | {share(fifteen)} |",
        f"| the joint eigen methods 14 and 17 are the worst | {share(joint)} |",
        "",
        "In the paper's Figures 12 and 13 method 21 is far better than method 22. By its own Algorithms 1 to 3 they "
        "are one method: a single attribute has one mean and one variance, and either way each gets half of ε.",
        "",
    ]


def all_methods() -> list[str]:
    """Every preset once, through `shoal.protect`."""
    data = SETS["Census 4"]
    frame = table(data.file)
    original = np.stack([frame[name].to_numpy() for name in data.columns], axis=1)
    lines = [
        "## All 34 methods",
        "",
        "One release each of Census 4 by `shoal.protect` with k = 200, ε = 2, seed 0: log2 SSE with rows as drawn "
        "(match=none) and with match=rank, and the claim.",
        "",
        "| method | what it does | as drawn | rank | claim |",
        "| --- | --- | ---: | ---: | --- |",
    ]
    for name, method in PRESETS.items():
        if not name.startswith("xm-"):
            continue
        found = []
        for match in ("none", "rank"):
            options: dict[str, Any] = {} if name.startswith("xm-b") else {"epsilon": 2}
            if method.moments:
                options["match"] = match
            release = shoal.protect(
                frame, method=name, k=200, seed=0, columns=data.columns, domain_from_data=1.5, **options
            )
            drawn = np.stack([release.aligned[column].to_numpy() for column in data.columns], axis=1)
            found.append(f"{np.log2(((original - drawn) ** 2).sum()):.2f}")
        lines.append(f"| `{name}` | {method.about} | {found[0]} | {found[1]} | {release.statement.model} |")
    return [*lines, ""]


def speed(rows: int) -> list[str]:
    """Processor time of everything after the partition, beside the partition."""
    rng = np.random.default_rng(0)
    values = np.clip(np.exp(rng.normal(size=(rows, 10)) @ rng.normal(size=(10, 10)) / 3), 0, 50)
    frame = pa.table({f"c{place}": column for place, column in enumerate(values.T)})
    lines = [
        "## Speed",
        "",
        f"{rows:,} records of 10 columns, k = 100: seconds of processor time, best of three.",
        "",
        "| method | partition (MDAV) | moments, noise, repair and rows | ratio |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name in ("xm-2", "xm-3", "xm-8", "xm-14"):
        ready = prepare(
            read(frame),
            method=name,
            epsilon=1,
            k=100,
            seed=1,
            domains=dict.fromkeys(frame.column_names, (0, 50)),
        )
        run, rest, part = ready.mechanism, [], []
        assert run.freeze is not None
        assert run.run_frozen is not None
        partition = prepare(
            read(frame),
            method="xm-1",
            epsilon=1,
            k=100,
            seed=1,
            domains=dict.fromkeys(frame.column_names, (0, 50)),
        )
        held = run.freeze(ready.method, ready.described, ready.plan, lambda *_: None, None)
        for _ in range(3):
            started = time.process_time()
            run.freeze(partition.method, partition.described, partition.plan, lambda *_: None, None)
            between = time.process_time()
            run.run_frozen(ready.method, ready.described, ready.plan, ready.source, lambda *_: None, held)
            part.append(between - started)
            rest.append(time.process_time() - between)
        lines.append(f"| `{name}` | {min(part):.2f} s | {min(rest):.2f} s | {min(rest) / min(part):.2f} |")
    return [*lines, ""]


def report(quick: bool, workers: int, keep: Path | None) -> tuple[str, dict[str, str]]:
    runs = 5 if quick else 30
    figures = Figures(quick, runs, workers, keep)
    started = time.process_time()
    files = figures.drawn()
    body = [
        *table_1(10 if quick else 60),
        *single_figures(60 if quick else 200),
        *k_min_lines(figures),
        *statements(figures),
        *all_methods(),
        *speed(20_000 if quick else 100_000),
        "## Figures",
        "",
        f"Medians of {runs} runs (seeds 0, 1, 2, ...), rows matched by rank; B1 to B8 are the baselines without noise.",
        "",
    ]
    for name in files:
        body += [f"![{name.removesuffix('.svg')}](figures/{name})", ""]
    minutes = figures.minutes + (time.process_time() - started) / 60
    command = "python -m benchmarks.cross_moment" + (" --quick" if quick else "")
    head = [
        "# Cross-moment microaggregation, recomputed",
        "",
        f"Written by `{command}` on {datetime.date.today()}, {machine()}: {minutes:.0f} minutes of processor time, "
        f"shared by {workers} processes, on a machine that also did other work.",
        "",
        "Domains are 0 to 1.5 times the maximum, as in the paper, which makes all of this an experiment. SSE is that "
        "of unrounded rows in the columns' own units. Census n means the first n of FEDTAX, POTHVAL, INTVAL, FICA; EIA "
        "n of RESREVENUE, RESSALES, COMREVENUE, COMSALES (negative values are clipped to 0).",
        "",
    ]
    return "\n".join([*head, *body]), files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and runs, under three minutes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--keep", type=Path, help="file of measured points; an interrupted run goes on from it"
    )
    parser.add_argument("--out", type=Path, default=PAGE)
    arguments = parser.parse_args()
    text, files = report(arguments.quick, arguments.workers, arguments.keep)
    folder = arguments.out.parent / "figures"
    folder.mkdir(exist_ok=True)
    for name, drawing in files.items():
        (folder / name).write_text(drawing, "utf-8")
    arguments.out.write_text(text, "utf-8")
    print(f"Written to {arguments.out}.")


if __name__ == "__main__":
    main()
