"""l-diversity and t-closeness of tables of any size: measure the worst equivalence class of each sensitive attribute.

Entries (group, value) are counted within a batch, then sent to the bucket of their group, which computes the same
measures as in memory. Groups are identified by hashes, values by their code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns import Attribute, Schema, numbers
from shoal.display import internal
from shoal.engines import Blob, TaskStage, batch_of, blobs_in, by_bucket, packed, scattered, unpacked
from shoal.errors import InputError
from shoal.evaluation.disclosure.record_risk import by_group
from shoal.evaluation.in_parts.counts import (
    FACTS,
    MOST_LABELS,
    BatchReading,
    Grouping,
    Hash,
    Side,
    Tally,
    added,
    buckets_for,
    gathered,
    label_blobs,
    mixed,
    runs,
    text_blob,
    working,
)
from shoal.evaluation.in_parts.summaries import MOST_VALUES, ordered_keys
from shoal.evaluation.measured import Closeness
from shoal.io import Table
from shoal.numbers import Integers
from shoal.partition import EMD, GroupCounts, as_arrow, ratio_distances
from shoal.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa


Kind = Literal["places", "numbers", "whole", "texts"]


@dataclass(frozen=True, slots=True)
class Secret:
    """A sensitive attribute: how its values become numbers, and whether their order is meaningful.

    Attributes:
        order: of the values of an ordered text column.
    """

    name: str
    how: Kind
    ground: str
    attribute: Attribute | None = None
    order: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Table, name: str, schema: Schema | None) -> Secret:
        """The column interpreted as in `shoal.evaluation.checks.ordered_codes`."""
        attribute = schema[name] if schema is not None and name in schema else None
        if attribute is not None and attribute.kind_facts.listed and attribute.ordered:
            return cls(name, "places", "ordered", attribute)
        dtype = table.dtype(name)
        nominal = attribute is not None and not attribute.kind_facts.ordered
        if not nominal and dtype.is_numeric() and "128" not in str(dtype):
            return cls(name, "whole" if dtype.is_integer() else "numbers", "ordered")
        if not nominal and dtype.is_temporal():
            return cls(name, "whole", "ordered")
        if not nominal and isinstance(dtype, nw.Enum):
            return cls(name, "texts", "ordered", order=tuple(dtype.categories))
        return cls(name, "texts", "equal")

    def keys(self, table: Table) -> tuple[Integers, NDArray[np.bool_]]:
        """Numbers in the order of the values, and which values are missing."""
        if self.how == "whole":
            return _whole(table, self.name)
        assert self.how != "texts"
        values = numbers(table, self.attribute) if self.attribute is not None else table.numeric(self.name)
        gone = np.isnan(values)
        return ordered_keys(np.where(gone, 0.0, values)), gone

    def texts(self, table: Table) -> Any:
        """The values as texts, missing ones null; an empty text is a value here."""
        import pyarrow as pa
        from pyarrow import compute

        values = as_arrow(table.series(self.name))
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if pa.types.is_floating(values.type):
            values = compute.if_else(compute.is_nan(values), None, values)
        try:
            return values.cast(pa.large_string())
        except pa.ArrowException:
            return pa.array([None if value is None else str(value) for value in values.to_pylist()])


def _whole(table: Table, name: str) -> tuple[Integers, NDArray[np.bool_]]:
    import pyarrow as pa

    values = as_arrow(table.series(name))
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    gone = values.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_temporal(values.type):
        values = values.cast(f"int{values.type.bit_width}")
    found = values.fill_null(0).to_numpy(zero_copy_only=False)
    if found.dtype == np.uint64:
        # in the order of the numbers, which need all 64 bits
        return (found ^ np.uint64(1 << 63)).view(np.int64), gone
    return found.astype(np.int64), gone


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Numbering:
    """The codes of a sensitive attribute's values.

    Attributes:
        keys: of values that have their own order, ascending; None for texts.
        codes: the code of each text.
        nothing: the code of a missing value.
        empty: the code of an empty text, which also counts as missing where values are unordered; -1 without one.
        totals: how many records have each value.
    """

    secret: Secret
    keys: Integers | None
    codes: Mapping[str, int]
    nothing: int
    empty: int
    totals: Integers

    def of(self, table: Table) -> Integers:
        """The code of every row's value."""
        if self.keys is not None:
            keys, gone = self.secret.keys(table)
            return np.where(gone, self.nothing, np.searchsorted(self.keys, keys)).astype(np.int64)
        encoded = self.secret.texts(table).dictionary_encode()
        codes = np.array([*(self.codes[text] for text in encoded.dictionary.to_pylist()), self.nothing])
        which = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
        return np.asarray(codes[which], dtype=np.int64)


