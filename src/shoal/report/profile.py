"""How much detail a released table still has: a table comes in, the number of its different rows leaves."""

from __future__ import annotations

from shoal.evaluation.anonymity import actual_k
from shoal.report.source import Counted
from shoal.report.subject import Subject

# values (rows times columns) up to which equal rows are counted
_COUNTED = 5_000_000


def different_rows(subject: Subject) -> int | None:
    """How many different rows the released table has; None where counting would take long."""
    table = subject.table
    if isinstance(table.records, Counted):
        return table.records.different
    if table.path is not None or not subject.columns or table.n * len(subject.columns) > _COUNTED:
        return None
    return actual_k(table, subject.columns).groups
