"""Equal rows of a table of any size: batches come in, how many groups of each size there are leaves.

Rows go to buckets by a hash of 128 bits of their values, so that a group is in one bucket; only the number of groups of
each size comes back. By chance two different rows of a billion are taken for equal once in 10^20 tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.io import Table
from shoal.io.folders import scratch
from shoal.partition.groups import ActualK, as_arrow
from shoal.progress import Progress
from shoal.release.engines.blobs import Blob, batch_of, blobs_in, by_bucket, packed, scattered, unpacked
from shoal.release.engines.counting import together
from shoal.release.engines.stages import Runner, Stage
from shoal.release.measuring.side import Reading, Side
from shoal.release.measuring.tally import Counted, Integers, mixed

if TYPE_CHECKING:
    import pyarrow as pa

Hash = NDArray[np.uint64]
# rows of a bucket, about, and the most buckets
_BUCKET = 1 << 20
_MOST_BUCKETS = 4096


def buckets_for(runner: Runner) -> int:
    """Into how many buckets the rows of a table are spread."""
    return max(runner.shards, min(-(-runner.rows // _BUCKET), _MOST_BUCKETS))


def column_hashes(table: Table, name: str, *, blank_missing: bool = False) -> Hash:
    """Two hashes of every value, (2, rows): equal exactly where values are, missing ones among each other too.

    Args:
        blank_missing: an empty text is a missing value.
    """
    if table.is_numeric(name) and not table.is_integer(name):
        values = table.numeric(name) + 0.0
        bits = np.where(np.isnan(values), np.nan, values).view(np.uint64)
        return np.array([mixed(bits, 1), mixed(bits, 2)])
    if (whole := _whole_numbers(table, name)) is not None:
        return whole
    texts, which = _distinct(table, name, blank_missing)
    digests = [hashlib.blake2b(text, digest_size=16).digest() for text in texts]
    found = np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)
    return np.ascontiguousarray(found[which].T)


def _whole_numbers(table: Table, name: str) -> Hash | None:
    """The hashes of whole numbers and of moments; None for columns of anything else."""
    import pyarrow as pa

    kind = table.dtype(name)
    if not (kind.is_integer() or kind.is_temporal()):
        return None
    values = as_arrow(table.series(name))
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    width = getattr(values.type, "bit_width", 0)
    if width not in (8, 16, 32, 64) or pa.types.is_unsigned_integer(values.type):
        return None
    gaps = values.is_null().to_numpy(zero_copy_only=False)
    whole = values.cast(f"int{width}") if pa.types.is_temporal(values.type) else values
    bits = whole.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    nothing = np.zeros(1, dtype=np.uint64)
    return np.array([np.where(gaps, mixed(nothing, 5 + lane), mixed(bits, 1 + lane)) for lane in range(2)])


def _distinct(table: Table, name: str, blank_missing: bool) -> tuple[list[bytes], Integers]:
    """The different values of a column as bytes, and which of them every row has."""
    import pyarrow as pa

    values = as_arrow(table.series(name))
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    try:
        encoded = values.dictionary_encode(null_encoding="encode")
    except pa.ArrowException:
        # lists and other nested values have no codes of their own
        values = pa.array([None if value is None else str(value) for value in values.to_pylist()])
        encoded = values.dictionary_encode(null_encoding="encode")
    # a text may be any, so what is missing is told by the byte in front
    texts = [
        b"0" if value is None or (blank_missing and value == "") else b"1" + str(value).encode()
        for value in encoded.dictionary.to_pylist()
    ]
    return texts, np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.int64)


def row_hashes(columns: Sequence[Hash]) -> Hash:
    """Two hashes of whole rows."""
    found = np.zeros_like(columns[0])
    for place, column in enumerate(columns):
        found = np.array([mixed(found[lane] ^ column[lane], 3 + 2 * place + lane) for lane in range(2)])
    return found


def runs(*keys: NDArray[np.uint64]) -> tuple[Integers, Integers]:
    """An order in which equal entries stand together, and where they begin; by the first key alone if it tells."""
    order = np.lexsort(keys[::-1]) if len(keys) > 1 else np.argsort(keys[0], kind="stable")
    if not order.size:
        return order, order
    new = np.zeros(order.size, dtype=np.bool_)
    new[0] = True
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(new)


@dataclass(frozen=True, slots=True)
class Grouping:
    """Columns whose values make groups of rows; `blank_missing` takes an empty text for a missing value."""

    names: tuple[str, ...]
    blank_missing: bool = False

    def hashes(self, table: Table, known: dict[tuple[str, bool], Hash]) -> Hash:
        """Two hashes of every row; those of columns are kept in `known`."""
        for name in self.names:
            if (name, self.blank_missing) not in known:
                known[name, self.blank_missing] = column_hashes(table, name, blank_missing=self.blank_missing)
        return row_hashes([known[name, self.blank_missing] for name in self.names])


def grouped_rows(
    batches: Iterator[pa.RecordBatch], reading: Reading, groupings: Sequence[Grouping], buckets: int
) -> Iterator[pa.RecordBatch]:
    """Hashes of rows on the way to their buckets, equal ones of a batch counted."""
    for table, _ in reading.parts(batches):
        known: dict[tuple[str, bool], Hash] = {}
        found: list[Blob] = []
        for part, grouping in enumerate(groupings):
            first, second = grouping.hashes(table, known)
            # equal first hashes with different second ones make more runs than groups, which the bucket puts together
            order = np.argsort(first, kind="stable")
            one, other = first[order], second[order]
            new = np.concatenate(([True], (one[1:] != one[:-1]) | (other[1:] != other[:-1])))
            starts = np.flatnonzero(new)
            counts = np.diff(np.append(starts, order.size)).astype(np.uint32)
            targets = (one[starts] % np.uint64(buckets)).astype(np.int64)
            found += scattered(targets, part, one[starts], other[starts], counts)
        yield batch_of(found)


def group_sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many groups of every size a bucket has."""
    for bucket, parts in by_bucket(batches):
        found: list[Blob] = []
        for part, blobs in parts.items():
            first, second, counts = (
                np.concatenate([arrays[place] for arrays in blobs]) for place in range(3)
            )
            order, starts = runs(first, second)
            sizes = np.add.reduceat(counts[order].astype(np.int64), starts)
            found.append((bucket, part, packed(*np.unique(sizes, return_counts=True))))
        yield batch_of(found)


