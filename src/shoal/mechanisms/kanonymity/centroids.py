"""k-anonymity by microaggregation: group the records, then release centroids, ranges or generalised values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns import Described
from shoal.errors import InputError, OptionError
from shoal.io import Table
from shoal.mechanisms.kanonymity.columns import (
    Columns,
    check_unit_columns,
    columns_of,
    diversity_term,
    named,
    or_none,
    persons_hold,
    quasi_identifiers,
    reached,
    refuse_masked_weight,
    survey_weights,
    weight_name,
    whole_units,
    with_role,
)
from shoal.mechanisms.kanonymity.grouping_algorithms import (
    Lacking,
    any_of,
    bring_close,
    diversify,
    lacks_closeness,
    lacks_persons,
    lacks_values,
    merge_until,
    value_numbers,
)
from shoal.mechanisms.kanonymity.methods import GroupMethod, KAnonymity
from shoal.mechanisms.method import Rebuilt
from shoal.mechanisms.strata import Stratum, check_persons, check_strata, strata_of, strata_terms, units_of
from shoal.partition import Partition, check_k, distinct_for_units, given, row_groups, units_of_groups, vmdav
from shoal.privacy import Accountant, Plan
from shoal.progress import Progress
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.evaluation import Check


def check_groups(
    method: GroupMethod,
    described: Described,
    plan: Plan,
    labels: ArrayLike | None = None,
    *,
    even: bool = False,
    least: int | None = None,
    classes: Sequence[Stratum] | None = None,
) -> None:
    """Raise what a run would raise about groups: labels and requirements that these records cannot satisfy.

    Args:
        even: no person may have more than one row in k of a group, see `lacks_persons`.
        least: the largest minimum size of any group, if not the method's k.
        classes: the records among which groups are made, if these are not the strata.
    """
    refuse_masked_weight(method, described)
    check_strata(method, described, least or method.size)
    check_persons(method, described, least or method.size, even=even)
    names = with_role(described, "confidential")
    for option, value in {"l": method.l, "t_emd": method.t_emd}.items():
        if value is not None and not names:
            raise OptionError("option-about-confidential-columns", option=option)
    within = strata_of(method, described) if classes is None else classes
    if method.partition == "given" or labels is not None:
        own = _of_rows_kept(described, labels)
        for stratum in within:
            with _located(stratum):
                given(own[stratum.rows], method.size)
        _check_given(method, described, given(own, method.size), even=even)
    if method.l is not None:
        _check_diversity(method.l, columns_of(described), names, within)
        for name in names:
            _check_values_of_persons(method.l, described, name, within)


def _check_diversity(least: int, columns: Columns, names: Sequence[str], classes: Sequence[Stratum]) -> None:
    """Refuse an l for which some class of records has too few distinct values."""
    for stratum in classes:
        where = stratum.where or Message("the-whole-table")
        if len({one.name for one in classes}) < len(classes):
            where = Message.of("among-equal-weights", where=where)
        for name in names:
            found = int(np.unique(columns.values[name][stratum.rows]).size)
            if found < least:
                raise OptionError(
                    "grouping-l-cannot-reached", column=name, least=least, found=found, where=where
                )


@contextmanager
def _located(stratum: Stratum) -> Iterator[None]:
    """Add the stratum to errors about its labels."""
    try:
        yield
    except InputError as error:
        if not stratum.name:
            raise
        raise InputError("of-stratum", stratum=stratum.name, reason=error) from None


def _check_given(method: GroupMethod, described: Described, made: Partition, *, even: bool) -> None:
    """Refuse given clusters with too few persons, or too many rows of one person."""
    units = units_of(described)
    if units is None:
        return
    within = row_groups([_numbered(strata_of(method, described), described.n), made.labels])
    if lacks_persons(units, method.size, even=even)(Partition(within.labels, within.sizes)).any():
        raise OptionError(
            "labels-cluster-uneven-persons" if even else "labels-cluster-fewer-than-k-persons",
            option="labels",
            size=method.size,
            unit=described.provenance.unit,
        )


def _numbered(classes: Sequence[Stratum], n: int) -> NDArray[np.int64]:
    """The index of each row's class."""
    parts = np.zeros(n, dtype=np.int64)
    for number, stratum in enumerate(classes):
        parts[stratum.rows] = number
    return parts


