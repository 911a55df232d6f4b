"""The files of a SQLite ledger: whether the open ones are still those of the path, and what they hold byte by byte."""

from __future__ import annotations

import hashlib
from pathlib import Path

from shoal.ledger.errors import LedgerError

# the database, its write-ahead log, and what its readers and writers share
_SUFFIXES = ("", "-wal", "-shm")
Identity = tuple[int, int]


class OpenFiles:
    """Remembers which files a path led to and how long they were, and finds out when it leads to others or they shrink.

    A database that is unlinked or replaced goes on for those who have it open: what they write is lost to everybody
    else. The files are compared by what the path says, since closing one of one's own would drop SQLite's locks.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Identity] = {}
        self._sizes: dict[str, int] = {}
        self.check()

    def check(self, *, writing: bool = False) -> None:
        """Compare.

        Args:
            writing: within a transaction that writes: from then on the log and what is shared are open, too. Before,
                those that are there can be of somebody who is about to leave and take them along.

        Raises:
            LedgerError: the path leads to another file, to none, or to one that lost its end.
        """
        for suffix in _SUFFIXES:
            found, size = _identity(Path(f"{self._path}{suffix}"))
            known = self._known.get(suffix)
            if known is not None and found != known:
                raise LedgerError("ledger-file-replaced-removed-while-open", path=self._path, suffix=suffix)
            # a log begins anew after a checkpoint, but its file is never made shorter while it is open
            if known is not None and size < self._sizes[suffix]:
                raise LedgerError("ledger-file-cut-off-while-open", path=self._path, suffix=suffix)
            if found is not None and (writing or not suffix or known is not None):
                self._known[suffix], self._sizes[suffix] = found, size


def _identity(path: Path) -> tuple[Identity | None, int]:
    """Which file it is, and its size."""
    try:
        status = path.stat()
    except OSError:
        return None, 0
    return (status.st_dev, status.st_ino), status.st_size


def digest_of(path: Path) -> str | None:
    """SHA-256 of a ledger file that nobody writes to; None while there is a write-ahead log beside it."""
    log = Path(f"{path}-wal")
    if not path.is_file() or (log.exists() and log.stat().st_size):
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
