"""Public margins: known totals of a population by the values of a column, declared with their source."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal import summaries
from shoal.columns.attribute import RECORDS, SOURCES, Attribute
from shoal.decimals import exact
from shoal.display import displayed
from shoal.errors import OptionError, closest
from shoal.text import Message

# how far the sums of two margins may be apart: published totals are rounded
_SAME = Fraction(1, 1000)


@displayed(summaries.of_margin)
@dataclass(frozen=True, slots=True)
class Margin:
    """How many people of the population have each value of a column, as everybody knows.

    >>> Margin.from_dict({"column": "sex", "totals": {"f": 510, "m": 490}, "source": "law"}).size
    Fraction(1000, 1)
    """

    column: str
    totals: tuple[tuple[str, Fraction], ...]
    source: str

    @classmethod
    def from_dict(cls, raw: Any) -> Margin:
        """A margin as a schema file writes it.

        Raises:
            OptionError: one line that names the column.
        """
        if not isinstance(raw, Mapping) or not isinstance(raw.get("column"), str):
            raise OptionError("every-margin-entry-needs-column")
        column, known = raw["column"], ("column", "totals", "source")
        for key in raw:
            if key not in known:
                raise OptionError("unknown-key", **_margin(column), key=key, hint=closest(key, known))
        totals = raw.get("totals")
        if not isinstance(totals, Mapping) or not totals:
            raise OptionError("margin-needs-totals", column=column)
        read = tuple(
            (str(value), exact(total, Message.of("margin-total", column=column, value=value)))
            for value, total in totals.items()
        )
        return cls(column, read, raw.get("source", ""))

    def to_dict(self) -> dict[str, Any]:
        return {"column": self.column, "totals": dict(self.totals), "source": self.source}

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise OptionError("margin-needs-source", column=self.column, allowed=tuple(SOURCES[:-1]))
        if self.source == RECORDS:
            raise OptionError("totals-these-records-not-public-take", column=self.column)
        for value, total in self.totals:
            if total <= 0:
                raise OptionError("total-above-0", column=self.column, value=value)

    @property
    def size(self) -> Fraction:
        """The number of people in the population."""
        return sum((total for _, total in self.totals), Fraction(0))


def check_margins(margins: tuple[Margin, ...], attributes: Mapping[str, Attribute]) -> None:
    """Refuse margins of unknown columns or values, and those that are about different populations."""
    seen: set[str] = set()
    for margin in margins:
        if margin.column in seen:
            raise OptionError("there-two-margins", column=margin.column)
        seen.add(margin.column)
        attribute = attributes.get(margin.column)
        if attribute is None:
            hint = closest(margin.column, list(attributes))
            raise OptionError("schema-describes-no-such-column", **_margin(margin.column), hint=hint)
        if attribute.kind_facts.ranged:
            raise OptionError("margins-names-column", column=margin.column, found=attribute.kind)
        known = attribute.ordered or (attribute.tree.values if attribute.tree is not None else ())
        for name, _ in margin.totals if known else ():
            if name not in known:
                raise OptionError(
                    "margins-column-no-value", column=margin.column, found=name, hint=closest(name, known)
                )
    for first, other in itertools.pairwise(margins):
        if abs(first.size - other.size) > _SAME * first.size:
            raise OptionError(
                "margins-about-populations-different-size",
                column=first.column,
                other=other.column,
                size=float(first.size),
                other_size=float(other.size),
            )


def _margin(column: str) -> dict[str, Any]:
    """Which margin an error is about, as facts of it."""
    return {"where": Message.of("in-margin", column=column), "column": column}
