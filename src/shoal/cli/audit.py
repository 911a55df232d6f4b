"""`shoal audit`: a table and a method come in, a lower bound on the method's real ε is printed."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import options
from shoal.cli.output import print_json, progress_bar, results

if TYPE_CHECKING:
    from shoal.auditing import Audit

# budgets of the picture, as multiples of the one asked for
_MULTIPLES = ("0.25", "0.5", "1", "2", "4")

_HELP = """Try to refute a privacy claim: a lower bound on the real ε, from running the method many times.

    Two neighbouring data sets that differ in one record are released again and again; what tells them apart bounds ε
    from below. Passing does not prove privacy. Small tables with extreme records refute best.

    Exit status: 0 when no claim of the method is refuted, 1 when one is, 2 for bad input.

    Examples:

      shoal audit people.csv --schema people.toml --method ranking-dp --epsilon 1 --k 5

      shoal audit people.csv --domain age=0:120 --domain income=0:200000 --method mdav-dp --epsilon 1 --k 3
      --view given-partition --runs 20000 --plot bounds.svg
    """


def audit(
    data: options.Data,
    method: options.MethodName = None,
    epsilon: options.Epsilon = None,
    k: options.LeastSize = None,
    view: Annotated[str, typer.Option(help="original, given-partition or individual.")] = "original",
    schema: options.SchemaFile = None,
    config: options.Config = None,
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
    composition: options.Composition = None,
    order: options.Order = None,
    corners: options.Corners = None,
    weights: options.Weights = None,
    coskewness: options.Coskewness = None,
    cuts: options.Cuts = None,
    depth: options.Depth = None,
    shares: options.Shares = None,
    rebuild: options.Rebuild = None,
    neighbours: options.Neighbours = None,
    rows: options.Rows = None,
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
    domain_from_data: options.DomainFromData = None,
    tuned: options.TunedOnRecords = None,
    runs: Annotated[
        int | None, typer.Option(help="Test runs; default: what fits into a few minutes.", show_default=False)
    ] = None,
    confidence: Annotated[float, typer.Option(help="Probability that the bound is true.")] = 0.99,
    seed: Annotated[int | None, typer.Option(help="Repeats the same audit.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; default: all cores.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Audit ε/4, ε/2, ε, 2ε and 4ε and draw the bounds as SVG.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    typed = locals()
    from shoal.auditing import audit as run
    from shoal.noise import parse_epsilon

    _check_plot(plot)
    arguments = options.recipe_arguments(typed)
    table = options.read_declared(data, arguments)
    if columns:
        arguments["columns"] = options.column_names(columns, table.names)
    arguments |= {"view": view, "runs": runs, "confidence": confidence, "seed": seed, "workers": workers}
    with progress_bar() as progress:
        found = run(table, **arguments, progress=progress)
    others: list[Audit] = []
    if plot is not None:
        budget = parse_epsilon(arguments["epsilon"])
        for multiple in (m for m in _MULTIPLES if m != "1"):
            with progress_bar() as progress:
                smaller_or_larger = arguments | {"epsilon": budget * parse_epsilon(multiple)}
                others.append(run(table, **smaller_or_larger, progress=progress))
        _draw([found, *others], plot)
    _say(found, others, plot, as_json)
    if found.alarm:
        raise typer.Exit(1)


# the docstring is the help text; typer reads it from here
audit.__doc__ = inspect.cleandoc(_HELP)


def _check_plot(plot: Path | None) -> None:
    from shoal.errors import OptionError, OutputError

    if plot is None:
        return
    if plot.suffix.lower() != ".svg":
        raise OptionError(f"--plot '{plot}' must end in .svg.")
    if plot.exists():
        raise OutputError(f"'{plot}' exists already: name a new file, nothing is overwritten.")
    if not plot.parent.is_dir():
        raise OutputError(f"there is no folder '{plot.parent}' for the picture: make it first.")


def _draw(audits: list[Audit], plot: Path) -> None:
    from shoal.auditing.plot import plot_svg
    from shoal.errors import OutputError

    try:
        plot.write_text(plot_svg(audits), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write '{plot}': {error.strerror}.") from None


def _say(found: Audit, others: list[Audit], plot: Path | None, as_json: bool) -> None:
    if as_json:
        curve: dict[str, Any] = {"curve": [audit.to_dict() for audit in others]} if others else {}
        print_json({**found.to_dict(), **curve})
        return
    console = results()
    console.print(found.sentence, markup=False)
    best = found.attacks[0]
    console.print(f"Neighbours: {found.neighbours}; the worst of {found.pairs} pairs tried.", markup=False)
    console.print(
        f"Attack: {best.event}; seen in {best.hits} of {best.hit_runs} runs on one data set and in "
        f"{best.false_hits} of {best.other_runs} on the other.",
        markup=False,
    )
    for audit in others:
        console.print(f"ε = {audit.epsilon:g}: {audit.verdict}.", markup=False)
    if plot is not None:
        console.print(f"Picture: {plot}.", markup=False)
    console.print("This is a fact about the original data: keep it inside.", markup=False)
