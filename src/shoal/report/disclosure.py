"""Disclosure risk before and after: the original and the released table come in, their figures side by side leave."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.errors import CancelledError, ShoalError
from shoal.evaluation.disclosure import RiskFigures, risk
from shoal.io import Table
from shoal.progress import Progress, silent
from shoal.report.subject import Subject


@dataclass(frozen=True, slots=True)
class Disclosure:
    """Figures of both tables by the same keys.

    Attributes:
        keys: the quasi-identifiers that both tables have.
        lines: name, value in the original, value in the released table, meaning.
        conditions: what the figures of each table rest on.
    """

    keys: tuple[str, ...]
    lines: tuple[tuple[str, str, str, str], ...]
    conditions: tuple[str, ...]


def disclosed(before: Table, subject: Subject, progress: Progress = silent) -> Disclosure | None:
    """The risk of both tables by the quasi-identifiers; None where there are none, or it cannot be measured.

    A missing value is a value of its own, as in the claim of k-anonymity.
    """
    keys = tuple(
        name
        for name in subject.columns
        if subject.attribute(name).role == "quasi-identifier" and name in before.names
    )
    if not keys:
        return None
    sensitive = [
        name
        for name in subject.columns
        if subject.attribute(name).role == "confidential"
        and not subject.attribute(name).kind_facts.measured
        and name in before.names
    ]
    progress("measuring the disclosure risk", 0, 1)
    try:
        original, released = (
            risk(table, keys, schema=subject.schema, sensitive=sensitive, missing="category").figures
            for table in (before, subject.table)
        )
    except CancelledError:
        raise
    except ShoalError:
        # such as a weight that is missing: a page without this section is better than none
        return None
    return Disclosure(keys, _side_by_side(original, released), _conditions(original, released))


def _side_by_side(original: RiskFigures, released: RiskFigures) -> tuple[tuple[str, str, str, str], ...]:
    after = {name: value for name, value, _ in released.lines()}
    # a released table without weights or households has fewer figures
    return tuple((name, value, after.get(name, "-"), meaning) for name, value, meaning in original.lines())


def _conditions(original: RiskFigures, released: RiskFigures) -> tuple[str, ...]:
    if original.conditions == released.conditions:
        return (original.conditions,)
    return f"Original: {original.conditions}", f"Released: {released.conditions}"
