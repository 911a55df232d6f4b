"""The web application of Shoal Studio: routes and downloads."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import signal
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import uvicorn
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from shoal.errors import InputError, OptionError, OutputError, ShoalError
from shoal.io import find_format, format_of, private_file
from shoal.look import tokens
from shoal.studio import column_views, publishing, starting, views, weighing
from shoal.studio.preview import HERE, fragment
from shoal.studio.session import StudioSession, StudioSessions, choose
from shoal.studio.views import All, At, Payload, whole
from shoal.text import Message

files = APIRouter()


@files.post("/session/{session}/announce")
def announce(session: At, sessions: All, body: Payload) -> Response:
    """Announce an upload: refuse now what would be refused at the end."""
    name, size = str(body.get("name", "")), int(body.get("size", 0))
    problem: Message | ShoalError | None = None
    try:
        format_of(Path(name))
    except ShoalError as error:
        problem = error
    if size > sessions.limit:
        problem = column_views.too_large(name, size, sessions.limit)
    if body.get("to") == "people":
        session.another_problem = problem
        page = column_views.people(session)
    else:
        session.problem = problem
        page = whole(session, sessions, "data")
    return HTMLResponse(page, headers={} if problem else {"x-shoal-send": "1"})


async def received(request: Request, target: Path, name: str, limit: int) -> None:
    """Receive an uploaded file, completely or not at all."""
    size = 0
    try:
        with private_file(target).open("wb") as file:
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise OptionError.saying(column_views.too_large(name, size, limit))
                file.write(chunk)
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def sent_name(request: Request) -> tuple[str, str]:
    """The name of an uploaded file, and the extension of its copy."""
    name = Path(unquote(request.headers.get("x-name", "table.csv"))).name
    known = find_format(Path(name))
    return name, known.ending if known is not None else ".csv"


@files.put("/session/{session}/file")
async def upload(session: At, sessions: All, request: Request) -> Response:
    name, ending = sent_name(request)
    target, arrived = session.folder / f"table{ending}", session.folder / f"arriving{ending}"
    await received(request, arrived, name, sessions.limit)
    session.close()
    arrived.replace(target)
    await run_in_threadpool(session.open, target, name)
    if session.table is None:
        target.unlink(missing_ok=True)
    return HTMLResponse(await run_in_threadpool(whole, session, sessions, "data"))


@files.put("/session/{session}/people")
async def send_people(session: At, sessions: All, request: Request) -> Response:
    """Upload another file to rehearse on."""
    name, ending = sent_name(request)
    target = session.folder / f"people-{secrets.token_hex(4)}{ending}"
    await received(request, target, name, sessions.limit)
    await run_in_threadpool(choose, session, target, name)
    # the effect of the upload waits for its turn, after other requests sent meanwhile
    return HTMLResponse("")


@files.post("/session/{session}/people")
def people(session: At, body: Payload) -> Response:
    """Choose such a file by its path, which is read in place, or synthetic records again."""
    what, path = str(body.get("what", "")), Path(os.path.expanduser(str(body.get("path", "")).strip()))
    if what == "path":
        choose(session, path, path.name)
    elif what == "made up":
        choose(session)
    with session.lock:
        return HTMLResponse(column_views.people(session) + column_views.guaranteed(session))


Scope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# forms of other sites cannot send it, scripts of other sites may not, and only this origin knows its value
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
# such requests are made before the user opens the page
_AHEAD = ("sec-purpose", "purpose", "x-moz")
# interval at which a page receives the progress of a run
_BEAT = 0.25
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


router = APIRouter()
# seconds for requests in progress at shutdown
_LAST_WORDS = 2


@dataclass(frozen=True, slots=True)
class Access:
    """Access control: the port, tokens that work once, and the cookie that each is exchanged for.

    Attributes:
        key: sent with every request that changes something. Browsers send a cookie to every port, so another
            user's program could get it; what a page stores stays with its own port.
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
        """The local names of this machine; any other name was resolved to it by a third party."""
        names = {f"{host}:{self.port}" for host in ("127.0.0.1", "localhost", "[::1]")}
        return frozenset(names | ({"127.0.0.1", "localhost", "[::1]"} if self.port == 80 else set()))

    @property
    def cookie_name(self) -> str:
        """Named by port, so that two studios on one machine do not end each other's session."""
        return f"shoal-studio-{self.port}"

    def new_address(self) -> str:
        """An address that opens the page once."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._tokens.add(token)
        return f"http://127.0.0.1:{self.port}/?token={token}"

    def refusal(self, scope: Scope) -> str:
        """Why a request is refused, as text; empty where it is not."""
        headers = _headers(scope)
        host = headers.get("host", "")
        if host.lower() not in self.hosts:
            return "Studio accepts requests from its own machine only."
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return "Studio accepts requests from its own page only."
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return (
                _OPEN
                if b"token=" in scope["query_string"]
                else "Studio accepts requests from its own page only."
            )
        if scope["method"] not in _ASKING and not hmac.compare_digest(
            headers.get(OWN_HEADER, "").encode(), self.key.encode()
        ):
            return "Studio accepts requests from its own page only."
        if not self._knows(headers.get("cookie", "")):
            return _OPEN
        return ""

    def opens(self, scope: Scope) -> bool:
        """Whether a request opens the page with a token, which it uses up.

        It may come from the file that the browser opened, which belongs to no site. It must not be part of
        another page, or a request that the browser makes in advance of the user.
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


