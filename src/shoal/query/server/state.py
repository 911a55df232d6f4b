"""What the operations of a running server share: tokens, data sets, ledger, answers, and who is asking."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi import Path as PathParameter
from fastapi.security import HTTPBearer

from shoal.ledger import Ledger, LedgerError, open_ledger
from shoal.query.server.faults import FaultFile
from shoal.query.server.folder import (
    FAULTS_FILE,
    HEADS_FILE,
    LEDGER_FILE,
    TOKENS_FILE,
    Served,
    load_folder,
)
from shoal.query.server.free_work import FreeWork
from shoal.query.server.guard import Limits, RateLimit, warn, write_log
from shoal.query.server.health import Health
from shoal.query.server.ledger_heads import HeadFile, check_heads
from shoal.query.server.names import KEY, NAME
from shoal.query.server.paid_answers import PaidAnswers
from shoal.query.server.problems import Problem
from shoal.query.server.same_table import check_earlier_names
from shoal.query.server.schedule import Schedule
from shoal.query.server.tokens import Token, TokenBook


@dataclass(frozen=True, slots=True)
class Config:
    """How a server is set up.

    Attributes:
        folder: the served folder, see `folder.py`.
        ledger: address of the ledger; DIR/ledger.sqlite when absent.
        heads: one more file, best on another disk, in which the heads of the ledger are noted and checked at start.
        limits: what a client may ask for.
        closes: whether the ledger is closed when this process ends; of several that share it, none closes it.
    """

    folder: Path
    ledger: str | None = None
    heads: Path | None = None
    limits: Limits = field(default_factory=Limits)
    closes: bool = True


def ledger_address(config: Config) -> str | Path:
    return config.ledger or config.folder / LEDGER_FILE


def ledger_file(config: Config) -> Path | None:
    """The file of the ledger, if it is one."""
    address = str(ledger_address(config))
    return None if "://" in address else Path(address)


def head_files(config: Config) -> list[HeadFile]:
    """Where heads are noted: in the folder, and where the holder said."""
    return [HeadFile(path) for path in (config.folder / HEADS_FILE, config.heads) if path is not None]


def open_folder(config: Config) -> tuple[Ledger, dict[str, Served]]:
    """Read the data sets, open the ledger, check it, and agree on the terms: everything that can fail at start."""
    datasets = load_folder(config.folder)
    files = head_files(config)
    path, served_before = ledger_file(config), any(file.heads() for file in files)
    if served_before and path is not None and not path.exists():
        raise LedgerError("ledger-gone", folder=config.folder, path=path, heads=config.folder / HEADS_FILE)
    ledger = open_ledger(ledger_address(config))
    try:
        check_heads(files, ledger)
        check_earlier_names(datasets, ledger)
        for served in datasets.values():
            if served.table.facts.refused:
                warn("columns refused", dataset=served.name, columns=sorted(served.table.facts.refused))
            ledger.register(served.register())
        for file in files:
            file.note(ledger)
    except BaseException:
        ledger.close()
        raise
    return ledger, datasets


def note_closed(config: Config) -> None:
    """After a regular end: what the ledger file holds, byte by byte."""
    path = ledger_file(config)
    for file in head_files(config) if path is not None else ():
        file.note_closed(path or Path())


class State:
    """Of a server that runs; made inside its event loop."""

    def __init__(self, config: Config, ledger: Ledger, datasets: dict[str, Served]) -> None:
        self.ledger, self.datasets, self.limits = ledger, datasets, config.limits
        self.tokens = TokenBook(config.folder / TOKENS_FILE)
        self.rates = RateLimit(config.limits.rate, config.limits.burst)
        self.strangers = RateLimit(config.limits.rate, config.limits.burst)
        self.free = FreeWork(config.limits.free, config.limits.free_burst)
        self.head_files = head_files(config)
        self.faults = FaultFile(config.folder / FAULTS_FILE)
        # one worker shares the interpreter with the event loop, free work and the ledger, others with it
        self.allowance = config.limits.allowance * (config.limits.workers + 3) / 4
        self.schedule = Schedule(config.limits.pace, config.limits.patience, fault=self.faults.note)
        self.paid_answers = PaidAnswers(
            ledger,
            self.schedule,
            config.limits.workers,
            config.limits.most_waiting,
            config.limits.most_queued,
            lambda kind: write_log("unanswered", failure=kind),
            lambda: self.note_heads(durable=False),
        )
        self.health = Health(ledger, self.paid_answers.group)

    def note_heads(self, *, durable: bool = True) -> None:
        for file in self.head_files:
            file.note(self.ledger, durable=durable)

    def close(self) -> None:
        """Finish what was begun."""
        self.free.close()
        self.paid_answers.close()


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
