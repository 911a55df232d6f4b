"""Options shared by several commands, parsed into arguments of the library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli.command import METHOD as NAMED
from shoal.cli.command import Flag, MethodFlags
from shoal.errors import OptionError, ShoalError
from shoal.numbers import exact
from shoal.text import Message, capital

if TYPE_CHECKING:
    from shoal.engines import Runner
    from shoal.io import Table
    from shoal.journal import Kind
    from shoal.mechanisms import Parameter
    from shoal.release import Where


# format of a text file, for all commands that read one
_ABOUT_FILES: Mapping[str, tuple[str, str]] = {
    "encoding": ("Encoding of a text file: latin-1, windows-1252, utf-16.", "NAME"),
    "separator": ("Field separator of a text file; 'tab' for a tab.", "SIGN"),
    "decimal": ("Decimal sign of a text file: . or ,", "SIGN"),
    "thousands": ("Thousands separator: . or , or ' ' or none.", "SIGN"),
    "quote": ("Quote character of a text file, or none.", "SIGN"),
    "sheet": ("Sheet of an Excel workbook.", "NAME"),
    "header_row": ("Row that holds the column names, counted from 1.", "N"),
    "range": ("Cells of a sheet that contain the table and its column names, such as B4:F200.", "CELLS"),
}
_DATE_FORMAT = "Date format, DD.MM.YYYY or column=DD.MM.YYYY; repeatable."
_FILE_FLAGS = (
    *(Flag(name, words, "input", placeholder=shown) for name, (words, shown) in _ABOUT_FILES.items()),
    Flag("date_format", _DATE_FORMAT, "input", many=True, placeholder="FORMAT"),
)
NA = Flag(
    "na",
    "Text that marks a missing value, such as '?'; repeatable.",
    "odd values",
    many=True,
    placeholder="TEXT",
)
# for commands that only read tables
ABOUT_FILES = (*_FILE_FLAGS, NA)
SPREADSHEET_SAFE = Flag(
    "spreadsheet_safe",
    "Write text that a spreadsheet would execute, such as =1+1, with ' in front.",
    "output",
    bool,
    default=False,
)
SCHEMA = Flag(
    "schema", "Schema file; 'shoal schema DATA' drafts one.", "input", Path, common=True, placeholder="FILE"
)
CONFIG = Flag(
    "config", "Use the recipe in a method.toml file.", "guarantee", Path, common=True, placeholder="FILE"
)
METHOD = Flag(
    "method",
    "Method preset; default: pairs-dp. 'shoal methods' lists all.",
    "guarantee",
    common=True,
    placeholder="NAME",
)
TARGET = Flag(
    "target",
    "Column to predict from the others. A numeric column needs a threshold, 'a>30'.",
    "run",
    placeholder="COLUMN",
)
LEDGER = Flag(
    "ledger",
    "Charge the privacy budget to this ledger (path or postgresql:// address).",
    "output",
    placeholder="ADDRESS",
)
DATASET = Flag(
    "dataset",
    "Name of the data set for journal and ledger; use one name for the same people.",
    "output",
    flags=("--dataset", "--data-set"),
    placeholder="NAME",
)
# answers to questions of the journal of use
SAME_RECORDS = (
    Flag(
        "same_records",
        "Declare that this other data set has the same records; repeatable.",
        "output",
        many=True,
        placeholder="NAME",
    ),
    Flag(
        "not_same_records",
        "Declare that this other data set has different records; repeatable.",
        "output",
        many=True,
        placeholder="NAME",
    ),
)
# measuring costs no budget, but settings chosen after it may be data-dependent
NOTED = (
    replace(LEDGER, help="Also record the use in the journal next to this ledger."),
    replace(DATASET, help="Name of the measured data set, for the journal."),
)
JSON = Flag("json", "Print JSON.", "output", bool, default=False)
WORKERS = Flag("workers", "Number of processes; default: all cores.", "run", int, placeholder="N")

# where tables are processed, for commands that measure them
_ENGINE = "Engine: memory, local or spark; default: by table size."
_CONF = "Engine spark: session setting, such as spark.executor.memory=4g; repeatable."
ENGINE = (
    Flag("engine", _ENGINE, "run"),
    Flag("master", "Engine spark: address of the cluster.", "run", placeholder="URL"),
    Flag("conf", _CONF, "run", many=True, placeholder="KEY=VALUE"),
)

# options with another name or more help on the command line than in the library
_TYPED: Mapping[str, Mapping[str, Any]] = {
    "domains": {
        "flags": ("--domain",),
        "help": "Public range, column=lo:hi; repeatable.",
        "placeholder": "C=LO:HI",
    },
    "columns": {"help": "Columns to release, a,b,c; repeatable for odd names."},
    "na": {"help": "Text that marks a missing value; repeatable.", "placeholder": "TEXT"},
    "tuned": {},
}
# options of releases only
VERDICT = ("most_epsilon", "override", "bound")
TYPES = Flag(
    "types",
    "Column type: C=integer, decimal:2, date, text; repeatable.",
    "input",
    flags=("--type",),
    many=True,
    common=True,
    placeholder="C=TYPE",
)
_TAXONOMY = Flag(
    "taxonomy",
    "Taxonomy of a nominal column, column=FILE (OWL, RDF, CSV); repeatable.",
    "input",
    many=True,
    placeholder="C=FILE",
)


def data(name: str = "data") -> Flag:
    """The argument for the table that a command reads."""
    return Flag(
        name,
        "Table, in any format that Shoal reads.",
        "input",
        Path,
        argument=True,
        common=True,
    )


def about_the_table() -> tuple[Flag, ...]:
    """Options that declare facts about a table."""
    from shoal.mechanisms import DECLARATIONS

    found = {name: _of_declaration(known) for name, known in DECLARATIONS.items()}
    # the cost and result of a private choice are given in a recipe only
    for name in ("tuned_epsilon", "tuned_choice", *VERDICT):
        del found[name]
    return (SCHEMA, found.pop("domains"), TYPES, _TAXONOMY, *_FILE_FLAGS, *found.values())


def about_the_verdict() -> tuple[Flag, ...]:
    """Options that affect whether a release may be published."""
    from shoal.mechanisms import DECLARATIONS

    return tuple(_of_declaration(DECLARATIONS[name]) for name in VERDICT)


def of_methods(leave_out: Iterable[str] = ()) -> tuple[Flag, ...]:
    """The parameters of all methods."""
    from shoal.mechanisms import parameters, taken_by

    found = []
    for name, known in parameters().items():
        if name not in leave_out:
            some = taken_by(name)
            flag = _of_parameter(known)
            found.append(replace(flag, help=f"{flag.help} ({', '.join(some)})") if some else flag)
    return tuple(found)


def as_named_method_has_them(
    flags: Sequence[Flag], words: Sequence[str], notes: MutableMapping[str, Any]
) -> tuple[Flag, ...]:
    """The flags of a command, with method parameters in the form of the method named in the command.

    The name is recorded for the help text.
    """
    from shoal.mechanisms import DEFAULT_METHOD, load_recipe, method_class

    name = _word_after("--method", words)
    if name is not None:
        notes[NAMED] = name
    recipe = _word_after("--config", words)
    try:
        if name is None:
            name = DEFAULT_METHOD if recipe is None else load_recipe(recipe).get("method", DEFAULT_METHOD)
        own = method_class(name).parameters()
    except ShoalError:
        # errors are reported when the command reads the option
        return tuple(flags)
    return tuple(
        _of_parameter(own[flag.name]) if flag.of_methods and flag.name in own else flag for flag in flags
    )


def _word_after(flag: str, words: Sequence[str]) -> str | None:
    """The last value given for a flag; None if it was not given."""
    found = None
    for place, word in enumerate(words):
        if word.startswith(f"{flag}="):
            found = word.partition("=")[2]
        elif word == flag and place + 1 < len(words):
            found = words[place + 1]
    return found


def of_method(flags: Sequence[Flag], name: str) -> tuple[Flag, ...]:
    """The flags that matter with a method: its parameters with its defaults, and the common ones of the rest.

    Raises:
        OptionError: there is no such method.
    """
    from shoal.mechanisms import method_class

    own = method_class(name).parameters()
    return tuple(
        _of_parameter(own[flag.name], usual=True) if flag.of_methods else flag
        for flag in flags
        if flag.name in own or (flag.common and not flag.of_methods)
    )


def about_method(name: str) -> Message:
    """The purpose and claim of a method.

    Raises:
        OptionError: there is no such method.
    """
    from shoal.mechanisms import claim_words, method_class

    cls = method_class(name)
    return Message.of("about-method", name=name, about=cls.about, claim=claim_words(cls))


OF_METHODS = MethodFlags(as_named_method_has_them, of_method, about_method)


def _of_declaration(known: Parameter) -> Flag:
    named = {
        "help": _sentence(known.sentence()),
        "name": known.name,
        "placeholder": known.form.placeholder,
    }
    many = known.name in _TYPED
    typed = known.form.typed if known.name != "domain_from_data" else float
    kept: dict[str, Any] = {"group": known.group, "type": typed, "many": many, "common": known.common}
    return Flag(**kept, **{**named, **_TYPED.get(known.name, {})})


def _of_parameter(known: Parameter, *, usual: bool = False) -> Flag:
    typed = f"--{known.name.replace('_', '-')}"
    flags = (typed, "-k") if known.name == "k" else (typed,)
    off = typed.replace("--", "--no-", 1)
    if known.form.typed is bool:
        flags = (f"{typed}/{off}",)
    return Flag(
        known.name,
        _sentence(known.sentence(typed, off)),
        known.group,
        known.form.typed,
        flags,
        common=known.common,
        placeholder=known.form.placeholder,
        of_methods=True,
        usual={"True": typed, "False": off}.get(known.usual, known.usual) if usual else "",
    )


def _sentence(words: str) -> str:
    return f"{capital(words)}."


def recipe_arguments(typed: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `shoal.protect` from the options given: the recipe first, then the rest."""
    from shoal.columns import Schema
    from shoal.mechanisms import DEFAULT_METHOD, load_recipe, method_class, names, names_in, parameters

    recipe = typed.get("config")
    arguments: dict[str, Any] = load_recipe(recipe) if recipe is not None else {}
    if typed["schema"] is not None:
        arguments["schema"] = Schema.load(typed["schema"])
    for name in ("method", "outside", "missing", "domain_from_data", *VERDICT):
        if typed.get(name) is not None:
            arguments[name] = typed[name]
    name = arguments.setdefault("method", DEFAULT_METHOD)
    # where methods share a name, the method chosen determines the form
    own = method_class(name).parameters() if name in names() else {}
    for option, known in {**parameters(), **own}.items():
        value = typed.get(option)
        if value is not None:
            arguments[option] = known.parse(value) if isinstance(value, str) else value
    if typed.get("na"):
        arguments["na"] = typed["na"]
    about_file = file_arguments(typed)
    types = {**about_file.pop("types", {}), **parse_types(typed.get("types") or ())}
    arguments |= about_file
    if types:
        arguments["types"] = types
    if typed.get("tuned"):
        # added to the recipe's choices: a later option does not undo a data-dependent choice
        before = arguments.get("tuned", [])
        looked = names_in(before) if isinstance(before, str) else list(before)
        arguments["tuned"] = looked + [name for text in typed["tuned"] for name in names_in(text)]
    if typed.get("domains"):
        arguments["domains"] = parse_domains(typed["domains"])
    if typed.get("taxonomy"):
        arguments["domains"] = {**arguments.get("domains", {}), **_taxonomies(typed["taxonomy"])}
    return arguments


