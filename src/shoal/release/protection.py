"""Protect a prepared table: fix the settings, draw the noise, and make the rows that are published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal import display
from shoal.columns import (
    KIND_FACTS,
    Declaration,
    Described,
    Provenance,
    Schema,
    check_storable,
    describe,
    fresh_key,
    public_attribute,
    restored,
    texts,
    with_gaps,
)
from shoal.display import displayed, internal
from shoal.errors import OptionError, Problems, ShoalError
from shoal.evaluation import check
from shoal.io import Codebook, Conventions, Table, read
from shoal.mechanisms import (
    DEFAULT_METHOD,
    Method,
    Rebuilt,
    by_stratum,
    configured,
    method_class,
    tuned_settings,
    with_tuning,
)
from shoal.noise import Source
from shoal.noise import source as noise_source
from shoal.partition import Partition, check_k
from shoal.privacy import MODELS, Accountant, Measurements, Plan, PrivacyStatement, state
from shoal.progress import Progress, silent
from shoal.release.correction import Corrected, corrected
from shoal.release.forecast import advice, expected_error
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns import Margin


def published_columns(
    method: Method,
    described: Described,
    rebuilt: Rebuilt,
    source: Source,
    orders: Mapping[str, NDArray[np.int64]] | None = None,
) -> dict[str, NDArray[Any]]:
    """The published columns: rows in random order, unless orders are given, and values as the columns store them."""
    orders = orders or _row_orders(method, rebuilt, source)
    found: dict[str, NDArray[Any]] = {}
    for column, values in rebuilt.values.items():
        order = orders[column]
        gaps = _gaps(described, rebuilt, column, values)
        computed = column not in rebuilt.unchanged
        if gaps is None:
            found[column] = described.stored(
                column, values[order], clip=method.output.clip, computed=computed
            )
            continue
        # no type can hold a missing value until the values are objects
        tree = described.tree(column)
        any_value = float(described.lattices[column].lo) if tree is None else float(tree.domain[0])
        filled = np.where(gaps, any_value, values)
        made = described.stored(column, filled[order], clip=method.output.clip, computed=computed)
        found[column] = with_gaps(made, gaps[order])
    return found


def one_table(
    method: Method, described: Described, rebuilt: Rebuilt, source: Source
) -> tuple[Any, dict[str, Any]]:
    """The released table as the only one."""
    orders = _row_orders(method, rebuilt, source)
    released = published_columns(method, described, rebuilt, source, orders)
    frame = described.released_frame(released, generalise=method.output.generalise, emptied=rebuilt.gaps)
    if rebuilt.units is None:
        return frame, {}
    return _with_units(described, frame, rebuilt.units[next(iter(orders.values()))]), {}


def _with_units(described: Described, frame: Any, units: NDArray[np.int64]) -> Any:
    """The released table with the unit column in front: numbers from 1 on, in the random order of drawn units."""
    unit = described.provenance.unit
    assert unit is not None
    table = nw.from_native(frame, eager_only=True)
    numbers = np.cumsum(np.diff(units, prepend=units[:1]) != 0) + 1
    column = nw.new_series(unit, numbers, backend=described.table.frame.implementation)
    return table.with_columns(column).select(unit, *table.columns).to_native()


def _gaps(
    described: Described, rebuilt: Rebuilt, column: str, values: NDArray[np.float64]
) -> NDArray[np.bool_] | None:
    """The rows without a value of a column in the release, in input order."""
    if column in described.flagged:
        return np.isnan(values)
    return rebuilt.gaps.get(column, described.gaps.get(column))


def measured(described: Described, rebuilt: Rebuilt) -> Any:
    """Unrounded values in input order: numbers unchanged, concepts by name, gaps as gaps."""
    columns: dict[str, NDArray[Any]] = {}
    gaps = {**described.gaps, **rebuilt.gaps}
    for column, values in (rebuilt.measured or rebuilt.values).items():
        found: NDArray[Any] = values
        if described.tree(column) is not None:
            found = restored(described.table, described.attribute(column), values)
            if column in gaps:
                found = with_gaps(found, gaps[column])
        elif column in gaps:
            found = np.where(gaps[column], np.nan, values)
        columns[column] = found
    return described.table.like(columns, keep_dtypes=False)


def _row_orders(method: Method, rebuilt: Rebuilt, source: Source) -> dict[str, NDArray[np.int64]]:
    """A random row order: one for all columns, or one for each when columns are not linked."""
    rows = next(iter(rebuilt.values.values())).size
    if rebuilt.units is not None:
        units = source.permutation(int(rebuilt.units.max(initial=-1)) + 1)
        return dict.fromkeys(rebuilt.values, np.argsort(units[rebuilt.units], kind="stable"))
    if method.output.linked:
        return dict.fromkeys(rebuilt.values, source.permutation(rows))
    return {column: source.permutation(rows) for column in rebuilt.values}


def public_schema(described: Described, declared: Declaration) -> Schema:
    """The public part of the schema: declared facts only, so a domain taken from the data is left out.

    It describes the released columns; `before` are those of the table as read, with preprocessing steps between.
    """
    private = described.provenance.private_domains
    attributes = [public_attribute(a, private_domain=a.name in private) for a in described.attributes]
    whole = described.schema
    if declared.schema is None or whole is None:
        return Schema(tuple(attributes), declared.file)
    weight = whole.weight
    kept = [] if whole.unit is None else [whole.unit]
    if weight is not None and weight.name not in described.columns:
        kept.append(weight)
    names = {a.name for a in (*attributes, *kept)}
    margins = tuple(margin for margin in whole.margins if margin.column in names)
    # a dropped column need not be described; steps on unreleased columns do not belong here
    steps = tuple(s.public() for s in whole.declared.steps if s.do == "drop" or s.column in names)
    told = whole.publication
    book = described.rules
    rules = tuple(rule for _, rule in book.numbered if not rule.from_records) if book else ()
    released = Schema((*attributes, *kept), declared.file, (), margins, publication=told, rules=rules)
    if not steps:
        return released
    raw = {a.name: public_attribute(a, private_domain=False) for a in whole.declared.attributes}
    changed = {step.column for step in steps}
    before = tuple(raw[a.name] if a.name in changed else a for a in released.attributes)
    return replace(
        released, before=Schema(before, declared.file, steps, margins, publication=told, rules=rules)
    )


# relative difference from a margin that counts as zero, and maximum number of passes over the margins
_CLOSE = 1e-10
_ROUNDS = 1_000


def rake(
    codes: Sequence[NDArray[np.int64]], totals: Sequence[NDArray[np.float64]], rows: int
) -> tuple[NDArray[np.float64], float]:
    """Weights whose sums by the values of each column are the given totals (iterative proportional fitting).

    Args:
        codes: for each margin, the index of each row's value among its totals; -1 for a value without one.
        totals: the totals of each margin.
        rows: number of rows; all weights start equal.

    Returns:
        The weights, and the largest relative difference that remains from a total that some row can help to reach.

    Reference:
        Deming and Stephan (1940), Annals of Mathematical Statistics 11(4).

    >>> weights, left = rake([np.array([0, 0, 1])], [np.array([10.0, 30.0])], 3)
    >>> weights.tolist(), left
    ([5.0, 5.0, 30.0], 0.0)
    """
    weights = np.full(rows, float(totals[0].sum()) / max(rows, 1))
    left = np.inf
    for _ in range(_ROUNDS):
        left = 0.0
        for which, wanted in zip(codes, totals, strict=True):
            sums = np.bincount(which + 1, weights=weights, minlength=wanted.size + 1)[1:]
            factors = np.divide(wanted, sums, out=np.ones_like(wanted), where=sums > 0)
            left = max(left, float(np.abs(1 / factors - 1).max(initial=0.0)))
            weights = weights * np.append(factors, 1.0)[which]
        if left <= _CLOSE:
            break
    return weights, left


def check_raking(schema: Schema | None, columns: Sequence[str]) -> None:
    """Refuse, before any budget is used, margins of columns that are not released."""
    assert schema is not None
    assert schema.weight is not None
    if schema.weight.name in columns:
        raise OptionError("column-released-already", column=schema.weight.name)
    for margin in schema.margins:
        if margin.column not in columns:
            raise OptionError(
                "weight-raked-margin-not-released", column=schema.weight.name, margin=margin.column
            )


def with_raked_weight(frame: Any, schema: Schema | None) -> tuple[Any, tuple[Message, ...]]:
    """Append the raked weight to the released table, with notes about totals that could not be reached.

    Raises:
        OptionError: a column of a margin is in another table.
    """
    assert schema is not None
    assert schema.weight is not None
    table = read(frame)
    margins = schema.margins
    for margin in margins:
        if margin.column not in table.names:
            raise OptionError("margin-cannot-used", column=margin.column)
    codes = [_codes(table, margin) for margin in margins]
    totals = [np.array([float(total) for _, total in margin.totals]) for margin in margins]
    weights, left = rake(codes, totals, table.n)
    notes = []
    for margin, which in zip(margins, codes, strict=True):
        found = set(which.tolist())
        gone = [name for place, (name, _) in enumerate(margin.totals) if place not in found]
        if gone:
            notes.append(Message.of("total-not-reached", column=margin.column, values=gone))
        if -1 in found:
            notes.append(Message.of("value-without-total", column=margin.column))
    if left > 1e-6:
        notes.append(Message.of("raking-unsettled", percent=100 * left))
    column = nw.new_series(schema.weight.name, weights, backend=table.frame.implementation)
    native = table.frame.to_native()
    if table.frame.implementation.is_pandas_like():
        return native.assign(**{schema.weight.name: weights}), tuple(notes)
    return nw.from_native(native, eager_only=True).with_columns(column).to_native(), tuple(notes)


def _codes(table: Any, margin: Margin) -> NDArray[np.int64]:
    found, which = texts(table, margin.column)
    places = {name: place for place, (name, _) in enumerate(margin.totals)}
    known = np.array([*(places.get(text, -1) for text in found), -1], dtype=np.int64)
    coded: NDArray[np.int64] = known[which]
    return coded


# arguments of a `Declaration` besides the schema
_SAID = (
    "columns",
    "domains",
    "domain_from_data",
    "outside",
    "missing",
    "na",
    "types",
    "file",
    "most_epsilon",
    "override",
    "bound_key",
)


@internal()
@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of records.

    Attributes:
        columns: the attributes that define the clusters.
        number: of the cluster in its `Partition`.
        rows: positions of its records in the table that was protected, counted from 0.
    """

    columns: tuple[str, ...]
    number: int
    rows: tuple[int, ...]


