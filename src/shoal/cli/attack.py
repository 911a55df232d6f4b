"""`shoal attack`: attack a released table and measure the risk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.cli import options
from shoal.cli.command import Flag
from shoal.cli.output import print_json, progress_bar, results


def flags() -> tuple[Flag, ...]:
    """The options of `shoal attack`."""
    held_out = "Records like the original ones that were not used for the release."
    near = "How far off a right guess of a number may be, as a share of its range."
    return (
        Flag("original", "The table that was protected.", "input", Path, argument=True, common=True),
        Flag("released", "The released table, from any tool.", "input", Path, argument=True, common=True),
        Flag("control", held_out, "input", Path, common=True, placeholder="FILE"),
        Flag("columns", "Attack only these columns, a,b,c.", "input", common=True, placeholder="A,B,C"),
        Flag(
            "secret", "Infer this column from all others; by default each.", common=True, placeholder="COLUMN"
        ),
        Flag("attacks", "Attempts of each attack.", type=int, default=500, common=True, placeholder="N"),
        Flag("tolerance", near, type=float, default=0.05, placeholder="SHARE"),
        Flag("seed", "Reproducible choice of targets.", type=int, placeholder="N"),
        *options.ABOUT_FILES,
        replace(options.JSON, common=True),
        *options.NOTED,
    )


def attack(typed: Mapping[str, Any]) -> None:
    """Attack a released table: linkability, singling out, attribute inference.

    Success in general is not yet a risk: hold out a control group before protecting ('shoal hold-out') and pass it
    with --control to see what is due to a person being in the data.

    Example:

      shoal attack people.csv release/data.csv --control held-out.csv
    """
    from shoal.evaluation.attacks import attack as run

    with progress_bar() as progress:
        progress("reading the tables", 0, 1)
        tables = options.read_tables([typed["original"], typed["released"], typed["control"]], typed)
        columns = typed["columns"]
        chosen = None if columns is None else options.column_names([columns], tables[0].names)
        options.check_compared(tables, chosen)
        report = run(
            *tables,
            columns=chosen,
            secret=typed["secret"],
            attempts=typed["attacks"],
            tolerance=typed["tolerance"],
            seed=typed["seed"],
            progress=progress,
        )
        columns = chosen or tables[1].names
        options.note_use(typed, "measured", tables[0], columns, "attack", released=typed["released"])
    if typed["json"]:
        print_json(report.to_dict())
        return
    results().print(report)
