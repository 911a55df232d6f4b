"""Heads kept outside the ledger: an old backup of it, or an empty one, is found out at the next start.

A small text file, best kept on another disk, has the newest head of every data set. It is written after each
transaction, before anybody hears of what was granted.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from shoal.errors import OutputError, ShoalError
from shoal.ledger import Ledger, verify
from shoal.ledger.store import digest_of
from shoal.query.server.guard import warn

_SECONDS = 1.0
_CLOSED = "closed"


class HeadFile:
    """A file with one line per data set: the hash of an entry, the name, the number of the entry.

    After a regular end a last line has the hash of the whole ledger file, by which `shoal ledger verify` finds damage
    between the entries.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # what was written last, and whether it was waited for
        self._noted = "", False

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

    def note(self, ledger: Ledger, *, durable: bool = True) -> None:
        """Write the newest heads; the old file is replaced as a whole.

        Args:
            ledger: whose.
            durable: wait for the disk. Without it what was noted outlives this process, though perhaps not the system,
                and `note` must follow.
        """
        heads = ledger.heads()
        with self._alone():
            # several processes may note the heads of one ledger: whichever comes last must not put back an older one
            for line in self._lines():
                head, name, number = (*line.split(), "0")[:3]
                if head != _CLOSED and name in heads and int(number) > heads[name][0]:
                    heads[name] = int(number), head
            text = "".join(f"{head} {name} {number}\n" for name, (number, head) in sorted(heads.items()))
            if (text, True) != self._noted and (text, durable) != self._noted:
                self._write(text, durable)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else writes here meanwhile."""
        try:
            folder = os.open(self._path.parent, os.O_RDONLY)
        except OSError as error:
            raise self._failed(error) from None
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def note_closed(self, ledger_file: Path) -> None:
        """Add the hash of a ledger file that nobody has open any more."""
        digest = digest_of(ledger_file)
        if digest is not None and (heads := [line for line in self._lines() if not line.startswith(_CLOSED)]):
            self._write("".join(f"{line}\n" for line in (*heads, f"{_CLOSED} {digest}")))

    def _write(self, text: str, durable: bool = True) -> None:
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
                    if durable:
                        os.fsync(file.fileno())
                os.replace(name, self._path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
            self._noted = text, durable
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> OutputError:
        return OutputError("heads-cannot-noted", path=self._path, reason=error.strerror)


def check_heads(files: Sequence[HeadFile], ledger: Ledger) -> None:
    """Every head that was noted must still be in the ledger, and the ledger whole.

    Raises:
        LedgerError: one is not, so entries were lost.
    """
    if heads := [head for file in files for head in file.heads()]:
        verify(ledger, heads)


async def keep_heads(files: Sequence[HeadFile], ledger: Ledger) -> None:
    """Have the noted heads written to the disk again and again, while the server runs."""
    while True:
        await asyncio.sleep(_SECONDS)
        for file in files:
            try:
                await asyncio.to_thread(file.note, ledger)
            except Exception as error:
                # the next try may go better; a ledger that cannot be used is refused where it is used
                kind = error if isinstance(error, ShoalError) else type(error)
                warn("heads not noted", failure=getattr(kind, "__name__", type(error).__name__))
