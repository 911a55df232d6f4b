"""Entry points of `evaluate`, `check`, `risk` and `attack`, and frequencies corrected for public matrices.

Choose the engine, measure, and note it in the journal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

import narwhals as nw

from shoal import display
from shoal.arguments import as_names, renamed_arguments
from shoal.columns import Declaration, Schema, describe, read_declared
from shoal.display import displayed
from shoal.engines import LocalRunner, Runner
from shoal.errors import OptionError, Problems
from shoal.evaluation import (
    TOLERATED,
    AttackReport,
    BatchReading,
    Check,
    Evaluation,
    Form,
    MissingRule,
    Points,
    Protocol,
    Risk,
    Side,
    check_in_parts,
    evaluate_in_parts,
    unmatched,
)
from shoal.evaluation import attack as attack_in_memory
from shoal.evaluation import check as check_in_memory
from shoal.evaluation import evaluate as evaluate_in_memory
from shoal.evaluation import risk as risk_in_memory
from shoal.io import Conventions, Frozen, Table, frozen, is_parquet, read
from shoal.mechanisms import CorrectedFrequency, Method
from shoal.progress import Progress, silent
from shoal.release.uses import folder_of, note_use, shows_records
from shoal.report import Subject, bundle_of, of_bundle, published
from shoal.text import Message

Engine = Literal["memory", "local", "spark"]
ENGINES: tuple[Engine, ...] = ("memory", "local", "spark")
# number of values (rows times columns) from which Parquet files are not loaded as a whole
LARGE = 20_000_000


@dataclass(frozen=True, slots=True)
class Where:
    """Where the work is done, as the caller specifies it.

    Attributes:
        engine: None chooses by the size of the tables.
        master, conf: as for `shoal.publish`.
    """

    engine: str | None = None
    master: str | None = None
    conf: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse invalid combinations."""
        if self.engine is not None and self.engine not in ENGINES:
            raise OptionError("unknown-engine", option="engine", engine=self.engine, allowed=tuple(ENGINES))
        for name in ("master", "conf"):
            if getattr(self, name) and self.engine != "spark":
                raise OptionError("option-engine-spark", option=name)

    def runners(self, tables: Sequence[Any], obstacle: Message | None = None) -> tuple[Runner, ...] | None:
        """A runner for each table; None where they are measured in memory.

        Args:
            tables: paths; anything else is already in memory.
            obstacle: why the tables must be in memory; None if they need not be.

        Raises:
            OptionError: an engine was requested, and a table is not a Parquet file or must be in memory.
        """
        self.check()
        paths = [Path(table) if isinstance(table, (str, Path)) else None for table in tables]
        wanted = self.engine in ("local", "spark")
        if wanted and obstacle:
            raise OptionError(
                "engine-works-through-tables-parts", option="engine", engine=self.engine, obstacle=obstacle
            )
        found = [path for path in paths if path is not None and path.exists() and is_parquet(path)]
        if len(found) < len(paths):
            if wanted:
                odd = next(path for path in paths if path is None or path not in found)
                raise OptionError(
                    "engine-reads-parquet" if odd is None else "engine-reads-parquet-not-this",
                    option="engine",
                    engine=self.engine,
                    path=odd,
                )
            return None
        if self.engine == "memory" or (not wanted and obstacle):
            return None
        if self.engine == "spark":
            from shoal.engines import spark_runner

            return tuple(spark_runner(path, None, self.master, self.conf) for path in found)
        files = [frozen(path) for path in found]
        if not wanted and not any(path.is_dir() for path in found) and not any(map(large, files)):
            return None
        return tuple(LocalRunner(one) for one in files)


def large(files: Frozen) -> bool:
    """Whether files are too large to be loaded as a whole by default."""
    return files.rows * len(files.schema) >= LARGE


_SIDE_BY_SIDE = (
    ("same_order", "rows-side-by-side"),
    ("target", "target-side-by-side"),
    ("weight", "estimates-side-by-side"),
    ("strata", "estimates-side-by-side"),
)


