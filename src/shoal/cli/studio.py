"""`shoal studio`: serve the browser interface on this machine and open it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.output import messages
from shoal.errors import InputError, needs_extra

_BY_HAND = "Open this address in your browser: it works once, and only on this machine."
_OPENED = f"Your browser opens by itself. If it does not: {_BY_HAND[0].lower()}{_BY_HAND[1:]}"


def studio(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A table to begin with; it is read where it lies.")
    ] = None,
    port: Annotated[
        int, typer.Option(help="Port on this machine; 0 takes a free one.", min=0, max=65535)
    ] = 8260,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open no browser.")
    ] = False,
) -> None:
    """Open the window a data custodian works in: a page in your browser, served by this machine to itself.

    Example: shoal studio people.csv
    """
    with needs_extra("studio", "the studio needs"):
        from shoal.studio.app import serve

    if file is not None:
        from shoal.io import format_of

        if not file.is_file():
            raise InputError("there-no-file", file=file)
        format_of(file)

    def ready(address: str, again: bool) -> None:
        first = f"Shoal Studio is at {address}\n{_BY_HAND if no_browser else _OPENED}\nStop with Ctrl-C."
        text = f"That address was used. The next one: {address}" if again else first
        messages().print(text, markup=False, soft_wrap=True)

    serve(None if file is None else file.resolve(), port, browser=not no_browser, ready=ready)
