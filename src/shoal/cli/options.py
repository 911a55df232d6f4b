"""Options that several commands share: what the caller typed comes in, arguments of the library leave."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.errors import OptionError
from shoal.io.formats import titles

if TYPE_CHECKING:
    from shoal.io import Table

Data = Annotated[
    Path,
    typer.Argument(help=f"The table: {titles()}.", metavar="DATA", show_default=False),
]
# how a file is written
Encoding = Annotated[str | None, typer.Option(help="Encoding of a text file: latin-1, windows-1252, utf-16.")]
Separator = Annotated[
    str | None, typer.Option(help="Sign between the fields of a text file; 'tab' for a tab.")
]
DecimalSign = Annotated[str | None, typer.Option("--decimal", help="Decimal sign of a text file: . or ,")]
Thousands = Annotated[str | None, typer.Option(help="Sign between thousands: . or , or ' ' or none.")]
Quote = Annotated[str | None, typer.Option(help="Sign around fields of a text file, or none.")]
Sheet = Annotated[str | None, typer.Option(help="Sheet of an Excel workbook.")]
DateFormats = Annotated[
    list[str] | None,
    typer.Option("--date-format", help="How dates are written, DD.MM.YYYY or column=DD.MM.YYYY; repeat it."),
]
SpreadsheetSafe = Annotated[
    bool | None,
    typer.Option(
        "--spreadsheet-safe/--no-spreadsheet-safe",
        help="Write texts that a spreadsheet would run, such as =1+1, with ' in front.",
    ),
]
SchemaFile = Annotated[Path | None, typer.Option(help="Schema file; 'shoal schema DATA' drafts one.")]
Config = Annotated[Path | None, typer.Option(help="Take the recipe of a method.toml.")]
MethodName = Annotated[str | None, typer.Option(help="A preset; 'shoal methods' lists them.")]
Epsilon = Annotated[str | None, typer.Option(help="Privacy budget, as a decimal number.")]
LeastSize = Annotated[int | None, typer.Option("--k", "-k", help="Minimum cluster size.")]
Domain = Annotated[list[str] | None, typer.Option(help="Public range, column=lo:hi; repeat it.")]
TaxonomyFile = Annotated[
    list[str] | None,
    typer.Option(help="Taxonomy of a nominal column, column=FILE (OWL, RDF, CSV); repeat it."),
]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", help="Type of a file's column, column=integer, decimal:2, date, text; repeat it."),
]
Columns = Annotated[
    list[str] | None, typer.Option(help="Columns to release, a,b,c; repeat it for names with commas.")
]
Split = Annotated[str | None, typer.Option(help="equal, proportional, optimal, or a=2,b=1 (or JSON).")]
Groups = Annotated[str | None, typer.Option(help="Attribute groups, as 'a,b;c' (or JSON).")]
PartitionName = Annotated[
    str | None, typer.Option(help="mdav or vmdav; xm-* also ranking, optimal, insensitive.")
]
Gamma = Annotated[str | None, typer.Option(help="Gain factor of --partition vmdav.")]
Remainder = Annotated[str | None, typer.Option(help="middle, last or first.")]
Normalise = Annotated[str | None, typer.Option(help="domain, none or zscore.")]
Link = Annotated[
    bool | None, typer.Option("--link/--no-link", help="--no-link shuffles every column by itself.")
]
Floor = Annotated[str | None, typer.Option(help="idp-*: least noise scale of a mean, a number or a=2,b=1.")]
Noise = Annotated[str | None, typer.Option(help="laplace, staircase or box.")]
Optimise = Annotated[str | None, typer.Option(help="With staircase or box: variance or interval.")]
Generalise = Annotated[
    bool | None,
    typer.Option("--generalise/--no-generalise", help="Nominal columns: also release groups of values."),
]
Clip = Annotated[bool | None, typer.Option("--clip/--no-clip", help="--no-clip is for experiments.")]
Composition = Annotated[str | None, typer.Option(help="insensitive-dp: strict, or parallel (no guarantee).")]
Order = Annotated[str | None, typer.Option(help="insensitive-dp: corners or single.")]
Corners = Annotated[str | None, typer.Option(help="insensitive-dp: alternate or hamming.")]
Weights = Annotated[str | None, typer.Option(help="xm-*: shares of the kinds of statistics, 0.5,0.3,0.2.")]
Coskewness = Annotated[str | None, typer.Option(help="xm-*: marginal or full.")]
Match = Annotated[str | None, typer.Option(help="xm-*, for --evaluate: none, rank or assignment.")]
Cuts = Annotated[int | None, typer.Option(help="tree-dp: levels of cut points per attribute.")]
Depth = Annotated[int | None, typer.Option(help="tree-dp: levels of the tree.")]
Shares = Annotated[str | None, typer.Option(help="tree-dp: cuts=4,intervals=2,leaves=3,means=1.")]
Rebuild = Annotated[str | None, typer.Option(help="tree-dp: uniform, centroid or normal.")]
Neighbours = Annotated[
    str | None, typer.Option(help="tree-dp: replace-one or add-remove (n is then private).")
]
Rows = Annotated[int | None, typer.Option(help="tree-dp with add-remove: declared number of rows.")]
Sizes = Annotated[str | None, typer.Option(help="swap-*: group size by column, income=50,age=20.")]
Diversity = Annotated[
    int | None, typer.Option("--l", help="k-anonymity family: different values in a group.")
]
EarthMover = Annotated[
    str | None, typer.Option("--t-emd", help="k-anonymity, anatomy: largest earth mover's distance.")
]
Factor = Annotated[
    int | None, typer.Option("--t", help="t-closeness, anatomy: largest factor, a whole number.")
]
Intruder = Annotated[str | None, typer.Option(help="swap-mdav: informed or uninformed.")]
GroupBy = Annotated[str | None, typer.Option(help="anatomy: quasi or confidential.")]
Outside = Annotated[str | None, typer.Option(help="Values outside the domain: error or clip.")]
Missing = Annotated[str | None, typer.Option(help="Missing values: error, drop, category or separate.")]
MissingTexts = Annotated[
    list[str] | None,
    typer.Option("--na", help="Text that stands for a missing value, such as '?'; repeat it."),
]
DomainFromData = Annotated[
    float | None, typer.Option(help="Experiments: domains 0 to this multiple of the maximum.")
]
LedgerAddress = Annotated[
    str | None, typer.Option(help="Charge what it costs to this ledger (path or postgresql:// address).")
]
DatasetName = Annotated[
    str | None, typer.Option(help="With --ledger: whose budget it is; the same name for the same people.")
]
TunedOnRecords = Annotated[
    list[str] | None,
    typer.Option(
        "--tuned",
        help="What was chosen by looking at these records: k,split,..., columns, domains or domain:NAME; repeat it.",
    ),
]

_DECLARATIONS = ("method", "outside", "missing", "domain_from_data")


_FILE = ("encoding", "separator", "decimal", "thousands", "quote", "sheet", "spreadsheet_safe")


def file_arguments(typed: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed about the file itself: `file` and date formats as `types`, where there are any."""
    told = {name: typed[name] for name in _FILE if typed.get(name) is not None}
    types: dict[str, str] = {}
    for text in typed.get("date_format") or ():
        name, equals, form = text.rpartition("=")
        if not equals:
            told["date_format"] = form
        else:
            types[name] = f"{'timestamp' if 'HH' in form else 'date'}:{form}"
    return ({"file": told} if told else {}) | ({"types": types} if types else {})


