"""`shoal check`: the k, l and t that a table reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli import options
from shoal.cli.any_table import SURVEY, columns_flag, say_if_synthetic
from shoal.cli.command import Flag
from shoal.cli.output import complain, print_json, progress_bar, results

if TYPE_CHECKING:
    from shoal.columns.schema import Schema
    from shoal.engines.runner import Runner
    from shoal.evaluation.measured import Check
    from shoal.io import Table
    from shoal.progress import Progress


def flags() -> tuple[Flag, ...]:
    """The options of `shoal check`."""
    known = "Columns an intruder may know, a,b,c; by default by role."
    hidden = "Confidential columns, a,b,c; by default by role."
    roles = "Schema file: roles, and the order of ordinal columns."
    apart = "Ask for an earth mover's distance to the table of at most this."
    ratio = "Ask for ratios of shares, group to table, of at most this."
    return (
        options.data("table"),
        columns_flag("quasi", known),
        columns_flag("confidential", hidden),
        replace(options.SCHEMA, help=roles),
        *options.ABOUT_FILES,
        Flag(
            "k",
            "Ask for at least k rows, or persons, in a group.",
            "promise",
            int,
            ("--k", "-k"),
            common=True,
        ),
        Flag(
            "l",
            "Ask for l different confidential values in a group.",
            "promise",
            int,
            ("--l", "-l"),
            common=True,
        ),
        Flag("t_emd", apart, "promise", float, common=True, placeholder="T"),
        Flag("t_ratio", ratio, "promise", float, common=True, placeholder="T"),
        *SURVEY,
        replace(options.NOTED[1], group="input"),
        replace(options.JSON, common=True),
        *options.ENGINE,
    )


def check(typed: Mapping[str, Any]) -> None:
    """Measure the k-anonymity, l-diversity and t-closeness that a table reaches, and its disclosure risk.

    The table can come from any tool; 'shoal risk' has more about the disclosure risk. Ends with 1 when a level that
    was asked for is not reached, 0 otherwise. A folder of Parquet files, or a file too large for memory, is worked
    through in parts: the same levels, and a line about what cannot be had in this way.

    Example:

      shoal check release/data.csv --quasi age,sex,town --confidential illness --k 5 --l 2
    """
    from shoal.columns.schema import Schema
    from shoal.release.measure import check_runner

    declared = None if typed["schema"] is None else Schema.load(typed["schema"])
    if declared is not None and _is_released(typed["table"]):
        # the steps before protection were taken
        declared = replace(declared.stepped, before=None)
    survey = (typed[name] for name in ("weight", "household", "unit"))
    runner = check_runner(options.where(typed), _data_in(typed["table"]), declared, *survey)
    with progress_bar() as progress:
        if runner is None:
            found = _in_memory(typed, declared, progress)
        else:
            found = _in_parts(typed, declared, runner, progress)
    say_if_synthetic(typed["table"])
    if typed["json"]:
        print_json(found.to_dict())
    else:
        results().print(found)
        for requirement in found.requirements:
            results().print(requirement.words, markup=False)
        for remark in found.remarks:
            results().print(str(remark), markup=False)
    if not found.met:
        missed = "; ".join(r.words for r in found.requirements if not r.met)
        complain(f"a level asked for is not reached: {missed}.")
        raise typer.Exit(1)


def _is_released(table: Path) -> bool:
    """Whether a table is that of a bundle: its folder, or a file in it."""
    return any((folder / "statement.json").is_file() for folder in (table, table.parent))


def _data_in(table: Path) -> Path:
    """The table that is named, or the data of a release whose folder is."""
    if not (table / "statement.json").is_file():
        return table
    return next((path for path in (table / "data", *sorted(table.glob("data.*"))) if path.exists()), table)


def _in_memory(typed: Mapping[str, Any], declared: Schema | None, progress: Progress) -> Check:
    from shoal.columns.declaration import read_declared
    from shoal.evaluation.checks import check as measure

    progress("reading the table", 0, 1)
    table = _data_in(typed["table"])
    data = read_declared(table, declared, na=typed["na"] or (), **options.file_arguments(typed))
    levels = {name: typed[name] for name in ("k", "l", "t_emd", "t_ratio", "weight", "household", "unit")}
    named = _named(typed, data.names)
    found = measure(data, *named, schema=declared, progress=progress, **levels)
    _note(typed, data)
    return found


def _note(typed: Mapping[str, Any], records: Table | Runner) -> None:
    """A release that is checked shows nothing about records."""
    from shoal.release.uses import shows_records

    if shows_records(typed["table"], typed["dataset"]):
        options.note_use(typed, "viewed", records, (), "check")


def _in_parts(typed: Mapping[str, Any], declared: Schema | None, runner: Runner, progress: Progress) -> Check:
    from shoal.release.measure import checked

    levels = {name: typed[name] for name in ("k", "l", "t_emd", "t_ratio")}
    told = {"na": typed["na"] or (), **options.file_arguments(typed)}
    named = _named(typed, runner.schema.names)
    found = checked(runner, *named, schema=declared, levels=levels, progress=progress, **told)
    _note(typed, runner)
    return found


def _named(typed: Mapping[str, Any], known: Sequence[str]) -> list[list[str] | None]:
    """The columns that are named, quasi-identifiers first."""
    return [
        None if typed[name] is None else options.column_names(typed[name], known)
        for name in ("quasi", "confidential")
    ]
