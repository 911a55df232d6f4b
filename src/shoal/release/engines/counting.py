"""Counts of lattice positions, column by column: positions of many batches come in, one histogram leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.release.engines.blobs import Blob, packed

Integers = NDArray[np.int64]

# Up to so many positions all of them are counted, seen or not.
_DENSE = 1 << 21
# Entries of a sparse histogram that are gathered before they are put together.
_GATHERED = 1 << 22


class Counts:
    """A histogram that grows. Private."""

    def __init__(self, points: int) -> None:
        self._dense = np.zeros(points, dtype=np.int64) if points <= _DENSE else None
        self._pieces: list[tuple[Integers, Integers]] = []
        self._waiting = 0

    def add(self, positions: Integers, counts: Integers | None = None) -> None:
        if self._dense is not None:
            if counts is None:
                found = np.bincount(positions)
                self._dense[: found.size] += found
            else:
                np.add.at(self._dense, positions, counts)
            return
        if counts is None:
            positions, counts = np.unique(positions, return_counts=True)
        self._pieces.append((positions.astype(np.int64), counts.astype(np.int64)))
        self._waiting += positions.size
        if self._waiting > _GATHERED:
            whole = together(self._pieces)
            # what is put together once is not waiting any more
            self._pieces, self._waiting = [whole], 0

    def result(self) -> tuple[Integers, Integers]:
        """Different positions in ascending order, and how often each was seen."""
        if self._dense is None:
            return together(self._pieces)
        seen = np.flatnonzero(self._dense)
        return seen, self._dense[seen]


def together(pieces: Sequence[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    """Several histograms as one.

    >>> [part.tolist() for part in together([(np.array([1, 4]), np.array([2, 1])), (np.array([4]), np.array([5]))])]
    [[1, 4], [2, 6]]
    """
    if not pieces:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    positions = np.concatenate([positions for positions, _ in pieces])
    counts = np.concatenate([counts for _, counts in pieces])
    order = np.argsort(positions, kind="stable")
    positions, counts = positions[order], counts[order]
    if not positions.size:
        return positions, counts
    starts = np.flatnonzero(np.concatenate(([True], positions[1:] != positions[:-1])))
    return positions[starts], np.add.reduceat(counts, starts)


def spread(part: int, positions: Integers, counts: Integers, shards: int) -> Iterator[Blob]:
    """A histogram as blobs, one for each shard that has any of it; differences of positions are small numbers."""
    for shard in range(shards):
        mine = slice(None) if shards == 1 else positions % shards == shard
        found = positions[mine]
        if found.size:
            yield shard, part, packed(np.diff(found, prepend=0), counts[mine], squeeze=True)


def gathered(arrays: Sequence[NDArray[np.int64]]) -> tuple[Integers, Integers]:
    """A histogram of `spread`."""
    steps, counts = arrays
    return np.cumsum(steps.astype(np.int64)), counts.astype(np.int64)
