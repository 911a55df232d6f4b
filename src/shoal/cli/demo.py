"""`shoal demo`: the whole way on a made-up survey, from a table to a bundle, under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.output import progress_bar, results

if TYPE_CHECKING:
    from shoal.evaluation import Evaluation
    from shoal.release.protect import Release

_COLUMNS = ("age", "hours per week", "income", "tax", "rent")
_RUNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("laplace", {}),
    ("mdav-dp", {"k": 250, "split": "equal"}),
    ("ranking-dp", {"k": 250}),
    ("ranking-dp", {"k": 250, "link": False}),
)


def demo(
    out: Annotated[Path | None, typer.Option(help="New folder for the results; default shoal-demo.")] = None,
    people: Annotated[int, typer.Option(help="Number of people in the survey.", min=500, max=100_000)] = 5000,
) -> None:
    """Protect a made-up survey with several methods, compare them, and write a bundle.

    Example: shoal demo
    """
    from rich.markdown import Markdown

    from shoal.evaluation import evaluate
    from shoal.io import write
    from shoal.release.bundle import check_output, staged
    from shoal.release.protect import protect
    from shoal.survey import survey, survey_schema

    folder = out if out is not None else _free_name(Path("shoal-demo"))
    check_output(folder)
    console = results()
    table, schema = survey(people), survey_schema()
    console.print(
        f"A survey of {people} people who do not exist: {', '.join(table.column_names)}.\n"
        f"Protected: {', '.join(_COLUMNS)}. Left out: identifiers and nominal columns, and savings, which has "
        "missing values.\n",
        markup=False,
    )
    releases, measured = [], []
    with progress_bar() as progress:
        for step, (method, options) in enumerate(_RUNS):
            progress("protecting and measuring", step, len(_RUNS))
            release = protect(table, schema, method, epsilon="1", columns=_COLUMNS, **options)
            releases.append(release)
            measured.append(evaluate(table, release))
    console.print(_comparison(releases, measured))
    chosen = releases[2]
    with staged(folder) as aside:
        write(table, aside / "survey.csv")
        schema.save(aside / "survey.toml")
        chosen.save(
            aside / "release", aside / "internal.html", format="csv", evaluation=measured[2], original=table
        )
    console.print()
    console.print(
        Markdown(chosen.statement.to_markdown()) if console.is_terminal else chosen.statement.to_markdown()
    )
    console.print(
        f"Written to {folder}: survey.csv and survey.toml (the input), release (may be published), internal.html "
        "(must not be).\n"
        "The same by hand:\n"
        f"  shoal protect {folder}/survey.csv --schema {folder}/survey.toml --method ranking-dp --epsilon 1 --k 250 "
        f"--columns '{','.join(_COLUMNS)}' --out my-release",
        markup=False,
    )


# what the comparison shows of each evaluation: heading, part, measure
_FIGURES = (
    ("error", "utility", "normalised_sse"),
    ("shift", "utility", "wasserstein"),
    ("corr.", "utility", "correlation_difference"),
    ("linked %", "risk", "record_linkage"),
)
_CAPTION = (
    "error: squared error / variance; shift: Wasserstein-1 distance / standard deviation; corr.: mean change of "
    "correlations; linked: rows nearest to their own record. Low is good."
)


def _comparison(releases: list[Release], measured: list[Evaluation]) -> Any:
    from rich.table import Table

    table = Table(
        "method",
        "claim (ε = 1)",
        *(heading for heading, _, _ in _FIGURES),
        box=None,
        pad_edge=False,
        caption=_CAPTION,
    )
    for (method, options), release, evaluation in zip(_RUNS, releases, measured, strict=True):
        words = " ".join(f"{key}={value}" for key, value in options.items())
        figures = (getattr(evaluation, part)[measure] for _, part, measure in _FIGURES)
        table.add_row(
            f"{method} {words}".strip(),
            release.statement.model,
            *("-" if value is None else f"{value:.3g}" for value in figures),
        )
    return table


def _free_name(folder: Path) -> Path:
    """The folder, or the first of folder-2, folder-3, ... that does not exist yet."""
    number = 1
    candidate = folder
    while candidate.exists():
        number += 1
        candidate = folder.with_name(f"{folder.name}-{number}")
    return candidate
