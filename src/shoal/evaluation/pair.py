"""What is compared: an original and a release (or any other table) come in, tables with matching rows leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns.declaration import read_declared
from shoal.columns.schema import Attribute
from shoal.display import internal
from shoal.errors import InputError, OptionError
from shoal.io import Table, read
from shoal.taxonomy import Taxonomy


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """The tables to compare.

    Attributes:
        before: the original rows.
        after: the values to measure: unrounded and in the order of `before` when `matched`.
        published: the released table as others see it.
        matched: whether row i of `after` came from row i of `before`.
        released: names of the columns that were released.
        domains: public domain of a column, where one is known.
        attributes: kind of a column, where it is known: in `after`, a matched column is in numbers of its kind.
        taxonomies: tree of concepts of a nominal column, where one is known.
        matching: how drawn rows were given to records, where rows were drawn.
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


def make_pair(original: Any, released: Any, same_order: bool = False) -> Pair:
    """The tables to compare; rows that a release dropped are left out of the original.

    Args:
        original: the table that was protected.
        released: a release, or any other table.
        same_order: row i of that other table came from row i of the original.

    Raises:
        InputError: a table cannot be read, or it is not the one that was protected.
    """
    schema = getattr(released, "schema", None) if hasattr(released, "aligned") else None
    before = read(original) if schema is None else read_declared(original, schema)
    # asked first: a dataframe may have columns that are called like the attributes of a release
    if nw.dependencies.is_into_dataframe(released) or not hasattr(released, "aligned"):
        published = read(released)
        if same_order and published.n != before.n:
            raise InputError("tables-cannot-same-order", n=before.n, n_2=published.n)
        return Pair(before, published, published, same_order, published.names, {})
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


def unmatched(before: Table, published: Table, released: Any = None) -> Pair:
    """Two tables whose rows have no common order.

    Args:
        released: a release, or the bundle of one: what is public about the columns is taken from it.
    """
    if released is None:
        return Pair(before, published, published, False, published.names, {})
    schema = getattr(released, "schema", None)
    # what a release puts into a linked table belongs to no row
    names = tuple(name for name in released.columns if name in published.names)
    attributes = {name: schema[name] for name in names} if schema is not None else {}
    taxonomies = {name: a.tree for name, a in attributes.items() if a.tree is not None}
    return Pair(before, published, published, False, names, dict(released.domains), attributes, taxonomies)
