"""What stands before every request of the studio: who may ask, from which page, and what its answers allow.

The studio shows original records, so nobody but the person at this machine may ask it anything: not another site in
the same browser (host, origin, fetch metadata, a header that forms cannot send), not another user of the machine (a
token in the address, swapped for a cookie that scripts cannot read), and not a name server that lies (host again).
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# forms of other sites cannot send it, and scripts of other sites may not
OWN_HEADER = "x-shoal"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_NOT_KEPT = (b"cache-control", b"no-store")
_ASKING = ("GET", "HEAD")
_OPEN = "Open the address that 'shoal studio' printed in its terminal: it holds the key to this page."


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask: the port that is listened on, the token of the first address, and the cookie it is swapped for."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def hosts(self) -> frozenset[str]:
        """The names of this machine for itself; any other was resolved to it by somebody else."""
        names = {f"{host}:{self.port}" for host in ("127.0.0.1", "localhost", "[::1]")}
        return frozenset(names | ({"127.0.0.1", "localhost", "[::1]"} if self.port == 80 else set()))

    @property
    def cookie_name(self) -> str:
        """By port: two studios on one machine do not throw each other out."""
        return f"shoal-studio-{self.port}"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def refusal(self, scope: Scope) -> str:
        """Why a request is refused, in words; empty where it is not."""
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        host = headers.get("host", "")
        if host.lower() not in self.hosts:
            return "This studio answers to its own machine only."
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return "This studio answers to its own page only."
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return "This studio answers to its own page only."
        if scope["method"] not in _ASKING and OWN_HEADER not in headers:
            return "This studio answers to its own page only."
        if not self._knows(headers.get("cookie", "")):
            return _OPEN
        return ""

    def holds_token(self, scope: Scope) -> bool:
        """Whether the address holds the token; asked after host and origin."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return scope["path"] == "/" and hmac.compare_digest(given.encode(), self.token.encode())

    def _knows(self, header: str) -> bool:
        try:
            cookies = SimpleCookie(header)
        except CookieError:
            return False
        found = cookies.get(self.cookie_name)
        return found is not None and hmac.compare_digest(found.value.encode(), self.cookie.encode())


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: App, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # there is no websocket: a page of any site could open one
            await send({"type": "websocket.close", "code": 1008})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                kept = any(key == b"cache-control" for key, _ in given)
                message["headers"] = [*given, *_HEADERS, *(() if kept else (_NOT_KEPT,))]
            await send(message)

        refusal = self._access.refusal(scope)
        if refusal in ("", _OPEN) and scope["method"] in _ASKING and self._access.holds_token(scope):
            await _swapped(guarded, self._access)
        elif refusal:
            await _refused(guarded, refusal)
        else:
            await self._app(scope, receive, guarded)


async def _swapped(send: Send, access: Access) -> None:
    """The token leaves the address, so that neither history nor a copied address holds it."""
    cookie = f"{access.cookie_name}={access.cookie}; Path=/; HttpOnly; SameSite=Strict"
    headers = [(b"location", b"/"), (b"set-cookie", cookie.encode())]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _refused(send: Send, words: str) -> None:
    page = f"<!doctype html><html lang='en'><title>Shoal Studio</title><p>{words}</p></html>"
    headers = [(b"content-type", b"text/html; charset=utf-8")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": page.encode()})
