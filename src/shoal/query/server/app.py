"""The server application: routes of the query server and its start page."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from shoal._version import __version__
from shoal.errors import ShoalError
from shoal.ledger import Ledger, LedgerError, OverdrawnError, Receipt, decimals, fraction_text
from shoal.look import tokens
from shoal.query.server import description as shape
from shoal.query.server.answers import (
    FAILED,
    Departure,
    Meter,
    ParsedQuestion,
    quick,
    understand,
    understand_many,
)
from shoal.query.server.folder import KEY, NAME, Served
from shoal.query.server.guard import Limits, Receive, RequestProblem, Scope, Send, ServerGuard, write_log
from shoal.query.server.state import (
    Asker,
    Config,
    Key,
    Name,
    State,
    Token,
    authenticated,
    keep_heads,
    note_closed,
    open_folder,
    served_to,
    state_of,
)
from shoal.query.spec import KINDS

_ASK_PATH = re.compile(f"/v1/datasets/({NAME.strip('^$')})/answers")
_KEY = re.compile(KEY)
_REFUSED = ("not_found", "not_json", "bad_question", "overdrawn", "full", "key_reused", "busy", "late")


class FastLane:
    """A short route to `ask` that bypasses the general request handling, which would take most of the server's time."""

    def __init__(self, api: FastAPI) -> None:
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asks = scope["type"] == "http" and scope["method"] == "POST"
        path = _ASK_PATH.fullmatch(scope["path"]) if asks else None
        if path is None:
            await self._api(scope, receive, send)
            return
        scope["app"] = self._api
        request = Request(scope, receive)
        request.state.log["route"] = "/v1/datasets/{name}/answers"
        token, key = authenticated(request), request.headers.get("idempotency-key")
        if key is not None and not _KEY.fullmatch(key):
            raise RequestProblem("bad_request")
        response = await ask(request, path[1], token, key)
        await response(scope, receive, send)


async def preview(request: Request, name: Name, token: Asker) -> Response:
    """Preview the cost of a query and the accuracy of its answer. Free; reads no records and no other account."""
    state, served, body = state_of(request), served_to(request, token, name), await request.body()

    def previewed() -> Response:
        question = understand(body, served, token.name, "")
        try:
            adds = fraction_text(state.ledger.quote(question.charge))
        except OverdrawnError:
            adds = None
        return JSONResponse({"preview": question.preview(), "allowed": adds is not None, "adds": adds})

    return await state.free.run(token.id, previewed)


async def ask(request: Request, name: Name, token: Asker, key: Key = None) -> Response:
    """Answer a query. The charge is made before any record is read, and is never refunded."""
    state = state_of(request)
    question = await _question(request, name, token, key or "")
    outcome, departure = await _asked(state, question)
    if isinstance(outcome, Receipt):
        request.state.log["charge"] = outcome.charge
    body = _with_receipt(outcome)
    await state.schedule.leave(departure)
    if isinstance(body, RequestProblem):
        raise body
    return Response(body, media_type="application/json")


async def ask_many(request: Request, name: Name, token: Asker, key: Key = None) -> Response:
    """Answer several queries in one request. Each is charged, answered or refused separately, in order."""
    state = state_of(request)
    served, body = served_to(request, token, name), await request.body()
    questions = await state.free.run(
        token.id, lambda: understand_many(body, served, token.name, key or "", _metered(state, token))
    )
    state.rates.take(token.id, len(questions) - 1)
    # in the analyst's queue one after the other; all are sent with the last one
    found = await asyncio.gather(*(_outcome(state, question) for question in questions))
    results = [result for result, _ in found]
    departures = [departure for _, departure in found if departure is not None]
    if departures:
        await state.schedule.leave(max(departures, key=lambda departure: departure.ready))
    request.state.log["questions"] = len(questions)
    return Response(b'{"results":[' + b",".join(results) + b"]}", media_type="application/json")


