"""`shoal check`: a table from any tool comes in, the k, l and t it reaches are printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.output import complain, print_json, progress_bar, results


def check(
    table: Annotated[Path, typer.Argument(help="The table: CSV or Parquet.", show_default=False)],
    quasi: Annotated[
        list[str] | None, typer.Option(help="Columns an intruder may know, a,b,c; by default by role.")
    ] = None,
    confidential: Annotated[
        list[str] | None, typer.Option(help="Confidential columns, a,b,c; by default by role.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="Schema file: roles, and the order of ordinal columns.")
    ] = None,
    k: Annotated[int | None, typer.Option("--k", "-k", help="Ask for at least k rows in a group.")] = None,
    diversity: Annotated[
        int | None, typer.Option("--l", "-l", help="Ask for l different confidential values in a group.")
    ] = None,
    t_emd: Annotated[
        float | None, typer.Option(help="Ask for an earth mover's distance to the table of at most this.")
    ] = None,
    t_ratio: Annotated[
        float | None, typer.Option(help="Ask for ratios of shares, group to table, of at most this.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure the k-anonymity, l-diversity and t-closeness that a table reaches, whichever tool made it.

    Ends with 1 when a level that was asked for is not reached, 0 otherwise.

    Example: shoal check release/data.csv --quasi age,sex,town --confidential illness --k 5 --l 2
    """
    from shoal.cli.options import column_names
    from shoal.columns.schema import Schema
    from shoal.evaluation.checks import check as measure
    from shoal.io import read

    with progress_bar() as progress:
        progress("reading the table", 0, 1)
        data = read(table)
        found = measure(
            data,
            None if quasi is None else column_names(quasi, data.names),
            None if confidential is None else column_names(confidential, data.names),
            schema=None if schema is None else Schema.load(schema),
            k=k,
            l=diversity,
            t_emd=t_emd,
            t_ratio=t_ratio,
            progress=progress,
        )
    if json:
        print_json(found.to_dict())
    else:
        results().print(found)
        for requirement in found.requirements:
            results().print(requirement.words, markup=False)
    if not found.met:
        missed = "; ".join(r.words for r in found.requirements if not r.met)
        complain(f"a level asked for is not reached: {missed}.")
        raise typer.Exit(1)
