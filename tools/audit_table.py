"""The table of audits: each row gives a method, data, a view and the expected outcome.

To audit a new preset, add a row; every row is a slow test, with all its runs in `make test-thorough`, and a line
of docs/guarantee.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.auditing.auditor import Audit, audit_prepared
from shoal.auditing.trial import Released, World, release
from shoal.io import read
from shoal.mechanisms.registry import method_class
from shoal.noise import Source
from shoal.progress import Progress
from shoal.release.protection import Preparation, prepare
from tools.broken_mechanisms import FLAWS


@dataclass(frozen=True, slots=True)
class Example:
    """A small data set on which a method is audited, and why it looks like that.

    Every column has the public domain 0 to `hi`.
    """

    about: str
    columns: Mapping[str, tuple[int, ...]]
    hi: int = 100


EXAMPLES: Mapping[str, Example] = {
    "alone": Example("a single record", {"x": (30,)}),
    "alone in two": Example("a single record with two attributes", {"x": (30,), "y": (60,)}),
    "spread": Example("four records from one end of the domain to the other", {"x": (0, 10, 90, 100)}),
    "square": Example(
        "four records at the corners of a square: moving one of them changes all pairs",
        {"x": (0, 10, 90, 100), "y": (0, 100, 10, 90)},
    ),
    "seesaw": Example(
        "five records at either end and four in the middle: one record decides at which end MDAV starts, and so which "
        "end gets the larger cluster",
        {"x": (0,) * 5 + (50,) * 4 + (100,) * 5},
    ),
    "middle": Example(
        "five records in the middle of the domain: moving one of them away changes the noise of its cluster",
        {"x": (50,) * 5},
    ),
    "halves": Example(
        "five records at either end: a record that changes sides changes both clusters",
        {"x": (0,) * 5 + (100,) * 5},
    ),
    "cluster": Example(
        "three records at one end: moving one to the other end changes mean, variance and skewness as much as possible",
        {"x": (0,) * 3},
    ),
    "corner": Example("three records in one corner of two attributes", {"x": (0,) * 3, "y": (0,) * 3}),
    "pairs": Example(
        "two groups of three, far apart in both attributes",
        {"x": (0, 5, 10, 90, 95, 100), "y": (0, 10, 5, 95, 100, 90)},
    ),
    "two signs": Example(
        "eight records with two values per attribute: a record that changes sides changes a product of signs",
        {"x": (0, 0, 0, 0, 1, 1, 1, 1), "y": (0, 0, 0, 0, 1, 1, 1, 1)},
        hi=1,
    ),
    "six signs": Example(
        "eight records with two values in each of six attributes, enough for noise calibrated to products of signs",
        dict.fromkeys("uvwxyz", (0, 0, 0, 0, 1, 1, 1, 1)),
        hi=1,
    ),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One audit with its expected outcome.

    Attributes:
        flaw: a broken mechanism of `tools.broken_mechanisms` instead of the method itself.
        refuted: the expected outcome.
        at_least: a bound that must be reached, to show that the audit is sensitive.
        runs: test runs, half on each data set.
    """

    name: str
    method: str
    data: str
    view: str
    refuted: bool
    options: Mapping[str, Any] = field(default_factory=dict)
    flaw: str | None = None
    epsilon: str = "1"
    at_least: float = 0.0
    runs: int = 20_000

    @property
    def words(self) -> str:
        """The method with its settings, as in a call; ε where it is not 1."""
        shown = {**self.options, "epsilon": self.epsilon}
        if self.epsilon == "1" or "epsilon" not in method_class(self.method).parameters():
            del shown["epsilon"]
        settings = "".join(f", {key}={value}" for key, value in shown.items())
        return f"{self.method}{settings}"


# Methods on cluster moments share ε over many statistics: at ε = 1 a small table would show almost nothing of it.
_MOMENT_RUNS, _MOMENT_EPSILON, _NOISELESS_RUNS = 4_000, "4", 400
# Methods whose runs take long.
_SLOW_RUNS = 4_000