async def _outcome(state: State, question: ParsedQuestion | RequestProblem) -> tuple[bytes, Departure | None]:
    """The answer to one of several questions, or its refusal, and when it may be sent."""
    departure = None
    try:
        if isinstance(question, RequestProblem):
            raise question
        outcome, departure = await _asked(state, question)
        body = _with_receipt(outcome)
        if isinstance(body, RequestProblem):
            raise body
        return body, departure
    except RequestProblem as problem:
        return json.dumps(problem.body()).encode(), departure


async def _asked(state: State, question: ParsedQuestion) -> tuple[Receipt | RequestProblem, Departure]:
    seconds = question.seconds * state.allowance
    return await state.paid_answers.ask(question.charge, question.answer, seconds, state.limits.patience)


async def _question(request: Request, name: str, token: Token, key: str) -> ParsedQuestion:
    state, served, body = state_of(request), served_to(request, token, name), await request.body()

    def understood() -> ParsedQuestion:
        return understand(body, served, token.name, key, _metered(state, token))

    return (
        state.free.at_once(token.id, understood)
        if quick(body)
        else await state.free.run(token.id, understood)
    )


def _metered(state: State, token: Token) -> Meter:
    """Prices computed later count as free work, too: a refused question is not charged."""
    return lambda work: state.free.metered(token.id, work)


def _with_receipt(receipt: Receipt | RequestProblem) -> bytes | RequestProblem:
    """The response, ready to be sent, so that no work is left when its time has come."""
    if isinstance(receipt, RequestProblem):
        return receipt
    if receipt.answer is None or receipt.answer == FAILED:
        return RequestProblem("failed")
    paid = {
        "dataset": receipt.dataset,
        "charge": receipt.charge,
        "added": fraction_text(receipt.added),
        "repeated": receipt.repeated,
        "head": receipt.head,
    }
    return f'{{"answer":{receipt.answer},"receipt":{json.dumps(paid)}}}'.encode()


def _body_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def add_asking(app: FastAPI) -> None:
    """Declare these operations."""
    question = shape.question_schema()
    app.post(
        "/v1/datasets/{name}/preview",
        openapi_extra=_body_of(question),
        responses={200: {"model": shape.PreviewBody}, **shape.refusals(*_REFUSED[:3])},
    )(preview)
    app.post(
        "/v1/datasets/{name}/answers",
        openapi_extra=_body_of(question),
        responses={200: {"model": shape.AnswerBody}, **shape.refusals(*_REFUSED)},
    )(ask)
    app.post(
        "/v1/datasets/{name}/batches",
        openapi_extra=_body_of(shape.questions_schema()),
        responses={200: {"model": shape.BatchBody}, **shape.refusals(*_REFUSED[:3])},
    )(ask_many)


def add_general(app: FastAPI) -> None:
    """Declare the operations about the server and its data sets."""

    @app.get(
        "/v1/health",
        responses={200: {"model": shape.HealthOperation}, **shape.only("closed")},
        response_class=JSONResponse,
    )
    async def health(request: Request) -> Response:
        """Report whether the server runs and its ledger can be used."""
        if not await state_of(request).health.alive():
            raise RequestProblem("closed")
        return JSONResponse({"status": "ok", "version": __version__})

    @app.get("/v1/status", responses={200: {"model": shape.Status}, **shape.refusals()})
    async def status(request: Request, token: Asker) -> Response:
        """For custodians: report how many answers were on time or late, and whether the claim about timing holds."""
        if token.role != "holder":
            raise RequestProblem("not_allowed")
        state = state_of(request)
        schedule = state.schedule
        found = {
            "answers": schedule.punctuality.answers,
            "late": schedule.punctuality.late,
            "analysts": schedule.queued(),
            "pace": schedule.pace,
            "timing": state.faults.claim(schedule.pace),
            "faults": state.faults.count,
            "last_fault": state.faults.last,
        }
        return JSONResponse(found)

    @app.get("/v1/datasets", responses={200: {"model": shape.DatasetNames}, **shape.refusals()})
    async def datasets(request: Request, token: Asker) -> Response:
        """List the data sets that this token gives access to."""
        return JSONResponse({"datasets": [name for name in state_of(request).datasets if token.opens(name)]})

    @app.get("/v1/datasets/{name}", responses={200: {"model": shape.Dataset}, **shape.refusals("not_found")})
    async def describe(request: Request, name: Name, token: Asker) -> Response:
        """Describe the public facts of a data set: columns, domains and adjacency."""
        served = served_to(request, token, name)

        def described() -> Response:
            return JSONResponse(
                {
                    "dataset": name,
                    "description": served.settings.description,
                    "facts": served.table.facts.describe(),
                    "kinds": list(KINDS),
                }
            )

        return await state_of(request).free.run(token.id, described)


