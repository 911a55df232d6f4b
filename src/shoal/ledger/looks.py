"""Looks in the ledger: measurements of a release are about to be shown, and later releases of its table know it.

A look costs nothing. But who saw what a release lost, and makes another one, chose by what the records said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from fractions import Fraction

from shoal.ledger.entry import Entry, canonical
from shoal.ledger.ledger import Ledger, open_ledger
from shoal.ledger.operations import Charge

_FREE = Fraction(0)


def note_look(address: str, dataset: str, table: str, columns: Iterable[str], shown_by: str) -> int:
    """Write down, before they are shown, that measurements against the original are shown.

    Args:
        address: of a ledger.
        dataset: whose budget it is there. A look opens no budget: it knows no relation, unit or currency.
        table: fingerprint of the original.
        columns: that were measured.
        shown_by: the command, such as "evaluate".

    Returns:
        The number of the entry.

    Raises:
        LedgerError: there is no such ledger, or no such data set in it.
    """
    content = canonical({"look": shown_by, "table": table, "columns": sorted(columns)})
    with closing(open_ledger(address, create=False)) as ledger:
        return ledger.charge(Charge(dataset, "", content, epsilon=_FREE, kind="look")).charge


def looked_at(ledger: Ledger, table: str, columns: set[str]) -> bool:
    """Whether measurements of the same table, with one of these columns, were shown before."""
    return any(_shows(entry, table, columns) for name in ledger.datasets() for entry in ledger.entries(name))


def _shows(entry: Entry, table: str, columns: set[str]) -> bool:
    if entry.kind not in ("release", "look"):
        return False
    earlier = json.loads(entry.content)
    shown = entry.kind == "look" or earlier.get("measured", False)
    return shown and earlier["table"] == table and not columns.isdisjoint(earlier["columns"])