def _check_values_of_persons(least: int, described: Described, name: str, classes: Sequence[Stratum]) -> None:
    """Refuse an l that the persons of a class, with one value each, cannot reach."""
    units = units_of(described)
    if units is None:
        return
    values = value_numbers(described.positions(name)[0], described.n)
    found = int(distinct_for_units(_numbered(classes, described.n), values, units).min())
    if found < least:
        raise OptionError(
            "l-persons-in-strata" if len(classes) > 1 else "l-persons",
            column=name,
            least=least,
            unit=described.provenance.unit,
        )


def similar_records(
    method: GroupMethod, columns: Columns, names: Sequence[str], progress: Progress, labels: ArrayLike | None
) -> Partition:
    """Groups of at least k records close in some columns, by the method's partition stage or the caller's labels."""
    least = check_k(method.size, columns.n)

    def report(done: int, total: int) -> None:
        progress("grouping records", done, total)

    if method.partition == "given" or labels is not None:
        return given(_of_rows_kept(columns.described, labels), least)
    if (made := whole_units(method, columns, names, least)) is not None:
        return made
    if method.partition == "vmdav":
        return vmdav(columns.points(names), least, float(method.gamma), progress=report)
    return columns.clusters(names, least, progress=report)


def grouped(
    method: GroupMethod,
    columns: Columns,
    names: Sequence[str],
    progress: Progress,
    labels: ArrayLike | None,
    make: Callable[[Columns], Partition] | None = None,
    *,
    even: bool = False,
) -> tuple[Partition, dict[str, Any]]:
    """Groups of similar records, merged until they satisfy diversity and closeness, stratum by stratum.

    Args:
        names: the columns in which records of a group are close.
        make: another grouping algorithm than the method's partition stage.
        even: no person may have more than one row in k of a group, see `lacks_persons`.
    """
    if not method.strata:
        made = similar_records(method, columns, names, progress, labels) if make is None else make(columns)
        return enforced(method, columns, columns.points(names), made, even=even)
    given_labels = None if labels is None else _of_rows_kept(columns.described, labels)
    parts, costs = [], []
    strata = strata_of(method, columns.described)
    for stratum in strata:
        own = columns.rows(stratum.rows)
        if make is not None:
            made = make(own)
        elif given_labels is not None:
            made = given(given_labels[stratum.rows], method.size)
        else:
            made = similar_records(method, own, names, progress, None)
        made, cost = enforced(method, own, own.points(names), made, even=even)
        parts.append(made)
        costs.append({"stratum": stratum.name, **cost})
    return joined(strata, parts, columns.n), {"strata": costs}


def joined(strata: Sequence[Stratum], parts: Sequence[Partition], n: int) -> Partition:
    """Partitions of strata as one partition of the table."""
    labels = np.empty(n, dtype=np.int64)
    clusters = 0
    for stratum, made in zip(strata, parts, strict=True):
        labels[stratum.rows] = made.labels + clusters
        clusters += len(made)
    return Partition(labels, np.concatenate([made.sizes for made in parts]))


def enforced(
    method: GroupMethod,
    columns: Columns,
    points: NDArray[np.float64],
    partition: Partition,
    *,
    even: bool = False,
) -> tuple[Partition, dict[str, Any]]:
    """Groups merged until they satisfy diversity and closeness, and the cost of merging."""
    cost: dict[str, Any] = {}
    names = with_role(columns.described, "confidential")
    if columns.units is not None:
        lacking = any_of(_of_persons(method, columns, names, columns.units, even=even))
        merged = merge_until(partition, points, lacking)
        fewest = int(units_of_groups(merged.partition.labels, columns.units).min())
        return merged.partition, {"persons": {"fewest": fewest, **merged.cost}}
    if method.l is not None:
        merged = diversify(partition, points, [columns.values[name] for name in names], method.l)
        partition, cost["l_diversity"] = merged.partition, merged.cost
    if method.t_emd is not None:
        for ground in ("ordered", "equal"):
            own = [
                columns.values[name] for name in names if columns.kind(name).ordered == (ground == "ordered")
            ]
            if own:
                merged = bring_close(partition, points, own, float(method.t_emd), ground)
                partition, cost[f"t_closeness_{ground}"] = merged.partition, merged.cost
    return partition, cost