def add_own_answers(app: FastAPI) -> None:
    """Declare the operations about the analyst's own questions and spending."""

    @app.get(
        "/v1/datasets/{name}/answers",
        responses={200: {"model": shape.OwnAnswers}, **shape.refusals("not_found")},
    )
    async def answers(
        request: Request,
        name: Name,
        token: Asker,
        after: Annotated[
            int, Query(ge=0, le=2**31 - 1, description="Return only queries after this number.")
        ] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """List the queries asked under this name, with their answers, oldest first; fewer per page if they are long."""
        served_to(request, token, name)
        state = state_of(request)

        def listed() -> Response:
            found, more = state.ledger.page(name, token.name, after, limit, state.limits.page_bytes)
            page = [
                {
                    "charge": charge.number,
                    "at": charge.at,
                    "key": charge.key,
                    "question": json.loads(charge.content),
                    "added": fraction_text(charge.added),
                    "answer": None
                    if answer is None or answer.content == FAILED
                    else json.loads(answer.content),
                    "head": charge.hash if answer is None else answer.hash,
                }
                for charge, answer in found
            ]
            return JSONResponse({"answers": page, "next": found[-1][0].number if more else None})

        return await state.free.run(token.id, listed)

    @app.get(
        "/v1/datasets/{name}/budget",
        responses={200: {"model": shape.BudgetBody}, **shape.refusals("not_found")},
    )
    async def budget(request: Request, name: Name, token: Asker) -> Response:
        """Report the privacy budget used and remaining, for the data set and under this name."""
        served_to(request, token, name)
        state = state_of(request)
        standing = await state.free.run(token.id, lambda: state.ledger.standing(name))
        plain = standing.to_dict()
        ceiling = standing.terms.analyst_ceiling(token.name)
        remaining = standing.remaining(token.name)
        own: dict[str, Any] = {
            "ceiling": None if ceiling is None else fraction_text(ceiling),
            "spent": plain["analysts"].get(token.name, "0/1"),
            "remaining": None if remaining is None else fraction_text(remaining),
        }
        own["decimal"] = decimals(own)
        terms = {key: plain["terms"][key] for key in ("neighbours", "ceiling", "delta_ceiling")}
        totals = {key: plain[key] for key in ("dataset", "spent", "remaining", "delta_spent")}
        amounts = {
            key: value for key, value in {**terms, **totals}.items() if key not in ("dataset", "neighbours")
        }
        return JSONResponse({**totals, **terms, "yours": own, "decimal": decimals(amounts)})

    @app.get(
        "/v1/datasets/{name}/ledger",
        responses={200: {"model": shape.LedgerBody}, **shape.refusals("not_found")},
    )
    async def ledger(request: Request, name: Name, token: Asker) -> Response:
        """For custodians: report the privacy budget everyone has used, and the latest hash of the ledger."""
        served_to(request, token, name)
        if token.role != "holder":
            raise RequestProblem("not_allowed")
        state = state_of(request)
        return await state.free.run(token.id, lambda: JSONResponse(state.ledger.standing(name).to_dict()))


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