def _moment_rows() -> tuple[Row, ...]:
    """One row for each method of the cross-moment paper, in the view of its claim, and its baselines without one."""
    coefficients, spectral = (*range(1, 14), *range(20, 27)), range(14, 20)

    def row(number: int, view: str, words: str, data: str = "cluster", at_least: float = 0.4) -> Row:
        return Row(
            f"xm-{number}{words}",
            f"xm-{number}",
            data,
            view,
            False,
            {"k": 3},
            epsilon=_MOMENT_EPSILON,
            at_least=at_least,
            runs=_MOMENT_RUNS,
        )

    given, individual = ("given-partition", " given the partition"), ("individual", ", individual")
    two = " of two attributes"
    return (
        Row("xm-1", "xm-1", "seesaw", "original", True, {"k": 5}, runs=_NOISELESS_RUNS),
        *(row(n, *given) for n in coefficients),
        *(row(n, *individual) for n in spectral),
        *(row(n, given[0], two + given[1], "corner", 0.2) for n in (2, 5, 8)),
        *(row(n, individual[0], two + individual[1], "corner", 0.2) for n in (15, 18)),
        *(
            Row(f"xm-b{n}", f"xm-b{n}", "pairs", "original", True, {"k": 3}, runs=_NOISELESS_RUNS)
            for n in range(1, 9)
        ),
    )


# Methods whose runs take longest: a model of all pairs is made in each of them.
_SLOWEST_RUNS = 1_000


def _pairs_rows() -> tuple[Row, ...]:
    """pairs-dp in ε and in ρ and under both relations; a record's effect spreads over many measurements."""

    def row(words: str, data: str, **options: Any) -> Row:
        name = f"pairs-dp{words}"
        return Row(name, "pairs-dp", data, "original", False, options, epsilon="4", runs=_SLOWEST_RUNS)

    return (
        row(", rows declared", "two signs", rows=8),
        row(", records replaced", "two signs", neighbours="replace-one"),
        row(" of six attributes, rows declared", "six signs", rows=8),
        row(" with a delta, rows declared", "two signs", rows=8, delta="0.001"),
        row(" with a delta, records replaced", "two signs", neighbours="replace-one", delta="0.001"),
        Row(
            "broken: pairs-dp that spends eight times its budget",
            "pairs-dp",
            "two signs",
            "original",
            True,
            {"neighbours": "replace-one"},
            flaw="eight times the budget",
            runs=_SLOWEST_RUNS,
        ),
        Row(
            "broken: pairs-dp with a delta that spends a hundred times its budget",
            "pairs-dp",
            "two signs",
            "original",
            True,
            {"neighbours": "replace-one", "delta": "0.001"},
            flaw="a hundred times the budget",
            runs=400,
        ),
    )


