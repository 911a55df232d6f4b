"""Check any table: measure the k-anonymity, l-diversity and t-closeness that it reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.arguments import as_names, renamed_arguments
from shoal.columns import Schema, read_declared, rows_breaking
from shoal.errors import InputError, OptionError
from shoal.evaluation.disclosure import risk
from shoal.evaluation.disclosure.measure import units_of
from shoal.evaluation.disclosure.record_risk import diversity
from shoal.evaluation.disclosure.result import RiskFigures
from shoal.evaluation.measured import Check, Closeness, Persons, Requirement
from shoal.io import Table, read
from shoal.partition import (
    EMD,
    coded,
    column_codes,
    count_groups,
    ratio_distances,
    row_groups,
    units_of_groups,
    within,
)
from shoal.progress import Progress, silent
from shoal.text import Message

# reported risk thresholds, as one row in this many
_ONE_IN = (2, 5, 10, 20)


@renamed_arguments(quasi="quasi_identifiers", confidential="sensitive")
def check(
    table: Any,
    quasi_identifiers: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] | None = None,
    *,
    schema: Schema | None = None,
    k: int | None = None,
    l: int | None = None,  # noqa: E741
    t_emd: float | None = None,
    t_ratio: float | None = None,
    weight: str | None = None,
    household: str | None = None,
    unit: str | None = None,
    progress: Progress | None = None,
) -> Check:
    """`shoal.check` of a table in memory, or one that is read a column at a time; its arguments are documented there.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [30, 30, 40, 40], "ill": ["a", "b", "b", "b"]})
    >>> found = check(people, ["age"], ["ill"], k=2, l=2)
    >>> found.k, found.distinct_l, found.emd, found.met
    (2, 1, 0.25, False)
    """
    data = read(table) if schema is None else read_declared(table, schema)
    schema = None if schema is None else schema.stepped
    if data.n == 0:
        raise InputError("checks-table-no-rows")
    known, secret = asked_columns(data, quasi_identifiers, sensitive, schema)
    levels = {"k": k, "l": l, "t_emd": t_emd, "t_ratio": t_ratio}
    check_levels(levels, secret)
    tell = progress or silent
    tell("grouping rows", 0, 1)
    groups = row_groups(_codes(data, name) for name in known)
    unit = unit if unit is not None else unit_of_schema(data, schema)
    units = None if unit is None else units_of(data, unit)
    found: dict[str, Closeness] = {}
    for number, name in enumerate(secret):
        tell("looking at confidential columns", number, len(secret))
        found[name] = _closeness(data, name, groups.labels, schema, units)
    measured = risk(
        data,
        known,
        weight,
        household,
        unit=unit,
        schema=schema,
        sensitive=secret,
        missing="category",
        progress=tell,
    )
    sizes = groups.sizes if units is None else units_of_groups(groups.labels, units)
    persons = None if units is None else Persons.of(unit or "", units, groups.labels)
    counted = np.unique(sizes, return_counts=True)
    result = checked(known, *counted, found, measured.figures, levels, persons=persons)
    return (
        replace(result, rules=rows_breaking(data, schema)) if schema is not None and schema.rules else result
    )


def check_levels(levels: Mapping[str, float | None], secret: Sequence[str]) -> None:
    """Refuse levels that are not valid requirements."""
    for name, value in levels.items():
        if value is not None and (isinstance(value, bool) or not value >= (0 if name == "t_emd" else 1)):
            raise OptionError("level-too-low", option=name, least=0 if name == "t_emd" else 1, found=value)
        if value is not None and name != "k" and not secret:
            raise OptionError("about-confidential-column", option="sensitive", level=name)


def checked(
    known: Sequence[str],
    sizes: NDArray[np.int64],
    groups: NDArray[np.int64],
    found: Mapping[str, Closeness],
    disclosure: RiskFigures | None,
    levels: Mapping[str, float | None],
    told: tuple[Message, ...] = (),
    persons: Persons | None = None,
) -> Check:
    """Levels of protection from how many equivalence classes have each size, ascending, and their other measures.

    Sizes are numbers of rows, or of persons where units are declared: a person then counts in each of their groups.
    """
    smallest = int(sizes[0])
    wanted = (
        ("k", levels["k"], smallest, True),
        ("l", levels["l"], min((entry.distinct_l for entry in found.values()), default=0), True),
        ("t-emd", levels["t_emd"], max((entry.emd for entry in found.values()), default=0.0), False),
        ("t-ratio", levels["t_ratio"], max((entry.ratio for entry in found.values()), default=0.0), False),
    )
    return Check(
        rows=int((sizes * groups).sum()) if persons is None else persons.rows,
        quasi_identifiers=tuple(known),
        groups=int(groups.sum()),
        k=smallest,
        unique=int(groups[sizes == 1].sum()) if persons is None else persons.alone,
        reidentification=_reidentification(sizes, groups),
        sensitive=dict(found),
        disclosure=disclosure,
        requirements=tuple(
            Requirement(name, level, value, value >= level if at_least else bool(within(value, level)))
            for name, level, value, at_least in wanted
            if level is not None
        ),
        told=told,
        persons=persons,
    )


def unit_of_schema(table: Table, schema: Schema | None) -> str | None:
    """The unit column that the schema declares, if the table has it."""
    unit = None if schema is None else schema.unit
    return unit.name if unit is not None and unit.name in table.names else None


def asked_columns(
    table: Table,
    quasi_identifiers: str | Sequence[str] | None,
    sensitive: str | Sequence[str] | None,
    schema: Schema | None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The quasi-identifiers and the sensitive columns, as named or by their roles."""
    by_role: Mapping[str, list[str]] = {
        role: []
        if schema is None
        else [a.name for a in schema.attributes if a.role == role and a.name in table.names]
        for role in ("quasi-identifier", "confidential")
    }
    quasi = by_role["quasi-identifier"] if quasi_identifiers is None else as_names(quasi_identifiers)
    hidden = by_role["confidential"] if sensitive is None else as_names(sensitive)
    known, secret = tuple(dict.fromkeys(quasi)), tuple(dict.fromkeys(hidden))
    if not known:
        raise OptionError("there-no-quasi-identifiers", option="quasi_identifiers")
    for name in (*known, *secret):
        table.known(name)
    both = [name for name in secret if name in known]
    if both:
        raise OptionError("column-both-quasi-identifier-confidential", column=both[0])
    return known, secret


