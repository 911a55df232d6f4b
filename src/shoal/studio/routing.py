"""What a request is about: its desk, among all of them, and what it tells."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Body, Depends, Request

from shoal.studio import views
from shoal.studio.desk import Desk
from shoal.studio.desks import Desks

Payload = Annotated[dict[str, Any], Body(default_factory=dict)]


def all_desks(request: Request) -> Desks:
    found: Desks = request.app.state.desks
    return found


All = Annotated[Desks, Depends(all_desks)]


def one_desk(desk: str, desks: All) -> Desk:
    return desks.find(desk)


At = Annotated[Desk, Depends(one_desk)]


def whole(desk: Desk, desks: Desks, step: str) -> str:
    """A step with everything around it; without a table there is only the first."""
    return views.step(desk, step, desks.limit)
