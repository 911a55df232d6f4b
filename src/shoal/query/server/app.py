"""The ASGI application of the query server, put together from its operations and what stands before them."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from shoal._version import __version__
from shoal.errors import ShoalError
from shoal.ledger import Ledger, LedgerError
from shoal.query.server.folder import Served
from shoal.query.server.free_operations import add_general, add_own_answers
from shoal.query.server.guard import Guard, Limits, Receive, Scope, Send, write_log
from shoal.query.server.ledger_heads import keep_heads
from shoal.query.server.page import html_page
from shoal.query.server.paid_operations import FastLane, add_asking
from shoal.query.server.problems import Problem
from shoal.query.server.state import Config, State, note_closed, open_folder

_ABOUT = (
    "Questions about data sets that stay inside. Every answer is differentially private and costs some of a budget "
    "that cannot be overdrawn; every answer carries the statement of what is promised."
)


class Application:
    """The operations behind the guard, so that nothing is seen of a request before the guard."""

    def __init__(self, api: FastAPI, limits: Limits) -> None:
        self._api = api
        self._guarded = Guard(FastLane(api), limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guarded(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """The description of all operations."""
        return self._api.openapi()


def create_app(config: Config, opened: tuple[Ledger, dict[str, Served]] | None = None) -> Application:
    """The application.

    Args:
        config: how it is set up.
        opened: the result of `open_folder`, if it was called before, to see its errors.
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
        # a ledger that cannot be used at the end has no heads to note, and must not keep the server from ending
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
    api.add_exception_handler(Problem, _on_problem)
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
    """Newer versions of FastAPI report requests and errors to whatever collector the environment names: not here."""
    if "telemetry" not in inspect.signature(FastAPI.__init__).parameters:
        return {}
    return {"telemetry": {"tracing": False, "metrics": False, "logs": False}}


async def _docs(request: Request) -> Response:
    return HTMLResponse(html_page(request.app.openapi()))


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    request.state.log["error"] = error.code
    return JSONResponse(error.body(), error.status, error.headers)


async def _on_invalid(request: Request, error: Exception) -> Response:
    return await _on_problem(request, Problem("bad_request"))


async def _on_lost_ledger(request: Request, error: Exception) -> Response:
    return await _on_problem(request, Problem("closed"))


async def _on_failure(request: Request, error: Exception) -> Response:
    return await _on_problem(request, Problem("failed"))


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    codes = {404: "not_found", 405: "bad_method"}
    code = codes.get(error.status_code, "bad_request")
    return await _on_problem(request, Problem(code, headers=error.headers))
