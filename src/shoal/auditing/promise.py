"""Writes the tables of docs/promise.md: every row of the audit table is carried out and put beside its promise.

    python -m shoal.auditing.promise docs/promise.md

The prose of the page stays; what stands between the markers is replaced.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from shoal._version import __version__
from shoal.auditing.result import Audit
from shoal.auditing.table import EXAMPLES, FALSE_ALARM, ROWS, Row, prepare_row, run_row
from shoal.auditing.workers import available_cores
from shoal.errors import InputError
from shoal.method import Method
from shoal.models import privacy_model
from shoal.statement import PrivacyStatement

BEGIN, END = "<!-- audit: begin -->", "<!-- audit: end -->"
Result = tuple[Row, Audit, float]


def promise_tables(results: Sequence[Result], when: str, machine: str) -> str:
    """The part of the page that a command writes: promises with their audits, then flaws that were seen."""
    lines = [
        f"Audited on {when} with shoal {__version__} on {machine}. All bounds on this page hold together with "
        f"probability {100 * (1 - FALSE_ALARM):.6g}%. ε = 1 in every row.",
        "",
        "| method | promises | against | public | not covered | audit |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    by_line: dict[str, list[Result]] = {}
    for result in results:
        if result[0].flaw is None:
            by_line.setdefault(_line(result[0]), []).append(result)
    for line, members in by_line.items():
        audits = "<br>".join(_outcome(row, audit) for row, audit, _ in members)
        lines.append(f"| {line} | {audits} |")
    lines += [
        "",
        "The same instrument on mechanisms that were broken on purpose:",
        "",
        "| flaw | method | view | audit | seconds |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row, audit, seconds in results:
        if row.flaw is not None:
            lines.append(f"| {row.flaw} | `{row.method}` | {row.view} | {_verdict(audit)} | {seconds:.0f} |")
    lines += [
        "",
        "What was run, on which data (every column has the domain 0 to 100), and what was looked for:",
        "",
    ]
    lines += [
        "| row | call | data | view | test runs | attack | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row, audit, seconds in results:
        best = audit.attacks[0]
        lines.append(
            f"| {row.name} | `{row.words}` | {row.data} | {row.view} | {audit.runs} | {best.event}: "
            f"{best.hits} against {best.false_hits} of {best.hit_runs} | {seconds:.0f} |"
        )
    lines += ["", "The data sets:", ""]
    for name in dict.fromkeys(row.data for row, _, _ in results):
        example = EXAMPLES[name]
        values = "; ".join(f"{key} = {', '.join(map(str, found))}" for key, found in example.columns.items())
        lines.append(f"- *{name}*: {example.about} ({values}).")
    return "\n".join(lines)


def _line(row: Row) -> str:
    """Method, promise, adversary, public facts and gaps, from the statement of such a release."""
    prepared = prepare_row(row)
    method, statement = prepared.method, prepared.statement
    cells = [
        _case(method, len(prepared.described.columns)),
        f"`{statement.model}`: ε-differential privacy of {_target(statement)}",
        "anybody who sees the release and knows every other record" + _knows(statement),
        _public(method, statement),
        " ".join(statement.not_promised),
    ]
    return " | ".join(cells)


def _case(method: Method, attributes: int) -> str:
    """The method, and the condition under which it carries this claim rather than another."""
    extra = []
    if privacy_model(method, 1) != privacy_model(method, 2):
        extra.append("one column" if attributes == 1 else "several linked columns")
    if method.noise != "laplace":
        extra.append(f"`noise={method.noise}`")
    if not method.link:
        extra.append("`link=False`")
    if method.neighbours != "replace-one":
        extra.append(f"`neighbours={method.neighbours}`")
    return ", ".join([f"`{method.name}`", *extra])


def _target(statement: PrivacyStatement) -> str:
    what = "the original records" if statement.model == "dp" else "the cluster means, clusters taken as fixed"
    return f"{what}, per {statement.unit}; {statement.neighbours}"


def _knows(statement: PrivacyStatement) -> str:
    return "" if statement.model == "dp" else ", and who is in which cluster"


def _public(method: Method, statement: PrivacyStatement) -> str:
    facts = ["domains, steps and settings"]
    if method.neighbours == "replace-one":
        facts.append("the number of records")
    if statement.model != "dp":
        facts.append("the clusters (in truth computed from the records)")
    return ", ".join(facts)


def _outcome(row: Row, audit: Audit) -> str:
    return f"{row.view} view: {_verdict(audit)}"


def _verdict(audit: Audit) -> str:
    bound = f"at least {int(audit.bound * 100) / 100:.2f}"
    if not audit.refuted:
        return f"not refuted with {audit.runs} runs: {bound}"
    return f"**refuted**: {bound}" + ("" if audit.claimed else ", as it should be: this view is not claimed")


def write_between_markers(page: Path, tables: str) -> None:
    """Replace what stands between the markers; everything else stays as it is."""
    text = page.read_text("utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise InputError(f"'{page}' must contain '{BEGIN}' and '{END}' once each.")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    aside = page.with_name(f"{page.name}.part")
    aside.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}", encoding="utf-8")
    aside.replace(page)


def machine_words() -> str:
    """Cores and memory, which say how fast a machine is without saying whose it is."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{available_cores()} cores with {memory:.0f} GiB"


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit every row, write the tables, and say with the exit status whether all came out as expected."""
    parser = argparse.ArgumentParser(prog="python -m shoal.auditing.promise", description=__doc__)
    parser.add_argument("page", type=Path, help="the page with the markers")
    parser.add_argument("--runs", type=int, help="test runs of each row, instead of those of the table")
    parser.add_argument("--seed", type=int, help="repeats the same audits")
    asked = parser.parse_args(arguments)
    results: list[Result] = []
    surprises = 0
    for row in ROWS:
        started = time.perf_counter()
        audit = run_row(row, runs=asked.runs, seed=asked.seed)
        seconds = time.perf_counter() - started
        results.append((row, audit, seconds))
        as_expected = audit.refuted == row.refuted and audit.bound >= row.at_least
        surprises += not as_expected
        mark = "" if as_expected else "NOT AS EXPECTED: "
        print(f"{mark}{row.name}: {audit.verdict} ({seconds:.0f} s)", file=sys.stderr, flush=True)
    when = datetime.datetime.now(datetime.UTC).date().isoformat()
    write_between_markers(asked.page, promise_tables(results, when, machine_words()))
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
