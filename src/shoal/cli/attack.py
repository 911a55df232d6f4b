"""`shoal attack`: an original, a released and perhaps a control table come in, measured risks are printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.output import print_json, results


def attack(
    original: Annotated[Path, typer.Argument(help="The table that was protected.", show_default=False)],
    released: Annotated[Path, typer.Argument(help="The released table, from any tool.", show_default=False)],
    control: Annotated[
        Path | None, typer.Option(help="Records like the original ones that were not used for the release.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Attack only these columns, a,b,c.")] = None,
    secret: Annotated[
        str | None, typer.Option(help="Infer this column from all others; by default each.")
    ] = None,
    attacks: Annotated[int, typer.Option(help="Attempts of each attack.")] = 500,
    tolerance: Annotated[
        float, typer.Option(help="How far off a right guess of a number may be, as a share of its range.")
    ] = 0.05,
    seed: Annotated[int | None, typer.Option(help="Reproducible choice of targets.")] = None,
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
    """Attack a released table: linkability, singling out, attribute inference.

    Success in general is not yet a risk: hold out a control group before protecting and pass it with
    --control to see what is due to a person being in the data.

    Example: shoal attack people.csv release/data.csv --control held-out.csv
    """
    typed = locals()
    from shoal.evaluation.attacks import attack as run

    table, published, held_out = options.read_tables([original, released, control], typed)
    chosen = None if columns is None else options.column_names([columns], table.names)
    options.check_compared([table, published, held_out], chosen)
    report = run(
        table,
        published,
        held_out,
        columns=chosen,
        secret=secret,
        attempts=attacks,
        tolerance=tolerance,
        seed=seed,
    )
    if json:
        print_json(report.to_dict())
        return
    results().print(report)
