"""`shoal tune`: a table and a budget come in, settings compared by loss and risk are printed, with one recommended."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import options
from shoal.cli.evaluate import Target
from shoal.cli.output import complain, messages, print_json, progress_bar, results
from shoal.errors import OptionError

if TYPE_CHECKING:
    from shoal.tuning import Tuning

_HELP = """Compare methods and sizes on a table: loss, risk, and which setting to take.

    Every setting runs with several seeds; expected errors in closed form are used where they exist. With --out every
    finished run is kept, so that the same command goes on after an interruption, and the folder gets tuning.json,
    tuning.svg and method.toml of the recommended setting.

    What is printed and written are facts about the original data. A setting chosen from them was chosen by looking at
    the records, and a release of the same records says so. Tune on a stand-in, or choose k with --private.

    Examples:

      shoal tune people.csv --schema people.toml --epsilon 1 --out tuning

      shoal tune people.csv --domain income=0:2000000 --epsilon 1 --methods ranking-dp,optimal-dp --fast

      shoal tune people.csv --schema people.toml --epsilon 1 --claim dp --max-risk 1

      shoal tune people.csv --domain income=0:2000000 --epsilon 1 --private 0.1 --out tuning
      --ledger ledger.sqlite --dataset people
    """


def tune(
    data: options.Data,
    epsilon: options.Epsilon = None,
    methods: Annotated[str | None, typer.Option(help="Methods to compare, a,b,c.")] = None,
    ks: Annotated[str | None, typer.Option(help="Sizes to compare, 3,5,10; default: ten of them.")] = None,
    splits: Annotated[str | None, typer.Option(help="Of equal, proportional, optimal.")] = None,
    noises: Annotated[str | None, typer.Option(help="Of laplace, staircase, box.")] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each setting.")] = 5,
    fast: Annotated[
        bool, typer.Option("--fast", help="Closed forms only: losses in seconds, no risks.")
    ] = False,
    target: Target = None,
    utility: Annotated[
        str | None,
        typer.Option(
            help="Rank by normalised_sse, scaled_sse, wasserstein, correlation_difference, total_variation or learning."
        ),
    ] = None,
    max_risk: Annotated[
        float | None, typer.Option(help="Recommend only what links at most this % of rows.")
    ] = None,
    claim: Annotated[str | None, typer.Option(help="Compare only settings with this claim: dp, ...")] = None,
    private: Annotated[
        str | None,
        typer.Option(help="ranking-dp: choose k privately at this ε, which is added to the claim."),
    ] = None,
    schema: options.SchemaFile = None,
    domain: options.Domain = None,
    types: options.Types = None,
    taxonomy: options.TaxonomyFile = None,
    columns: options.Columns = None,
    link: options.Link = None,
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
    ledger: options.LedgerAddress = None,
    dataset: options.DatasetName = None,
    out: Annotated[
        Path | None, typer.Option(help="New folder for the results, or one to go on with.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Print every setting.")] = False,
    workers: Annotated[int | None, typer.Option(help="Processes; default: all cores.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    typed = locals()
    from shoal.tuning import tune as run
    from shoal.tuning.bought import account

    account(ledger, dataset, private)  # a missing name is said before a large table is read

    # methods are named by an option of its own
    arguments = options.recipe_arguments({**typed, "config": None, "method": ""})
    del arguments["method"]
    table = options.read_declared(data, arguments)
    if columns:
        arguments["columns"] = options.column_names(columns, table.names)
    for name, text in (("methods", methods), ("splits", splits), ("noises", noises)):
        arguments[name] = None if text is None else _words(text)
    arguments["ks"] = None if ks is None else [_size(word) for word in _words(ks)]
    arguments |= {"seeds": seeds, "fast": fast, "target": target, "utility": utility, "max_risk": max_risk}
    arguments |= {"claim": claim, "private": private, "out": out, "workers": workers}
    arguments |= {"ledger": ledger, "dataset": dataset}
    try:
        with progress_bar() as progress:
            found = run(table, **arguments, progress=progress, notice=_announce)
    except KeyboardInterrupt:
        if out is None:
            raise
        complain(
            f"interrupted; what is finished is kept in '{out}', and the same command goes on from there."
        )
        raise typer.Exit(130) from None
    _say(found, out, everything, as_json)


# the docstring is the help text; typer reads it from here
tune.__doc__ = inspect.cleandoc(_HELP)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _size(word: str) -> int:
    if not word.isdigit():
        raise OptionError(f"--ks must be whole numbers with commas between, such as 3,5,10, got '{word}'.")
    return int(word)


def _announce(text: str) -> None:
    # plain print: while a bar is drawn, standard error knows how to stay clear of it
    print(text, file=sys.stderr, flush=True)


def _say(found: Tuning, out: Path | None, everything: bool, as_json: bool) -> None:
    if as_json:
        extra: dict[str, Any] = {} if out is None else {"out": str(out)}
        print_json({**found.to_dict(), **extra})
        return
    console = results()
    if not found.private:
        console.print(found.table(everything=everything))
    console.print(found.why, markup=False)
    for note in found.notes:
        messages().print(f"note: {note}", markup=False, style="dim")
    if out is not None:
        console.print(f"Written to {out}: {', '.join(sorted(p.name for p in out.iterdir()))}.", markup=False)
    if not found.private:
        console.print("These are facts about the original data: keep them inside.", markup=False)
