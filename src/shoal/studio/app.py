"""The routes of the studio: a request comes in, one call of a desk and one of a view go out. Nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from shoal.errors import OptionError, ShoalError
from shoal.look import tokens
from shoal.studio import (
    changing,
    column_views,
    judge_views,
    promise_views,
    publishing,
    starting,
    views,
    weighing,
)
from shoal.studio.desk import Desk
from shoal.studio.desks import Desks
from shoal.studio.guard import Access, App, Guard
from shoal.studio.rendering import HERE, fragment
from shoal.studio.routing import All, At, Payload, whole
from shoal.studio.sending import files

# how often a page hears where a run stands
_BEAT = 0.25
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


router = APIRouter()


def create_app(desks: Desks, access: Access) -> App:
    """The application with its guard."""

    @asynccontextmanager
    async def alive(app: FastAPI) -> AsyncIterator[None]:
        yield
        # uvicorn raises a signal again once it is done, so nothing after it would run
        desks.close()

    app = FastAPI(lifespan=alive, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.desks = desks
    app.include_router(router)
    app.include_router(files)
    app.add_exception_handler(ShoalError, refused)
    return Guard(app, access)


def refused(request: Request, error: Exception) -> Response:
    """What can be expected is answered and not refused: a status of 4xx is an error in the browser's console."""
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


@router.post("/desk")
def new_desk(desks: All) -> Response:
    desk = desks.new()
    return JSONResponse({"desk": desk.name, "step": "data"})


@router.post("/desk/{desk}/step/{name}")
def step(desk: At, desks: All, name: str) -> Response:
    with desk.lock:
        known = name if name in views.STEPS else "data"
        return HTMLResponse(whole(desk, desks, known if desk.table is not None else "data"))


# 1 data


@router.post("/desk/{desk}/survey")
def survey(desk: At, desks: All) -> Response:
    desk.open_survey()
    return HTMLResponse(whole(desk, desks, "data"))


@router.post("/desk/{desk}/close")
def close(desk: At, desks: All) -> Response:
    desk.close()
    return HTMLResponse(whole(desk, desks, "data"))


@router.post("/desk/{desk}/written")
def written(desk: At, desks: All, body: Payload) -> Response:
    """How the file is written."""
    from shoal.io import Conventions

    told = {name: body[name] for name in ("encoding", "separator", "decimal") if body.get(name)}
    texts = tuple(text.strip() for text in str(body.get("na", "")).split(",") if text.strip())
    desk.reread(Conventions(**told, na=texts))
    return HTMLResponse(whole(desk, desks, "data") + (views.problem(desk.problem) if desk.problem else ""))


@router.post("/desk/{desk}/reread")
def reread(desk: At, desks: All) -> Response:
    """A file that has changed on disk is read again, with what is declared about it."""
    desk.reread()
    return HTMLResponse(whole(desk, desks, "data") + (views.problem(desk.problem) if desk.problem else ""))


@router.post("/desk/{desk}/rows")
def show_rows(desk: At, desks: All) -> Response:
    """The rows are shown from now on; the journal notes it."""
    with desk.lock:
        desk.show(desk.sheet.names, "rows")
        desk.rows_shown = True
        return HTMLResponse(whole(desk, desks, "data"))


@router.post("/desk/{desk}/dataset")
def dataset(desk: At, desks: All, body: Payload) -> Response:
    """The name under which the journal publishes what is recorded, and the ledger charges."""
    with desk.lock:
        name = " ".join(str(body.get("data-set", "")).split())
        if not name:
            raise OptionError("name-data-set")
        desk.dataset = name
        return HTMLResponse(whole(desk, desks, "data"))


@router.get("/desk/{desk}/rows")
def rows(desk: At, start: int = 0, count: int = column_views.WINDOW) -> Response:
    return HTMLResponse(column_views.window(desk, start, count))


# 2 columns