class StudioGuard:
    """The outermost layer of the application."""

    def __init__(self, app: App, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # there are no websockets: a page of any site could open one
            await send({"type": "websocket.close", "code": 1008})
            return

        async def guarded(message: AsgiMessage) -> None:
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
    """Exchange a token for the cookie and the key, and continue at an address without it.

    A page does that, not a status of 303: a browser that came from a file sends no strict cookie with a redirect.
    """
    cookie = f"{access.cookie_name}={access.cookie}; Path=/; HttpOnly; SameSite=Strict"
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"set-cookie", cookie.encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": _ENTER.format(key=access.key).encode()})


# its script stores the key, and continues
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
    """A folder that only this user can enter, for the duration of the login session where the system has one.

    Raises:
        OutputError: it cannot be created, or other users have access to it.
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
    """A file, readable by this user only, that leads a browser to the page once."""
    path = folder / f"studio-{access.port}.html"
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(_forward(access.new_address()))
    return path


def create_app(sessions: StudioSessions, access: Access) -> App:
    """The application with its guard."""

    @asynccontextmanager
    async def alive(app: FastAPI) -> AsyncIterator[None]:
        yield
        # uvicorn raises a signal again when it is done, so nothing after it would run
        sessions.close()

    app = FastAPI(lifespan=alive, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.sessions = sessions
    app.include_router(router)
    app.include_router(files)
    app.add_exception_handler(ShoalError, refused)
    return StudioGuard(app, access)


def refused(request: Request, error: Exception) -> Response:
    """Expected errors are answered with status 200: a status of 4xx is an error in the browser's console."""
    gone = isinstance(error, ShoalError) and error.code == "gone"
    return HTMLResponse(views.problem(error), headers={"x-shoal-gone": "1"} if gone else None)


@router.get("/")
def shell() -> Response:
    return HTMLResponse(views.page())


@router.get("/ping")
def ping() -> Response:
    return JSONResponse({"alive": True})


@router.get("/static/{name}")
def static(name: str) -> Response:
    if name == "tokens.css":
        return Response(tokens(), media_type="text/css")
    path = HERE / "static" / name
    if path.parent != HERE / "static" or not path.is_file():
        return Response(status_code=404)
    return FileResponse(path, media_type=_TYPES.get(path.suffix))


@router.post("/session")
def new_session(sessions: All) -> Response:
    session = sessions.new()
    return JSONResponse({"session": session.name, "step": "data"})


@router.post("/session/{session}/step/{name}")
def step(session: At, sessions: All, name: str) -> Response:
    with session.lock:
        known = name if name in views.STEPS else "data"
        return HTMLResponse(whole(session, sessions, known if session.table is not None else "data"))


# 1 data


@router.post("/session/{session}/survey")
def survey(session: At, sessions: All) -> Response:
    session.open_survey()
    return HTMLResponse(whole(session, sessions, "data"))


@router.post("/session/{session}/close")
def close(session: At, sessions: All) -> Response:
    session.close()
    return HTMLResponse(whole(session, sessions, "data"))


@router.post("/session/{session}/written")
def written(session: At, sessions: All, body: Payload) -> Response:
    """Set the text format of the file."""
    from shoal.io import Conventions

    told = {name: body[name] for name in ("encoding", "separator", "decimal") if body.get(name)}
    texts = tuple(text.strip() for text in str(body.get("na", "")).split(",") if text.strip())
    session.reread(Conventions(**told, na=texts))
    return HTMLResponse(
        whole(session, sessions, "data") + (views.problem(session.problem) if session.problem else "")
    )


@router.post("/session/{session}/reread")
def reread(session: At, sessions: All) -> Response:
    """Reread a file that has changed on disk, with its declarations."""
    session.reread()
    return HTMLResponse(
        whole(session, sessions, "data") + (views.problem(session.problem) if session.problem else "")
    )


@router.post("/session/{session}/rows")
def show_rows(session: At, sessions: All) -> Response:
    """Show rows from now on; the journal records it."""
    with session.lock:
        session.show(session.sheet.names, "rows")
        session.rows_shown = True
        return HTMLResponse(whole(session, sessions, "data"))


@router.post("/session/{session}/dataset")
def dataset(session: At, sessions: All, body: Payload) -> Response:
    """Set the name under which the journal publishes its records, and the ledger charges."""
    with session.lock:
        name = " ".join(str(body.get("data-set", "")).split())
        if not name:
            raise OptionError("name-data-set")
        session.dataset = name
        return HTMLResponse(whole(session, sessions, "data"))


@router.get("/session/{session}/rows")
def rows(session: At, start: int = 0, count: int = column_views.WINDOW) -> Response:
    return HTMLResponse(column_views.window(session, start, count))


# 2 columns


@router.post("/session/{session}/column/{number}")
def column(session: At, number: int, body: Payload) -> Response:
    with session.lock:
        what = str(body.get("what", ""))
        if what == "open":
            before = session.open_column
            session.open_column = session.column(number).name
            names = session.recipe.schema.names
            changed = {number, *([names.index(before)] if before in names else [])}
            return HTMLResponse(
                fragment("#inspector", column_views.inspector(session))
                + "".join(fragment(f"#mark-{one}", "") for one in changed)
            )
        session.open_column = session.column(number).name
        if what == "slide":
            weighing.slide(session, number, str(body.get("name", "")), int(body.get("value", 0)))
            return HTMLResponse(column_views.column_slid(session, number))
        if what == "look":
            weighing.look(session, session.column(number).name)
        elif what == "recode":
            weighing.recode(session, number, {name: str(value) for name, value in body.items()})
        elif what == "take back":
            weighing.take_back(session, int(body.get("value", -1)))
        elif what == "taxonomy":
            weighing.give_taxonomy(session, number, str(body.get("value", "")), str(body.get("name", "")))
        elif what == "release":
            weighing.release(session, number, str(body.get("value", "")))
        elif what == "totals":
            weighing.give(session, number, {name: str(value) for name, value in body.items()})
        elif what == "no totals":
            weighing.take_away(session, number, str(body.get("column", "")))
        else:
            weighing.change(session, number, what, body.get("value"))
        return HTMLResponse(column_views.column_changed(session, number, whole=what != "range"))


@router.post("/session/{session}/rules")
def rules(session: At, body: Payload) -> Response:
    """Change the rules between columns."""
    with session.lock:
        what, form = str(body.get("what", "")), {name: str(value) for name, value in body.items()}
        if what == "add":
            weighing.set_rule(session, form)
        elif what == "change":
            weighing.change_rule(session, form.get("place", ""))
        elif what == "remove":
            weighing.remove_rule(session, form.get("place", ""))
        else:
            weighing.choose_kind(session, form.get("value", ""))
        return HTMLResponse(column_views.ruled(session))


@router.post("/session/{session}/look")
def look(session: At) -> Response:
    with session.lock:
        weighing.look(session, "*")
        return HTMLResponse(views.step_fragments(session, "columns"))


# 3 guarantee


@router.post("/session/{session}/guarantee")
def guarantee(session: At, body: Payload) -> Response:
    with session.lock:
        what, value = str(body.get("what", "")), str(body.get("value", ""))
        name = str(body.get("name", ""))
        if what == "card":
            session.guarantee(card=value)
        elif what == "method":
            session.guarantee(method=value)
        elif what == "slider":
            session.slide(name, int(value))
        elif what == "first":
            session.back_to_first()
        elif what in ("same", "not same"):
            session.uses.journal.declare_same(session.dataset, [value], same=what == "same")
        elif what == "undo":
            session.undo()
        elif what == "ledger":
            session.ledger = str(body.get("ledger", "")).strip()
        elif what == "look":
            weighing.look(session, value)
        elif what == "column":
            session.choose_column(name, str(body.get("column", "")), on=body.get("value") is True)
        elif what in ("bound", "max_rows", "called"):
            weighing.change_unit(session, what, value)
        elif what == "leave":
            weighing.change(session, session.recipe.schema.names.index(value), "publish", None)
        elif what in ("outside", "missing"):
            session.set(what, value)
        else:
            session.set(name, value)
        method = what in (
            "card",
            "method",
            "first",
            "undo",
            "leave",
            "setting",
            "outside",
            "missing",
            "column",
        )
        return HTMLResponse(column_views.guaranteed(session, method=method, moved=name, by=what))


@router.post("/session/{session}/expect")
def expect(session: At) -> Response:
    """Start an estimate once the page is idle; the result comes with the events."""
    with session.lock:
        starting.expect(session)
        return HTMLResponse(column_views.expected(session))


# runs


@router.post("/session/{session}/run/{kind}")
def run(session: At, kind: str, body: Payload) -> Response:
    """Start a run. A run that spends a budget must be confirmed first, with its cost."""
    with session.lock:
        price = str(body.get("price", ""))
        if kind in ("release", "buy"):
            cost = starting.cost(session, kind, price)
            if body.get("confirmed") != asdict(cost):
                return HTMLResponse(column_views.ask_cost(cost, kind, price))
            starting.start(session, kind, **({"price": price} if price else {}))
        elif kind == "compare":
            starting.compare(session)
        elif kind == "learn":
            starting.learn(session, str(body.get("target", "")))
        elif kind == "rehearse":
            starting.start(session, kind)
        else:
            raise OptionError("there-no-run-kind", kind=kind)
        return HTMLResponse(fragment("#ask", "") + views.strip(session))


@router.post("/session/{session}/cancel")
def cancel(session: At) -> Response:
    with session.lock:
        session.cancel()
        return HTMLResponse(views.strip(session))


@router.get("/session/{session}/events")
async def events(session: At, sessions: All, request: Request) -> Response:
    async def stream() -> AsyncIterator[str]:
        told, finished = -1, True
        while not sessions.leaving() and not await request.is_disconnected():
            running = session.running is not None
            if session.version != told or running:
                told = session.version
                html = await run_in_threadpool(_news, session, not running and not finished)
                finished = not running
                yield f"data: {json.dumps(html)}\n\n"
            await asyncio.sleep(_BEAT)

    return StreamingResponse(stream(), media_type="text/event-stream")


# 4 judge


@router.post("/session/{session}/judge")
def judge(session: At, body: Payload) -> Response:
    with session.lock:
        what = str(body.get("what", ""))
        shown = session.judge(str(body.get("run", "")))
        if shown is None:
            return HTMLResponse(views.step_fragments(session, "judge"))
        if what == "tab":
            part = views.judge_part(
                session, shown, str(body.get("tab", "distributions")), str(body.get("column", ""))
            )
            return HTMLResponse(fragment("#part", part))
        if what == "person":
            return HTMLResponse(fragment("#person", views.person(shown, int(body.get("value") or 1))))
        if what == "dot":
            session.dot = str(body.get("value", ""))
            return HTMLResponse(fragment("#frontier", views.frontier(session)))
        if what == "take":
            session.take(
                json.loads(body.get("value", "{}")) if isinstance(body.get("value"), str) else body["value"]
            )
            return HTMLResponse(
                views.step_fragments(session, "guarantee"), headers={"x-shoal-step": "guarantee"}
            )
        return HTMLResponse(views.step_fragments(session, "judge"))


# 5 publish


@router.post("/session/{session}/override")
def override(session: At, body: Payload) -> Response:
    with session.lock:
        chosen = session.to_publish
        if chosen is None:
            raise OptionError("there-no-run-publish")
        publishing.overridden(chosen, str(body.get("reason", "")), str(body.get("name", "")))
        return HTMLResponse(views.step_fragments(session, "publish"))


@router.get("/session/{session}/bundle.zip")
def bundle(session: At) -> Response:
    chosen = session.to_publish
    if chosen is None:
        raise OptionError("there-no-run-publish")
    if publishing.blocked(publishing.checklist(chosen)) and not chosen.override:
        raise OptionError("release-not-ready-published")
    session.note_run(chosen, "downloaded")
    name = f'attachment; filename="{publishing.release_name(chosen)}.zip"'
    return Response(
        publishing.zipped(chosen), media_type="application/zip", headers={"content-disposition": name}
    )


@router.get("/session/{session}/method.toml")
def recipe(session: At) -> Response:
    headers = {"content-disposition": 'attachment; filename="method.toml"'}
    return Response(session.look_ahead().recipe, media_type="application/toml", headers=headers)


def _news(session: StudioSession, ended: bool) -> str:
    """Updates of a page about runs; after one has ended, also what its end changes."""
    with session.lock:
        found = views.strip(session)
        if session.table is not None and session.expected:
            found += column_views.expected(session)
        if (
            session.table is not None
            and session.releases
            and any(run.kind == "compare" for run in session.runs)
        ):
            found += fragment("#frontier", views.frontier(session))
        if ended and session.table is not None:
            found += column_views.guaranteed(session, method=True)
            last = session.runs[-1] if session.runs else None
            # a user who views another run meanwhile keeps viewing it
            if (
                last is not None
                and last.kind == "learn"
                and session.shown
                and last.of == session.run_of(session.shown).folder
            ):
                part = views.judge_part(session, session.run_of(session.shown), "learning")
                found += fragment("#part", part)
        return found


def bound_socket(port: int) -> socket.socket:
    """A socket that only this machine can reach; port 0 takes a free one."""
    # disable Nagle's algorithm, or an answer waits up to 40 ms for the acknowledgement of the previous packet
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(("127.0.0.1", port))
        # early connections wait for the server to start
        opened.listen(128)
    except OSError as error:
        opened.close()
        raise InputError(
            "studio-cannot-listen-port", option="port", port=port, reason=error.strerror
        ) from None
    return opened


def server(sessions: StudioSessions, access: Access) -> uvicorn.Server:
    made = uvicorn.Server(
        uvicorn.Config(
            create_app(sessions, access),
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_LAST_WORDS,
            lifespan="on",
            ws="none",
        )
    )
    sessions.leaving = lambda: made.should_exit
    return made


def serve(file: Path | None, port: int, *, browser: bool, ready: Callable[[str, bool], None]) -> None:
    """Serve until stopped.

    Args:
        file: opened in place; nothing of it is copied.
        port: on this machine only; 0 takes a free one.
        browser: open one; it gets a file that leads to the page, and no token on its command line.
        ready: called with an address that works once, and whether it replaces used ones.
    """
    opened = bound_socket(port)
    access = Access(opened.getsockname()[1], renewed=lambda address: ready(address, True))
    # signals before the server listens to them, and after it has stopped, must still remove files
    before = signal.signal(signal.SIGTERM, _leave)
    sessions = StudioSessions(file)
    given: Path | None = None
    try:
        given = hand_over(access, own_folder()) if browser else None
        ready(access.new_address(), False)
        if given is not None:
            threading.Timer(0.5, webbrowser.open, (given.as_uri(),)).start()
        server(sessions, access).run(sockets=[opened])
    except KeyboardInterrupt:
        # the usual way to stop it
        pass
    finally:
        if given is not None:
            given.unlink(missing_ok=True)
        sessions.close()
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, frame: object) -> None:
    raise SystemExit(128 + number)
