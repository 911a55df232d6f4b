"""Run the server: manage connections and worker processes.

A connection that never completes its headers costs the client nothing and would otherwise be kept open indefinitely.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import math
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import wait
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn

from shoal.errors import InputError, ShoalError
from shoal.ledger import Ledger, open_ledger
from shoal.query.server.app import Application, create_app
from shoal.query.server.folder import Served
from shoal.query.server.guard import Limits, log, warn
from shoal.query.server.state import Config, head_files, ledger_address, note_closed, open_folder

if TYPE_CHECKING:
    import socket


# connections accepted before this counts the first of them
TAKEN_AT_ONCE = 64
# files that a process needs besides connections: the ledger, the log, and connections being opened or closed
_OTHER_FILES = 100 + 2 * TAKEN_AT_ONCE
_WARN_SECONDS = 1.0
# connections that the system queues until they are accepted
_WAITING = 2048
# Python lets a thread run this long while others wait for their turn. Storing an answer takes many short turns,
# and at the default 5 ms each, beside a long question being parsed, they would add up to more than half a pace
_TURN_SECONDS = 2e-4


@dataclass(slots=True)
class _Waiting:
    """A connection without a complete request: the bytes received, and the timer that closes it."""

    received: int = 0
    alarm: asyncio.TimerHandle | None = None


class Connections:
    """The connections of one process.

    Args:
        most: connections at once; limited by the number of files the process may open.
        seconds: time limit for receiving the headers of a request.
        header_bytes: the most bytes of headers.
        unread_seconds: the time after which a connection is closed if the client reads nothing of a pending response.
    """

    def __init__(
        self, most: int, seconds: float, header_bytes: int, unread_seconds: float = math.inf
    ) -> None:
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.most = most if allowed == resource.RLIM_INFINITY else max(min(most, allowed - _OTHER_FILES), 1)
        self._seconds, self._header_bytes = seconds, header_bytes
        self._unread_seconds = unread_seconds
        self._all: set[Any] = set()
        self._unread: dict[Any, asyncio.TimerHandle] = {}
        # connections without a complete request, oldest first
        self._waiting: dict[Any, _Waiting] = {}
        self._warned = float("-inf")
        self.turned_away = 0

    def enter(self, connection: Any) -> None:
        """Add a connection; if there are too many, close the one that has waited longest without a request."""
        self._all.add(connection)
        if len(self._all) > self.most:
            self._end(next(iter(self._waiting), connection))
        if connection in self._all:
            self._expect(connection)

    def heard(self, connection: Any, size: int, *, asking: bool) -> None:
        """Bytes arrived; `asking` if they completed the headers of a request."""
        if connection not in self._all:
            return
        if asking:
            self._forget(connection)
            return
        waiting = self._waiting.get(connection)
        if waiting is None or waiting.alarm is None:
            waiting = self._expect(connection)
        waiting.received += size
        if waiting.received > self._header_bytes:
            self._end(connection)

    def answered(self, connection: Any) -> None:
        """A response was sent; the connection is kept for the next request, but may be closed when space is needed."""
        if connection in self._all:
            self._waiting[connection] = _Waiting()

    def unread(self, connection: Any) -> None:
        """The client stopped reading: start the time limit."""
        if connection in self._all and self._unread_seconds < math.inf:
            loop = asyncio.get_running_loop()
            self._unread[connection] = loop.call_later(self._unread_seconds, self._end, connection)

    def read(self, connection: Any) -> None:
        """The client reads again."""
        if (alarm := self._unread.pop(connection, None)) is not None:
            alarm.cancel()

    def left(self, connection: Any) -> None:
        self._all.discard(connection)
        self._forget(connection)
        self.read(connection)

    def _expect(self, connection: Any) -> _Waiting:
        self._forget(connection)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(alarm=loop.call_later(self._seconds, self._end, connection))
        self._waiting[connection] = waiting
        return waiting

    def _forget(self, connection: Any) -> None:
        waiting = self._waiting.pop(connection, None)
        if waiting is not None and waiting.alarm is not None:
            waiting.alarm.cancel()

    def _end(self, connection: Any) -> None:
        self.left(connection)
        self.turned_away += 1
        if time.monotonic() - self._warned >= _WARN_SECONDS:
            self._warned = time.monotonic()
            warn("connections turned away", count=self.turned_away)
        connection.transport.abort()


def watched_protocol(connections: Connections) -> type[asyncio.Protocol]:
    """The HTTP protocol of the server, which reports what happens to each connection."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class Watched(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            connections.enter(self)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            cycle = self.cycle
            connections.heard(self, len(data), asking=cycle is not None and not cycle.response_complete)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.cycle is None or self.cycle.response_complete:
                connections.answered(self)

        def pause_writing(self) -> None:
            super().pause_writing()
            connections.unread(self)

        def resume_writing(self) -> None:
            super().resume_writing()
            connections.read(self)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.left(self)
            super().connection_lost(exc)

    return Watched


