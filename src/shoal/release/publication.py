"""`publish`: open the table, choose the engine, and write the files of a release, all of them or none."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shoal import display
from shoal.columns import Schema, fresh_key, missing_texts, read_as_asked
from shoal.display import displayed, internal
from shoal.engines import Delivered, LocalRunner
from shoal.errors import LeftOutWarning, OptionError, ShoalError
from shoal.evaluation import Evaluation
from shoal.io import (
    Table,
    check_internal,
    check_output,
    check_writable,
    fingerprint,
    frozen,
    is_parquet,
    is_spark_frame,
    known_format,
    not_an_address,
    place,
)
from shoal.ledger import named_dataset
from shoal.mechanisms import DEFAULT_METHOD, Method, class_of, configured, load_log, method_class
from shoal.progress import Cancel, Progress, silent, watched
from shoal.release.bundle import ReleaseReview, save_bundle
from shoal.release.estimate import (
    INTERNAL_REPORT,
    MEASURES,
    ResourceEstimate,
    estimate,
    estimate_in_parts,
    evaluation_seconds,
    internal_seconds,
)
from shoal.release.forecast import (
    DeltaComparison,
    ExpectedNoise,
    compared_with_delta,
    drowned,
    noise_of,
    rule_effects,
)
from shoal.release.in_parts.run import (
    COLLECTED,
    IN_MEMORY,
    carry_out_on_engine,
    check_engine,
    refusal,
    table_elsewhere,
)
from shoal.release.protection import Preparation, Release, carry_out, prepare
from shoal.release.uses import Uses, declared_name, files_of, names_of, warn
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns import Schema
    from shoal.engines import Runner
    from shoal.ledger import RecordedRelease


def protect(
    data: Any,
    schema: Schema | None = None,
    method: str | Method = DEFAULT_METHOD,
    epsilon: Any = None,
    k: int | None = None,
    seed: int | None = None,
    *,
    work: str | Path | None = None,
    staging: str | Path | None = None,
    dataset: str | None = None,
    same_records: str | Sequence[str] | None = None,
    not_same_records: str | Sequence[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Release:
    """Turn a table about people into one that can be published.

    Args:
        data: a path (see `shoal.io.FORMATS`), a pandas, polars or pyarrow table, or a Spark DataFrame with `work`.
        schema: kinds, roles and public domains; without one they are guessed and domains must be given.
        method: the name of a method, see `shoal.methods()`, or a method with its parameters, such as
            `shoal.PairsDP(epsilon="1")`; by default `pairs-dp`, the strongest claim for a whole table.
        epsilon: the privacy budget; decimal text is exact, a float means its shortest decimal text.
        k: minimum cluster size.
        seed: makes the release reproducible and therefore not publishable.
        columns: the columns to release, or a single one; the others are left out.
        domains: public domain by column, instead of or on top of the schema: (lo, hi), or for a nominal column its
            values or a `shoal.Taxonomy`.
        domain_from_data: take missing domains as 0 to this multiple of the maximum; taints the statement.
        outside: what to do with values outside their domain: "error" or "clip".
        missing: how to treat missing values: "error", "drop" (taints the statement), "category" (one more value; in
            ordered columns with pairs-dp, tree-dp and laplace) or "separate" (they stay missing, in clusters of
            their own).
        na: texts that stand for a missing value, such as ["?"].
        types: declared type by column (integer, decimal:2, date, timestamp, text, boolean), on top of the schema; types
            of a file's other columns are inferred from the records, which taints the statement.
        file: how a text file is written, such as {"encoding": "latin-1", "decimal": ","}, on top of the schema.
        labels: cluster labels made elsewhere, for methods with partition="given".
        tuned: choices that depend on these records: settings such as "k", "columns", "domains" or "domain:NAME";
            taints the statement, unless it is the `Tuning.tuned` of a private choice.
        tuned_epsilon: the ε of a private choice, as a recipe of `shoal tune --private` has it; added to the claim,
            which must be `dp`, if the values chosen with it are used.
        tuned_choice: the chosen values, with the candidates they were chosen from.
        most_epsilon: the ε per person, 10 by default, above which the verdict is "do not publish".
        override: why a release above it is published all the same; recorded in the statement.
        bound: at most so many rows of each unit take part, such as {"rows": 3}, instead of the schema's; see
            docs/guide/schema.md#contribution-bounding.
        work: a new folder for the release of a Spark DataFrame, which all workers can write to: a bundle as `publish`
            writes it, or the address of one, as `publish` takes it. `data` of the release is a DataFrame that reads it.
        staging: with an address as `work`, as for `publish`.
        dataset: the name of the data set, the same for everything about the same people: the statement holds what the
            journal of use has under it. Without one the journal is not used.
        same_records: names of other data sets, as a warning gives them, that hold the same records; a declaration,
            recorded in the statement. `not_same_records`: names of those that do not.
        progress: called with (what, done, total) during long work; raise `shoal.CancelledError` in it to stop.
        options: settings of the method, such as split, groups, link, remainder.

    Guarantee:
        Whatever `release.statement` says, and nothing else.

    Cost:
        One pass over the table plus the partition: a sort per attribute for `ranking-dp`, see
        `shoal.partition.mdav` for `mdav-dp`.

    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 45, 28, 60], "income": [20.5, 31.0, 18.2, 44.9]})
    >>> release = protect(people, method="mdav-dp", epsilon="1", k=2, seed=1,
    ...                   domains={"age": (0, 120), "income": (0.0, 200.0)})
    >>> release.data.column_names, release.data.num_rows, release.statement.model
    (['age', 'income'], 4, 'dp-given-partition')
    """
    tell = progress or silent
    if is_spark_frame(data):
        # engines import every mechanism
        from shoal.release.publication import publish

        if work is None:
            raise OptionError("one-call-work-missing-spark-dataframe-released-into", option="work")
        names: dict[str, Any] = {"same_records": same_records, "not_same_records": not_same_records}
        place: dict[str, Any] = {"out": work, "staging": staging}
        more: dict[str, Any] = {**place, "dataset": dataset, "progress": progress, **names, **options}
        return publish(data, schema, method, epsilon, k, seed, **more).release
    if work is not None or staging is not None:
        named = "staging" if work is None else "work"
        raise OptionError("option-spark-dataframe", option=named)
    tell("reading the table", 0, 1)
    # the method decides whether that is possible
    table = read_as_asked(data, {"schema": schema, **options}, empty=True)
    prepared = prepare(table, schema, method, epsilon, k, seed, **options)
    if schema is None and prepared.declared.columns is None and prepared.described.left_out:
        left_out = LeftOutWarning("left-out", columns=prepared.described.left_out)
        warnings.warn(left_out, stacklevel=2)
    uses = Uses.of(
        table,
        declared_name(dataset, schema),
        same_records=same_records,
        not_same_records=not_same_records,
    )
    questions = uses.questions()
    release = carry_out(uses.stated(prepared), tell)
    use = uses.note_release(release.statement, by="shoal.protect")
    warn([*questions, uses.problem])
    return replace(release, use=use)


def redo(
    log: str | Path,
    data: Any,
    *,
    out: str | Path,
    internal: str | Path | None = None,
    format: str | None = None,
    evaluate: bool = False,
    ledger: str | None = None,
    dataset: str | None = None,
    same_records: str | Sequence[str] | None = None,
    not_same_records: str | Sequence[str] | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Published:
    """Repeat a release on another table, such as next year's: the same steps, method, settings and sources.

    A log holds no seed, so the noise is drawn anew and the new release is judged by its own statement. Choices that
    the log marks as data-dependent stay so. The new release uses its own budget: name the ledger and
    the data set of the people whom the new table is about.

    Args:
        log: the `log.toml` of a release, or its folder.
        data: the new table, with the same columns.
        out: a new folder for the bundle, as for `shoal.publish`, like all other arguments.

    Raises:
        InputError, OptionError: the log cannot be read; parameters of a step or a domain were taken from the records
            of the first release, and are not in the log; or the new table does not fit.
    """
    recipe = load_log(log)
    return publish(
        data,
        **recipe,
        out=out,
        internal=internal,
        format=format,
        evaluate=evaluate,
        ledger=ledger,
        dataset=dataset,
        same_records=same_records,
        not_same_records=not_same_records,
        engine=engine,
        progress=progress,
        cancel=cancel,
    )


# `memory` holds the whole table, `local` works through Parquet files in parts, `spark` runs on a cluster
Engine = Literal["memory", "local", "spark"]
ENGINES: tuple[Engine, ...] = ("memory", "local", "spark")
# number of values (rows times columns) from which a Parquet file is not loaded as a whole
_LARGE = 20_000_000


@dataclass(frozen=True, slots=True)
class Delivery:
    """The outputs of a release; see `publish` for each of them.

    Attributes:
        out: a folder, or an address as text; see `shoal.io.files.place`.
    """

    out: Path | str | None = None
    internal: Path | None = None
    format: str | None = None
    statistics: bool = False
    evaluate: bool = False
    target: str | None = None
    ledger: str | None = None
    dataset: str | None = None
    engine: Engine | None = None
    master: str | None = None
    conf: tuple[str, ...] = ()
    staging: Path | None = None
    same_records: tuple[str, ...] = ()
    not_same_records: tuple[str, ...] = ()
    # Studio itself records which releases were viewed
    noted: bool = True

    @property
    def measured(self) -> bool:
        """Whether the loss and the risk of the release are shown with it."""
        return self.evaluate or self.internal is not None

    def check(self) -> None:
        """Refuse, before the table is read, what would fail at the end."""
        if isinstance(self.out, Path):
            check_output(self.out, self.internal)
        elif self.internal is not None:
            check_internal(self.internal)
        named_dataset(self.ledger, self.dataset)
        if self.format is not None:
            known_format(self.format)
        if self.engine is not None and self.engine not in ENGINES:
            raise OptionError("unknown-engine", option="engine", engine=self.engine, allowed=tuple(ENGINES))
        for name in ("master", "conf"):
            if getattr(self, name) and self.engine != "spark":
                raise OptionError("option-engine-spark", option=name)
        if self.staging is None:
            return
        if not isinstance(self.out, str):
            raise OptionError("staging-address-such-s3a-bucket-folder", option="staging")
        if not self.staging.is_dir():
            raise OptionError("staging-not-there", option="staging", staging=self.staging)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A table to be published: the caller's source, and the table, of which a large file is not in memory yet.

    Attributes:
        may_be_read: the engine was not requested explicitly, so unsupported files may be read as a whole.
    """

    data: Any
    table: Table
    engine: Engine = "memory"
    runner: Runner | None = None
    may_be_read: bool = False

    @property
    def on_disk(self) -> bool:
        return isinstance(self.data, (str, Path))


