"""Overview of all reproduced papers, from the tables of each of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from papers.study import tally

_ABOUT = (
    "Shoal recomputes what five texts publish, four papers and a thesis: every table and figure for which the data are "
    "available, and every claim of their experiments, discussions, abstracts and conclusions. Each number is compared "
    "with the published value and gets a verdict. Each claim stands next to what we found, and each printed error next "
    "to the evidence. Numbers that differ have an explanation; nothing was tuned until it matched."
)


def page(folder: Path, papers: Sequence[str]) -> str:
    """The overview of those papers whose pages are in the folder."""
    there = [paper for paper in papers if (folder / f"{paper}.md").exists()]
    lines = [
        "# Five papers, recomputed",
        "",
        "Written by `shoal reproduce` from the pages beside it.",
        "",
        _ABOUT,
        "",
    ]
    lines += [*_table(folder, there), "", *_failing(folder, there)]
    return "\n".join(lines).rstrip() + "\n"


def _table(folder: Path, papers: Sequence[str]) -> Iterator[str]:
    yield "| text | printed numbers | claims | printed errors | full or quick |"
    yield "| --- | --- | --- | ---: | --- |"
    for paper in papers:
        title, head = _title_and_head(folder, paper)
        numbers = tally(row["verdict"] for row in _rows(folder, paper, "numbers")) or "none"
        claims = tally(row["verdict"] for row in _rows(folder, paper, "claims"))
        errors = len(_rows(folder, paper, "errata"))
        effort = "quick" if "--quick" in head else "full"
        yield f"| [{title}]({paper}.md) | {numbers} | {claims} | {errors} | {effort} |"


def _failing(folder: Path, papers: Sequence[str]) -> Iterator[str]:
    yield from ("## Claims that fail", "")
    for paper in papers:
        rows = [row for row in _rows(folder, paper, "claims") if row["verdict"] == "fails"]
        if not rows:
            continue
        yield from (f"### {_title_and_head(folder, paper)[0]}", "")
        yield from ("| where | the text says | we found |", "| --- | --- | --- |")
        for row in rows:
            cells = (row[column].replace("|", "\\|") for column in ("where", "claim", "found"))
            yield f"| {' | '.join(cells)} |"
        yield ""


def _title_and_head(folder: Path, paper: str) -> tuple[str, str]:
    title, _, head, *_ = (folder / f"{paper}.md").read_text("utf-8").splitlines()
    return title.removeprefix("# ").removesuffix(", recomputed"), head


def _rows(folder: Path, paper: str, name: str) -> list[dict[str, str]]:
    path = folder / paper / f"{name}.csv"
    # pages of an older version may lack a table
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