def evaluate(
    original: Any,
    released: Any,
    *,
    columns: str | Sequence[str] | None = None,
    same_order: bool = False,
    target: str | None = None,
    protocol: Protocol = "k-fold",
    folds: int = 5,
    runs: int = 5,
    trees: int = 100,
    weight: str | None = None,
    strata: str | None = None,
    dataset: str | None = None,
    engine: Engine | None = None,
    master: str | None = None,
    conf: Sequence[str] = (),
    progress: Progress | None = None,
) -> Evaluation:
    """Measure the utility that a release lost and the disclosure risk that remains.

    With a `Release` whose rows have an original, all measures exist and are taken on its unrounded values
    in input order. With any other table (or a release without such rows) only the measures that need no row
    order exist, unless the caller says that the rows are in the same order; the others are None. The k actually
    reached is always that of the published table.

    Numeric columns have all measures. Ordered columns (ordinal and date, where a release says so or the type is
    a date) have those that need no zero; text and Boolean values are nominal and have their own: errors in the semantic
    distance of their taxonomy; without one, any two values are equally far apart.

    Args:
        original: path, or pandas, polars or pyarrow table; a folder of Parquet files too.
        released: a `Release`, or a path or table; the folder of a release, or of Parquet files, too.
        columns: measure only these, or a single one; by default the released columns, or the columns both tables have.
        same_order: row i of the released table came from row i of the original, where `released` is a plain table.
        target: also measure how well a random forest trained on the release predicts this column: one of
            classes, or a numeric one with a threshold, such as "income>30000"; see `shoal.evaluation.learn`.
        protocol: of learning: `k-fold`, or `first-66%`, the split of the iDP paper.
        folds: number of folds of `k-fold`.
        runs: number of runs of learning, with different seeds; the intervals are over these.
        trees: number of trees of a forest.
        weight: the survey weight of the original: also compare the survey estimates of both tables, as
            `shoal.estimates` does; by default the weight of a release's schema.
        strata: with a weight, the column of the strata of the sample.
        dataset: the name of the original data set, under which the journal of use records the measurement; by default
            that of the `Release`.
        engine: `memory`; or `local` and `spark`, which work through Parquet files in parts. By default chosen by their
            size. The measures are the same; `remarks` of the result lists what cannot be computed in parts.
        master, conf: with engine `spark`, as for `shoal.publish`.
        progress: called with (what, done, total); an exception that it raises stops the work.

    Returns:
        Facts about the original data: they belong in the internal report, not in a publication.

    Raises:
        InputError: a table is empty, there is no common column, or a chosen one is unknown or holds different
            kinds of values; the target is unknown, or cannot be learned.
        OptionError: an option has a value that cannot be used, or not in parts.
        MissingExtraError: there is a target, and the extra 'learn' is not installed.

    Cost:
        O(n log n) per column; record linkage as described in `record_linkage`, learning as in `learn`. In parts, the
        memory of a batch and of one bucket of rows.

    >>> import pyarrow as pa
    >>> before = pa.table({"age": [20, 30, 40, 50]})
    >>> result = evaluate(before, pa.table({"age": [25, 25, 45, 45]}))
    >>> result.utility["mean_variation"], result.risk["actual_k"], result.utility["sse"]
    (0.0, 2, None)
    """
    on_disk = isinstance(released, (str, Path)) and Path(released).is_dir()
    bundle = bundle_of(released, on_disk=True) if on_disk else None
    asked = {"same_order": same_order, "target": target, "weight": weight, "strata": strata}
    where = Where(engine, master, tuple(conf))
    runners = where.runners((original, data_of(bundle, released)), in_memory_because(asked))
    if runners is not None:
        na = () if bundle is None else bundle.na
        found = evaluated(runners, bundle, columns=columns, na=na, progress=progress)
        note_use("measured", runners[0], found.columns, "shoal.evaluate", dataset, folder=folder_of(released))
        return found
    after = released if bundle is None else published(of_bundle(released))
    before, of = _original(original, after)
    measured = evaluate_in_memory(
        before,
        after,
        columns=columns,
        same_order=same_order,
        target=target,
        protocol=protocol,
        folds=folds,
        runs=runs,
        trees=trees,
        weight=weight,
        strata=strata,
        progress=progress,
    )
    which = of if bundle is None else {}
    note_use(
        "measured", before, measured.columns, "shoal.evaluate", dataset, folder=folder_of(released), **which
    )
    return measured


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
    dataset: str | None = None,
    engine: Engine | None = None,
    master: str | None = None,
    conf: Sequence[str] = (),
    progress: Progress | None = None,
) -> Check:
    """Measure the protection that a table from any tool reaches.

    Rows that agree in all quasi-identifiers are a group. Missing values agree with each other and are a separate
    value. A missing sensitive value could be any: for l it counts as the commonest one of its group.

    Args:
        table: path, or pandas, polars or pyarrow table; a folder of Parquet files too.
        quasi_identifiers: the columns that an intruder may know, or a single one; by default those with that role in
            the schema.
        sensitive: the sensitive columns, or a single one; by default those with the role `confidential`, none without
            a schema.
        schema: roles, the order of ordinal columns, and preprocessing steps that are run before anything is measured.
        k: required level: rows, or persons, in the smallest group.
        l: required level: distinct sensitive values in every group.
        t_emd: required level: largest earth mover's distance of a group to the table. Numbers, dates, enumerations and
            ordinal columns are ordered, each value one step from the next; any two other values are equally far apart.
        t_ratio: required level: largest ratio, either way, between a value's share in a group and in the table.
        weight: column of sampling weights, for the disclosure risk; by default the one with that role.
        household: column that identifies the household.
        unit: column that identifies the person, where a person can have several rows; by default the one with the role
            `unit`. Persons are counted then: k is their number in the smallest group, l how many of them have a
            sensitive value each, all different, and a person has one share of a group's values, in equal parts for
            their rows.
        dataset: the name of the data set, under which the journal of use records the measurement.
        engine: `memory`; or `local` and `spark`, which work through Parquet files in parts. By default chosen by their
            size. The levels are the same; `remarks` of the result lists what cannot be computed in parts.
        master, conf: with engine `spark`, as for `shoal.publish`.
        progress: called with (what, done, total); an exception that it raises stops the work.

    Returns:
        The levels; `met` says whether all required ones are reached.

    Raises:
        InputError: an unknown column, or a table without rows.

    Cost: one sort per column and sensitive attribute, O(n) memory; in parts, that of a batch and of one bucket.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [30, 30, 40, 40], "ill": ["a", "b", "b", "b"]})
    >>> found = check(people, ["age"], ["ill"], k=2, l=2)
    >>> found.k, found.distinct_l, found.emd, found.met
    (2, 1, 0.25, False)
    """
    levels: dict[str, Any] = {"k": k, "l": l, "t_emd": t_emd, "t_ratio": t_ratio}
    runner = check_runner(Where(engine, master, tuple(conf)), table, schema, weight, household, unit)
    if runner is not None:
        found = checked(runner, quasi_identifiers, sensitive, schema=schema, levels=levels, progress=progress)
    else:
        data = read(table)
        more: dict[str, Any] = {"weight": weight, "household": household, "unit": unit, "progress": progress}
        found = check_in_memory(data, quasi_identifiers, sensitive, schema=schema, **levels, **more)
    if shows_records(table, dataset):
        note_use("viewed", runner or data, (), "shoal.check", dataset)
    return found


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
    dataset: str | None = None,
    progress: Progress | None = None,
) -> Risk:
    """Measure the disclosure risk of a table, record by record, as statistical offices do.

    The intruder knows the keys of a person who may be in the table. Measured are the number of matching records, the
    number of matching people in the population, and the chance that the right one is picked. This implies no guarantee.

    Args:
        table: path, or pandas, polars or pyarrow table.
        quasi_identifiers: the columns that an intruder may know, or a single one; by default those with that role in
            the schema.
        weight: the column of sampling weights; by default the one with that role in the schema. Without weights the
            table is taken as the whole population.
        household: the column that identifies the household. A record without one is a household by itself.
        unit: the column that identifies the person, where a person can have several records; by default that with
            the role `unit` in the schema. Persons are counted then: fk is how many of them match, Fk the sum of their
            weights, of each person the smallest one of their records; a person's risk is that of their riskiest record.
        schema: roles of the columns, and preprocessing steps that are run before anything is measured.
        sensitive: columns whose l-diversity is measured, or a single one; a missing value counts as the commonest
            of its group.
        missing: whether a missing key matches any value in fk and Fk (`wildcard`) or is a separate value (`category`).
        alpha: the weight of a match by wildcard, 0 to 1.
        form: of the individual risk: closed forms (`approximate`) or the mean of 1/F itself (`exact`).
        tolerated: the tolerated global risk, for the threshold.
        special: search special uniques (SUDA2); by default with at most 8 keys, or 12 where few records are unique.
        fraction: share of the population that is in the sample, for DIS scores.
        points: how minimal sample uniques are weighted: `original`, (m-s)!, or `ihsn`.
        interactions: sets of keys whose joint tables the log-linear model fits.
        c: the constant of recursive l-diversity.
        dataset: the name of the data set, under which the journal of use records the measurement.
        progress: called with (what, done, total); an exception that it raises stops the work.

    Returns:
        Arrays in input order and figures of the whole table: facts about the records, never published.

    Raises:
        InputError: an unknown column, a table without rows, a weight that is missing or not above 0, or a record
            without a person.
        OptionError: there are no keys, or an option has a value that cannot be used.

    Cost:
        One pass per column; O(n) memory. SUDA2 visits sets of keys, 2^keys at most.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [30, 30, 40, 50], "town": ["a", "a", "b", None], "w": [10, 12, 5, 2]})
    >>> found = risk(people, ["age", "town"], weight="w")
    >>> found.fk.tolist(), found.Fk.tolist(), round(found.expected, 3), found.suda.tolist()
    ([2.0, 2.0, 1.0, 1.0], [22.0, 22.0, 5.0, 2.0], 1.248, [0.0, 0.0, 2.0, 1.0])
    """
    data = read(table) if schema is None else read_declared(table, schema)
    found = risk_in_memory(
        data,
        quasi_identifiers,
        weight,
        household,
        unit=unit,
        schema=schema,
        sensitive=sensitive,
        missing=missing,
        alpha=alpha,
        form=form,
        tolerated=tolerated,
        special=special,
        fraction=fraction,
        points=points,
        interactions=interactions,
        c=c,
        progress=progress,
    )
    note_use("viewed", data, (), "shoal.risk", dataset)
    return found


