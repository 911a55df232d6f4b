"""`shoal protect`: a table and a recipe come in, a bundle that may be published is written."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import options
from shoal.cli.evaluate import Target
from shoal.cli.interrupt import interruptibly
from shoal.cli.output import complain, messages, print_json, progress_bar, results
from shoal.errors import OptionError
from shoal.io.formats import FORMATS

if TYPE_CHECKING:
    from shoal.evaluation import Evaluation
    from shoal.io import Table
    from shoal.release.estimate import Estimate
    from shoal.release.protect import Preparation, Release

# number of values (rows times columns) from which a Parquet file is not loaded as a whole
_LARGE = 20_000_000
_WORTH_AN_ESTIMATE = 500_000
_LONG_SECONDS = 60

_HELP = """Protect a table and write a bundle that may be published.

    DIR gets the data in the format of the input (data.csv, data.parquet and so on), statement.json, method.toml
    and report.html. Nothing is written when anything goes wrong, and nothing is overwritten.

    Examples:

      shoal protect people.csv --domain income=0:2000000 --type income=integer --domain rent=0:9000
      --type rent=decimal:2 --method ranking-dp --epsilon 1 --k 50 --out release

      shoal protect people.csv --schema people.toml --method mdav-dp --epsilon 0.5 --k 100 --out release
      --internal internal.html --evaluate

      shoal protect next-year.csv --config release/method.toml --out release-2
    """


def protect(
    data: options.Data,
    out: Annotated[Path | None, typer.Option(help="New folder for the bundle.", show_default=False)] = None,
    schema: options.SchemaFile = None,
    config: options.Config = None,
    method: options.MethodName = None,
    epsilon: options.Epsilon = None,
    k: options.LeastSize = None,
    domain: options.Domain = None,
    types: options.Types = None,
    taxonomy: options.TaxonomyFile = None,
    columns: options.Columns = None,
    split: options.Split = None,
    groups: options.Groups = None,
    partition: options.PartitionName = None,
    gamma: options.Gamma = None,
    remainder: options.Remainder = None,
    normalise: options.Normalise = None,
    link: options.Link = None,
    floor: options.Floor = None,
    noise: options.Noise = None,
    optimise: options.Optimise = None,
    generalise: options.Generalise = None,
    clip: options.Clip = None,
    composition: options.Composition = None,
    order: options.Order = None,
    corners: options.Corners = None,
    weights: options.Weights = None,
    coskewness: options.Coskewness = None,
    match: options.Match = None,
    cuts: options.Cuts = None,
    depth: options.Depth = None,
    shares: options.Shares = None,
    rebuild: options.Rebuild = None,
    neighbours: options.Neighbours = None,
    rows: options.Rows = None,
    sizes: options.Sizes = None,
    l: options.Diversity = None,  # noqa: E741
    t_emd: options.EarthMover = None,
    t: options.Factor = None,
    intruder: options.Intruder = None,
    group_by: options.GroupBy = None,
    outside: options.Outside = None,
    missing: options.Missing = None,
    na: options.MissingTexts = None,
    encoding: options.Encoding = None,
    separator: options.Separator = None,
    decimal: options.DecimalSign = None,
    thousands: options.Thousands = None,
    quote: options.Quote = None,
    sheet: options.Sheet = None,
    date_format: options.DateFormats = None,
    spreadsheet_safe: options.SpreadsheetSafe = None,
    domain_from_data: options.DomainFromData = None,
    tuned: options.TunedOnRecords = None,
    seed: Annotated[
        int | None, typer.Option(help="Experiments: a reproducible release, not publishable.")
    ] = None,
    ledger: options.LedgerAddress = None,
    dataset: options.DatasetName = None,
    format: Annotated[str | None, typer.Option(help=f"{', '.join(FORMATS)}; default: like DATA.")] = None,
    statistics: Annotated[
        bool,
        typer.Option("--statistics", help="xm-*: also publish the masked statistics, one row per cluster."),
    ] = False,
    evaluate: Annotated[
        bool, typer.Option("--evaluate", help="Measure what was lost (private facts).")
    ] = False,
    target: Target = None,
    internal: Annotated[
        Path | None, typer.Option(help="Write the internal report here, outside of the bundle.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done and how long it takes; write nothing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the statement (and measures) as JSON.")
    ] = False,
) -> None:
    typed = locals()
    from shoal.evaluation.learning import check_target
    from shoal.io import check_writable, known_format
    from shoal.ledger.units import named_dataset
    from shoal.release.bundle import check_output
    from shoal.release.protect import prepare

    if out is None and not dry_run:
        raise OptionError("--out is missing: name a new folder for the bundle.")
    if out is not None:
        check_output(out, internal)
    account = named_dataset(ledger, dataset)
    written = None if format is None else known_format(format).name
    if target is not None and not evaluate:
        raise OptionError("--target is measured by --evaluate: give that option too.")
    arguments = options.recipe_arguments(typed)
    table = _open(data, arguments)
    if target is not None:
        check_target(target, table)  # a target that cannot be learned is refused before the budget is spent
    if columns:
        arguments["columns"] = options.column_names(columns, table.names)

    def work() -> tuple[Release, Evaluation | None] | None:
        prepared = prepare(table, **arguments, seed=seed)
        check_writable(prepared.described.columns, written or table.format)
        if statistics and prepared.method.mechanism != "moments":
            raise OptionError(
                f"--statistics is for the methods xm-*: '{prepared.method.name}' keeps none of its clusters."
            )
        parquet = written in (None, "parquet")
        simple = prepared.described.plain
        on_disk = (
            table.path is not None
            and prepared.method.columnwise
            and simple
            and not (evaluate or statistics)
            and parquet
        )
        if dry_run or prepared.described.n * len(prepared.described.columns) >= _WORTH_AN_ESTIMATE:
            expected = estimate(prepared, columnwise=on_disk)
            if dry_run:
                if internal is not None:
                    expected = expected.longer(internal_seconds(prepared), "the internal report included")
                _say_plan(prepared, expected, on_disk, as_json)
                return None
            if expected.seconds > _LONG_SECONDS:
                messages().print(f"This will take {expected}.", markup=False)
        assert out is not None
        if ledger is not None and account is not None:
            _charge(ledger, account, prepared, data)
        with progress_bar() as progress:
            if on_disk:
                return carry_out_columnwise(prepared, out, internal, progress), None
            if table.path is not None:
                prepared = prepare(options.read_declared(data, arguments), **arguments, seed=seed)
            release = carry_out(prepared, progress)
            measured = measure(prepared.described.table, release, target=target) if evaluate else None
            if internal is not None:
                progress("comparing with the original", 0, 1)
            original = prepared.described.table
            release.save(
                out,
                internal,
                format=written,
                evaluation=measured,
                original=original,
                statistics=statistics,
            )
        return release, measured

    from shoal.evaluation import evaluate as measure
    from shoal.release.columnwise import carry_out_columnwise
    from shoal.release.duration import internal_seconds
    from shoal.release.estimate import estimate
    from shoal.release.protect import carry_out

    done = interruptibly(work)
    if done is not None and out is not None:
        _say(done[0], out, internal, done[1], as_json)


def _open(path: Path, arguments: Mapping[str, Any]) -> Table:
    """The table; a large Parquet file stays on disk, unless its text has to be looked through."""
    from shoal.io import find_format, read_columnwise

    kind = find_format(path)
    if kind is not None and kind.name == "parquet" and not arguments.get("na"):
        table = read_columnwise(path)
        if table.n * len(table.names) >= _LARGE:
            return table
    return options.read_declared(path, arguments)


def _charge(address: str, dataset: str, prepared: Preparation, data: Path) -> None:
    """Charge the release before it is made; what is charged stays charged if it fails."""
    from shoal.ledger import open_ledger
    from shoal.ledger.releases import fingerprint, record_release

    ledger = open_ledger(address)
    try:
        relation = prepared.method.neighbours
        bought = prepared.described.circumstances.bought
        warnings = record_release(ledger, dataset, prepared.statement, relation, fingerprint(data), bought)
        for warning in warnings:
            complain(warning)
    finally:
        ledger.close()


# the docstring is the help text; typer reads it from here
protect.__doc__ = inspect.cleandoc(_HELP)


def _say_plan(prepared: Preparation, expected: Estimate, on_disk: bool, as_json: bool) -> None:
    """What `--dry-run` prints: public facts and an estimate."""
    described, statement = prepared.described, prepared.statement
    if as_json:
        print_json(
            {
                "rows": described.n,
                "statement": statement.to_dict(),
                "notes": list(described.notes),
                "column_by_column": on_disk,
                "estimate": {"seconds": expected.seconds, "bytes": expected.bytes, "probe": expected.probe},
            }
        )
        return
    console = results()
    where = "one column in memory at a time" if on_disk else "in memory"
    console.print(
        f"Would release {described.n} rows of {', '.join(described.columns)} with {prepared.method.name}, {where}.\n"
        f"Expected: {expected}.\n",
        markup=False,
    )
    console.print(statement.to_markdown(), markup=False)
    for note in described.notes:
        messages().print(f"note: {note}", markup=False, style="dim")
    console.print("Nothing was written.", markup=False)


def _say(release: Release, out: Path, internal: Path | None, measured: Any, as_json: bool) -> None:
    if as_json:
        extra = {} if measured is None else {"evaluation": measured.to_dict()}
        print_json(
            {"out": str(out), "statement": release.statement.to_dict(), "notes": list(release.notes), **extra}
        )
        return
    console = results()
    console.print(release.statement.sentence, markup=False)
    if not release.statement.publishable:
        for reason in release.statement.not_publishable_because:
            complain(f"not for publication: {reason}")
    for entry in release.statement.data_dependent:
        complain(f"looked at the records: {entry}")
    nobody_said_so = release.declared.schema is None and release.declared.columns is None
    for note in release.notes:
        if nobody_said_so:
            complain(f"note: {note}")
        else:
            messages().print(f"note: {note}", markup=False, style="dim")
    if measured is not None:
        console.print(measured)
        console.print("These measures are facts about the original data: keep them inside.", markup=False)
    console.print(f"Written to {out}: {', '.join(sorted(p.name for p in out.iterdir()))}.", markup=False)
    if internal is not None:
        console.print(f"Internal report, not to be published: {internal}.", markup=False)
