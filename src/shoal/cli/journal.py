"""`shoal journal`: show or clear the journal of use."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.output import complain, print_json, results
from shoal.errors import OptionError, OutputError


def journal(
    what: Annotated[str, typer.Argument(help="show or clear.", metavar="[show|clear]")] = "show",
    dataset: Annotated[
        str | None,
        typer.Option(*options.DATASET.typed, help="Only the entries of this data set.", metavar="NAME"),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Also the journal beside this ledger.", metavar="ADDRESS")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show what was done with records on this machine, or clear it; nothing of it leaves by itself.

    Statements take from it what is recorded under the name of their data set. Times, paths and hashes stay here.

    Examples:

      shoal journal

      shoal journal --dataset people

      shoal journal clear --dataset people
    """
    from shoal.journal import Journal

    opened = Journal.open(ledger=ledger)
    if what == "clear":
        try:
            count = opened.clear(dataset)
        except OSError as error:
            raise OutputError("journal-cannot-cleared", reason=error.strerror or error) from None
        entries = "entry" if count == 1 else "entries"
        results().print(f"{count} {entries} cleared.", markup=False)
        return
    if what != "show":
        raise OptionError("not-show-clear", what=what)
    found = opened.entries(dataset)
    if as_json:
        print_json([entry.to_dict() for entry in found])
    else:
        for entry in found:
            results().print(entry.words, markup=False)
        if not found:
            results().print("The journal has no entries.", markup=False)
    if opened.problem:
        complain(f"{opened.problem}.")
