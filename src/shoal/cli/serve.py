"""`shoal serve`: a folder of data sets comes in, questions about them are answered until it is stopped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.cli.command import Flag
from shoal.cli.output import messages
from shoal.errors import needs_extra

DEMO_TOKEN = "analyst.token"
_LIMITS = ("rate", "pace", "patience", "workers", "allowance")


def flags() -> tuple[Flag, ...]:
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
            "Path or postgresql:// address; default: ledger.sqlite in the folder.",
            "input",
            common=True,
            placeholder="ADDRESS",
            variable="SHOAL_LEDGER",
        ),
        Flag(
            "heads",
            "One more file, outside the folder, that notes the ledger's heads; checked at start.",
            "input",
            Path,
            placeholder="FILE",
        ),
        Flag(
            "demo",
            "Make the folder, with the demo survey and a token, if it is not there.",
            "input",
            bool,
            default=False,
            common=True,
        ),
        Flag("host", "Address to listen on.", default="127.0.0.1", common=True),
        _number("port", "Port to listen on; 0 takes a free one.", 8200, 0, 65535, common=True),
        _number("rate", "Requests per second and token; 0 for no limit.", 50.0, 0),
        _number(
            "pace", "Seconds between two times at which an answer may leave; 0 at once, shows timing.", 0.1, 0
        ),
        _number(
            "allowance", "How many times its worst CPU time a question is allowed, for slow machines.", 4.0, 1
        ),
        _number("patience", "Seconds until an answer is called late.", 30.0, 0.1),
        _number("workers", "Threads that compute answers.", 1, 1, 64),
        _number("processes", "Processes that answer side by side.", 1, 1, 64, common=True),
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
    """Answer questions about data sets, each for a part of a budget that cannot be overdrawn.

    Example: shoal serve --data shoal-served --demo
    """
    data: Path = typed["data"]
    with needs_extra("server", "the query server needs"):
        import sqlalchemy  # noqa: F401

        from shoal.query.server.guard import Limits
        from shoal.query.server.run import bound_socket
        from shoal.query.server.run import serve as run
        from shoal.query.server.state import Config

    if typed["demo"]:
        _make_demo(data)
    config = Config(data, typed["ledger"], typed["heads"], Limits(**{name: typed[name] for name in _LIMITS}))
    socket = bound_socket(typed["host"], typed["port"])
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

    run(config, [socket], ready, log_requests=not typed["quiet"], processes=typed["processes"])


def _is_loopback(host: str) -> bool:
    import ipaddress

    return ipaddress.ip_address(host.partition("%")[0]).is_loopback


def _make_demo(folder: Path) -> None:
    """The demo survey as a data set, and a token for an analyst, unless the folder is there."""
    from fractions import Fraction

    from shoal.query.server.folder import TOKENS_FILE, Settings, write_dataset
    from shoal.query.server.state import new_token
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