ROWS: tuple[Row, ...] = (
    Row("laplace", "laplace", "alone", "original", refuted=False, at_least=0.8, runs=40_000),
    Row("laplace of two attributes", "laplace", "alone in two", "original", refuted=False),
    Row("pram", "pram", "alone", "original", False, {"bands": 2}, at_least=0.5, runs=_SLOW_RUNS),
    Row("ranking-dp of one attribute", "ranking-dp", "spread", "original", False, {"k": 2}),
    Row("ranking-dp, unlinked", "ranking-dp", "square", "original", False, {"k": 2, "link": False}),
    Row("ranking-dp, linked", "ranking-dp", "square", "original", True, {"k": 2}),
    Row("ranking-dp given the partition", "ranking-dp", "square", "given-partition", False, {"k": 2}),
    Row("mdav-dp", "mdav-dp", "seesaw", "original", True, {"k": 5}),
    Row("mdav-dp given the partition", "mdav-dp", "seesaw", "given-partition", False, {"k": 5}),
    Row(
        "mdav-dp of two attributes given the partition",
        "mdav-dp",
        "pairs",
        "given-partition",
        False,
        {"k": 3},
    ),
    Row("mdav-dp, individual", "mdav-dp", "pairs", "individual", False, {"k": 3}),
    Row("optimal-dp", "optimal-dp", "seesaw", "original", True, {"k": 3}),
    Row("optimal-dp given the partition", "optimal-dp", "seesaw", "given-partition", False, {"k": 3}),
    Row("idp-ls", "idp-ls", "middle", "original", True, {"k": 5}),
    Row("idp-ls, individual", "idp-ls", "pairs", "individual", False, {"k": 3}),
    Row(
        "idp-ls on MDAV groups, individual",
        "idp-ls",
        "pairs",
        "individual",
        False,
        {"k": 3, "partition": "mdav"},
    ),
    Row("idp-cbls", "idp-cbls", "middle", "original", True, {"k": 3}),
    Row("idp-cbls, individual", "idp-cbls", "pairs", "individual", False, {"k": 3}),
    Row("idp-cbls without spread, individual", "idp-cbls", "middle", "individual", False, {"k": 3}),
    Row(
        "idp-cbls on MDAV groups, individual",
        "idp-cbls",
        "pairs",
        "individual",
        False,
        {"k": 3, "partition": "mdav"},
    ),
    Row("insensitive-dp", "insensitive-dp", "halves", "original", False, {"k": 5}),
    Row("insensitive-dp of two attributes", "insensitive-dp", "pairs", "original", False, {"k": 3}),
    Row(
        "insensitive-dp, order single",
        "insensitive-dp",
        "pairs",
        "original",
        False,
        {"k": 3, "order": "single"},
    ),
    Row(
        "insensitive-dp as published",
        "insensitive-dp",
        "halves",
        "original",
        True,
        {"k": 5, "composition": "parallel"},
    ),
    Row(
        "tree-dp of one attribute",
        "tree-dp",
        "spread",
        "original",
        False,
        {"rebuild": "centroid"},
        runs=_SLOW_RUNS,
    ),
    Row(
        "tree-dp, nearly all of ε on cut points",
        "tree-dp",
        "spread",
        "original",
        False,
        {"cuts": 1, "shares": {"cuts": 0.94, "intervals": 0.02, "leaves": 0.02, "means": 0.02}},
        runs=_SLOW_RUNS,
    ),
    Row(
        "tree-dp of two attributes",
        "tree-dp",
        "alone in two",
        "original",
        False,
        {"rebuild": "centroid"},
        runs=_SLOW_RUNS,
    ),
    Row(
        "tree-dp with counted leaves",
        "tree-dp",
        "square",
        "original",
        False,
        {"cuts": 1, "depth": 2},
        runs=_SLOW_RUNS,
    ),
    Row(
        "tree-dp, records added or removed",
        "tree-dp",
        "spread",
        "original",
        False,
        {"neighbours": "add-remove", "rebuild": "centroid"},
        runs=_SLOW_RUNS,
    ),
    Row(
        "tree-dp, records added or removed, rows declared",
        "tree-dp",
        "spread",
        "original",
        False,
        {"neighbours": "add-remove", "rows": 4, "rebuild": "centroid"},
        runs=_SLOW_RUNS,
    ),
    Row(
        "mdav-dp with staircase noise",
        "mdav-dp",
        "pairs",
        "given-partition",
        False,
        {"k": 3, "noise": "staircase"},
        runs=_SLOW_RUNS,
    ),
    Row(
        "mdav-dp with box noise",
        "mdav-dp",
        "pairs",
        "given-partition",
        False,
        {"k": 3, "noise": "box"},
        runs=_SLOW_RUNS,
    ),
    *_pairs_rows(),
    *_moment_rows(),
    Row(
        "broken: noise redrawn per record",
        "mdav-dp",
        "seesaw",
        "given-partition",
        True,
        {"k": 5},
        flaw="noise redrawn per record",
        runs=2_000,
    ),
    Row(
        "broken: scale 20% too small",
        "laplace",
        "alone",
        "original",
        True,
        flaw="scale 20% too small",
        runs=40_000,
    ),
    Row("broken: reused seed", "laplace", "spread", "original", True, flaw="reused seed", runs=2_000),
    Row(
        "broken: rows not shuffled",
        "ranking-dp",
        "spread",
        "original",
        True,
        {"k": 2},
        flaw="rows not shuffled",
        runs=2_000,
    ),
    Row("broken: no noise", "ranking-dp", "spread", "original", True, {"k": 2}, flaw="no noise", runs=2_000),
)

# All rows together raise a false alarm with at most this probability, as long as there are no more than so many.
FALSE_ALARM = 1e-6
MOST_ROWS = 128
CONFIDENCE = 1 - FALSE_ALARM / MOST_ROWS
assert len(ROWS) <= MOST_ROWS


def prepare_row(row: Row) -> Preparation:
    """The release of a row, before any budget is spent."""
    import pyarrow as pa

    example = EXAMPLES[row.data]
    columns = example.columns
    return prepare(
        read(pa.table({name: list(values) for name, values in columns.items()})),
        method=row.method,
        epsilon=row.epsilon if "epsilon" in method_class(row.method).parameters() else None,
        domains=dict.fromkeys(columns, (0, example.hi)),
        **row.options,
    )


def run_row(
    row: Row,
    *,
    confidence: float = CONFIDENCE,
    runs: int | None = None,
    seed: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Run the audit of one row."""
    run: Callable[[World, Source], Released] = release if row.flaw is None else FLAWS[row.flaw]
    return audit_prepared(
        prepare_row(row),
        row.view,
        runs=row.runs if runs is None else runs,
        confidence=confidence,
        seed=seed,
        workers=workers,
        progress=progress,
        run=run,
        yardstick=row.epsilon,
    )
