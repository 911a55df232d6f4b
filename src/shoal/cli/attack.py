"""`shoal attack`: an original, a released and perhaps a control table come in, measured risks are printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.output import print_json, progress_bar, results


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
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Attack a released table: linkability, singling out, attribute inference.

    Success in general is not yet a risk: hold out a control group before protecting ('shoal hold-out') and pass it
    with --control to see what is due to a person being in the data.

    Example: shoal attack people.csv release/data.csv --control held-out.csv
    """
    from shoal.cli.options import column_names
    from shoal.evaluation.attacks import attack as run
    from shoal.io import read

    with progress_bar() as progress:
        progress("reading the tables", 0, 1)
        table = read(original)
        chosen = None if columns is None else column_names([columns], table.names)
        report = run(
            table,
            read(released),
            None if control is None else read(control),
            columns=chosen,
            secret=secret,
            attempts=attacks,
            tolerance=tolerance,
            seed=seed,
            progress=progress,
        )
    if json:
        print_json(report.to_dict())
        return
    results().print(report)
