"""Table pairs: an original and a released table side by side, with shared columns, codes and excerpts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns import (
    DEFAULT_REAL_STEPS,
    KIND_FACTS,
    MISSING_VALUE,
    Attribute,
    Kind,
    Lattice,
    numbers,
    read_declared,
    stored_kind,
    stored_numbers,
    with_gaps,
)
from shoal.display import internal
from shoal.errors import InputError, OptionError
from shoal.io import Table, read
from shoal.numbers import Floats, Integers
from shoal.partition import as_arrow
from shoal.privacy import MODELS
from shoal.taxonomy import Taxonomy
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.release import Release


MISSING = -1
# the distance (Eq. 6.6) of two values that share only the root
FLAT_DISTANCE = math.log2(1 + 2 / 3)
_DAY_MILLISECONDS = 86_400_000.0
_MOST_LABELS = 50
Columns = list[NDArray[np.float64]]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class TablePair:
    """The tables to compare.

    Attributes:
        before: the original rows.
        after: the values to measure: unrounded and in the order of `before` when `matched`.
        published: the released table as published.
        matched: whether row i of `after` came from row i of `before`.
        released: names of the columns that were released.
        domains: public domain of a column, where one is known.
        attributes: kind of a column, where it is known: in `after`, a matched column is in numbers of its kind.
        taxonomies: tree of concepts of a nominal column, where one is known.
        matching: how synthetic records were assigned to records, where rows were drawn.
    """

    before: Table
    after: Table
    published: Table
    matched: bool
    released: tuple[str, ...]
    domains: dict[str, tuple[float, float]]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    taxonomies: Mapping[str, Taxonomy] = field(default_factory=dict)
    matching: str | None = None

    def width(self, name: str, values: NDArray[np.float64]) -> float:
        """Public width of a column; the range of the original where no domain was declared."""
        lo, hi = self.domains.get(name, (float(values.min()), float(values.max())))
        return float(hi) - float(lo)


def make_pair(original: Any, released: Any, same_order: bool = False) -> TablePair:
    """Pair the tables to compare; rows that a release dropped are left out of the original.

    Args:
        original: the table that was protected.
        released: a release, or any other table.
        same_order: row i of that other table came from row i of the original.

    Raises:
        InputError: a table cannot be read, or it is not the one that was protected.
    """
    schema = getattr(released, "schema", None) if hasattr(released, "aligned") else None
    before = read(original) if schema is None else read_declared(original, schema)
    # checked first: a dataframe may have columns named like the attributes of a release
    if nw.dependencies.is_into_dataframe(released) or not hasattr(released, "aligned"):
        published = read(released)
        if same_order and published.n != before.n:
            raise InputError("tables-cannot-same-order", n=before.n, n_2=published.n)
        return TablePair(before, published, published, same_order, published.names, {})
    if same_order:
        raise OptionError("same-order-two-plain-tables", option="same_order")
    published = read(released.data)
    bare = unmatched(before, published, released)
    kept = released.kept
    if kept is not None:
        if len(kept) and int(np.max(kept)) >= before.n:
            raise InputError("release-made-from-table-least-rows", np=int(np.max(kept)) + 1, n=before.n)
        before = before.rows(np.asarray(kept, dtype=np.int64))
    if released.aligned is None:
        return replace(bare, before=before)
    aligned = read(released.aligned)
    if aligned.n != before.n:
        raise InputError("release-rows-original-table", n=aligned.n, n_2=before.n)
    method = getattr(released, "method", None)
    matching = None if method is None else method.matching
    return replace(bare, before=before, after=aligned, matched=True, matching=matching)


def unmatched(before: Table, published: Table, released: Any = None) -> TablePair:
    """Two tables whose rows have no common order.

    Args:
        released: a release or a bundle, from which the public facts about the columns are taken.
    """
    if released is None:
        return TablePair(before, published, published, False, published.names, {})
    schema = getattr(released, "schema", None)
    # the synthetic rows of a linked table correspond to no record
    names = tuple(name for name in released.columns if name in published.names)
    attributes = {name: schema[name] for name in names} if schema is not None else {}
    taxonomies = {name: a.tree for name, a in attributes.items() if a.tree is not None}
    return TablePair(
        before, published, published, False, names, dict(released.domains), attributes, taxonomies
    )


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """A column of numbers, positions in an order, or days; missing values are NaN.

    Attributes:
        before: values of the original rows.
        after: values of the rows to compare them with, unrounded and in the same order if rows are matched.
        published: values of the released table.
        domain: lowest and highest value; the range of the original where no domain was declared.
    """

    name: str
    kind: Kind
    before: Floats
    after: Floats
    published: Floats
    domain: tuple[float, float]

    @property
    def width(self) -> float:
        return self.domain[1] - self.domain[0]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Nominal:
    """A nominal column as codes; a missing value is a separate value.

    Attributes:
        before: codes of the original rows.
        after: codes of the rows to compare them with, in the same order if rows are matched.
        published: codes of the released table.
        size: number of codes.
        taxonomy: of the codes; None where any two values are equally far apart.
        gone: the code of a missing value: -1, or that of its concept where missing is a category.
    """

    name: str
    before: Integers
    after: Integers
    published: Integers
    size: int
    taxonomy: Taxonomy | None = None
    gone: int = MISSING
    kind: Kind = "nominal"

    @property
    def width(self) -> float:
        """Distance between the ends of the domain, the divisor in Eq. 6.7."""
        if self.taxonomy is not None:
            return self.taxonomy.width
        return FLAT_DISTANCE if self.size > 1 else 0.0

    def distances(self, a: Integers, b: Integers) -> Floats:
        """Semantic distances of codes, broadcast; a missing value without a concept is a full width from any other."""
        if self.taxonomy is None:
            return np.where(a == b, 0.0, FLAT_DISTANCE)
        known = self.taxonomy.distances(np.maximum(a, 0), np.maximum(b, 0))
        gone, missing = a == MISSING, b == MISSING
        return np.where(gone & missing, 0.0, np.where(gone | missing, self.width, known))


Column = Ordered | Nominal


def missing_count(values: Floats | Integers, column: Column) -> int:
    """Number of missing values in a column."""
    return int((values == column.gone if isinstance(column, Nominal) else np.isnan(values)).sum())


def kind_of(pair: TablePair, name: str) -> Kind | None:
    """Kind of a column that both tables have; None if they hold different kinds of values."""
    attribute = pair.attributes.get(name)
    if attribute is not None:
        return attribute.kind
    dtypes = [table.dtype(name) for table in (pair.before, pair.published)]
    kinds = {stored_kind(dtype) for dtype in dtypes}
    return kinds.pop() if len(kinds) == 1 and not any(map(_incomparable, dtypes)) else None


def _incomparable(dtype: Any) -> bool:
    """Whether a type is neither date nor nominal: times of day and durations."""
    return bool(dtype.is_temporal()) and not KIND_FACTS[stored_kind(dtype)].days


def columns_of(pair: TablePair, names: Sequence[str]) -> list[Column]:
    """The requested columns in order; each must have a kind."""
    return [
        _ordered(pair, name) if KIND_FACTS[kind_of(pair, name) or "nominal"].ordered else _nominal(pair, name)
        for name in names
    ]


def _ordered(pair: TablePair, name: str) -> Ordered:
    attribute, kind = pair.attributes.get(name), kind_of(pair, name)
    assert kind is not None
    before = numbers_of(pair.before, name, attribute)
    published = numbers_of(pair.published, name, attribute)
    after = published
    if pair.matched:
        # rows of a release are already in numbers of their kind
        after = numbers_of(pair.after, name, None)
    present = before[np.isfinite(before)]
    ends = (float(present.min()), float(present.max())) if present.size else (0.0, 0.0)
    lo, hi = pair.domains.get(name, ends)
    return Ordered(name, kind, before, after, published, (float(lo), float(hi)))


def numbers_of(table: Table, name: str, attribute: Attribute | None) -> Floats:
    """An ordered column as numbers; missing and infinite values are NaN."""
    if attribute is not None:
        return _finite(numbers(table, attribute))
    if table.is_numeric(name):
        return _finite(table.numeric(name))
    moments = table.series(name).cast(nw.Datetime("ms")).dt.timestamp("ms").cast(nw.Float64())
    return np.asarray(moments.to_numpy(), dtype=np.float64) / _DAY_MILLISECONDS


def _finite(values: Floats) -> Floats:
    """Infinite values count as missing."""
    return np.where(np.isfinite(values), values, np.nan)


def _nominal(pair: TablePair, name: str) -> Nominal:
    tables = {"before": pair.before, "published": pair.published}
    if pair.matched:
        tables["after"] = pair.after
    texts = {which: texts_of(table, name) for which, table in tables.items()}
    taxonomy, gone = pair.taxonomies.get(name), MISSING
    if taxonomy is None:
        codes, size = _common_codes(texts)
    else:
        size = taxonomy.size
        if MISSING_VALUE in taxonomy.labels:
            gone = taxonomy.labels.index(MISSING_VALUE)
        codes = {
            which: taxonomy.encode(values, _what(name, which), concepts=which != "before", missing=gone)
            for which, values in texts.items()
        }
    after = codes.get("after", codes["published"])
    return Nominal(name, codes["before"], after, codes["published"], size, taxonomy, gone)


def _what(name: str, which: str) -> Message:
    return Message.of("column-of-original" if which == "before" else "column-of-released", column=name)


def texts_of(table: Table, name: str) -> Any:
    """A column as text; an empty text is a missing value, and so is NaN in a column of numbers."""
    import pyarrow as pa
    from pyarrow import compute

    values = as_arrow(table.series(name))
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_floating(values.type):
        values = compute.if_else(compute.is_nan(values), None, values)
    try:
        texts = values.cast(pa.large_string())
    except pa.ArrowException:
        raise InputError("column-holds-values-type-cannot-compared", column=name, type=values.type) from None
    return compute.if_else(compute.equal(texts, ""), None, texts)


def _common_codes(texts: dict[str, Any]) -> tuple[dict[str, Integers], int]:
    """Codes of the texts of several tables, equal where the texts are equal."""
    import pyarrow as pa

    encoded = pa.concat_arrays(list(texts.values())).dictionary_encode()
    codes = encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum([len(text) for text in texts.values()])
    return dict(zip(texts, np.split(codes, ends[:-1]), strict=True)), len(encoded.dictionary)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The same attributes of both tables, missing values as NaN.

    Attributes:
        names: the columns that are used; a column of text has one 0/1 column for each label of the original.
        before: values of the original rows.
        after: values of the released rows, in the order of `before` if the pair is matched.
    """

    names: tuple[str, ...]
    before: NDArray[np.float64]
    after: NDArray[np.float64]


