"""The operations that are free: public facts, own answers, budgets."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response

from shoal._version import __version__
from shoal.ledger.entry import decimals, fraction_text
from shoal.query.server import description as shape
from shoal.query.server.paid_answers import FAILED
from shoal.query.server.problems import Problem
from shoal.query.server.state import Asker, Name, served_to, state_of
from shoal.query.spec import KINDS


def add_general(app: FastAPI) -> None:
    """Declare the operations about the server and its data sets."""

    @app.get(
        "/v1/health",
        responses={200: {"model": shape.Health}, **shape.only("closed")},
        response_class=JSONResponse,
    )
    async def health(request: Request) -> Response:
        """Whether the server runs, and its ledger can be used."""
        if not await state_of(request).health.alive():
            raise Problem("closed")
        return JSONResponse({"status": "ok", "version": __version__})

    @app.get("/v1/status", responses={200: {"model": shape.Status}, **shape.refusals()})
    async def status(request: Request, token: Asker) -> Response:
        """For holders: how many answers left in time, how many did not, and whether the claim about timing holds."""
        if token.role != "holder":
            raise Problem("not_allowed")
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
        """The data sets that this token opens."""
        return JSONResponse({"datasets": [name for name in state_of(request).datasets if token.opens(name)]})

    @app.get("/v1/datasets/{name}", responses={200: {"model": shape.Dataset}, **shape.refusals("not_found")})
    async def describe(request: Request, name: Name, token: Asker) -> Response:
        """Public facts about a data set: columns, domains, the relation of neighbours."""
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
    """Declare the operations about what was asked and spent."""

    @app.get(
        "/v1/datasets/{name}/answers",
        responses={200: {"model": shape.OwnAnswers}, **shape.refusals("not_found")},
    )
    async def answers(
        request: Request,
        name: Name,
        token: Asker,
        after: Annotated[int, Query(ge=0, le=2**31 - 1, description="Only questions after this number.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """The questions asked under this name, with their answers, oldest first; fewer at once where they are long."""
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
        """What is spent and what is left, of the data set and under this name."""
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
        """For holders: what everybody spent, and the newest head of the ledger."""
        served_to(request, token, name)
        if token.role != "holder":
            raise Problem("not_allowed")
        state = state_of(request)
        return await state.free.run(token.id, lambda: JSONResponse(state.ledger.standing(name).to_dict()))