def opened(
    data: Any,
    delivery: Delivery | None = None,
    **request: Any,
) -> Opened:
    """Read a table as `publish` does: one for an engine stays on disk.

    Raises:
        OptionError: the method, or a requested output, needs the whole table in memory, and an engine was
            requested; nothing was read.
    """
    wanted = delivery or Delivery()
    engine = wanted.engine
    on_spark = is_spark_frame(data)
    if engine is None and on_spark:
        engine = "spark"
    if on_spark and engine != "spark":
        raise OptionError("engine-not-spark-dataframe", option="engine", engine=engine)
    if engine != "spark" and wanted.out is not None:
        not_an_address(wanted.out)
    path = Path(data) if isinstance(data, (str, Path)) else None
    if engine == "local" and path is None:
        raise OptionError("local-reads-parquet", option="engine")
    method = _asked_method(request)
    obstacle = _not_in_parts(method, wanted, request, in_memory(data))
    if engine in ("local", "spark") and obstacle:
        raise OptionError(
            "engine-works-through-table-parts", option="engine", engine=engine, obstacle=obstacle
        )
    # without rows there is nothing to protect, unless the number of rows is private
    private = method.adjacency.hides_size
    counted = method.stability != "record"
    na = missing_texts(request.get("na"))
    if engine == "spark":
        from shoal.engines import spark_runner

        runner = spark_runner(
            data, wanted.out, wanted.master, wanted.conf, staging=wanted.staging, empty=private
        )
        return Opened(data, table_elsewhere(runner, counted=counted, na=na), "spark", runner)
    parquet = path is not None and is_parquet(path)
    if engine == "local" and not parquet:
        raise OptionError("local-reads-parquet", option="engine")
    if path is not None and parquet and (engine == "local" or (engine is None and not obstacle)):
        files = frozen(path, empty=private)
        if engine == "local" or path.is_dir() or files.rows * len(files.schema) >= _LARGE:
            local = LocalRunner(files)
            may_be_read = engine is None
            return Opened(data, table_elsewhere(local, counted=counted, na=na), "local", local, may_be_read)
    return Opened(data, read_as_asked(data, request, empty=private))


