"""Counts that stay small: keys of many batches come in, how often each occurs leaves, or that there are too many."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.release.engines.blobs import Blob, batch_of, blobs_in, by_bucket, packed, unpacked
from shoal.release.engines.counting import together

if TYPE_CHECKING:
    import pyarrow as pa

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Counted = tuple[Integers, Integers]

# what a blob is about; counts have their own number, from 0, labels theirs from LABELS, too many of them from OVER down
FACTS, SUMS, OVER = -1, -2, -10
LABELS = 1 << 24
# different texts of a column
MOST_LABELS = 100_000
# up to so many keys all of them are counted, seen or not
_DENSE = 1 << 16
_WAITING = 1 << 19


class Tally:
    """How often keys occur, as long as there are not too many different ones. Private."""

    def __init__(self, most: int, points: int | None = None) -> None:
        self._most = most
        self._dense = (
            np.zeros(points, dtype=np.int64) if points is not None and points <= min(_DENSE, most) else None
        )
        self._pieces: list[Counted] | None = []
        self._waiting = 0

    def add(self, keys: Integers) -> None:
        if self._dense is not None:
            found = np.bincount(keys)
            self._dense[: found.size] += found
        elif self._pieces is not None:
            some, counts = np.unique(keys, return_counts=True)
            self._pieces.append((some, counts.astype(np.int64)))
            self._waiting += some.size
            if self._waiting > _WAITING:
                self._put_together()

    def _put_together(self) -> None:
        assert self._pieces is not None
        whole = together(self._pieces)
        self._pieces, self._waiting = ([whole] if whole[0].size <= self._most else None), 0

    def result(self) -> Counted | None:
        """The different keys in ascending order and their counts; None where there are too many."""
        if self._dense is not None:
            seen = np.flatnonzero(self._dense)
            return seen, self._dense[seen]
        if self._pieces is not None:
            self._put_together()
        return None if self._pieces is None else self._pieces[0]

    def blobs(self, number: int, shards: int) -> Iterator[Blob]:
        """On the way to where counts of all tasks are added up; the same keys meet in the same place."""
        found = self.result()
        if found is None:
            yield 0, OVER - number, packed(np.zeros(1, dtype=np.int64))
            return
        keys, counts = found
        places = (mixed(keys.view(np.uint64)) % np.uint64(shards)).astype(np.int64)
        for shard in range(shards):
            mine = places == shard
            if mine.any():
                yield shard, number, packed(keys[mine], counts[mine], shrink=True)


def mixed(values: NDArray[np.uint64], key: int = 0) -> NDArray[np.uint64]:
    """Numbers as others that look random, different ones different: the finaliser of splitmix64."""
    found = values + np.uint64((key * 0xD1B54A32D192ED03 + 0x9E3779B97F4A7C15) % (1 << 64))
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(found ^ (found >> np.uint64(31)))


def text_blob(bucket: int, part: int, value: Any) -> Blob:
    """Plain values as a blob."""
    return bucket, part, packed(np.frombuffer(json.dumps(value).encode(), dtype=np.uint8), squeeze=True)


def label_blobs(number: int, counts: Mapping[str, int] | None, shards: int) -> Blob:
    """Labels and how often each occurs, on the way to where those of all tasks are added up."""
    return text_blob(number % shards, LABELS + number, counts)


def added(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Counts of the same keys added up; facts and sums go on as they are."""
    for bucket, parts in by_bucket(batches):
        found: list[Blob] = []
        for part, blobs in parts.items():
            if part < 0:
                found += [(bucket, part, packed(*arrays)) for arrays in blobs]
            elif part >= LABELS:
                found.append(text_blob(bucket, part, _joined([_text(arrays[0]) for arrays in blobs])))
            else:
                keys, counts = together([_whole(arrays) for arrays in blobs])
                if keys.size > most:
                    found.append((bucket, OVER - part, packed(np.zeros(1, dtype=np.int64))))
                else:
                    found.append((bucket, part, packed(keys, counts, shrink=True)))
        yield batch_of(found)


def _whole(arrays: Sequence[NDArray[Any]]) -> Counted:
    return arrays[0].astype(np.int64), arrays[1].astype(np.int64)


def _text(array: NDArray[Any]) -> Any:
    return json.loads(array.astype(np.uint8).tobytes())


def _joined(found: Iterable[dict[str, int] | None]) -> dict[str, int] | None:
    """Counts of labels together; None where there are too many."""
    total: dict[str, int] = {}
    for counts in found:
        if counts is None:
            return None
        for label, count in counts.items():
            total[label] = total.get(label, 0) + count
        if len(total) > MOST_LABELS:
            return None
    return total


@internal()
@dataclass(slots=True, eq=False)
class Aggregates:
    """What the tasks of one pass found together.

    Attributes:
        facts: plain values of every task.
        sums: arrays of every task.
        counts: keys and counts by number; None where there are too many.
        labels: likewise for texts.
    """

    facts: list[Any] = field(default_factory=list)
    sums: list[list[NDArray[Any]]] = field(default_factory=list)
    counts: dict[int, Counted | None] = field(default_factory=dict)
    labels: dict[int, dict[str, int] | None] = field(default_factory=dict)


def gathered(batches: Iterable[pa.RecordBatch], most: int) -> Aggregates:
    """The results of a pass on the driver."""
    found = Aggregates()
    pieces: dict[int, list[Counted]] = {}
    texts: dict[int, list[dict[str, int] | None]] = {}
    over: set[int] = set()
    for _, part, blob in blobs_in(batches):
        arrays = unpacked(blob)
        if part == FACTS:
            found.facts.append(_text(arrays[0]))
        elif part == SUMS:
            found.sums.append(arrays)
        elif part <= OVER:
            over.add(OVER - part)
        elif part >= LABELS:
            texts.setdefault(part - LABELS, []).append(_text(arrays[0]))
        else:
            pieces.setdefault(part, []).append(_whole(arrays))
    for number, some in pieces.items():
        whole = together(some)
        found.counts[number] = None if whole[0].size > most else whole
    found.counts |= dict.fromkeys(over)
    found.labels = {number: _joined(some) for number, some in texts.items()}
    return found
