"""`shoal demo`: the whole way on a made-up survey, from a table to a bundle, under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.output import progress_bar, results, say_promise, say_verdict

if TYPE_CHECKING:
    from shoal.evaluation import Evaluation
    from shoal.release.protect import Release

_COLUMNS = ("age", "sex", "region", "education", "hours per week", "income", "rent")
# the strongest promise first; it is what is written
_RUNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("pairs-dp", {}),
    ("tree-dp", {}),
    ("laplace", {}),
    ("ranking-dp", {"k": 250}),
    ("mdav-dp", {"k": 250}),
)


def demo(
    out: Annotated[Path | None, typer.Option(help="New folder for the results; default shoal-demo.")] = None,
    people: Annotated[int, typer.Option(help="Number of people in the survey.", min=500, max=100_000)] = 5000,
) -> None:
    """Protect a made-up survey, say whether it may be published, and show what other methods would do.

    Example: shoal demo
    """
    from shoal.evaluation import evaluate
    from shoal.evaluation.verdict import verdict
    from shoal.io import write
    from shoal.io.folders import check_output, staged
    from shoal.release.api import protect
    from shoal.survey import survey, survey_schema

    folder = out if out is not None else _free_name(Path("shoal-demo"))
    check_output(folder)
    console = results()
    table, schema = survey(people), survey_schema()
    console.print(
        f"A survey of {people:,} people who do not exist: {', '.join(table.column_names)}.\n"
        f"Protected: {', '.join(_COLUMNS)}.\n",
        markup=False,
    )
    releases, measured = [], []
    with progress_bar() as progress:
        for step, (method, options) in enumerate(_RUNS):
            progress("protecting and measuring", step, len(_RUNS))
            release = protect(table, schema, method, epsilon="1", columns=_COLUMNS, **options)
            releases.append(release)
            measured.append(evaluate(table, release))
    chosen, found = releases[0], verdict(releases[0], measured[0])
    with staged(folder) as aside:
        write(table, aside / "survey.csv")
        schema.save(aside / "survey.toml")
        chosen.save(
            aside / "release", aside / "internal.html", format="csv", evaluation=measured[0], original=table
        )
    console.print(f"Released with {chosen.method.name}:", markup=False)
    say_promise(chosen.statement)
    console.print(measured[0].summary())
    say_verdict(found)
    console.print("\nOther methods on the same people, for comparison only:")
    console.print(_comparison(releases, measured))
    console.print(
        f"\nWritten to {folder}: survey.csv and survey.toml (the input), release (may be published), internal.html "
        "(must not be).\n"
        "The same by hand:\n"
        f"  shoal protect {folder}/survey.csv --schema {folder}/survey.toml --epsilon 1 "
        f"--columns '{','.join(_COLUMNS)}' --out my-release",
        markup=False,
    )


_CLAIMS = {
    "dp": "of the original records",
    "dp-given-partition": "of averages of known groups",
}


def _comparison(releases: list[Release], measured: list[Evaluation]) -> Any:
    """What each method promises and what it is still good for."""
    from rich.table import Table

    from shoal.evaluation.verdict import USE_WORDS, verdict
    from shoal.text import roughly

    heads = ("method", "promise, ε = 1", "traced back", "averages move", "relations kept", "usefulness")
    table = Table(*heads, box=None, pad_edge=False)
    for (method, options), release, evaluation in zip(_RUNS, releases, measured, strict=True):
        words = " ".join(f"{key}={value}" for key, value in options.items())
        use = verdict(release, evaluation).measured.usefulness
        linked, lost = evaluation.risk["record_linkage"], evaluation.utility
        table.add_row(
            f"{method} {words}".strip(),
            _CLAIMS.get(release.statement.model, release.statement.model),
            "nobody's rows" if linked is None else f"{linked:.1f}%",
            roughly(lost["mean_shift_max"]),
            f"{lost['rank_correlations_kept']} of {lost['rank_correlations']}",
            "" if use is None else USE_WORDS[use.level],
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