def make_features(pair: TablePair, target: str, columns: Sequence[str] | None) -> Features:
    """The released columns except the target, as numbers.

    Raises:
        InputError: no released column can be used.
    """
    names, before, after = [], [], []
    for name in pair.released if columns is None else columns:
        found = None if name == target or name not in pair.before.names else _both(pair, name)
        if found is not None:
            names.append(name)
            before += found[0]
            after += found[1]
    if not names:
        raise InputError("no-released-column-beside-target-can", target=target)
    return Features(tuple(names), np.column_stack(before), np.column_stack(after))


def _both(pair: TablePair, name: str) -> tuple[Columns, Columns] | None:
    attribute = pair.attributes.get(name)
    if attribute is not None and (attribute.kind_facts.ordered and not attribute.kind_facts.measured):
        after = pair.after.numeric(name) if pair.matched else numbers(pair.after, attribute)
        return [_finite_or_nan(numbers(pair.before, attribute))], [_finite_or_nan(after)]
    tables = (pair.before, pair.after)
    if all(table.is_numeric(name) for table in tables):
        return [_finite_or_nan(pair.before.numeric(name))], [_finite_or_nan(pair.after.numeric(name))]
    if all(table.dtype(name).is_temporal() for table in tables):
        return [_moments(pair.before, name)], [_moments(pair.after, name)]
    if any(table.dtype(name).is_numeric() or table.dtype(name).is_temporal() for table in tables):
        return None
    return _indicators(pair, name)


