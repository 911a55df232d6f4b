"""Disclosure risk of a table from the columns that an intruder may know.

Without weights the table is taken as the population, and a record's risk depends only on the number of records with
the same keys. Special uniques are not included: they need the keys themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shoal.arguments import as_names, renamed_arguments
from shoal.columns import Schema, read_declared
from shoal.errors import InputError, OptionError
from shoal.evaluation.disclosure.record_risk import (
    FORMS,
    diversity,
    endangered,
    household_risks,
    population_uniques,
    risk_threshold,
)
from shoal.evaluation.disclosure.result import TOLERATED, Risk, RiskFigures
from shoal.evaluation.disclosure.suda import MOST_KEYS, Points, suda
from shoal.io import Table, read
from shoal.numbers import Floats, Integers
from shoal.partition import RULES, Form, MissingRule, coded, patterns
from shoal.progress import Progress, silent

# with more keys than this special uniques are searched only on request; with more than the smaller number only if
# records times key sets are not too many: a record can have hundreds of minimal sample uniques
SEARCHED_KEYS, ALWAYS_SEARCHED = 12, 8
_SEARCHED_SETS = 1 << 24


@renamed_arguments(keys="quasi_identifiers")
def risk(
    table: Any,
    quasi_identifiers: str | Sequence[str] | None = None,
    weight: str | None = None,
    household: str | None = None,
    *,
    unit: str | None = None,
    schema: Schema | None = None,
    sensitive: str | Sequence[str] = (),
    missing: MissingRule = "wildcard",
    alpha: float = 1.0,
    form: Form = "approximate",
    tolerated: float = TOLERATED,
    special: bool | None = None,
    fraction: float = 0.01,
    points: Points = "original",
    interactions: Sequence[str | Sequence[str]] = (),
    c: float = 2.0,
    progress: Progress | None = None,
) -> Risk:
    """`shoal.risk` without an entry in the journal of use; its arguments are documented there."""
    data = read(table) if schema is None else read_declared(table, schema)
    schema = None if schema is None else schema.stepped
    if data.n == 0:
        raise InputError("no-risk-to-measure")
    known = _keys(data, quasi_identifiers, schema)
    weight = weight if weight is not None else _by_role(data, schema, "weight")
    unit = unit if unit is not None else _by_role(data, schema, "unit")
    units = None if unit is None else units_of(data, unit)
    _check_options(missing, alpha, form, tolerated, fraction, points, c)
    if special and len(known) > MOST_KEYS:
        raise OptionError(
            "special-uniques-can-searched-among-most",
            option="special",
            most_keys=MOST_KEYS,
            number_of_known=len(known),
        )
    tell = progress or silent
    tell("counting combinations of keys", 0, 1)
    columns = tuple(coded(data, name) for name in known)
    weights = None if weight is None else _weights(data, weight)
    found = patterns([column.codes for column in columns], weights, units)
    levels = [len(column.levels) for column in columns]
    fk, population = RULES[missing](found, alpha)
    individual = FORMS[form](fk, population)[found.labels]
    tell("searching special uniques", 0, 1)
    searched = _by_default(len(known), int((found.counts == 1).sum())) if special is None else special
    return Risk(
        quasi_identifiers=known,
        weight=weight,
        household_column=household,
        missing=missing,
        alpha=alpha,
        form=form,
        fk=fk[found.labels],
        Fk=population[found.labels],
        individual=individual,
        household=None
        if household is None
        else household_risks(individual, _households(data, household), units),
        special=suda(found, levels, fraction, points) if searched else None,
        population=population_uniques(
            found, levels, None if weights is None else found.weights, _margins(known, interactions)
        ),
        diversity={
            name: diversity(found.labels, coded(data, name).codes, c, units)
            for name in dict.fromkeys(as_names(sensitive))
        },
        tolerated=tolerated,
        levels=columns,
        unit=unit,
        units=units,
    )


def _keys(table: Table, named: str | Sequence[str] | None, schema: Schema | None) -> tuple[str, ...]:
    if named is None and schema is not None:
        named = [a.name for a in schema.attributes if a.role == "quasi-identifier" and a.name in table.names]
    if not named:
        raise OptionError("there-no-keys", option="quasi_identifiers")
    return tuple(table.known(name) for name in dict.fromkeys(as_names(named)))


def _by_default(keys: int, uniques: int) -> bool:
    """Whether special uniques are searched by default."""
    return keys <= ALWAYS_SEARCHED or (keys <= SEARCHED_KEYS and uniques << keys <= _SEARCHED_SETS)


def _by_role(table: Table, schema: Schema | None, role: str) -> str | None:
    """The single column of a role, if the table has it."""
    if schema is None:
        return None
    return next((a.name for a in schema.attributes if a.role == role and a.name in table.names), None)


def _weights(table: Table, name: str) -> Floats:
    weights = table.numeric(name)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if bad.size:
        row, value = int(bad[0]) + 1, float(weights[bad[0]])
        code = "weight-missing" if math.isnan(value) else "weight-not-above-0"
        raise InputError(code, column=name, row=row, found=value)
    return weights


def units_of(table: Table, name: str) -> Integers:
    """The person of each record, numbered from 0.

    Raises:
        InputError: the column is unknown, or a record has no person.
    """
    column = coded(table, table.known(name))
    alone = column.codes < 0
    if alone.any():
        raise InputError("row-without-person", column=name, row=int(np.argmax(alone)) + 1)
    return column.codes


def _households(table: Table, name: str) -> Integers:
    """Households by number; a record without one is a household by itself."""
    column = coded(table, name)
    alone = column.codes < 0
    numbers = column.codes.copy()
    numbers[alone] = len(column.levels) + np.arange(int(alone.sum()))
    return numbers


def _margins(keys: Sequence[str], interactions: Sequence[str | Sequence[str]]) -> list[list[int]]:
    margins = [as_names(margin) for margin in interactions]
    for margin in margins:
        for name in margin:
            if name not in keys:
                raise OptionError(
                    "interactions-names-not-keys", option="interactions", name=name, keys=tuple(keys)
                )
    return [[keys.index(name) for name in margin] for margin in margins]


def _check_options(
    missing: str, alpha: float, form: str, tolerated: float, fraction: float, points: str, c: float
) -> None:
    for name, value, known in (
        ("missing", missing, tuple(RULES)),
        ("form", form, tuple(FORMS)),
        ("points", points, ("original", "ihsn")),
    ):
        if value not in known:
            raise OptionError("option-not-among-allowed", option=name, found=value, allowed=tuple(known))
    if not 0 <= alpha <= 1:
        raise OptionError("alpha-from-0-1", option="alpha", found=alpha)
    for name, share in (("tolerated", tolerated), ("fraction", fraction)):
        if not 0 < share < 1:
            raise OptionError("above-0-below-1", option=name, found=share)
    if not c > 0:
        raise OptionError("c-above-0", option="c", found=c)


def figures_of_sizes(
    keys: Sequence[str],
    sizes: Integers,
    groups: Integers,
    diversity: Mapping[str, Mapping[str, float]],
    form: Form = "approximate",
    tolerated: float = TOLERATED,
) -> RiskFigures:
    """Figures of a table without weights in which a missing key is a separate value.

    Args:
        sizes: the distinct sizes of groups of records with the same keys.
        groups: how many groups have each size.
        diversity: least distinct, entropy and recursive l of each sensitive column.

    >>> found = figures_of_sizes(["age"], np.array([1, 2]), np.array([2, 1]), {})
    >>> found.rows, found.uniques, found.expected
    (4, 2, 3.0)
    """
    records = sizes * groups
    exact = sizes.astype(np.float64)
    risks = FORMS[form](exact, exact)
    rows, uniques = int(records.sum()), int(groups[sizes == 1].sum())
    expected = float(np.sum(risks * records))
    return RiskFigures(
        rows=rows,
        quasi_identifiers=tuple(keys),
        weight=None,
        household=None,
        missing="category",
        alpha=1.0,
        form=form,
        uniques=uniques,
        pairs=int(records[sizes == 2].sum()),
        below_3=int(records[sizes < 3].sum()),
        below_5=int(records[sizes < 5].sum()),
        expected=expected,
        global_risk=expected / rows,
        largest=float(risks.max()),
        high=endangered(risks, records),
        tolerated=tolerated,
        threshold=risk_threshold(risks, tolerated, records),
        household_expected=None,
        household_risk=None,
        sample_uniques=uniques,
        # the table is the population: a sample unique is a population unique, and matched correctly
        tau1=float(uniques),
        tau2=float(uniques),
        suda=None,
        diversity=diversity,
    )
