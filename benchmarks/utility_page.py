"""The page of the utility benchmark: who wins where, from the runs on file."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from scipy.stats import t

from benchmarks.utility_cells import NIST_TABLE, ORIGINAL, Cell, missing_runs
from benchmarks.utility_methods import LARGEST_MODEL, LIMIT, OURS, THEIRS
from benchmarks.utility_scores import QUANTILES, ROWS, SMALLEST_GROUP, TRIPLES
from benchmarks.utility_tables import BINS, DEVELOPMENT, REPORTED, SHORT, Regression, Source, Yes
from shoal.workers import machine_words

NOTHING = "No table has runs of both sides yet."
ONCE = "`pairs-dp` is measured on the reported tables once, after its last change."
# two errors closer than this part of the larger one are a tie, however small their intervals are
MARGIN = 0.05


@dataclass(frozen=True)
class Score:
    """A score on the page; its error is the distance from the best value."""

    words: str
    form: str
    best: float = 0.0

    def error(self, value: float) -> float:
        return abs(value - self.best)


SCORES: Mapping[str, Score] = {
    "tv1": Score("total variation of single columns", ".4f"),
    "tv2": Score("total variation of pairs", ".4f"),
    "tv3": Score("total variation of triples", ".4f"),
    "names": Score("total variation of pairs of names", ".4f"),
    "cramer": Score("Cramér's V", ".4f"),
    "spearman": Score("Spearman's correlation", ".4f"),
    "deviation": Score("ratio of standard deviations", ".4f"),
    "q99": Score("99% quantile", ".4f"),
    "means": Score("means by names with many values", ".4f"),
    "regression": Score("regression coefficients", ".2f"),
    "learned": Score("AUC, trained on synthetic rows", ".4f", 1.0),
    "apart": Score("AUC, synthetic from real", ".4f", 0.5),
    "sdmetrics": Score("SDMetrics quality", ".4f", 1.0),
    "k_marginal": Score("SDNist k-marginal", ".1f", 1000.0),
    "pearson": Score("SDNist Pearson difference", ".4f"),
    "propensity": Score("SDNist propensity", ".5f"),
    "inconsistent": Score("SDNist inconsistent rows", ".4f"),
}
NIST_SCORES = ("k_marginal", "pearson", "propensity", "inconsistent")
# entries of NIST's Collaborative Research Cycle: ten columns, ε, n public
PRINTED = (
    ("AIM in print, ε = 1, δ = 1e-9", 976, 0.0221),
    ("MST in print, ε = 1, δ = 1e-9", 958, 0.0388),
    ("sdcMicro in print, k = 6", 907, 0.0388),
)
# k-marginal and mean Pearson difference that were aimed at, ε = 1
GOALS = {"pairs-dp, δ": (980.0, 0.015), "pairs-dp": (970.0, None)}


@dataclass(frozen=True)
class Figure:
    """Runs of one method: their mean, spread and number.

    Attributes:
        spread: standard deviation of the runs; None for a single one.
    """

    mean: float
    spread: float | None
    runs: int

    def text(self, form: str) -> str:
        if self.spread is None:
            return f"{self.mean:{form}}"
        half = float(t.ppf(0.975, self.runs - 1)) * self.spread / math.sqrt(self.runs)
        return f"{self.mean:{form}} ± {half:.2g}"


def figure(values: Sequence[float]) -> Figure:
    return Figure(mean(values), stdev(values) if len(values) > 1 else None, len(values))


@dataclass(frozen=True)
class Line:
    """All runs of one method on one table at one ε."""

    method: str
    figures: Mapping[str, Figure]
    errors: Mapping[str, Figure]
    seconds: float | None
    failed: str


def line_of(cells: Iterable[Cell], table: str, epsilon: str, method: str) -> Line | None:
    mine = [cell for cell in cells if (cell.table, cell.epsilon, cell.method) == (table, epsilon, method)]
    if not mine:
        return None
    good = [cell for cell in mine if not cell.failed]
    names = [name for name in SCORES if any(name in cell.scores for cell in good)]
    values = {name: [cell.scores[name] for cell in good if name in cell.scores] for name in names}
    times = [cell.seconds for cell in good if cell.seconds is not None]
    return Line(
        method,
        {name: figure(found) for name, found in values.items()},
        {name: figure([SCORES[name].error(value) for value in found]) for name, found in values.items()},
        mean(times) if times else None,
        "; ".join(sorted({cell.failed for cell in mine if cell.failed})),
    )


def interval(ours: Figure, theirs: Figure) -> float:
    """Half the 95% interval of the difference of two means (Welch); a single run has the spread of the other side."""
    if ours.spread is None and theirs.spread is None:
        return math.inf
    if ours.spread is None or theirs.spread is None:
        spread = ours.spread if theirs.spread is None else theirs.spread
        total = (spread or 0.0) ** 2 * (1 / ours.runs + 1 / theirs.runs)
        return float(t.ppf(0.975, max(ours.runs, theirs.runs) - 1)) * math.sqrt(total)
    parts = [one**2 / runs for one, runs in ((ours.spread, ours.runs), (theirs.spread, theirs.runs))]
    if not sum(parts):
        return 0.0
    below = parts[0] ** 2 / (ours.runs - 1) + parts[1] ** 2 / (theirs.runs - 1)
    return float(t.ppf(0.975, sum(parts) ** 2 / below)) * math.sqrt(sum(parts))


@dataclass(frozen=True)
class Verdict:
    """One method against the better synthesiser, by one score on one table at one ε.

    Attributes:
        says: `win` or `loss` if the errors are further apart than the interval of their difference and than a
            twentieth of the larger one, else `tie`.
    """

    table: str
    epsilon: str
    score: str
    method: str
    ours: Figure
    theirs: Figure
    rival: str
    says: str

    def words(self) -> str:
        form = SCORES[self.score].form
        return f"{self.table}: {self.ours.mean:{form}} against {self.theirs.mean:{form}} ({self.rival})"


def verdicts(
    cells: Sequence[Cell], method: str, tables: Iterable[str], epsilons: Iterable[str]
) -> list[Verdict]:
    """Every comparison of one method for which both sides were measured."""
    found = []
    for table in tables:
        for epsilon in epsilons:
            mine = line_of(cells, table, epsilon, method)
            lines = [line_of(cells, table, epsilon, one.name) for one in THEIRS]
            for name in SCORES if mine is not None else ():
                rivals = [line for line in lines if line is not None and name in line.errors]
                if mine is None or name not in mine.errors or not rivals:
                    continue
                rival = min(rivals, key=lambda line: line.errors[name].mean)
                ours, theirs = mine.errors[name], rival.errors[name]
                gain = theirs.mean - ours.mean
                clear = abs(gain) > max(interval(ours, theirs), MARGIN * max(ours.mean, theirs.mean))
                says = ("win" if gain > 0 else "loss") if clear else "tie"
                figures = mine.figures[name], rival.figures[name]
                found.append(Verdict(table, epsilon, name, method, *figures, rival.method, says))
    return found


def counts(found: Iterable[Verdict]) -> tuple[int, int, int]:
    says = [verdict.says for verdict in found]
    return says.count("win"), says.count("tie"), says.count("loss")


def verdict_table(found: Mapping[str, Sequence[Verdict]]) -> list[str]:
    """Wins, ties and losses by each score and over all of them, a column for each method."""
    lines = [
        f"| wins, ties, losses | {' | '.join(f'`{method}`' for method in found)} |",
        "| --- |" + " ---: |" * len(found),
    ]
    for name, score in (*SCORES.items(), (None, None)):
        these = [[one for one in each if name in (None, one.score)] for each in found.values()]
        if any(these):
            entries = [", ".join(map(str, counts(each))) for each in these]
            lines.append(f"| {score.words if score else 'all'} | {' | '.join(entries)} |")
    return lines


def loss_table(found: Iterable[Verdict]) -> list[str]:
    """Every loss, by score."""
    lost = [verdict for verdict in found if verdict.says == "loss"]
    lines = ["| method | score | table: Shoal against the better synthesiser |", "| --- | --- | --- |"]
    for method in dict.fromkeys(verdict.method for verdict in lost):
        for name, score in SCORES.items():
            these = [one.words() for one in lost if (one.method, one.score) == (method, name)]
            if these:
                lines.append(f"| `{method}` | {score.words} | {'; '.join(these)} |")
    return lines if len(lines) > 2 else ["None."]


def page(cells: Sequence[Cell], runs: int) -> str:
    """The whole page from the runs on file."""
    epsilons = sorted({cell.epsilon for cell in cells if cell.epsilon}, key=float)
    tables = [*DEVELOPMENT, *REPORTED]
    reported = [
        one for one in REPORTED if any(line_of(cells, one, e, m.name) for e in epsilons for m in OURS)
    ]
    lines = [
        "# Beside marginal synthesisers",
        "",
        f"Written by `python -m benchmarks.utility` on {datetime.date.today()}, {machine_words()}.",
        "",
        *PROTOCOL,
        "",
        "## Tables and runs",
        "",
        *run_table(cells, epsilons),
        "",
    ]
    for heading, chosen in (("Development tables", list(DEVELOPMENT)), ("Reported tables", reported)):
        found = {method.name: verdicts(cells, method.name, chosen, epsilons) for method in OURS}
        lines += [f"## {heading}", ""]
        if not any(found.values()):
            lines += [NOTHING if chosen else f"{NOTHING} {ONCE}", ""]
            continue
        lines += [
            *_against(cells, chosen, epsilons),
            *verdict_table(found),
            "",
            f"### Losses on {heading.lower()}",
            "",
            *loss_table([verdict for each in found.values() for verdict in each]),
            "",
        ]
    lines += ["## SDNist", "", *nist_section(cells), "", "## Every table", ""]
    for table in tables:
        for epsilon in epsilons:
            found_lines = result_table(cells, table, epsilon)
            if found_lines:
                lines += [f"### {table}, ε = {epsilon}", "", *found_lines, ""]
    return "\n".join([*lines, "## Missing runs", "", *missing_section(cells, tables, epsilons, runs), ""])


PROTOCOL = (
    "MST and AIM are the two best known synthesisers that measure noisy marginals and draw rows from a model of them. "
    "They run here in version 0.1.9 of the library `dpmm`.",
    "",
    "- **Guarantee.** MST and AIM claim (ε, δ)-differential privacy, one record added or removed, n public. "
    "`pairs-dp, δ` claims the same; `pairs-dp` claims ε-differential privacy without a δ, which is more. n is "
    f"declared to all of them. δ is 1e-6, and 1e-9 on {NIST_TABLE}, as in NIST's exercise.",
    "- **Domains** are public constants, the same for all methods, chosen after a look at the ranges of these tables. "
    "Lists of many names (airports, teams, communes) are read from the table and count as public.",
    f"- **Bins.** MST and AIM get a number as a name: one bin for each value where the domain has at most {SHORT}, "
    f"elsewhere about {BINS} public bins, which grow with the value where the tail is heavy. Synthetic values are "
    "uniform inside a bin. The bins cost them no budget. `pairs-dp` gets the range only. Without declared domains, "
    "dpmm 0.1.9 would read them from the records.",
    f"- **Settings** of MST and AIM are the defaults of dpmm; models may take {LARGEST_MODEL} MB, the limit that AIM's "
    f"authors recommend for comparisons. A run that takes more than {LIMIT} seconds of processor time is stopped, "
    "recorded as not finished, and not repeated on that table.",
    f"- **A third of the rows** is held out and never protected, except of {NIST_TABLE}.",
    "- **Wins, ties, losses** compare errors, the distance from the best possible score, with the better of MST and "
    "AIM by their mean. A win or a loss is further apart than the 95% interval of the difference, which has the spread "
    f"of both sides (Welch), and than {MARGIN:.0%} of the larger error. A synthesiser that ran once is given the "
    "spread of the other side. ± is half a 95% interval of the mean over noise, not over tables.",
    f"- **Total variation.** For pairs and triples a number counts in {QUANTILES} bins that hold equally many records; "
    f"a single column of at most {SHORT} values counts value by value. Of many triples, {TRIPLES} are drawn.",
    "- **Cramér's V** over all pairs with a name, **Spearman's correlation** over all pairs of numbers: mean absolute "
    "difference.",
    "- **Ratio of standard deviations**: mean absolute logarithm. **99% quantile**: mean error in standard deviations.",
    f"- **Means by names with many values**, in standard deviations of the number, for names with {SMALLEST_GROUP} "
    "records or more, weighted by their records.",
    "- **Regression coefficients**: mean error in standard errors of the fit to the records.",
    "- **AUC, trained on synthetic rows**: boosted trees, tested on held-out records. **AUC, synthetic from real**: "
    f"boosted trees that tell both apart, on {ROWS:,} rows of each; .5 is best.",
    "- **SDMetrics quality** is the overall score of its quality report (0 to 1).",
)


def _against(cells: Sequence[Cell], tables: Sequence[str], epsilons: Sequence[str]) -> list[str]:
    """Where a synthesiser did not finish, so that the comparison is with the other one or with none."""
    absent = {
        one.name: [
            table
            for table in tables
            if not any(getattr(line_of(cells, table, e, one.name), "figures", None) for e in epsilons)
        ]
        for one in THEIRS
    }
    both = [table for table in tables if all(table in each for each in absent.values())]
    said = [f"Not compared, for want of a finished run of either: {', '.join(both)}."] if both else []
    for name, each in absent.items():
        alone = [table for table in each if table not in both]
        if alone:
            said.append(f"Compared without {name}, which has no finished run: {', '.join(alone)}.")
    return [" ".join(said), ""] if said else []


def run_table(cells: Sequence[Cell], epsilons: Sequence[str]) -> list[str]:
    methods = [one.name for one in (*THEIRS, *OURS)]
    lines = [
        f"| table | | predicts | regression | means | {' | '.join(f'runs of {name}' for name in methods)} |",
        "| --- | --- | --- | --- | --- |" + " ---: |" * len(methods),
    ]
    for name, source in (DEVELOPMENT | REPORTED).items():
        kind = "development" if name in DEVELOPMENT else "reported"
        done = [
            str(
                sum(
                    (c.table, c.method) == (name, m) and c.epsilon in epsilons and not c.failed for c in cells
                )
            )
            for m in methods
        ]
        lines.append(f"| {name} | {kind} | {_questions(source)} | {' | '.join(done)} |")
    return lines


def _questions(source: Source) -> str:
    def predicts(target: Yes | None) -> str:
        if target is None:
            return "-"
        sign = "is" if isinstance(target.value, str) else ">"
        return f"{target.column} {sign} {target.value}"

    def fit(one: Regression) -> str:
        return f"{one.outcome} on {', '.join(one.on)}"

    means = "; ".join(f"{number} by {name}" for name, number in source.means) or "-"
    return f"{predicts(source.target)} | {fit(source.regression)} | {means}"


def result_table(cells: Sequence[Cell], table: str, epsilon: str) -> list[str]:
    """All scores, a row each, a column for each method; the smallest error is bold."""
    lines = [line_of(cells, table, epsilon, one.name) for one in (*THEIRS, *OURS)]
    found = [line for line in lines if line is not None]
    if not any(line.figures for line in found):
        return []
    bounds = next((c.scores for c in cells if (c.table, c.method) == (table, ORIGINAL)), {})
    rows = [
        f"| score | {' | '.join(line.method for line in found)} | {ORIGINAL} |",
        "| --- |" + " ---: |" * (len(found) + 1),
    ]
    for name, score in SCORES.items():
        having = [line for line in found if name in line.errors]
        if not having:
            continue
        best = min(having, key=lambda line: line.errors[name].mean)
        entries = [line.figures[name].text(score.form) if line in having else "-" for line in found]
        entries = [f"**{e}**" if line is best else e for e, line in zip(entries, found, strict=True)]
        own = f"{bounds[name]:{score.form}}" if name in bounds else "-"
        rows.append(f"| {score.words} | {' | '.join(entries)} | {own} |")
    times = [line.failed or ("-" if line.seconds is None else f"{line.seconds:.2g}") for line in found]
    return [*rows, f"| seconds of processor time | {' | '.join(times)} | - |"]


def nist_section(cells: Sequence[Cell]) -> list[str]:
    """NIST's judge on its national excerpt of 2019, beside what was handed in to its exercise."""
    lines = [
        f"SDNist 2.4 judges ten columns of {NIST_TABLE} (27,253 records, none held out). k-marginal is 1,000 times one "
        "minus the mean total variation of all pairs, ages in bins of equal size; the Pearson difference is the mean "
        "over all pairs of different columns; inconsistent rows break a rule of age or housing. ε = 1.",
        "",
        f"| method | {' | '.join(SCORES[name].words for name in NIST_SCORES)} |",
        "| --- |" + " ---: |" * len(NIST_SCORES),
        *(f"| {words} | {score} | {difference} | - | - |" for words, score, difference in PRINTED),
    ]
    measured = []
    for one in (*THEIRS, *OURS):
        line = line_of(cells, NIST_TABLE, "1", one.name)
        if line is None or not line.figures:
            continue
        entries = [
            line.figures[name].text(SCORES[name].form) if name in line.figures else "-"
            for name in NIST_SCORES
        ]
        lines.append(f"| `{line.method}` | {' | '.join(entries)} |")
        measured.append(line)
    goals = []
    for line in measured:
        wanted, difference = GOALS.get(line.method, (None, None))
        if wanted is not None and "k_marginal" in line.figures:
            goals.append(_goal(line, "k_marginal", wanted))
        if difference is not None and "pearson" in line.figures:
            goals.append(_goal(line, "pearson", difference))
    if goals:
        lines += [
            "",
            "### Goals",
            "",
            "| method | score | goal | found | |",
            "| --- | --- | ---: | ---: | --- |",
        ]
    return [*lines, *goals]


def _goal(line: Line, name: str, wanted: float) -> str:
    score, found = SCORES[name], line.figures[name].mean
    short = score.error(found) - score.error(wanted)
    words = "reached" if short <= 0 else f"missed by {short:{score.form}}"
    return f"| `{line.method}` | {score.words} | {wanted:g} | {found:{score.form}} | {words} |"


def missing_section(
    cells: Sequence[Cell], tables: Sequence[str], epsilons: Sequence[str], runs: int
) -> list[str]:
    lines = []
    # at other ε only Shoal may have been measured
    theirs = {one.name for one in THEIRS}
    compared = [e for e in epsilons if any(cell.epsilon == e and cell.method in theirs for cell in cells)]
    for name, absent in missing_runs(cells, tables, compared, runs).items():
        if absent:
            places = ", ".join(f"{table} {count}" for table, _, count in absent)
            wanted = runs * len(tables) * len(compared)
            lines.append(f"- {name}: {sum(count for _, _, count in absent)} of {wanted} ({places}).")
    stopped = [f"{c.table}, {c.method}, run {c.seed}: {c.failed}" for c in cells if c.failed]
    lines += [f"- Stopped: {words}." for words in stopped]
    return lines or ["None."]
