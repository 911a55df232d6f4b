"""Whether the server can answer: a ledger comes in, a yes or no that is at most a second old leaves."""

from __future__ import annotations

import asyncio
import time

from shoal.ledger import Ledger
from shoal.query.server.guard import warn

_OLDEST_SECONDS = 1.0
_PATIENCE_SECONDS = 3.0


class Health:
    """Asks the database, but not for everybody who asks: whoever has no token may ask for health, too."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._looked = float("-inf")
        self._alive = False
        self._looking: asyncio.Task[None] | None = None

    async def alive(self) -> bool:
        """Whether the ledger can be read."""
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
            self._alive = True
        except Exception as error:
            # whatever it is, questions would meet it too
            self._alive = False
            warn("ledger cannot be used", failure=type(error).__name__)
        self._looked = time.monotonic()
