"""What leaves the house: protected values come in, rows in random order as the columns store them leave.

What errors are measured on stays inside; it is made of the same values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.column import restored
from shoal.columns.declaration import Declaration
from shoal.columns.describe import Described
from shoal.columns.missing import with_gaps
from shoal.columns.provenance import public_attribute
from shoal.columns.schema import Schema
from shoal.mechanisms.base import Rebuilt
from shoal.mechanisms.method import Method
from shoal.noise import Source


def published_columns(
    method: Method, described: Described, rebuilt: Rebuilt, source: Source
) -> dict[str, NDArray[Any]]:
    """What leaves the house: rows in random order, values as the columns store them."""
    orders = _row_orders(method, rebuilt, source)
    found: dict[str, NDArray[Any]] = {}
    for column, values in rebuilt.values.items():
        order = orders[column]
        gaps = _gaps(described, rebuilt, column, values)
        computed = column not in rebuilt.unchanged
        if gaps is None:
            found[column] = described.stored(
                column, values[order], clip=method.output.clip, computed=computed
            )
            continue
        # no type holds "nothing" until the values are objects
        tree = described.tree(column)
        any_value = float(described.lattices[column].lo) if tree is None else float(tree.domain[0])
        filled = np.where(gaps, any_value, values)
        made = described.stored(column, filled[order], clip=method.output.clip, computed=computed)
        found[column] = with_gaps(made, gaps[order])
    return found


def one_table(
    method: Method, described: Described, rebuilt: Rebuilt, source: Source
) -> tuple[Any, dict[str, Any]]:
    """The released table, and no further ones."""
    released = published_columns(method, described, rebuilt, source)
    return described.released_frame(released, generalise=method.output.generalise, emptied=rebuilt.gaps), {}


def _gaps(
    described: Described, rebuilt: Rebuilt, column: str, values: NDArray[np.float64]
) -> NDArray[np.bool_] | None:
    """The rows that have no value of a column in the release, in input order."""
    if column in described.flagged:
        return np.isnan(values)
    return rebuilt.gaps.get(column, described.gaps.get(column))


def measured(described: Described, rebuilt: Rebuilt) -> Any:
    """Unrounded values in input order: numbers as they are, concepts by name, gaps as gaps."""
    columns: dict[str, NDArray[Any]] = {}
    gaps = {**described.gaps, **rebuilt.gaps}
    for column, values in (rebuilt.measured or rebuilt.values).items():
        found: NDArray[Any] = values
        if described.tree(column) is not None:
            found = restored(described.table, described.attribute(column), values)
            if column in gaps:
                found = with_gaps(found, gaps[column])
        elif column in gaps:
            found = np.where(gaps[column], np.nan, values)
        columns[column] = found
    return described.table.like(columns, keep_dtypes=False)


def _row_orders(method: Method, rebuilt: Rebuilt, source: Source) -> dict[str, NDArray[np.int64]]:
    """A random row order: one for all columns, or one for each when columns are not linked."""
    rows = next(iter(rebuilt.values.values())).size
    if method.output.linked:
        return dict.fromkeys(rebuilt.values, source.permutation(rows))
    return {column: source.permutation(rows) for column in rebuilt.values}


def public_schema(described: Described, declared: Declaration) -> Schema:
    """What a recipe may say: declared facts only, so a domain taken from the data stays out.

    It describes the released columns; `before` are those of the table as it is read, with the steps between.
    """
    private = described.circumstances.private_domains
    attributes = [public_attribute(a, private_domain=a.name in private) for a in described.attributes]
    whole = described.schema
    if declared.schema is None or whole is None:
        return Schema(tuple(attributes), declared.file)
    weight = whole.weight
    kept = [] if whole.unit is None else [whole.unit]
    if weight is not None and weight.name not in described.columns:
        kept.append(weight)
    names = {a.name for a in (*attributes, *kept)}
    margins = tuple(margin for margin in whole.margins if margin.column in names)
    # a column that is dropped need not be described; steps on others that are not released have no place here
    steps = tuple(s.public() for s in whole.declared.steps if s.do == "drop" or s.column in names)
    told = whole.publication
    released = Schema((*attributes, *kept), declared.file, (), margins, publication=told)
    if not steps:
        return released
    raw = {a.name: public_attribute(a, private_domain=False) for a in whole.declared.attributes}
    changed = {step.column for step in steps}
    before = tuple(raw[a.name] if a.name in changed else a for a in released.attributes)
    return replace(released, before=Schema(before, declared.file, steps, margins, publication=told))