class ProcessEndedError(ShoalError):
    """A process ended by itself, and so all were stopped."""


def run_together(work: Sequence[Callable[[], None]]) -> None:
    """Run all workers until a signal ends them. They are forked, so that data read before are shared.

    Raises:
        ProcessEndedError: a worker ended without a signal.
    """
    # forked, not spawned: the records were read once, and are in the memory of all
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_obedient, args=(piece,)) for piece in work]
    told: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        told.append(number)
        for process in processes:
            if process.is_alive():
                process.terminate()

    for process in processes:
        process.start()
    before = signal.signal(signal.SIGTERM, stop)
    try:
        wait([process.sentinel for process in processes])
    except KeyboardInterrupt:
        told.append(signal.SIGINT)
    finally:
        for process in processes:
            process.terminate()
            process.join()
        signal.signal(signal.SIGTERM, before)
    if not told:
        raise ProcessEndedError("server-processes-ended-unexpectedly-so-server")


def _obedient(piece: Callable[[], None]) -> None:
    """Wrap the work so that it ends when the parent process is gone, however that happened."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, daemon=True).start()
    piece()


def serve(
    config: Config,
    sockets: list[socket.socket],
    ready: Callable[[], None],
    log_requests: bool = True,
    processes: int = 1,
) -> None:
    """Serve on open sockets until a signal ends it.

    Args:
        config: the server's configuration; errors in it are raised before anything is served.
        sockets: the listening sockets.
        ready: called when everything is in order.
        log_requests: whether each request is logged.
        processes: number of processes that answer in parallel, sharing one ledger.
    """
    ledger, datasets = open_folder(config)
    set_up_logs(log_requests)
    ready()
    # Ctrl-C is the normal way to stop a server
    with contextlib.suppress(KeyboardInterrupt):
        if processes == 1:
            _run(config, (ledger, datasets), sockets)
        else:
            # a ledger connection must not be shared: each process opens its own
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
    """When all processes have ended: record the last heads, and the hash of the file."""
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
    # objects loaded so far are permanent: scanning them for garbage stops all threads for most of a pace
    gc.collect()
    gc.freeze()
    try:
        server.run(sockets=sockets)
    finally:
        gc.unfreeze()
        sys.setswitchinterval(usual)


class _Server(uvicorn.Server):
    """A server that accepts few connections at once, so that they can be watched, while many may wait."""

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
    """A listening socket; port 0 takes a free one."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # disable Nagle's algorithm, or an answer waits up to 40 ms for the acknowledgement of the previous packet
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
    """A log line of JSON without a traceback, which could hold values."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name == log.name:
            return record.getMessage()
        return json.dumps(
            {"event": "notice", "from": record.name, "message": record.getMessage().partition("\n")[0]}
        )


def set_up_logs(requests: bool) -> None:
    """Send the server's own events, and warnings of its libraries, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain())
    for name, level in ((log.name, logging.INFO), ("uvicorn", logging.WARNING), ("asyncio", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level if requests else logging.WARNING)
