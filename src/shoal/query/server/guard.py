"""The guard of the query server: limits checked before a question is read, and the problem documents for refusals."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from shoal.text import Message


@dataclass(frozen=True, slots=True)
class RefusalReason:
    """A kind of refusal: its code in responses, and the HTTP status."""

    code: str
    status: int

    @property
    def message(self) -> str:
        return str(Message(f"refusal-{self.code.replace('_', '-')}"))


REASONS = {
    code: RefusalReason(code, status)
    for code, status in (
        ("bad_question", 422),
        ("bad_request", 422),
        ("not_json", 400),
        ("no_token", 401),
        ("not_allowed", 403),
        ("overdrawn", 403),
        ("full", 403),
        ("not_found", 404),
        ("bad_method", 405),
        ("key_reused", 409),
        ("too_large", 413),
        ("too_many", 429),
        ("failed", 500),
        ("busy", 503),
        ("late", 503),
        ("closed", 503),
    )
}


class RequestProblem(Exception):  # noqa: N818
    """A request that ends with a refusal.

    Attributes:
        code: one of `REASONS`.
        detail: public details; a message among them is rendered last.
        headers: of the response.
    """

    def __init__(
        self, code: str, detail: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(code)
        self.code, self.detail, self.headers = code, dict(detail or {}), dict(headers or {})

    @property
    def status(self) -> int:
        return REASONS[self.code].status

    def body(self) -> dict[str, Any]:
        detail = {name: str(one) if isinstance(one, Message) else one for name, one in self.detail.items()}
        return {"error": self.code, "message": REASONS[self.code].message, **detail}


Scope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("shoal.server")
_PIECE_BYTES = 64 * 1024
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on what a client may request of the server.

    Attributes:
        body_bytes: largest body of a request.
        body_seconds: time limit for receiving a body.
        patience: seconds until a client is told that its answer is late; the answer is still computed and kept.
        rate: requests per second and token, on average; 0 for no limit.
        burst: requests at once before the rate counts.
        most_waiting: questions on their way at once.
        most_queued: questions of one analyst on their way at once.
        workers: threads that compute answers.
        pace: answers are sent this many seconds, or a multiple, after the time allowed for their work; 0 sends
            them at once, so that the time they took can be seen.
        allowance: how many times the CPU seconds of a question its answer may take: the thread that computes it shares
            the interpreter with three others, each of further workers adds one.
        free: CPU seconds per second and token for free operations, including parsing questions; 0 for no limit.
        free_burst: such seconds at once before the average counts.
        connections: open at once, in each process.
        header_seconds: time limit for receiving the headers of a request.
        header_bytes: the most bytes of headers.
        page_bytes: the most bytes of earlier questions and answers in one response.
        unread_bytes: the most bytes of responses to one token that were not read yet.
        unread_seconds: the time after which a connection is closed if the client reads nothing of its response.
    """

    body_bytes: int = 256 * 1024
    body_seconds: float = 10.0
    patience: float = 30.0
    rate: float = 50.0
    burst: int = 100
    most_waiting: int = 1000
    most_queued: int = 500
    workers: int = 1
    pace: float = 0.1
    allowance: float = 4.0
    free: float = 0.2
    free_burst: float = 4.0
    connections: int = 2000
    header_seconds: float = 10.0
    header_bytes: int = 64 * 1024
    page_bytes: int = 4 * 2**20
    unread_bytes: int = 16 * 2**20
    unread_seconds: float = 30.0


