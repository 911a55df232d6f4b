"""Serve Studio on this machine, open a browser, and remove every file at the end."""

from __future__ import annotations

import signal
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from shoal.errors import InputError
from shoal.studio.app import create_app
from shoal.studio.desks import Desks
from shoal.studio.guard import Access, hand_over, own_folder

# seconds for requests that are on their way at the end
_LAST_WORDS = 2


def bound_socket(port: int) -> socket.socket:
    """A socket that only this machine can reach; port 0 takes a free one."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(("127.0.0.1", port))
        # who comes before the server is up waits for it
        opened.listen(128)
    except OSError as error:
        opened.close()
        raise InputError(
            "studio-cannot-listen-port", option="port", port=port, reason=error.strerror
        ) from None
    return opened


def server(desks: Desks, access: Access) -> uvicorn.Server:
    made = uvicorn.Server(
        uvicorn.Config(
            create_app(desks, access),
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_LAST_WORDS,
            lifespan="on",
            ws="none",
        )
    )
    desks.leaving = lambda: made.should_exit
    return made


def serve(file: Path | None, port: int, *, browser: bool, ready: Callable[[str, bool], None]) -> None:
    """Serve until somebody stops it.

    Args:
        file: opened where it lies; nothing of it is copied.
        port: on this machine only; 0 takes a free one.
        browser: open one; it gets a file that leads to the page, and no token on its command line.
        ready: called with an address that works once, and whether it follows others that were used.
    """
    opened = bound_socket(port)
    access = Access(opened.getsockname()[1], renewed=lambda address: ready(address, True))
    # before the server listens to signals, and again once it has stopped, files are removed all the same
    before = signal.signal(signal.SIGTERM, _leave)
    desks = Desks(file)
    given: Path | None = None
    try:
        given = hand_over(access, own_folder()) if browser else None
        ready(access.new_address(), False)
        if given is not None:
            threading.Timer(0.5, webbrowser.open, (given.as_uri(),)).start()
        server(desks, access).run(sockets=[opened])
    except KeyboardInterrupt:
        # the usual way to stop it
        pass
    finally:
        if given is not None:
            given.unlink(missing_ok=True)
        desks.close()
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, frame: object) -> None:
    raise SystemExit(128 + number)
