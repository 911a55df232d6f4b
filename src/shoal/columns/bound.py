"""Contribution bounding: at most a given number of rows of each unit take part, chosen by a keyed order."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.columns.column import texts
from shoal.columns.declaration import as_declared
from shoal.columns.schema import Schema
from shoal.io import Table
from shoal.numbers import Integers

# in bytes: as long as the digests
KEY_BYTES = 32


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
    unit = schema.unit
    assert unit is not None
    rows = np.arange(table.n) if kept is None else kept
    names, codes = texts(table, unit.name)
    own = codes[rows]
    counts = np.bincount(own, minlength=len(names))
    if not counts.size or int(counts.max()) <= most:
        return kept
    crowded = rows[counts[own] > most]
    digests = _digests(table, schema, crowded, names, codes, key, na)
    # equal digests belong to rows that are equal in all declared columns: either may be taken
    order = np.lexsort((digests[:, 1], digests[:, 0], codes[crowded]))
    ordered = codes[crowded][order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    ranks = np.arange(ordered.size) - np.repeat(starts, np.diff(np.append(starts, ordered.size)))
    chosen = np.concatenate((rows[counts[own] <= most], crowded[order[ranks < most]]))
    return np.sort(chosen)


def _digests(
    table: Table,
    schema: Schema,
    rows: Integers,
    names: Sequence[str],
    codes: Integers,
    key: bytes,
    na: Sequence[str],
) -> NDArray[np.uint64]:
    """The keyed hash of each of these rows, as two numbers."""
    # what is read off the records could depend on another unit's rows
    declared = [
        found
        for attribute in sorted(schema.attributes, key=lambda one: one.name)
        if attribute.name in table.names
        and attribute.role != "unit"
        and (found := attribute.with_declared_type()).type is not None
        and not found.from_records
    ]
    typed = as_declared(table, declared, na)
    columns = []
    for attribute in declared:
        values, which = texts(typed, attribute.name)
        known = np.array([*values, None], dtype=object)
        columns.append(known[which[rows]])
    digests = bytearray()
    for unit, *content in zip(codes[rows].tolist(), *columns, strict=True):
        told = json.dumps([names[unit], content], ensure_ascii=False, separators=(",", ":"))
        digests += hmac.digest(key, told.encode(), "sha256")[:16]
    return np.frombuffer(bytes(digests), dtype=">u8").astype(np.uint64).reshape(-1, 2)
