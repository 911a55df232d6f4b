"""Groups of records for the family: columns and settings come in, a partition and what it cost leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns.describe import Described
from shoal.errors import InputError, OptionError
from shoal.mechanisms.kanonymity.algorithms import bring_close, diversify
from shoal.mechanisms.kanonymity.algorithms.diversity import (
    any_of,
    lacks_closeness,
    lacks_persons,
    lacks_values,
    value_numbers,
)
from shoal.mechanisms.kanonymity.algorithms.merging import Lacking, merge_until
from shoal.mechanisms.kanonymity.columns import Columns, columns_of, refuse_masked_weight, with_role
from shoal.mechanisms.kanonymity.methods import GroupMethod
from shoal.mechanisms.strata import Stratum, check_persons, check_strata, strata_of, units_of
from shoal.partition import Partition, given, vmdav
from shoal.partition.base import check_k
from shoal.partition.groups import distinct_for_units, row_groups, units_of_groups
from shoal.privacy.budget import Plan
from shoal.progress import Progress
from shoal.text import Message


def check(
    method: GroupMethod,
    described: Described,
    plan: Plan,
    labels: ArrayLike | None = None,
    *,
    even: bool = False,
    least: int | None = None,
    classes: Sequence[Stratum] | None = None,
) -> None:
    """Raise what a run would raise about groups: labels and wishes that these records cannot fulfil.

    Args:
        even: nobody may have more than one row in k of a group, see `lacks_persons`.
        least: the most that any group needs, if not the method's k.
        classes: the records among which groups are made, where these are not the strata.
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
    """Refuse an l for which some class of records has too few different values."""
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
    """Name the stratum in what is wrong with its labels."""
    try:
        yield
    except InputError as error:
        if not stratum.name:
            raise
        raise InputError("of-stratum", stratum=stratum.name, reason=error) from None


def _check_given(method: GroupMethod, described: Described, made: Partition, *, even: bool) -> None:
    """Refuse clusters of the caller's that hold too few persons, or too many rows of one."""
    units = units_of(described)
    if units is None:
        return
    within = row_groups([_numbered(strata_of(method, described), described.n), made.labels])
    if lacks_persons(units, method.size, even=even)(Partition(within.labels, within.sizes)).any():
        raise OptionError(
            "labels-cluster-uneven-persons" if even else "labels-cluster-fewer-than-k-persons",
            option="labels",
            size=method.size,
            unit=described.circumstances.unit,
        )


def _numbered(classes: Sequence[Stratum], n: int) -> NDArray[np.int64]:
    """The number of each row's class."""
    parts = np.zeros(n, dtype=np.int64)
    for number, stratum in enumerate(classes):
        parts[stratum.rows] = number
    return parts


def _check_values_of_persons(least: int, described: Described, name: str, classes: Sequence[Stratum]) -> None:
    """Refuse an l that the persons of a class, with one value each, do not have."""
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
            unit=described.circumstances.unit,
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
    """Groups of similar records, joined until they are as diverse and close as asked for, stratum by stratum.

    Args:
        names: the columns that records of a group are close in.
        make: another way to make groups than the method's partition.
        even: nobody may have more than one row in k of a group, see `lacks_persons`.
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
    """Partitions of strata as one of the table."""
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
    """Groups joined until they are as diverse and as close to the table as asked for, and what that cost."""
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
    """What groups may lack where persons are counted: joining for one of these can undo another, so all at once."""
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
    """What the internal report says about a release of the family."""
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