class ServerGuard:
    """The outermost layer of the application."""

    def __init__(self, app: App, limits: Limits) -> None:
        self._app, self._limits = app, limits
        self._unread: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        facts: dict[str, Any] = scope.setdefault("state", {}).setdefault("log", {})
        status = unread = 0
        refused: RequestProblem | None = None

        async def watched(message: AsgiMessage) -> None:
            nonlocal status, unread, refused
            if refused is not None:
                return
            if message["type"] == "http.response.start":
                size = _length(message["headers"])
                # short responses, such as refusals, are always sent
                if (
                    size > _PIECE_BYTES
                    and self._unread[facts.get("token", "")] + size > self._limits.unread_bytes
                ):
                    # raised here, it would be taken for a failure of a response that has begun
                    refused = RequestProblem("too_many", headers={"Retry-After": "1"})
                    return
                status, unread = message["status"], size
                self._unread[facts.get("token", "")] += size
                message["headers"] = [*message["headers"], *_HEADERS]
            for piece in _pieces(message):
                await send(piece)

        try:
            await self._app(scope, self._limited(scope, receive), watched)
            if refused is not None:
                raise refused
        except RequestProblem as problem:
            refused = None
            facts["error"] = problem.code
            await _refuse(problem, status, watched)
        except Exception as error:
            # the kind only: a message or a trace could hold values
            facts["failure"] = type(error).__name__
            await _refuse(RequestProblem("failed"), status, watched)
        finally:
            self._unread[facts.get("token", "")] -= unread
            self._unread += Counter()  # forget clients that have read everything
            # the declared path, not the path that was sent
            facts.setdefault("route", getattr(scope.get("route"), "path", None))
            write_log(
                "request",
                method=scope["method"],
                status=status,
                milliseconds=round((time.perf_counter() - began) * 1000, 1),
                **facts,
            )

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """The same stream, ended by a refusal if it gets too long or too slow."""
        limits, left = self._limits, self._limits.body_bytes
        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or int(value) > limits.body_bytes):
                raise_later = RequestProblem("too_large")
                break
        else:
            raise_later = None
        complete = False
        # for the whole body, so that it cannot arrive byte by byte
        deadline = asyncio.get_running_loop().time() + limits.body_seconds

        async def limited() -> AsgiMessage:
            nonlocal left, complete
            if raise_later is not None:
                raise raise_later
            if complete:
                # after the body only the end of the connection can follow, however late
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise RequestProblem("too_large") from None
            if message["type"] == "http.request":
                left -= len(message.get("body", b""))
                complete = not message.get("more_body", False)
                if left < 0:
                    raise RequestProblem("too_large")
            return message

        return limited


def _length(headers: Any) -> int:
    """The length that the headers of a response state; those without one are short."""
    return next((int(value) for name, value in headers if name == b"content-length"), 0)


def _pieces(message: AsgiMessage) -> Iterator[AsgiMessage]:
    """A long body in pieces, each sent once the previous one was taken, so that unread data is not copied."""
    body = message.get("body", b"") if message["type"] == "http.response.body" else b""
    if len(body) <= _PIECE_BYTES:
        yield message
        return
    for start in range(0, len(body), _PIECE_BYTES):
        more = start + _PIECE_BYTES < len(body) or message.get("more_body", False)
        yield {**message, "body": body[start : start + _PIECE_BYTES], "more_body": more}


async def _refuse(problem: RequestProblem, status: int, send: Send) -> None:
    if status:
        return  # a response has begun: the connection can only be closed
    body = json.dumps(problem.body()).encode("ascii")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class RateLimit:
    """A token bucket per client, of requests or of seconds, refilled at a steady rate; a rate of 0 for no limit."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, float(burst)
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, client: str, count: int = 1) -> None:
        """Admit one request of a client, or refuse it; a request larger than the bucket needs it full."""
        if self._rate:
            self._need(client, min(float(count), self._burst))
            self.spend(client, count)

    def check(self, client: str) -> None:
        """Refuse a client whose bucket is empty; usage is counted afterwards, by `spend`."""
        if self._rate:
            self._need(client, 0.0)

    def spend(self, client: str, amount: float) -> None:
        """Take used work from a bucket, even if it exceeds the content."""
        if not self._rate:
            return
        now = time.monotonic()
        if len(self._buckets) > 10_000:
            self._buckets = {
                c: b for c, b in self._buckets.items() if (now - b[1]) * self._rate < self._burst - b[0]
            }
        self._buckets[client] = (self._level(client, now) - amount, now)

    def _need(self, client: str, needed: float) -> None:
        level = self._level(client, time.monotonic())
        if level < needed:
            raise RequestProblem(
                "too_many", headers={"Retry-After": str(int((needed - level) / self._rate) + 1)}
            )

    def _level(self, client: str, now: float) -> float:
        level, since = self._buckets.get(client, (self._burst, now))
        return min(self._burst, level + (now - since) * self._rate)


def write_log(event: str, **facts: Any) -> None:
    """One line of JSON; callers pass names, numbers and kinds, never values of records or answers."""
    _write(logging.INFO, event, facts)


def warn(event: str, **facts: Any) -> None:
    """The same for events that the custodian should see, also where requests are not logged."""
    _write(logging.WARNING, event, facts)


def _write(level: int, event: str, facts: dict[str, Any]) -> None:
    if log.isEnabledFor(level):
        log.log(level, json.dumps({"event": event, "at": round(time.time(), 3), **facts}))
