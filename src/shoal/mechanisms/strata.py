"""Strata and units: which rows are protected together, and the internal report by stratum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described
from shoal.display import internal
from shoal.errors import OptionError
from shoal.mechanisms.method import Method, Rebuilt
from shoal.partition import column_codes, most_rows_of_a_unit, places, row_groups, units_of_groups
from shoal.text import Message


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """The rows of one stratum.

    Attributes:
        name: their common values, as text: "region=north".
        rows: their indices among the rows that take part.
    """

    name: str
    rows: NDArray[np.int64]

    @property
    def where(self) -> Message | None:
        """The stratum as a phrase; None for the whole table."""
        return Message.of("the-stratum", name=self.name) if self.name else None


def strata_of(method: Method, described: Described) -> tuple[Stratum, ...]:
    """The strata of a table, in the order of their values; the whole table as one if no column divides it."""
    if not method.strata:
        return (Stratum("", np.arange(described.n)),)
    table = described.table
    for name in method.strata:
        table.known(name)
    kept = np.arange(table.n) if described.kept is None else described.kept
    groups = row_groups([column_codes(table, name)[kept] for name in method.strata])
    texts = [table.series(name).to_list() for name in method.strata]
    found = []
    for label in range(groups.sizes.size):
        rows = np.flatnonzero(groups.labels == label)
        first = int(kept[rows[0]])
        words = [f"{name}={own[first]}" for name, own in zip(method.strata, texts, strict=True)]
        found.append(Stratum(", ".join(words), rows))
    return tuple(sorted(found, key=lambda stratum: stratum.name))


def units_of(described: Described) -> NDArray[np.int64] | None:
    """The person of each row that takes part, by number; None if every row is a separate person.

    That is the case without a unit column. If unit values do not repeat, counting persons and counting rows is the
    same; for records held elsewhere there is nothing to count, and engines refuse persons with several rows.
    """
    unit = described.provenance.unit
    table = described.table
    if unit is None or table.records is not None or not described.n:
        return None
    codes = column_codes(table, unit)
    found = places(codes if described.kept is None else codes[described.kept])
    return found if int(found.max()) + 1 < found.size else None


def counted_message(described: Described) -> Message:
    """The unit in which groups are counted: rows, or persons if a unit is declared."""
    return Message("in-rows" if described.provenance.unit is None else "in-persons")


def check_persons(method: Method, described: Described, least: int, *, even: bool) -> None:
    """Refuse a table with too few persons for one group, or with too many rows of one person.

    Args:
        least: the largest number of persons that a group needs.
        even: no person may have more than one row in `least` of a group, which bounds the probability of a value.
    """
    units = units_of(described)
    if units is None:
        return
    unit = described.provenance.unit
    for stratum in strata_of(method, described):
        own = np.zeros(stratum.rows.size, dtype=np.int64), units[stratum.rows]
        where = stratum.where or Message("the-table")
        way_out = Message("join-strata-or-lower-k" if stratum.name else "lower-k")
        if int(units_of_groups(*own)[0]) < least:
            raise OptionError(
                "k-larger-than-number-persons-values",
                option="k",
                least=least,
                where=where,
                unit=unit,
                way_out=way_out,
            )
        if even and stratum.rows.size < least * int(most_rows_of_a_unit(*own)[0]):
            raise OptionError(
                "somebody-value-more-than-row-k",
                option="k",
                unit=unit,
                least=least,
                where=where,
                way_out=way_out,
            )


def check_strata(method: Method, described: Described, least: int) -> None:
    """Refuse strata that are smaller than the minimum group size."""
    if not method.strata:
        return
    for stratum in strata_of(method, described):
        if stratum.rows.size < least:
            raise OptionError(
                "strata-stratum-row-fewer-than-k",
                option="strata",
                stratum=stratum.name,
                size=stratum.rows.size,
                least=least,
            )


def strata_terms(method: Method) -> tuple[Message, ...]:
    """Statement messages about strata."""
    return (Message.of("groups-within-strata", strata=method.strata),) if method.strata else ()


def by_stratum(method: Method, described: Described, rebuilt: Rebuilt) -> dict[str, Any]:
    """Rows, groups, smallest group and loss of every stratum, as private facts; empty without strata."""
    if not method.strata:
        return {}
    known = {facts["stratum"]: facts for facts in rebuilt.internal.get("strata", ())}
    names = [name for name in rebuilt.values if name not in method.strata]
    losses = _losses(described, rebuilt, names) if rebuilt.aligned else None
    found = []
    for stratum in strata_of(method, described):
        sizes = [_sizes(made.labels[stratum.rows]) for made in rebuilt.partitions]
        found.append(
            {
                "stratum": stratum.name,
                "rows": int(stratum.rows.size),
                **(
                    {
                        "groups": sum(own.size for own in sizes),
                        "smallest": min(int(own.min()) for own in sizes),
                    }
                    if sizes
                    else {}
                ),
                **({} if losses is None else {"loss": float(losses[stratum.rows].mean())}),
                **known.get(stratum.name, {}),
            }
        )
    return {"strata": found}


def _sizes(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(labels, return_counts=True)[1]


def _losses(described: Described, rebuilt: Rebuilt, names: list[str]) -> NDArray[np.float64]:
    """The loss of each record over some columns: squared change by the column's variance, 1 for another or no value."""
    found = np.zeros(described.n)
    for name in names:
        values = rebuilt.values[name]
        gaps = rebuilt.gaps.get(name, np.zeros(described.n, dtype=np.bool_))
        before = described.gaps.get(name, np.zeros(described.n, dtype=np.bool_))
        if described.attribute(name).kind_facts.ordered:
            original = described.original(name)
            there = original[~before]
            variance = float(there.var()) if there.size else 0.0
            lost = (values - original) ** 2 / (variance or 1.0)
        else:
            lost = (values != described.codes(name)).astype(np.float64)
        lost = np.where(gaps, 1.0, np.nan_to_num(lost))
        found += np.where(before, 0.0, lost)
    return found / max(1, len(names))
