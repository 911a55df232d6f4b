"""`shoal rehearse`: try settings on made-up people, or on another table."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli import options
from shoal.cli.command import Flag
from shoal.cli.output import print_json, progress_bar, results, say_measures, say_promise, say_verdict

if TYPE_CHECKING:
    from shoal.release.rehearse import Rehearsal

_HELP = """Try settings on made-up people, with all measurements, as often as wanted; nothing is spent.

    The people are drawn from the public ranges and values of the schema alone, or are those of another table (--on),
    such as last year's. What you choose after looking at them spoils no promise about the records that you will
    release. The page of --internal shows the figures.

    Examples:

      shoal rehearse --schema people.toml --method pairs-dp --epsilon 1

      shoal rehearse --schema people.toml --on last-year.csv --method ranking-dp --epsilon 1 --k 100 --all
    """


def flags() -> tuple[Flag, ...]:
    """The options of `shoal rehearse`."""
    return (
        *options.about_the_table(),
        Flag("on", "Another table with the same columns, such as last year's.", "input", Path, common=True),
        Flag(
            "people", "How many people are made up; default 5000.", "input", int, common=True, placeholder="N"
        ),
        replace(
            options.DATASET, help="With --on: the name of that data set, for the journal.", group="input"
        ),
        options.METHOD,
        *options.of_methods(("target",)),
        options.CONFIG,
        replace(options.TARGET, group="method"),
        Flag(
            "internal",
            "Write the page about the rehearsal here.",
            "output",
            Path,
            common=True,
            placeholder="FILE",
        ),
        Flag("everything", "Print every measure.", "output", bool, ("--all",), default=False, common=True),
        replace(options.JSON, common=True),
    )


def rehearse(typed: Mapping[str, Any]) -> None:
    rehearse_typed(typed)


# the docstring is the help text
rehearse.__doc__ = inspect.cleandoc(_HELP)


def rehearse_typed(typed: Mapping[str, Any]) -> None:
    """Rehearse what was typed for this command or for `shoal protect --rehearse`."""
    from shoal.release.rehearse import PEOPLE
    from shoal.release.rehearse import rehearse as run

    arguments = options.recipe_arguments(typed)
    if typed["columns"]:
        schema = arguments.get("schema")
        arguments["columns"] = options.column_names(typed["columns"], () if schema is None else schema.names)
    page: Path | None = typed["internal"]
    if page is not None:
        from shoal.cli.report import check_place

        check_place(page)
    people = typed.get("people") or _public_rows(typed, arguments) or PEOPLE
    with progress_bar() as progress:
        on = typed.get("on")
        noted = {} if on is None else {"dataset": typed["dataset"]}
        found = run(on=on, people=people, progress=progress, **noted, **arguments)
        if page is not None:
            _write_page(found, page, progress)
    _say(found, page, everything=typed["everything"], as_json=typed["json"])


def _public_rows(typed: Mapping[str, Any], arguments: Mapping[str, Any]) -> int | None:
    """The number of rows of the table that is to be released, where the promise takes it as public."""
    from shoal.mechanisms.registry import method_class

    neighbours = arguments.get("neighbours") or method_class(arguments["method"]).neighbours
    if typed.get("data") is None or neighbours != "replace-one":
        return None
    return options.read_declared(typed["data"], arguments).n


def _write_page(found: Rehearsal, page: Path, progress: Any) -> None:
    from shoal.cli.report import write_page
    from shoal.report import internal_report

    write_page(page, internal_report(found.release, found.evaluation, found.original, progress))


def _say(found: Rehearsal, page: Path | None, *, everything: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "rehearsal": found.sentence,
                "statement": found.release.statement.to_dict(),
                "evaluation": found.evaluation.to_dict(),
                "verdict": found.verdict.to_dict(),
            }
        )
        return
    console = results()
    console.print(found.sentence, markup=False)
    say_promise(found.release.statement)
    say_measures(found.evaluation, everything, "on a rehearsal")
    say_verdict(found.verdict)
    if page is not None:
        console.print(f"Page about the rehearsal: {page}.", markup=False)
