"""A studio client without a browser or a port: send requests, read fragments of pages."""

from __future__ import annotations

import json
import re
import warnings
from html import unescape
from pathlib import Path
from typing import Any

from shoal.studio.app import OWN_HEADER, Access, create_app
from shoal.studio.runs import StudioRun, rehearse, release
from shoal.studio.session import StudioSession, StudioSessions
from shoal.studio.starting import letter

with warnings.catch_warnings():
    # newer versions of the test client ask for another package
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

ACCESS = Access(8000)
BASE = "http://127.0.0.1:8000"


class Tab:
    """One tab of a browser, as far as the server can tell."""

    def __init__(self, sessions: StudioSessions) -> None:
        self.sessions = sessions
        self.client = TestClient(
            create_app(sessions, ACCESS), base_url=BASE, headers={OWN_HEADER: ACCESS.key}
        )
        # how a page gets here is tested with the guard; every test would pay for it
        self.client.cookies.set(ACCESS.cookie_name, ACCESS.cookie, domain="127.0.0.1")
        self.name = sessions.new().name

    @property
    def session(self) -> StudioSession:
        return self.sessions.find(self.name)

    def post(self, path: str, /, **body: Any) -> str:
        answer = self.client.post(f"/session/{self.name}/{path}", json=body)
        assert answer.status_code == 200
        return unescape(answer.text)

    def upload(self, path: Path) -> str:
        answer = self.client.put(
            f"/session/{self.name}/file", content=path.read_bytes(), headers={"x-name": path.name}
        )
        assert answer.status_code == 200
        return unescape(answer.text)

    def run(self, kind: str = "release", **body: Any) -> str:
        """Start a run, and confirm what it costs."""
        asked = self.post(f"run/{kind}", **body)
        sent = re.search(r"id=\"confirm-run\"[^>]*data-body='([^']+)'", asked)
        return asked if sent is None else self.post(f"run/{kind}", **json.loads(sent[1]))

    def column(self, name: str, what: str, value: Any = None) -> str:
        number = self.session.recipe.schema.names.index(name)
        return self.post(f"column/{number}", what=what, value=value)

    def vouch(self, source: str) -> None:
        """Say of one column after the other where it is known from."""
        for attribute in self.session.recipe.schema.attributes:
            self.column(attribute.name, "source", source)

    def guarantee(self, what: str, value: str, name: str = "") -> str:
        return self.post("guarantee", what=what, value=value, name=name)


def job_of(session: StudioSession) -> dict[str, Any]:
    """What a worker is told, as it arrives there."""
    assert session.source is not None
    return {
        "data": str(session.source.path),
        "name": session.source.name,
        "mark": session.mark,
        "request": json.loads(json.dumps(session.recipe.to_json())),
        "dataset": session.dataset,
        "quasi": [a.name for a in session.recipe.taken if a.role == "quasi-identifier"],
        "people": 300,
        "on": None if session.another is None else str(session.another.path),
    }


def finished(session: StudioSession, kind: str = "release") -> StudioRun:
    """A run that was made in this process, as the worker makes it."""
    folder = session.folder / f"run-{len(session.runs)}"
    run = StudioRun(
        letter(session), kind, session.recipe, folder, session.dataset, session.content, session.ledger
    )
    if kind == "rehearse" and session.another is not None:
        run.on, run.mark = session.another.name, session.another.mark
    run.folder.mkdir()
    job = {**job_of(session), "folder": str(run.folder)}
    (release if kind == "release" else rehearse)(job, lambda message: None)
    run.state = "done"
    session.runs.append(run)
    session.shown = ""
    return run
