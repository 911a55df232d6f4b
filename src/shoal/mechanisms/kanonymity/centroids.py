"""k-anonymity: quasi-identifiers come in, the middle of each group of similar records leaves, the rest as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from shoal.columns.describe import Described
from shoal.errors import InputError, OptionError
from shoal.io import Table
from shoal.mechanisms.base import Rebuilt
from shoal.mechanisms.kanonymity import grouping
from shoal.mechanisms.kanonymity.columns import (
    columns_of,
    diversity_term,
    named,
    or_none,
    quasi_identifiers,
    survey_weights,
    weight_name,
    with_role,
)
from shoal.mechanisms.kanonymity.grouping import grouped, internal_facts
from shoal.mechanisms.kanonymity.methods import KAnonymity
from shoal.mechanisms.kanonymity.verify import persons_hold, reached
from shoal.mechanisms.strata import strata_of, strata_terms
from shoal.privacy import Accountant
from shoal.privacy.budget import Plan
from shoal.progress import Progress
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.evaluation.measured import Check


def averaged(method: KAnonymity, described: Described) -> tuple[str, ...]:
    """The quasi-identifiers that become the middle of a group: all but strata, which a group has one of."""
    found = tuple(name for name in quasi_identifiers(described) if name not in (method.strata or ()))
    if not found:
        raise OptionError("strata-names-all-quasi-identifiers", option="strata")
    return found


def plan(method: KAnonymity, described: Described) -> Plan:
    """No budget; the columns that the claim is about."""
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
    return Plan({}, {}, (*conditions, *strata_terms(method)))


def check(method: KAnonymity, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what `run` would raise."""
    for name in quasi_identifiers(described):
        if name in described.gaps:
            raise InputError("quasi-identifier-missing-values-groups-need", name=name)
    survey_weights(described)
    grouping.check(method, described, plan, labels)


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
    """Measure what was written."""
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
