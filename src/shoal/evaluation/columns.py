"""What is measured: a pair of tables comes in, its columns as numbers with an order or as codes of names leave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import MISSING_VALUE, Attribute
from shoal.columns.column import numbers
from shoal.columns.draft import stored_kind
from shoal.columns.kinds import KIND_FACTS, Kind
from shoal.display import internal
from shoal.errors import InputError
from shoal.evaluation.anonymity import as_arrow
from shoal.evaluation.pair import Pair
from shoal.io import Table
from shoal.taxonomy import Taxonomy
from shoal.text import Message

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]

MISSING = -1
# the distance (Eq. 6.6) of two values that have only the root in common
FLAT_DISTANCE = math.log2(1 + 2 / 3)
_DAY_MILLISECONDS = 86_400_000.0


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """A column of numbers, places in an order, or days; missing values are NaN.

    Attributes:
        before: of the original rows.
        after: of the rows to compare them with, unrounded and in the same order if rows are matched.
        published: of the released table.
        domain: lowest and highest value; the range of the original where no domain was declared.
    """

    name: str
    kind: Kind
    before: Numbers
    after: Numbers
    published: Numbers
    domain: tuple[float, float]

    @property
    def width(self) -> float:
        return self.domain[1] - self.domain[0]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Nominal:
    """A column of names as codes; a missing value is a value of its own.

    Attributes:
        before: of the original rows.
        after: of the rows to compare them with, in the same order if rows are matched.
        published: of the released table.
        size: number of codes.
        taxonomy: whose codes they are; None where any two values are equally far apart.
        gone: the code of a missing value: -1, or that of its concept where missing is a category.
    """

    name: str
    before: Codes
    after: Codes
    published: Codes
    size: int
    taxonomy: Taxonomy | None = None
    gone: int = MISSING
    kind: Kind = "nominal"

    @property
    def width(self) -> float:
        """Distance of the ends of the domain, which Eq. 6.7 divides by."""
        if self.taxonomy is not None:
            return self.taxonomy.width
        return FLAT_DISTANCE if self.size > 1 else 0.0

    def distances(self, a: Codes, b: Codes) -> Numbers:
        """Semantic distances of codes, broadcast; a missing value without a concept is a width from any other."""
        if self.taxonomy is None:
            return np.where(a == b, 0.0, FLAT_DISTANCE)
        known = self.taxonomy.distances(np.maximum(a, 0), np.maximum(b, 0))
        gone, missing = a == MISSING, b == MISSING
        return np.where(gone & missing, 0.0, np.where(gone | missing, self.width, known))


Column = Ordered | Nominal


def missing_count(values: Numbers | Codes, column: Column) -> int:
    """Number of missing values among those of a column."""
    return int((values == column.gone if isinstance(column, Nominal) else np.isnan(values)).sum())


def kind_of(pair: Pair, name: str) -> Kind | None:
    """Kind of a column that both tables have; None if they hold different kinds of values."""
    attribute = pair.attributes.get(name)
    if attribute is not None:
        return attribute.kind
    dtypes = [table.dtype(name) for table in (pair.before, pair.published)]
    kinds = {stored_kind(dtype) for dtype in dtypes}
    return kinds.pop() if len(kinds) == 1 and not any(map(_incomparable, dtypes)) else None


def _incomparable(dtype: Any) -> bool:
    """Times of a day and lengths of time are neither dates nor names."""
    return bool(dtype.is_temporal()) and not KIND_FACTS[stored_kind(dtype)].days


def columns_of(pair: Pair, names: Sequence[str]) -> list[Column]:
    """The columns in the order of their names; each must have a kind."""
    return [
        _ordered(pair, name) if KIND_FACTS[kind_of(pair, name) or "nominal"].ordered else _nominal(pair, name)
        for name in names
    ]


def _ordered(pair: Pair, name: str) -> Ordered:
    attribute, kind = pair.attributes.get(name), kind_of(pair, name)
    assert kind is not None
    before = numbers_of(pair.before, name, attribute)
    published = numbers_of(pair.published, name, attribute)
    after = published
    if pair.matched:
        # rows of a release are in numbers of their kind already
        after = numbers_of(pair.after, name, None)
    present = before[np.isfinite(before)]
    ends = (float(present.min()), float(present.max())) if present.size else (0.0, 0.0)
    lo, hi = pair.domains.get(name, ends)
    return Ordered(name, kind, before, after, published, (float(lo), float(hi)))


def numbers_of(table: Table, name: str, attribute: Attribute | None) -> Numbers:
    """A column with an order as numbers; missing and infinite values are NaN."""
    if attribute is not None:
        return _finite(numbers(table, attribute))
    if table.is_numeric(name):
        return _finite(table.numeric(name))
    moments = table.series(name).cast(nw.Datetime("ms")).dt.timestamp("ms").cast(nw.Float64())
    return np.asarray(moments.to_numpy(), dtype=np.float64) / _DAY_MILLISECONDS


def _finite(values: Numbers) -> Numbers:
    """Infinite values count as missing."""
    return np.where(np.isfinite(values), values, np.nan)


def _nominal(pair: Pair, name: str) -> Nominal:
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


def _common_codes(texts: dict[str, Any]) -> tuple[dict[str, Codes], int]:
    """Codes of the texts of several tables, equal where the texts are."""
    import pyarrow as pa

    encoded = pa.concat_arrays(list(texts.values())).dictionary_encode()
    codes = encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum([len(text) for text in texts.values()])
    return dict(zip(texts, np.split(codes, ends[:-1]), strict=True)), len(encoded.dictionary)
