"""Run every audit of the audit table and write the tables of docs/guarantee.md.

    python -m tools.guarantee_page docs/guarantee.md [--missing]

Replaces only the text between the markers. results/guarantee.json records every audit; with --missing, only rows
that are not in it, or have changed since, are audited.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from shoal._version import __version__
from shoal.auditing.auditor import Attack, Audit
from shoal.mechanisms.method import Method
from shoal.privacy.statement import PrivacyStatement
from shoal.privacy.verdict import MODELS
from shoal.workers import machine_words
from tools.audit_table import EXAMPLES, FALSE_ALARM, ROWS, Row, prepare_row, run_row
from tools.results import DOCS, RESULTS

BEGIN, END = "<!-- audit: begin -->", "<!-- audit: end -->"


# claims that tests/privacy/accounting checks exactly, in ε or in ρ
_ACCOUNTED = ("dp", "approximate-dp")


@dataclass(frozen=True, slots=True)
class Result:
    """A completed audit, its date and its duration."""

    row: Row
    audit: Audit
    seconds: float
    when: str

    @property
    def as_expected(self) -> bool:
        return self.audit.refuted == self.row.refuted and self.audit.bound >= self.row.at_least


def guarantee_tables(results: Sequence[Result], machine: str) -> str:
    """The generated part of the page: claims with their audits, detected flaws, and a list of all audits."""
    days = sorted({result.when for result in results})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    lines = [
        f"Audited on {when} with shoal {__version__} on {machine}. All bounds on this page hold simultaneously with "
        f"probability {100 * (1 - FALSE_ALARM):.6g}%. The column ε gives the ε that was set. The columns of the views "
        "give the lower bounds on ε that the audits found. A bound above the ε that was set refutes that ε in the "
        "view; *not claimed* marks views in which the method makes no claim.",
    ]
    by_model: dict[str, dict[str, _Case]] = {}
    for result in results:
        if result.row.flaw is None:
            found = _case_of(result.row)
            cases = by_model.setdefault(found.model, {})
            cases.setdefault(found.method, found).results.append(result)
    for model in MODELS:
        if model in by_model:
            lines += _model_section(model, list(by_model[model].values()))
    lines += [
        "",
        "### Deliberately broken mechanisms",
        "",
        "The same audits detect the flaws of mechanisms that were broken on purpose:",
        "",
        "| flaw | method | view | audit | seconds |",
        "| --- | --- | --- | --- | --- |",
    ]
    for result in results:
        row = result.row
        if row.flaw is not None:
            lines.append(
                f"| {row.flaw} | `{row.method}` | {row.view} | {_verdict(result.audit)} | {result.seconds:.0f} |"
            )
    lines += [
        "",
        "### What was run",
        "",
        "`results/guarantee.json` records every audit with its attack, counts and running time.",
        "",
        '<details markdown="1">',
        "<summary>All audits: call, data set, test runs</summary>",
        "",
        "| audit | call | data | test runs |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {result.row.name} | `{result.row.words}` | {result.row.data} | {result.audit.runs} |"
        for result in results
    ]
    lines += ["", "The data sets (columns range from 0 to 100, signs are 0 or 1):", ""]
    for name in dict.fromkeys(result.row.data for result in results):
        example = EXAMPLES[name]
        values = "; ".join(f"{key} = {', '.join(map(str, found))}" for key, found in example.columns.items())
        lines.append(f"- *{name}*: {example.about} ({values}).")
    return "\n".join([*lines, "", "</details>"])


@dataclass(frozen=True, slots=True)
class _Case:
    """A method under one claim: its statement and its audits."""

    method: str
    model: str
    epsilon: str
    sentence: str
    adversary: str
    public: str
    not_covered: tuple[str, ...]
    results: list[Result]


def _case_of(row: Row) -> _Case:
    """Method, claim, attacker, public facts and gaps, from the statement of such a release."""
    prepared = prepare_row(row)
    method, statement = prepared.method, prepared.statement
    epsilon = "-" if statement.epsilon is None else f"{float(statement.epsilon):g}"
    return _Case(
        _case(method, len(prepared.described.columns)),
        statement.model,
        epsilon,
        statement.sentence.replace(f"ε = {epsilon}", "ε"),
        _adversary(statement),
        _public(method, statement),
        tuple(statement.not_promised),
        [],
    )


def _model_section(model: str, cases: Sequence[_Case]) -> list[str]:
    """What the methods under a model have in common, then their differences and audits, one line each."""
    usual = {
        "Guarantee": _most_frequent([case.sentence for case in cases]),
        "Against": f"{_most_frequent([case.adversary for case in cases])}.",
        "Public": f"{_most_frequent([case.public for case in cases])}.",
        # accounting needs nothing held fixed: tests/privacy/accounting
        "Checked by": "accounting (exact) and audit." if model in _ACCOUNTED else "audit only.",
    }
    shared = [gap for gap in cases[0].not_covered if all(gap in case.not_covered for case in cases)]
    lines = ["", f"### `{model}`", ""]
    lines += [f"- **{title}**: {words}" for title, words in usual.items()]
    lines += [f"- **Not covered**: {' '.join(shared)}"]
    notes: dict[str, int] = {}
    for case in cases:
        for words in _differences(case, usual, shared):
            notes.setdefault(words, len(notes) + 1)
    views = list(dict.fromkeys(result.row.view for case in cases for result in case.results))
    titles = ["method", "ε", *(f"{view} view" for view in views), *(["note"] if notes else [])]
    lines += ["", f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]
    for case in cases:
        cells = [
            case.method,
            case.epsilon,
            *(
                ", ".join(_outcome(r.audit) for r in case.results if r.row.view == view) or "-"
                for view in views
            ),
        ]
        if notes:
            cells.append(", ".join(f"{notes[words]}" for words in _differences(case, usual, shared)) or "-")
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", *(f"{number}. {words}" for words, number in notes.items())]


def _differences(case: _Case, usual: Mapping[str, str], shared: Sequence[str]) -> list[str]:
    """How the guarantee of a method differs from that of most methods under the same model."""
    found = [] if case.sentence == usual["Guarantee"] else [case.sentence]
    if f"{case.public}." != usual["Public"]:
        found.append(f"Public: {case.public}.")
    return found + [gap for gap in case.not_covered if gap not in shared]


def _most_frequent(words: Sequence[str]) -> str:
    return Counter(words).most_common(1)[0][0]


def _case(method: Method, attributes: int) -> str:
    """The method, and the condition under which it carries this claim."""
    extra = []
    if method.model(1) != method.model(2):
        extra.append("one column" if attributes == 1 else "several linked columns")
    own = method.settings()
    if own.get("noise", "laplace") != "laplace":
        extra.append(f"`noise={own['noise']}`")
    if not own.get("link", True):
        extra.append("`link=False`")
    if not method.pure:
        extra.append("with `delta`")
    if method.adjacency != "replace-one":
        extra.append(f"`neighbours={method.adjacency}`")
    return ", ".join([f"`{method.name}`", *extra])


def _adversary(statement: PrivacyStatement) -> str:
    facts = MODELS[statement.model]
    if not facts.guarantee:
        return "no attacker"
    clusters = " and all clusters" if facts.given_partition else ""
    return f"an attacker who sees the release and knows every other record{clusters}"


def _public(method: Method, statement: PrivacyStatement) -> str:
    facts = ["domains, steps and settings"]
    if method.adjacency == "replace-one":
        facts.append("the number of records")
    if MODELS[statement.model].given_partition:
        facts.append("the clusters (although they are computed from the records)")
    return ", ".join(facts)


def _outcome(audit: Audit) -> str:
    """The bound, marked if it refutes ε, and if the method does not claim ε in this view."""
    shown = f"{int(audit.bound * 100) / 100:.2f}"
    if audit.refuted:
        return f"**refuted**, {shown}" + ("" if audit.claimed else ": not claimed")
    return shown


def _verdict(audit: Audit) -> str:
    bound = f"at least {int(audit.bound * 100) / 100:.2f}"
    if not audit.refuted:
        return f"not refuted with {audit.runs} runs: {bound}"
    return f"**refuted**: {bound}" + ("" if audit.claimed else ", as expected: this view is not claimed")


def write_between_markers(page: Path, tables: str) -> None:
    """Replace the text between the markers and nothing else."""
    text = page.read_text("utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"'{page}' must contain '{BEGIN}' and '{END}' once each.")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    aside = page.with_name(f"{page.name}.part")
    aside.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}", encoding="utf-8")
    aside.replace(page)


def recorded(path: Path) -> dict[str, Result]:
    """Recorded audits of rows that have not changed, by name."""
    if not path.exists():
        return {}
    rows = {row.name: row for row in ROWS}
    found = {}
    for entry in json.loads(path.read_text("utf-8")):
        row = rows.get(entry["name"])
        if row is not None and entry["row"] == _definition(row) and entry["runs"] == row.runs:
            audit = entry["audit"]
            attacks = tuple(Attack(**attack) for attack in audit["attacks"])
            found[row.name] = Result(
                row, Audit(**{**audit, "attacks": attacks}), entry["seconds"], entry["when"]
            )
    return found


def record(path: Path, results: Sequence[Result]) -> None:
    """Record the audits from which the page is written."""
    entries = [
        {
            "name": result.row.name,
            "row": _definition(result.row),
            "runs": result.audit.runs,
            "when": result.when,
            "seconds": round(result.seconds, 1),
            "audit": {**asdict(result.audit), "attacks": [asdict(a) for a in result.audit.attacks[:1]]},
        }
        for result in results
    ]
    path.write_text(json.dumps(entries, indent=1, ensure_ascii=False, default=str) + "\n", "utf-8")


def _definition(row: Row) -> str:
    """Everything that determines an audit: a row with the same definition need not be audited again."""
    example = EXAMPLES[row.data]
    domain = "" if example.hi == 100 else f" up to {example.hi}"
    return f"{row} on {example.columns}{domain}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit every row, write the tables, and exit with 0 if all outcomes are as expected."""
    parser = argparse.ArgumentParser(prog="python -m tools.guarantee_page", description=__doc__)
    parser.add_argument("page", type=Path, help="the page with the markers")
    parser.add_argument("--runs", type=int, help="test runs per row, instead of those in the audit table")
    parser.add_argument("--seed", type=int, help="seed that makes the audits repeatable")
    parser.add_argument("--missing", action="store_true", help="audit only rows without a recorded audit")
    asked = parser.parse_args(arguments)
    kept = RESULTS / "guarantee.json" if asked.page.resolve() == DOCS / "guarantee.md" else None
    beside = kept or asked.page.with_suffix(".json")
    known = recorded(beside) if asked.missing else {}
    results: list[Result] = []
    for row in ROWS:
        result = known.get(row.name) or _carried_out(row, asked.runs, asked.seed)
        results.append(result)
        if row.name not in known:
            mark = "" if result.as_expected else "NOT AS EXPECTED: "
            print(
                f"{mark}{row.name}: {result.audit.verdict} ({result.seconds:.0f} s)",
                file=sys.stderr,
                flush=True,
            )
            # so that an interrupted run can be resumed
            record(beside, [*results, *(known[r.name] for r in ROWS[len(results) :] if r.name in known)])
    write_between_markers(asked.page, guarantee_tables(results, machine_words()))
    return 0 if all(result.as_expected for result in results) else 1


def _carried_out(row: Row, runs: int | None, seed: int | None) -> Result:
    started = time.perf_counter()
    audit = run_row(row, runs=runs, seed=seed)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Result(row, audit, time.perf_counter() - started, today)


if __name__ == "__main__":
    sys.exit(main())
