"""Which engine makes a release, and the table for it: in memory, or where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shoal.columns.declaration import missing_texts, read_as_asked
from shoal.display import internal
from shoal.errors import OptionError, ShoalError
from shoal.io import Table, is_parquet, is_spark_frame, known_format
from shoal.io.binary_files import frozen
from shoal.io.folders import check_internal, check_output, not_an_address
from shoal.ledger.units import named_dataset
from shoal.mechanisms.registry import DEFAULT_METHOD, configured, method_class
from shoal.release.engines.local import LocalRunner
from shoal.release.engines.run import COLLECTED, IN_MEMORY, refusal, table_elsewhere
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.mechanisms.method import Method
    from shoal.release.engines.stages import Runner

# `memory` holds the whole table, `local` works through Parquet files in parts, `spark` has a cluster do that
Engine = Literal["memory", "local", "spark"]
ENGINES: tuple[Engine, ...] = ("memory", "local", "spark")
# number of values (rows times columns) from which a Parquet file is not loaded as a whole
_LARGE = 20_000_000


@dataclass(frozen=True, slots=True)
class Delivery:
    """What becomes of a release; `publish` says what each of it means.

    Attributes:
        out: a folder, or an address as text; see `shoal.io.folders.place`.
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
    # Studio notes by itself which releases somebody has seen
    noted: bool = True

    @property
    def measured(self) -> bool:
        """What the release loses and risks is shown with it."""
        return self.evaluate or self.internal is not None

    def check(self) -> None:
        """Refuse, before the table is read, what could not be done at the end."""
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
    """A table to be published: what the caller named, and the table, of which a large file is not in memory yet.

    Attributes:
        may_be_read: nobody asked for the engine, so files that it turns out not to take are read as a whole.
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
    """Read a table as `publish` does: one for an engine stays where it is.

    Raises:
        OptionError: the method, or what becomes of the release, takes the whole table in memory, and an engine was
            asked for; nothing was read.
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
    # without rows there is nothing to protect, unless nobody is to know
    private = method.neighbours == "add-remove"
    counted = method.stability != "record"
    na = missing_texts(request.get("na"))
    if engine == "spark":
        from shoal.release.engines.spark_input import spark_runner

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
    """The method with its settings as far as they are right; what is wrong is said when all of it is looked at."""
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
    """How what a caller named comes into memory, as the way out of a refusal says it."""
    return COLLECTED if is_spark_frame(data) else IN_MEMORY


def _not_in_parts(
    method: Method, delivery: Delivery, request: Mapping[str, Any], way: Message
) -> Message | None:
    """Why a table has to be in memory as a whole, with the way into it; None if it has not."""
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