def recipe_arguments(typed: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `shoal.protect` from a command's parameters: the recipe first, then what was typed."""
    from shoal.columns.schema import Schema, parse_domains
    from shoal.io import parse_types
    from shoal.method.method import OPTIONS
    from shoal.method.recipe import load_recipe

    arguments: dict[str, Any] = load_recipe(typed["config"]) if typed["config"] is not None else {}
    if typed["schema"] is not None:
        arguments["schema"] = Schema.load(typed["schema"])
    for name in (*_DECLARATIONS, *OPTIONS):
        value = typed.get(name)
        if value is not None:
            arguments[name] = _READERS[name](value) if name in _READERS else value
    if "method" not in arguments:
        raise OptionError("--method is missing: 'shoal methods' lists what there is.")
    if typed.get("na"):
        arguments["na"] = typed["na"]
    about_file = file_arguments(typed)
    types = {**about_file.pop("types", {}), **parse_types(typed.get("types") or ())}
    arguments |= about_file
    if types:
        arguments["types"] = types
    if typed.get("tuned"):
        # on top of what the recipe says: a line typed later does not undo a look at the records
        before = arguments.get("tuned", [])
        names = _names(before) if isinstance(before, str) else list(before)
        arguments["tuned"] = names + [name for text in typed["tuned"] for name in _names(text)]
    if typed["domain"]:
        arguments["domains"] = parse_domains(typed["domain"])
    if typed.get("taxonomy"):
        arguments["domains"] = {**arguments.get("domains", {}), **_taxonomies(typed["taxonomy"])}
    return arguments


def read_tables(paths: Sequence[Path | None], typed: Mapping[str, Any]) -> list[Any]:
    """Tables that are compared, all of them written alike; columns that can be read in two ways keep their doubts."""
    from shoal.columns.declaration import read_declared as read

    declared = {**file_arguments(typed), "na": typed.get("na") or ()}
    return [None if path is None else read(path, **declared) for path in paths]


def check_compared(tables: Sequence[Any], columns: Sequence[str] | None) -> None:
    """Refuse columns that are compared and can be read in two ways."""
    from shoal.io import check_doubts

    there = [table for table in tables if table is not None]
    shared = [name for name in there[0].names if all(name in table.names for table in there)]
    for table in there:
        check_doubts(table, [name for name in columns or shared if name in table.names])


def read_declared(data: Path, arguments: Mapping[str, Any]) -> Table:
    """The table, its columns in the types that the schema and the command line declare."""
    from shoal.columns.declaration import read_declared as read

    declared = {name: arguments[name] for name in ("na", "types", "file") if name in arguments}
    return read(data, arguments.get("schema"), **declared)


def _taxonomies(texts: Sequence[str]) -> dict[str, Any]:
    """Taxonomies from command-line text `column=file`."""
    from shoal.taxonomy import Taxonomy

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, path = text.rpartition("=")
        if not (equals and name and path):
            raise OptionError(f"--taxonomy '{text}' is not of the form column=file.")
        found[name] = Taxonomy.load(path)
    return found


def column_names(texts: Sequence[str], known: Sequence[str]) -> list[str]:
    """Each text is one column name, or several with commas between."""
    return [name for text in texts for name in ([text] if text in known else _names(text))]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _grouped(text: str) -> Any:
    if text.lstrip().startswith("["):
        return _json("--groups", text)
    return [_names(part) for part in text.split(";")]


def _weights(text: str) -> Any:
    if text.lstrip().startswith("{"):
        return _json("weights", text)
    if "=" not in text:
        return text
    pairs = [part.rpartition("=") for part in text.split(",")]
    return {name.strip(): weight for name, _, weight in pairs}


def _sizes(text: str) -> Any:
    found = _weights(text)
    if not isinstance(found, dict):
        return found
    return {name: int(size) if str(size).strip().isdigit() else size for name, size in found.items()}


def _json(option: str, text: str) -> Any:
    """Column names that hold separators can be given as JSON."""
    try:
        return json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError as error:
        raise OptionError(f"{option}: starts like JSON but is not: {error}.") from None


_READERS: Mapping[str, Callable[[str], Any]] = {
    "split": _weights,
    "floor": _weights,
    "shares": _weights,
    "sizes": _sizes,
    "groups": _grouped,
    "weights": _names,
}
