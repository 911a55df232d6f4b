"""Tiny worlds for tests of queries: every table there is, every neighbour it has."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import pyarrow as pa

from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.noise import Source
from shoal.query.facts import Neighbours, Offer, QueryTable, prepare

# a value and a group; None is a missing value
Row = tuple[Any, ...]
GROUPS = ("a", "b")


def schema(lo: object, hi: object, step: object = 1) -> Schema:
    return Schema(
        (
            Attribute("value", lo=Fraction(lo), hi=Fraction(hi), step=Fraction(step)),
            Attribute("group", "nominal", "other", type="text"),
        )
    )


@cache
def table(rows: tuple[Row, ...], declared: Schema, neighbours: Neighbours) -> QueryTable:
    types = {"numeric": pa.float64(), "nominal": pa.string(), "ordinal": pa.string(), "date": pa.string()}
    columns = {
        attribute.name: pa.array(
            [None if row[i] is None else _cell(row[i], attribute.kind) for row in rows], types[attribute.kind]
        )
        for i, attribute in enumerate(declared.attributes)
    }
    return prepare(pa.table(columns), declared, neighbours)


def _cell(value: Any, kind: str) -> Any:
    return float(value) if kind == "numeric" else str(value)


def rows_of(declared: Schema) -> list[Row]:
    """Every record of the world, with missing values."""
    lattice = declared["value"].lattice(integer=False)
    values = [float(lattice.lo + i * lattice.step) for i in range(lattice.steps + 1)]
    return list(product([*values, None], [*GROUPS, None]))


def tables_of(rows: list[Row], sizes: list[int]) -> Iterator[tuple[Row, ...]]:
    for size in sizes:
        yield from product(rows, repeat=size)


def neighbours_of(
    records: tuple[Row, ...], rows: list[Row], relation: Neighbours
) -> Iterator[tuple[Row, ...]]:
    """All tables that differ in one record; those with one less stand for those with one more."""
    for place in range(len(records)):
        if relation == "add-remove":
            yield records[:place] + records[place + 1 :]
        else:
            for row in rows:
                if row != records[place]:
                    yield (*records[:place], row, *records[place + 1 :])


def drawn(offer: Offer, rows: QueryTable, source: Source) -> Any:
    """One answer, for which all is spent that is reserved."""
    account = offer.account(rows.facts, source)
    found = offer.run(rows, account)
    assert account.unspent() == {}
    assert account.spent() == offer.epsilon
    return found
