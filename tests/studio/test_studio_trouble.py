"""Errors in the studio, in a real browser: each with its exact message, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from shoal.ledger import open_ledger
from shoal.studio import runs
from shoal.studio.runs import StudioRun
from tools.served_studio import Studio

from .studio_walker import PATIENCE, Walk, people, settle

pytestmark = [pytest.mark.system, pytest.mark.slow]

CANCELLED = "Cancelled. Nothing was written."
STAYS = "The privacy budget charged to the ledger stays charged."
STAGES = (
    "reading the table",
    "preparing the release",
    "protecting",
    "grouping records",
    "shuffling rows",
    "measuring what was lost",
    "linking records",
    "writing the tables",
    "writing the statement and the report",
    "measuring what changed",
)


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def problems(walk: Walk) -> list[str]:
    """What stands in the way of a guarantee, as the page says it."""
    return [line.inner_text() for line in walk.page.locator(".problems li p").all()]


def test_files_that_are_none_are_refused_and_the_drop_zone_stays(walk: Walk, tmp_path: Path) -> None:
    alert = walk.page.locator("#drop [role=alert]")
    walk.choose(written(tmp_path, "bad.csv", "a,b\n1,2\n3\n"))
    assert alert.inner_text() == (
        "'bad.csv': row 2 has 1 field, but the header has 2: correct it, quote a field that contains ',', or "
        "choose another separator=."
    )
    walk.page.locator("#file").set_input_files(written(tmp_path, "large.csv", "a,b\n" + "1,2\n" * 1_500_000))
    alert.filter(has_text="large.csv").wait_for()
    assert alert.inner_text() == (
        "'large.csv' has 6.0 MB, and Studio copies at most 5.0 MB: start with 'shoal studio FILE' to "
        "read the file in place."
    )
    walk.choose(written(tmp_path, "good.csv", "a,b\n1,2\n"))
    walk.page.get_by_role("heading", name="good.csv").wait_for()
    walk.clean()


def test_what_a_promise_misses_is_said_with_the_way_out(walk: Walk, tmp_path: Path) -> None:
    page = walk.page
    walk.choose(written(tmp_path, "odd.csv", "pay,n\n" + "12,1\n" * 20 + "much,2\n"))
    walk.go("columns")
    with page.expect_response("**/column/**"):
        page.locator("#kind-0").select_option("numeric")
    page.locator("#lo-0").fill("100")
    walk.type("#hi-0", "0")
    page.locator("#status-0", has_text="low above high").wait_for()
    assert page.locator("#inspector-problem").inner_text() == (
        "Column 'pay': a domain needs lo < hi, got 100:0."
    )
    page.locator("#lo-0").fill("0")
    walk.type("#hi-0", "100")
    page.locator("#lo-1").fill("0")
    walk.type("#hi-1", "1")
    walk.go("guarantee")
    text = (
        "Column 'pay' should hold numbers, but row 21 holds 'much': correct it, declare it missing with "
        'na="much", or leave the column out.'
    )
    outside = "Some values of column 'n' lie outside 0:1: widen the domain, or clip with outside=\"clip\"."
    assert problems(walk) == [text, outside]
    with page.expect_response("**/step/columns"):
        page.get_by_role("button", name="Go to pay").click()
    page.locator("#inspector-title", has_text="pay").wait_for()
    walk.go("guarantee")
    with page.expect_response("**/guarantee"):
        page.get_by_role("button", name="Leave the column out").click()
    page.get_by_text(text).wait_for(state="detached")
    assert problems(walk) == [outside]
    with page.expect_response("**/guarantee"):
        page.get_by_role("button", name="Clip values to the range").click()
    page.get_by_text(outside).wait_for(state="detached")
    assert problems(walk) == []
    walk.go("columns")
    with page.expect_response("**/column/**"):
        page.locator("#role-1").select_option("quasi-identifier")
    walk.go("guarantee")
    walk.card("k-anonymity")
    walk.type("#value-k", "40")
    page.get_by_role("button", name="Use a smaller k").wait_for()
    assert problems(walk) == ["k = 40 is larger than the number of records, 21: choose k between 1 and 21."]
    assert page.locator("#protect").is_disabled()
    with page.expect_response("**/guarantee"):
        page.get_by_role("button", name="Use a smaller k").click()
    page.locator("#protect:enabled").wait_for()
    walk.clean()


def test_a_killed_worker_is_said_and_leaves_nothing(walk: Walk) -> None:
    walk.survey()
    walk.go("guarantee")
    walk.card("dp")
    walk.protect()
    walk.page.locator("#cancel").wait_for()
    run = walk.session.running
    os.killpg(run._process.pid, signal.SIGKILL)
    walk.page.locator(".strip.bad").wait_for()
    assert walk.page.locator(".strip.bad .stage").inner_text() == (
        "The process of this run ended unexpectedly, perhaps because memory ran out. Nothing was written."
    )
    assert not run.folder.exists()
    # the page stays usable
    walk.page.locator("#protect:enabled").wait_for()
    walk.clean()


class Held:
    """A run whose process is stopped in a stage, so that a cancel cannot come too late for it."""

    def __init__(self, stage: str, note: Callable[[StudioRun, Mapping[str, Any]], bool]) -> None:
        self.stage, self._note = stage, note
        self.reached = threading.Event()

    def __call__(self, run: StudioRun, message: Mapping[str, Any]) -> bool:
        if self.reached.is_set() and run.kind == "release":
            # what it still said before it was stopped
            return False
        ended = self._note(run, message)
        if run.kind == "release" and run.what == self.stage and run._process is not None:
            os.killpg(run._process.pid, signal.SIGSTOP)
            self.reached.set()
        return ended


def cancelled_in(walk: Walk, stage: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Start a run, cancel it in a stage, and give back what the page says."""
    page = walk.page
    held = Held(stage, runs._note)
    with monkeypatch.context() as patched:
        patched.setattr(runs, "_note", held)
        walk.protect()
        assert held.reached.wait(PATIENCE / 1000), f"the stage '{stage}' never came"
        run = walk.session.running
        page.locator("#strip .stage", has_text=stage).wait_for()
        page.locator("#cancel").click()
        page.locator("#strip .stage", has_text=CANCELLED).wait_for()
    assert (run.state, run.what) == ("cancelled", stage)
    assert not run.folder.exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(run._process.pid, 0)
    assert walk.session.runs == []
    found: str = page.locator("#strip .stage").inner_text()
    return found


