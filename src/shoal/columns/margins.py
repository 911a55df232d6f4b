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
from shoal.errors import OptionError, did_you_mean

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
            raise OptionError("every [[margin]] entry needs a column.")
        where = f"the margin of '{raw['column']}'"
        for key in raw:
            if key not in ("column", "totals", "source"):
                raise OptionError(
                    f"{where}: unknown key '{key}'.{did_you_mean(key, ('column', 'totals', 'source'))}"
                )
        totals = raw.get("totals")
        if not isinstance(totals, Mapping) or not totals:
            raise OptionError(f"{where} needs totals, a table of values and numbers of people.")
        read = tuple((str(name), exact(total, f"{where}: '{name}'")) for name, total in totals.items())
        return cls(raw["column"], read, raw.get("source", ""))

    def to_dict(self) -> dict[str, Any]:
        return {"column": self.column, "totals": dict(self.totals), "source": self.source}

    def __post_init__(self) -> None:
        where = f"the margin of '{self.column}'"
        if self.source not in SOURCES:
            raise OptionError(
                f"{where} needs a source, one of {', '.join(SOURCES[:-1])}: totals must be public."
            )
        if self.source == RECORDS:
            raise OptionError(f"{where}: totals of these records are not public; take them from elsewhere.")
        for name, total in self.totals:
            if total <= 0:
                raise OptionError(f"{where}: the total of '{name}' must be above 0: leave such a value out.")

    @property
    def size(self) -> Fraction:
        """The number of people in the population."""
        return sum((total for _, total in self.totals), Fraction(0))


def check_margins(margins: tuple[Margin, ...], attributes: Mapping[str, Attribute]) -> None:
    """Refuse margins of unknown columns or values, and those that are about different populations."""
    seen: set[str] = set()
    for margin in margins:
        where = f"the margin of '{margin.column}'"
        if margin.column in seen:
            raise OptionError(f"there are two margins of '{margin.column}': keep one.")
        seen.add(margin.column)
        attribute = attributes.get(margin.column)
        if attribute is None:
            raise OptionError(
                f"{where}: the schema describes no such column.{did_you_mean(margin.column, list(attributes))}"
            )
        if attribute.kind_facts.ranged:
            raise OptionError(
                f"{where}: margins are for names, and the column is {attribute.kind}: recode it."
            )
        known = attribute.ordered or (attribute.tree.values if attribute.tree is not None else ())
        for name, _ in margin.totals if known else ():
            if name not in known:
                raise OptionError(f"{where}: the column has no value '{name}'.{did_you_mean(name, known)}")
    for first, other in itertools.pairwise(margins):
        if abs(first.size - other.size) > _SAME * first.size:
            raise OptionError(
                f"the margins of '{first.column}' and '{other.column}' are about populations of different size "
                f"({float(first.size):g} and {float(other.size):g}): correct one."
            )
