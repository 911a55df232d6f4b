"""Heads kept outside the ledger: an old backup of it is found out at the next start.

In: a ledger. Out: a small text file with the newest head of every data set, best kept on another disk.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from shoal.errors import OutputError, ShoalError
from shoal.query.ledger import Ledger, verify
from shoal.query.server.guard import write_log

_SECONDS = 1.0


class HeadFile:
    """A file with one line per data set: the hash of an entry, then the name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._noted = ""

    def check(self, ledger: Ledger) -> None:
        """Every head that was noted must still be in the ledger.

        Raises:
            LedgerError: one is not, so entries were lost.
        """
        if self._path.exists():
            lines = self._path.read_text("utf-8").splitlines()
            verify(ledger, [line.split()[0] for line in lines if line.strip()])

    def note(self, ledger: Ledger) -> None:
        """Write the newest heads; the old file is replaced as a whole."""
        text = "".join(f"{ledger.standing(name).head} {name}\n" for name in ledger.datasets())
        if text == self._noted:
            return
        aside = self._path.with_name(self._path.name + ".new")
        try:
            aside.write_text(text, "utf-8")
            os.replace(aside, self._path)
            self._noted = text
        except OSError as error:
            raise OutputError(f"the heads cannot be noted in '{self._path}': {error.strerror}.") from None

    async def keep(self, ledger: Ledger) -> None:
        """Note the heads again and again, while the server runs."""
        while True:
            try:
                await asyncio.to_thread(self.note, ledger)
            except ShoalError as error:
                write_log("heads not noted", failure=type(error).__name__)
            await asyncio.sleep(_SECONDS)
