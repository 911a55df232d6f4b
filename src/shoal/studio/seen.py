"""What a table shows of its columns, computed once: counts, lists, drawings and scales.

All of it is private, and shown on request only, which the journal of use notes (`Desk.show`).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from shoal.columns.attribute import Attribute
from shoal.columns.draft import common_range
from shoal.io import Table
from shoal.studio import facts
from shoal.studio.scales import Scale, around


class Seen:
    """The columns of one table.

    Attributes:
        looked: the columns whose values somebody asked to see.
    """

    def __init__(self, table: Table, looked: AbstractSet[str]) -> None:
        self.table, self.looked = table, looked
        self._gaps: dict[str, int] = {}
        self._listed: dict[Attribute, dict[str, Any]] = {}
        self._pictures: dict[Any, dict[str, Any]] = {}
        self._scales: dict[str, tuple[bool, Scale]] = {}

    def gaps(self, attribute: Attribute) -> int:
        """How many cells of a column are missing."""
        if attribute.name not in self._gaps:
            self._gaps[attribute.name] = facts.gaps(self.table, attribute)
        return self._gaps[attribute.name]

    def listed(self, attribute: Attribute) -> dict[str, Any]:
        """The values of a column of names."""
        if attribute not in self._listed:
            self._listed[attribute] = facts.listed(self.table, attribute)
        return self._listed[attribute]

    def picture(self, attribute: Attribute) -> dict[str, Any]:
        """The values of a column with a range, drawn on its scale."""
        key = attribute, self.scale(attribute)
        if key not in self._pictures:
            self._pictures[key] = facts.histogram(self.table, *key)
        return self._pictures[key]

    def scale(self, attribute: Attribute) -> Scale | None:
        """The scale of a column with a range; it stays as it is while something is moved on it."""
        looked = attribute.name in self.looked
        declared = attribute.lo is not None and attribute.hi is not None
        ends = (float(attribute.lo or 0), float(attribute.hi or 0)) if declared else None
        kept, scale = self._scales.get(attribute.name, (None, None))
        if scale is not None and kept == looked and (ends is None or scale.holds(*ends)):
            return scale
        known = (
            [ends, facts.reach(self.table, attribute)] if looked else [ends or common_range(attribute.name)]
        )
        found = [float(end) for pair in known if pair is not None for end in pair]
        if not found:
            return None
        days, whole = attribute.kind_facts.days, attribute.type == "integer"
        made = around((min(found), max(found)), shown=looked, whole=whole, days=days)
        self._scales[attribute.name] = looked, made
        return made
