"""`shoal methods` and `shoal schema`: what there is to choose from, and a draft to start with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    data: Annotated[
        Path,
        typer.Argument(help="The table: CSV, Parquet, Stata or SPSS.", metavar="DATA", show_default=False),
    ],
    out: Annotated[Path | None, typer.Option(help="Write the draft here instead of printing it.")] = None,
) -> None:
    """Draft a schema: kinds, types and roles guessed, domains left for you to fill in.

    Every entry says that its source are these records: no promise holds until you have checked it and named another.

    Value labels of a Stata or SPSS file are listed as the values of their column: check that they are public.

    Example: shoal schema people.csv --out people.toml
    """
    from shoal.columns.schema import Schema, draft_text
    from shoal.errors import OutputError

    made = Schema.draft(data)
    if out is None:
        print(draft_text(made), end="")
        return
    if out.exists():
        raise OutputError(f"'{out}' exists already: name a new file, nothing is overwritten.")
    try:
        made.save(out)
    except OSError as error:
        raise OutputError(f"cannot write '{out}': {error.strerror}.") from None
    messages().print(
        f"Draft written to {out}. Fill in lo and hi of every numeric column, check kinds, types and roles, and say in "
        "source where you know them from.",
        markup=False,
    )
    unit = made.unit
    if unit is not None:
        complain(
            f"column '{unit.name}' repeats, up to {unit.max_rows} rows each: it is drafted as the unit, so that a "
            "promise is about persons and not about rows; declare max_rows as it is known from elsewhere."
        )