def _asked_method(request: Mapping[str, Any]) -> Method:
    """Configure the method, ignoring invalid settings; validation happens later."""
    method: str | Method = request.get("method") or DEFAULT_METHOD
    if not isinstance(method, str):
        return method
    chosen = method_class(method)
    settings = {name: request.get(name) for name in ("epsilon", "k", *chosen.parameters())}
    try:
        return configured(method, **settings)
    except ShoalError:
        return chosen.example()


def in_memory(data: Any) -> Message:
    """How to get the caller's source into memory, as a refusal suggests it."""
    return COLLECTED if is_spark_frame(data) else IN_MEMORY


def _not_in_parts(
    method: Method, delivery: Delivery, request: Mapping[str, Any], way: Message
) -> Message | None:
    """Why a table must be in memory as a whole, and how to get it there; None if it need not be."""
    if reason := refusal(method, way):
        return reason
    schema = request.get("schema")
    weight = None if schema is None else schema.weight
    reasons = {
        "target-not-in-parts": delivery.evaluate and delivery.target is not None,
        "statistics-not-in-parts": delivery.statistics,
        "format-not-in-parts": delivery.format not in (None, "parquet"),
        "labels-not-in-parts": request.get("labels") is not None,
        "weights-not-in-parts": weight is not None and method.in_parts == "by_swap",
        "raked-not-in-parts": weight is not None and weight.release == "raked",
    }
    facts = {"in_memory": way, "format": delivery.format, "column": None if weight is None else weight.name}
    return next((Message(code, facts) for code, applies in reasons.items() if applies), None)