@displayed(display.of_release)
@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """A protected table with its statement.

    Attributes:
        data: what may be published: rows in random order, the caller's frame library, order of columns and dtypes.
        aligned: unrounded values in input order, for measuring only; None for synthetic records.
        statement: the privacy statement, with the claim.
        partition: one partition per attribute group.
        method: the configured method.
        schema: the public facts about the released columns (and the unit column, if declared).
        domains: public domain of each released column.
        kept: numbers of the input rows that took part, None for all.
        messages: for the custodian: columns left out and why; `notes` are the sentences.
        internal: private facts about the original data (how many values were clipped); never published.
        codebook: codes and labels of a table that came from a Stata or SPSS file.
        conventions: how the input file is written; released files are written in the same way.
        statistics: masked statistics of every cluster with its size, one row each, where the method keeps them; covered
            by the statement as the data are.
        measurements: the noisy numbers behind the rows, where the method keeps them; covered by the statement.
        linked: further tables released with the data, by name.
        use: id of its entry in the journal of use, empty without one.
        verify: raises where tables read back from disk do not match the statement; None where the table by itself
            cannot show that.

    A release can be pickled, to pass it to another process of the custodian. The pickle holds everything, including
    `aligned` and `internal`: it is as private as the original. What may be published is what `save` writes.
    """

    data: Any
    aligned: Any
    statement: PrivacyStatement
    partition: list[Partition]
    method: Method
    schema: Schema
    declared: Declaration
    domains: dict[str, tuple[float, float]]
    kept: NDArray[np.int64] | None
    messages: tuple[Message, ...]
    internal: dict[str, Any]
    format: str
    codebook: Codebook | None = None
    conventions: Conventions = field(default_factory=Conventions)
    statistics: Any = None
    measurements: Measurements | None = None
    linked: dict[str, Any] = field(default_factory=dict)
    verify: Callable[[Table, Mapping[str, Table]], None] | None = None
    use: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.domains)

    @property
    def notes(self) -> tuple[str, ...]:
        """For the custodian: columns left out and why."""
        return tuple(map(str, self.messages))

    def cluster_of(self, row: int) -> tuple[Cluster, ...]:
        """The clusters of one record, one per attribute group: private, like everything about a record.

        Args:
            row: position of the record in the table that was protected, counted from 0.

        Raises:
            OptionError: there is no such row, it took no part, or the method has no clusters.
        """
        rows = self.internal["rows_read"]
        if not 0 <= row < rows:
            raise OptionError("row-protected-table-rows-0", row=row, rows=rows - 1)
        if not self.partition:
            raise OptionError("method-gives-no-record-cluster-could", method=self.method.name)
        kept = np.arange(rows) if self.kept is None else self.kept
        place = np.flatnonzero(kept == row)
        if not place.size:
            raise OptionError("row-took-no-part-release", row=row)
        found = []
        for made in self.partition:
            label = int(made.labels[place[0]])
            found.append(Cluster(made.columns, label, tuple(kept[made.labels == label].tolist())))
        return tuple(found)

    def corrected(self, column: str) -> Corrected:
        """The frequencies of a column corrected for the matrix that its values passed, with standard errors.

        They are computed from the released table only, and may be published with it.

        Raises:
            OptionError: the column is not released, or the method uses no matrix that has an inverse.
        """
        return corrected(self.data, self.method, self.schema, self.columns, column)

    def save(
        self,
        folder: str | Path,
        internal: str | Path | None = None,
        *,
        format: str | None = None,
        evaluation: Any = None,
        original: Any = None,
        statistics: bool = False,
        progress: Progress | None = None,
    ) -> Path:
        """Write the publishable bundle to `folder`, with the clusters' statistics if asked for; the internal report,
        compared with `original` (the table that was protected) if given, goes elsewhere. All is written or nothing."""
        from shoal.io import not_an_address, place
        from shoal.journal import Journal
        from shoal.release.bundle import save_bundle

        kind = format or self.format
        saved = save_bundle(
            self,
            not_an_address(place(folder)),
            internal,
            kind,
            evaluation,
            original,
            statistics=statistics,
            progress=progress,
        )
        if internal is not None and original is not None:
            views = ["histogram"]
            Journal.open().note("measured", columns=self.columns, by="save", views=views, release=self.use)
        return saved


