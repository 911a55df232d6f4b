"""What stands before every request: limits of size, time and rate, constant failures, a log without values."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from shoal.query.server.problems import Problem

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("shoal.server")
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a client may ask of the server.

    Attributes:
        body_bytes: largest body of a request.
        body_seconds: the time a body may take to arrive.
        patience: seconds until a client hears that its answer is late; the answer is still computed and kept.
        rate: requests per second and token, on average; 0 for no limit.
        burst: requests at once before the rate counts.
        most_waiting: questions on their way at once.
        most_queued: questions of one analyst on their way at once.
        workers: threads that compute answers.
        pace: answers leave this many seconds, or a multiple, after the time that is allowed for their work; 0 sends
            them at once, so that the time they took can be seen.
        allowance: how many times the usual seconds a question is allowed to take.
        connections: open at once, in each process.
        header_seconds: the time that the headers of a request may take to arrive.
        header_bytes: the most bytes of headers.
        page_bytes: the most bytes of earlier questions and answers in one response.
    """

    body_bytes: int = 256 * 1024
    body_seconds: float = 10.0
    patience: float = 30.0
    rate: float = 50.0
    burst: int = 100
    most_waiting: int = 1000
    most_queued: int = 500
    workers: int = 2
    pace: float = 0.1
    allowance: float = 4.0
    connections: int = 2000
    header_seconds: float = 10.0
    header_bytes: int = 64 * 1024
    page_bytes: int = 4 * 2**20


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: App, limits: Limits) -> None:
        self._app, self._limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        facts: dict[str, Any] = scope.setdefault("state", {}).setdefault("log", {})
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        try:
            await self._app(scope, self._limited(scope, receive), watched)
        except Problem as problem:
            facts["error"] = problem.code
            await _refuse(problem, status, watched)
        except Exception as error:
            # the kind only: a message or a trace could hold values
            facts["failure"] = type(error).__name__
            await _refuse(Problem("failed"), status, watched)
        finally:
            # the path as it is declared, not as it was sent
            facts.setdefault("route", getattr(scope.get("route"), "path", None))
            write_log(
                "request",
                method=scope["method"],
                status=status,
                milliseconds=round((time.perf_counter() - began) * 1000, 1),
                **facts,
            )

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """The same stream, that ends with a refusal where it gets too long or too slow."""
        limits, left = self._limits, self._limits.body_bytes
        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or int(value) > limits.body_bytes):
                raise_later = Problem("too_large")
                break
        else:
            raise_later = None
        complete = False
        # for the whole body, so that it cannot come drop by drop
        deadline = asyncio.get_running_loop().time() + limits.body_seconds

        async def limited() -> Message:
            nonlocal left, complete
            if raise_later is not None:
                raise raise_later
            if complete:
                # after the body there is only the end of the connection to wait for, however long it takes
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise Problem("too_large") from None
            if message["type"] == "http.request":
                left -= len(message.get("body", b""))
                complete = not message.get("more_body", False)
                if left < 0:
                    raise Problem("too_large")
            return message

        return limited


async def _refuse(problem: Problem, status: int, send: Send) -> None:
    if status:
        return  # a response has begun: all that is left is to end the connection
    body = json.dumps(problem.body()).encode("ascii")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class RateLimit:
    """A bucket of requests for each client, filled at a steady rate."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, float(burst)
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, client: str, count: int = 1) -> None:
        """Let one request of a client pass, or refuse it; one that counts more than the bucket holds needs it full."""
        if not self._rate:
            return
        now = time.monotonic()
        level, since = self._buckets.get(client, (self._burst, now))
        level = min(self._burst, level + (now - since) * self._rate)
        needed = min(float(count), self._burst)
        if level < needed:
            self._buckets[client] = (level, now)
            raise Problem("too_many", headers={"Retry-After": str(int((needed - level) / self._rate) + 1)})
        if len(self._buckets) > 10_000:
            self._buckets = {
                c: b for c, b in self._buckets.items() if (now - b[1]) * self._rate < self._burst
            }
        self._buckets[client] = (level - count, now)


def write_log(event: str, **facts: Any) -> None:
    """One line of JSON; callers pass names, numbers and kinds, never values of records or answers."""
    _write(logging.INFO, event, facts)


def warn(event: str, **facts: Any) -> None:
    """The same for what the holder should look at, also where requests are not logged."""
    _write(logging.WARNING, event, facts)


def _write(level: int, event: str, facts: dict[str, Any]) -> None:
    if log.isEnabledFor(level):
        log.log(level, json.dumps({"event": event, "at": round(time.time(), 3), **facts}))
