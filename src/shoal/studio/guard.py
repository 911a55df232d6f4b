"""Access control of Studio: who may send requests, from which page, and what its answers allow.

Studio shows original records, so only the person who started it may use it: no other site in the same browser (host,
origin, fetch metadata, a header that forms cannot send), no other user of the machine (a token that works once,
exchanged for a cookie that scripts cannot read), and no forged name server (host again). The browser gets its token
from a file that only this user can read, because every user of a machine can read the command lines of the others.
"""

from __future__ import annotations

import hmac
import os
import secrets
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from shoal.errors import OutputError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# forms of other sites cannot send it, scripts of other sites may not, and its value is known to this origin alone
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
_OPEN = "Open the newest address that 'shoal studio' printed in its terminal: each address works once."
# such requests are made before anybody opens the page
_AHEAD = ("sec-purpose", "purpose", "x-moz")


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask: the port that is listened on, tokens that work once, and the cookie that each is exchanged for.

    Attributes:
        key: sent with whatever changes something. Browsers send a cookie to every port of a machine, so a program of
            another user could get it; what a page stores stays with its own port.
        renewed: called with a new address once every token is spent, for a browser that lost its cookie.
    """

    port: int
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    key: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    renewed: Callable[[str], None] = lambda address: None
    _tokens: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def hosts(self) -> frozenset[str]:
        """The names of this machine for itself; any other was resolved to it by somebody else."""
        names = {f"{host}:{self.port}" for host in ("127.0.0.1", "localhost", "[::1]")}
        return frozenset(names | ({"127.0.0.1", "localhost", "[::1]"} if self.port == 80 else set()))

    @property
    def cookie_name(self) -> str:
        """By port: two studios on one machine do not throw each other out."""
        return f"shoal-studio-{self.port}"

    def new_address(self) -> str:
        """An address that opens the page once."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._tokens.add(token)
        return f"http://127.0.0.1:{self.port}/?token={token}"

    def refusal(self, scope: Scope) -> str:
        """Why a request is refused, in words; empty where it is not."""
        headers = _headers(scope)
        host = headers.get("host", "")
        if host.lower() not in self.hosts:
            return "This studio answers to its own machine only."
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return "This studio answers to its own page only."
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return (
                _OPEN if b"token=" in scope["query_string"] else "This studio answers to its own page only."
            )
        if scope["method"] not in _ASKING and not hmac.compare_digest(
            headers.get(OWN_HEADER, "").encode(), self.key.encode()
        ):
            return "This studio answers to its own page only."
        if not self._knows(headers.get("cookie", "")):
            return _OPEN
        return ""

    def opens(self, scope: Scope) -> bool:
        """Whether a request opens the page with a token, which is spent by it.

        It may come from the file that the browser was given, which belongs to no site: what it must not be is a part of
        another page, or a request that the browser makes ahead of the person.
        """
        headers = _headers(scope)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if (
            scope["method"] != "GET"
            or scope["path"] != "/"
            or headers.get("host", "").lower() not in self.hosts
            or headers.get("sec-fetch-dest", "document") != "document"
            or "origin" in headers
            or any(name in headers for name in _AHEAD)
        ):
            return False
        with self._lock:
            found = [token for token in self._tokens if hmac.compare_digest(given.encode(), token.encode())]
            self._tokens.difference_update(found)
            spent = bool(found) and not self._tokens
        if spent:
            self.renewed(self.new_address())
        return bool(found)

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

        if self._access.opens(scope):
            await _opened(guarded, self._access)
        elif refusal := self._access.refusal(scope):
            await _refused(guarded, refusal)
        else:
            await self._app(scope, receive, guarded)


def _headers(scope: Scope) -> dict[str, str]:
    return {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}


async def _opened(send: Send, access: Access) -> None:
    """Exchange a token for the cookie and the key, and go on to an address without it.

    A page does that, not a status of 303: a browser that came from a file sends no strict cookie along a redirection.
    """
    cookie = f"{access.cookie_name}={access.cookie}; Path=/; HttpOnly; SameSite=Strict"
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"set-cookie", cookie.encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": _ENTER.format(key=access.key).encode()})


# its script keeps the key, and goes on
_ENTER = (
    "<!doctype html><html lang='en'><meta charset='utf-8'><title>Shoal Studio</title>"
    "<link rel='icon' href='data:,'><script src='/static/enter.js' data-key='{key}'></script>"
    "<p><a href='/'>Open Shoal Studio</a></p></html>"
)


def _forward(address: str) -> str:
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Shoal Studio</title>"
        "<link rel='icon' href='data:,'>"
        f"<meta http-equiv='refresh' content='0; url={address}'><p><a href='{address}'>Open Shoal Studio</a></p></html>"
    )


async def _refused(send: Send, words: str) -> None:
    page = f"<!doctype html><html lang='en'><title>Shoal Studio</title><p>{words}</p></html>"
    headers = [(b"content-type", b"text/html; charset=utf-8")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": page.encode()})


def own_folder() -> Path:
    """A folder of this user that nobody else can enter, for as long as the session lasts where the system has one.

    Raises:
        OutputError: it cannot be made, or it is not this user's alone.
    """
    session = os.environ.get("XDG_RUNTIME_DIR")
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(session or state) / "shoal"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise OutputError("folder-cannot-made", folder=folder, reason=error.strerror) from None
    if folder.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise OutputError("folder-yours-alone", folder=folder)
    return folder


def hand_over(access: Access, folder: Path) -> Path:
    """A file that only this user can read and that leads a browser to the page, once."""
    path = folder / f"studio-{access.port}.html"
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(_forward(access.new_address()))
    return path
