"""Heads kept outside the ledger: an old backup of it is found out at the next start.

In: a ledger. Out: a small text file with the newest head of every data set, best kept on another disk.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from shoal.errors import OutputError
from shoal.query.ledger import Ledger, verify

_SECONDS = 1.0


class HeadFile:
    """A file with one line per data set: the hash of an entry, then the name."""

    def __init__(self, path: Path) -> None:
        self._path = path

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
        heads = [(ledger.standing(name).head, name) for name in ledger.datasets()]
        aside = self._path.with_name(self._path.name + ".new")
        try:
            aside.write_text("".join(f"{head} {name}\n" for head, name in heads), "utf-8")
            os.replace(aside, self._path)
        except OSError as error:
            raise OutputError(f"the heads cannot be noted in '{self._path}': {error.strerror}.") from None

    async def keep(self, ledger: Ledger) -> None:
        """Note the heads again and again, while the server runs."""
        while True:
            await asyncio.to_thread(self.note, ledger)
            await asyncio.sleep(_SECONDS)
