"""`shoal studio`: perhaps a file comes in, the window on the library is opened in a browser on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.output import messages
from shoal.errors import InputError, needs_extra


def studio(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A table to begin with; it is read where it lies.")
    ] = None,
    port: Annotated[
        int, typer.Option(help="Port on this machine; 0 takes a free one.", min=0, max=65535)
    ] = 8260,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
) -> None:
    """Open the window a data custodian works in: a page in your browser, served by this machine to itself.

    Example: shoal studio people.csv
    """
    with needs_extra("studio", "the studio needs"):
        from shoal.studio.serve import serve

    if file is not None:
        from shoal.io import format_of

        if not file.is_file():
            raise InputError(f"there is no file '{file}'.")
        format_of(file)

    def ready(address: str) -> None:
        messages().print(
            f"Shoal Studio is at {address}\nOnly this machine can reach it. Stop with Ctrl-C.",
            markup=False,
            soft_wrap=True,
        )

    serve(None if file is None else file.resolve(), port, browser=not no_browser, ready=ready)
