"""A studio served by this process, for the tests, the benchmark and the screenshots."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.studio.app import Access, bound_socket, server
from shoal.studio.session import LIMIT, StudioSessions

CHROMIUM = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


@dataclass(frozen=True, slots=True)
class Studio:
    """A running studio."""

    access: Access
    sessions: StudioSessions

    @property
    def address(self) -> str:
        """One that opens the page once."""
        return self.access.new_address()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.access.port}"


@contextmanager
def served(file: Path | None = None, limit: int = LIMIT, place: Path | None = None) -> Iterator[Studio]:
    """Serve a studio on a free port until the block is left."""
    opened = bound_socket(0)
    access = Access(opened.getsockname()[1])
    sessions = StudioSessions(file, limit, place)
    running = server(sessions, access)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    try:
        yield Studio(access, sessions)
    finally:
        running.should_exit = True
        thread.join(30)
        sessions.close()


@contextmanager
def chromium(path: str) -> Iterator[Any]:
    """A headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM))
        yield opened
        opened.close()
