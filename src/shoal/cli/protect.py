"""`shoal protect`, `rehearse` and `redo`: make, rehearse and repeat releases."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli import options
from shoal.cli.command import (
    Flag,
    charge_words,
    complain,
    interruptibly,
    messages,
    noting,
    print_json,
    progress_bar,
    results,
    say_measures,
    say_note,
    say_promise,
    say_verdict,
    worded,
)
from shoal.errors import OptionError
from shoal.text import capital, counted

if TYPE_CHECKING:
    from shoal.mechanisms import Method
    from shoal.release import DeltaComparison, ExpectedNoise, Planned, Published, Rehearsal


_LONG_SECONDS = 60
# output options, under the library's names
_DELIVERED = (
    "out",
    "internal",
    "format",
    "statistics",
    "evaluate",
    "target",
    "ledger",
    "dataset",
    "engine",
    "master",
    "staging",
)
# repeatable options
_REPEATED = ("conf", "same_records", "not_same_records")

_HELP = """Protect a table and write a bundle for publication.

    Shoal writes to DIR the data in the format of the input (data.csv, data.parquet, data.dta or data.sav),
    statement.json, method.toml, log.toml and report.html. It writes nothing if an error occurs, and never overwrites
    files.

    Examples:

      shoal protect people.csv --schema people.toml --epsilon 1 --out release

      shoal protect people.csv --domain income=0:2000000 --type income=integer --domain rent=0:9000
      --type rent=decimal:2 --method mdav-dp --epsilon 0.5 --k 100 --out release --internal internal.html --evaluate

      shoal protect next-year.csv --config release/method.toml --out release-2
    """


def _engine_flags() -> tuple[Flag, ...]:
    from shoal.release import ENGINES

    return (
        Flag("engine", f"Engine: {', '.join(ENGINES)}; default: by table size.", "output"),
        Flag("master", "Engine spark: address of the cluster.", "output", placeholder="URL"),
        Flag(
            "conf",
            "Engine spark: session setting, such as spark.executor.memory=4g; repeatable.",
            "output",
            many=True,
            placeholder="KEY=VALUE",
        ),
        Flag(
            "staging",
            "Engine spark with an address as --out: folder that all workers share.",
            "output",
            Path,
            placeholder="DIR",
        ),
    )


def protect_flags() -> tuple[Flag, ...]:
    """The options of `shoal protect`."""
    return (
        options.data(),
        *options.about_the_table(),
        options.METHOD,
        *options.of_methods(("target",)),
        options.CONFIG,
        *options.about_the_verdict(),
        Flag(
            "seed",
            "Make a reproducible release, for experiments only: not publishable.",
            "method",
            int,
            placeholder="N",
        ),
        Flag("out", "New folder, or address, for the bundle.", "output", common=True, placeholder="DIR"),
        Flag("format", "csv, parquet, excel and so on; default: like DATA.", "output", common=True),
        options.SPREADSHEET_SAFE,
        Flag(
            "internal",
            "Write the internal report to this file, outside the bundle.",
            "output",
            Path,
            common=True,
            placeholder="FILE",
        ),
        Flag(
            "evaluate",
            "Measure utility and risk (private facts).",
            "output",
            bool,
            default=False,
            common=True,
        ),
        replace(options.TARGET, group="method"),
        Flag(
            "statistics",
            "Also publish the masked cluster statistics, one row per cluster. (xm-*)",
            "output",
            bool,
            default=False,
        ),
        options.LEDGER,
        options.DATASET,
        *options.SAME_RECORDS,
        *_engine_flags(),
        Flag(
            "rehearse",
            "Use synthetic records; uses no privacy budget.",
            "output",
            bool,
            default=False,
            common=True,
        ),
        Flag(
            "everything", "With --evaluate: print every measure.", "output", bool, ("--all",), default=False
        ),
        Flag(
            "dry_run",
            "Show the plan and the expected time, and write nothing.",
            "output",
            bool,
            default=False,
            common=True,
        ),
        replace(options.JSON, help="Print the statement (and measures) as JSON."),
    )


def protect(typed: Mapping[str, Any]) -> None:
    from shoal.io import known_format, place
    from shoal.release import Delivery, opened, plan

    dry_run, as_json = typed["dry_run"], typed["json"]
    if typed["rehearse"]:
        rehearse_typed(typed)
        return
    if typed["out"] is None and not dry_run:
        raise OptionError("out-is-missing")
    written = None if typed["format"] is None else known_format(typed["format"]).name
    named = {name: typed[name] for name in _DELIVERED} | {
        name: tuple(typed[name] or ()) for name in _REPEATED
    }
    out = None if typed["out"] is None else place(typed["out"])
    delivery = Delivery(**{**named, "out": out, "format": written})
    delivery.check()
    # the target of a method is also that of the measures: it is passed to the library once
    arguments = {**options.recipe_arguments({**typed, "target": None}), "seed": typed["seed"]}
    source = opened(typed["data"], delivery, **arguments)
    if typed["columns"]:
        arguments["columns"] = options.column_names(typed["columns"], source.table.names)
    seen: set[tuple[str, bool]] = set()

    def work() -> Published | None:
        with progress_bar() as show:
            report = noting(show, seen)
            planned = plan(source, delivery, estimated=dry_run, progress=report, **arguments)
            if dry_run:
                planned.uses.note_declared(planned.prepared.statement)
                _say_plan(planned, as_json, arguments)
                return None
            _warn(planned)
            expected = planned.estimate
            if expected is not None and (expected.seconds or 0) > _LONG_SECONDS:
                messages().print(f"This will take {expected}.", markup=False)
            return planned.carry_out(report)

    published = interruptibly(work, lambda: charge_words(seen))
    if published is not None:
        _say(published, as_json, typed["everything"], arguments)


# the docstring is the help text
protect.__doc__ = inspect.cleandoc(_HELP)


# settings that change the claim or the loss, and are easily overlooked
_MATTER = ("k", "split", "delta", "neighbours", "missing")


def defaults_words(method: Method, given: Mapping[str, Any]) -> str:
    """The important settings that were not given, with their defaults; empty where all were given."""
    settings = {**method.settings(), "missing": "error"}
    found = [
        f"{name} = {settings[name]}"
        for name in _MATTER
        if given.get(name) is None and settings.get(name) is not None
    ]
    return f"Default settings used: {', '.join(found)}." if found else ""


def _warn(planned: Planned) -> None:
    """Print the warnings before the budget is spent."""
    for said in planned.advised:
        complain(said)


def noise_lines(planned: Planned) -> list[str]:
    """The expected noise, one line per column."""
    lines = []
    for found in planned.noise:
        if found.share_of_rows is not None:
            lines.append(f"  {found.column}: {_share_words(found)}")
        elif found.standard_deviation is None or found.share_of_range is None:
            lines.append(
                f"  {found.column}: not known beforehand, because {found.why}; run shoal rehearse to see it"
            )
        else:
            lines.append(
                f"  {found.column}: ± {found.standard_deviation:,.3g} on a mean of {found.records:,} records "
                f"({100 * found.share_of_range:.2g}% of the range)"
            )
    return lines


def delta_lines(compared: DeltaComparison | None) -> list[str]:
    """The expected error without and with a δ, and whether the δ is worth it; nothing where a method takes none."""
    return [] if compared is None else [capital(worded(said)) for said in (compared.errors, compared.advice)]


def _with_delta(compared: DeltaComparison | None) -> dict[str, Any]:
    return {} if compared is None else {"without_and_with_delta": compared.to_dict()}


def _share_words(found: ExpectedNoise) -> str:
    """The noise on shares of the rows, alone and in pairs."""
    assert found.share_of_rows is not None
    alone = f"shares of rows ± {_percent(found.share_of_rows)}"
    if not found.pairs:
        return f"{alone}; not measured jointly with another column"
    with_others = [noise for _, noise in found.pairs]
    least, most = _percent(min(with_others)), _percent(max(with_others))
    spread = least if least == most else f"{least} to {most}"
    return f"{alone}; joint shares with {counted(len(with_others), 'other column')} ± {spread}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"


def bound_lines(planned: Planned) -> list[str]:
    """The expected noise for several bounds on the rows of a unit, one line each."""
    from shoal.release import noise_by_bound

    prepared = planned.prepared
    found = noise_by_bound(prepared.method, prepared.described)
    if not found:
        return []
    provenance = prepared.described.provenance
    lines = [f"Rows of one {provenance.unit_word or 'unit'} that take part, at the same ε:"]
    for one in found:
        now = " (now)" if one.rows == provenance.rows_per_unit else ""
        kept = (
            "" if one.least_kept is None else f"; at least {_percent(one.least_kept)} of the rows take part"
        )
        lines.append(f"  {one.rows}{now}: shares of rows ± {_percent(one.share_of_rows)} at most{kept}")
    return lines


def stratum_lines(planned: Planned) -> list[str]:
    """The expected noise inside strata, by their number of rows."""
    from shoal.release import noise_by_stratum

    found = noise_by_stratum(planned.prepared.method, planned.prepared.described)
    lines = ["Rows of a stratum, and the noise inside it:"] if found else []
    for one in found:
        joint = "no pair is measured" if one.pairs is None else f"of pairs ± {_percent(one.pairs)} at most"
        lines.append(f"  {one.rows:,}: shares of its rows ± {_percent(one.share_of_rows)} at most; {joint}")
    return lines


def _say_plan(planned: Planned, as_json: bool, given: Mapping[str, Any]) -> None:
    """Print the plan for `--dry-run`: public facts and an estimate."""
    from shoal.release import noise_by_bound, noise_by_stratum

    prepared, expected = planned.prepared, planned.estimate
    described, statement = prepared.described, prepared.foreseen
    assert expected is not None
    if as_json:
        bounds = noise_by_bound(prepared.method, described)
        strata = noise_by_stratum(prepared.method, described)
        print_json(
            {
                "rows": described.n,
                "statement": statement.to_dict(),
                "notes": list(map(str, described.notes)),
                "noise": [found.to_dict() for found in planned.noise],
                **_with_delta(planned.compared),
                **({"rules": list(map(str, planned.rules))} if planned.rules else {}),
                "advice": list(planned.advice),
                **({"bounds": [one.to_dict() for one in bounds]} if bounds else {}),
                **({"strata": [one.to_dict() for one in strata]} if strata else {}),
                "engine": planned.engine,
                "estimate": {"seconds": expected.seconds, "bytes": expected.bytes, "probe": expected.probe},
            }
        )
        return
    console = results()
    where = {"memory": "in memory", "local": "in parts on this machine", "spark": "in parts on Spark"}[
        planned.engine
    ]
    private = prepared.method.adjacency.hides_size and prepared.method.rows is None
    inside = " (which is private: keep these figures internal)" if private else ""
    console.print(
        f"Would release {described.n:,} rows of {', '.join(described.columns)} with {prepared.method.name}, {where}.\n"
        f"Expected: {expected}.\n"
        f"Expected noise, from ε, k, ranges and the number of rows alone{inside}:",
        markup=False,
    )
    extra = (*bound_lines(planned), *stratum_lines(planned))
    for line in (*noise_lines(planned), *delta_lines(planned.compared), *extra):
        console.print(line, markup=False)
    if planned.rules:
        console.print("Rules between columns:", markup=False)
    for said in planned.rules:
        console.print(f"  {said}", markup=False)
    for said in planned.advised:
        complain(said)
    console.print()
    if words := defaults_words(prepared.method, given):
        console.print(f"{words}\n", markup=False)
    console.print(statement.to_markdown(), markup=False)
    for note in described.notes:
        say_note(note)
    console.print("Nothing was written.", markup=False)


def emptied_lines(internal: Mapping[str, Any]) -> list[str]:
    """The cells emptied by local suppression, by stratum, with the lower bound; a fact about the original data."""
    found = []
    for facts in internal.get("cells_emptied", ()):
        where = f" in {facts['stratum']}" if "stratum" in facts else ""
        by_column = ", ".join(f"{name} {count:,}" for name, count in facts["by_column"].items() if count)
        cost = f", {facts['cost']:,.6g} by importance" if "cost" in facts else ""
        bound = f"at least {facts['lower_bound']:,.6g}" if "lower_bound" in facts else "no lower bound"
        found.append(
            f"Cells emptied{where}: {facts['cells']:,}{cost} ({bound}) in {facts['rows_with_emptied_cells']:,} of "
            f"{facts['rows']:,} rows{'; ' if by_column else ''}{by_column}."
        )
    return (
        [*found, "The number of emptied cells is a fact about the original data: keep it internal."]
        if found
        else []
    )


def _say(published: Published, as_json: bool, everything: bool, given: Mapping[str, Any]) -> None:
    from shoal.evaluation import verdict

    release, measured = published.release, published.evaluation
    found = verdict(release, measured)
    if as_json:
        for said in published.told:
            complain(str(said))
        extra = {} if measured is None else {"evaluation": measured.to_dict(), "verdict": found.to_dict()}
        statement, notes = release.statement.to_dict(), list(release.notes)
        if "cells_emptied" in release.internal:
            extra["cells_emptied"] = release.internal["cells_emptied"]
        print_json({"out": str(published.folder), "statement": statement, "notes": notes, **extra})
        return
    console = results()
    say_promise(release.statement)
    if words := defaults_words(release.method, given):
        console.print(words, markup=False)
    for entry in release.statement.data_dependent:
        complain(f"data-dependent: {entry}")
    for said in published.told:
        complain(said)
    for note in release.messages:
        if published.unasked:
            complain(f"note: {worded(note)}")
        else:
            say_note(note)
    for line in emptied_lines(release.internal):
        console.print(line, markup=False)
    if measured is not None:
        say_measures(measured, everything)
        console.print("These measures are facts about the original data: keep them internal.", markup=False)
    say_verdict(found)
    folder = published.folder
    names = "" if isinstance(folder, str) else ", ".join(sorted(path.name for path in folder.iterdir()))
    console.print(f"Written to {folder}{names and f': {names}'}.", markup=False)
    if published.internal is not None:
        console.print(f"Internal report, not to be published: {published.internal}.", markup=False)


_REHEARSE_HELP = """Try settings on synthetic records, with all measures, as often as you like; uses no privacy budget.

    Shoal draws the synthetic records from the public ranges and values of the schema alone, or uses another table
    (--on), such as last year's. Choices that you make from them do not weaken the guarantee for the records that you
    will release. The page of --internal shows the figures.

    Examples:

      shoal rehearse --schema people.toml --method pairs-dp --epsilon 1

      shoal rehearse --schema people.toml --on last-year.csv --method ranking-dp --epsilon 1 --k 100 --all
    """


def rehearse_flags() -> tuple[Flag, ...]:
    """The options of `shoal rehearse`."""
    return (
        *options.about_the_table(),
        Flag(
            "on", "Use another table with the same columns, such as last year's.", "input", Path, common=True
        ),
        Flag(
            "people", "Number of synthetic people; default: 5000.", "input", int, common=True, placeholder="N"
        ),
        replace(options.DATASET, help="With --on: name of that data set, for the journal.", group="input"),
        options.METHOD,
        *options.of_methods(("target",)),
        options.CONFIG,
        replace(options.TARGET, group="method"),
        Flag(
            "internal",
            "Write the report on the rehearsal to this file.",
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
rehearse.__doc__ = inspect.cleandoc(_REHEARSE_HELP)


def rehearse_typed(typed: Mapping[str, Any]) -> None:
    """Run a rehearsal with the options of this command or of `shoal protect --rehearse`."""
    from shoal.release import PEOPLE
    from shoal.release import rehearse as run

    arguments = options.recipe_arguments(typed)
    if typed["columns"]:
        schema = arguments.get("schema")
        arguments["columns"] = options.column_names(typed["columns"], () if schema is None else schema.names)
    page: Path | None = typed["internal"]
    if page is not None:
        from shoal.cli.measure import check_place

        check_place(page)
    people = typed.get("people") or _public_rows(typed, arguments) or PEOPLE
    with progress_bar() as progress:
        on = typed.get("on")
        noted = {} if on is None else {"dataset": typed["dataset"]}
        found = run(on=on, people=people, progress=progress, **noted, **arguments)
        if page is not None:
            _write_page(found, page, progress)
    _say_rehearsal(found, page, everything=typed["everything"], as_json=typed["json"])


def _public_rows(typed: Mapping[str, Any], arguments: Mapping[str, Any]) -> int | None:
    """The number of rows of the table to be released, where the claim treats it as public."""
    from shoal.mechanisms import method_class

    adjacency = arguments.get("neighbours") or method_class(arguments["method"]).adjacency
    if typed.get("data") is None or adjacency != "replace-one":
        return None
    return options.read_declared(typed["data"], arguments).n


def _write_page(found: Rehearsal, page: Path, progress: Any) -> None:
    from shoal.cli.measure import write_page
    from shoal.report import internal_report

    write_page(page, internal_report(found.release, found.evaluation, found.original, progress))


def _say_rehearsal(found: Rehearsal, page: Path | None, *, everything: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "rehearsal": found.sentence,
                **_with_delta(found.compared),
                "statement": found.release.statement.to_dict(),
                "evaluation": found.evaluation.to_dict(),
                "verdict": found.verdict.to_dict(),
            }
        )
        return
    console = results()
    console.print(found.sentence, markup=False)
    say_promise(found.release.statement)
    for line in delta_lines(found.compared):
        console.print(line, markup=False)
    say_measures(found.evaluation, everything, "on a rehearsal")
    say_verdict(found.verdict)
    if page is not None:
        console.print(f"Report on the rehearsal: {page}.", markup=False)


def redo_flags() -> tuple[Flag, ...]:
    """The options of `shoal redo`: outputs only, because the log has the rest."""
    log = Flag("log", "log.toml of a release, or its folder.", "input", Path, argument=True, common=True)
    kept = (
        "out",
        "format",
        "internal",
        "evaluate",
        "ledger",
        "dataset",
        "same_records",
        "not_same_records",
        "engine",
        "everything",
        "dry_run",
        "json",
    )
    own = [flag for flag in protect_flags() if flag.name in kept]
    return (log, options.data(), *own)


def redo(typed: Mapping[str, Any]) -> None:
    """Repeat a release on another table, such as next year's: the same steps, settings and sources.

    LOG is the log.toml of a release, or its folder. Shoal does not repeat a seed, keeps the sources of bounds, and
    charges the new release separately: name the --ledger, and the --dataset of the people in DATA.

    Examples:

      shoal redo release/log.toml people-2027.csv --out release-2027

      shoal redo release people-2027.csv --out release-2027 --ledger budget.db --dataset people-2027
    """
    from shoal.mechanisms import log_path

    everything = {flag.name: flag.default for flag in protect_flags()}
    protect({**everything, **typed, "config": log_path(typed["log"])})
