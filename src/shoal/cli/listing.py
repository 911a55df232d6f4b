"""`shoal methods` and `shoal schema`: what there is to choose from, and a draft to start with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.declared import parse_types
from shoal.cli.output import complain, messages, print_json, print_table


def methods(
    name: Annotated[str | None, typer.Argument(help="Show one method with its options.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the methods: name, paper, claim, parameters.

    Example: shoal methods ranking-dp
    """
    from shoal.mechanisms.promises import methods as known
    from shoal.method.presets import preset

    if name is not None:
        preset(name)
    chosen = [info for info in known() if name in (None, info.name)]
    if json:
        print_json([info.to_dict() for info in chosen])
        return
    print_table(
        ("name", "what it does", "claim", "paper"),
        [(info.name, info.about, info.claim, info.paper) for info in chosen],
    )
    if name is None:
        print("\nOptions of a method: shoal methods NAME. What a claim means: docs/claims.md.")
        return
    print()
    print_table(
        ("option", "meaning"),
        [(f"--{option.replace('_', '-')}", meaning) for option, meaning in chosen[0].parameters.items()],
    )


def schema(
    data: options.Data,
    out: Annotated[Path | None, typer.Option(help="Write the draft here instead of printing it.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="List what is still unsettled, in --schema or in the draft.")
    ] = False,
    schema_file: Annotated[
        Path | None, typer.Option("--schema", help="With --check: the schema to look through.")
    ] = None,
    types: options.Types = None,
    na: options.MissingTexts = None,
    encoding: options.Encoding = None,
    separator: options.Separator = None,
    decimal: options.DecimalSign = None,
    thousands: options.Thousands = None,
    quote: options.Quote = None,
    sheet: options.Sheet = None,
    date_format: options.DateFormats = None,
) -> None:
    """Draft a schema: kinds, types and roles guessed, domains left for you to fill in.

    Every entry says that its source are these records: no promise holds until you have checked it and named another.

    Value labels of a Stata or SPSS file are listed as the values of their column: check that they are public.

    With --check, nothing is drafted: what stands between a schema and a promise is listed, and the status is 1 if there
    is anything.

    Examples:

      shoal schema people.csv --out people.toml

      shoal schema people.csv --schema people.toml --check
    """
    typed = locals()
    from shoal.columns.declaration import read_declared
    from shoal.columns.schema import Schema, draft_text
    from shoal.columns.unsettled import unsettled
    from shoal.errors import OptionError, OutputError

    told = options.file_arguments(typed)
    declared = {**told.pop("types", {}), **parse_types(types or ())}
    if schema_file is not None and not check:
        raise OptionError("--schema is for --check: a draft is made from the data alone.")
    known = None if schema_file is None else Schema.load(schema_file)
    table = read_declared(data, known, na=na or (), types=declared, file=told.get("file"))
    if check:
        open_questions = unsettled(known or Schema.draft(table, told.get("file")), table)
        for line in open_questions:
            print(_with_flags(line))
        if open_questions:
            raise typer.Exit(1)
        messages().print("Everything is settled.", markup=False)
        return
    made = Schema.draft(table, {**told.get("file", {}), **({"na": list(na)} if na else {})})
    if out is None:
        print(draft_text(made), end="")
    else:
        if out.exists():
            raise OutputError(f"'{out}' exists already: name a new file, nothing is overwritten.")
        try:
            made.save(out)
        except OSError as error:
            raise OutputError(f"cannot write '{out}': {error.strerror}.") from None
        messages().print(
            f"Draft written to {out}. Fill in lo and hi of every numeric column, check kinds, types and roles, and "
            "say in "
            "source where you know them from.",
            markup=False,
        )
    for line in table.doubts.values():
        complain(_with_flags(line))
    unit = made.unit
    if unit is not None:
        complain(
            f"column '{unit.name}' repeats, up to {unit.max_rows} rows each: it is drafted as the unit, so that a "
            "promise is about persons and not about rows; declare max_rows as it is known from elsewhere."
        )


def _with_flags(line: str) -> str:
    from shoal.cli.flags import in_flags
    from shoal.errors import InputError

    return in_flags(InputError(line))
