"""Work taken in turns. In: pieces of work with the names of those who asked. Out: one piece at a time for each of them.

Nobody waits for the rest of another's queue, and no two pieces of one analyst are worked on at once.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

Piece = TypeVar("Piece")


class WorkQueue(Generic[Piece]):
    """Queues that are emptied in turns, by any number of threads.

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
        self._queues: dict[str, deque[Piece]] = {}
        self._ready: deque[str] = deque()
        self._busy: set[str] = set()
        self._closed = False
        self._changed = threading.Condition()

    def put(self, name: str, piece: Piece) -> None:
        """Add a piece to the end of a queue."""
        with self._changed:
            queue = self._queues.setdefault(name, deque())
            queue.append(piece)
            if len(queue) == 1 and name not in self._busy:
                self._ready.append(name)
                self._changed.notify()

    def take(self) -> tuple[str, Piece] | None:
        """The next piece, when there is one; `done` must follow. None when all is done after `close`."""
        with self._changed:
            while not self._ready:
                if self._closed and not self._queues:
                    return None
                self._changed.wait()
            name = self._ready.popleft()
            self._busy.add(name)
            queue = self._queues[name]
            piece = queue.popleft()
            if not queue:
                del self._queues[name]
            return name, piece

    def done(self, name: str) -> None:
        """Let the next piece of this queue have its turn."""
        with self._changed:
            self._busy.discard(name)
            if name in self._queues:
                self._ready.append(name)
                self._changed.notify()
            elif self._closed:
                self._changed.notify_all()

    def close(self) -> None:
        """Nothing more will come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
