"""`shoal check`: a table from any tool comes in, the k, l and t it reaches are printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import typer

from shoal.cli import options
from shoal.cli.any_table import SURVEY, columns_flag, table_and_columns
from shoal.cli.command import Flag
from shoal.cli.output import complain, print_json, progress_bar, results


def flags() -> tuple[Flag, ...]:
    """The options of `shoal check`."""
    known = "Columns an intruder may know, a,b,c; by default by role."
    hidden = "Confidential columns, a,b,c; by default by role."
    roles = "Schema file: roles, and the order of ordinal columns."
    apart = "Ask for an earth mover's distance to the table of at most this."
    ratio = "Ask for ratios of shares, group to table, of at most this."
    return (
        options.data("table"),
        columns_flag("quasi", known),
        columns_flag("confidential", hidden),
        replace(options.SCHEMA, help=roles),
        *options.ABOUT_FILES,
        Flag("k", "Ask for at least k rows in a group.", "promise", int, ("--k", "-k"), common=True),
        Flag(
            "l",
            "Ask for l different confidential values in a group.",
            "promise",
            int,
            ("--l", "-l"),
            common=True,
        ),
        Flag("t_emd", apart, "promise", float, common=True, placeholder="T"),
        Flag("t_ratio", ratio, "promise", float, common=True, placeholder="T"),
        *SURVEY,
        replace(options.JSON, common=True),
    )


def check(typed: Mapping[str, Any]) -> None:
    """Measure the k-anonymity, l-diversity and t-closeness that a table reaches, and its disclosure risk.

    The table can come from any tool; 'shoal risk' has more about the disclosure risk. Ends with 1 when a level that
    was asked for is not reached, 0 otherwise.

    Example:

      shoal check release/data.csv --quasi age,sex,town --confidential illness --k 5 --l 2
    """
    from shoal.evaluation.checks import check as measure

    with progress_bar() as progress:
        progress("reading the table", 0, 1)
        data, declared, named = table_and_columns(typed, ("quasi", "confidential"))
        levels = {name: typed[name] for name in ("k", "l", "t_emd", "t_ratio", "weight", "household")}
        found = measure(
            data, named["quasi"], named["confidential"], schema=declared, progress=progress, **levels
        )
    if typed["json"]:
        print_json(found.to_dict())
    else:
        results().print(found)
        for requirement in found.requirements:
            results().print(requirement.words, markup=False)
    if not found.met:
        missed = "; ".join(r.words for r in found.requirements if not r.met)
        complain(f"a level asked for is not reached: {missed}.")
        raise typer.Exit(1)
