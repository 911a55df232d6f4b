"""Find the session of a request, and render what it changed.

An answer is a list of fragments, each with the place on the page that it replaces. What somebody is just typing into is
never replaced by what it caused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import Body, Depends, Request

from shoal.studio import column_views, judge_views
from shoal.studio.preview import fragment, render
from shoal.studio.session import Desk, Desks
from shoal.text import Message

STEPS: Mapping[str, str] = {
    "data": "Data",
    "columns": "Columns",
    "promise": "Promise",
    "judge": "Judge",
    "publish": "Publish",
}
Payload = Annotated[dict[str, Any], Body(default_factory=dict)]


def page() -> str:
    return render("page.html", steps=STEPS)


def step_fragments(desk: Desk, name: str, limit: int = 0) -> str:
    """A whole step, with everything around it."""
    main = column_views.data(desk, limit) if name == "data" else _STEPS[name](desk)
    return fragment("#main", main) + around(desk, name)


def around(desk: Desk, name: str) -> str:
    """The list of steps, the foot and the strip."""
    places = list(STEPS)
    reached = places.index(name) if name in places else 0
    after = places[reached + 1] if reached + 1 < len(places) else ""
    steps = render("steps.html", steps=STEPS, now=name, reached=reached, ready=desk.table is not None)
    left = column_views.unsettled(desk)
    foot = render("foot.html", step=name, after=after, names=STEPS, desk=desk, left=left)
    return fragment("#steps", steps) + fragment("#foot", foot) + strip(desk)


def strip(desk: Desk) -> str:
    """Where the work of a run stands."""
    run = desk.running
    ended = desk.runs[-1] if desk.runs and run is None else None
    return fragment("#strip", render("strip.html", desk=desk, run=run, ended=ended))


def problem(said: Message | Exception) -> str:
    return fragment("#toast", render("toast.html", text=said))


_STEPS: Mapping[str, Callable[[Desk], str]] = {
    "columns": column_views.columns,
    "promise": column_views.promise,
    "judge": judge_views.judge,
    "publish": judge_views.publish,
}


def all_desks(request: Request) -> Desks:
    found: Desks = request.app.state.desks
    return found


All = Annotated[Desks, Depends(all_desks)]


def one_desk(desk: str, desks: All) -> Desk:
    return desks.find(desk)


At = Annotated[Desk, Depends(one_desk)]


def whole(desk: Desk, desks: Desks, step: str) -> str:
    """A step with everything around it; without a table there is only the first."""
    return step_fragments(desk, step, desks.limit)