def carry_out(prepared: Preparation, progress: Progress | None = None, frozen: Any = None) -> Release:
    """Spend the budget of a prepared release: the part of `protect` that uses the records.

    `frozen` is the result of the method's `freeze` on the same records, to avoid computing it again.
    """
    tell = progress or silent
    tell("protecting", 0, 1)
    method, account = prepared.method, prepared.account()
    settled = (prepared.described, prepared.plan, account, tell)
    if frozen is not None and method.freezes:
        return finished(prepared, method.run_frozen(*settled, frozen), account, tell)
    return finished(prepared, method.run(*settled, prepared.labels), account, tell)


def finished(
    prepared: Preparation, rebuilt: Rebuilt, account: Accountant, tell: Progress = silent
) -> Release:
    """The release of what a run made: rows in random order, values as the columns store them."""
    table, method = prepared.described.table, prepared.method
    tell("shuffling rows", 0, 1)
    source = account.free("order of the released rows")
    made = method.publish(prepared.described, rebuilt, source)
    released, linked = made or one_table(method, prepared.described, rebuilt, source)
    notes: tuple[Message, ...] = ()
    if prepared.rakes:
        tell("raking the weights", 0, 1)
        released, notes = with_raked_weight(released, prepared.described.schema)
    rows = int(next(iter(rebuilt.values.values())).size)
    return prepared.drawn(rebuilt.conditions, rows).release(
        data=released,
        notes=notes,
        linked=linked,
        aligned=measured(prepared.described, rebuilt) if rebuilt.aligned else None,
        partitions=rebuilt.partitions,
        internal={**rebuilt.internal, **by_stratum(prepared.method, prepared.described, rebuilt)},
        statistics=None if rebuilt.statistics is None else table.like(rebuilt.statistics, keep_dtypes=False),
        measurements=rebuilt.measurements,
    )


