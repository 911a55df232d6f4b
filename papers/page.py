"""Write a study as one markdown page with its CSV files and drawings."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from papers.study import Claim, Erratum, Figure, Number, Section, Study, tally

_ERRATUM = ("where", "printed", "right", "shown by")


def files(name: str, study: Study, head: str) -> dict[str, str]:
    """Relative path -> content of everything that is written for a paper."""
    made = {f"{name}.md": page(name, study, head), f"{name}/numbers.csv": _csv(*_number_rows(study.numbers))}
    made[f"{name}/claims.csv"] = _csv(*_claim_rows(study.claims))
    made[f"{name}/errata.csv"] = _csv(_ERRATUM, [_erratum_cells(erratum) for erratum in study.errata])
    for series in study.series:
        made[f"{name}/{series.name}.csv"] = _csv(series.columns, series.rows)
    for figure in study.figures:
        made[f"{name}/{figure.name}.svg"] = figure.svg
    return made


def page(name: str, study: Study, head: str) -> str:
    """The whole page."""
    lines = [f"# {study.title}", "", head, "", study.about, "", *_overview(name, study)]
    for section in study.sections:
        lines += _section(name, section)
    if study.errata:
        lines += ["## Errata", "", *_errata(study.errata), ""]
    return "\n".join(lines).rstrip() + "\n"


def _overview(name: str, study: Study) -> Iterator[str]:
    yield "| | of | verdicts |"
    yield "| --- | ---: | --- |"
    if study.numbers:
        yield f"| printed numbers | {len(study.numbers)} | {tally(n.verdict for n in study.numbers)} |"
    yield f"| statements of the text | {len(study.claims)} | {tally(c.verdict for c in study.claims)} |"
    if study.errata:
        yield f"| [printed errors](#errata) | {len(study.errata)} | each with what shows it |"
    yield ""
    failing = [claim for claim in study.claims if claim.verdict == "fails"]
    if failing:
        yield from ("Statements that fail here (the rows below say what was found instead):", "")
        yield from (*(f"- {claim.where}: {claim.said}" for claim in failing), "")
    names = ["numbers", "claims", "errata", *(series.name for series in study.series)]
    listed = ", ".join(f"[{file}]({name}/{file}.csv)" for file in names)
    yield (
        "*Equal* means: the printed digits. *Within Monte Carlo error*: at most three standard errors apart, "
        f"besides rounding. The same as CSV: {listed}."
    )
    yield ""


def _section(name: str, section: Section) -> Iterator[str]:
    yield from (f"## {section.title}", "")
    if section.text:
        yield from (section.text, "")
    if section.numbers:
        yield from (*number_table(section.numbers), "")
    if section.more:
        yield from (section.more.strip("\n"), "")
    for figure in section.figures:
        yield from _picture(name, figure)
    if section.claims:
        yield from (*claim_table(section.claims), "")


def _picture(name: str, figure: Figure) -> Iterator[str]:
    yield from (f"![{figure.caption}]({name}/{figure.name}.svg)", "", f"*{figure.caption}*", "")


def number_table(numbers: Sequence[Number]) -> Iterator[str]:
    """Columns printed, Shoal, difference, verdict."""
    yield "| where | number | printed | Shoal | difference | verdict |"
    yield "| --- | --- | ---: | ---: | ---: | --- |"
    for n in numbers:
        cells = (n.where, n.what, n.printed, n.found_words, n.difference_words, n.verdict_words)
        yield _line(cells)


def claim_table(claims: Sequence[Claim]) -> Iterator[str]:
    yield "| where | the paper says | found | verdict |"
    yield "| --- | --- | --- | --- |"
    for claim in claims:
        yield _line((claim.where, claim.said, claim.found, f"**{claim.verdict}**"))


def _errata(errata: Sequence[Erratum]) -> Iterator[str]:
    yield _line(_ERRATUM)
    yield "| --- | --- | --- | --- |"
    for erratum in errata:
        yield _line(_erratum_cells(erratum))


def _erratum_cells(erratum: Erratum) -> Sequence[str]:
    return (erratum.where, erratum.printed, erratum.right, erratum.shown)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _number_rows(numbers: Sequence[Number]) -> tuple[Sequence[str], list[Sequence[object]]]:
    columns = ("where", "number", "printed", "shoal", "standard_error", "difference", "verdict", "why")
    rows: list[Sequence[object]] = [
        (
            n.where,
            n.what,
            n.printed,
            f"{n.found:.8g}",
            f"{n.error:.2g}",
            f"{n.difference:.4g}",
            n.verdict,
            # a reason held ready for a difference that did not come is none
            n.why if n.verdict == "differs" else "",
        )
        for n in numbers
    ]
    return columns, rows


def _claim_rows(claims: Sequence[Claim]) -> tuple[Sequence[str], list[Sequence[object]]]:
    return ("where", "claim", "found", "verdict"), [(c.where, c.said, c.found, c.verdict) for c in claims]


def _csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return file.getvalue()


def write(folder: Path, made: dict[str, str]) -> None:
    """All files, each complete or not there; figures and tables of an earlier run with other names are removed."""
    for place in {Path(name).parent for name in made if Path(name).parent != Path()}:
        (folder / place).mkdir(parents=True, exist_ok=True)
        for old in (folder / place).iterdir():
            if old.suffix in (".csv", ".svg") and (place / old.name).as_posix() not in made:
                old.unlink()
    for name, text in made.items():
        aside = folder / f"{name}.part"
        aside.write_text(text, "utf-8")
        aside.replace(folder / name)