def file_arguments(typed: Mapping[str, Any]) -> dict[str, Any]:
    """Options about the file itself: `file`, and date formats of columns as `types`, where given."""
    told = {name: typed[name] for name in _ABOUT_FILES if typed.get(name) is not None}
    if typed.get("spreadsheet_safe"):
        told["spreadsheet_safe"] = True
    types: dict[str, str] = {}
    for text in typed.get("date_format") or ():
        name, equals, form = text.rpartition("=")
        if not equals:
            told["date_format"] = form
        else:
            types[name] = f"{'timestamp' if 'HH' in form else 'date'}:{form}"
    return ({"file": told} if told else {}) | ({"types": types} if types else {})


def where(typed: Mapping[str, Any]) -> Where:
    """The engine on which tables are to be measured."""
    from shoal.release import Where

    return Where(typed["engine"], typed["master"], tuple(typed["conf"] or ()))


def read_tables(paths: Sequence[Path | None], typed: Mapping[str, Any]) -> list[Any]:
    """Read tables to compare, all in the same text format; columns with ambiguous formats are marked."""
    from shoal.columns import read_declared as read

    declared = {**file_arguments(typed), "na": typed.get("na") or ()}
    return [None if path is None else read(path, **declared) for path in paths]


def check_compared(tables: Sequence[Any], columns: Sequence[str] | None) -> None:
    """Refuse compared columns with ambiguous formats."""
    from shoal.io import check_doubts

    there = [table for table in tables if table is not None]
    shared = [name for name in there[0].names if all(name in table.names for table in there)]
    for table in there:
        check_doubts(table, [name for name in columns or shared if name in table.names])