def _closeness(
    table: Table,
    name: str,
    labels: NDArray[np.int64],
    schema: Schema | None,
    units: NDArray[np.int64] | None,
) -> Closeness:
    values, ground = ordered_codes(table, name, schema)
    counts = count_groups(labels, values, units)
    certain = diversity(labels, coded(table, name).codes, units=units)
    return Closeness(
        values=int(counts.totals.size),
        distinct_l=int(certain.distinct.min()),
        entropy_l=float(certain.entropy.min()),
        emd=float(EMD[ground](counts).max()),
        ground=ground,
        ratio=float(ratio_distances(counts).max()),
    )


def ordered_codes(table: Table, name: str, schema: Schema | None) -> tuple[NDArray[np.int64], str]:
    """A column as codes, 0 for the lowest value, and whether their order is meaningful."""
    attribute = schema[name] if schema is not None and name in schema else None
    if attribute is not None and attribute.kind_facts.listed and attribute.ordered:
        from shoal.columns import numbers

        return _places(numbers(table, attribute)), "ordered"
    dtype = table.dtype(name)
    nominal = attribute is not None and not attribute.kind_facts.ordered
    if dtype.is_numeric() and not nominal and "128" not in str(dtype):
        series = table.series(name)
        plain = dtype.is_integer() and series.null_count() == 0
        return _places(series.to_numpy() if plain else table.numeric(name)), "ordered"
    if dtype.is_temporal() and not nominal:
        return _places(table.series(name).to_numpy()), "ordered"
    if isinstance(dtype, nw.Enum) and not nominal:
        place = {category: number for number, category in enumerate(dtype.categories)}
        values = table.series(name).cast(nw.String()).to_list()
        return _places(np.array([place.get(value, -1) for value in values])), "ordered"
    return _places(_codes(table, name)), "equal"


def _codes(table: Table, name: str) -> NDArray[np.int64]:
    """A code per row, equal exactly where the values are, for columns of any type."""
    import pyarrow as pa

    try:
        return column_codes(table, name)
    except pa.ArrowException:
        # lists and other nested values cannot be dictionary-encoded
        return _places(np.array([str(value) for value in table.series(name).to_list()]))


def _places(values: NDArray[Any]) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _reidentification(sizes: NDArray[np.int64], groups: NDArray[np.int64]) -> dict[str, float]:
    """Summary over rows of the chance 1/|group| of picking the right one among equal rows; sizes are ascending."""
    records = sizes * groups
    rows = int(records.sum())
    # the median risk over rows, starting from the largest groups
    middle = sizes[::-1][np.searchsorted(np.cumsum(records[::-1]), rows / 2)]
    return {
        "largest": 1 / int(sizes[0]),
        "mean": int(groups.sum()) / rows,
        "median": 1 / int(middle),
        **{f"above_one_in_{many}": int(records[sizes < many].sum()) / rows for many in _ONE_IN},
    }
