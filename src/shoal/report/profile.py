"""How much detail a released table still has: a table comes in, the number of its different rows leaves."""

from __future__ import annotations

from shoal.evaluation.anonymity import ActualK, actual_k
from shoal.report.subject import Subject

# values (rows times columns) up to which equal rows are counted
_COUNTED = 5_000_000


def equal_rows(subject: Subject) -> ActualK | None:
    """How many rows of the released table are alike; None where counting would take long."""
    table = subject.table
    if table.path is not None or not subject.columns or table.n * len(subject.columns) > _COUNTED:
        return None
    return actual_k(table, subject.columns)