CHARGING = "charging the ledger"
_WORTH_AN_ESTIMATE = 500_000


@displayed(display.of_published)
@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """A release on disk.

    Attributes:
        release: the release; its `data` is the path of the written file where the table was too large for memory.
        folder: the bundle, which may be published if the statement says so; its address as text, if it has one.
        internal: the report with facts about the original data, None where none was requested.
        evaluation: measures of loss and risk, None where not requested; facts about the original data.
        estimate: the expected time and memory, None for a small table.
        charge: the ledger entry, None without a ledger.
        engine: the engine that was used.
        told: messages of the ledger and the journal of use.
        unasked: the released columns were not named, so the notes of the release should be read, too.
    """

    release: Release
    folder: Path | str
    internal: Path | None
    evaluation: Evaluation | None
    estimate: ResourceEstimate | None
    charge: RecordedRelease | None
    engine: Engine
    told: tuple[Message, ...]
    unasked: bool

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the custodian should read before publishing."""
        return tuple(map(str, (*self.told, *(self.release.messages if self.unasked else ()))))


@displayed(display.of_planned)
@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A planned publication, for which no budget was used and nothing was written.

    Attributes:
        prepared: method, columns, budget and statement.
        estimate: time and memory to expect, None for a small table.
        uses: the journal of use for this table; its `matches` are questions to the custodian.
        fingerprint: identifies the table in the ledger; empty without a ledger.
        noise: expected noise, column by column, from public quantities alone.
        rules: what the rules of the schema change, from public quantities alone.
        advised: what to consider before the budget is spent; `advice` has it as text.
        compared: the expected error without and with a δ, for methods that take one.
    """

    prepared: Preparation
    delivery: Delivery
    engine: Engine
    estimate: ResourceEstimate | None
    uses: Uses
    fingerprint: str
    noise: tuple[ExpectedNoise, ...] = ()
    advised: tuple[Message, ...] = ()
    runner: Runner | None = None
    original: Any = None
    compared: DeltaComparison | None = None
    rules: tuple[Message, ...] = ()

    @property
    def advice(self) -> tuple[str, ...]:
        return tuple(map(str, self.advised))

    def carry_out(self, progress: Progress | None = None, cancel: Cancel | None = None) -> Published:
        """Charge the ledger, make the release and write it."""
        tell = watched(progress, cancel)
        out = self.delivery.out
        if out is None:
            raise OptionError("publish-out-is-missing", option="out")
        try:
            if self.runner is not None:
                self.runner.check_room(self.runner.made_in(out), len(self.prepared.described.columns))
            charge = self.charge(tell)
        except BaseException:
            if self.runner is not None:
                self.runner.close()
            raise
        with _staying(charge):
            if charge is not None:
                tell(CHARGING, 1, 1)
            release, evaluation, delivered = self._written(out, tell)
            folder = delivered.folder
            if self.delivery.noted:
                use = self.uses.note_release(
                    release.statement,
                    folder=folder if isinstance(folder, str) else str(folder.absolute()),
                    by="protect",
                    measured=self.delivery.measured,
                    **({"views": ["histogram"]} if self.delivery.internal is not None else {}),
                    **({} if charge is None else {"charge": charge.head}),
                )
                release = replace(release, use=use)
            if delivered.problem is not None:
                raise delivered.problem
        declared = self.prepared.declared
        return Published(
            release=release,
            folder=folder,
            internal=self.delivery.internal,
            evaluation=evaluation,
            estimate=self.estimate,
            charge=charge,
            engine=self.engine,
            told=(*(() if charge is None else charge.warnings), *filter(None, [self.uses.problem])),
            unasked=declared.schema is None and declared.columns is None,
        )

    def charge(self, tell: Progress) -> RecordedRelease | None:
        """Record the release in the ledger, if there is one."""
        address, dataset = self.delivery.ledger, self.delivery.dataset
        if address is None or dataset is None:
            return None
        tell(CHARGING, 0, 1)
        from shoal.ledger import open_ledger, record_release

        prepared = self.prepared
        bought = prepared.described.provenance.bought
        with closing(open_ledger(address)) as ledger:
            relation = prepared.method.adjacency
            key = None if prepared.source.reproducible else prepared.declared.bound_key
            if key is not None and ledger.bound_key(dataset, key) != key:
                raise OptionError("bound-key-kept-meanwhile", dataset=dataset)
            return record_release(
                ledger,
                dataset,
                prepared.statement,
                relation,
                self.fingerprint,
                bought,
                measured=self.delivery.measured,
            )

    def _written(self, out: Path | str, tell: Progress) -> tuple[Release, Evaluation | None, Delivered]:
        prepared, delivery = self.prepared, self.delivery
        if self.runner is not None:
            look = ReleaseReview(self.runner, delivery.evaluate, delivery.internal is not None, tell)
            try:
                made, delivered = carry_out_on_engine(
                    prepared, self.runner, out, delivery.internal, tell, look
                )
            finally:
                self.runner.close()
            return made, look.evaluation if delivery.evaluate else None, delivered
        folder = not_an_address(out)
        original = prepared.described.table
        release = carry_out(prepared, tell)
        evaluation = None
        if delivery.evaluate:
            from shoal.evaluation import evaluate

            evaluation = evaluate(original, release, target=delivery.target, progress=tell)
        save_bundle(
            release,
            folder,
            delivery.internal,
            delivery.format or release.format,
            evaluation,
            original,
            statistics=delivery.statistics,
            progress=tell,
        )
        return release, evaluation, Delivered(release.data, folder)


