"""Options that several commands share: what the caller typed comes in, arguments of the library leave.

Options of methods are made from the table of settings (`shoal.method.settings`); a new setting needs no line here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.command import Flag
from shoal.errors import OptionError

if TYPE_CHECKING:
    from shoal.io import Table
    from shoal.method.settings import Setting

MissingTexts = Annotated[
    list[str] | None,
    typer.Option("--na", help="Text that stands for a missing value, such as '?'; repeat it."),
]

DATA = Flag("data", "The table: CSV, Parquet, Stata or SPSS.", "input", Path, argument=True, common=True)
SCHEMA = Flag(
    "schema", "Schema file; 'shoal schema DATA' drafts one.", "input", Path, common=True, placeholder="FILE"
)
CONFIG = Flag("config", "Take the recipe of a method.toml.", "promise", Path, common=True, placeholder="FILE")
METHOD = Flag(
    "method",
    "A preset, pairs-dp by default; 'shoal methods' lists them.",
    "promise",
    common=True,
    placeholder="NAME",
)
TARGET = Flag(
    "target",
    "Column to learn: one of classes, or a number with a threshold, 'a>30'.",
    "run",
    placeholder="COLUMN",
)
LEDGER = Flag(
    "ledger",
    "Charge what it costs to this ledger (path or postgresql:// address).",
    "output",
    placeholder="ADDRESS",
)
DATASET = Flag(
    "dataset",
    "With --ledger: whose budget it is; the same name for the same people.",
    "output",
    placeholder="NAME",
)
JSON = Flag("json", "Print JSON.", "output", bool, default=False)
WORKERS = Flag("workers", "Processes; default: all cores.", "run", int, placeholder="N")

# what has another name, or more to say, on the command line than in the library
_TYPED: Mapping[str, Mapping[str, Any]] = {
    "domains": {"name": "domain", "help": "Public range, column=lo:hi; repeat it.", "placeholder": "C=LO:HI"},
    "columns": {"help": "Columns to release, a,b,c; repeat it for odd names."},
    "na": {"help": "Text that stands for a missing value; repeat it.", "placeholder": "TEXT"},
    "tuned": {},
}
# what only a release has
VERDICT = ("most_epsilon", "override")
_TYPES = Flag(
    "types",
    "Type of a column, column=integer, decimal:2, date, text; repeat it.",
    "input",
    flags=("--type",),
    many=True,
    common=True,
    placeholder="C=TYPE",
)
_TAXONOMY = Flag(
    "taxonomy",
    "Taxonomy of a nominal column, column=FILE (OWL, RDF, CSV); repeat it.",
    "input",
    many=True,
    placeholder="C=FILE",
)


def about_the_table() -> tuple[Flag, ...]:
    """What a caller says about a table."""
    from shoal.method.settings import DECLARATIONS

    found = {name: _of_declaration(setting) for name, setting in DECLARATIONS.items()}
    # what a private choice cost and bought stands in a recipe only
    for name in ("tuned_epsilon", "tuned_choice", *VERDICT):
        del found[name]
    return (SCHEMA, found.pop("domains"), _TYPES, _TAXONOMY, *found.values())


def about_the_verdict() -> tuple[Flag, ...]:
    """What a caller says about whether a release may be published."""
    from shoal.method.settings import DECLARATIONS

    return tuple(_of_declaration(DECLARATIONS[name]) for name in VERDICT)


def of_methods(leave_out: Iterable[str] = ()) -> tuple[Flag, ...]:
    """The settings of all methods."""
    from shoal.method.settings import SETTINGS

    return tuple(_of_setting(setting) for name, setting in SETTINGS.items() if name not in leave_out)


def _of_declaration(setting: Setting) -> Flag:
    named = {
        "help": _sentence(setting.sentence()),
        "name": setting.name,
        "placeholder": setting.form.placeholder,
    }
    many = setting.name in _TYPED
    typed = setting.form.typed if setting.name != "domain_from_data" else float
    kept: dict[str, Any] = {"group": setting.group, "type": typed, "many": many, "common": setting.common}
    return Flag(**kept, **{**named, **_TYPED.get(setting.name, {})})


def _of_setting(setting: Setting) -> Flag:
    from shoal.method.presets import taken_by

    flag = f"--{setting.name.replace('_', '-')}"
    flags = (flag, "-k") if setting.name == "k" else (flag,)
    off = flag.replace("--", "--no-", 1)
    if setting.form.typed is bool:
        flags = (f"{flag}/{off}",)
    some = taken_by(setting.name)
    return Flag(
        setting.name,
        _sentence(setting.sentence(flag, off)) + (f" ({', '.join(some)})" if some else ""),
        setting.group,
        setting.form.typed,
        flags,
        common=setting.common,
        placeholder=setting.form.placeholder,
    )


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def recipe_arguments(typed: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `shoal.protect` from what was typed: the recipe first, then the rest."""
    from shoal.cli.declared import parse_domains, parse_types
    from shoal.columns.schema import Schema
    from shoal.method.forms import names_in
    from shoal.method.presets import DEFAULT_METHOD
    from shoal.method.recipe import load_recipe
    from shoal.method.settings import SETTINGS

    recipe = typed.get("config")
    arguments: dict[str, Any] = load_recipe(recipe) if recipe is not None else {}
    if typed["schema"] is not None:
        arguments["schema"] = Schema.load(typed["schema"])
    for name in ("method", "outside", "missing", "domain_from_data", *VERDICT):
        if typed.get(name) is not None:
            arguments[name] = typed[name]
    for name, setting in SETTINGS.items():
        value = typed.get(name)
        if value is not None:
            arguments[name] = setting.parse(value) if isinstance(value, str) else value
    arguments.setdefault("method", DEFAULT_METHOD)
    if typed.get("na"):
        arguments["na"] = typed["na"]
    if typed.get("types"):
        arguments["types"] = parse_types(typed["types"])
    if typed.get("tuned"):
        # on top of what the recipe says: a line typed later does not undo a look at the records
        before = arguments.get("tuned", [])
        names = names_in(before) if isinstance(before, str) else list(before)
        arguments["tuned"] = names + [name for text in typed["tuned"] for name in names_in(text)]
    if typed["domain"]:
        arguments["domains"] = parse_domains(typed["domain"])
    if typed.get("taxonomy"):
        arguments["domains"] = {**arguments.get("domains", {}), **_taxonomies(typed["taxonomy"])}
    return arguments


def read_declared(data: Path, arguments: Mapping[str, Any]) -> Table:
    """The table, its columns in the types that the schema and the command line declare."""
    from shoal.columns.declaration import declared_types
    from shoal.io import read

    types = declared_types(arguments.get("schema"), arguments.get("types"))
    return read(data, arguments.get("na", ()), types)


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
    from shoal.method.forms import names_in

    return [name for text in texts for name in ([text] if text in known else names_in(text))]
