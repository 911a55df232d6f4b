"""A load generator: measure the questions per second that a server answers over a number of connections.

    python -m benchmarks.load URL TOKEN[,TOKEN...] CONNECTIONS SECONDS [QUESTIONS PER REQUEST]

Plain HTTP over keep-alive connections, each of which sends its next request after the answer to the last. It does
little more than a socket needs, so that the server is what is measured.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
import uuid
from collections import Counter

_numbers = itertools.count()
_run = uuid.uuid4().hex[:8]


def question() -> str:
    """A question that was never asked before: another ε, other conditions."""
    number = next(_numbers)
    where = f'{{"column": "age", "op": ">=", "value": {18 + number % 80}}}'
    return f'{{"kind": "count", "epsilon": "0.{number % 900 + 100}", "where": {where}}}'


def request(token: str, at_once: int) -> bytes:
    """A request with a key of its own."""
    path, body = "answers", question()
    if at_once > 1:
        path, body = "batches", f'{{"questions": [{", ".join(question() for _ in range(at_once))}]}}'
    return (
        f"POST /v1/datasets/survey/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Idempotency-Key: {_run}-{next(_numbers)}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


class Connection(asyncio.Protocol):
    """One connection that asks until the time is over."""

    def __init__(
        self, token: str, at_once: int, deadline: float, statuses: Counter[int], waits: list[float]
    ) -> None:
        self._token, self._at_once, self._deadline, self._statuses = token, at_once, deadline, statuses
        self._waits, self._sent = waits, 0.0
        self._received = bytearray()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self._statuses[0] += 1
            self.done.set_result(None)

    def _next(self) -> None:
        if time.perf_counter() >= self._deadline:
            self.done.set_result(None)
            self._transport.close()
            return
        self._sent = time.perf_counter()
        self._transport.write(request(self._token, self._at_once))

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._received[:end]).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r")[0])
        if len(self._received) < end + 4 + length:
            return
        self._waits.append(time.perf_counter() - self._sent)
        # a refusal within a list of results counts as none
        refused = self._received.count(b'"error": "') if self._at_once > 1 else 0
        self._statuses[int(head[9:12])] += self._at_once - refused
        self._statuses[0] += refused
        self._received.clear()
        self._next()


async def load(url: str, tokens: str, connections: int, seconds: float, at_once: int) -> dict[str, object]:
    """Ask from many connections for some seconds; how many questions met which status (0 for none), and the waits.

    Connections share the tokens evenly, as if each token were one analyst.
    """
    host, _, port = url.removeprefix("http://").rstrip("/").partition(":")
    statuses: Counter[int] = Counter()
    waits: list[float] = []
    names = tokens.split(",")
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    protocols = []
    for number in range(connections):
        token = names[number % len(names)]
        _, protocol = await loop.create_connection(
            lambda token=token: Connection(token, at_once, began + seconds, statuses, waits), host, int(port)
        )
        protocols.append(protocol)
    await asyncio.gather(*(protocol.done for protocol in protocols))
    waits.sort()
    middle, slow = (waits[int(share * (len(waits) - 1))] for share in (0.5, 0.95))
    return {"statuses": +statuses, "seconds": time.perf_counter() - began, "wait": middle, "wait_95": slow}


if __name__ == "__main__":
    url, token, connections, seconds, *more = sys.argv[1:]
    at_once = int(more[0]) if more else 1
    print(json.dumps(asyncio.run(load(url, token, int(connections), float(seconds), at_once))))