def publish(
    data: Any,
    schema: Schema | None = None,
    method: str | Method = DEFAULT_METHOD,
    epsilon: Any = None,
    k: int | None = None,
    seed: int | None = None,
    *,
    out: str | Path,
    internal: str | Path | None = None,
    format: str | None = None,
    statistics: bool = False,
    evaluate: bool = False,
    ledger: str | None = None,
    dataset: str | None = None,
    same_records: str | Sequence[str] | None = None,
    not_same_records: str | Sequence[str] | None = None,
    engine: Engine | None = None,
    master: str | None = None,
    conf: Sequence[str] = (),
    staging: str | Path | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    **options: Any,
) -> Published:
    """Turn a table about people into a folder that can be published: everything `shoal protect` does, in one call.

    The folder appears complete or not at all, whether the work fails or is cancelled. A charge in a ledger
    remains, and the error says so.

    Args:
        data: a path (see `shoal.io.FORMATS`), a folder of Parquet files, a pandas, polars or pyarrow table, or a Spark
            DataFrame.
        schema: as for `shoal.protect`, like method, epsilon, k, seed and options.
        out: a new folder for the bundle: data, statement.json, method.toml, log.toml, report.html. With engine `spark`
            also the address of one on a file system that the session knows, such as "s3a://bucket/folder".
        internal: a new file, outside of `out`, for the report with facts about the original data.
        format: of the data, one of `shoal.io.FORMATS`; by default that of the file, Parquet for a frame.
        statistics: methods xm-*: write the masked statistics of the clusters too.
        evaluate: measure loss and risk; facts about the original data.
        target: the column to be predicted from the others, or a number with a threshold, "income>30000": pairs-dp
            preserves its relations best, and with `evaluate` its predictive utility is measured.
        ledger: charge the release to this ledger, a path or a postgresql:// address.
        dataset: the name of the data set, the same for everything about the same people: `ledger` charges its budget,
            and the statement holds what the journal of use has under this name.
        same_records: names of other data sets, as a warning gives them, that hold the same records; a declaration,
            recorded in the statement. `not_same_records`: names of those that do not.
        engine: `memory`; `local`, which works through a Parquet file or a folder of them in parts; or `spark`, which
            runs on a cluster. By default chosen by the size of the files and the method.
        master: with engine `spark`, the address of the cluster; by default that of the session, or of this machine.
        conf: with engine `spark`, settings of the session, such as "spark.executor.memory=4g".
        staging: with an address as `out`, a folder that the driver and all workers share, in which the bundle is made
            before it is copied; by default the one for temporary files.
        progress: called with (what, done, total); an exception that it raises stops the work.
        cancel: a function that returns whether to stop, such as `threading.Event().is_set`; called between steps.

    Guarantee:
        Whatever the statement of the release says, and nothing else.

    Raises:
        CancelledError: `cancel` returned true.
        InputError, OptionError, ClaimError: the release cannot be made; nothing was charged or written.
        OutputError: the files cannot be written. Where a bundle is complete and cannot be copied to its address, the
            error names the folder in which it is kept.
    """
    # the target of a method is also that of the measures
    target = options.pop("target", None)
    if target is None and isinstance(method, Method):
        target = method.settings().get("target")
    delivery = Delivery(
        place(out),
        None if internal is None else Path(internal),
        format,
        statistics,
        evaluate,
        target,
        ledger,
        dataset,
        engine,
        master,
        tuple(conf),
        None if staging is None else Path(staging),
        names_of(same_records, "same_records"),
        names_of(not_same_records, "not_same_records"),
    )
    tell = watched(progress, cancel)
    request = {"schema": schema, "method": method, "epsilon": epsilon, "k": k, "seed": seed, **options}
    return plan(data, delivery, progress=tell, **request).carry_out(progress, cancel)