@router.post("/desk/{desk}/column/{number}")
def column(desk: At, number: int, body: Payload) -> Response:
    with desk.lock:
        what = str(body.get("what", ""))
        if what == "open":
            before = desk.open_column
            desk.open_column = desk.column(number).name
            names = desk.recipe.schema.names
            changed = {number, *([names.index(before)] if before in names else [])}
            return HTMLResponse(
                fragment("#inspector", column_views.inspector(desk))
                + "".join(fragment(f"#mark-{one}", "") for one in changed)
            )
        desk.open_column = desk.column(number).name
        if what == "slide":
            changing.slide(desk, number, str(body.get("name", "")), int(body.get("value", 0)))
            return HTMLResponse(column_views.column_slid(desk, number))
        if what == "look":
            changing.look(desk, desk.column(number).name)
        elif what == "recode":
            changing.recode(desk, number, {name: str(value) for name, value in body.items()})
        elif what == "take back":
            changing.take_back(desk, int(body.get("value", -1)))
        elif what == "taxonomy":
            changing.give_taxonomy(desk, number, str(body.get("value", "")), str(body.get("name", "")))
        elif what == "release":
            weighing.release(desk, number, str(body.get("value", "")))
        elif what == "totals":
            weighing.give(desk, number, {name: str(value) for name, value in body.items()})
        elif what == "no totals":
            weighing.take_away(desk, number, str(body.get("column", "")))
        else:
            changing.change(desk, number, what, body.get("value"))
        return HTMLResponse(column_views.column_changed(desk, number, whole=what != "range"))


@router.post("/desk/{desk}/look")
def look(desk: At) -> Response:
    with desk.lock:
        changing.look(desk, "*")
        return HTMLResponse(views.step(desk, "columns"))


# 3 promise


@router.post("/desk/{desk}/promise")
def promise(desk: At, body: Payload) -> Response:
    with desk.lock:
        what, value = str(body.get("what", "")), str(body.get("value", ""))
        name = str(body.get("name", ""))
        if what == "card":
            desk.promise(card=value)
        elif what == "method":
            desk.promise(method=value)
        elif what == "slider":
            desk.slide(name, int(value))
        elif what == "first":
            desk.back_to_first()
        elif what in ("same", "not same"):
            desk.uses.journal.declare_same(desk.dataset, [value], same=what == "same")
        elif what == "undo":
            desk.undo()
        elif what == "ledger":
            desk.ledger = str(body.get("ledger", "")).strip()
        elif what == "look":
            changing.look(desk, value)
        elif what == "leave":
            changing.change(desk, desk.recipe.schema.names.index(value), "publish", None)
        elif what in ("outside", "missing"):
            desk.set(what, value)
        else:
            desk.set(name, value)
        method = what in ("card", "method", "first", "undo", "leave", "setting", "outside", "missing")
        return HTMLResponse(promise_views.promised(desk, method=method, moved=name, by=what))


@router.post("/desk/{desk}/expect")
def expect(desk: At) -> Response:
    """Asked once the page rests; the answer comes with the events."""
    with desk.lock:
        starting.expect(desk)
        return HTMLResponse(promise_views.expected(desk))


# runs


@router.post("/desk/{desk}/run/{kind}")
def run(desk: At, kind: str, body: Payload) -> Response:
    """Start a run. One that spends a budget is confirmed first, with what it costs."""
    with desk.lock:
        price = str(body.get("price", ""))
        if kind in ("release", "buy"):
            cost = starting.cost(desk, kind, price)
            if body.get("confirmed") != asdict(cost):
                return HTMLResponse(promise_views.ask_cost(cost, kind, price))
            starting.start(desk, kind, **({"price": price} if price else {}))
        elif kind == "compare":
            starting.compare(desk)
        elif kind == "learn":
            starting.learn(desk, str(body.get("target", "")))
        elif kind == "rehearse":
            starting.start(desk, kind)
        else:
            raise OptionError("there-no-run-kind", kind=kind)
        return HTMLResponse(fragment("#ask", "") + views.strip(desk))