@renamed_arguments(secret="sensitive")
def attack(
    original: Any,
    released: Any,
    control: Any = None,
    *,
    columns: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] | None = None,
    attempts: int = 500,
    tolerance: float = 0.05,
    seed: int | None = None,
    dataset: str | None = None,
    progress: Progress | None = None,
) -> AttackReport:
    """Attack a released table as an outsider would, and measure the success rates.

    Linkability (join two files through the released table), singling out (find a condition that only one person
    fulfils) and attribute inference (guess an unknown column). Each has its success rate with a 95%
    interval and the rate of random guessing. Much of the success may reflect the population at large; with a
    control group the part that is due to being in the data is measured too.

    Args:
        original: the table that was protected: path, or pandas, polars or pyarrow table.
        released: a `Release`, or a path or table from any tool. Of a `Release` with rows of known origin, record
            linkage is measured as well.
        control: records like the original ones that were NOT used for the release.
        columns: attack only these, or a single one; by default all that both tables have. The first half of them is
            what one source knows in the linkability attack, the second half what the other source knows.
        sensitive: the column to infer from all others, or several; by default each in turn.
        attempts: number of targets, or of predicates, of each attack.
        tolerance: how far off a correct guess of a number may be, as a share of its range in the original.
        seed: makes the choice of targets and predicates reproducible.
        dataset: the name of the original data set, under which the journal of use records the measurement; by default
            that of the `Release`.
        progress: called with (what, done, total); an exception that it raises stops the work.

    Returns:
        Facts about the original data: they belong in the internal report, not in a publication.

    Raises:
        InputError: no common column, a missing value, or different types under one name.
        OptionError: attempts or tolerance out of range, or an unknown sensitive column.

    Cost:
        O(attempts · n) time per column at most, O(n) memory.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [20, 31, 45, 58], "town": ["A", "B", "A", "C"], "pay": [10, 22, 31, 47]})
    >>> leaked = attack(people, people, seed=1)
    >>> leaked["singling out, one column"].success.value, leaked["inference of pay"].success.value
    (1.0, 1.0)
    """
    before, of = _original(original, released)
    found = attack_in_memory(
        before,
        released,
        control,
        columns=columns,
        sensitive=sensitive,
        attempts=attempts,
        tolerance=tolerance,
        seed=seed,
        progress=progress,
    )
    note_use("measured", before, found.columns, "shoal.attack", dataset, folder=folder_of(released), **of)
    return found