@displayed(display.of_preparation)
@dataclass(frozen=True, slots=True, eq=False)
class Preparation:
    """All settings of a release, fixed before the budget is spent."""

    method: Method
    declared: Declaration
    described: Described
    plan: Plan
    source: Source
    statement: PrivacyStatement
    labels: ArrayLike | None = None

    def account(self) -> Accountant:
        """The account of one run, with the plan's reservations and nothing spent."""
        unit = self.described.provenance.unit
        return self.method.account(self.plan, self.source, "row" if unit is None else unit)

    @property
    def rakes(self) -> bool:
        """Whether the release gets weights computed from public margins."""
        return _raked(self.described)

    def stated(self, described: Described) -> Preparation:
        """The same with other circumstances, and the statement that follows from them."""
        return replace(self, described=described, statement=_statement(self.method, described, self.plan))

    def drawn(self, conditions: tuple[Message, ...], rows: int) -> Preparation:
        """The same with the number of released rows: the statement then includes what follows from it."""
        return replace(
            self,
            statement=replace(
                self.statement,
                terms=self.statement.terms.with_conditions(conditions),
                expected_error=expected_error(self.method, self.described, self.plan, rows),
            ),
        )

    @property
    def foreseen(self) -> PrivacyStatement:
        """The statement to expect, with the error that follows from the table's own number of rows.

        That number may be private, so this is for the custodian only.
        """
        expected = expected_error(self.method, self.described, self.plan, inside=True)
        return replace(self.statement, expected_error=expected)

    def release(
        self,
        data: Any,
        aligned: Any,
        partitions: list[Partition],
        internal: dict[str, Any],
        statistics: Any = None,
        linked: dict[str, Any] | None = None,
        measurements: Measurements | None = None,
        notes: tuple[Message, ...] = (),
    ) -> Release:
        """The release with these settings and the given results."""
        described = self.described
        return Release(
            data=data,
            aligned=aligned,
            statement=self.statement,
            partition=partitions,
            method=self.method,
            schema=public_schema(described, self.declared),
            declared=self.declared,
            domains={name: (float(lat.lo), float(lat.hi)) for name, lat in described.lattices.items()},
            kept=described.kept,
            messages=(*described.notes, *notes),
            internal={
                "rows_read": described.table.n,
                "rows_released": described.n,
                **({"steps": _counted(described)} if described.table.steps else {}),
                **internal,
            },
            format=described.table.format,
            codebook=described.table.codebook,
            conventions=described.table.conventions,
            statistics=statistics,
            measurements=measurements,
            linked=linked or {},
            verify=partial(self.method.verify, described.without_records(), check=check)
            if self.method.verifies
            else None,
        )


