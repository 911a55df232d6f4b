"""Who may keep a connection: connections come in, those that say nothing are closed, the oldest first when it is full.

A connection that never ends its headers costs nothing to make and would otherwise be kept for ever.
"""

from __future__ import annotations

import asyncio
import math
import resource
import time
from dataclasses import dataclass
from typing import Any

from shoal.query.server.guard import warn

# connections that are taken before this counts the first of them
TAKEN_AT_ONCE = 64
# files that a process needs besides connections: the ledger, the log, those that are coming, those that are going
_OTHER_FILES = 100 + 2 * TAKEN_AT_ONCE
_WARN_SECONDS = 1.0


@dataclass(slots=True)
class _Waiting:
    """A connection without a request: how much of one has come, and the alarm that ends it."""

    received: int = 0
    alarm: asyncio.TimerHandle | None = None


class Connections:
    """The connections of one process.

    Args:
        most: connections at once; never more than the process may open.
        seconds: the time that the headers of a request may take to arrive.
        header_bytes: the most bytes of headers.
        unread_seconds: the time after which a connection is closed that reads nothing of what is there for it.
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
        # those that have sent no request that is complete, oldest first
        self._waiting: dict[Any, _Waiting] = {}
        self._warned = float("-inf")
        self.turned_away = 0

    def enter(self, connection: Any) -> None:
        """A new connection: when it is full, the one that has waited longest without asking anything must go."""
        self._all.add(connection)
        if len(self._all) > self.most:
            self._end(next(iter(self._waiting), connection))
        if connection in self._all:
            self._expect(connection)

    def heard(self, connection: Any, size: int, *, asking: bool) -> None:
        """Bytes came; `asking` if they completed the headers of a request."""
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
        """A response was sent; the connection is kept for the next request, but may go when it is full."""
        if connection in self._all:
            self._waiting[connection] = _Waiting()

    def unread(self, connection: Any) -> None:
        """The connection takes no more for now: it has so long to read something."""
        if connection in self._all and self._unread_seconds < math.inf:
            loop = asyncio.get_running_loop()
            self._unread[connection] = loop.call_later(self._unread_seconds, self._end, connection)

    def read(self, connection: Any) -> None:
        """The connection takes more again."""
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
    """The HTTP protocol of the server, which says what happens to each connection."""
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
