"""What the operations of a running server share: who asks comes in, tokens, data sets, ledger and desk leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi import Path as PathParameter
from fastapi.security import HTTPBearer

from shoal.query.ledger import Ledger, open_ledger
from shoal.query.server.desk import Desk
from shoal.query.server.folder import LEDGER_FILE, TOKENS_FILE, Served, load_folder
from shoal.query.server.guard import Limits, RateLimit, write_log
from shoal.query.server.heads import HeadFile
from shoal.query.server.names import KEY, NAME
from shoal.query.server.problems import Problem
from shoal.query.server.tokens import Token, TokenBook


@dataclass(frozen=True, slots=True)
class Config:
    """How a server is set up.

    Attributes:
        folder: the served folder, see `folder.py`.
        ledger: address of the ledger; DIR/ledger.sqlite when absent.
        heads: a file, best on another disk, in which the newest heads of the ledger are noted and checked at start.
        limits: what a client may ask for.
    """

    folder: Path
    ledger: str | None = None
    heads: Path | None = None
    limits: Limits = field(default_factory=Limits)


def ledger_address(config: Config) -> str | Path:
    return config.ledger or config.folder / LEDGER_FILE


def open_folder(config: Config) -> tuple[Ledger, dict[str, Served]]:
    """Read the data sets, open the ledger, check it, and agree on the terms: everything that can fail at start."""
    datasets = load_folder(config.folder)
    ledger = open_ledger(ledger_address(config))
    if config.heads is not None:
        HeadFile(config.heads).check(ledger)
    for served in datasets.values():
        ledger.register(served.register())
    return ledger, datasets


class State:
    """Of a server that runs; made inside its event loop."""

    def __init__(self, config: Config, ledger: Ledger, datasets: dict[str, Served]) -> None:
        self.ledger, self.datasets, self.limits = ledger, datasets, config.limits
        self.tokens = TokenBook(config.folder / TOKENS_FILE)
        self.rates = RateLimit(config.limits.rate, config.limits.burst)
        self.strangers = RateLimit(config.limits.rate, config.limits.burst)
        self.desk = Desk(
            ledger,
            config.limits.workers,
            config.limits.most_waiting,
            lambda kind: write_log("unanswered", failure=kind),
        )


def state_of(request: Request) -> State:
    state: State = request.app.state.shoal
    return state


def authenticated(request: Request) -> Token:
    """Who asks; strangers are limited by where they come from, others by their token."""
    state = state_of(request)
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    token = state.tokens.find(text) if scheme.lower() == "bearer" else None
    if token is None:
        state.strangers.take(request.client.host if request.client else "")
        raise Problem("no_token", headers={"WWW-Authenticate": "Bearer"})
    request.state.log["token"] = token.id
    state.rates.take(token.id)
    return token


def served_to(request: Request, token: Token, name: str) -> Served:
    """A data set that this token opens; one that it does not open looks like one that does not exist."""
    served = state_of(request).datasets.get(name)
    if served is None or not token.opens(name):
        raise Problem("not_found")
    request.state.log["dataset"] = name
    return served


_bearer = HTTPBearer(auto_error=False, description="A token made by 'shoal token new'.")


async def _token(request: Request, _: Annotated[object, Depends(_bearer)]) -> Token:
    return authenticated(request)


Asker = Annotated[Token, Depends(_token)]
Name = Annotated[str, PathParameter(pattern=NAME, description="Name of the data set.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=KEY,
        description="Chosen by the client for one request: sent again under it, it is paid once.",
    ),
]
