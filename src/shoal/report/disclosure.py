"""Disclosure risk before and after: the original and the released table come in, their figures side by side leave."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from shoal.columns.schema import Schema
from shoal.display import internal
from shoal.errors import CancelledError, ShoalError
from shoal.evaluation.disclosure import RiskFigures, risk
from shoal.io import Table
from shoal.progress import Progress, silent
from shoal.report.subject import Subject

# a table, its keys, what is declared about it, and its sensitive columns
Measure = Callable[[Table, Sequence[str], Schema, Sequence[str]], RiskFigures]


@internal()
@dataclass(frozen=True, slots=True)
class Disclosure:
    """Figures of both tables by the same keys.

    Attributes:
        keys: the quasi-identifiers that both tables have.
        titles: what the columns of values are about.
        lines: name, one value for each title, meaning.
        conditions: what the figures rest on.
    """

    keys: tuple[str, ...]
    titles: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...], str], ...]
    conditions: tuple[str, ...]


def disclosed(
    before: Table,
    subject: Subject,
    schema: Schema | None = None,
    progress: Progress = silent,
    measure: Measure | None = None,
) -> Disclosure | None:
    """The risk of both tables by the quasi-identifiers; None where there are none, or it cannot be measured.

    A missing value is a value of its own, as in the claim of k-anonymity. Both tables are taken for the population
    unless both have weights, and their rows are counted; an original whose weights were not released is measured with
    them too, and one in which a column says whose row it is, by persons.

    Args:
        before: the original rows.
        subject: the released table and what is public about it.
        schema: what was declared about the original, with the roles of columns that were not released.
        measure: how the figures of a table are measured; by default in memory.
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
    whole = schema or subject.schema
    # what is public names the weight and the unit, which the original has and the released table has not
    gone = {
        role
        for role in ("weight", "unit")
        for a in whole.attributes
        if a.role == role and a.name in before.names and a.name not in subject.table.names
    }
    alike = _without(subject.schema, gone)
    tables = {"original": (before, alike), "released": (subject.table, subject.schema)}
    if "weight" in gone:
        tables = {"original, weighted": (before, _without(whole, {"unit"})), **tables}
    if "unit" in gone and measure is None:
        tables = {"original, persons": (before, _without(whole, {"weight"})), **tables}
    try:
        found = {
            title: (measure or _in_memory)(table, keys, known, sensitive)
            for title, (table, known) in tables.items()
        }
    except CancelledError:
        raise
    except ShoalError:
        # such as a weight that is missing: a page without this section is better than none
        return None
    return Disclosure(keys, tuple(found), _side_by_side(found), _conditions(found))


def _without(schema: Schema, roles: Collection[str]) -> Schema:
    return replace(schema, attributes=tuple(a for a in schema.attributes if a.role not in roles))


def _in_memory(table: Table, keys: Sequence[str], schema: Schema, sensitive: Sequence[str]) -> RiskFigures:
    return risk(table, keys, schema=schema, sensitive=sensitive, missing="category").figures


def _side_by_side(found: Mapping[str, RiskFigures]) -> tuple[tuple[str, tuple[str, ...], str], ...]:
    """Figures by name; a table without weights or households has fewer of them."""
    values = {title: {name: value for name, value, _ in one.lines()} for title, one in found.items()}
    meanings = {name: meaning for one in found.values() for name, _, meaning in one.lines()}
    return tuple(
        (name, tuple(own.get(name, "-") for own in values.values()), meaning)
        for name, meaning in meanings.items()
    )


def _conditions(found: Mapping[str, RiskFigures]) -> tuple[str, ...]:
    words = [one.conditions for one in found.values()]
    if len(set(words)) == 1:
        return (words[0],)
    return tuple(f"{title.capitalize()}: {told}" for title, told in zip(found, words, strict=True))
