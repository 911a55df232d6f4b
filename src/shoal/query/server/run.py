"""Running the server: settings come in, requests are served until it is told to stop."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import uvicorn

from shoal.errors import InputError, ShoalError
from shoal.ledger import Ledger, open_ledger
from shoal.query.server.app import Application, create_app
from shoal.query.server.connections import TAKEN_AT_ONCE, Connections, watched_protocol
from shoal.query.server.folder import Served
from shoal.query.server.guard import Limits, log
from shoal.query.server.processes import run_together
from shoal.query.server.state import Config, head_files, ledger_address, note_closed, open_folder

if TYPE_CHECKING:
    import socket

# connections that the system keeps until they are taken
_WAITING = 2048
# Python lets a thread calculate for so long while others wait for their turn. Storing an answer takes many short turns,
# and at the usual 5 ms each, beside a long question that is being read, they would add up to more than half a pace
_TURN_SECONDS = 2e-4


def serve(
    config: Config,
    sockets: list[socket.socket],
    ready: Callable[[], None],
    log_requests: bool = True,
    processes: int = 1,
) -> None:
    """Serve on open sockets until a signal ends it.

    Args:
        config: how the server is set up; what is wrong with it is raised before anything is served.
        sockets: where it listens.
        ready: called when everything is in order.
        log_requests: whether each request is logged.
        processes: that answer side by side, over one ledger.
    """
    ledger, datasets = open_folder(config)
    set_up_logs(log_requests)
    ready()
    # Ctrl-C is how a server ends
    with contextlib.suppress(KeyboardInterrupt):
        if processes == 1:
            _run(config, (ledger, datasets), sockets)
        else:
            # no connection to the ledger may be shared: each process opens its own
            ledger.close()
            run_together([partial(_run_one, processes, config, datasets, sockets)] * processes)
            _note_heads(config)


def _run_one(
    processes: int, config: Config, datasets: dict[str, Served], sockets: list[socket.socket]
) -> None:
    """One of several processes: a share of the rate and of the cores."""
    crowding = max(processes / (os.cpu_count() or 1), 1.0)
    limits = replace(
        config.limits,
        rate=config.limits.rate / processes,
        free=config.limits.free / processes,
        allowance=config.limits.allowance * crowding,
    )
    own = replace(config, limits=limits, closes=False)
    _run(own, (open_ledger(ledger_address(config)), datasets), sockets)


def _note_heads(config: Config) -> None:
    """When all processes have ended: the last heads, and what the file holds."""
    with contextlib.suppress(ShoalError, OSError):
        ledger = open_ledger(ledger_address(config), create=False)
        for file in head_files(config):
            file.note(ledger)
        ledger.close()
        note_closed(config)


def _run(config: Config, opened: tuple[Ledger, dict[str, Served]], sockets: list[socket.socket]) -> None:
    server = http_server(create_app(config, opened), config.limits)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_SECONDS)
    # what was loaded until now stays: to look through it for garbage stops all threads for most of a pace
    gc.collect()
    gc.freeze()
    try:
        server.run(sockets=sockets)
    finally:
        gc.unfreeze()
        sys.setswitchinterval(usual)


class _Server(uvicorn.Server):
    """A server that takes few connections at once, so that they can be watched, while many may wait to be taken."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(_WAITING)


def http_server(app: Application, limits: Limits) -> uvicorn.Server:
    """The server for an application, with its limits on connections."""
    connections = Connections(
        limits.connections, limits.header_seconds, limits.header_bytes, limits.unread_seconds
    )
    return _Server(
        uvicorn.Config(
            app,
            http=watched_protocol(connections),
            backlog=TAKEN_AT_ONCE,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=30,
            lifespan="on",
        )
    )


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # said to be TCP, or else an answer waits up to 40 ms until the packet before it was acknowledged
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(_WAITING)
    except OSError as error:
        opened.close()
        raise InputError("server-cannot-listen-port", host=host, port=port, reason=error.strerror) from None
    return opened


class _Plain(logging.Formatter):
    """One line of JSON; no trace, which could hold values."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name == log.name:
            return record.getMessage()
        return json.dumps(
            {"event": "notice", "from": record.name, "message": record.getMessage().partition("\n")[0]}
        )


def set_up_logs(requests: bool) -> None:
    """Standard error gets the server's own events, and warnings of the libraries below it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain())
    for name, level in ((log.name, logging.INFO), ("uvicorn", logging.WARNING), ("asyncio", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level if requests else logging.WARNING)
