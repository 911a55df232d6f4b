"""Strata: columns whose values divide a table come in, the rows of each stratum leave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.display import internal
from shoal.errors import OptionError
from shoal.evaluation.anonymity import column_codes
from shoal.evaluation.groups import row_groups
from shoal.method.method import Method


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """The rows of one stratum.

    Attributes:
        name: what they have in common, in words: "region=north".
        rows: their places among the rows that take part.
    """

    name: str
    rows: NDArray[np.int64]


def strata_of(method: Method, described: Described) -> tuple[Stratum, ...]:
    """The strata of a table, in the order of their values; the whole table as one where no column divides it."""
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


def check_strata(method: Method, described: Described, least: int) -> None:
    """Refuse strata that are smaller than a group must be."""
    if not method.strata:
        return
    for stratum in strata_of(method, described):
        if stratum.rows.size < least:
            raise OptionError(
                f"strata: the stratum {stratum.name} has {stratum.rows.size} "
                f"row{'s' if stratum.rows.size > 1 else ''}, fewer than k = {least}: join strata (recode the column), "
                "or lower k.",
                option="strata",
            )


def strata_words(method: Method) -> tuple[str, ...]:
    """What a statement says about strata."""
    if not method.strata:
        return ()
    return (
        f"Groups were made within strata, the combinations of values of {', '.join(method.strata)}: no group has rows "
        "of two strata, so the stratum of a row tells no more than its group does.",
    )
