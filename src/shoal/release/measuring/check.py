"""Check in parts: a table that is never in memory comes in, the same levels of protection as in memory leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import narwhals as nw

from shoal.columns.schema import Schema
from shoal.errors import OptionError
from shoal.evaluation.checks import asked_columns, check_levels, checked
from shoal.evaluation.disclosure.measure import figures_of_sizes
from shoal.evaluation.measured import Check, Closeness
from shoal.io import Table
from shoal.progress import Progress
from shoal.release.measuring.closeness import Secret, measure_closeness
from shoal.release.measuring.groups import Grouping, count_groups
from shoal.release.measuring.side import Side
from shoal.text import Message


def check_in_parts(
    side: Side,
    quasi: Sequence[str] | None,
    confidential: Sequence[str] | None,
    schema: Schema | None,
    levels: Mapping[str, float | None],
    tell: Progress,
) -> Check:
    """The protection a table reaches, from sizes of groups and what the worst of them say.

    Two passes, and two more for confidential columns. Risks of weighted records and special uniques are left out, and a
    line says so. Persons with several rows are refused.
    """
    table = side.table()
    known, secret = asked_columns(table, quasi, confidential, schema)
    check_levels(levels, secret)
    unit = _by_role(table, schema, "unit")
    if unit is not None:
        raise OptionError("column-unit-persons-counted-side-side", column=unit, unit=unit)
    claimed = Grouping(known)
    # the risk takes an empty text for a missing value
    told_apart = any(isinstance(table.dtype(name), (nw.String, nw.Categorical, nw.Enum)) for name in known)
    coarse = Grouping(known, blank_missing=True) if told_apart else claimed
    groupings = [claimed, coarse] if told_apart else [claimed]
    counted = count_groups(side, groupings, tell)
    found: dict[str, Closeness] = {}
    least: dict[str, dict[str, float]] = {}
    if secret:
        secrets = [Secret.of(table, name, schema) for name in secret]
        found, least = measure_closeness(side, secrets, groupings, tell)
    weight = _by_role(table, schema, "weight")
    disclosure = None if weight is not None else figures_of_sizes(known, *counted[-1], least)
    told = (
        Message("special-uniques-not-in-parts")
        if weight is None
        else Message.of("risk-of-weights-not-in-parts", column=weight)
    )
    return checked(known, *counted[0], found, disclosure, levels, (told,))


def _by_role(table: Table, schema: Schema | None, role: str) -> str | None:
    """The one column of a role that the table has."""
    attributes = () if schema is None else schema.attributes
    return next((a.name for a in attributes if a.role == role and a.name in table.names), None)
