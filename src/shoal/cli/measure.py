"""`shoal evaluate`, `check`, `risk`, `attack`, `hold-out`, `report` and `registry`: measure and describe tables."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import options
from shoal.cli.command import (
    Flag,
    complain,
    interruptibly,
    messages,
    print_json,
    progress_bar,
    results,
    say_measures,
    say_verdict,
)
from shoal.errors import OptionError, OutputError

if TYPE_CHECKING:
    from shoal.columns import Schema
    from shoal.engines import Runner
    from shoal.evaluation import Check, Evaluation
    from shoal.io import Table
    from shoal.progress import Progress
    from shoal.report import Subject


SURVEY = (
    Flag(
        "weight",
        "Column of sampling weights; default: the column with the role weight.",
        "input",
        common=True,
        placeholder="COLUMN",
    ),
    Flag(
        "household",
        "Column that identifies the household.",
        "input",
        common=True,
        placeholder="COLUMN",
    ),
    Flag(
        "unit",
        "Column that identifies the person, to count persons; default: the column with the role unit.",
        "input",
        common=True,
        placeholder="COLUMN",
    ),
)


def columns_flag(name: str, words: str) -> Flag:
    """A flag for column names, comma-separated or repeated."""
    return Flag(name, words, "input", many=True, common=True, placeholder="A,B,C")


@contextmanager
def own_options(**named: str) -> Iterator[None]:
    """Rename library arguments in errors to the options of this command."""
    try:
        yield
    except OptionError as error:
        own = named.get(error.option or "")
        if own is None:
            raise
        raise OptionError(error.code, **{**error.facts, "option": own}) from None


def table_and_columns(
    typed: Mapping[str, Any], flags: Sequence[str]
) -> tuple[Table, Schema | None, dict[str, list[str] | None]]:
    """The table after the preprocessing steps of its schema, the schema, and the columns that some flags name."""
    from shoal.columns import Schema, read_declared

    declared = None if typed["schema"] is None else Schema.load(typed["schema"])
    data = read_declared(typed["table"], declared, na=typed["na"] or (), **options.file_arguments(typed))
    named = {
        name: None if typed[name] is None else options.column_names(typed[name], data.names) for name in flags
    }
    return data, declared, named


def say_if_synthetic(table: Path) -> None:
    """Explain what classical risk means for synthetic records."""
    from shoal.errors import ShoalError
    from shoal.mechanisms import method_class, names
    from shoal.release import Bundle

    folder = next((place for place in (table, table.parent) if (place / "statement.json").is_file()), None)
    try:
        method = None if folder is None else Bundle.load(folder).statement.method
    except ShoalError:
        return
    if method in names() and method_class(str(method)).synthetic:
        messages().print(
            "note: the rows of this release are synthetic and belong to no person, so the sizes of equivalence "
            "classes are not a re-identification risk; the statement gives the guarantee.",
            markup=False,
        )


def evaluate_flags() -> tuple[Flag, ...]:
    """The options of `shoal evaluate`."""
    return (
        Flag("original", "Original table.", "input", Path, argument=True, common=True),
        Flag("released", "Released table, from any tool.", "input", Path, argument=True, common=True),
        Flag("columns", "Compare only these columns, a,b,c.", "input", common=True, placeholder="A,B,C"),
        Flag(
            "same_order",
            "Match row i of both tables as the same record, if neither is a release.",
            "input",
            bool,
            default=False,
        ),
        *options.ABOUT_FILES,
        replace(options.TARGET, common=True),
        Flag(
            "weight",
            "Survey weight: also compare estimates of the population.",
            "input",
            placeholder="COLUMN",
        ),
        Flag("strata", "With a weight: the column of the strata.", "input", placeholder="COLUMN"),
        Flag("everything", "Print every measure.", "output", bool, ("--all",), default=False, common=True),
        replace(options.JSON, common=True),
        *options.NOTED,
        *options.ENGINE,
    )


def evaluate(typed: Mapping[str, Any]) -> None:
    """Compare a released table with its original, by default without relying on the order of rows.

    RELEASED is a table from any tool, or the folder of a release; for a release, Shoal also prints the verdict.

    Measures that need to know which row came from which record (SSE, record linkage, dRisk) are printed by
    'shoal protect --evaluate', and here with --same-order. With --target, Shoal trains a random forest on the released
    rows, which must include that column, and tests it on the original rows. With --weight, Shoal compares weighted
    totals, means, quantiles and cross-tabulations of both tables, with their standard errors.

    Parquet files that are too large for memory, and folders of Parquet files, are processed in parts: Shoal computes
    the same measures from aggregates, and lists those that aggregates cannot give.

    Examples:

      shoal evaluate people.csv release/data.csv

      shoal evaluate people.csv release/data.csv --target 'income>30000'
    """
    from shoal.evaluation import verdict
    from shoal.release import data_of, in_memory_because
    from shoal.report import bundle_of

    bundle = bundle_of(typed["released"], on_disk=True)
    tables = typed["original"], data_of(bundle, typed["released"])
    runners = options.where(typed).runners(tables, in_memory_because(typed))

    with progress_bar() as progress:
        if runners is None:
            measured = _in_memory(typed, bundle, progress)
        else:
            measured = _in_parts(typed, bundle, runners, progress)
    found = None if bundle is None else verdict(bundle.statement, measured)
    if typed["json"]:
        print_json({**measured.to_dict(), **({} if found is None else {"verdict": found.to_dict()})})
        return
    say_measures(measured, typed["everything"] or typed["target"] is not None)
    if typed["weight"] is not None and not typed["everything"]:
        results().print(measured.estimates_table())
    if found is not None:
        say_verdict(found)
    else:
        results().print(
            "Verdict: none. There is no statement next to the released table, so no guarantee is known.",
            markup=False,
        )


def _in_memory(typed: Mapping[str, Any], bundle: Subject | None, progress: Progress) -> Evaluation:
    from shoal.columns import read_declared
    from shoal.evaluation import evaluate as measure
    from shoal.report import bundle_of, published

    progress("reading the tables", 0, 1)
    if bundle is not None and bundle.table.path is not None:
        # its data stayed on disk, as it could have been too large
        bundle = bundle_of(typed["released"])
    after: Any
    if bundle is None:
        table, after = options.read_tables([typed["original"], typed["released"]], typed)
    else:
        na = typed["na"] or bundle.na
        table = read_declared(typed["original"], bundle.schema, na=na, **options.file_arguments(typed))
        after = published(bundle)
    columns = typed["columns"]
    chosen = None if columns is None else options.column_names([columns], table.names)
    if bundle is None:
        options.check_compared([table, after], chosen)
    found = measure(
        table,
        after,
        columns=chosen,
        same_order=typed["same_order"],
        target=typed["target"],
        weight=typed["weight"],
        strata=typed["strata"],
        progress=progress,
    )
    _note(typed, table, found)
    return found


def _note(typed: Mapping[str, Any], records: Table | Runner, found: Evaluation) -> None:
    options.note_use(typed, "measured", records, found.columns, "evaluate", released=typed["released"])


def _in_parts(
    typed: Mapping[str, Any], bundle: Subject | None, runners: Sequence[Runner], progress: Progress
) -> Evaluation:
    from shoal.release import evaluated

    columns, na = typed["columns"], typed["na"] or (() if bundle is None else bundle.na)
    chosen = None if columns is None else options.column_names([columns], runners[0].schema.names)
    told = options.file_arguments(typed)
    found = evaluated(runners, bundle, columns=chosen, na=na, progress=progress, **told)
    _note(typed, runners[0], found)
    return found


def check_flags() -> tuple[Flag, ...]:
    """The options of `shoal check`."""
    known = "Quasi-identifiers, a,b,c; default: by role."
    hidden = "Sensitive attributes, a,b,c; default: by role."
    roles = "Schema file: roles, and the order of ordinal columns."
    apart = "Require an earth mover's distance to the table of at most T."
    ratio = "Require ratios of shares, equivalence class to table, of at most T."
    return (
        options.data("table"),
        columns_flag("quasi", known),
        columns_flag("confidential", hidden),
        replace(options.SCHEMA, help=roles),
        *options.ABOUT_FILES,
        Flag(
            "k",
            "Require at least k rows, or persons, in every equivalence class.",
            "guarantee",
            int,
            ("--k", "-k"),
            common=True,
        ),
        Flag(
            "l",
            "Require l distinct sensitive values in every equivalence class.",
            "guarantee",
            int,
            ("--l", "-l"),
            common=True,
        ),
        Flag("t_emd", apart, "guarantee", float, common=True, placeholder="T"),
        Flag("t_ratio", ratio, "guarantee", float, common=True, placeholder="T"),
        *SURVEY,
        replace(options.NOTED[1], group="input"),
        replace(options.JSON, common=True),
        *options.ENGINE,
    )


def check(typed: Mapping[str, Any]) -> None:
    """Measure the k-anonymity, l-diversity and t-closeness of a table, and its disclosure risk.

    The table can come from any tool; 'shoal risk' gives more detail on the disclosure risk. The exit status is 1 if a
    required level is not reached, and 0 otherwise. A folder of Parquet files, or a file too large for memory, is
    processed in parts: Shoal measures the same levels, and lists what it cannot measure in this way.

    Example:

      shoal check release/data.csv --quasi age,sex,town --confidential illness --k 5 --l 2
    """
    from shoal.columns import Schema
    from shoal.release import check_runner

    declared = None if typed["schema"] is None else Schema.load(typed["schema"])
    if declared is not None and _is_released(typed["table"]):
        # the preprocessing steps were applied
        declared = replace(declared.stepped, before=None)
    survey = (typed[name] for name in ("weight", "household", "unit"))
    runner = check_runner(options.where(typed), _data_in(typed["table"]), declared, *survey)
    with progress_bar() as progress, own_options(quasi_identifiers="quasi", sensitive="confidential"):
        if runner is None:
            found = _check_in_memory(typed, declared, progress)
        else:
            found = _check_in_parts(typed, declared, runner, progress)
    say_if_synthetic(typed["table"])
    if typed["json"]:
        print_json(found.to_dict())
    else:
        results().print(found)
        for requirement in found.requirements:
            results().print(requirement.words, markup=False)
        for line in (*found.rule_lines, *found.remarks):
            results().print(line, markup=False)
    if not found.met:
        missed = "; ".join(r.words for r in found.requirements if not r.met)
        complain(f"a required level is not reached: {missed}.")
        raise typer.Exit(1)


def _is_released(table: Path) -> bool:
    """Whether a table belongs to a bundle: its folder, or a file in it."""
    return any((folder / "statement.json").is_file() for folder in (table, table.parent))


def _data_in(table: Path) -> Path:
    """The table at a path, or the data of the release in a folder."""
    if not (table / "statement.json").is_file():
        return table
    return next((path for path in (table / "data", *sorted(table.glob("data.*"))) if path.exists()), table)


def _check_in_memory(typed: Mapping[str, Any], declared: Schema | None, progress: Progress) -> Check:
    from shoal.columns import read_declared
    from shoal.evaluation import check as measure

    progress("reading the table", 0, 1)
    table = _data_in(typed["table"])
    data = read_declared(table, declared, na=typed["na"] or (), **options.file_arguments(typed))
    levels = {name: typed[name] for name in ("k", "l", "t_emd", "t_ratio", "weight", "household", "unit")}
    named = _named(typed, data.names)
    found = measure(data, *named, schema=declared, progress=progress, **levels)
    _note_check(typed, data)
    return found


def _note_check(typed: Mapping[str, Any], records: Table | Runner) -> None:
    """Note a check in the journal, unless the table is a release, which shows nothing about records."""
    from shoal.release import shows_records

    if shows_records(typed["table"], typed["dataset"]):
        options.note_use(typed, "viewed", records, (), "check")


def _check_in_parts(
    typed: Mapping[str, Any], declared: Schema | None, runner: Runner, progress: Progress
) -> Check:
    from shoal.release import checked

    levels = {name: typed[name] for name in ("k", "l", "t_emd", "t_ratio")}
    told = {"na": typed["na"] or (), **options.file_arguments(typed)}
    named = _named(typed, runner.schema.names)
    found = checked(runner, *named, schema=declared, levels=levels, progress=progress, **told)
    _note_check(typed, runner)
    return found


def _named(typed: Mapping[str, Any], known: Sequence[str]) -> list[list[str] | None]:
    """The columns named, quasi-identifiers first."""
    return [
        None if typed[name] is None else options.column_names(typed[name], known)
        for name in ("quasi", "confidential")
    ]


# options with the same name in the library
_NAMED = (
    "weight",
    "household",
    "unit",
    "missing",
    "alpha",
    "form",
    "tolerated",
    "special",
    "fraction",
    "points",
    "c",
)


def risk_flags() -> tuple[Flag, ...]:
    """The options of `shoal risk`."""
    known = "Columns an intruder may know, a,b,c; default: the quasi-identifiers."
    hidden = "Measure the l-diversity of these columns, a,b,c."
    gaps = "A missing key matches any value (wildcard) or is a separate value (category)."
    part = "Weight of a record that matches by a wildcard, 0 to 1."
    forms = "Form of the individual risk: approximate (closed forms) or exact."
    aim = "Tolerated global risk, for which Shoal computes the threshold."
    share = "Sampling fraction, the share of the population in the table, for DIS scores."
    kept = "Keys whose joint table the log-linear model includes, a,b; repeatable."
    per_record = "Write the risk of each record to this new file: internal, not for publication."
    return (
        options.data("table"),
        columns_flag("keys", known),
        *SURVEY,
        replace(options.NOTED[1], group="input"),
        columns_flag("sensitive", hidden),
        replace(options.SCHEMA, help="Schema file: roles of the columns."),
        *options.ABOUT_FILES,
        Flag("missing", gaps, "odd values", default="wildcard", common=True, placeholder="RULE"),
        Flag("alpha", part, "odd values", float, default=1.0, placeholder="SHARE"),
        Flag("form", forms, "method", default="approximate", placeholder="FORM"),
        Flag("tolerated", aim, "method", float, default=0.01, common=True, placeholder="SHARE"),
        Flag(
            "special",
            "Search for special uniques (SUDA2); default: with few keys.",
            "method",
            bool,
            ("--special/--no-special",),
        ),
        Flag("fraction", share, "method", float, default=0.01, placeholder="SHARE"),
        Flag(
            "points",
            "Scoring of SUDA2: original, (m-s)!, or ihsn.",
            "method",
            default="original",
            placeholder="WORD",
        ),
        Flag("interactions", kept, "method", many=True, placeholder="A,B"),
        Flag("c", "Constant of recursive l-diversity.", "method", float, default=2.0, placeholder="C"),
        Flag("internal", per_record, "output", Path, common=True, placeholder="FILE"),
        replace(options.JSON, common=True),
    )


def risk(typed: Mapping[str, Any]) -> None:
    """Measure the re-identification risk of a table's records for an intruder who knows some of its columns.

    Prints how often combinations of keys occur in the table and, by weights, in the population; individual, global
    and household risk; special uniques (SUDA2); and the expected population uniques. These are facts about the
    records: keep them internal. The printed figures are about the whole table; --internal writes those of each record.

    Examples:

      shoal risk survey.csv --keys age,sex,region --weight w --household hid --internal records.csv

      shoal risk release/data.csv --keys age,sex,region --missing category --sensitive illness
    """
    from shoal.evaluation import risk as measure

    with progress_bar() as progress, own_options(quasi_identifiers="keys"):
        progress("reading the table", 0, 1)
        data, declared, columns = table_and_columns(typed, ("keys", "sensitive"))
        joint = [options.column_names([text], data.names) for text in typed["interactions"] or ()]
        found = measure(
            data,
            columns["keys"],
            sensitive=columns["sensitive"] or (),
            schema=declared,
            interactions=joint,
            progress=progress,
            **{name: typed[name] for name in _NAMED},
        )
        options.note_use(typed, "viewed", data, (), "risk")
        if typed["internal"] is not None:
            progress("writing the risk of each record", 0, 1)
            found.save(typed["internal"])
    say_if_synthetic(typed["table"])
    if typed["json"]:
        print_json(found.to_dict())
        return
    results().print(found)
    if typed["internal"] is not None:
        results().print(f"Risk of each record, internal: {typed['internal']}.", markup=False)
    results().print("These are facts about the records: keep them internal.", markup=False)


def attack_flags() -> tuple[Flag, ...]:
    """The options of `shoal attack`."""
    held_out = "Control group: records like the original ones that were not used for the release."
    near = "Tolerance for a correct guess of a number, as a share of its range."
    return (
        Flag("original", "Original table that was protected.", "input", Path, argument=True, common=True),
        Flag("released", "Released table, from any tool.", "input", Path, argument=True, common=True),
        Flag("control", held_out, "input", Path, common=True, placeholder="FILE"),
        Flag("columns", "Attack only these columns, a,b,c.", "input", common=True, placeholder="A,B,C"),
        Flag(
            "secret",
            "Infer this column from all others; default: each column in turn.",
            common=True,
            placeholder="COLUMN",
        ),
        Flag(
            "attacks",
            "Number of attempts of each attack.",
            type=int,
            default=500,
            common=True,
            placeholder="N",
        ),
        Flag("tolerance", near, type=float, default=0.05, placeholder="SHARE"),
        Flag("seed", "Seed for a reproducible choice of targets.", type=int, placeholder="N"),
        *options.ABOUT_FILES,
        replace(options.JSON, common=True),
        *options.NOTED,
    )


def attack(typed: Mapping[str, Any]) -> None:
    """Attack a released table: linkability, singling out and attribute inference.

    Success alone does not show a risk: hold out a control group before you protect the table ('shoal hold-out') and
    pass it with --control to see how much of the success is due to a person being in the data.

    Example:

      shoal attack people.csv release/data.csv --control held-out.csv
    """
    from shoal.evaluation import attack as run

    with progress_bar() as progress, own_options(sensitive="secret"):
        progress("reading the tables", 0, 1)
        tables = options.read_tables([typed["original"], typed["released"], typed["control"]], typed)
        columns = typed["columns"]
        chosen = None if columns is None else options.column_names([columns], tables[0].names)
        options.check_compared(tables, chosen)
        report = run(
            *tables,
            columns=chosen,
            sensitive=typed["secret"],
            attempts=typed["attacks"],
            tolerance=typed["tolerance"],
            seed=typed["seed"],
            progress=progress,
        )
        columns = chosen or tables[1].names
        options.note_use(typed, "measured", tables[0], columns, "attack", released=typed["released"])
    if typed["json"]:
        print_json(report.to_dict())
        return
    results().print(report)


def hold_out(
    data: Annotated[Path, typer.Argument(help="Table, before it is protected.", show_default=False)],
    rest: Annotated[Path, typer.Option(help="New file for the records to protect.", show_default=False)],
    control: Annotated[Path, typer.Option(help="New file for the control group.", show_default=False)],
    share: Annotated[float, typer.Option(help="Share of the records to hold out.")] = 0.2,
    unit: Annotated[
        str | None,
        typer.Option(help="Column that identifies the person, to keep all rows of a person together."),
    ] = None,
) -> None:
    """Hold out a random control group before protecting a table.

    Protect the rest, then attack with --control: what an attacker learns about people who were not in the table is
    true of people in general, and only the success beyond that is a risk of taking part.

    Example: shoal hold-out people.csv --rest protect-these.csv --control held-out.csv
    """
    from shoal.evaluation import divide
    from shoal.io import private_file, read, write

    if not 0 < share < 1:
        raise OptionError("share-above-0-below-1", found=share)
    for place in (rest, control):
        if place.exists():
            raise OutputError("hold-out-exists-already", place=place)
    if rest.resolve() == control.resolve():
        raise OptionError("rest-control-two-files")
    table = read(data)
    kept, aside = divide(table, share, unit)
    written: list[Path] = []
    try:
        for place, rows in ((rest, kept), (control, aside)):
            written.append(place)
            write(table.rows(rows).frame.to_native(), private_file(place))
    except BaseException:
        for place in written:
            place.unlink(missing_ok=True)
        raise
    results().print(
        f"{kept.size:,} records to protect in {rest}, {aside.size:,} held out in {control}.\n"
        f"Then: shoal attack {rest} RELEASE/data{rest.suffix} --control {control}",
        markup=False,
    )


_FLAGS = {flag.name: flag for flag in options.ENGINE}


def report(
    bundle: Annotated[Path, typer.Argument(help="Folder that 'shoal protect' wrote.", show_default=False)],
    original: Annotated[
        Path | None,
        typer.Option(help="Original table that was protected: adds facts that must not be published."),
    ] = None,
    target: Annotated[str | None, typer.Option(help=options.TARGET.help)] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="New file for the report; default: BUNDLE-report.html.", show_default=False),
    ] = None,
    engine: Annotated[str | None, typer.Option(help=_FLAGS["engine"].help)] = None,
    master: Annotated[str | None, typer.Option(help=_FLAGS["master"].help, metavar="URL")] = None,
    conf: Annotated[list[str] | None, typer.Option(help=_FLAGS["conf"].help, metavar="KEY=VALUE")] = None,
    ledger: Annotated[
        str | None,
        typer.Option(help=f"With --original: {options.NOTED[0].help.lower()}", metavar="ADDRESS"),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(*options.DATASET.typed, help=options.NOTED[1].help, metavar="NAME")
    ] = None,
) -> None:
    """Write a report on a release for readers: its guarantee, its information loss and the remaining risk.

    The report is one self-contained HTML file that opens without a network. Without --original it contains only what
    follows from the bundle, and may be published with it. With --original it compares both tables and attacks the
    release, and must stay internal.

    Parquet files that are too large for memory, and folders of Parquet files, are processed in parts: distributions
    and correlations from all rows, attacks and two-way tables on the same samples.

    Examples:

      shoal report release

      shoal report release --original people.csv --target 'income>30000' --out internal.html
    """
    from shoal.columns import read_declared
    from shoal.privacy import public_verdict
    from shoal.release import in_memory_because, report_in_parts
    from shoal.report import bundle_report, of_bundle

    private = original is not None
    if target is not None and not private:
        raise OptionError("target-compares-original-table")
    if (ledger or dataset) and not private:
        raise OptionError("ledger-dataset-about-original-table")
    place = out or Path(f"{bundle.resolve().name}-{'internal' if private else 'report'}.html")
    check_place(place, bundle if private else None)

    where = options.where({"engine": engine, "master": master, "conf": conf})
    subject = of_bundle(bundle, on_disk=True)
    tables = [subject.table.path] if original is None else [original, subject.table.path]
    runners = where.runners(tables, in_memory_because({"target": target}))
    records: Table | Runner | None = None if original is None or runners is None else runners[0]

    def work() -> str:
        nonlocal records
        with progress_bar() as progress:
            if runners is not None:
                return report_in_parts(subject, bundle, runners, progress)
            if original is not None:
                progress("reading the table", 0, 1)
                records = read_declared(original, subject.schema, na=subject.na)
            return bundle_report(bundle, records, target, progress)

    page = interruptibly(work)
    if records is not None:
        noted = {"ledger": ledger, "dataset": dataset}
        shown = ["histogram"]
        options.note_use(noted, "measured", records, subject.columns, "report", released=bundle, views=shown)
    size = write_page(place, page, private=private)
    say_verdict(public_verdict(subject.statement))
    results().print(
        f"Written to {place}: one HTML page, {size / 1e6:.1f} MB, which works offline.", markup=False
    )
    if private:
        complain(f"'{place}' contains facts about the original data: do not publish it.")


def check_place(place: Path, bundle: Path | None = None) -> None:
    """Refuse, before any work is done, an output that could not be written, or that is private and inside a bundle."""
    if place.is_dir():
        raise OutputError("is-a-folder-not-file", place=place)
    if place.exists():
        raise OutputError("report-exists-already", place=place)
    if bundle is not None and bundle.resolve() in place.resolve().parents:
        raise OutputError("would-lie-inside-published-folder-holds", place=place, bundle=bundle)
    parent = place.absolute().parent
    if not parent.is_dir():
        raise OutputError("there-no-folder", parent=parent, place=place.name)
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError("no-permission-write", parent=parent)


def write_page(place: Path, page: str, *, private: bool = True) -> int:
    """Write to a temporary file and rename it, so that an interruption leaves no partial page; return its size.

    Args:
        private: it holds facts about the original records, and is readable by its owner only.
    """
    content = page.encode()
    number, aside = tempfile.mkstemp(prefix=f".{place.name}.partial-", dir=place.absolute().parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        if not private:
            Path(aside).chmod(0o644)
        if place.exists():
            raise OutputError("appeared-meanwhile", place=place)
        os.rename(aside, place)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
    return len(content)


def registry(
    release: Annotated[Path, typer.Argument(help="Folder that 'shoal protect' wrote.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Write the entry to this new file instead of printing it.")
    ] = None,
) -> None:
    """Write an entry for the OpenDP registry of differential privacy deployments (YAML) that describes a release.

    The guarantee, parameters and mechanism come from the release's statement. Who publishes what for whom comes from
    the table [publication] of the schema; Shoal lists the fields that are missing there, and exits with status 1 if
    the registry requires one of them.

    Examples:

      shoal registry release

      shoal registry release --out deployment.yaml
    """
    from shoal.release import registry_record

    if out is not None:
        check_place(out)
    found = registry_record(release)
    if out is None:
        print(found.to_yaml(), end="")
    else:
        write_page(out, found.to_yaml())
        messages().print(f"Written to {out}.", markup=False)
    where = "in [publication] of the schema, or in the entry"
    if found.required:
        complain(f"required by the registry and not declared: {', '.join(found.required)}. Add them {where}.")
    if found.missing:
        complain(f"requested by the registry and not declared: {', '.join(found.missing)}. Add them {where}.")
    if found.required:
        raise typer.Exit(1)
