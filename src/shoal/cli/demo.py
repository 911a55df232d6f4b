"""`shoal demo`: the whole way on a made-up survey, from a table to a bundle, under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.output import progress_bar, results

if TYPE_CHECKING:
    from shoal.evaluation import Evaluation

_COLUMNS = ("age", "hours per week", "income", "tax", "rent")
_RUNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("laplace", {}),
    ("mdav-dp", {"k": 100}),
    ("ranking-dp", {"k": 100, "split": "optimal"}),
    ("ranking-dp", {"k": 100, "split": "optimal", "link": False}),
)


def demo(
    out: Annotated[Path | None, typer.Option(help="New folder for the results; default shoal-demo.")] = None,
    people: Annotated[int, typer.Option(help="Number of people in the survey.", min=500, max=100_000)] = 5000,
) -> None:
    """Protect a made-up survey with several methods, compare them, and write a bundle.

    Example: shoal demo
    """
    from rich.markdown import Markdown

    from shoal.bundle import check_output, staged
    from shoal.evaluation import evaluate
    from shoal.io import write
    from shoal.release import protect
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
    console.print(_comparison(measured))
    chosen = releases[2]
    with staged(folder) as aside:
        write(table, aside / "survey.csv")
        schema.save(aside / "survey.toml")
        chosen.save(aside / "release", aside / "internal.html", evaluation=measured[2])
    console.print()
    console.print(
        Markdown(chosen.statement.to_markdown()) if console.is_terminal else chosen.statement.to_markdown()
    )
    console.print(
        f"Written to {folder}: survey.csv and survey.toml (the input), release (may be published), internal.html "
        "(must not be).\n"
        "The same by hand:\n"
        f"  shoal protect {folder}/survey.csv --schema {folder}/survey.toml --method ranking-dp --epsilon 1 --k 100 "
        f"--columns '{','.join(_COLUMNS)}' --split optimal --out my-release",
        markup=False,
    )


def _comparison(measured: list[Evaluation]) -> Any:
    from rich.table import Table

    from shoal.presets import preset
    from shoal.statement import privacy_model

    table = Table(
        "method (ε = 1)",
        "claim",
        "mean squared error / variance",
        "mean W1 distance / sd",
        "correlation difference",
        "record linkage %",
        box=None,
        pad_edge=False,
    )
    for (method, options), evaluation in zip(_RUNS, measured, strict=True):
        configured = preset(method).configure(epsilon="1", **options)
        utility, risk = evaluation.utility, evaluation.risk
        words = ", ".join(f"{key}={value}" for key, value in options.items())
        table.add_row(
            f"{method} {words}",
            privacy_model(configured, len(_COLUMNS)),
            *(_figure(value) for value in _figures(utility, risk)),
        )
    return table


def _figures(utility: dict[str, Any], risk: dict[str, Any]) -> list[float | None]:
    raise NotImplementedError


def _figure(value: float | None) -> str:
    return "no rows to match" if value is None else f"{value:.3g}"


def _free_name(folder: Path) -> Path:
    """The folder, or the first of folder-2, folder-3, ... that does not exist yet."""
    number = 1
    candidate = folder
    while candidate.exists():
        number += 1
        candidate = folder.with_name(f"{folder.name}-{number}")
    return candidate
