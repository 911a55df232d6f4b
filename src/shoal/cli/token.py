"""`shoal token`: who may ask the query server. Tokens are printed once; the file keeps their hashes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.command import Commands
from shoal.cli.output import messages, print_json, results

token = typer.Typer(name="token", cls=Commands, help="Tokens of the query server: new, list, revoke.")
Folder = Annotated[Path, typer.Option("--data", help="The served folder.", show_default=False)]


@token.command()
def new(
    data: Folder,
    name: Annotated[
        str, typer.Option(help="Who uses it; budgets are kept by this name.", show_default=False)
    ],
    role: Annotated[str, typer.Option(help="analyst, or holder (sees what everybody spent).")] = "analyst",
    dataset: Annotated[list[str] | None, typer.Option(help="Only for this data set; repeat it.")] = None,
    days: Annotated[
        float | None, typer.Option(help="How many days it is good for; default: for ever.")
    ] = None,
) -> None:
    """Make a token and print it.

    Example: shoal token new --data shoal-served --name ada
    """
    from shoal.query.server.folder import TOKENS_FILE
    from shoal.query.server.state import new_token

    text = new_token(data / TOKENS_FILE, name, role, tuple(dataset or ()), days)
    messages().print("Keep this token: it is not stored and not shown again.", markup=False)
    print(text)


@token.command("list")
def list_tokens(
    data: Folder, as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False
) -> None:
    """List the tokens: their ids, names and roles."""
    from shoal.query.server.folder import TOKENS_FILE
    from shoal.query.server.state import read_tokens

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
        results().print(f"{t.id}  {t.name} ({t.role}), made {t.created}{end}{where}", markup=False)


@token.command()
def revoke(
    data: Folder, number: Annotated[str, typer.Argument(help="Id of the token.", metavar="ID")]
) -> None:
    """Make a token useless, at once also for a running server."""
    from shoal.query.server.folder import TOKENS_FILE
    from shoal.query.server.state import revoke_token

    revoke_token(data / TOKENS_FILE, number)
    results().print(f"Token {number} is revoked.", markup=False)
