"""The library's words in those of the command line: `missing="drop"` in a message becomes `--missing drop`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.errors import ShoalError

# options of the library whose flag is not their own name
_OTHER_NAMES = {"domains": "--domain", "types": "--type"}
# what follows a column's name in the flags that are about one
_FORMS = {"domains": "lo:hi", "types": "integer"}
# flags that take the column and what is said about it
_OF_COLUMNS = ("types", "date_format")
# flags beside those of the tables of settings
_FLAGS = (
    "date_format",
    "decimal",
    "encoding",
    "quote",
    "separator",
    "sheet",
    "spreadsheet_safe",
    "thousands",
    "alpha",
    "c",
    "confidential",
    "dataset",
    "engine",
    "evaluate",
    "fast",
    "form",
    "format",
    "fraction",
    "household",
    "interactions",
    "internal",
    "keys",
    "ledger",
    "max_risk",
    "method",
    "not_same_records",
    "original",
    "out",
    "points",
    "private",
    "quasi",
    "same_order",
    "same_records",
    "schema",
    "secret",
    "seed",
    "sensitive",
    "special",
    "staging",
    "statistics",
    "target",
    "tolerated",
    "types",
    "unit",
    "weight",
)
_QUOTED = re.compile(r"((?<!\w)'[^']*'(?!\w))")
_WORD = r"(?:\{\"[^\"]*\": \"(?P<of_column>[^\"]+)\"\}|\"(?P<quoted>[^\"]+)\"|(?P<bare>\w[\w-]*))"
_NAMED = re.compile(rf"(?<![\w-])(?P<name>[a-z]\w*)={_WORD}?")


def flag(option: str) -> str | None:
    """The flag of an option of the library, None where the command line has none."""
    from shoal.method.settings import DECLARATIONS, SETTINGS

    if option not in {*_FLAGS, *DECLARATIONS, *SETTINGS}:
        return None
    return _OTHER_NAMES.get(option, f"--{option.replace('_', '-')}")


def in_flags(error: ShoalError) -> str:
    """The sentence of an error, with the flag that it is about.

    >>> from shoal.errors import InputError, OptionError
    >>> in_flags(InputError("column 'age' has no public domain: give one (domains=)."))
    "column 'age' has no public domain: give one (--domain 'age=lo:hi')."
    >>> in_flags(OptionError("epsilon is missing: give the privacy budget, for example 1."))
    '--epsilon is missing: give the privacy budget, for example 1.'
    """
    text = with_flags(str(error), error.column)
    own = None if error.option is None else flag(error.option)
    if error.option is None or own is None or own in text:
        return text
    if re.match(rf"{error.option} (?!=)", text):
        return f"{own}{text.removeprefix(error.option)}"
    return f"{text} ({own})"


def with_flags(text: str, column: str | None = None) -> str:
    """A text with flags in the place of the library's options; what is quoted stays as it is.

    >>> with_flags('clip them with outside="clip", give link=False, or name other columns (columns=).')
    'clip them with --outside clip, give --no-link, or name other columns (--columns).'
    >>> with_flags('use decimal="," or types=text.', "pay")
    "use --decimal ',' or --type 'pay=text'."
    """

    def flagged(found: re.Match[str]) -> str:
        name, value = found["name"], found["of_column"] or found["quoted"] or found["bare"] or ""
        own = flag(name)
        if own is None:
            return found[0]
        if value in ("True", "False"):
            return own if value == "True" else f"--no-{own[2:]}"
        if not value and column is not None and name in _FORMS:
            return f"{own} '{column}={_FORMS[name]}'"
        if value and column is not None and name in _OF_COLUMNS:
            return f"{own} '{column}={value}'"
        if found["quoted"] and (name == "na" or re.fullmatch(r"\w[\w-]*", value) is None):
            # as a shell takes it
            value = f'"{value}"' if "'" in value else f"'{value}'"
        return f"{own} {value}".rstrip()

    parts = _QUOTED.split(text)
    return "".join(part if place % 2 else _NAMED.sub(flagged, part) for place, part in enumerate(parts))
