"""Rehearsals: try a release on stand-in data, with synthetic records by default, and measure the effect."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.arguments import as_names
from shoal.columns import (
    DROPPED_ROLES,
    MISSING_VALUE,
    Attribute,
    CodedByRules,
    Described,
    Lattice,
    Schema,
    coded,
    marked,
    read_as_asked,
)
from shoal.display import internal
from shoal.errors import OptionError
from shoal.evaluation import Evaluation, Verdict, evaluate, verdict
from shoal.io import Conventions, Table, read
from shoal.mechanisms import DEFAULT_METHOD, Method, Tuned, class_of, configured
from shoal.progress import Progress, silent
from shoal.release.forecast import DeltaComparison, compared_with_delta, public_description
from shoal.release.protection import Release, carry_out, prepare
from shoal.release.uses import note_use

if TYPE_CHECKING:
    import pyarrow as pa


class TableDeclarations(TypedDict, total=False):
    """Declarations about the table, as for `shoal.protect`."""

    columns: str | Sequence[str] | None
    domains: Mapping[str, Any] | None
    domain_from_data: float | None
    outside: Literal["error", "clip"]
    missing: Literal["error", "drop", "category", "separate"]
    na: Sequence[str]
    types: Mapping[str, str] | None
    file: Conventions | Mapping[str, Any] | None
    labels: ArrayLike | None
    tuned: str | Sequence[str] | Tuned | None
    tuned_epsilon: Any
    tuned_choice: Sequence[Any] | None
    most_epsilon: Any
    override: str | None
    bound: Any


PEOPLE = 5_000
# correlation between the variables from which stand-in columns are drawn
_COMMON = 0.6
# stand-in amounts are concentrated at the low end of their range with a long tail, as incomes are
_MIDDLE, _SPREAD = -2.0, 1.0
_DECLARED = tuple(TableDeclarations.__annotations__)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Rehearsal:
    """What a release would do, shown on stand-in data.

    Attributes:
        release: of the stand-in data; it is not meant to be published.
        evaluation: utility loss and risk.
        verdict: on a release with these settings, with the measures.
        original: the stand-in data, a table that `shoal.evaluate` accepts.
        made_up: they were drawn from the public schema; otherwise they come from another table.
        compared: the expected error without and with a δ, for methods that take one.
    """

    release: Release
    evaluation: Evaluation
    verdict: Verdict
    original: Any
    made_up: bool
    compared: DeltaComparison | None = None

    @property
    def sentence(self) -> str:
        """Which records were used."""
        records = (
            "synthetic records drawn from the public schema" if self.made_up else "records of another table"
        )
        return f"Rehearsal on {self.original.n:,} {records}: no privacy budget was used."


def rehearse(
    schema: Schema | None = None,
    method: str | Method = DEFAULT_METHOD,
    epsilon: Any = None,
    k: int | None = None,
    *,
    on: Any = None,
    people: int = PEOPLE,
    dataset: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Rehearsal:
    """Try settings on stand-in data, with all measurements, as often as needed.

    Args:
        schema: kinds, roles and public domains, as for `shoal.protect`, like method, epsilon, k and options.
        on: another table with the same columns, such as last year's; by default synthetic records. Columns that would
            not be released may be missing from it.
        people: how many synthetic records to draw.
        dataset: with `on`, the name of that data set: the journal of use records the rehearsal.
        options: also `target`, the column to predict from the release, whether or not the method has that option.
        progress: called with (what, done, total).

    Raises:
        OptionError: a setting or a domain that a release would refuse too.

    >>> found = rehearse(method="laplace", epsilon=1, people=100, domains={"age": (0, 100)})
    >>> found.made_up, found.evaluation.rows["original"], found.verdict.decision
    (True, 100, 'publish with these limits')
    """
    tell = progress or silent
    own = method.settings() if isinstance(method, Method) else {}
    target = options.get("target", own.get("target"))
    if "target" not in class_of(method).parameters():
        options.pop("target", None)
    table, schema = people_of(on, schema, method, epsilon, k, people, **options)
    prepared = prepare(table, schema, method, epsilon, k, **options)
    release = carry_out(prepared, tell)
    measured = evaluate(table, release, target=target, progress=tell)
    found = verdict(release, measured, rehearsed=True)
    if on is not None:
        note_use("rehearsed", table, release.columns, "shoal.rehearse", dataset)
    compared = compared_with_delta(prepared.method, prepared.described)
    return Rehearsal(release, measured, found, table, on is None, compared)


def people_of(
    on: Any,
    schema: Schema | None,
    method: str | Method,
    epsilon: Any,
    k: int | None,
    people: int,
    **options: Any,
) -> tuple[Table, Schema | None]:
    """The data to rehearse on, and the part of the schema about them.

    A column that would not be released has no part in it: synthetic records lack it, and so may another table.
    """
    if on is None:
        table = read(made_up_people(schema, method, epsilon, k, people, **options))
        schema = None if schema is None else _of_columns(schema.declared, table.names)
        return (table if schema is None else marked(table, schema)), schema
    if schema is None:
        return read_as_asked(on, options), None
    declared = schema.declared
    # steps and margins need columns that are present, which is known once the file was read
    kept = tuple(a for a in declared.attributes if a.release != "raked")
    bare = Schema(kept, declared.file, publication=declared.publication)
    table = read_as_asked(on, {**options, "schema": bare})
    asked = as_names(options.get("columns")) or [a.name for a in declared.attributes if not a.dropped]
    # persons with several rows, and survey weights, change what a method does
    needed = [a.name for a in (declared.unit, declared.weight) if a is not None]
    schema = _of_columns(declared, {*table.names, *asked, *needed})
    return read_as_asked(table, {**options, "schema": schema}), schema


def _of_columns(schema: Schema, names: Collection[str]) -> Schema | None:
    """The part of a schema about these columns."""
    held = tuple(a for a in schema.attributes if a.name in names or a.release == "raked")
    steps = tuple(step for step in schema.steps if step.column in names)
    margins = tuple(margin for margin in schema.margins if margin.column in names)
    rules = tuple(rule for rule in schema.rules if set(rule.named) <= {a.name for a in held})
    if not held:
        return None
    return Schema(held, schema.file, steps, margins, publication=schema.publication, rules=rules)


def made_up_people(
    schema: Schema | None,
    method: str | Method,
    epsilon: Any,
    k: int | None,
    people: int,
    **options: Any,
) -> pa.Table:
    """A table of synthetic records with the columns that a release would have."""
    if isinstance(people, bool) or not isinstance(people, int) or people < 1:
        raise OptionError("people-whole-number-least-1", option="people", found=people)
    own = {name: value for name, value in options.items() if name not in _DECLARED}
    settled = configured(method, epsilon=epsilon, k=k, **own)
    columns, domains, types = (options.get(name) for name in ("columns", "domains", "types"))
    described = public_description(settled, schema, as_names(columns), domains, people, types)
    return drawn(coded(described), people, schema)


def drawn(described: Described, people: int, schema: Schema | None = None, seed: int = 0) -> pa.Table:
    """Values drawn from public domains: a shared variable creates correlations, and the seed makes it repeatable.

    Records of a table in the coordinates of its rules satisfy them.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    common = rng.normal(size=people)
    values: dict[str, NDArray[np.float64]] = {}
    for attribute in described.attributes:
        own = rng.normal(size=people)
        mixed = _COMMON**0.5 * common + (1 - _COMMON) ** 0.5 * own
        values[attribute.name] = _values(attribute, described.lattices[attribute.name], mixed)
    attributes = described.attributes
    if isinstance(described, CodedByRules) and described.whole is not None:
        values, attributes = described.decoded(values, rng), described.whole.attributes
    columns: dict[str, Any] = {one.name: _shown(one, values[one.name]) for one in attributes}
    unit = None if schema is None else schema.unit
    if unit is not None and unit.name not in columns and unit.role in DROPPED_ROLES:
        numbers = np.arange(1, people + 1)
        named = unit.type not in ("integer", "decimal")
        columns[unit.name] = np.array([f"P{number:07d}" for number in numbers]) if named else numbers
    return pa.table(columns)


