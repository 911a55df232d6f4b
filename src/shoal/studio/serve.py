"""Serve the studio: a file or none comes in, a browser is opened, and nothing is left behind at the end."""

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
from shoal.studio.guard import Access

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
            f"the studio cannot listen on port {port}: {error.strerror}; name another one (port=), or 0 for any.",
            option="port",
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


def serve(file: Path | None, port: int, *, browser: bool, ready: Callable[[str], None]) -> None:
    """Serve until somebody stops it.

    Args:
        file: opened where it lies; nothing of it is copied.
        port: on this machine only; 0 takes a free one.
        browser: open one.
        ready: called with the address, which holds the key.
    """
    opened = bound_socket(port)
    access = Access(opened.getsockname()[1])
    # before the server listens to signals, and again once it has stopped, files are removed all the same
    before = signal.signal(signal.SIGTERM, _leave)
    desks = Desks(file)
    try:
        ready(access.address)
        if browser:
            threading.Timer(0.5, webbrowser.open, (access.address,)).start()
        server(desks, access).run(sockets=[opened])
    except KeyboardInterrupt:
        # the usual way to stop it
        pass
    finally:
        desks.close()
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, frame: object) -> None:
    raise SystemExit(128 + number)
