"""`shoal protect`: a table and a recipe come in, a bundle that may be published is written."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.interrupt import interruptibly
from shoal.cli.output import complain, messages, print_json, progress_bar, results
from shoal.errors import OptionError

if TYPE_CHECKING:
    from shoal.estimate import Estimate
    from shoal.evaluation import Evaluation
    from shoal.io import Table
    from shoal.release import Preparation, Release

# number of values (rows times columns) from which a Parquet file is not loaded as a whole
_LARGE = 20_000_000
_WORTH_AN_ESTIMATE = 500_000
_LONG_SECONDS = 60

_HELP = """Protect a table and write a bundle that may be published.

    DIR gets data.csv (or data.parquet), statement.json, method.toml and report.html. Nothing is written when
    anything goes wrong, and nothing is overwritten.

    Examples:

      shoal protect people.csv --domain income=0:2000000 --domain tax=0:800000
      --method ranking-dp --epsilon 1 --k 50 --out release

      shoal protect people.csv --schema people.toml --method mdav-dp --epsilon 0.5 --k 100 --out release
      --internal internal.html --evaluate

      shoal protect next-year.csv --config release/method.toml --out release-2
    """


def protect(
    data: Annotated[
        Path, typer.Argument(help="The table: CSV or Parquet.", metavar="DATA", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="New folder for the bundle.", show_default=False)] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema file; 'shoal schema DATA' drafts one.")] = None,
    config: Annotated[Path | None, typer.Option(help="Repeat the recipe of a method.toml.")] = None,
    method: Annotated[str | None, typer.Option(help="A preset; 'shoal methods' lists them.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Privacy budget, as a decimal number.")] = None,
    k: Annotated[int | None, typer.Option("--k", "-k", help="Minimum cluster size.")] = None,
    domain: Annotated[list[str] | None, typer.Option(help="Public range, column=lo:hi; repeat it.")] = None,
    columns: Annotated[
        list[str] | None, typer.Option(help="Columns to release, a,b,c; repeat it for names with commas.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="equal, proportional, optimal, or a=2,b=1 (or JSON).")
    ] = None,
    groups: Annotated[str | None, typer.Option(help="Attribute groups, as 'a,b;c' (or JSON).")] = None,
    partition: Annotated[str | None, typer.Option(help="Another partition for mdav-dp.")] = None,
    gamma: Annotated[str | None, typer.Option(help="Gain factor of --partition vmdav.")] = None,
    remainder: Annotated[str | None, typer.Option(help="middle, last or first.")] = None,
    normalise: Annotated[str | None, typer.Option(help="domain, none or zscore.")] = None,
    link: Annotated[
        bool | None, typer.Option("--link/--no-link", help="--no-link shuffles every column by itself.")
    ] = None,
    noise: Annotated[str | None, typer.Option(help="laplace, staircase or box.")] = None,
    optimise: Annotated[str | None, typer.Option(help="With staircase or box: variance or interval.")] = None,
    clip: Annotated[
        bool | None, typer.Option("--clip/--no-clip", help="--no-clip is for experiments.")
    ] = None,
    cuts: Annotated[int | None, typer.Option(help="tree-dp: levels of cut points per attribute.")] = None,
    depth: Annotated[int | None, typer.Option(help="tree-dp: levels of the tree.")] = None,
    shares: Annotated[str | None, typer.Option(help="tree-dp: cuts=4,intervals=2,leaves=3,means=1.")] = None,
    rebuild: Annotated[str | None, typer.Option(help="tree-dp: uniform, centroid or normal.")] = None,
    neighbours: Annotated[
        str | None, typer.Option(help="tree-dp: replace-one or add-remove (n is then private).")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="tree-dp with add-remove: declared number of rows.")
    ] = None,
    outside: Annotated[str | None, typer.Option(help="Values outside the domain: error or clip.")] = None,
    missing: Annotated[str | None, typer.Option(help="Missing values: error or drop.")] = None,
    domain_from_data: Annotated[
        float | None, typer.Option(help="Experiments: domains 0 to this multiple of the maximum.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Experiments: a reproducible release, not publishable.")
    ] = None,
    format: Annotated[str | None, typer.Option(help="csv or parquet; default: like the input.")] = None,
    evaluate: Annotated[
        bool, typer.Option("--evaluate", help="Measure what was lost (private facts).")
    ] = False,
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
    from shoal.bundle import check_output
    from shoal.release import prepare

    if out is None and not dry_run:
        raise OptionError("--out is missing: name a new folder for the bundle.")
    if out is not None:
        check_output(out, internal)
    if format not in (None, "csv", "parquet"):
        raise OptionError(f"format '{format}' is not one of csv, parquet.")
    arguments = _arguments(
        schema=schema,
        config=config,
        settings={
            "method": method,
            "epsilon": epsilon,
            "k": k,
            "split": _weights(split),
            "groups": _grouped(groups),
            "partition": partition,
            "gamma": gamma,
            "cuts": cuts,
            "depth": depth,
            "shares": _weights(shares),
            "rebuild": rebuild,
            "neighbours": neighbours,
            "rows": rows,
            "remainder": remainder,
            "normalise": normalise,
            "link": link,
            "clip": clip,
            "noise": noise,
            "optimise": optimise,
            "outside": outside,
            "missing": missing,
            "domain_from_data": domain_from_data,
        },
        domain=domain or [],
    )
    table = _open(data)
    if columns:
        arguments["columns"] = _column_names(columns, table.names)

    def work() -> tuple[Release, Evaluation | None] | None:
        prepared = prepare(table, **arguments, seed=seed)
        on_disk = table.path is not None and prepared.method.columnwise and not evaluate and format != "csv"
        if dry_run or prepared.described.n * len(prepared.described.columns) >= _WORTH_AN_ESTIMATE:
            expected = estimate(prepared, columnwise=on_disk)
            if dry_run:
                _say_plan(prepared, expected, on_disk, as_json)
                return None
            if expected.seconds > _LONG_SECONDS:
                messages().print(f"This will take {expected}.", markup=False)
        assert out is not None
        with progress_bar() as progress:
            if on_disk:
                return carry_out_columnwise(prepared, out, internal, progress), None
            if table.path is not None:
                prepared = prepare(read(data), **arguments, seed=seed)
            release = carry_out(prepared, progress)
            measured = measure(prepared.described.table, release) if evaluate else None
            release.save(out, internal, format=format, evaluation=measured)  # type: ignore[arg-type]
        return release, measured

    from shoal.engine import carry_out_columnwise
    from shoal.estimate import estimate
    from shoal.evaluation import evaluate as measure
    from shoal.io import read
    from shoal.release import carry_out

    done = interruptibly(work)
    if done is not None and out is not None:
        _say(done[0], out, internal, done[1], as_json)


def _open(path: Path) -> Table:
    """The table; a large Parquet file stays on disk."""
    from shoal.io import SUFFIXES, read, read_columnwise

    if SUFFIXES.get(path.suffix.lower()) != "parquet":
        return read(path)
    table = read_columnwise(path)
    return table if table.n * len(table.names) >= _LARGE else read(path)


# the docstring is the help text; typer reads it from here
protect.__doc__ = inspect.cleandoc(_HELP)


def _arguments(
    schema: Path | None, config: Path | None, settings: dict[str, Any], domain: list[str]
) -> dict[str, Any]:
    """Recipe first, then whatever the command line says about it."""
    from shoal.recipe import load_recipe
    from shoal.schema import Schema, parse_domains

    arguments: dict[str, Any] = load_recipe(config) if config is not None else {}
    if schema is not None:
        arguments["schema"] = Schema.load(schema)
    arguments |= {name: value for name, value in settings.items() if value is not None}
    if "method" not in arguments:
        raise OptionError("--method is missing: 'shoal methods' lists what there is.")
    if domain:
        arguments["domains"] = parse_domains(domain)
    return arguments


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _column_names(texts: Sequence[str], known: Sequence[str]) -> list[str]:
    """Each text is one column name, or several with commas between."""
    return [name for text in texts for name in ([text] if text in known else _names(text))]


def _grouped(text: str | None) -> Any:
    if text is None or text.lstrip().startswith("["):
        return None if text is None else _json("--groups", text)
    return [_names(part) for part in text.split(";")]


def _json(option: str, text: str) -> Any:
    """Column names that hold separators can be given as JSON."""
    try:
        return json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError as error:
        raise OptionError(f"{option} starts like JSON but is not: {error}.") from None


def _weights(text: str | None) -> Any:
    if text is not None and text.lstrip().startswith("{"):
        return _json("--split", text)
    if text is None or "=" not in text:
        return text
    pairs = [part.rpartition("=") for part in text.split(",")]
    return {name.strip(): weight for name, _, weight in pairs}


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
    for note in release.notes:
        messages().print(f"note: {note}", markup=False, style="dim")
    if measured is not None:
        console.print(measured)
        console.print("These measures are facts about the original data: keep them inside.", markup=False)
    console.print(f"Written to {out}: {', '.join(sorted(p.name for p in out.iterdir()))}.", markup=False)
    if internal is not None:
        console.print(f"Internal report, not to be published: {internal}.", markup=False)
