"""`shoal reproduce`: run the recomputation of a paper that lies beside the package, in `papers/` of a checkout."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.output import complain, messages, print_json, progress_bar, results
from shoal.errors import OptionError

_HELP = """Recompute a paper's tables, figures and statements, and put them beside print.

    Papers: mdai2017, psd2014, idp, cross-moment, thesis, or all of them. Every printed number gets a verdict (equal,
    within Monte Carlo error, differs: why), every statement of the text too (holds, holds partly, fails). The folder
    --out gets one page per paper, with CSV files and figures beside it. An interrupted run goes on when it is called
    again.

    The papers are recomputed from a clone of Shoal's repository; they are not part of the installed package. The
    same there: python -m papers.

    The public data sets lie in 'datasets/' of the clone; --data names a folder with other copies.

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
        Path | None,
        typer.Option(help="Folder of the data sets; default: those of the clone.", show_default=False),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: all cores.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    papers = _papers()
    try:
        with progress_bar() as progress:
            done = papers.reproduce(paper, out, quick=quick, data=data, workers=workers, progress=progress)
    except KeyboardInterrupt:
        complain(
            f"interrupted; what is measured is kept in '{out}', and the same command goes on from there."
        )
        raise typer.Exit(130) from None
    counted = [
        {
            "paper": one.paper,
            "page": str(one.page),
            "numbers": papers.tally(number.verdict for number in one.study.numbers),
            "claims": papers.tally(claim.verdict for claim in one.study.claims),
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


def _papers() -> Any:
    """The folder `papers/` of the checkout that this file lies in, as a package."""
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / "papers" / "__main__.py").exists():
        raise OptionError("recomputed-papers-not-part-installed-package")
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    return importlib.import_module("papers")


# the docstring is the help text; typer reads it from here
reproduce.__doc__ = inspect.cleandoc(_HELP)