def count_groups(side: Side, groupings: Sequence[Grouping], tell: Progress) -> list[Counted]:
    """For each grouping the sizes of its groups of equal rows, ascending, and how many there are of each."""
    buckets = buckets_for(side.runner)
    task = partial(grouped_rows, reading=side.reading, groupings=tuple(groupings), buckets=buckets)
    found: dict[int, list[Counted]] = {}
    with working(side.runner):
        columns = list(dict.fromkeys(name for grouping in groupings for name in grouping.names))
        stages = Stage(task, buckets), Stage(group_sizes)
        for _, part, blob in blobs_in(side.collect("counting equal rows", columns, tell, *stages)):
            sizes, counts = unpacked(blob)
            found.setdefault(part, []).append((sizes.astype(np.int64), counts.astype(np.int64)))
    return [together(found[part]) for part in range(len(groupings))]


@contextmanager
def working(runner: Runner) -> Iterator[None]:
    """A folder for what lies between stages, gone afterwards; it holds hashes and codes of private values."""
    with scratch() as folder, runner.working_in(folder / "work"):
        yield


def actual_k(side: Side, names: Sequence[str], rows: int, tell: Progress) -> ActualK:
    """The k a table actually has, as `shoal.partition.groups.actual_k` of a table in memory."""
    whole, *alone = count_groups(side, [Grouping(tuple(names)), *(Grouping((name,)) for name in names)], tell)
    sizes, counts = whole
    return ActualK(
        k=int(sizes[0]),
        groups=int(counts.sum()),
        unique_share=int(counts[sizes == 1].sum()) / rows,
        per_attribute={name: int(own[0][0]) for name, own in zip(names, alone, strict=True)},
    )
