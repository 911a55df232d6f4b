"""Excerpts of rows, for pages and measures that need no more than a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import Attribute
from shoal.columns.column import stored_numbers
from shoal.columns.kinds import DEFAULT_REAL_STEPS, Lattice
from shoal.columns.missing import with_gaps
from shoal.io import Table, read
from shoal.privacy.claims import MODELS

if TYPE_CHECKING:
    from shoal.release.protect import Release

Rows = NDArray[np.int64]

# which rows are looked at is no secret, and the same tables should give the same page
_SEED = 1


def some_rows(n: int | Rows, most: int) -> Rows:
    """At most so many row numbers, all of them if they are no more, in order.

    >>> some_rows(3, 5).tolist(), len(some_rows(100, 5))
    ([0, 1, 2], 5)
    """
    size = n if isinstance(n, int) else n.size
    if size <= most:
        return np.arange(size) if isinstance(n, int) else n
    return np.sort(np.random.default_rng(_SEED).choice(n, most, replace=False))


def excerpt(table: Table, rows: Rows, columns: Sequence[str]) -> Table:
    """These rows of these columns; a table on disk is read one column at a time."""
    if table.path is None:
        return replace(table, frame=table.frame.select(columns)).rows(rows)
    import pyarrow as pa

    parts = {}
    for name in columns:
        parts[name] = table.series(name).to_arrow().take(pa.array(rows))
        # Arrow keeps freed memory for itself; the next column of a large file needs it
        pa.default_memory_pool().release_unused()
    return Table(nw.from_native(pa.table(parts), eager_only=True), table.format)


def released_rows(release: Release, rows: Rows) -> Table:
    """The released rows of these records, which a published table does not tell, as it stores them."""
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
    """Unrounded numbers as the published column has them; gaps stay gaps."""
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


# attacks compare attempts with rows: of larger tables a sample is attacked
MOST_ROWS = 50_000
SAMPLE = 20_000
