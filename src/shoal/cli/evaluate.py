"""`shoal evaluate`: two tables come in, what changed between them is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.output import print_json, results

Target = Annotated[
    str | None, typer.Option(help="Column to learn: one of classes, or a number with a threshold, 'a>30'.")
]


def evaluate(
    original: Annotated[Path, typer.Argument(help="The original table.", show_default=False)],
    released: Annotated[Path, typer.Argument(help="The released table, from any tool.", show_default=False)],
    columns: Annotated[str | None, typer.Option(help="Compare only these columns, a,b,c.")] = None,
    target: Target = None,
    na: options.MissingTexts = None,
    encoding: options.Encoding = None,
    separator: options.Separator = None,
    decimal: options.DecimalSign = None,
    thousands: options.Thousands = None,
    quote: options.Quote = None,
    sheet: options.Sheet = None,
    date_format: options.DateFormats = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare a released table with its original, without using the order of rows.

    Measures that need to know which row came from which (SSE, record linkage) are printed by
    'shoal protect --evaluate'. With --target, a random forest is trained on the released rows, which must hold
    that column, and tested on the original ones.

    Examples:

      shoal evaluate people.csv release/data.csv

      shoal evaluate people.csv release/data.csv --target 'income>30000'
    """
    typed = locals()
    from shoal.evaluation import evaluate as measure

    table, published = options.read_tables([original, released], typed)
    chosen = None if columns is None else options.column_names([columns], table.names)
    options.check_compared([table, published], chosen)
    measured = measure(table, published, columns=chosen, target=target)
    if json:
        print_json(measured.to_dict())
        return
    results().print(measured)
