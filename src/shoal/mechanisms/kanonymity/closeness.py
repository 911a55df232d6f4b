"""t-closeness by buckets: swap sensitive values inside groups that have nearly the bucket shares of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns import Described
from shoal.mechanisms.kanonymity.centroids import internal_facts
from shoal.mechanisms.kanonymity.columns import (
    Columns,
    columns_of,
    confidential_columns,
    groups_hold,
    named,
    refuse_masked_weight,
    with_role,
)
from shoal.mechanisms.kanonymity.grouping_algorithms import (
    any_of,
    close_groups,
    compound_buckets,
    lacks_closeness,
    lacks_persons,
    merge_until,
    nominal_buckets,
    ordered_buckets,
)
from shoal.mechanisms.kanonymity.methods import Anatomy, TCloseness
from shoal.mechanisms.kanonymity.swap_algorithms import permute_within
from shoal.mechanisms.method import Rebuilt
from shoal.mechanisms.strata import check_persons
from shoal.partition import Partition, count_groups, ratio_distances, units_of_groups
from shoal.privacy import Accountant, Plan
from shoal.progress import Progress
from shoal.text import Message


def plan(method: TCloseness, described: Described) -> Plan:
    """No budget; statement messages about the claim."""
    swapped = Message.of("swapped-inside-groups", columns=confidential_columns(method, described))
    return Plan({}, {}, (*bucket_terms(method, described), swapped))


def bucket_terms(method: TCloseness | Anatomy, described: Described) -> list[Message]:
    """Statement messages about the bound on buckets, and who is protected."""
    names = confidential_columns(method, described)
    assert method.t is not None
    code = "buckets-of-combinations" if len(names) > 1 else "buckets-of-values"
    shares = [] if described.provenance.unit is None else [Message("bound-for-persons")]
    return [Message.of(code, most=method.t + 1, columns=names), *shares, Message("prior-is-table")]


def run(
    method: TCloseness,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> Rebuilt:
    """Group records so that every bucket has nearly its share, and swap sensitive values inside groups.

    Guarantee:
        t-closeness by buckets, see `shoal.mechanisms.kanonymity.grouping_algorithms.close_groups`.

    Reference: the thesis, section 7.2.
    """
    names = confidential_columns(method, described)
    columns = columns_of(described, method.normalise)
    made, facts = groups_by_buckets(method, columns, names, progress)
    groups_hold(made, columns.units, method.size, even=False)
    owners = permute_within(made, account.free("values swapped inside groups"))
    return Rebuilt(
        values={name: values[owners] if name in names else values for name, values in columns.values.items()},
        partitions=[made],
        aligned=True,
        internal=internal_facts(columns, [made], facts),
        unchanged=frozenset(columns.values),
    )


def groups_by_buckets(
    method: TCloseness | Anatomy,
    columns: Columns,
    names: tuple[str, ...],
    progress: Progress,
    *,
    even: bool = False,
) -> tuple[Partition, dict[str, Any]]:
    """Groups that are close in the other columns and t-close in the sensitive ones, and the closeness they reach.

    If persons are counted, groups are merged until they hold k of them (`even`: see `lacks_persons`) and the shares
    of buckets among persons are within t, too; those among rows stay so, because groups are only merged.
    """
    assert method.t is not None
    known = with_role(columns.described, "quasi-identifier")
    points, buckets = columns.points(known), buckets_of(columns, names, method.t)
    made = close_groups(
        points,
        buckets,
        method.t,
        method.size,
        progress=lambda done, total: progress("grouping records", done, total),
    )
    if columns.units is None:
        return named(made.partition, names), {"t_reached": made.distance}
    conditions = [
        lacks_persons(columns.units, method.size, even=even),
        lacks_closeness([buckets], float(method.t), "ratio", columns.units),
    ]
    merged = merge_until(made.partition, points, any_of(conditions))
    labels = merged.partition.labels
    reached = max(
        float(ratio_distances(count_groups(labels, buckets, units)).max()) for units in (None, columns.units)
    )
    fewest = int(units_of_groups(labels, columns.units).min())
    facts = {"t_reached": reached, "persons": {"fewest": fewest, **merged.cost}}
    return named(merged.partition, names), facts


def check(method: TCloseness, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what `run` would raise."""
    refuse_masked_weight(method, described)
    check_persons(method, described, method.size, even=False)


def buckets_of(columns: Columns, names: tuple[str, ...], t: int) -> NDArray[np.int64]:
    """Bucket of each record: by one sensitive column, or by several as a compound one."""
    if len(names) > 1:
        return compound_buckets(columns.points(names), t)
    (name,) = names
    if columns.kind(name).ordered:
        return ordered_buckets(columns.values[name], t)
    tree = columns.described.attribute(name).tree
    if tree is not None and tree.levels > 2:
        return ordered_buckets(columns.ranks(name), t)
    return nominal_buckets(columns.values[name], t)
