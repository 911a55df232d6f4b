"""`shoal risk`: the re-identification risk of a table; that of single records goes to a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.cli import options
from shoal.cli.any_table import SURVEY, columns_flag, say_if_synthetic, table_and_columns
from shoal.cli.command import Flag
from shoal.cli.output import print_json, progress_bar, results

# what the library calls as the command line does
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


def flags() -> tuple[Flag, ...]:
    """The options of `shoal risk`."""
    known = "Columns an intruder may know, a,b,c; by default the quasi-identifiers."
    hidden = "Columns whose l-diversity is measured, a,b,c."
    gaps = "A missing key fits any value (wildcard) or is a value of its own (category)."
    part = "What a record that fits by a wildcard counts, 0 to 1."
    forms = "Of the individual risk: approximate (closed forms) or exact."
    aim = "The global risk that the threshold is for."
    share = "Share of the population that is in the table, for DIS scores."
    kept = "Keys whose joint table the log-linear model keeps, a,b; repeat it."
    per_record = "New file for the risk of each record: internal, not for publication."
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
            "Search special uniques (SUDA2); by default with few keys.",
            "method",
            bool,
            ("--special/--no-special",),
        ),
        Flag("fraction", share, "method", float, default=0.01, placeholder="SHARE"),
        Flag(
            "points", "Of SUDA2: original, (m-s)!, or ihsn.", "method", default="original", placeholder="WORD"
        ),
        Flag("interactions", kept, "method", many=True, placeholder="A,B"),
        Flag("c", "Constant of recursive l-diversity.", "method", float, default=2.0, placeholder="C"),
        Flag("internal", per_record, "output", Path, common=True, placeholder="FILE"),
        replace(options.JSON, common=True),
    )


def risk(typed: Mapping[str, Any]) -> None:
    """Measure how likely the records of a table are found again by somebody who knows some of their columns.

    Prints how often combinations of keys occur in the table and, by weights, in the population, individual and global
    risk, that of households, special uniques (SUDA2) and expected uniques of the population. These are facts about the
    records: keep them inside. What is printed is about the whole table; single records are written with --internal.

    Examples:

      shoal risk survey.csv --keys age,sex,region --weight w --household hid --internal records.csv

      shoal risk release/data.csv --keys age,sex,region --missing category --sensitive illness
    """
    from shoal.evaluation.disclosure import risk as measure

    with progress_bar() as progress:
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
        results().print(f"The risk of each record: {typed['internal']}, internal.", markup=False)
    results().print("These are facts about the records: keep them inside.", markup=False)
