"""t-closeness by buckets: confidential columns come in, values swapped inside groups that hide the bucket leave."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns.describe import Described
from shoal.mechanisms.base import Mechanism, Progress, Rebuilt
from shoal.mechanisms.kanonymity.algorithms import (
    close_groups,
    compound_buckets,
    nominal_buckets,
    ordered_buckets,
    permute_within,
)
from shoal.mechanisms.kanonymity.columns import (
    Columns,
    columns_of,
    confidential_columns,
    listed,
    named,
    with_role,
)
from shoal.mechanisms.kanonymity.grouping import internal_facts
from shoal.method.budget import Plan
from shoal.method.method import Method
from shoal.noise import Source
from shoal.partition import Partition


def plan(method: Method, described: Described) -> Plan:
    """No budget; what the claim is about."""
    names = confidential_columns(method, described)
    return Plan(
        {},
        {},
        (
            *bucket_conditions(method, described),
            f"Swapped inside groups, every value still there: {listed(names)}. Other columns are as they are.",
        ),
    )


def bucket_conditions(method: Method, described: Described) -> list[str]:
    """What a bound on buckets says, and for whom."""
    names = confidential_columns(method, described)
    assert method.t is not None
    what = "combinations of " if len(names) > 1 else ""
    return [
        f"Buckets are at most {method.t + 1} sets of {what}values of {listed(names)}, nearly equally frequent; the "
        "bound is about buckets, not about single values.",
        "Before seeing the release, the intruder believes of the person what is true of the whole table, and knows "
        "the values of no other member of the group.",
    ]


def run(
    method: Method,
    described: Described,
    plan: Plan,
    source: Source,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> Rebuilt:
    """Group records so that every bucket has nearly its share, and swap confidential values inside groups.

    Guarantee:
        t-closeness by buckets, see `shoal.mechanisms.kanonymity.algorithms.close_groups`.

    Reference: the thesis, section 7.2.
    """
    names = confidential_columns(method, described)
    columns = columns_of(method, described)
    made, facts = groups_by_buckets(method, columns, names, progress)
    owners = permute_within(made, source)
    return Rebuilt(
        values={name: values[owners] if name in names else values for name, values in columns.values.items()},
        partitions=[made],
        aligned=True,
        internal=internal_facts(columns, [made], facts),
        unchanged=frozenset(columns.values),
    )


def groups_by_buckets(
    method: Method, columns: Columns, names: tuple[str, ...], progress: Progress
) -> tuple[Partition, dict[str, Any]]:
    """Groups that are close in what is not confidential and t-close in what is, and what they reach."""
    assert method.t is not None
    known = with_role(columns.described, "quasi-identifier")
    made = close_groups(
        columns.points(known),
        buckets_of(columns, names, method.t),
        method.t,
        method.size,
        progress=lambda done, total: progress("grouping records", done, total),
    )
    return named(made.partition, names), {"t_reached": made.distance}


def buckets_of(columns: Columns, names: tuple[str, ...], t: int) -> NDArray[np.int64]:
    """Bucket of each record: by one confidential column, or by several as a compound one."""
    if len(names) > 1:
        return compound_buckets(columns.points(names), t)
    (name,) = names
    if columns.kind(name).ordered:
        return ordered_buckets(columns.values[name], t)
    tree = columns.described.attribute(name).tree
    if tree is not None and tree.levels > 2:
        return ordered_buckets(columns.ranks(name), t)
    return nominal_buckets(columns.values[name], t)


T_CLOSENESS = Mechanism(plan, run)
