"""A written table comes in, nothing leaves, or an error when it does not reach what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.columns.schema import Schema
from shoal.errors import ClaimError
from shoal.io import Table
from shoal.mechanisms.kanonymity.algorithms.diversity import lacks_persons
from shoal.mechanisms.strata import Stratum
from shoal.partition import Partition
from shoal.partition.groups import (
    count_groups,
    distinct_values,
    ratio_distances,
    row_groups,
    units_of_groups,
    within,
)
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.evaluation.measured import Check


def reached(
    check: Callable[..., Check],
    table: Table,
    quasi: Sequence[str],
    confidential: Sequence[str],
    described: Described,
    *,
    k: int,
    l: int | None = None,  # noqa: E741
    t_emd: float | None = None,
) -> None:
    """Measure the levels of a table that was read back from disk.

    Raises:
        ClaimError: a level is not reached; the table must not be published.
    """
    found = check(
        table,
        quasi,
        confidential if l is not None or t_emd is not None else [],
        schema=Schema(described.attributes),
        k=k,
        l=l,
        t_emd=t_emd,
    )
    if not found.met:
        missed = tuple(requirement.words for requirement in found.requirements if not requirement.met)
        raise _broken("levels-missed", missed=missed)


def linked_tables_hold(
    quasi: Table,
    confidential: Table,
    names: Sequence[str],
    k: int,
    l: int | None,  # noqa: E741
    t: int | None,
) -> None:
    """Measure two linked tables that were read back from disk: group sizes, values of each group, ratios.

    Raises:
        ClaimError: a level is not reached, or the tables do not fit together.
    """
    from shoal.partition.groups import column_codes

    group, count = confidential.names[0], confidential.names[-1]
    members = np.bincount(quasi.numeric(group).astype(np.int64))
    groups, counts = (confidential.numeric(name).astype(np.int64) for name in (group, count))
    if not np.array_equal(np.bincount(groups, weights=counts, minlength=members.size), members):
        raise _broken("tables-count-differently")
    least = int(members[members > 0].min())
    if least < k:
        raise _broken("level-missed", level="k", asked=k, found=least)
    records = np.repeat(np.unique(groups, return_inverse=True)[1], counts)
    columns = [column_codes(confidential, name) for name in names]
    if l is not None:
        for name, codes in zip(names, columns, strict=True):
            found = int(distinct_values(count_groups(records, _numbered(np.repeat(codes, counts)))).min())
            if found < l:
                raise _broken("level-missed-of", level="l", asked=l, column=name, found=found)
    if t is not None:
        combined = np.repeat(row_groups(columns).labels, counts)
        ratio = float(ratio_distances(count_groups(records, _numbered(combined))).max())
        if not within(ratio, t):
            raise _broken("level-missed", level="t", asked=t, found=f"{ratio:.6g}")


def groups_hold(partition: Partition, units: NDArray[np.int64] | None, k: int, *, even: bool) -> None:
    """Count the persons of groups before values are swapped in them, or released by group.

    Raises:
        ClaimError: a group holds too few, or too many rows of one; the table must not be published.
    """
    if units is not None and lacks_persons(units, k, even=even)(partition).any():
        raise ClaimError("group-would-not-hold-persons-claim", k=k)


def persons_hold(
    columns: Sequence[NDArray[np.float64] | NDArray[np.int64]],
    strata: Sequence[Stratum],
    units: NDArray[np.int64],
    k: int,
) -> None:
    """Count the persons behind every combination of values that is about to be released, in each stratum.

    Whose row it is leaves with no release, so this is measured before one is written.

    Raises:
        ClaimError: fewer than k share a combination; the table must not be published.
    """
    for stratum in strata:
        groups = row_groups([column[stratum.rows] for column in columns])
        found = int(units_of_groups(groups.labels, units[stratum.rows]).min())
        if found < k:
            raise ClaimError("combination-quasi-identifiers-would-shared-persons", found=found, k=k)


def _numbered(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _broken(code: str, **facts: Any) -> ClaimError:
    return ClaimError("written-table-read-back-does-not", missed=Message(code, facts))
