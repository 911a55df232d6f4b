"""Anatomy: release quasi-identifiers and sensitive values in two tables linked by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from shoal.columns import Described
from shoal.errors import OptionError
from shoal.io import Table
from shoal.mechanisms.kanonymity import centroids
from shoal.mechanisms.kanonymity.centroids import grouped, internal_facts
from shoal.mechanisms.kanonymity.closeness import bucket_terms, buckets_of, groups_by_buckets
from shoal.mechanisms.kanonymity.columns import (
    Columns,
    bucket_words,
    columns_of,
    confidential_columns,
    diversity_term,
    even_term,
    groups_hold,
    linked_tables_hold,
    named,
    or_none,
    with_role,
)
from shoal.mechanisms.kanonymity.methods import Anatomy
from shoal.mechanisms.kanonymity.swap_algorithms import dissect
from shoal.mechanisms.method import Rebuilt
from shoal.mechanisms.strata import strata_terms
from shoal.noise import Source
from shoal.partition import Partition, check_k, ranking
from shoal.privacy import Accountant, Plan
from shoal.progress import Progress
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.evaluation import Check

# name of the second table
CONFIDENTIAL = "confidential"


def plan(method: Anatomy, described: Described) -> Plan:
    """No budget; statement messages about the content of both tables."""
    names = confidential_columns(method, described)
    known = _known(method, described)
    found = [
        Message.of("two-linked-tables", known=or_none(known), counted=names),
        Message("intruder-knows-no-other-values"),
    ]
    if method.t is not None:
        found += bucket_terms(method, described)[:-1]
        found.append(Message("second-table-has-buckets"))
    elif method.group_by == "confidential":
        found.append(Message("groups-of-close-values"))
    found += strata_terms(method)
    if method.l is not None:
        found.append(diversity_term("group-has-values", method, described))
    if described.provenance.unit is not None:
        found.append(even_term(method.size))
    return Plan({}, {}, tuple(found))


def check(method: Anatomy, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what `run` would raise."""
    if method.t is not None and (labels is not None or method.l is not None):
        raise OptionError("t-makes-own-groups")
    if method.t is not None and method.strata:
        raise OptionError("strata-not-groups-t-compares-every", option="strata")
    centroids.check_groups(method, described, plan, labels, even=True)


def run(
    method: Anatomy,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> Rebuilt:
    """Group the records; the values are unchanged, because only their link is cut.

    Guarantee:
        Probabilistic k-anonymity, see `algorithms.dissect`; with t also t-closeness by buckets, see
        `algorithms.close_groups`.

    Reference: the thesis, sections 7.1.2 (Anatomy), 7.1.1 (groups by the confidential attribute) and 7.2.
    """
    names = confidential_columns(method, described)
    columns = columns_of(described, method.normalise)
    made, facts = _groups(method, columns, names, progress, labels)
    groups_hold(made, columns.units, method.size, even=True)
    return Rebuilt(
        values=dict(columns.values),
        partitions=[named(made, names)],
        aligned=False,
        internal=internal_facts(columns, [named(made, names)], facts),
    )


def publish(
    method: Anatomy, described: Described, rebuilt: Rebuilt, source: Source
) -> tuple[Any, dict[str, Any]]:
    """The table of quasi-identifiers and the table of sensitive values, in the caller's frame library."""
    names, known = confidential_columns(method, described), _known(method, described)
    kept = known if method.t is not None else (*known, *names)
    columns: dict[str, NDArray[Any]] = {
        name: described.stored(name, rebuilt.values[name], clip=method.output.clip, computed=False)
        for name in kept
    }
    if method.t is not None:
        own = Columns(described, rebuilt.values, {}, method.normalise)
        columns |= bucket_words(own, names, buckets_of(own, names, method.t))
    made = dissect(
        {name: columns[name] for name in known},
        {name: columns[name] for name in names},
        rebuilt.partitions[0],
        source,
    )
    return (
        _frame(described, made.quasi, kept),
        {CONFIDENTIAL: _frame(described, made.confidential, kept)},
    )


def _frame(described: Described, columns: Mapping[str, NDArray[Any]], kept: tuple[str, ...]) -> Any:
    """A frame of the caller's library; columns with the caller's values have the caller's types."""
    import narwhals as nw

    frame = nw.from_dict(dict(columns), backend=described.table.frame.implementation)
    own = {name: values for name, values in columns.items() if name in kept}
    if own:
        typed = nw.from_native(described.released_frame(own, generalise=False), eager_only=True)
        frame = frame.with_columns(typed.get_column(name) for name in own)
    return frame.select(*columns).to_native()


def verify(
    method: Anatomy,
    described: Described,
    table: Table,
    linked: Mapping[str, Table],
    check: Callable[..., Check],
) -> None:
    """Measure the two written tables."""
    linked_tables_hold(
        table, linked[CONFIDENTIAL], confidential_columns(method, described), method.size, method.l, method.t
    )


def _known(method: Anatomy, described: Described) -> tuple[str, ...]:
    names = with_role(described, "confidential")
    known = tuple(name for name in described.columns if name not in names)
    if not known:
        raise OptionError("method-needs-column-not-confidential", option="method", method=method.name)
    return known


def _groups(
    method: Anatomy, columns: Columns, names: tuple[str, ...], progress: Progress, labels: ArrayLike | None
) -> tuple[Partition, dict[str, Any]]:
    if method.t is not None:
        return groups_by_buckets(method, columns, names, progress, even=True)
    known = with_role(columns.described, "quasi-identifier")
    if method.group_by == "confidential" and labels is None:
        return grouped(method, columns, names, progress, None, _close_values(method, names), even=True)
    return grouped(method, columns, known, progress, labels, even=True)


def _close_values(method: Anatomy, names: tuple[str, ...]) -> Callable[[Columns], Partition]:
    """Groups of similar sensitive values."""

    def made(columns: Columns) -> Partition:
        # Algorithm 7.1 is individual ranking with the remainder in the middle; several columns are a compound one
        least = check_k(method.size, columns.n)
        return ranking(columns.ranks(names[0]), least) if len(names) == 1 else columns.clusters(names, least)

    return made