def counted_secrets(
    batches: Iterator[pa.RecordBatch], reading: BatchReading, secrets: Sequence[Secret], shards: int
) -> Iterator[pa.RecordBatch]:
    """How often every value of the sensitive attributes occurs."""
    missing = [0] * len(secrets)
    tallies = [Tally(MOST_VALUES) for _ in secrets]
    texts: list[dict[str, int] | None] = [{} for _ in secrets]
    for table, _ in reading.parts(batches):
        for number, secret in enumerate(secrets):
            if secret.how != "texts":
                keys, gone = secret.keys(table)
                missing[number] += int(gone.sum())
                tallies[number].add(keys[~gone])
                continue
            values = secret.texts(table)
            missing[number] += int(values.null_count)
            counts = values.drop_null().value_counts()
            so_far = texts[number]
            if so_far is not None:
                for text, count in zip(
                    counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True
                ):
                    so_far[text] = so_far.get(text, 0) + count
                texts[number] = so_far if len(so_far) <= MOST_LABELS else None
    yield batch_of([text_blob(0, FACTS, missing)])
    for number, secret in enumerate(secrets):
        if secret.how == "texts":
            yield batch_of([label_blobs(number, texts[number], shards)])
        else:
            yield batch_of(list(tallies[number].blobs(number, shards)))


def number_values(side: Side, secrets: Sequence[Secret], tell: Progress) -> list[Numbering]:
    """Assign codes to the values of sensitive attributes: one pass.

    Raises:
        InputError: a column has too many distinct values.
    """
    shards, names = side.runner.shards, [secret.name for secret in secrets]
    task = partial(counted_secrets, reading=side.reading, secrets=tuple(secrets), shards=shards)
    stages = TaskStage(task, shards), TaskStage(partial(added, most=MOST_VALUES))
    found = gathered(side.collect("counting confidential values", names, tell, *stages), MOST_VALUES)
    made = []
    for number, secret in enumerate(secrets):
        missing = sum(told[number] for told in found.facts)
        if secret.how == "texts":
            counts = found.labels.get(number, {})
            if counts is not None:
                made.append(_texts_numbered(secret, counts, missing))
                continue
        elif (counted := found.counts.get(number, _NONE)) is not None:
            keys, many = counted
            totals = np.append(many, missing) if missing else many
            made.append(Numbering(secret, keys, {}, keys.size if missing else -1, -1, totals))
            continue
        most = MOST_LABELS if secret.how == "texts" else MOST_VALUES
        raise InputError("column-more-than-different-values-distances", column=secret.name, most=most)
    return made


_NONE = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def _texts_numbered(secret: Secret, counts: Mapping[str, int], missing: int) -> Numbering:
    if secret.order:
        place = {text: number for number, text in enumerate(secret.order)}
        known = sorted(counts, key=lambda text: place.get(text, -1))
    else:
        known = sorted(counts)
    # missing values come first, as in memory, where they have a place in the order
    first = 1 if missing else 0
    codes = {text: first + number for number, text in enumerate(known)}
    totals = np.array([*([missing] if missing else []), *(counts[text] for text in known)], dtype=np.int64)
    return Numbering(secret, None, codes, 0 if missing else -1, codes.get("", -1), totals)


def entries(
    batches: Iterator[pa.RecordBatch],
    reading: BatchReading,
    numberings: Sequence[Numbering],
    groupings: Sequence[Grouping],
    buckets: int,
) -> Iterator[pa.RecordBatch]:
    """(group, value) entries with the counts of a batch, sent to where equal ones are merged.

    Args:
        groupings: the equivalence classes of the claim and, last, the coarser ones of the risk.
    """
    for table, _ in reading.parts(batches):
        known: dict[tuple[str, bool], Hash] = {}
        groups = [lane for grouping in groupings for lane in grouping.hashes(table, known)]
        found: list[Blob] = []
        for part, numbering in enumerate(numberings):
            values = numbering.of(table).view(np.uint64)
            meet = mixed(groups[0] ^ mixed(values, 7), 8)
            order, starts = runs(meet, *groups, values)
            counts = np.diff(np.append(starts, order.size))
            chosen = order[starts]
            targets = (meet[chosen] % np.uint64(buckets)).astype(np.int64)
            arrays = [lane[chosen] for lane in groups]
            found += scattered(targets, part, *arrays, values[chosen].view(np.int64), counts)
        yield batch_of(found)


