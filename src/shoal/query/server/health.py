"""Whether the server can answer: whether its ledger can be read and written, as of at most a second ago."""

from __future__ import annotations

import asyncio
import time

from shoal.ledger import GroupCommit, Ledger
from shoal.query.server.guard import warn

_OLDEST_SECONDS = 1.0
_PATIENCE_SECONDS = 3.0
# how long one failed transaction is held against the database; the next question finds out whether it still fails
_FAILED_SECONDS = 10.0


class Health:
    """Asks the database, but not for everybody who asks: whoever has no token may ask for health, too."""

    def __init__(self, ledger: Ledger, group: GroupCommit | None = None) -> None:
        self._ledger, self._group = ledger, group
        self._looked = float("-inf")
        self._alive = False
        self._looking: asyncio.Task[None] | None = None

    async def alive(self) -> bool:
        """Whether the ledger can be read, has room on its disk, and was written to without an error of late."""
        if time.monotonic() - self._looked >= _OLDEST_SECONDS:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            try:
                await asyncio.wait_for(asyncio.shield(self._looking), _PATIENCE_SECONDS)
            except TimeoutError:
                return False
        return self._alive

    async def _look(self) -> None:
        try:
            await asyncio.to_thread(self._ledger.alive)
            self._alive = self._group is None or self._group.failed < time.monotonic() - _FAILED_SECONDS
        except Exception as error:
            # whatever it is, questions would meet it too
            self._alive = False
            warn("ledger cannot be used", failure=type(error).__name__)
        self._looked = time.monotonic()
