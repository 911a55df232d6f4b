"""The location of measured results, and summaries with the few numbers of them that pages of docs/ quote.

    python -m tools.results

writes the summaries again. Commands that measure something write into results/ and then call `write_summaries`; the
numbers on a page are read from these files and never typed.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS, RESULTS = ROOT / "docs", ROOT / "results"
Row = Mapping[str, str]
Summary = Sequence[tuple[str, str]]


def between(text: str, name: str, inner: str) -> str:
    """The text with `inner` between the two markers of a name.

    >>> between("a <!-- x: begin -->old<!-- x: end --> b", "x", "new")
    'a <!-- x: begin -->\\n\\nnew\\n\\n<!-- x: end --> b'
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"the page must contain '{begin}' and '{end}' once each.")
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{inner}\n\n{end}{rest.split(end)[1]}"


def tables(text: str) -> list[list[Row]]:
    """All tables of a Markdown text; cells by the heading of their column, without marks of emphasis.

    >>> tables("| a | |\\n| --- | --- |\\n| **1** | `b` |\\n")
    [[{'a': '1', '': 'b'}]]
    """
    found: list[list[Row]] = []
    heads: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            heads = []
            continue
        cells = [cell.strip(" *`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not heads:
            heads = cells
            found.append([])
        elif set("".join(cells)) - set("-: "):
            found[-1].append(dict(zip(heads, cells, strict=True)))
    return found


def section(page: str, heading: str = "") -> str:
    """The content of a results page under a heading (the first of that name), or above all headings."""
    parts = re.split(r"^#{2,} (.+)\n", (RESULTS / page).read_text("utf-8"), flags=re.MULTILINE)
    named = [*zip(parts[1::2], parts[2::2], strict=True)]
    return dict(reversed(named))[heading] if heading else parts[0]


def rows(page: str, heading: str = "", place: int = 0) -> list[Row]:
    """The rows of a table under a heading."""
    return tables(section(page, heading))[place]


def row(page: str, heading: str = "", place: int = 0, **cells: str) -> Row:
    """The only row of a table whose cells are these; `_` stands for a column without a heading."""
    wanted = {"" if name == "_" else name: value for name, value in cells.items()}
    (found,) = [one for one in rows(page, heading, place) if wanted.items() <= one.items()]
    return found


def texts() -> Summary:
    """Verdicts on the five texts, from their CSV files."""
    counted = {name: Counter[str]() for name in ("numbers", "claims", "errata")}
    for name, found in counted.items():
        for path in sorted((RESULTS / "reproduction").glob(f"*/{name}.csv")):
            with path.open(encoding="utf-8", newline="") as file:
                found.update(one.get("verdict", "") for one in csv.DictReader(file))
    numbers, claims, errata = counted.values()
    return [
        ("printed numbers recomputed", f"{numbers.total():,}"),
        (
            "of these, equal, within Monte Carlo error, different",
            _counts(numbers, "equal", "within Monte Carlo error", "differs"),
        ),
        ("claims of the texts tested", f"{claims.total() - claims['not tested']:,} of {claims.total():,}"),
        ("of these, hold, hold partly, fail", _counts(claims, "holds", "holds partly", "fails")),
        ("printed errors found", f"{errata.total():,}"),
    ]


def _counts(found: Mapping[str, int], *names: str) -> str:
    return ", ".join(f"{found[name]:,}" for name in names)


def each_text() -> list[str]:
    """The table of the five texts, as the overview in results/ has it."""
    whole = section("reproduction/index.md")
    lines = [line for line in whole.splitlines() if line.startswith("|")]
    return [re.sub(r"\[([^]]*)\]\(([^)]*)\)", r"\1 (`results/reproduction/\2`)", line) for line in lines]


def speed() -> Summary:
    noise = rows("benchmarks.md", "Exact discrete Laplace noise")
    ratios = [one["shoal / OpenDP"] for one in noise if one["shoal / OpenDP"] != "-"]
    mdav = [one for one in rows("benchmarks.md", "MDAV") if (one["n"], one["d"]) == ("1,000,000", "4")]
    ranking = section("benchmarks.md", "Individual ranking")
    (large,) = re.findall(r"100,000,000 x 4, column by column: (.*)\.", ranking)
    estimated = rows("benchmarks.md", "Estimates of time")
    within = [one for one in estimated if 0.5 <= float(one["estimated / measured"]) <= 2]
    suda = [one for one in rows("risk-speed.md") if one["table"].startswith("generated, 1,000,000 x 6")]
    return [
        (
            "exact Laplace draws per second, relative to OpenDP",
            f"{min(ratios, key=_number)} to {max(ratios, key=_number)}",
        ),
        (f"MDAV, {mdav[0]['n']} x {mdav[0]['d']}, k = {mdav[0]['k']}", f"{mdav[0]['tree (s)']} s"),
        ("`ranking-dp` from Parquet to Parquet, 100,000,000 x 4", large),
        ("`shoal.risk`, 1,000,000 x 6, weights and households", f"{suda[0]['seconds']} s"),
        (
            "estimates of `--dry-run` within a factor of two of the measured time",
            f"{len(within)} of {len(estimated)}",
        ),
    ]


def _number(words: str) -> float:
    return float(re.sub(r"[^\d.].*", "", words.replace(",", "")))


def studio() -> Summary:
    measured = {one["what"]: one["measured"] for one in rows("studio-speed.md")}

    def of(start: str) -> str:
        (found,) = [value for what, value in measured.items() if what.startswith(start)]
        return found

    return [
        ("time to show a file of 200,000 rows and 12 columns (20 MB of CSV)", of("table visible, painted")),
        ("time to scroll to its last row", of("scrolled to the last row")),
        ("preview of a setting under `dp`, median time", of("preview of a setting, dp: median")),
        ("the same, slowest", of("preview of a setting, dp: the slowest")),
        ("slowest response to a second client during a release", of("worst of ")),
    ]


def pairs() -> Summary:
    def cells(name: str) -> str:
        one, ten = (row("pairs-quality.md", f"Census, ε = {epsilon}", _=name) for epsilon in (1, 10))
        return f"{one['correlation']}; {ten['correlation']}"

    names = {
        "as it is": "with its default settings",
        "Laplace noise instead of noise fitted to a record": "with Laplace noise instead of noise fitted to a record",
        "trees instead of bisection": "with trees instead of bisection",
        "n private": "with a private number of records",
        "δ = 1e-6": "with δ = 1e-6",
    }
    return [(f"`pairs-dp` {words}", cells(name)) for name, words in names.items()]


def trees() -> Summary:
    average = re.findall(r"prototype: \*\*(.*?)\*\*", section("tree-quality.md"))[0]
    without = {
        one["without"]: one["average of the twelve ratios"]
        for one in rows("tree-quality.md", "Which idea brought what")
    }
    seconds = re.findall(r": (.*?) of processor time", section("tree-quality.md", "Speed"))[0]
    return [
        ("error relative to the first prototype, mean of twelve ratios", average),
        ("the same without the tree (cut points only)", without["the tree (cut points only)"]),
        ("the same without any cut", without["any cut (depth 0)"]),
        (
            "Census, ε = 1: distance / correlation error",
            row("tree-quality.md", "", 0, **{"table, ε": "Census, 1"})["tree-dp"],
        ),
        ("1,000,000 rows of 10 attributes, ε = 1: processor time", seconds),
    ]


def tuning() -> Summary:
    runs = {one[""]: one for one in rows("tuning-quality.md")}
    few, many = runs["shoal tune"], runs["exhaustive: every k from 3 to 540, closed form"]
    (more,) = re.findall(r"loses (\S+) more than the best", section("tuning-quality.md").replace("*", ""))
    return [
        ("settings tried by `shoal tune`; by an exhaustive search", f"{few['settings']}, {many['settings']}"),
        ("seconds of both", f"{few['seconds']}, {many['seconds']}"),
        ("loss of both choices", f"{few['loss']}, {many['loss']}"),
        ("excess loss of the choice of `shoal tune`", more),
        ("seconds of `shoal tune --fast`, the same choice", runs["shoal tune --fast"]["seconds"]),
    ]


def optimal() -> Summary:
    single = rows("optimal.md", "One attribute at a time")
    gains = [one["gain"] for one in single if one["attribute"] != "mean"]
    mean = row("optimal.md", "One attribute at a time", attribute="mean")
    together = {
        one["split"]: one["gain"]
        for one in rows("optimal.md", "Four attributes together")
        if one["partition"] == "optimal"
    }
    slow = max(rows("optimal.md", "Speed"), key=lambda one: _number(one["optimal partition"]))
    return [
        (
            "reduction of the error by `optimal-dp` against the best fixed k, one attribute, mean of 13",
            mean["gain"].strip("*"),
        ),
        ("smallest and largest of these 13", f"{min(gains, key=_number)}, {max(gains, key=_number)}"),
        ("reduction against k = 50, mean of 13", mean["gain over k = 50"]),
        ("reduction with four attributes, split equal, proportional, optimal", ", ".join(together.values())),
        ("time for 1,000,000 values, slowest distribution", slow["optimal partition"]),
    ]


def adult() -> Summary:
    kept = {one["column"]: one for one in rows("adult.md", "What is kept")}
    taken = row("adult.md", "Time", method="tree-dp")

    def of(method: str) -> str:
        return ", ".join(kept[name][method] for name in ("age", "occupation", "income"))

    return [
        ("error of age, occupation, income under `tree-dp`", of("tree-dp")),
        ("the same under `ranking-dp` (claim `dp-given-partition`)", of("ranking-dp")),
        ("the same under `insensitive-dp`", of("insensitive-dp")),
        ("the same under `laplace`", of("laplace")),
        ("processor time of the whole `tree-dp` command", taken["processor"]),
    ]


# headings of the two kinds of tables that pairs-dp is compared on, and its settings
KINDS = ("Development tables", "Reported tables")
SETTINGS = ("pairs-dp, δ", "pairs-dp")


def utility() -> Summary:
    def words(heading: str, method: str) -> str:
        found = [one for one in _rows_if_any("utility.md", heading) if one["wins, ties, losses"] == "all"]
        return found[0][method] if found else "0, 0, 0 (not measured yet)"

    judged = {one["method"]: one["SDNist k-marginal"] for one in rows("utility.md", "SDNist")}
    return [
        *(
            (f"{heading.lower()}, `{method}`: wins, ties, losses", words(heading, method))
            for heading in KINDS
            for method in SETTINGS
        ),
        (
            "SDNist k-marginal with δ; without (AIM in print: 976, MST in print: 958)",
            "; ".join(judged.get(method, "0 runs") for method in SETTINGS),
        ),
    ]


def who_wins() -> list[str]:
    """Wins, ties and losses against MST and AIM by score, and every loss, as the results have them."""
    lines = []
    for heading in KINDS:
        for title in (heading, f"Losses on {heading.lower()}"):
            if _rows_if_any("utility.md", title):
                lines += [f"{title}:", "", *section("utility.md", title).strip().splitlines(), ""]
    return lines[:-1] or ["No comparison is complete yet."]


def _rows_if_any(page: str, heading: str) -> list[Row]:
    """The rows of the first table under a heading; none where there is no such heading, or no table."""
    try:
        return rows(page, heading)
    except (KeyError, IndexError):
        return []


def timing() -> Summary:
    attacks = rows("timing.md", "Attacks")

    def shares(column: str) -> str:
        found = sorted(float(one[column].split()[0]) for one in attacks)
        return f"{found[0]:.3f} to {found[-1]:.3f}"

    load = section("timing.md", "An hour of mixed load")
    (answers, missed) = re.findall(r"minutes: (\S+) answers.*?, (\S+) slots missed", load)[0]
    return [
        ("attacks, each spending a whole account", f"{len(attacks)}"),
        ("share of correct guesses from the answers, as shipped", shares("shipped")),
        ("the same, with perfect knowledge of the machine's load", shares("shipped, the machine")),
        ("the same from the answers, all protections off", shares("all off")),
        ("answers in an hour of mixed load; slots missed", f"{answers}, {missed}"),
    ]


# marker -> page, pages of results that it sums up, and the numbers
SUMMARIES: Mapping[str, tuple[str, Sequence[str], Callable[[], Summary]]] = {
    "texts": ("reproduction.md", ["reproduction/index.md"], texts),
    "speed": ("benchmarks.md", ["benchmarks.md", "risk-speed.md"], speed),
    "studio": ("benchmarks.md", ["studio-speed.md"], studio),
    "pairs": ("quality.md", ["pairs-quality.md"], pairs),
    "trees": ("quality.md", ["tree-quality.md"], trees),
    "optimal": ("quality.md", ["optimal.md"], optimal),
    "adult": ("quality.md", ["adult.md"], adult),
    "tuning": ("quality.md", ["tuning-quality.md"], tuning),
    "utility": ("utility.md", ["utility.md"], utility),
    "timing": ("server.md", ["timing.md"], timing),
}

# marker -> page, and longer tables that it takes from the results
LISTS: Mapping[str, tuple[str, Callable[[], Sequence[str]]]] = {
    "each text": ("reproduction.md", each_text),
    "who wins": ("utility.md", who_wins),
}


def summary(name: str) -> str:
    """The content between the markers of a name."""
    _, sources, numbers = SUMMARIES[name]
    lines = ["| measured | |", "| --- | ---: |", *(f"| {what} | {value} |" for what, value in numbers())]
    where = " and ".join(f"`results/{source}`" for source in sources)
    return "\n".join([*lines, "", f"All figures: {where}."])


def filled(page: str, text: str) -> str:
    """A page of docs/ with its summaries updated from the results."""
    for name, (where, _, _) in SUMMARIES.items():
        if where == page:
            text = between(text, name, summary(name))
    for name, (where, lines) in LISTS.items():
        if where == page:
            text = between(text, name, "\n".join(lines()))
    return text


def write_summaries() -> None:
    """Write all summaries into their pages."""
    for page in dict.fromkeys(where for where, _, _ in SUMMARIES.values()):
        path = DOCS / page
        path.write_text(filled(page, path.read_text("utf-8")), "utf-8")


def put(page: Path, text: str) -> None:
    """Write a page of results; the summaries too if it is one of those kept here."""
    page.write_text(text, "utf-8")
    if RESULTS in page.resolve().parents:
        write_summaries()


if __name__ == "__main__":
    write_summaries()