def _added_up(blobs: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
    """Merge equal entries of a bucket: groups, values and counts, sorted by the coarser groups first."""
    columns = [np.concatenate([arrays[place] for arrays in blobs]) for place in range(len(blobs[0]))]
    *lanes, values, counts = columns
    order, starts = runs(*lanes[-2:], *lanes[:-2], values.astype(np.int64).view(np.uint64))
    total = np.add.reduceat(counts[order].astype(np.int64), starts)
    return [*(column[order[starts]] for column in (*lanes, values)), total]


def met_entries(batches: Iterator[pa.RecordBatch], buckets: int) -> Iterator[pa.RecordBatch]:
    """Merge equal entries and send them to the bucket of their group."""
    for _, parts in by_bucket(batches):
        found: list[Blob] = []
        for part, blobs in parts.items():
            columns = _added_up(blobs)
            coarse = columns[-4]
            targets = (coarse % np.uint64(buckets)).astype(np.int64)
            found += scattered(targets, part, *columns)
        yield batch_of(found)


def worst_groups(
    batches: Iterator[pa.RecordBatch], numberings: Sequence[Numbering]
) -> Iterator[pa.RecordBatch]:
    """For each sensitive attribute the measures of the worst group of a bucket, in one array."""
    for bucket, parts in by_bucket(batches):
        found: list[Blob] = []
        for part, blobs in parts.items():
            *lanes, values, counts = _added_up(blobs)
            found.append(
                (bucket, part, packed(_worst(numberings[part], lanes, values.astype(np.int64), counts)))
            )
        yield batch_of(found)


def _worst(
    numbering: Numbering, lanes: Sequence[Hash], values: Integers, counts: Integers
) -> NDArray[np.float64]:
    """Least distinct and entropy l, largest distance and ratio of groups; then the least l of the coarser groups."""
    groups = _numbered(lanes[-2:], lanes[:-2])
    sizes = np.bincount(groups, counts).astype(np.int64)
    whole = GroupCounts(groups, values, counts, sizes, numbering.totals)
    missing = (values == numbering.nothing) | ((values == numbering.empty) & (numbering.empty >= 0))
    told_apart = np.where(missing, -1, values)
    fine, coarse = (_least(some, told_apart, counts) for some in (groups, _numbered(lanes[-2:])))
    emd = float(EMD[numbering.secret.ground](whole).max())
    return np.array([*fine[:2], emd, float(ratio_distances(whole).max()), *coarse])


def _numbered(*keys: Sequence[Hash]) -> Integers:
    """Group numbers, from 0, of sorted entries."""
    new = np.zeros(keys[0][0].size, dtype=np.bool_)
    for some in keys:
        for lane in some:
            new[1:] |= lane[1:] != lane[:-1]
    return np.cumsum(new)


def _least(groups: Integers, values: Integers, counts: Integers) -> tuple[float, float, float]:
    # a value may occur in several of the finer groups that make up a group
    order, starts = runs(groups.view(np.uint64), (values + 1).view(np.uint64))
    chosen = order[starts]
    together = np.add.reduceat(counts[order], starts)
    found = by_group(groups[chosen], values[chosen], together, int(groups[-1]) + 1)
    return float(found.distinct.min()), float(found.entropy.min()), float(found.recursive.min())


def measure_closeness(
    side: Side, secrets: Sequence[Secret], groupings: Sequence[Grouping], tell: Progress
) -> tuple[dict[str, Closeness], dict[str, dict[str, float]]]:
    """The worst group's measures for each sensitive attribute, and the least l of the coarser groups."""
    numberings = number_values(side, secrets, tell)
    buckets = buckets_for(side.runner)
    names = list(
        dict.fromkeys((*(name for one in groupings for name in one.names), *(one.name for one in secrets)))
    )
    first = partial(
        entries,
        reading=side.reading,
        numberings=tuple(numberings),
        groupings=tuple(groupings),
        buckets=buckets,
    )
    stages = (
        TaskStage(first, buckets),
        TaskStage(partial(met_entries, buckets=buckets), buckets),
        TaskStage(partial(worst_groups, numberings=tuple(numberings))),
    )
    found: dict[int, list[NDArray[np.float64]]] = {}
    with working(side.runner):
        for _, part, blob in blobs_in(side.collect("looking at confidential columns", names, tell, *stages)):
            found.setdefault(part, []).append(unpacked(blob)[0])
    levels, least = {}, {}
    for part, numbering in enumerate(numberings):
        every = np.array(found[part])
        low, high = every.min(axis=0), every.max(axis=0)
        levels[numbering.secret.name] = Closeness(
            values=int(numbering.totals.size),
            distinct_l=int(low[0]),
            entropy_l=float(low[1]),
            emd=float(high[2]),
            ground=numbering.secret.ground,
            ratio=math.inf if math.isinf(high[3]) else float(high[3]),
        )
        least[numbering.secret.name] = {
            "distinct": int(low[4]),
            "entropy": float(low[5]),
            "recursive": int(low[6]),
        }
    return levels, least
