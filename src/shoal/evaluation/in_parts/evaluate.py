"""Evaluate and check releases that are read in parts.

For l-diversity and t-closeness, entries (group, value) are counted within a batch, then sent to the bucket of their
group, which computes the same measures as in memory. Groups are identified by hashes, values by their code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns import KIND_FACTS, MISSING_VALUE, Attribute, Schema, numbers
from shoal.display import internal
from shoal.engines import Blob, TaskStage, batch_of, blobs_in, by_bucket, packed, scattered, unpacked
from shoal.errors import InputError, OptionError
from shoal.evaluation import measures as loss
from shoal.evaluation import utility
from shoal.evaluation.assessment import Check, Closeness, asked_columns, check_levels, checked
from shoal.evaluation.disclosure.record_risk import by_group
from shoal.evaluation.disclosure.result import figures_of_sizes
from shoal.evaluation.in_parts.counts import (
    FACTS,
    MOST_LABELS,
    BatchReading,
    Grouping,
    Hash,
    Side,
    Tally,
    actual_k,
    added,
    buckets_for,
    count_groups,
    gathered,
    label_blobs,
    mixed,
    runs,
    text_blob,
    working,
)
from shoal.evaluation.in_parts.summaries import (
    MOST_VALUES,
    CountedColumn,
    CountingPlan,
    Cut,
    JointColumns,
    Numbers,
    Standardisation,
    TextCounts,
    Values,
    count_together,
    count_values,
    ordered_keys,
)
from shoal.evaluation.measures import MEASURES
from shoal.evaluation.pair import MISSING, TablePair, kind_of, plain
from shoal.evaluation.result import Evaluation, chosen_columns, measures_of, moved, skipped_columns, summed_up
from shoal.evaluation.utility import DomainParts, contingency_of, counted_variation
from shoal.io import Table
from shoal.numbers import Integers
from shoal.partition import EMD, ActualK, GroupCounts, as_arrow, ratio_distances
from shoal.progress import Progress
from shoal.taxonomy import Taxonomy
from shoal.text import Message

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
        """The column interpreted as in `shoal.evaluation.assessment.ordered_codes`."""
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


# measures with a function of their own that need only correlation matrices before and after
_COMPUTED: Mapping[str, Callable[[JointColumns, JointColumns], float | None]] = {
    "eigen": lambda before, after: loss.eigenvalues_moved(before.pearson, after.pearson),
    "il_correl": lambda before, after: loss.inverses_moved(before.gapless, after.gapless),
}
_TOO_MANY = Message("texts-not-counted-in-parts")
# pairs of columns that a remark names
_PAIRS = 3


def evaluate_in_parts(
    before: Side, after: Side, pair: TablePair, columns: Sequence[str] | None, tell: Progress
) -> Evaluation:
    """Utility loss and disclosure risk of a release, from aggregates.

    Args:
        before: the original records.
        after: the released ones.
        pair: both tables without records: their columns and types, and what is known about them.
        columns: measure only these; by default all comparable columns.
    """
    chosen = chosen_columns(pair, columns)
    asked = [
        CountedColumn(name, pair.attributes.get(name), KIND_FACTS[kind_of(pair, name) or "nominal"].ordered)
        for name in chosen
    ]
    seen = count_values(before, asked, tell), count_values(after, asked, tell)
    crowded = [one.name for one in asked if _crowded(seen, one.name)]
    asked = [one for one in asked if one.name not in crowded]
    names = tuple(one.name for one in asked)
    cuts = [_cut(pair, one, *seen) for one in asked]
    found = [
        count_together(side, _plan(pair, own, values), tell)
        for side, own, values in zip(
            (before, after), zip(*cuts, strict=True) if cuts else ((), ()), seen, strict=True
        )
    ]
    pairs, unseen = _pairs(names, found)
    groups = pair.released if columns is None else names
    reached = actual_k(after, groups, seen[1].n, tell)
    return Evaluation(
        utility=plain(_utility(pair, names, seen, found, pairs)),
        risk=plain(_risk(reached)),
        columns=names,
        rows_matched=False,
        rows={"original": seen[0].n, "released": seen[1].n},
        missing={
            name: dict(
                zip(("original", "released"), (_missing(one.columns[name]) for one in seen), strict=True)
            )
            for name in names
        },
        unmeasured={**skipped_columns(pair, chosen, columns), **dict.fromkeys(crowded, _TOO_MANY)},
        told=_told(seen, names, crowded, unseen),
    )


def _crowded(seen: tuple[Values, Values], name: str) -> bool:
    return any(isinstance(column := one.columns[name], TextCounts) and column.counts is None for one in seen)


def _missing(column: Numbers | TextCounts) -> int:
    return column.facts.missing if isinstance(column, Numbers) else column.missing


def _cut(pair: TablePair, asked: CountedColumn, before: Values, after: Values) -> tuple[Cut, Cut]:
    """A column of both tables, cut into the same categories."""
    first, second = before.columns[asked.name], after.columns[asked.name]
    if isinstance(first, Numbers):
        kind = kind_of(pair, asked.name)
        assert kind is not None
        facts = first.facts
        ends = (facts.low, facts.high) if facts.low is not None and facts.high is not None else (0.0, 0.0)
        lo, hi = pair.domains.get(asked.name, ends)
        parts = DomainParts.of(kind, (float(lo), float(hi)))
        return Cut(asked, parts), Cut(asked, parts)
    assert isinstance(second, TextCounts)
    texts = [list(found.counts or ()) for found in (first, second)]
    taxonomy = pair.taxonomies.get(asked.name)
    if taxonomy is not None:
        gone = taxonomy.labels.index(MISSING_VALUE) if MISSING_VALUE in taxonomy.labels else MISSING
        one, other = (
            Cut(asked, None, _codes_of(taxonomy, asked.name, which, some), taxonomy.size + 1, gone)
            for which, some in zip(("original", "released"), texts, strict=True)
        )
        return one, other
    every = {text: code for code, text in enumerate(dict.fromkeys((*texts[0], *texts[1])))}
    return Cut(asked, codes=every, size=len(every) + 1), Cut(asked, codes=every, size=len(every) + 1)


def _codes_of(taxonomy: Taxonomy, name: str, which: str, texts: Sequence[str]) -> dict[str, int]:
    codes = taxonomy.encode(
        np.array(texts, dtype=object),
        Message.of("column-of-original" if which == "original" else "column-of-released", column=name),
        concepts=which != "original",
        missing=MISSING,
    )
    return dict(zip(texts, codes.tolist(), strict=True))


def _plan(pair: TablePair, cuts: Sequence[Cut], values: Values) -> CountingPlan:
    scales, ranks = {}, {}
    for place, cut in enumerate(cuts):
        column, kind = values.columns[cut.asked.name], kind_of(pair, cut.asked.name)
        if isinstance(column, Numbers) and kind is not None:
            ranks[place] = Standardisation.of_ranks(column)
            if KIND_FACTS[kind].measured:
                scales[place] = Standardisation.of(column)
    return CountingPlan(tuple(cuts), scales, ranks)


def _pairs(
    names: Sequence[str], found: Sequence[JointColumns]
) -> tuple[dict[tuple[str, str], float], list[tuple[str, str]]]:
    """Total variation distances of two-way tables, and the pairs with too many cells."""
    moved_pairs: dict[tuple[str, str], float] = {}
    unseen = []
    for places, before in found[0].counts.items():
        if len(places) != 2:
            continue
        pair, after = (names[places[0]], names[places[1]]), found[1].counts[places]
        if before is None or after is None:
            unseen.append(pair)
        else:
            moved_pairs[pair] = counted_variation(before, after)
    return moved_pairs, unseen


def _utility(
    pair: TablePair,
    names: Sequence[str],
    seen: tuple[Values, Values],
    found: Sequence[JointColumns],
    pairs: Mapping[tuple[str, str], float],
) -> dict[str, Any]:
    attributes: dict[str, dict[str, Any]] = {}
    for place, name in enumerate(names):
        kind = kind_of(pair, name)
        assert kind is not None
        counts = [one.counts[(place,)] for one in found]
        assert counts[0] is not None
        assert counts[1] is not None
        line = measures_of(kind, counted_variation(counts[0], counts[1]))
        before, after = (one.columns[name] for one in seen)
        if isinstance(before, Numbers) and isinstance(after, Numbers):
            first, second = before.facts.moments, after.facts.moments
            distance = utility.wasserstein_of(before.distribution, after.distribution, first.variance)
            line |= moved(kind, first, second, distance)
        attributes[name] = line
    products, ranks = ([getattr(one, what).correlations() for one in found] for what in ("products", "ranks"))
    return summed_up(
        attributes,
        utility.correlation_difference(*products),
        utility.correlations_kept(*ranks),
        contingency_of(pairs),
        (None, None),
        _computed("utility", found),
    )


def _computed(part: Literal["utility", "risk"], found: Sequence[JointColumns]) -> dict[str, float | None]:
    """Measures with a function of their own: computed from products where possible, None for the others."""
    return {
        name: _COMPUTED[name](*found) if name in _COMPUTED else None
        for name, measure in MEASURES.items()
        if measure.part == part and measure.compute is not None
    }


def _risk(reached: ActualK) -> dict[str, Any]:
    linked = ("", "_interval", "_confidence", "_chance", "_records", "_rows", "_widths")
    return {
        **{f"record_linkage{word}": None for word in linked},
        "actual_k": reached.k,
        "groups": reached.groups,
        "unique_share": reached.unique_share,
        **_computed("risk", ()),
        "actual_k_per_attribute": reached.per_attribute,
    }


def _told(
    seen: tuple[Values, Values],
    names: Sequence[str],
    crowded: Sequence[str],
    unseen: Sequence[tuple[str, str]],
) -> tuple[Message, ...]:
    """What is missing, or only approximate, compared with the measures of a table in memory."""
    found = []
    rough = [
        name
        for name in names
        if any(isinstance(column := one.columns[name], Numbers) and not column.exact for one in seen)
    ]
    if rough:
        found.append(Message.of("ranks-to-one-part", columns=rough, parts=MOST_VALUES))
    if crowded:
        found.append(Message.of("not-measured-columns", reason=_TOO_MANY, columns=crowded))
    if unseen:
        pairs = [Message.of("pair-of-columns", first=first, second=second) for first, second in unseen]
        code = "pairs-left-out" if len(pairs) <= _PAIRS else "pairs-left-out-and-more"
        found.append(Message.of(code, pairs=pairs[:_PAIRS], more=len(pairs) - _PAIRS))
    others = [
        name
        for name, measure in MEASURES.items()
        if measure.compute is not None and not measure.of_rows and name not in _COMPUTED
    ]
    if others:
        found.append(Message.of("measures-not-in-parts", measures=others))
    return tuple(found)


def check_in_parts(
    side: Side,
    quasi_identifiers: str | Sequence[str] | None,
    sensitive: str | Sequence[str] | None,
    schema: Schema | None,
    levels: Mapping[str, float | None],
    tell: Progress,
) -> Check:
    """The protection that a table reaches, from group sizes and the worst groups.

    Two passes, and two more for sensitive attributes. Risks of weighted records and special uniques are left out, and a
    line says so. Persons with several rows are refused.
    """
    table = side.table()
    known, secret = asked_columns(table, quasi_identifiers, sensitive, schema)
    check_levels(levels, secret)
    unit = _by_role(table, schema, "unit")
    if unit is not None:
        raise OptionError("column-unit-persons-counted-side-side", column=unit, unit=unit)
    claimed = Grouping(known)
    # the risk treats an empty text as a missing value
    told_apart = any(isinstance(table.dtype(name), (nw.String, nw.Categorical, nw.Enum)) for name in known)
    coarse = Grouping(known, blank_missing=True) if told_apart else claimed
    groupings = [claimed, coarse] if told_apart else [claimed]
    counted = count_groups(side, groupings, tell)
    found: dict[str, Closeness] = {}
    least: dict[str, dict[str, float]] = {}
    if secret:
        secrets = [Secret.of(table, name, schema) for name in secret]
        found, least = measure_closeness(side, secrets, groupings, tell)
    weight = _by_role(table, schema, "weight")
    disclosure = None if weight is not None else figures_of_sizes(known, *counted[-1], least)
    told = (
        Message("special-uniques-not-in-parts")
        if weight is None
        else Message.of("risk-of-weights-not-in-parts", column=weight)
    )
    result = checked(known, *counted[0], found, disclosure, levels, (told,))
    rules: dict[str, int | None] = {} if schema is None else {rule.words: None for rule in schema.rules}
    return replace(result, rules=rules)


def _by_role(table: Table, schema: Schema | None, role: str) -> str | None:
    """The single column of a role, if the table has it."""
    attributes = () if schema is None else schema.attributes
    return next((a.name for a in attributes if a.role == role and a.name in table.names), None)
