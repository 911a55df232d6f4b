"""The application: settings come in, a FastAPI application leaves. Each operation parses, calls and prints."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from fastapi import Depends, FastAPI, Header, Query, Request
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from shoal._version import __version__
from shoal.query.ledger import Ledger, LedgerError, OverdrawnError, Receipt, open_ledger
from shoal.query.ledger.entry import fraction_text
from shoal.query.server import description as shape
from shoal.query.server.desk import FAILED, Desk
from shoal.query.server.folder import LEDGER_FILE, TOKENS_FILE, Served, load_folder
from shoal.query.server.guard import App, Guard, Limits, RateLimit, Receive, Scope, Send, write_log
from shoal.query.server.heads import HeadFile
from shoal.query.server.names import KEY, NAME
from shoal.query.server.page import html_page
from shoal.query.server.problems import Problem
from shoal.query.server.questions import Question, quick, understand
from shoal.query.server.tokens import Token, TokenBook
from shoal.query.spec import KINDS

_ABOUT = (
    "Questions about data sets that stay inside. Every answer is differentially private and costs some of a budget "
    "that cannot be overdrawn; every answer carries the statement of what is promised."
)


@dataclass(frozen=True, slots=True)
class Config:
    """How a server is set up.

    Attributes:
        folder: the served folder, see `folder.py`.
        ledger: address of the ledger; DIR/ledger.sqlite when absent.
        heads: a file, best on another disk, in which the newest heads of the ledger are noted and checked at start.
        limits: what a client may ask for.
    """

    folder: Path
    ledger: str | None = None
    heads: Path | None = None
    limits: Limits = field(default_factory=Limits)


class _State:
    """What the operations share while the server runs."""

    def __init__(self, config: Config, ledger: Ledger, datasets: dict[str, Served]) -> None:
        self.ledger, self.datasets, self.limits = ledger, datasets, config.limits
        self.tokens = TokenBook(config.folder / TOKENS_FILE)
        self.rates = RateLimit(config.limits.rate, config.limits.burst)
        self.strangers = RateLimit(config.limits.rate, config.limits.burst)
        self.desk = Desk(
            ledger,
            config.limits.workers,
            config.limits.most_waiting,
            lambda kind: write_log("unanswered", failure=kind),
        )


def ledger_address(config: Config) -> str | Path:
    return config.ledger or config.folder / LEDGER_FILE


def open_folder(config: Config) -> tuple[Ledger, dict[str, Served]]:
    """Read the data sets, open the ledger, check it, and agree on the terms: everything that can fail at start."""
    datasets = load_folder(config.folder)
    ledger = open_ledger(ledger_address(config))
    if config.heads is not None:
        HeadFile(config.heads).check(ledger)
    for served in datasets.values():
        ledger.register(served.register())
    return ledger, datasets


def create_app(config: Config, opened: tuple[Ledger, dict[str, Served]] | None = None) -> FastAPI:
    """The application.

    Args:
        config: how it is set up.
        opened: the result of `open_folder`, if it was called before, to see its errors.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        ledger, datasets = opened or open_folder(config)
        state = app.state.shoal = _State(config, ledger, datasets)
        for name in datasets:
            standing = ledger.standing(name)
            write_log("serving", dataset=name, entries=standing.number, unanswered=standing.unanswered)
        noting = asyncio.create_task(HeadFile(config.heads).keep(ledger)) if config.heads else None
        yield
        if noting is not None:
            noting.cancel()
        await run_in_threadpool(state.desk.close)
        if config.heads is not None:
            HeadFile(config.heads).note(ledger)
        ledger.close()

    app = FastAPI(
        title="Shoal query server",
        description=_ABOUT,
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(_FastLane)
    app.add_middleware(Guard, limits=config.limits)
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(LedgerError, _on_lost_ledger)
    app.get("/docs", include_in_schema=False)(_docs)
    for add in (_general, _asking, _looking_back):
        add(app)
    return app


_bearer = HTTPBearer(auto_error=False, description="A token made by 'shoal token new'.")


def _authenticated(request: Request) -> Token:
    state: _State = request.app.state.shoal
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    token = state.tokens.find(text) if scheme.lower() == "bearer" else None
    if token is None:
        state.strangers.take(request.client.host if request.client else "")
        raise Problem("no_token", headers={"WWW-Authenticate": "Bearer"})
    request.state.log["token"] = token.id
    state.rates.take(token.id)
    return token


async def _token(request: Request, _: Annotated[object, Depends(_bearer)]) -> Token:
    return _authenticated(request)


Asker = Annotated[Token, Depends(_token)]
Name = Annotated[str, PathParameter(pattern=NAME, description="Name of the data set.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=KEY,
        description="Chosen by the client for one question: asked again under it, it is paid once.",
    ),
]


class _FastLane:
    """Questions take a shorter way to `ask` than the general machinery: most of the server's time would go there."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = (
            _ASK_PATH.fullmatch(scope["path"])
            if scope["type"] == "http" and scope["method"] == "POST"
            else None
        )
        if path is None:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        request.state.log["route"] = "/v1/datasets/{name}/answers"
        token, key = _authenticated(request), request.headers.get("idempotency-key")
        if key is not None and not _KEY.fullmatch(key):
            raise Problem("bad_request")
        response = await ask(request, path[1], token, key)
        await response(scope, receive, send)


_ASK_PATH = re.compile(f"/v1/datasets/({NAME.strip('^$')})/answers")
_KEY = re.compile(KEY)


def _served(request: Request, token: Token, name: str) -> Served:
    """A data set that this token opens; one that it does not open looks like one that does not exist."""
    state: _State = request.app.state.shoal
    served = state.datasets.get(name)
    if served is None or not token.opens(name):
        raise Problem("not_found")
    request.state.log["dataset"] = name
    return served


def _general(app: FastAPI) -> None:
    @app.get("/v1/health", responses={200: {"model": shape.Health}}, response_class=JSONResponse)
    async def health() -> Response:
        """Whether the server runs."""
        return JSONResponse({"status": "ok", "version": __version__})

    @app.get("/v1/datasets", responses={200: {"model": shape.DatasetNames}, **shape.refusals()})
    async def datasets(request: Request, token: Asker) -> Response:
        """The data sets that this token opens."""
        state: _State = request.app.state.shoal
        return JSONResponse({"datasets": [name for name in state.datasets if token.opens(name)]})

    @app.get("/v1/datasets/{name}", responses={200: {"model": shape.Dataset}, **shape.refusals("not_found")})
    async def describe(request: Request, name: Name, token: Asker) -> Response:
        """Public facts about a data set: columns, domains, the relation of neighbours."""
        served = _served(request, token, name)
        return JSONResponse(
            {
                "dataset": name,
                "description": served.settings.description,
                "facts": served.table.facts.describe(),
                "kinds": list(KINDS),
            }
        )


_QUESTION = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": shape.question_schema()}}}
}


async def _question(request: Request, name: str, token: Token, key: str) -> Question:
    served = _served(request, token, name)
    body = await request.body()
    if quick(body):
        return understand(body, served, token.name, key)
    return await run_in_threadpool(understand, body, served, token.name, key)


def _asking(app: FastAPI) -> None:
    @app.post(
        "/v1/datasets/{name}/preview",
        openapi_extra=_QUESTION,
        responses={
            200: {"model": shape.PreviewBody},
            **shape.refusals("not_found", "not_json", "bad_question"),
        },
    )
    async def preview(request: Request, name: Name, token: Asker) -> Response:
        """What a question would cost and how good the answer would be. Free; looks at no record."""
        question = await _question(request, name, token, "")
        state: _State = request.app.state.shoal
        try:
            adds = fraction_text(await run_in_threadpool(state.ledger.quote, question.charge))
        except OverdrawnError:
            adds = None
        body = {"preview": question.preview(), "allowed": adds is not None, "adds": adds}
        return JSONResponse(body)

    app.post(
        "/v1/datasets/{name}/answers",
        openapi_extra=_QUESTION,
        responses={
            200: {"model": shape.AnswerBody},
            **shape.refusals(
                "not_found", "not_json", "bad_question", "overdrawn", "key_reused", "busy", "late"
            ),
        },
    )(ask)


async def ask(request: Request, name: Name, token: Asker, key: Key = None) -> Response:
    """Ask a question. It is charged before any record is looked at, and never refunded."""
    came = time.monotonic()
    state: _State = request.app.state.shoal
    question = await _question(request, name, token, key or "")
    try:
        receipt = await state.desk.ask(question.charge, question.answer, state.limits.patience)
    finally:
        await _until_the_next_beat(came, state.limits.pace)
    request.state.log["charge"] = receipt.charge
    if receipt.answer is None or receipt.answer == FAILED:
        raise Problem("failed")
    return Response(_with_receipt(receipt), media_type="application/json")


def _looking_back(app: FastAPI) -> None:
    @app.get(
        "/v1/datasets/{name}/answers",
        responses={200: {"model": shape.OwnAnswers}, **shape.refusals("not_found")},
    )
    def answers(
        request: Request,
        name: Name,
        token: Asker,
        after: Annotated[int, Query(ge=0, le=2**31 - 1, description="Only questions after this number.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """The questions asked under this name, with their answers, oldest first."""
        _served(request, token, name)
        state: _State = request.app.state.shoal
        found = state.ledger.answers(name, token.name, after, limit)
        listed = [
            {
                "charge": charge.number,
                "at": charge.at,
                "key": charge.key,
                "question": json.loads(charge.content),
                "added": fraction_text(charge.added),
                "answer": None if answer is None or answer.content == FAILED else json.loads(answer.content),
                "head": charge.hash if answer is None else answer.hash,
            }
            for charge, answer in found
        ]
        return JSONResponse({"answers": listed, "next": found[-1][0].number if len(found) == limit else None})

    @app.get(
        "/v1/datasets/{name}/budget",
        responses={200: {"model": shape.BudgetBody}, **shape.refusals("not_found")},
    )
    def budget(request: Request, name: Name, token: Asker) -> Response:
        """What is spent and what is left, of the data set and under this name."""
        _served(request, token, name)
        state: _State = request.app.state.shoal
        standing = state.ledger.standing(name)
        plain = standing.to_dict()
        ceiling = standing.terms.analyst_ceiling(token.name)
        remaining = standing.remaining(token.name)
        own = {
            "ceiling": None if ceiling is None else fraction_text(ceiling),
            "spent": plain["analysts"].get(token.name, "0/1"),
            "remaining": None if remaining is None else fraction_text(remaining),
        }
        terms = {key: plain["terms"][key] for key in ("neighbours", "ceiling", "delta_ceiling")}
        totals = {key: plain[key] for key in ("dataset", "spent", "remaining", "delta_spent")}
        return JSONResponse({**totals, **terms, "yours": own})

    @app.get(
        "/v1/datasets/{name}/ledger",
        responses={200: {"model": shape.LedgerBody}, **shape.refusals("not_found")},
    )
    def ledger(request: Request, name: Name, token: Asker) -> Response:
        """For holders: what everybody spent, and the newest head of the ledger."""
        _served(request, token, name)
        if token.role != "holder":
            raise Problem("not_allowed")
        state: _State = request.app.state.shoal
        return JSONResponse(state.ledger.standing(name).to_dict())


def _with_receipt(receipt: Receipt) -> bytes:
    paid = {
        "dataset": receipt.dataset,
        "charge": receipt.charge,
        "added": fraction_text(receipt.added),
        "repeated": receipt.repeated,
        "head": receipt.head,
    }
    return f'{{"answer":{receipt.answer},"receipt":{json.dumps(paid)}}}'.encode()


async def _until_the_next_beat(came: float, pace: float) -> None:
    """How long an answer took depends on the records and the noise: it leaves on a beat that does not."""
    if pace:
        spent = time.monotonic() - came
        await asyncio.sleep(math.ceil(spent / pace) * pace - spent)


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


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    codes = {404: "not_found", 405: "bad_method"}
    return await _on_problem(
        request, Problem(codes.get(error.status_code, "bad_request"), headers=error.headers)
    )
