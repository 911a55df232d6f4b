"""Downloads: releases and their files."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from urllib.parse import unquote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from starlette.concurrency import run_in_threadpool

from shoal.errors import OptionError, ShoalError
from shoal.io import find_format
from shoal.io.common import private_file
from shoal.io.formats import format_of
from shoal.studio import column_views, session
from shoal.studio.app_views import All, At, Payload, whole
from shoal.text import Message

files = APIRouter()


@files.post("/desk/{desk}/announce")
def announce(desk: At, desks: All, body: Payload) -> Response:
    """Asked before a file is sent: what would be refused at the end is refused now."""
    name, size = str(body.get("name", "")), int(body.get("size", 0))
    problem: Message | ShoalError | None = None
    try:
        format_of(Path(name))
    except ShoalError as error:
        problem = error
    if size > desks.limit:
        problem = column_views.too_large(name, size, desks.limit)
    if body.get("to") == "people":
        desk.another_problem = problem
        page = column_views.people(desk)
    else:
        desk.problem = problem
        page = whole(desk, desks, "data")
    return HTMLResponse(page, headers={} if problem else {"x-shoal-send": "1"})


async def received(request: Request, target: Path, name: str, limit: int) -> None:
    """A file that is sent; all of it is there, or nothing."""
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
    """The name of a file that is sent, and the ending of its copy."""
    name = Path(unquote(request.headers.get("x-name", "table.csv"))).name
    known = find_format(Path(name))
    return name, known.ending if known is not None else ".csv"


@files.put("/desk/{desk}/file")
async def upload(desk: At, desks: All, request: Request) -> Response:
    name, ending = sent_name(request)
    target, arrived = desk.folder / f"table{ending}", desk.folder / f"arriving{ending}"
    await received(request, arrived, name, desks.limit)
    desk.close()
    arrived.replace(target)
    await run_in_threadpool(desk.open, target, name)
    if desk.table is None:
        target.unlink(missing_ok=True)
    return HTMLResponse(await run_in_threadpool(whole, desk, desks, "data"))


@files.put("/desk/{desk}/people")
async def send_people(desk: At, desks: All, request: Request) -> Response:
    """Another file whose people are rehearsed on."""
    name, ending = sent_name(request)
    target = desk.folder / f"people-{secrets.token_hex(4)}{ending}"
    await received(request, target, name, desks.limit)
    await run_in_threadpool(session.choose, desk, target, name)
    # what that changes is asked for in its turn, after whatever was sent meanwhile
    return HTMLResponse("")


@files.post("/desk/{desk}/people")
def people(desk: At, body: Payload) -> Response:
    """The path of such a file, which is read where it lies, or made-up people again."""
    what, path = str(body.get("what", "")), Path(os.path.expanduser(str(body.get("path", "")).strip()))
    if what == "path":
        session.choose(desk, path, path.name)
    elif what == "made up":
        session.choose(desk)
    with desk.lock:
        return HTMLResponse(column_views.people(desk) + column_views.promised(desk))