def read_declared(data: Path, arguments: Mapping[str, Any]) -> Table:
    """The table, its columns in the types declared by the schema and the command line."""
    from shoal.columns import read_as_asked

    return read_as_asked(data, arguments)


def _taxonomies(texts: Sequence[str]) -> dict[str, Any]:
    """Taxonomies from command-line text `column=file`."""
    from shoal.taxonomy import Taxonomy

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, path = text.rpartition("=")
        if not (equals and name and path):
            raise OptionError("taxonomy-not-form-column-file", text=text)
        found[name] = Taxonomy.load(path)
    return found


def column_names(texts: Sequence[str], known: Sequence[str]) -> list[str]:
    """Column names from texts with one name each, or several separated by commas."""
    from shoal.columns import column_range
    from shoal.mechanisms import names_in

    named = [name for text in texts for name in ([text] if text in known else names_in(text))]
    return [name for text in named for name in ((text,) if text in known else column_range(text))]


def note_use(
    typed: Mapping[str, Any],
    kind: Kind,
    records: Table | Runner,
    columns: Iterable[str],
    by: str,
    *,
    released: Path | None = None,
    **facts: Any,
) -> None:
    """Note in the journal that facts about records, or a release of them, are about to be shown.

    The custodian is warned where the same content is known under another name.
    """
    from shoal.cli.command import complain
    from shoal.release import folder_of, noted

    folder = {} if released is None else {"folder": folder_of(released)}
    told = noted(kind, records, columns, by, typed["dataset"], ledger=typed.get("ledger"), **folder, **facts)
    for said in told:
        complain(said)


