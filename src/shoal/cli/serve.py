"""`shoal serve`, `token` and `studio`: the query server, its tokens, and the local browser interface."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.command import Commands, Flag, messages, print_json, results
from shoal.errors import InputError, needs_extra

DEMO_TOKEN = "analyst.token"
_LIMITS = ("rate", "pace", "patience", "workers", "allowance")


def serve_flags() -> tuple[Flag, ...]:
    """The options of `shoal serve`."""
    return (
        Flag(
            "data",
            "Folder with the data sets, tokens and ledger.",
            "input",
            Path,
            required=True,
            common=True,
            placeholder="DIR",
        ),
        Flag(
            "ledger",
            "Ledger, a path or postgresql:// address; default: ledger.sqlite in the folder.",
            "input",
            common=True,
            placeholder="ADDRESS",
            variable="SHOAL_LEDGER",
        ),
        Flag(
            "heads",
            "Also record ledger checkpoints in this file, outside the data folder; verified at start-up.",
            "input",
            Path,
            placeholder="FILE",
        ),
        Flag(
            "demo",
            "Create the folder with a demo survey and a token, if it does not exist.",
            "input",
            bool,
            default=False,
            common=True,
        ),
        Flag("host", "Address to listen on.", default="127.0.0.1", common=True),
        _number("port", "Port to listen on; 0 for any free port.", 8200, 0, 65535, common=True),
        _number("rate", "Largest number of requests per second and token; 0 for no limit.", 50.0, 0),
        _number(
            "pace",
            "Interval in seconds at which answers are sent; 0 sends them at once and reveals timing.",
            0.1,
            0,
        ),
        _number(
            "allowance",
            "CPU time allowed for a query, as a multiple of its worst case; raise it on slow machines.",
            4.0,
            1,
        ),
        _number("patience", "Seconds before the server reports an answer as late.", 30.0, 0.1),
        _number("workers", "Number of threads that compute answers.", 1, 1, 64),
        _number("processes", "Number of server processes.", 1, 1, 64, common=True),
        Flag("quiet", "Log warnings only.", type=bool, default=False, common=True),
    )


def _number(
    name: str, help: str, default: float, least: float, most: float | None = None, *, common: bool = False
) -> Flag:
    kind = type(default)
    return Flag(
        name, help, type=kind, default=default, common=common, placeholder="N", least=least, most=most
    )


def serve(typed: Mapping[str, Any]) -> None:
    """Answer queries about data sets, and charge each to a privacy budget that cannot be overdrawn.

    Example: shoal serve --data shoal-served --demo
    """
    data: Path = typed["data"]
    with needs_extra("server", "the query server needs"):
        import sqlalchemy  # noqa: F401

        from shoal.query import Config, Limits, bound_socket
        from shoal.query import serve as run

    if typed["demo"]:
        _make_demo(data)
    config = Config(data, typed["ledger"], typed["heads"], Limits(**{name: typed[name] for name in _LIMITS}))
    socket = bound_socket(typed["host"], typed["port"])
    where, taken = socket.getsockname()[:2]
    shown = f"[{where}]" if ":" in where else where

    def ready() -> None:
        if not _is_loopback(where):
            messages().print(
                f"Warning: others can reach {where}, and this server uses plain HTTP, so tokens, queries and answers "
                "can be intercepted. Put a proxy with TLS in front, or listen on 127.0.0.1.",
                markup=False,
            )
        messages().print(
            f"Serving {data} on http://{shown}:{taken} (API description at /docs). Stop with Ctrl-C.",
            markup=False,
        )

    run(config, [socket], ready, log_requests=not typed["quiet"], processes=typed["processes"])


def _is_loopback(host: str) -> bool:
    import ipaddress

    return ipaddress.ip_address(host.partition("%")[0]).is_loopback


def _make_demo(folder: Path) -> None:
    """Create the demo survey as a data set, and a token for an analyst, unless the folder exists."""
    from fractions import Fraction

    from shoal.query import TOKENS_FILE, DatasetSettings, new_token, write_dataset
    from shoal.survey import survey, survey_schema

    if folder.exists():
        return
    settings = DatasetSettings(
        ceiling=Fraction(3),
        every_analyst=Fraction(2),
        description="A synthetic survey of 5,000 people.",
    )
    folder.mkdir(0o700, parents=True)
    write_dataset(folder / "survey", settings, survey_schema(), survey())
    token = new_token(folder / TOKENS_FILE, "demo", "analyst")
    path = folder / DEMO_TOKEN
    path.touch(0o600)
    path.write_text(token + "\n", "utf-8")
    messages().print(
        f"Created {folder} with the demo survey; a token for an analyst is in {path}.", markup=False
    )


token = typer.Typer(name="token", cls=Commands, help="Manage tokens of the query server: new, list, revoke.")
Folder = Annotated[Path, typer.Option("--data", help="The served folder.", show_default=False)]


@token.command()
def new(
    data: Folder,
    name: Annotated[
        str, typer.Option(help="Name of the user; budgets are kept by this name.", show_default=False)
    ],
    role: Annotated[
        str, typer.Option(help="analyst, or holder (the custodian, who sees the budget everyone has used).")
    ] = "analyst",
    dataset: Annotated[
        list[str] | None, typer.Option(help="Restrict the token to this data set; repeatable.")
    ] = None,
    days: Annotated[
        float | None, typer.Option(help="Number of days the token is valid; default: no limit.")
    ] = None,
) -> None:
    """Create a token and print it.

    Example: shoal token new --data shoal-served --name ada
    """
    from shoal.query import TOKENS_FILE, new_token

    text = new_token(data / TOKENS_FILE, name, role, tuple(dataset or ()), days)
    messages().print("Keep this token: Shoal does not store it and will not show it again.", markup=False)
    print(text)


@token.command("list")
def list_tokens(
    data: Folder, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """List the tokens with their ids, names and roles."""
    from shoal.query import TOKENS_FILE, read_tokens

    tokens = read_tokens(data / TOKENS_FILE)
    if as_json:
        print_json(
            [
                {
                    "id": t.id,
                    "name": t.name,
                    "role": t.role,
                    "created": t.created,
                    "datasets": list(t.datasets),
                    "expires": t.expires or None,
                }
                for t in tokens
            ]
        )
        return
    for t in tokens:
        where = f", for {', '.join(t.datasets)}" if t.datasets else ""
        end = f", until {t.expires}" if t.expires else ""
        results().print(f"{t.id}  {t.name} ({t.role}), created {t.created}{end}{where}", markup=False)


@token.command()
def revoke(
    data: Folder, number: Annotated[str, typer.Argument(help="Id of the token.", metavar="ID")]
) -> None:
    """Revoke a token, effective immediately, also on a running server."""
    from shoal.query import TOKENS_FILE, revoke_token

    revoke_token(data / TOKENS_FILE, number)
    results().print(f"Token {number} has been revoked.", markup=False)


_BY_HAND = "Open this address in your browser: it works once, and only on this machine."
_OPENED = f"Your browser opens automatically. If it does not: {_BY_HAND[0].lower()}{_BY_HAND[1:]}"


def studio(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Table to open at the start; Studio reads it in place."),
    ] = None,
    port: Annotated[
        int, typer.Option(help="Port on this machine; 0 for any free port.", min=0, max=65535)
    ] = 8260,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address without opening a browser.")
    ] = False,
) -> None:
    """Open Shoal Studio, the local browser interface.

    Example: shoal studio people.csv
    """
    with needs_extra("studio", "the studio needs"):
        from shoal.studio import serve

    if file is not None:
        from shoal.io import format_of

        if not file.is_file():
            raise InputError("there-no-file", file=file)
        format_of(file)

    def ready(address: str, again: bool) -> None:
        first = f"Shoal Studio is at {address}\n{_BY_HAND if no_browser else _OPENED}\nStop with Ctrl-C."
        text = f"That address has been used. New address: {address}" if again else first
        messages().print(text, markup=False, soft_wrap=True)

    serve(None if file is None else file.resolve(), port, browser=not no_browser, ready=ready)
