"""Threads of the server take short turns: a question that takes long to be read makes no answer late.

Storing an answer gives the turn away dozens of times, and each time waits as long as a calculating thread may go on.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from shoal.query.server import run
from shoal.query.server.guard import Limits
from shoal.query.server.state import Config

from .conftest import Place

TURNS = 100


def test_a_hundred_turns_fit_into_half_a_pace_while_the_server_runs(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []

    class Instead:
        def __init__(self, *_: Any) -> None:
            pass

        def run(self, **_: Any) -> None:
            found.append(sys.getswitchinterval())

    monkeypatch.setattr(run, "http_server", Instead)
    monkeypatch.setattr(run, "set_up_logs", lambda requests: None)
    usual = sys.getswitchinterval()
    run.serve(Config(place.folder), [], lambda: None)
    assert len(found) == 1
    assert TURNS * found[0] < Limits().pace / 2 < TURNS * usual
    assert sys.getswitchinterval() == usual
