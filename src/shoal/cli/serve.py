"""`shoal serve`: a folder of data sets comes in, questions about them are answered until it is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.output import messages
from shoal.errors import needs_extra

Folder = Annotated[
    Path, typer.Option("--data", help="Folder with the data sets, tokens and ledger.", show_default=False)
]
DEMO_TOKEN = "analyst.token"


def serve(
    data: Folder,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)
    ] = 8200,
    ledger: Annotated[
        str | None,
        typer.Option(
            envvar="SHOAL_LEDGER", help="Path or postgresql:// address; default: ledger.sqlite in the folder."
        ),
    ] = None,
    heads: Annotated[
        Path | None,
        typer.Option(
            help="One more file, outside the folder, that notes the ledger's heads; checked at start."
        ),
    ] = None,
    rate: Annotated[float, typer.Option(help="Requests per second and token; 0 for no limit.", min=0)] = 50.0,
    pace: Annotated[
        float,
        typer.Option(
            help="Seconds between two times at which an answer may leave; 0 at once, which shows timing.",
            min=0,
        ),
    ] = 0.1,
    allowance: Annotated[
        float,
        typer.Option(help="How many times its usual time a question is allowed, for slow machines.", min=1),
    ] = 4.0,
    patience: Annotated[float, typer.Option(help="Seconds until an answer is called late.", min=0.1)] = 30.0,
    workers: Annotated[int, typer.Option(help="Threads that compute answers.", min=1, max=64)] = 2,
    processes: Annotated[int, typer.Option(help="Processes that answer side by side.", min=1, max=64)] = 1,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Make the folder, with the demo survey and a token, if it is not there."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log warnings only.")] = False,
) -> None:
    """Answer questions about data sets, each for a part of a budget that cannot be overdrawn.

    Example: shoal serve --data shoal-served --demo
    """
    with needs_extra("server", "the query server needs"):
        import sqlalchemy  # noqa: F401

        from shoal.query.server.guard import Limits
        from shoal.query.server.run import bound_socket
        from shoal.query.server.run import serve as run
        from shoal.query.server.state import Config

    if demo:
        _make_demo(data)
    limits = Limits(rate=rate, pace=pace, patience=patience, workers=workers, allowance=allowance)
    socket = bound_socket(host, port)
    where, taken = socket.getsockname()[:2]
    shown = f"[{where}]" if ":" in where else where

    def ready() -> None:
        if not _is_loopback(where):
            messages().print(
                f"Warning: others can reach {where}, and this server speaks plain HTTP: tokens, questions and answers "
                "can be read on the way. Put a proxy with TLS in front, or listen on 127.0.0.1.",
                markup=False,
            )
        messages().print(
            f"Serving {data} on http://{shown}:{taken} (description at /docs). Stop with Ctrl-C.",
            markup=False,
        )

    run(Config(data, ledger, heads, limits), [socket], ready, log_requests=not quiet, processes=processes)


def _is_loopback(host: str) -> bool:
    import ipaddress

    return ipaddress.ip_address(host.partition("%")[0]).is_loopback


def _make_demo(folder: Path) -> None:
    """The demo survey as a data set, and a token for an analyst, unless the folder is there."""
    from fractions import Fraction

    from shoal.query.server.folder import TOKENS_FILE, Settings, write_dataset
    from shoal.query.server.tokens import new_token
    from shoal.survey import survey, survey_schema

    if folder.exists():
        return
    settings = Settings(
        ceiling=Fraction(3),
        every_analyst=Fraction(2),
        description="A made-up survey of 5,000 people who do not exist.",
    )
    folder.mkdir(0o700, parents=True)
    write_dataset(folder / "survey", settings, survey_schema(), survey())
    token = new_token(folder / TOKENS_FILE, "demo", "analyst")
    path = folder / DEMO_TOKEN
    path.touch(0o600)
    path.write_text(token + "\n", "utf-8")
    messages().print(
        f"Made {folder} with the demo survey; a token for an analyst is in {path}.", markup=False
    )
