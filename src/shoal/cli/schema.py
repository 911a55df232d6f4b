"""`shoal schema`: draft what is public about a table, or list what is still unsettled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli import options
from shoal.cli.command import Flag, flag
from shoal.cli.output import complain, messages
from shoal.errors import OptionError, OutputError

if TYPE_CHECKING:
    from shoal.columns.schema import Schema
    from shoal.io import Table


def flags() -> tuple[Flag, ...]:
    """The options of `shoal schema`."""
    shown = "Show what the steps before protection of --schema do; nothing is spent."
    looked = "List what is still unsettled, in --schema or in the draft."
    return (
        options.data(),
        options.TYPES,
        *options.ABOUT_FILES,
        replace(options.DATASET, help="With --preview: the name of the data set, for the journal."),
        Flag(
            "out",
            "Write the draft here instead of printing it.",
            "output",
            Path,
            common=True,
            placeholder="FILE",
        ),
        Flag("check", looked, "output", bool, default=False, common=True),
        Flag("preview", shown, "output", bool, default=False, common=True),
        Flag(
            "schema",
            "With --check and --preview: the schema to look through.",
            "input",
            Path,
            common=True,
            placeholder="FILE",
        ),
    )


def schema(typed: Mapping[str, Any]) -> None:
    """Draft a schema: kinds, types and roles guessed, domains left for you to fill in.

    Every entry says that its source are these records: no promise holds until you have checked it and named another.

    Value labels of a Stata or SPSS file are listed as the values of their column: check that they are public.

    With --preview, the steps before protection are run and shown, with facts about the records: for you alone. No
    budget is touched.

    With --check, nothing is drafted: what stands between a schema and a promise is listed, and the status is 1 if there
    is anything.

    Examples:

      shoal schema people.csv --out people.toml

      shoal schema people.csv --schema people.toml --check

      shoal schema people.csv --schema people.toml --preview
    """
    from shoal.cli.declared import parse_types
    from shoal.columns.declaration import read_declared
    from shoal.columns.schema import Schema, draft_text, unsettled

    told = options.file_arguments(typed)
    types = {**told.pop("types", {}), **parse_types(typed["types"] or ())}
    na = typed["na"] or ()
    if typed["schema"] is not None and not (typed["check"] or typed["preview"]):
        raise OptionError("schema-check-preview")
    if typed["preview"] and typed["schema"] is None:
        raise OptionError("preview-shows-steps-schema")
    known = None if typed["schema"] is None else Schema.load(typed["schema"])
    table = read_declared(typed["data"], known, na=na, types=types, file=told.get("file"))
    if typed["preview"] and known is not None:
        options.note_use(typed, "viewed", table, known.names, "schema", views=["values"])
        _preview(known, table)
        return
    made = Schema.draft(table, {**told.get("file", {}), **({"na": list(na)} if na else {})})
    if typed["check"]:
        open_questions = unsettled(known or made, table)
        for line in open_questions:
            print(line.rendered(flag))
        if open_questions:
            raise typer.Exit(1)
        messages().print("Everything is settled.", markup=False)
        return
    if typed["out"] is None:
        print(draft_text(made), end="")
    else:
        _save(made, typed["out"])
    for line in table.doubts.values():
        complain(line.rendered(flag))
    unit = made.unit
    if unit is not None:
        complain(
            f"column '{unit.name}' repeats, up to {unit.max_rows} rows each: it is drafted as the unit, so that a "
            "promise is about persons and not about rows; declare max_rows as it is known from elsewhere."
        )


def _preview(known: Schema, table: Table) -> None:
    """Each step, and the columns as they are after all of them."""
    from shoal.columns.steps import preview

    found = preview(known, table)
    if not found:
        messages().print("The schema declares no steps: the table is protected as it is read.", markup=False)
    for number, line in enumerate(found, start=1):
        print(f"{number}. {line}")
    if found:
        complain("what the steps did is a fact about the records: do not publish it.")


def _save(made: Schema, out: Path) -> None:
    if out.exists():
        raise OutputError("schema-exists-already", out=out)
    try:
        made.save(out)
    except OSError as error:
        raise OutputError("schema-cannot-write", out=out, reason=error.strerror) from None
    messages().print(
        f"Draft written to {out}. Fill in lo and hi of every numeric column, check kinds, types and roles, and say in "
        "source where you know them from.",
        markup=False,
    )
