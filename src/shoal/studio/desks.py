"""All tabs of one Studio: their sessions and the folder that holds their files.

The folder goes when the studio ends. One that was killed leaves its folder behind; the next start sweeps it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from shoal.errors import OptionError
from shoal.studio.desk import Desk

_PREFIX = "shoal-studio-"
_LOCK = ".lock"
_NAME = re.compile(r"[A-Za-z0-9_-]{8,64}")
LIMIT = 2 * 10**9


class Desks:
    """The desks of a running studio.

    Attributes:
        file: the file that was named on the command line: every new desk begins with it, where it lies.
        limit: the most bytes of a file that is copied.
        leaving: whether the studio is about to end; streams of events never end by themselves.
    """

    leaving: Callable[[], bool]

    def __init__(self, file: Path | None = None, limit: int = LIMIT, place: Path | None = None) -> None:
        self.file, self.limit = file, limit
        self.leaving = lambda: False
        parent = Path(tempfile.gettempdir()) if place is None else place
        sweep(parent)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        # held as long as the process lives, however it ends
        self._held = os.open(self.folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._held, fcntl.LOCK_EX)
        self._desks: dict[str, Desk] = {}
        self._lock = threading.Lock()

    def new(self) -> Desk:
        name = secrets.token_urlsafe(12)
        folder = self.folder / name
        folder.mkdir(mode=0o700)
        desk = Desk(name, folder)
        with self._lock:
            self._desks[name] = desk
        if self.file is not None:
            desk.open(self.file, self.file.name)
        return desk

    def find(self, name: str) -> Desk:
        """A desk by its name.

        Raises:
            OptionError: there is none: the studio was started anew.
        """
        found = self._desks.get(name) if _NAME.fullmatch(name) else None
        if found is None:
            raise OptionError("gone")
        return found

    def close(self) -> None:
        """End all runs and remove all files."""
        with self._lock:
            for desk in self._desks.values():
                desk.remove()
            self._desks = {}
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._held)


def sweep(parent: Path) -> list[Path]:
    """Remove the folders of studios that were killed; those of living ones are locked."""
    gone = []
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            held = os.open(folder / _LOCK, os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            shutil.rmtree(folder, ignore_errors=True)
            gone.append(folder)
        finally:
            os.close(held)
    return gone
