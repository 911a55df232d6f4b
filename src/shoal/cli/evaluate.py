"""`shoal evaluate`: compare a released table with its original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli import options
from shoal.cli.command import Flag
from shoal.cli.output import print_json, progress_bar, results, say_measures, say_verdict

if TYPE_CHECKING:
    from shoal.engines.runner import Runner
    from shoal.evaluation import Evaluation
    from shoal.io import Table
    from shoal.progress import Progress
    from shoal.report.findings import Subject


def flags() -> tuple[Flag, ...]:
    """The options of `shoal evaluate`."""
    return (
        Flag("original", "The original table.", "input", Path, argument=True, common=True),
        Flag("released", "The released table, from any tool.", "input", Path, argument=True, common=True),
        Flag("columns", "Compare only these columns, a,b,c.", "input", common=True, placeholder="A,B,C"),
        Flag(
            "same_order",
            "Row i of both tables is the same record, where neither is a release.",
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
    """Compare a released table with its original, without using the order of rows unless told to.

    RELEASED is a table from any tool, or the folder of a release; the verdict of a release is printed with it.

    Measures that need to know which row came from which (SSE, record linkage, dRisk) are printed by
    'shoal protect --evaluate', and here with --same-order. With --target, a random forest is trained on the released
    rows, which must hold that column, and tested on the original ones. With --weight, weighted totals, means, quantiles
    and tables of both tables are compared, with their standard errors.

    Parquet files too large for memory, or folders of them, are worked through in parts: the same measures from
    aggregates, and a line about what cannot be had from them.

    Examples:

      shoal evaluate people.csv release/data.csv

      shoal evaluate people.csv release/data.csv --target 'income>30000'
    """
    from shoal.evaluation.verdict import verdict
    from shoal.release.measure import data_of, in_memory_because
    from shoal.report.findings import bundle_of

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
            "Verdict: none. No statement lies beside the released table, so nothing is known to be promised.",
            markup=False,
        )


def _in_memory(typed: Mapping[str, Any], bundle: Subject | None, progress: Progress) -> Evaluation:
    from shoal.columns.declaration import read_declared
    from shoal.evaluation import evaluate as measure
    from shoal.report.findings import bundle_of, published

    progress("reading the tables", 0, 1)
    if bundle is not None and bundle.table.path is not None:
        # its data stayed on disk as long as it could have been too large
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
    from shoal.release.measure import evaluated

    columns, na = typed["columns"], typed["na"] or (() if bundle is None else bundle.na)
    chosen = None if columns is None else options.column_names([columns], runners[0].schema.names)
    told = options.file_arguments(typed)
    found = evaluated(runners, bundle, columns=chosen, na=na, progress=progress, **told)
    _note(typed, runners[0], found)
    return found
