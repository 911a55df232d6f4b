"""The kinds of column, one record each: what its values are, and what the rest of the house may do with them.

A new kind is one entry here. Nobody else asks for a kind by its name: they ask the record for the fact that they need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from shoal.io import ColumnType

Kind = Literal["numeric", "ordinal", "nominal", "date"]
_NUMBERS: tuple[ColumnType, ...] = ("integer", "decimal")
_DAYS: tuple[ColumnType, ...] = ("date", "timestamp")


@dataclass(frozen=True, slots=True)
class ColumnKind:
    """What the values of a column are.

    Attributes:
        about: the kind in a few words.
        types: the types that such a column can be stored as; None for all, as names can be.
        own_types: those of them that no other kind is likelier to have.
        ordered: values lie on a lattice: they can be ranked, added up and blurred by noise. Otherwise they are names,
            and distances between them come from a taxonomy.
        ranged: the domain is a pair of ends, `lo` and `hi`.
        listed: the domain is a list of names in their order, and positions are places in it.
        days: values are days, shown as dates.
        measured: values are quantities, whose errors are stated in the column's own units.
        middle: what stands for several of them: their mean, the lower median, or the concept closest to all.
        cell: what a cell of a table holds, in a word.
    """

    about: str
    types: tuple[ColumnType, ...] | None
    own_types: tuple[ColumnType, ...] = ()
    ordered: bool = True
    ranged: bool = False
    listed: bool = False
    days: bool = False
    measured: bool = False
    middle: Literal["mean", "median", "concept"] = "mean"
    cell: str = "text"

    @property
    def axis(self) -> str:
        """How a drawing of such values counts along its axis."""
        return "date" if self.days else "linear"

    def takes(self, type: ColumnType | None) -> bool:
        """Whether such a column can be stored as a type."""
        return type is not None if self.types is None else type in self.types


KIND_FACTS: Mapping[Kind, ColumnKind] = {
    "numeric": ColumnKind("numbers", _NUMBERS, _NUMBERS, ranged=True, measured=True, cell="number"),
    "ordinal": ColumnKind("names in an order", None, listed=True, middle="median"),
    "date": ColumnKind("days", (*_DAYS, "text"), _DAYS, ranged=True, days=True, cell="date"),
    "nominal": ColumnKind("names without an order", None, ordered=False, middle="concept"),
}
KINDS: tuple[Kind, ...] = tuple(KIND_FACTS)
ORDERED_KINDS: tuple[Kind, ...] = tuple(name for name, facts in KIND_FACTS.items() if facts.ordered)


def kind_of_type(type: ColumnType) -> Kind:
    """The kind that a column of a type has where nothing else is known.

    >>> kind_of_type("decimal"), kind_of_type("timestamp"), kind_of_type("text")
    ('numeric', 'date', 'nominal')
    """
    return next((name for name, facts in KIND_FACTS.items() if type in facts.own_types), "nominal")
