"""`shoal evaluate`: two tables come in, what changed between them is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.output import print_json, progress_bar, results, say_measures, say_verdict

Target = Annotated[
    str | None, typer.Option(help="Column to learn: one of classes, or a number with a threshold, 'a>30'.")
]


def evaluate(
    original: Annotated[Path, typer.Argument(help="The original table.", show_default=False)],
    released: Annotated[Path, typer.Argument(help="The released table, from any tool.", show_default=False)],
    columns: Annotated[str | None, typer.Option(help="Compare only these columns, a,b,c.")] = None,
    target: Target = None,
    na: options.MissingTexts = None,
    everything: Annotated[bool, typer.Option("--all", help="Print every measure.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare a released table with its original, without using the order of rows.

    RELEASED is a table from any tool, or the folder of a release; the verdict of a release is printed with it.

    Measures that need to know which row came from which (SSE, record linkage) are printed by
    'shoal protect --evaluate'. With --target, a random forest is trained on the released rows, which must hold
    that column, and tested on the original ones.

    Examples:

      shoal evaluate people.csv release/data.csv

      shoal evaluate people.csv release/data.csv --target 'income>30000'
    """
    from shoal.evaluation import evaluate as measure
    from shoal.evaluation.verdict import verdict
    from shoal.io import read
    from shoal.report.subject import bundle_of, published

    bundle = bundle_of(released)
    with progress_bar() as progress:
        progress("reading the tables", 0, 1)
        types = {} if bundle is None else bundle.schema.types
        table = read(original, na or (bundle.na if bundle is not None else ()), types)
        after = published(bundle) if bundle is not None else read(released, na or ())
        chosen = None if columns is None else options.column_names([columns], table.names)
        measured = measure(table, after, columns=chosen, target=target, progress=progress)
    found = None if bundle is None else verdict(bundle.statement, measured)
    if json:
        print_json({**measured.to_dict(), **({} if found is None else {"verdict": found.to_dict()})})
        return
    say_measures(measured, everything)
    if found is not None:
        say_verdict(found)
    else:
        results().print(
            "Verdict: none. No statement lies beside the released table, so nothing is known to be promised.",
            markup=False,
        )
