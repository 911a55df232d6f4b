"""`shoal audit`: a table and a method come in, a lower bound on the method's real ε is printed."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli import options
from shoal.cli.command import Flag
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


def flags() -> tuple[Flag, ...]:
    """The options of `shoal audit`."""
    return (
        options.data(),
        *options.about_the_table(),
        options.METHOD,
        *options.of_methods(),
        options.CONFIG,
        Flag("view", "original, given-partition or individual.", default="original", common=True),
        Flag(
            "runs",
            "Test runs; default: what fits into a few minutes.",
            type=int,
            common=True,
            placeholder="N",
        ),
        Flag("confidence", "Probability that the bound is true.", type=float, default=0.99, placeholder="P"),
        Flag("seed", "Repeats the same audit.", type=int, placeholder="N"),
        options.WORKERS,
        Flag(
            "plot",
            "Audit ε/4, ε/2, ε, 2ε and 4ε and draw the bounds as SVG.",
            "output",
            Path,
            common=True,
            placeholder="FILE",
        ),
        replace(options.JSON, common=True),
    )


def audit(typed: Mapping[str, Any]) -> None:
    plot: Path | None = typed["plot"]
    from shoal.auditing import audit as run
    from shoal.noise import parse_epsilon

    _check_plot(plot)
    arguments = options.recipe_arguments(typed)
    table = options.read_declared(typed["data"], arguments)
    if typed["columns"]:
        arguments["columns"] = options.column_names(typed["columns"], table.names)
    arguments |= {name: typed[name] for name in ("view", "runs", "confidence", "seed", "workers")}
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
    _say(found, others, plot, typed["json"])
    if found.alarm:
        raise typer.Exit(1)


# the docstring is the help text
audit.__doc__ = inspect.cleandoc(_HELP)


def _check_plot(plot: Path | None) -> None:
    from shoal.errors import OptionError, OutputError

    if plot is None:
        return
    if plot.suffix.lower() != ".svg":
        raise OptionError("plot-end-svg", plot=plot)
    if plot.exists():
        raise OutputError("exists-already", plot=plot)
    if not plot.parent.is_dir():
        raise OutputError("there-no-folder-picture", parent=plot.parent)


def _draw(audits: list[Audit], plot: Path) -> None:
    from shoal.auditing.auditor import plot_svg
    from shoal.errors import OutputError
    from shoal.io.common import private_text

    try:
        private_text(plot, plot_svg(audits))
    except OSError as error:
        raise OutputError("cannot-write", plot=plot, reason=error.strerror) from None


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