def _indicators(pair: TablePair, name: str) -> tuple[Columns, Columns] | None:
    """One 0/1 column per label of the original; None for a column with too many labels, such as a name."""
    before, after = (table.series(name).to_list() for table in (pair.before, pair.after))
    labels = sorted({str(value) for value in before if value is not None})
    if not 1 < len(labels) <= _MOST_LABELS:
        return None
    return _one_hot(before, labels), _one_hot(after, labels)


def _one_hot(values: list[Any], labels: list[str]) -> Columns:
    texts = np.array([str(value) for value in values], dtype=object)
    return [(texts == label).astype(np.float64) for label in labels]


def _finite_or_nan(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Infinite values count as missing."""
    return np.where(np.isfinite(values), values, np.nan)


def _moments(table: Table, name: str) -> NDArray[np.float64]:
    series = table.series(name).cast(nw.Datetime("ms")).dt.timestamp("ms")
    return np.asarray(series.cast(nw.Float64()).to_numpy(), dtype=np.float64)


# the choice of rows is not secret, and the same tables should give the same page
_SEED = 1


def some_rows(n: int | Integers, most: int) -> Integers:
    """At most the given number of row numbers, in order; all if there are no more.

    >>> some_rows(3, 5).tolist(), len(some_rows(100, 5))
    ([0, 1, 2], 5)
    """
    size = n if isinstance(n, int) else n.size
    if size <= most:
        return np.arange(size) if isinstance(n, int) else n
    return np.sort(np.random.default_rng(_SEED).choice(n, most, replace=False))


def excerpt(table: Table, rows: Integers, columns: Sequence[str]) -> Table:
    """These rows of these columns; a table on disk is read one column at a time."""
    if table.path is None:
        return replace(table, frame=table.frame.select(columns)).rows(rows)
    import pyarrow as pa

    parts = {}
    for name in columns:
        parts[name] = table.series(name).to_arrow().take(pa.array(rows))
        # Arrow keeps freed memory in its pool; the next column of a large file needs it
        pa.default_memory_pool().release_unused()
    return Table(nw.from_native(pa.table(parts), eager_only=True), table.format)


def released_rows(release: Release, rows: Integers) -> Table:
    """The released rows of the given records, as stored; a published table does not reveal which these are."""
    published = read(release.data)
    aligned = read(release.aligned).rows(rows)
    found: dict[str, NDArray[Any]] = {}
    for name in release.columns:
        if name not in published.names:
            continue
        attribute = release.schema[name]
        found[name] = (
            np.array(aligned.series(name).to_list(), dtype=object)
            if not attribute.kind_facts.ordered
            else _stored(release, published, attribute, aligned.numeric(name))
        )
    return read(published.like(found, keep_dtypes=True))


def _stored(
    release: Release, published: Table, attribute: Attribute, values: NDArray[np.float64]
) -> NDArray[Any]:
    """Unrounded numbers converted to the type of the published column; gaps stay gaps."""
    low, high = release.domains[attribute.name]
    gaps = np.isnan(values)
    ends = Fraction(low), Fraction(high)
    step = attribute.step
    if step is None:
        step = (
            (ends[1] - ends[0]) / DEFAULT_REAL_STEPS
            if attribute.decimals is None
            else Fraction(1, 10**attribute.decimals)
        )
    found = stored_numbers(
        published,
        attribute,
        Lattice(*ends, step),
        np.where(gaps, low, values),
        clip=release.method.output.clip,
        computed=not MODELS[release.statement.model].of_the_table,
    )
    return with_gaps(found, gaps) if gaps.any() else found


# attacks compare attempts with rows: for larger tables a sample is attacked
MOST_ROWS = 50_000
SAMPLE = 20_000


def plain(value: Any) -> Any:
    """A value as plain Python: no numpy types; NaN and infinities become None.

    >>> plain({"a": (np.float64(1.5), float("nan")), "b": np.int64(3)})
    {'a': [1.5, None], 'b': 3}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