def test_cancel_in_each_stage_leaves_no_process_and_no_folder(
    walk: Walk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk.choose(people(tmp_path))
    settle(walk)
    walk.go("guarantee")
    walk.card("given-partition")
    walk.type("#value-k", "20")
    for stage in STAGES:
        assert cancelled_in(walk, stage, monkeypatch) == CANCELLED
    assert [path.name for path in walk.session.folder.iterdir() if path.is_dir()] == []
    walk.clean()


def test_cancel_says_that_a_charge_stays(walk: Walk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = tmp_path / "ledger.sqlite"
    walk.choose(people(tmp_path))
    settle(walk)
    walk.go("guarantee")
    walk.card("dp")
    walk.page.locator("#advanced summary").click()
    walk.type("#ledger", str(ledger))
    assert cancelled_in(walk, "preparing the release", monkeypatch) == CANCELLED
    assert not ledger.exists()
    assert cancelled_in(walk, "protecting", monkeypatch) == f"{CANCELLED} {STAYS}"
    with contextlib.closing(open_ledger(str(ledger), create=False)) as opened:
        assert opened.standing("people").spent == 1
    walk.clean()


def test_strangers_are_refused_by_the_real_server(studio: Studio) -> None:
    cookies = {studio.access.cookie_name: studio.access.cookie}
    with httpx.Client(base_url=studio.origin, timeout=300) as client:
        assert client.get("/").status_code == 403
    with httpx.Client(base_url=studio.origin, cookies=cookies, timeout=300) as client:
        assert client.get("/").status_code == 200
        for headers in (
            {"host": "evil.example"},
            {"origin": "http://evil.example"},
            {"sec-fetch-site": "cross-site"},
        ):
            assert client.get("/", headers=headers).status_code == 403
        assert client.post("/session").status_code == 403
        for path in ("/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/....//app.py"):
            assert client.get(path).status_code == 404


def started(place: Path, *words: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from shoal.cli import main; main()",
            "studio",
            "--no-browser",
            "--port",
            "0",
            *words,
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place), "COLUMNS": "200"},
    )
    assert process.stderr is not None
    words_found = ""
    for line in process.stderr:
        words_found += line
        if "Stop with" in line:
            break
    found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", words_found)
    assert found is not None, words_found
    return process, found[0]


def test_the_command_leaves_nothing_behind(tmp_path: Path) -> None:
    original = people(tmp_path)
    place = tmp_path / "place"
    place.mkdir()
    process, address = started(place, str(original))
    with httpx.Client(follow_redirects=True, timeout=60) as client:
        for _ in range(1000):
            try:
                entered = client.get(address)
                assert entered.status_code == 200
                client.headers["x-shoal"] = re.search(r"data-key='([^']+)'", entered.text)[1]
                break
            except httpx.ConnectError:
                time.sleep(0.1)
        base = address.split("/?")[0]
        name = client.post(f"{base}/session").json()["session"]
        assert "people.csv" in client.post(f"{base}/session/{name}/step/data", json={}).text
        client.post(f"{base}/session/{name}/survey", json={})
        assert list(place.glob("shoal-studio-*/*/survey.csv"))
        # a tab that listens is no reason to stay
        with (
            contextlib.suppress(httpx.HTTPError),
            client.stream("GET", f"{base}/session/{name}/events") as events,
        ):
            assert next(events.iter_lines())
            process.send_signal(signal.SIGTERM)
            process.wait(300)
    assert not list(place.glob("shoal-studio-*"))
    process, address = started(place)
    process.kill()
    process.wait(300)
    assert len(list(place.glob("shoal-studio-*"))) == 1
    process, address = started(place)
    assert len(list(place.glob("shoal-studio-*"))) == 1
    process.send_signal(signal.SIGTERM)
    process.wait(300)
    assert not list(place.glob("shoal-studio-*"))
