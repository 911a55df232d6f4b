"""A server for tests: a folder with a small survey and tokens, served over real HTTP from a thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

from shoal.ledger import Ledger, open_ledger
from shoal.query.client import Client
from shoal.query.server.app import create_app
from shoal.query.server.folder import LEDGER_FILE, TOKENS_FILE, DatasetSettings, write_dataset
from shoal.query.server.guard import Limits
from shoal.query.server.run import bound_socket, http_server
from shoal.query.server.state import Config, new_token
from shoal.survey import survey, survey_schema
from tests.support.postgres_fixture import postgres  # noqa: F401

# a machine with other work may take its time over an answer; tests of being late set their own patience
PROMPT = Limits(pace=0, rate=0, patience=240)
MEAN = {"kind": "mean", "column": "income", "epsilon": "0.5"}


@dataclass
class Place:
    """A served folder and the tokens of its people."""

    folder: Path
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def ledger(self) -> Ledger:
        return open_ledger(self.folder / LEDGER_FILE)

    def spent(self, dataset: str = "survey") -> Fraction:
        ledger = self.ledger
        try:
            return ledger.standing(dataset).spent
        finally:
            ledger.close()


def make_place(folder: Path, *, seed: int = 2017, **settings: Any) -> Place:
    """The survey of 300 people as a data set with ceiling 2, an analyst ada, an analyst ben and a holder."""
    terms = DatasetSettings(**{"ceiling": Fraction(2), "description": "A small survey.", **settings})
    write_dataset(folder / "survey", terms, survey_schema(), survey(300, seed))
    place = Place(folder)
    for name, role in (("ada", "analyst"), ("ben", "analyst"), ("hilda", "holder")):
        place.tokens[name] = new_token(folder / TOKENS_FILE, name, role)
    return place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path / "served")


@dataclass
class Running:
    """A server that runs."""

    place: Place
    url: str
    http: httpx.Client

    def client(self, name: str = "ada", **options: Any) -> Client:
        return Client(self.url, self.place.tokens[name], **options)

    def raw(self, method: str, path: str, name: str | None = "ada", **more: Any) -> httpx.Response:
        """A request without the client library."""
        headers = dict(more.pop("headers", {}))
        if name is not None:
            headers["Authorization"] = f"Bearer {self.place.tokens[name]}"
        return self.http.request(method, self.url + path, headers=headers, **more)

    def ask(self, question: Any = MEAN, name: str | None = "ada", key: str | None = None) -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.raw("POST", "/v1/datasets/survey/answers", name, json=question, headers=headers)


@contextlib.contextmanager
def running(place: Place, limits: Limits = PROMPT, **config: Any) -> Iterator[Running]:
    """Serve a place until the end of the block."""
    socket = bound_socket("127.0.0.1", 0)
    app = config.pop("app", None) or create_app(Config(place.folder, limits=limits, **config))
    server = http_server(app, limits)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        with httpx.Client(verify=False, timeout=300) as http:
            yield Running(place, f"http://127.0.0.1:{socket.getsockname()[1]}", http)
    finally:
        server.should_exit = True
        thread.join()
        socket.close()


@pytest.fixture
def server(place: Place) -> Iterator[Running]:
    with running(place) as served:
        yield served


@pytest.fixture
def serve() -> Callable[..., contextlib.AbstractContextManager[Running]]:
    """`running`, for tests that set the server up by themselves."""
    return running


@pytest.fixture
def build() -> Callable[..., Place]:
    """`make_place`, for tests that need other terms or records."""
    return make_place