def prepare(
    table: Table,
    schema: Schema | None = None,
    method: str | Method = DEFAULT_METHOD,
    epsilon: Any = None,
    k: int | None = None,
    seed: int | None = None,
    *,
    look: DescribeTable | None = None,
    **options: Any,
) -> Preparation:
    """Fix method, lattices, budget and statement, and refuse what would fail later; arguments as for `protect`.

    `look` replaces `look_at`: repeated calls about one table can cache what was read.
    """
    problems = Problems()
    asked: dict[str, Any] = dict(options)
    if (bound := asked.pop("bound", None)) is not None:
        schema = with_bound(schema, bound)
    labels = asked.pop("labels", None)
    bought = [asked.pop(name, None) for name in ("tuned", "tuned_epsilon", "tuned_choice")]
    said = {name: asked.pop(name) for name in _SAID if name in asked}
    if seed is not None:
        said["bound_key"] = fresh_key(seed)
    if labels is not None:
        asked = {"partition": "given", **asked}
    # a method with invalid settings still determines the columns it takes; it has no default k to complain about
    settled = method if isinstance(method, Method) else method_class(method).example()
    right = False
    with problems.collected():
        settled = configured(method, epsilon=epsilon, k=k, **asked)
        right = True
    with problems.collected():
        chosen = tuned_settings(*bought)
        declared = replace(Declaration.of(schema, **said), tuned=chosen)
        described = _described_table(table, declared, settled, problems, look or describe_table, sized=right)
    problems.raise_all()
    settled, found = settled.for_units(described.provenance.rows_per_unit).settle(described)
    plan = settled.plan(described)
    source = noise_source(seed)
    described = with_tuning(described, chosen, settled)
    provenance = _with_seed(described.provenance, source)
    provenance = replace(
        provenance,
        most_epsilon=declared.most_epsilon,
        override=declared.override,
        public_rows=settled.rows if settled.adjacency.hides_size else described.n,
    )
    described = replace(described, provenance=provenance)
    statement = _statement(settled, described, plan)
    notes = (
        *_own_notes(settled, described),
        *found,
        *_rules_ignored(settled, described),
        *advice(settled, described, plan),
    )
    described = replace(described, notes=notes)
    settled.refuse(described, plan, labels)
    if _raked(described):
        check_raking(described.schema, described.columns)
    return Preparation(settled, declared, described, plan, source, statement, labels)