def _original(original: Any, released: Any) -> tuple[Table, dict[str, str]]:
    """The original as read for a release and, for the journal, which release in memory it belongs to."""
    # checked first: a dataframe may have columns named like the attributes of a release
    if nw.dependencies.is_into_dataframe(released) or not hasattr(released, "aligned"):
        return read(original), {}
    return read_declared(original, released.schema), {"release": getattr(released, "use", "")}


def check_runner(
    where: Where,
    table: Any,
    schema: Schema | None,
    weight: str | None,
    household: str | None,
    unit: str | None,
) -> Runner | None:
    """The runner for a table in parts, or None where it is checked in memory.

    Raises:
        OptionError: an engine was requested, and options or the schema's unit need the table in memory.
    """
    given = (("unit", unit), ("weight", weight), ("household", household))
    asked = [Message.of("records-side-by-side", name=name) for name, column in given if column is not None]
    runners = where.runners([table], next(iter(asked), None))
    if runners is None:
        return None
    declared = None if schema is None else schema.unit
    if declared is None or declared.name not in runners[0].schema.names:
        return runners[0]
    where.runners([table], Message.of("persons-side-by-side", column=declared.name))
    return None


def in_memory_because(options: Mapping[str, Any]) -> Message | None:
    """Why options of an evaluation need the tables in memory; None if they do not."""
    return next((Message(code, {"name": name}) for name, code in _SIDE_BY_SIDE if options.get(name)), None)


