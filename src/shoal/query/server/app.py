"""The server application: routes of the query server and its start page."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from shoal._version import __version__
from shoal.errors import ShoalError
from shoal.ledger import Ledger, LedgerError
from shoal.look import tokens
from shoal.query.server.folder import Served
from shoal.query.server.guard import Limits, Receive, RequestProblem, Scope, Send, ServerGuard, write_log
from shoal.query.server.operations import FastLane, add_asking, add_general, add_own_answers
from shoal.query.server.state import Config, State, keep_heads, note_closed, open_folder

_STYLE = """
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: var(--space-5) var(--space-4); font:
  var(--text)/var(--leading) var(--font); color: var(--ink); background: var(--ground); overflow-wrap:
  break-word; }
h1 { font-size: var(--text-title); line-height: 1.2; margin: 0 0 var(--space-2); }
h2 { font-size: var(--text); margin: 0; } p { margin: var(--space-2) 0; max-width: var(--measure); } a { color:
  var(--accent); }
section { background: var(--paper); border: 1px solid var(--line); border-radius: var(--radius); box-shadow:
  var(--shadow); padding: var(--space-3) var(--space-4); margin: var(--space-3) 0; }
code { font: .95em var(--mono); } h2 b { display: inline-block; min-width: 4.2em; color: var(--accent); }
table { border-collapse: collapse; width: 100%; font-size: var(--text-small); }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0; border-top: 1px solid
  var(--line); font-weight: 400; }
th { width: 11rem; color: var(--soft); } caption { text-align: left; font-weight: var(--weight-strong);
  padding: .3rem 0 .1rem; }
@media (max-width: 40rem) { th { width: 7rem; } }
@media print { body { padding: 0; } section { break-inside: avoid; } }
"""
_ABOUT = (
    "Queries about data sets that stay internal. Every answer is differentially private, uses part of a privacy "
    "budget that cannot be overdrawn, and carries a statement of its guarantee."
)


def html_page(description: dict[str, Any]) -> str:
    """All operations with their inputs and outputs."""
    info = description["info"]
    operations = "".join(
        _operation(method, path, operation)
        for path, operations in description["paths"].items()
        for method, operation in operations.items()
    )
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(info['title'])}</title><style>{tokens()}{_STYLE}</style></head><body><main>"
        f"<h1>{escape(info['title'])}</h1><p>{escape(info['description'])}</p>"
        "<p>For programs: <a href='/openapi.json'>openapi.json</a>.</p>"
        f"{operations}</main></body></html>"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    takes = [
        (f"<code>{escape(parameter['name'])}</code>", parameter["in"])
        for parameter in operation.get("parameters", ())
    ]
    answers = [
        (escape(status), _marked(response["description"]))
        for status, response in operation["responses"].items()
    ]
    return (
        f"<section><h2><code><b>{method.upper()}</b> {escape(path)}</code></h2>"
        f"<p>{_marked(operation.get('description') or operation['summary'])}</p>"
        f"{_lines('Parameters', takes)}{_lines('Responses', answers)}</section>"
    )


def _marked(words: str) -> str:
    """
    >>> _marked("`closed`: a < b")
    '<code>closed</code>: a &lt; b'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words))


def _lines(title: str, lines: list[tuple[str, str]]) -> str:
    if not lines:
        return ""
    rows = "".join(f"<tr><th scope='row'>{name}</th><td>{words}</td></tr>" for name, words in lines)
    return f"<table><caption>{title}</caption><tbody>{rows}</tbody></table>"


class Application:
    """The operations behind the guard, which sees every request first."""

    def __init__(self, api: FastAPI, limits: Limits) -> None:
        self._api = api
        self._guarded = ServerGuard(FastLane(api), limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guarded(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI description of all operations."""
        return self._api.openapi()


def create_app(config: Config, opened: tuple[Ledger, dict[str, Served]] | None = None) -> Application:
    """The application.

    Args:
        config: the server's configuration.
        opened: the result of `open_folder`, if it was called earlier, so that its errors appear first.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        ledger, datasets = opened or open_folder(config)
        state = app.state.shoal = State(config, ledger, datasets)
        for name in datasets:
            standing = ledger.standing(name)
            write_log("serving", dataset=name, entries=standing.number, unanswered=standing.unanswered)
        noting = asyncio.create_task(keep_heads(state.head_files, ledger))
        yield
        noting.cancel()
        await run_in_threadpool(state.close)
        # a ledger that cannot be used at the end has no heads to record, and must not prevent the server from stopping
        with contextlib.suppress(ShoalError, OSError):
            state.note_heads()
        ledger.close()
        if config.closes:
            note_closed(config)

    api = FastAPI(
        title="Shoal query server",
        description=_ABOUT,
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        **_without_telemetry(),
    )
    api.add_exception_handler(RequestProblem, _on_problem)
    api.add_exception_handler(RequestValidationError, _on_invalid)
    api.add_exception_handler(HTTPException, _on_http_error)
    api.add_exception_handler(LedgerError, _on_lost_ledger)
    api.add_exception_handler(Exception, _on_failure)
    api.get("/docs", include_in_schema=False)(_docs)
    add_general(api)
    add_asking(api)
    add_own_answers(api)
    return Application(api, config.limits)


def _without_telemetry() -> dict[str, Any]:
    """Disable the telemetry that newer FastAPI versions send to a collector named in the environment."""
    if "telemetry" not in inspect.signature(FastAPI.__init__).parameters:
        return {}
    return {"telemetry": {"tracing": False, "metrics": False, "logs": False}}


async def _docs(request: Request) -> Response:
    return HTMLResponse(html_page(request.app.openapi()))


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestProblem)
    request.state.log["error"] = error.code
    return JSONResponse(error.body(), error.status, error.headers)


async def _on_invalid(request: Request, error: Exception) -> Response:
    return await _on_problem(request, RequestProblem("bad_request"))


async def _on_lost_ledger(request: Request, error: Exception) -> Response:
    return await _on_problem(request, RequestProblem("closed"))


async def _on_failure(request: Request, error: Exception) -> Response:
    return await _on_problem(request, RequestProblem("failed"))


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    codes = {404: "not_found", 405: "bad_method"}
    code = codes.get(error.status_code, "bad_request")
    return await _on_problem(request, RequestProblem(code, headers=error.headers))
