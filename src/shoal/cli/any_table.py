"""What commands that measure a table from any tool have in common: flags of a survey, and the table they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli import options
from shoal.cli.command import Flag
from shoal.cli.output import messages

if TYPE_CHECKING:
    from shoal.columns.schema import Schema
    from shoal.io import Table

SURVEY = (
    Flag(
        "weight",
        "Column of sampling weights; by default that of the role weight.",
        "input",
        common=True,
        placeholder="COLUMN",
    ),
    Flag(
        "household",
        "Column that says who lives together.",
        "input",
        common=True,
        placeholder="COLUMN",
    ),
    Flag(
        "unit",
        "Column that says whose row it is, to count persons; by default that of the role unit.",
        "input",
        common=True,
        placeholder="COLUMN",
    ),
)


def columns_flag(name: str, words: str) -> Flag:
    """A flag that names columns, with commas or several times."""
    return Flag(name, words, "input", many=True, common=True, placeholder="A,B,C")


def table_and_columns(
    typed: Mapping[str, Any], flags: Sequence[str]
) -> tuple[Table, Schema | None, dict[str, list[str] | None]]:
    """The table after the steps of its schema, the schema, and the columns that some flags name."""
    from shoal.columns.declaration import read_declared
    from shoal.columns.schema import Schema

    declared = None if typed["schema"] is None else Schema.load(typed["schema"])
    data = read_declared(typed["table"], declared, na=typed["na"] or (), **options.file_arguments(typed))
    named = {
        name: None if typed[name] is None else options.column_names(typed[name], data.names) for name in flags
    }
    return data, declared, named


def say_if_synthetic(table: Path) -> None:
    """Say what classical risk means where the rows of a release were drawn and belong to nobody."""
    from shoal.errors import ShoalError
    from shoal.mechanisms.registry import method_class, names
    from shoal.release.bundle import Bundle

    folder = next((place for place in (table, table.parent) if (place / "statement.json").is_file()), None)
    try:
        method = None if folder is None else Bundle.load(folder).statement.method
    except ShoalError:
        return
    if method in names() and method_class(str(method)).synthetic:
        messages().print(
            "note: the rows of this release are synthetic and belong to nobody: how many are alike is not the "
            "risk that a person is found; the statement says what is guaranteed.",
            markup=False,
        )
