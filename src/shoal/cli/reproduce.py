"""`shoal reproduce`: a paper's name comes in; its numbers beside print are computed, written and counted."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.output import complain, messages, print_json, progress_bar, results

_HELP = """Recompute a paper's tables, figures and statements, and put them beside print.

    Papers: mdai2017, psd2014, idp, cross-moment, thesis, or all of them. Every printed number gets a verdict (equal,
    within Monte Carlo error, differs: why), every statement of the text too (holds, holds partly, fails). The folder
    --out gets one page per paper, with CSV files and figures beside it. An interrupted run goes on when it is called
    again.

    The data sets are public but not part of Shoal: put census.csv, eia.csv, adult.csv, wine_white.csv and the
    taxonomies into a folder and name it with --data or in SHOAL_DATA.

    Examples:

      shoal reproduce mdai2017 --quick

      shoal reproduce all --out docs/reproduction
    """


def reproduce(
    paper: Annotated[
        str, typer.Argument(help="mdai2017, psd2014, idp, cross-moment, thesis or all.", show_default=False)
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings and runs: minutes in all.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the pages.")] = Path("reproduction"),
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data sets; default SHOAL_DATA.", show_default=False)
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: all cores.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    from shoal.reproduce import reproduce as run
    from shoal.reproduce import tally

    try:
        with progress_bar() as progress:
            done = run(paper, out, quick=quick, data=data, workers=workers, progress=progress)
    except KeyboardInterrupt:
        complain(
            f"interrupted; what is measured is kept in '{out}', and the same command goes on from there."
        )
        raise typer.Exit(130) from None
    counted = [
        {
            "paper": one.paper,
            "page": str(one.page),
            "numbers": tally(number.verdict for number in one.study.numbers),
            "claims": tally(claim.verdict for claim in one.study.claims),
        }
        for one in done
    ]
    if as_json:
        print_json(counted)
        return
    for one in counted:
        results().print(
            f"{one['paper']}: numbers {one['numbers'] or 'none printed'}; claims {one['claims']}."
        )
    messages().print(f"Written to '{out}'.")


# the docstring is the help text; typer reads it from here
reproduce.__doc__ = inspect.cleandoc(_HELP)
