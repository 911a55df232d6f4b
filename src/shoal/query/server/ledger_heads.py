"""Heads kept outside the ledger: an old backup of it, or an empty one, is found out at the next start.

In: a ledger. Out: a small text file with the newest head of every data set, best kept on another disk.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from shoal.errors import OutputError, ShoalError
from shoal.ledger import Ledger, verify
from shoal.ledger.files import digest_of
from shoal.query.server.guard import warn

_SECONDS = 1.0
_CLOSED = "closed"


class HeadFile:
    """A file with one line per data set: the hash of an entry, then the name.

    After a regular end a last line has the hash of the whole ledger file, by which `shoal ledger verify` finds damage
    between the entries.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._noted = ""

    def heads(self) -> list[str]:
        """The heads that were noted; none if there is no file."""
        return [line.split()[0] for line in self._lines() if not line.startswith(_CLOSED)]

    def digest(self) -> str | None:
        """The hash of the ledger file when it was closed, if it was."""
        return next((line.split()[-1] for line in self._lines() if line.startswith(_CLOSED)), None)

    def _lines(self) -> list[str]:
        if not self._path.exists():
            return []
        text = self._path.read_text("utf-8", errors="replace")
        return [line for line in text.splitlines() if line.strip()]

    def note(self, ledger: Ledger) -> None:
        """Write the newest heads; the old file is replaced as a whole."""
        text = "".join(f"{ledger.standing(name).head} {name}\n" for name in ledger.datasets())
        if text != self._noted:
            self._write(text)

    def note_closed(self, ledger_file: Path) -> None:
        """Add the hash of a ledger file that nobody has open any more."""
        digest = digest_of(ledger_file)
        if digest is not None and (heads := [line for line in self._lines() if not line.startswith(_CLOSED)]):
            self._write("".join(f"{line}\n" for line in (*heads, f"{_CLOSED} {digest}")))

    def _write(self, text: str) -> None:
        try:
            # a name of its own, as several servers may note the heads of one ledger; mkstemp lets nobody else read it,
            # which heads need: they tell when something was asked
            handle, name = tempfile.mkstemp(
                prefix=f"{self._path.name}.", suffix=".new", dir=self._path.parent
            )
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(name, self._path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
            self._noted = text
        except OSError as error:
            raise OutputError(f"the heads cannot be noted in '{self._path}': {error.strerror}.") from None


def check_heads(files: Sequence[HeadFile], ledger: Ledger) -> None:
    """Every head that was noted must still be in the ledger, and the ledger whole.

    Raises:
        LedgerError: one is not, so entries were lost.
    """
    if heads := [head for file in files for head in file.heads()]:
        verify(ledger, heads)


async def keep_heads(files: Sequence[HeadFile], ledger: Ledger) -> None:
    """Note the heads again and again, while the server runs."""
    while True:
        await asyncio.sleep(_SECONDS)
        for file in files:
            try:
                await asyncio.to_thread(file.note, ledger)
            except Exception as error:
                # the next try may go better; a ledger that cannot be used is refused where it is used
                kind = error if isinstance(error, ShoalError) else type(error)
                warn("heads not noted", failure=getattr(kind, "__name__", type(error).__name__))
