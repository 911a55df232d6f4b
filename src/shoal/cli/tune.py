"""`shoal tune`, `choose-bound` and `audit`: choose settings, and test claims."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli import options
from shoal.cli.command import Flag, complain, print_json, progress_bar, results, say_note, say_verdict, worded
from shoal.errors import OptionError, OutputError

if TYPE_CHECKING:
    from shoal.auditing import Audit
    from shoal.text import Message
    from shoal.tuning import Tuning


_HELP = """Compare methods and cluster sizes by loss and risk, and recommend a setting.

    Every setting runs with several seeds; Shoal uses expected errors in closed form where they exist. With --out it
    keeps every finished run, so that the same command continues after an interruption, and writes tuning.json,
    tuning.svg and the method.toml of the recommended setting to the folder.

    The output consists of facts about the original data. A setting chosen from them is data-dependent, and a release
    of the same records states this. Tune on a stand-in table, or choose k with --private.

    Examples:

      shoal tune people.csv --schema people.toml --epsilon 1 --out tuning

      shoal tune people.csv --domain income=0:2000000 --epsilon 1 --methods ranking-dp,optimal-dp --fast

      shoal tune people.csv --schema people.toml --epsilon 1 --claim dp --max-risk 1

      shoal tune people.csv --domain income=0:2000000 --epsilon 1 --private 0.1 --out tuning
      --ledger ledger.sqlite --dataset people
    """


# options with several values to compare
_COMPARED = ("k", "split", "noise", "delta")
# the prediction target, for all methods
_MEASURED = ("target",)
# options with the same name in the library
_NAMED = (
    "seeds",
    "fast",
    "target",
    "utility",
    "max_risk",
    "claim",
    "private",
    "out",
    "workers",
    "ledger",
    "dataset",
)


def tune_flags() -> tuple[Flag, ...]:
    """The options of `shoal tune`: the settings to compare, and the settings shared by all compared methods."""
    from shoal.evaluation import ranked_by
    from shoal.mechanisms import SHARED
    from shoal.privacy import MODELS

    splits, noises = (", ".join(SHARED[name].choices) for name in ("split", "noise"))
    return (
        options.data(),
        *options.about_the_table(),
        Flag("methods", "Methods to compare, a,b,c.", "method", common=True, placeholder="NAMES"),
        Flag(
            "ks",
            "Cluster sizes to compare, 3,5,10; default: ten sizes.",
            "method",
            common=True,
            placeholder="N,N",
        ),
        Flag("splits", f"Budget splits to compare: {splits}.", "method", common=True, placeholder="WORDS"),
        Flag(
            "noises", f"Noise distributions to compare: {noises}.", "method", common=True, placeholder="WORDS"
        ),
        Flag(
            "deltas",
            "Values of δ to compare for pairs-dp, such as 0,0.000001.",
            "method",
            common=True,
            placeholder="D,D",
        ),
        *(
            replace(flag, common=flag.name == "epsilon")
            for flag in options.of_methods((*_COMPARED, *_MEASURED))
        ),
        Flag("seeds", "Number of runs of each setting.", type=int, default=5, common=True, placeholder="N"),
        Flag(
            "fast",
            "Use closed forms only: losses in seconds, no risks.",
            type=bool,
            default=False,
            common=True,
        ),
        replace(options.TARGET, common=True),
        Flag("utility", f"Rank by {', '.join(ranked_by())}.", placeholder="MEASURE"),
        Flag(
            "max_risk",
            "Recommend only settings that link at most this % of rows.",
            type=float,
            common=True,
            placeholder="%",
        ),
        Flag("claim", f"Compare only settings with this claim: {', '.join(MODELS)}.", placeholder="MODEL"),
        Flag(
            "private",
            "ranking-dp: choose k privately with this ε, which adds to the guarantee's ε.",
            common=True,
            placeholder="E",
        ),
        options.WORKERS,
        options.LEDGER,
        options.DATASET,
        Flag(
            "out",
            "New folder for the results, or one to continue.",
            "output",
            Path,
            common=True,
            placeholder="DIR",
        ),
        Flag("everything", "Print every setting.", "output", bool, ("--all",), default=False),
        replace(options.JSON, common=True),
    )


def tune(typed: Mapping[str, Any]) -> None:
    from shoal.mechanisms import names_in
    from shoal.tuning import account
    from shoal.tuning import tune as run

    out: Path | None = typed["out"]
    account(
        typed["ledger"], typed["dataset"], typed["private"]
    )  # report a missing name before a table is read

    # methods are named by a separate option
    arguments = options.recipe_arguments({**typed, "method": "", "target": None})
    del arguments["method"]
    table = options.read_declared(typed["data"], arguments)
    if typed["columns"]:
        arguments["columns"] = options.column_names(typed["columns"], table.names)
    for name in ("methods", "splits", "noises", "deltas"):
        arguments[name] = None if typed[name] is None else names_in(typed[name])
    arguments["ks"] = None if typed["ks"] is None else [_size(word) for word in names_in(typed["ks"])]
    arguments |= {name: typed[name] for name in _NAMED}
    try:
        with progress_bar() as progress:
            found = run(table, **arguments, progress=progress, notice=_announce)
    except KeyboardInterrupt:
        if out is None:
            raise
        complain(
            f"interrupted; finished runs are kept in '{out}', and the same command continues from there."
        )
        raise typer.Exit(130) from None
    _say(found, out, typed["everything"], typed["json"])


# the docstring is the help text
tune.__doc__ = inspect.cleandoc(_HELP)


def _size(word: str) -> int:
    if not word.isdigit():
        raise OptionError("ks-whole-numbers-commas-between-such", found=word)
    return int(word)


def _announce(said: Message | str) -> None:
    # plain print: while a bar is drawn, standard error is written without disturbing it
    print(worded(said), file=sys.stderr, flush=True)


def _say(found: Tuning, out: Path | None, everything: bool, as_json: bool) -> None:
    if as_json:
        extra: dict[str, Any] = {} if out is None else {"out": str(out)}
        print_json({**found.to_dict(), **extra})
        return
    console = results()
    if not found.private:
        console.print(found.table(everything=everything))
    console.print(found.why, markup=False)
    if found.verdict is not None:
        console.print("A release of these records with this setting:", markup=False)
        say_verdict(found.verdict)
    for note in found.notes:
        say_note(note)
    if out is not None:
        console.print(f"Written to {out}: {', '.join(sorted(p.name for p in out.iterdir()))}.", markup=False)
    if not found.private:
        console.print("These are facts about the original data: keep them internal.", markup=False)


def choose_bound_flags() -> tuple[Flag, ...]:
    """The options of `shoal choose-bound`."""
    return (
        options.data(),
        options.SCHEMA,
        Flag(
            "epsilon",
            "ε of the choice, for each unit; it adds to that of the release.",
            "guarantee",
            common=True,
            placeholder="E",
        ),
        Flag(
            "most",
            "Largest number of rows to choose; fix it without looking at the records.",
            "guarantee",
            int,
            common=True,
            placeholder="N",
        ),
        Flag(
            "share",
            "Share of the units whose rows should all take part.",
            "guarantee",
            default="0.9",
            common=True,
            placeholder="P",
        ),
        replace(options.LEDGER, common=True),
        replace(options.DATASET, common=True),
        Flag(
            "out",
            "New file for the recipe that 'shoal protect --config' takes.",
            "output",
            Path,
            common=True,
            placeholder="FILE",
        ),
        Flag(
            "dry_run",
            "Show how precise the choice would be; read no records and use no privacy budget.",
            "output",
            bool,
            default=False,
            common=True,
        ),
        replace(options.JSON, common=True),
    )


def choose_bound(typed: Mapping[str, Any]) -> None:
    """Choose privately how many rows of each unit take part in a release, so that most units lose none.

    The choice uses privacy budget: ε for each unit, under add-remove adjacency. The recipe in --out holds the schema
    with the chosen bound, and the cost; 'shoal protect --config' adds it to the ε of the release.

    Examples:

      shoal choose-bound stays.csv --schema stays.toml --epsilon 0.1 --most 30 --dry-run

      shoal choose-bound stays.csv --schema stays.toml --epsilon 0.1 --most 30 --out bound.toml

      shoal protect stays.csv --config bound.toml --epsilon 0.9 --out release
    """
    from shoal.columns import Schema, unit_words
    from shoal.tuning import choose_bound as choose
    from shoal.tuning import units_off

    out: Path | None = typed["out"]
    for name in ("schema", "epsilon", "most"):
        if typed[name] is None:
            raise OptionError("option-is-missing", option=name)
    schema = Schema.load(typed["schema"])
    off = units_off(typed["epsilon"], typed["most"], typed["share"])
    unit = schema.stepped.unit
    if unit is None:
        raise OptionError("bound-needs-unit", option="bound")
    words = unit.called or unit_words(unit.name, None, "")
    if typed["dry_run"]:
        if typed["json"]:
            print_json({"units_off": off, "probability": 0.95})
            return
        results().print(
            f"Would choose a bound from 1 to {typed['most']} rows of each {words} with ε = {typed['epsilon']}.\n"
            f"With a probability of 95%, the share {typed['share']} of the units is missed by at most {off:,.0f} "
            "units.\nNothing was charged or written.",
            markup=False,
        )
        return
    if out is None:
        raise OptionError("option-is-missing", option="out")
    with _new_file(out) as write:
        found = choose(
            typed["data"],
            schema,
            typed["epsilon"],
            most=typed["most"],
            share=typed["share"],
            ledger=typed["ledger"],
            dataset=typed["dataset"],
        )
        write(found.recipe_text(schema))
    if typed["json"]:
        print_json(found.to_dict())
        return
    results().print(
        f"At most {found.rows} rows of each {words}, chosen privately with ε = {typed['epsilon']}.\n"
        f"Written to {out}. Then: shoal protect {typed['data']} --config {out} --epsilon E --out RELEASE",
        markup=False,
    )


@contextmanager
def _new_file(place: Path) -> Iterator[Callable[[str], None]]:
    """Create a file before any budget is used; remove it if nothing is written."""
    try:
        file = place.open("x", encoding="utf-8")
    except FileExistsError:
        raise OutputError("hold-out-exists-already", place=place) from None
    except OSError as error:
        raise OutputError("cannot-write", plot=place, reason=error.strerror or error) from None
    try:
        with file:
            yield lambda text: print(text, end="", file=file)
    except BaseException:
        place.unlink(missing_ok=True)
        raise


# budgets of the plot, as multiples of the requested one
_MULTIPLES = ("0.25", "0.5", "1", "2", "4")

_AUDIT_HELP = """Try to refute a privacy claim: bound the actual ε from below by many runs.

    Shoal releases two neighbouring data sets, which differ in one record, many times; how well the releases can be
    told apart bounds ε from below. Passing does not prove privacy. Small tables with extreme records refute best.

    Exit status: 0 when no claim of the method is refuted, 1 when one is, 2 for bad input.

    Examples:

      shoal audit people.csv --schema people.toml --method ranking-dp --epsilon 1 --k 5

      shoal audit people.csv --domain age=0:120 --domain income=0:200000 --method mdav-dp --epsilon 1 --k 3
      --view given-partition --runs 20000 --plot bounds.svg
    """


def audit_flags() -> tuple[Flag, ...]:
    """The options of `shoal audit`."""
    return (
        options.data(),
        *options.about_the_table(),
        options.METHOD,
        *options.of_methods(),
        options.CONFIG,
        Flag(
            "view", "Claim to test: original, given-partition or individual.", default="original", common=True
        ),
        Flag(
            "runs",
            "Number of test runs; default: as many as fit in a few minutes.",
            type=int,
            common=True,
            placeholder="N",
        ),
        Flag("confidence", "Confidence level of the bound.", type=float, default=0.99, placeholder="P"),
        Flag("seed", "Seed of the audit, to repeat it exactly.", type=int, placeholder="N"),
        options.WORKERS,
        Flag(
            "plot",
            "Audit ε/4, ε/2, ε, 2ε and 4ε and plot the bounds as SVG.",
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
    _say_audit(found, others, plot, typed["json"])
    if found.alarm:
        raise typer.Exit(1)


# the docstring is the help text
audit.__doc__ = inspect.cleandoc(_AUDIT_HELP)


def _check_plot(plot: Path | None) -> None:
    if plot is None:
        return
    if plot.suffix.lower() != ".svg":
        raise OptionError("plot-end-svg", plot=plot)
    if plot.exists():
        raise OutputError("exists-already", plot=plot)
    if not plot.parent.is_dir():
        raise OutputError("there-no-folder-picture", parent=plot.parent)


def _draw(audits: list[Audit], plot: Path) -> None:
    from shoal.auditing import plot_svg
    from shoal.io import private_text

    try:
        private_text(plot, plot_svg(audits))
    except OSError as error:
        raise OutputError("cannot-write", plot=plot, reason=error.strerror) from None


def _say_audit(found: Audit, others: list[Audit], plot: Path | None, as_json: bool) -> None:
    if as_json:
        curve: dict[str, Any] = {"curve": [audit.to_dict() for audit in others]} if others else {}
        print_json({**found.to_dict(), **curve})
        return
    console = results()
    console.print(found.sentence, markup=False)
    best = found.attacks[0]
    console.print(
        f"Neighbouring data sets: {found.neighbours}; the worst of {found.pairs} pairs tried.", markup=False
    )
    console.print(
        f"Attack: {best.event}; seen in {best.hits} of {best.hit_runs} runs on one data set and in "
        f"{best.false_hits} of {best.other_runs} on the other.",
        markup=False,
    )
    for audit in others:
        console.print(f"ε = {audit.epsilon:g}: {audit.verdict}.", markup=False)
    if plot is not None:
        console.print(f"Plot: {plot}.", markup=False)
    console.print("This is a fact about the original data: keep it internal.", markup=False)