@router.post("/desk/{desk}/cancel")
def cancel(desk: At) -> Response:
    with desk.lock:
        desk.cancel()
        return HTMLResponse(views.strip(desk))


@router.get("/desk/{desk}/events")
async def events(desk: At, desks: All, request: Request) -> Response:
    async def stream() -> AsyncIterator[str]:
        told, finished = -1, True
        while not desks.leaving() and not await request.is_disconnected():
            running = desk.running is not None
            if desk.version != told or running:
                told = desk.version
                html = await run_in_threadpool(_news, desk, not running and not finished)
                finished = not running
                yield f"data: {json.dumps(html)}\n\n"
            await asyncio.sleep(_BEAT)

    return StreamingResponse(stream(), media_type="text/event-stream")


# 4 judge


@router.post("/desk/{desk}/judge")
def judge(desk: At, body: Payload) -> Response:
    with desk.lock:
        what = str(body.get("what", ""))
        shown = desk.judge(str(body.get("run", "")))
        if shown is None:
            return HTMLResponse(views.step(desk, "judge"))
        if what == "tab":
            part = judge_views.judge_part(
                desk, shown, str(body.get("tab", "distributions")), str(body.get("column", ""))
            )
            return HTMLResponse(fragment("#part", part))
        if what == "person":
            return HTMLResponse(fragment("#person", judge_views.person(shown, int(body.get("value") or 1))))
        if what == "dot":
            desk.dot = str(body.get("value", ""))
            return HTMLResponse(fragment("#frontier", judge_views.frontier(desk)))
        if what == "take":
            desk.take(
                json.loads(body.get("value", "{}")) if isinstance(body.get("value"), str) else body["value"]
            )
            return HTMLResponse(views.step(desk, "promise"), headers={"x-shoal-step": "promise"})
        return HTMLResponse(views.step(desk, "judge"))


# 5 publish


@router.post("/desk/{desk}/override")
def override(desk: At, body: Payload) -> Response:
    with desk.lock:
        chosen = desk.to_publish
        if chosen is None:
            raise OptionError("there-no-run-publish")
        publishing.overridden(chosen, str(body.get("reason", "")), str(body.get("name", "")))
        return HTMLResponse(views.step(desk, "publish"))


@router.get("/desk/{desk}/bundle.zip")
def bundle(desk: At) -> Response:
    chosen = desk.to_publish
    if chosen is None:
        raise OptionError("there-no-run-publish")
    if publishing.blocked(publishing.checklist(chosen)) and not chosen.override:
        raise OptionError("release-not-ready-published")
    desk.note_run(chosen, "downloaded")
    name = f'attachment; filename="{publishing.release_name(chosen)}.zip"'
    return Response(
        publishing.zipped(chosen), media_type="application/zip", headers={"content-disposition": name}
    )


@router.get("/desk/{desk}/method.toml")
def recipe(desk: At) -> Response:
    headers = {"content-disposition": 'attachment; filename="method.toml"'}
    return Response(desk.look_ahead().recipe, media_type="application/toml", headers=headers)


def _news(desk: Desk, ended: bool) -> str:
    """What a page hears about runs; once one has ended, also what its end changes."""
    with desk.lock:
        found = views.strip(desk)
        if desk.table is not None and desk.expected:
            found += promise_views.expected(desk)
        if desk.table is not None and desk.releases and any(run.kind == "compare" for run in desk.runs):
            found += fragment("#frontier", judge_views.frontier(desk))
        if ended and desk.table is not None:
            found += promise_views.promised(desk, method=True)
            last = desk.runs[-1] if desk.runs else None
            # who looks at another run meanwhile goes on looking at it
            if (
                last is not None
                and last.kind == "learn"
                and desk.shown
                and last.of == desk.run_of(desk.shown).folder
            ):
                part = judge_views.judge_part(desk, desk.run_of(desk.shown), "learning")
                found += fragment("#part", part)
        return found