def _values(attribute: Attribute, lattice: Lattice, normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers, places in the list of an ordinal column, or concepts of a nominal one."""
    facts, tree = attribute.kind_facts, attribute.tree
    names = attribute.ordered if facts.listed else () if tree is None else tree.values
    if names:
        # the first values are the likelier ones
        weights = 1.0 / np.arange(1.0, len(names) + 1) if not facts.listed else np.ones(len(names))
        ends = np.cumsum(weights / weights.sum())
        places = np.minimum(np.searchsorted(ends, _uniform(normal)), len(names) - 1)
        if tree is None:
            return places.astype(np.float64)
        codes = {tree.labels[code]: code for code in tree.domain}
        return np.array([codes[name] for name in names], dtype=np.float64)[places]
    share = np.minimum(np.exp(_MIDDLE + _SPREAD * normal), 1.0)
    return np.minimum(lattice.values(np.floor(share * lattice.steps)), float(lattice.hi))


def _shown(attribute: Attribute, values: NDArray[np.float64]) -> Any:
    """Values as a column of the declared type holds them; a missing one is empty."""
    facts, tree = attribute.kind_facts, attribute.tree
    gaps = np.isnan(values)
    filled = np.where(gaps, 0.0, values)
    if facts.listed or tree is not None:
        labels: Sequence[Any] = attribute.ordered if tree is None else tree.labels
        # where missing is one more value, some rows have it
        names = [None if name == MISSING_VALUE else str(name) for name in labels]
        found = np.array(names, dtype=object)[filled.astype(np.int64)]
        found[gaps] = None
        return _typed(found, attribute)
    if facts.days:
        days = np.rint(filled).astype(np.int64).astype("datetime64[D]")
        days[gaps] = np.datetime64("NaT")
        if attribute.type == "text":
            return _with_gaps(np.datetime_as_string(days), gaps)
        return days
    found = np.rint(filled).astype(np.int64) if attribute.type == "integer" else filled
    return _with_gaps(found, gaps).tolist() if gaps.any() else found


def _with_gaps(values: NDArray[Any], gaps: NDArray[np.bool_]) -> NDArray[Any]:
    found = values.astype(object)
    found[gaps] = None
    return found


def _typed(names: NDArray[Any], attribute: Attribute) -> Any:
    """Names as a column of the declared type holds them."""
    if attribute.type == "boolean":
        return [None if name is None else name.lower() in ("true", "yes", "1") for name in names]
    if attribute.type == "integer":
        return [None if name is None else int(name) for name in names]
    return names


def _uniform(normal: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import ndtr

    found: NDArray[np.float64] = ndtr(normal)
    return found
