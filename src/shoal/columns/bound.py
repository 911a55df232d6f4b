"""Contribution bounding: at most a given number of rows of each unit take part, chosen by a keyed order."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import Attribute
from shoal.columns.column import texts
from shoal.columns.declaration import as_declared
from shoal.columns.schema import Schema
from shoal.errors import InputError
from shoal.io import Table
from shoal.numbers import Integers

# in bytes: as long as the digests
KEY_BYTES = 32
# length of a date as text, year-month-day
_DATE = 10


def fresh_key(seed: int | None = None) -> bytes:
    """A key for the order of a unit's rows: from the system's entropy, or from the seed of an experiment.

    >>> len(fresh_key()), fresh_key() == fresh_key(), fresh_key(1) == fresh_key(1)
    (32, False, True)
    """
    return (
        secrets.token_bytes(KEY_BYTES) if seed is None else hashlib.sha256(f"bound {seed}".encode()).digest()
    )


def bounded_rows(
    table: Table, schema: Schema, kept: Integers | None, most: int, key: bytes, na: Sequence[str] = ()
) -> Integers | None:
    """The rows that take part if each unit has at most `most` of them; None for all rows of the table.

    The rows of a unit are ordered by a keyed hash of the unit and of their own content, and the first ones take part.
    The content is that of all columns with a declared type, as text, whether or not they are released: releases and
    answers from the same table with the same key choose the same rows.

    Args:
        table: the table after the steps of its schema.
        schema: its declarations, after the steps.
        kept: the rows that take part otherwise; None for all.
        most: the largest number of rows of one unit.
        key: of the hash.
        na: texts that stand for a missing value.

    Guarantee:
        The choice among a unit's rows depends on the key and on that unit's rows alone, neither on another unit nor on
        their order. A table with one unit more or less has at most `most` rows more or less afterwards. This holds for
        every key that does not depend on the records, also for a known one. Proof: docs/proofs/units.md#2-bounding.

    Cost:
        One hash for each row of a unit that has too many.
    """
    rows = np.arange(table.n) if kept is None else kept
    names, codes = units_of(table, schema, na)
    own = codes[rows]
    counts = np.bincount(own, minlength=len(names))
    if not counts.size or int(counts.max()) <= most:
        return kept
    crowded = rows[counts[own] > most]
    chosen = first_rows(codes[crowded], row_digests(table, schema, crowded, key, na), most)
    return np.sort(np.concatenate((rows[counts[own] <= most], crowded[chosen])))


def first_rows(units: Integers, digests: NDArray[np.uint64], most: int) -> Integers:
    """Places of the rows that are among the first `most` of their unit.

    Equal digests belong to rows that are equal in all declared columns: the first of them is taken.

    Args:
        units: the number of each row's unit.
        digests: of the rows, as `row_digests` gives them.
        most: the largest number of rows of one unit.

    >>> first_rows(np.array([0, 1, 0, 0]), np.array([[5, 0], [9, 0], [3, 0], [4, 0]], dtype=np.uint64), 2).tolist()
    [2, 3, 1]
    """
    order = np.lexsort((digests[:, 1], digests[:, 0], units))
    ordered = units[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    ranks = np.arange(ordered.size) - np.repeat(starts, np.diff(np.append(starts, ordered.size)))
    return order[ranks < most]


def units_of(table: Table, schema: Schema, na: Sequence[str] = ()) -> tuple[list[str], Integers]:
    """The units as text, in their declared type, and the number of each row's unit.

    Raises:
        InputError: a row has none.
    """
    unit = schema.unit
    assert unit is not None
    names, codes = texts(as_declared(table, [unit], na), unit.name)
    if (codes < 0).any():
        raise InputError("unit-column-missing-values", column=unit.name)
    return names, codes


def content_columns(table: Table, schema: Schema) -> list[Attribute]:
    """The columns whose values order the rows of a unit: those with a declared type.

    What is read off the records could depend on another unit's rows.
    """
    return [
        found
        for attribute in sorted(schema.attributes, key=lambda one: one.name)
        if attribute.name in table.names
        and attribute.role != "unit"
        and (found := attribute.with_declared_type()).type is not None
        and not found.from_records
    ]


def row_digests(
    table: Table, schema: Schema, rows: Integers, key: bytes, na: Sequence[str] = ()
) -> NDArray[np.uint64]:
    """The keyed hash of each of these rows and its unit, as two numbers."""
    names, codes = units_of(table, schema, na)
    declared = content_columns(table, schema)
    typed = as_declared(table, declared, na)
    columns = []
    for attribute in declared:
        values, which = texts(typed, attribute.name)
        if attribute.type == "date":
            # some libraries store a date with a time
            values = [value[:_DATE] for value in values]
        known = np.array([*values, None], dtype=object)
        columns.append(known[which[rows]])
    digests = bytearray()
    for own, *content in zip(codes[rows].tolist(), *columns, strict=True):
        told = json.dumps([names[own], content], ensure_ascii=False, separators=(",", ":"))
        digests += hmac.digest(key, told.encode(), "sha256")[:16]
    return np.frombuffer(bytes(digests), dtype=">u8").astype(np.uint64).reshape(-1, 2)
