"""The same table under two names: data sets and what the ledger knows come in, a refusal leaves, or nothing.

Two names have two budgets, and what the answers reveal about the same people adds up unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.ledger import Ledger
from shoal.query.server.guard import warn
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.query.facts import QueryTable
    from shoal.query.server.folder import Served

_ODD = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


def check_same_table(datasets: dict[str, Served]) -> dict[str, Served]:
    """Refuse a folder in which a table is served twice, whatever the format of its file and the order of its rows.

    Raises:
        OptionError: it names both data sets.
    """
    seen: dict[str, str] = {}
    for name, served in datasets.items():
        twin = next((seen[mark] for mark in _marks(served) if mark in seen), None)
        if twin is not None:
            _refuse(served, twin, Message.of("twin-served"))
        seen.update({mark: name for mark in _marks(served)})
    return datasets


def check_earlier_names(datasets: dict[str, Served], ledger: Ledger) -> None:
    """Refuse a table that the ledger knows under another name: a new name would bring a new budget.

    Raises:
        OptionError: it names the other one.
    """
    for other in ledger.datasets():
        marks = set(_fingerprints(ledger, other))
        for name, served in datasets.items():
            if name != other and served.fingerprint in marks:
                _refuse(served, other, Message.of("twin-in-ledger"))


def _refuse(served: Served, twin: str, how: Message) -> None:
    if twin in served.settings.same_table_as:
        warn("same table", dataset=served.name, twin=twin)
        return
    raise OptionError("data-set-holds-same-table", served=served.name, twin=twin, how=how)


def _fingerprints(ledger: Ledger, dataset: str) -> Iterator[str]:
    for entry in ledger.entries(dataset):
        if entry.kind == "terms" and (mark := json.loads(entry.content)["fingerprint"]):
            yield mark


def _marks(served: Served) -> tuple[str, str]:
    return served.fingerprint, rows_mark(served.table)


def rows_mark(table: QueryTable) -> str:
    """A mark of the rows of a table in any order: a sum over mixed-up rows. As private as the table."""
    rows = [np.full(table.n, odd) for odd in _ODD]
    for name in sorted((*table.positions, *table.codes)):
        values = table.positions[name].view(np.uint64) if name in table.positions else _texts(table, name)
        for number, odd in enumerate(_ODD):
            rows[number] = _mixed((rows[number] ^ values) * odd)
    names = ",".join(sorted((*table.positions, *table.codes)))
    sums = [int(part.sum(dtype=np.uint64)) for part in rows]
    return hashlib.sha256(f"{names}:{table.n}:{sums}".encode()).hexdigest()


def _texts(table: QueryTable, name: str) -> NDArray[np.uint64]:
    """A number for each label that does not follow from the order in which labels were met."""
    marks = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in (*table.names[name], "")]
    numbers = np.frombuffer(b"".join(marks), dtype=np.uint64)
    return np.asarray(numbers[table.codes[name]])


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return values ^ (values >> np.uint64(29))