def plan(
    data: Any,
    delivery: Delivery,
    *,
    estimated: bool = False,
    progress: Progress | None = None,
    **request: Any,
) -> Planned:
    """Plan a publication and refuse what would fail later; no budget is used and nothing is written.

    Args:
        data: as for `publish`, like the other arguments.
        estimated: estimate time and memory of a small table too, and those of the internal report.
    """
    tell = progress or silent
    delivery.check()
    tell("reading the table", 0, 1)
    source = data if isinstance(data, Opened) else opened(data, delivery, **request)
    try:
        if source.runner is not None:
            source.runner.watched(tell)
        return _planned(source, delivery, tell, estimated, request)
    except BaseException:
        if source.runner is not None:
            source.runner.close()
        raise


def _planned(
    source: Opened, delivery: Delivery, tell: Progress, estimated: bool, request: dict[str, Any]
) -> Planned:
    table = source.table
    if delivery.target is not None:
        asked = class_of(request.get("method", DEFAULT_METHOD))
        if "target" in asked.parameters():
            request["target"] = delivery.target
        elif not delivery.evaluate:
            raise OptionError("method-no-use-target", method=asked.name)
        if delivery.evaluate:
            from shoal.evaluation import check_target

            check_target(delivery.target, table)
    tell("preparing the release", 0, 1)
    if delivery.ledger is not None and delivery.dataset is not None and request.get("seed") is None:
        request["bound_key"] = _key_in_ledger(delivery.ledger, delivery.dataset, request)
    prepared = prepare(table, **request)
    check_writable(prepared.described.columns, delivery.format or table.format)
    unmeasured = not prepared.described.n and (delivery.evaluate or delivery.internal is not None)
    if unmeasured:
        # a refusal would distinguish a table without rows from one with a row
        delivery = replace(delivery, evaluate=False, internal=None)
    if delivery.statistics and not prepared.method.statistics:
        raise OptionError("statistics-methods-xm", option="statistics", method=prepared.method.name)
    if source.runner is not None:
        try:
            check_engine(prepared, in_memory(source.data))
        except OptionError:
            if not source.may_be_read:
                raise
            source = Opened(source.data, read_as_asked(source.data, request))
            prepared = prepare(source.table, **request)
    expected = None
    if estimated or prepared.described.n * len(prepared.described.columns) >= _WORTH_AN_ESTIMATE:
        tell("estimating time and memory", 0, 1)
        evaluate, internal = estimated and delivery.evaluate, estimated and delivery.internal is not None
        if source.runner is not None:
            expected = estimate_in_parts(prepared, source.runner, evaluate=evaluate, internal=internal)
        else:
            expected = estimate(prepared)
            if evaluate:
                expected = expected.longer(evaluation_seconds(prepared, delivery.target), MEASURES)
            if internal:
                expected = expected.longer(internal_seconds(prepared), INTERNAL_REPORT)
    uses = Uses.of(
        files_of(source.runner or source.table),
        declared_name(delivery.dataset, request.get("schema")),
        ledger=delivery.ledger,
        same_records=delivery.same_records,
        not_same_records=delivery.not_same_records,
    )
    prepared = uses.stated(prepared, _charged_before(delivery))
    noise = noise_of(prepared.method, prepared.described, prepared.plan)
    return Planned(
        prepared,
        delivery,
        source.engine,
        expected,
        uses,
        _fingerprint(source) if delivery.ledger is not None else "",
        noise,
        runner=source.runner,
        rules=rule_effects(prepared.method, prepared.described, prepared.plan),
        original=source.data,
        compared=compared_with_delta(prepared.method, prepared.described),
        advised=tuple(
            said
            for said in (
                drowned(noise, prepared.method, prepared.described.n),
                *uses.questions(unnamed=True),
                Message("nothing-to-measure") if unmeasured else None,
            )
            if said is not None
        ),
    )


