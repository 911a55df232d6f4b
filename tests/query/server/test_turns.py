"""Threads of the server take short turns, and none blocks the others for long, so no answer is late.

Storing an answer gives the turn away dozens of times, and each time waits as long as a calculating thread may go on. A
search for garbage among everything that was loaded stops all threads, and that takes as long as half a pace. What is
ready to be sent is sent.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from collections.abc import Callable
from typing import Any

import pytest

from shoal.query.server import run
from shoal.query.server.guard import Limits
from shoal.query.server.state import Config
from shoal.studio import app as studio

from .conftest import Place

TURNS = 100


def seen(place: Place, monkeypatch: pytest.MonkeyPatch, look: Callable[[], Any]) -> list[Any]:
    """What is found while the server runs."""
    found: list[Any] = []

    class Instead:
        def __init__(self, *_: Any) -> None:
            pass

        def run(self, **_: Any) -> None:
            found.append(look())

    monkeypatch.setattr(run, "http_server", Instead)
    monkeypatch.setattr(run, "set_up_logs", lambda requests: None)
    run.serve(Config(place.folder), [], lambda: None)
    assert len(found) == 1
    return found


def test_what_was_loaded_is_not_searched_for_garbage_while_the_server_runs(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, before = len(gc.get_objects()), gc.get_freeze_count()
    ((searched, spared),) = seen(
        place, monkeypatch, lambda: (len(gc.get_objects()), gc.get_freeze_count() - before)
    )
    assert searched < loaded / 10
    assert spared > loaded / 2
    assert gc.get_freeze_count() == 0
    assert len(gc.get_objects()) > loaded / 2


def test_a_hundred_turns_fit_into_half_a_pace_while_the_server_runs(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = sys.getswitchinterval()
    found = seen(place, monkeypatch, sys.getswitchinterval)
    assert TURNS * found[0] < Limits().pace / 2 < TURNS * usual
    assert sys.getswitchinterval() == usual


@pytest.mark.parametrize(
    "bound",
    [lambda: run.bound_socket("127.0.0.1", 0), lambda: studio.bound_socket(0)],
    ids=["server", "studio"],
)
def test_an_answer_does_not_wait_until_the_packet_before_it_was_acknowledged(
    bound: Callable[[], socket.socket],
) -> None:
    at_once: list[bool] = []

    class Taken(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            taken = transport.get_extra_info("socket")
            at_once.append(bool(taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
            transport.close()

    async def connect() -> None:
        listening = bound()
        server = await asyncio.get_running_loop().create_server(Taken, sock=listening)
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        assert await reader.read() == b""
        writer.close()
        server.close()

    asyncio.run(connect())
    assert at_once == [True]
