"""Free operations have a quota of CPU time, block nobody else, and reveal nothing of others' questions."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest

from shoal.query.refinement import histogram as histogram_prior
from shoal.query.server import answers
from shoal.query.server.guard import Limits, RequestProblem
from shoal.query.server.state import FreeWork

OLD = {"column": "age", "op": ">=", "value": 50}
COUNT = {"kind": "count", "epsilon": "0.1", "where": OLD}
PREVIEW = "/v1/datasets/survey/preview"


def seconds(work: Callable[[], Any]) -> float:
    """The least CPU seconds of three tries."""
    found = []
    for _ in range(3):
        began = time.thread_time()
        work()
        found.append(time.thread_time() - began)
    return min(found)


def test_a_key_that_is_there_twice_is_found_in_linear_time() -> None:
    def read(size: int) -> None:
        body = "{" + ", ".join(f'"{n}": 1' for n in range(size)) + f', "{size - 1}": 1}}'
        with pytest.raises(RequestProblem) as refused:
            answers._document(body.encode())
        assert refused.value.body()["reason"] == f"the key '{size - 1}' occurs twice."

    # four times as long a body took sixteen times as long
    assert seconds(lambda: read(16_000)) < 8 * seconds(lambda: read(4000))


def test_a_histogram_prior_is_read_in_linear_time() -> None:
    from shoal.columns.kinds import Lattice

    lattice = Lattice(Fraction(0), Fraction(60_000), Fraction(1))

    def make(bins: int) -> None:
        edges = [Fraction(60_000 * n, bins) for n in range(bins + 1)]
        histogram_prior(lattice, edges, [Fraction(n % 97 + 1, 10**6) for n in range(bins)])

    # the points of a bin share one number: it was one for each of them, of ever more digits
    assert seconds(lambda: make(10)) < 0.02
    assert seconds(lambda: make(8000)) < 8 * seconds(lambda: make(2000))


def test_free_work_stops_nobody_else(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Previews that take long keep the analyst who asked for them waiting, not another."""
    entered, leave = threading.Event(), threading.Event()
    original = answers.preview

    def slow(query: Any, facts: Any) -> Any:
        entered.set()
        assert leave.wait(300)
        return original(query, facts)

    monkeypatch.setattr(answers, "preview", slow)
    with ThreadPoolExecutor(60) as pool:
        previews = [pool.submit(server.raw, "POST", PREVIEW, json=COUNT) for _ in range(60)]
        assert entered.wait(300)
        assert server.ask(COUNT, name="ben").status_code == 200
        assert server.raw("GET", "/v1/health", None).status_code == 200
        leave.set()
        codes = {preview.result().status_code for preview in previews}
    # more than a few that wait are turned away
    assert codes == {200, 429}


def test_a_token_that_used_up_its_cpu_seconds_is_turned_away(place: Any, serve: Callable[..., Any]) -> None:
    with serve(place, Limits(pace=0, rate=0, free=1e-9, free_burst=1e-9)) as server:
        assert server.raw("POST", PREVIEW, json=COUNT).status_code == 200
        for method, path in (("POST", PREVIEW), ("GET", "/v1/datasets/survey/answers")):
            refused = server.raw(method, path, json=COUNT if method == "POST" else None)
            assert (refused.status_code, refused.json()["error"]) == (429, "too_many")
            assert int(refused.headers["retry-after"]) >= 1
        # questions that cannot be asked count as well, and others have a quota of their own
        assert server.ask({"kind": "nothing"}, name="ben").status_code == 422
        assert server.ask(COUNT, name="ben").status_code == 429
        assert server.raw("POST", PREVIEW, "hilda", json=COUNT).status_code == 200


def test_what_free_work_takes_is_counted_however_it_ends() -> None:
    def busy() -> None:
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass
        raise ValueError("refused after all")

    async def work() -> None:
        free = FreeWork(0.001, 0.01)
        with pytest.raises(ValueError, match="refused"):
            await free.run("ada", busy)
        with pytest.raises(RequestProblem) as refused:
            await free.run("ada", lambda: None)
        assert int(refused.value.headers["Retry-After"]) >= 9
        assert await free.run("ben", lambda: 7) == 7
        await asyncio.to_thread(free.close)

    asyncio.run(work())


def test_a_preview_shows_nothing_of_what_others_asked(server: Any) -> None:
    """Questions of kind protocol-1 are priced together: what another one adds tells which were asked before."""

    def asked(where: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "protocol-1", "scale": "4", "query": {"kind": "count", "where": where}}

    young, rest = (
        {"column": "age", "op": "<", "value": 30},
        {"column": "age", "op": "between", "lo": 30, "hi": 49},
    )

    def preview() -> Any:
        return server.raw("POST", PREVIEW, json=asked(young)).json()

    before = preview()
    # nobody is in all three groups, so the third count adds nothing to the two before
    for where in (OLD, rest):
        assert server.ask(asked(where), name="ben").status_code == 200
    assert preview() == before
    # nor how much they spent
    assert server.ask({"kind": "mean", "column": "income", "epsilon": "1"}, name="ben").status_code == 200
    assert preview() == before
    # one's own questions count
    for where in (OLD, rest):
        assert server.ask(asked(where)).status_code == 200
    assert (before["adds"], preview()["adds"]) == ("1/4", "0/1")


def test_a_preview_still_says_that_the_own_budget_is_used_up(server: Any) -> None:
    mean = {"kind": "mean", "column": "income", "epsilon": "1.5"}
    assert server.raw("POST", PREVIEW, json=mean).json()["allowed"]
    assert server.ask(mean).status_code == 200
    seen = server.raw("POST", PREVIEW, json=mean).json()
    assert (seen["allowed"], seen["adds"]) == (False, None)
