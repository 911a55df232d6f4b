"""`shoal evaluate`: two tables come in, what changed between them is printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.cli import options
from shoal.cli.command import Flag
from shoal.cli.output import print_json, results


def flags() -> tuple[Flag, ...]:
    """The options of `shoal evaluate`."""
    return (
        Flag("original", "The original table.", "input", Path, argument=True, common=True),
        Flag("released", "The released table, from any tool.", "input", Path, argument=True, common=True),
        Flag("columns", "Compare only these columns, a,b,c.", "input", common=True, placeholder="A,B,C"),
        *options.ABOUT_FILES,
        replace(options.TARGET, common=True),
        replace(options.JSON, common=True),
    )


def evaluate(typed: Mapping[str, Any]) -> None:
    """Compare a released table with its original, without using the order of rows.

    Measures that need to know which row came from which (SSE, record linkage) are printed by
    'shoal protect --evaluate'. With --target, a random forest is trained on the released rows, which must hold
    that column, and tested on the original ones.

    Examples:

      shoal evaluate people.csv release/data.csv

      shoal evaluate people.csv release/data.csv --target 'income>30000'
    """
    from shoal.evaluation import evaluate as measure

    table, published = options.read_tables([typed["original"], typed["released"]], typed)
    columns = typed["columns"]
    chosen = None if columns is None else options.column_names([columns], table.names)
    options.check_compared([table, published], chosen)
    measured = measure(table, published, columns=chosen, target=typed["target"])
    if typed["json"]:
        print_json(measured.to_dict())
        return
    results().print(measured)
