"""Work that threads take in order: the earliest piece first, and one piece at a time for each name.

Pieces without an order of their own are taken in turns, so that nobody waits for the rest of another's queue.
"""

from __future__ import annotations

import threading
from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

Piece = TypeVar("Piece")


class WorkQueue(Generic[Piece]):
    """Queues that are emptied by any number of threads.

    >>> queue = WorkQueue[int]()
    >>> for name, piece in (("ada", 1), ("ada", 2), ("ben", 3)):
    ...     queue.put(name, piece)
    >>> first, second = queue.take(), queue.take()
    >>> first, second
    (('ada', 1), ('ben', 3))
    >>> queue.done("ada"); queue.close()
    >>> queue.take()
    ('ada', 2)
    """

    def __init__(self) -> None:
        self._queues: dict[str, deque[tuple[float, Piece]]] = {}
        # the names whose first piece can be taken, by its order and then by the turn
        self._ready: list[tuple[float, int, str]] = []
        self._turns = count()
        self._busy: set[str] = set()
        self._closed = False
        self._changed = threading.Condition()

    def put(self, name: str, piece: Piece, order: float = 0.0) -> None:
        """Add a piece to the end of a queue."""
        with self._changed:
            queue = self._queues.setdefault(name, deque())
            queue.append((order, piece))
            if len(queue) == 1 and name not in self._busy:
                self._offer(name)

    def take(self) -> tuple[str, Piece] | None:
        """The next piece, when there is one; `done` must follow. None when all is done after `close`."""
        with self._changed:
            while not self._ready:
                if self._closed and not self._queues:
                    return None
                self._changed.wait()
            _, _, name = heappop(self._ready)
            self._busy.add(name)
            queue = self._queues[name]
            _, piece = queue.popleft()
            if not queue:
                del self._queues[name]
            return name, piece

    def done(self, name: str) -> None:
        """Let the next piece of this queue have its turn."""
        with self._changed:
            self._busy.discard(name)
            if name in self._queues:
                self._offer(name)
            elif self._closed:
                self._changed.notify_all()

    def waiting(self, name: str) -> int:
        """How many pieces of one queue were not taken yet."""
        with self._changed:
            return len(self._queues.get(name, ()))

    def close(self) -> None:
        """Nothing more will come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _offer(self, name: str) -> None:
        heappush(self._ready, (self._queues[name][0][0], next(self._turns), name))
        self._changed.notify()