def with_bound(schema: Schema | None, bound: Any) -> Schema:
    """The schema with the caller's bound on the rows of each unit."""
    if schema is None:
        raise OptionError("bound-needs-unit", option="bound")
    return schema.with_bound(bound)


def _own_notes(method: Method, described: Described) -> tuple[Message, ...]:
    """The notes about a table, without one about a unit column whose place numbers take."""
    unit = described.provenance.unit
    return tuple(
        note for note in described.notes if not (method.measures_units and note.facts.get("column") == unit)
    )


def _rules_ignored(method: Method, described: Described) -> tuple[Message, ...]:
    """A note where the rows of a method need not satisfy the rules of the schema."""
    if not described.rules or method.keeps_rules:
        return ()
    return (Message.of("rules-not-kept", method=method.name),)


def _raked(described: Described) -> bool:
    weight = None if described.schema is None else described.schema.weight
    return weight is not None and weight.release == "raked"


def _counted(described: Described) -> dict[str, int]:
    """Number of cells that each preprocessing step changed: a private fact."""
    assert described.schema is not None
    steps = described.schema.declared.steps
    return {step.words: count for step, (_, count) in zip(steps, described.table.steps, strict=True)}


def _statement(method: Method, described: Described, plan: Plan) -> PrivacyStatement:
    provenance = described.provenance
    claim = method.applied_claim(len(described.lattices), provenance.nominal)
    if method.epsilon is not None and method.unit_rows != provenance.rows_per_unit:
        raise RuntimeError(
            "the budget of a row would be stated as that of a unit: probably a bug, please report."
        )
    statement = state(method, described.lattices, plan, provenance, claim)
    return replace(statement, expected_error=expected_error(method, described, plan))


@dataclass(frozen=True, slots=True)
class Angle:
    """Everything in a method that affects how a table is described.

    Attributes:
        kinds: kinds of columns that it takes.
        free: its claim needs no domain known beforehand.
        flags: it can have "missing" as a separate position in ordered columns.
        generalise: groups of values can be released.
        may_stay: kinds of columns whose values may stay missing in their rows, as its claim allows.
        empty: it takes a table without rows, because their number is private.
    """

    kinds: tuple[str, ...]
    free: bool
    flags: bool
    generalise: bool
    empty: bool
    may_stay: tuple[str, ...] = ()

    @classmethod
    def of(cls, method: Method) -> Angle:
        free = MODELS[method.model(1)].of_the_table or method.claims.free
        empty = method.adjacency.hides_size
        claim = method.applied_claim(2)
        stay = MODELS[claim.model].given_partition or claim.shows_gaps
        # a method that suppresses cells does so with nominal values too; others have a category for them
        emptied = method.claims.free
        may_stay = tuple(kind for kind, facts in KIND_FACTS.items() if stay and (facts.ordered or emptied))
        return cls(method.kinds, free, method.stage.flags, method.output.generalise, empty, may_stay)


# describes a table from its declarations, and returns the described table and the errors found
DescribeTable = Callable[[Table, Declaration, Angle], tuple[Described, tuple[ShoalError, ...]]]


def describe_table(
    table: Table, declared: Declaration, angle: Angle
) -> tuple[Described, tuple[ShoalError, ...]]:
    """Describe a table and check its values; settings chosen on the records are not used."""
    problems = Problems()
    described = describe(
        table,
        declared,
        angle.kinds,
        free=angle.free,
        flags=angle.flags,
        empty=angle.empty,
        may_stay=angle.may_stay,
        problems=problems,
    )
    for attribute in described.attributes:
        with problems.collected():
            check_storable(described.table, attribute, generalise=angle.generalise)
    described.check(problems)
    return described, problems.found


def _described_table(
    table: Table,
    declared: Declaration,
    method: Method,
    problems: Problems,
    look: DescribeTable,
    *,
    sized: bool,
) -> Described:
    """The described table; collect every error that can be found before a run.

    `sized` says whether the method's k is the requested one.
    """
    described, found = look(table, declared, Angle.of(method))
    for problem in found:
        problems.add(problem)
    with problems.collected():
        method.allow_noise(len(described.columns))
    # a private number of rows is never compared
    if sized and method.k is not None and not method.adjacency.hides_size:
        with problems.collected():
            check_k(method.k, described.n)
    return described


def _with_seed(provenance: Provenance, source: Source) -> Provenance:
    if not source.reproducible:
        return provenance
    return replace(provenance, experiment=(*provenance.experiment, "seeded"))