def _key_in_ledger(address: str, dataset: str, request: Mapping[str, Any]) -> bytes | None:
    """The key that orders the rows of a unit: the one kept with the ledger, or a fresh one; None without a bound."""
    if not _bounds(request):
        return None
    from shoal.ledger import kept_bound_key

    return kept_bound_key(address, dataset) or fresh_key()


def _bounds(request: Mapping[str, Any]) -> bool:
    """Whether the rows of each unit are bounded."""
    schema = request.get("schema")
    unit = None if schema is None else schema.declared.unit
    return request.get("bound") is not None or (unit is not None and unit.bound is not None)


def _fingerprint(source: Opened) -> str:
    if source.runner is not None:
        return source.runner.fingerprint()
    return fingerprint(Path(source.data) if source.on_disk else source.table)


def _charged_before(delivery: Delivery) -> dict[str, bool]:
    """The releases recorded in a ledger under the name of the data set, and whether each was measured."""
    if delivery.ledger is None or delivery.dataset is None:
        return {}
    from shoal.ledger import releases_in

    return releases_in(delivery.ledger, delivery.dataset)


@contextmanager
def _staying(charge: RecordedRelease | None) -> Iterator[None]:
    """Add to every error that the charge remains."""
    try:
        yield
    except BaseException as error:
        if charge is None:
            raise
        facts = {"dataset": charge.dataset, "cost": charge.cost}
        stays = Message("charge-stays" if charge.cost else "charge-without-cost-stays", facts)
        if isinstance(error, ShoalError) and len(error.problems) == 1:
            error.facts = {**error.facts, "added": stays}
        else:
            error.add_note(str(stays))
        raise