def parse_domains(texts: Iterable[str]) -> dict[str, tuple[Decimal | str, Decimal | str]]:
    """Domains from command-line text `column=lo:hi`, with the decimals as typed; dates are left as text.

    >>> parse_domains(["FICA=0:12000", "rent=0.00:900.00"])
    {'FICA': (Decimal('0'), Decimal('12000')), 'rent': (Decimal('0.00'), Decimal('900.00'))}
    """
    from shoal.columns import ISO_DAY

    domains: dict[str, tuple[Decimal | str, Decimal | str]] = {}
    for text in texts:
        name, equals, bounds = text.rpartition("=")
        lo, colon, hi = bounds.partition(":")
        if not (equals and colon and name):
            raise OptionError("domain-not-form-column-lo-hi", text=text)
        if name in domains:
            raise OptionError("domain-names-column-twice", column=name)
        what = Message.of("bound-of-domain", text=text)
        first, last = (side if ISO_DAY.match(side) else _number(side, what) for side in (lo, hi))
        domains[name] = (first, last)
    return domains


def _number(text: str, what: Message) -> Decimal:
    exact(text, what)
    return Decimal(text.strip())


def parse_types(texts: Iterable[str]) -> dict[str, str]:
    """Types from command-line text `column=type`, such as age=integer or income=decimal:2.

    >>> parse_types(["income=decimal:2"])
    {'income': 'decimal:2'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, type = text.rpartition("=")
        if not (equals and name and type):
            raise OptionError("type-not-form-column-type", text=text)
        if name in found:
            raise OptionError("type-names-column-twice", column=name)
        found[name] = type
    return found
