"""`shoal hold-out`: a table comes in, a random part of it is kept aside as a control group for attacks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.output import results
from shoal.errors import OptionError, OutputError


def hold_out(
    data: Annotated[Path, typer.Argument(help="The table, before it is protected.", show_default=False)],
    rest: Annotated[Path, typer.Option(help="New file for the records to protect.", show_default=False)],
    control: Annotated[Path, typer.Option(help="New file for the control group.", show_default=False)],
    share: Annotated[float, typer.Option(help="Share of the records that is held out.")] = 0.2,
    unit: Annotated[
        str | None, typer.Option(help="Column that names a person: all rows of one stay together.")
    ] = None,
) -> None:
    """Hold out a control group, at random, before a table is protected.

    Protect the rest, then attack with --control: what an attacker finds out about people who were not in the table is
    true of people in general, and only what goes beyond it is a risk of taking part.

    Example: shoal hold-out people.csv --rest protect-these.csv --control held-out.csv
    """
    from shoal.evaluation.learning import divide
    from shoal.io import read, write
    from shoal.io.common import private_file

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
