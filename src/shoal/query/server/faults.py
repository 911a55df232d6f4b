"""Faults of timing, kept in a file of the served folder: answers that did not leave at the time given to them."""

from __future__ import annotations

import datetime
import json
import os
import time
from pathlib import Path

from shoal.query.server.guard import warn

_ALARM_SECONDS = 1.0


class FaultFile:
    """One line of JSON for each fault. While there is one, no claim about timing is made, after a new start either.

    Each fault tells whoever asked a little about how long an answer took, so it is for the holder to judge: find the
    cause, and remove the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self.count = len(lines)
        self.last: str | None = json.loads(lines[-1])["at"] if lines else None
        self._alarmed = -_ALARM_SECONDS

    def note(self, paces: int) -> None:
        """Keep that an answer waited for so many paces more."""
        self.count += 1
        self.last = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        if time.monotonic() - self._alarmed >= _ALARM_SECONDS:
            self._alarmed = time.monotonic()
            warn("late", faults=self.count, paces=paces)
        line = json.dumps({"at": self.last, "paces": paces}) + "\n"
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(handle, "a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            # counted all the same; the next start does not know of it
            warn("fault not kept", failure=type(error).__name__)

    def claim(self, pace: float) -> str:
        """Whether the times of answers follow from public facts alone: "holds", "lapsed", or "none" without a pace."""
        if not pace:
            return "none"
        return "lapsed" if self.count else "holds"