def _of_persons(
    method: GroupMethod, columns: Columns, names: Sequence[str], units: NDArray[np.int64], *, even: bool
) -> list[Lacking]:
    """Conditions on groups if persons are counted, checked at once because merging for one can break another."""
    found = [lacks_persons(units, method.size, even=even)]
    coded = {name: value_numbers(columns.values[name], columns.n) for name in names}
    if method.l is not None:
        found.append(lacks_values(list(coded.values()), method.l, units))
    if method.t_emd is not None:
        for ground in ("ordered", "equal"):
            own = [
                values
                for name, values in coded.items()
                if columns.kind(name).ordered == (ground == "ordered")
            ]
            if own:
                found.append(lacks_closeness(own, float(method.t_emd), ground, units))
    return found


def internal_facts(columns: Columns, groups: Sequence[Partition], more: Mapping[str, Any]) -> dict[str, Any]:
    """Facts about a release of the family for the internal report."""
    return {
        "values_clipped": dict(columns.clipped),
        "clusters": [
            {
                "columns": list(group.columns),
                "count": len(group),
                "smallest": int(group.sizes.min()),
                "largest": int(group.sizes.max()),
            }
            for group in groups
        ],
        **more,
    }


def _of_rows_kept(described: Described, labels: ArrayLike | None) -> NDArray[Any]:
    if labels is None:
        raise OptionError("partition-given-needs-labels-cluster-label")
    raw = np.asarray(labels)
    if raw.ndim != 1 or raw.size != described.table.n:
        raise OptionError(
            "labels-have-entry-per-row-shape", option="labels", n=described.table.n, shape=raw.shape
        )
    return raw if described.kept is None else raw[described.kept]


def averaged(method: KAnonymity, described: Described) -> tuple[str, ...]:
    """The quasi-identifiers replaced by the middle of a group: all except strata, which are constant in a group."""
    found = tuple(name for name in quasi_identifiers(described) if name not in (method.strata or ()))
    if not found:
        raise OptionError("strata-names-all-quasi-identifiers", option="strata")
    return found


def plan(method: KAnonymity, described: Described) -> Plan:
    """No budget; statement messages about the columns of the claim."""
    averaged(method, described)
    quasi = quasi_identifiers(described)
    kept = tuple(name for name in described.columns if name not in quasi)
    conditions = [Message.of("quasi-identifiers-known", columns=or_none(quasi))]
    if kept:
        conditions.append(Message.of("released-as-they-are", columns=kept))
    if method.l is not None:
        conditions.append(diversity_term("group-has-values", method, described))
    if method.t_emd is not None:
        conditions.append(Message.of("within-emd", t=float(method.t_emd)))
    weight = weight_name(described)
    if weight is not None:
        conditions.append(Message.of("means-weighted", weight=weight))
    if method.unit_columns is not None:
        conditions.append(Message.of("units-stay-whole", unit=described.provenance.unit or ""))
    return Plan({}, {}, (*conditions, *strata_terms(method)))


def check(method: KAnonymity, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what `run` would raise."""
    for name in quasi_identifiers(described):
        if name in described.gaps:
            raise InputError("quasi-identifier-missing-values-groups-need", name=name)
    survey_weights(described)
    check_groups(method, described, plan, labels)
    check_unit_columns(method, described, strata_of(method, described), method.size, labels)


def run(
    method: KAnonymity,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> Rebuilt:
    """Group records that are close in the quasi-identifiers and give every group one combination of them.

    Guarantee:
        k-anonymity: at least k released rows share every combination of quasi-identifiers; rows of at least k persons
        where a unit is declared.

    Reference: the thesis, section 3.4 (MDAV-ID).
    """
    quasi = averaged(method, described)
    columns = columns_of(described, method.normalise, generalise=method.generalise)
    made, cost = grouped(method, columns, quasi, progress, labels)
    made = named(made, quasi)
    values = {
        name: columns.centres(name, made) if name in quasi else columns.values[name]
        for name in described.columns
    }
    if columns.units is not None:
        known = [values[name] for name in quasi_identifiers(described)]
        persons_hold(known, strata_of(method, described), columns.units, method.size)
    return Rebuilt(
        values=values,
        partitions=[made],
        aligned=True,
        internal=internal_facts(columns, [made], cost),
        unchanged=frozenset(described.columns).difference(quasi),
    )


def verify(
    method: KAnonymity,
    described: Described,
    table: Table,
    linked: Mapping[str, Table],
    check: Callable[..., Check],
) -> None:
    """Measure the written table."""
    strata = [name for name in method.strata or () if name in table.names]
    reached(
        check,
        table,
        list(dict.fromkeys([*quasi_identifiers(described), *strata])),
        with_role(described, "confidential"),
        described,
        k=method.size,
        l=method.l,
        t_emd=None if method.t_emd is None else float(method.t_emd),
    )