def data_of(bundle: Subject | None, released: Any) -> Any:
    """The location of the released table: the data of a bundle, or the given path."""
    return released if bundle is None else bundle.table.path


def evaluated(
    runners: Sequence[Runner],
    bundle: Any = None,
    *,
    columns: str | Sequence[str] | None = None,
    na: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    file: Conventions | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure two tables by their runners; the bundle supplies the public facts about the columns.

    Args:
        bundle: a `Subject`, or None where neither table is a release.
    """
    schema = None if bundle is None else bundle.schema
    before = Side(runners[0], BatchReading(schema, tuple(na), types, file))
    after = Side(runners[1], before.reading)
    if schema is not None:
        # the released table already has the preprocessing steps applied
        after = Side(runners[1], BatchReading(replace(schema, steps=(), before=None), tuple(na)))
    pair = unmatched(before.table(), after.table(), None if bundle is None else published(bundle))
    found = evaluate_in_parts(before, after, pair, as_names(columns), progress or silent)
    weight = None if schema is None else schema.weight
    if weight is not None and weight.name in pair.before.names:
        found = replace(found, told=(*found.told, Message("estimates-not-in-parts")))
    return found


def checked(
    runner: Runner,
    quasi_identifiers: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] | None = None,
    *,
    schema: Schema | None = None,
    levels: Mapping[str, float | None],
    na: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    file: Conventions | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Check:
    """Check a table by its runner."""
    side = Side(runner, BatchReading(schema, tuple(na), types, file))
    return check_in_parts(side, quasi_identifiers, sensitive, schema, levels, progress or silent)


@displayed(display.of_corrected)
@dataclass(frozen=True, slots=True)
class Corrected:
    """Estimated frequencies of the original values of one column; post-processing of the released table.

    Attributes:
        column: its name.
        rows: number of released rows.
        values: the values that the column can have, "(missing)" included.
        released: how many released rows have each value.
        counts: unbiased estimates of how many records had it. They add up to the number of rows; rare values can have
            negative estimates.
        standard_errors: of the estimates. They cover the random changes of the values, not the choice of a sample.
    """

    column: str
    rows: int
    values: tuple[str, ...]
    released: tuple[int, ...]
    counts: tuple[float, ...]
    standard_errors: tuple[float, ...]

    @property
    def shares(self) -> tuple[float, ...]:
        """The estimated counts as shares of the rows."""
        return tuple(count / max(self.rows, 1) for count in self.counts)

    def interval(self, level: float = 0.95) -> tuple[tuple[float, float], ...]:
        """An interval for each count that contains it with this probability, by the normal approximation.

        Raises:
            OptionError: the level is not between 0 and 1.
        """
        if not 0 < level < 1:
            raise OptionError("level-between-0-and-1", option="level", found=level)
        factor = NormalDist().inv_cdf((1 + level) / 2)
        return tuple(
            (count - factor * error, count + factor * error)
            for count, error in zip(self.counts, self.standard_errors, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "column": self.column,
            "rows": self.rows,
            "values": [
                {"value": value, "released": released, "count": count, "standard_error": error}
                for value, released, count, error in zip(
                    self.values, self.released, self.counts, self.standard_errors, strict=True
                )
            ],
        }


def corrected(data: Any, method: Method, schema: Schema, columns: tuple[str, ...], column: str) -> Corrected:
    """The frequencies of one released column before the matrix that it passed.

    Args:
        data: the released table.
        schema: the public facts about its columns.
        columns: all released columns, among which ε was split.

    Raises:
        OptionError: the column is not released, or its values passed no matrix that has an inverse.
    """
    # cleaning steps and units belong to the table before protection
    released = Schema(tuple(one for one in schema.attributes if one.name in columns), schema.file)
    problems = Problems()
    described = describe(
        read(data),
        Declaration.of(replace(released, before=None), columns=list(columns), outside="clip"),
        method.kinds,
        flags=method.stage.flags,
        problems=problems,
    )
    problems.raise_all()
    found: CorrectedFrequency = method.corrected(described, column)
    return Corrected(
        column,
        described.n,
        found.names,
        tuple(found.released.tolist()),
        tuple(found.counts.tolist()),
        tuple(found.errors.tolist()),
    )
