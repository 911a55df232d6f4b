"""The library's words in those of the command line: `missing="drop"` in a message becomes `--missing drop`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.errors import ShoalError

# options of the library whose flag is not their own name
_OTHER_NAMES = {"domains": "--domain", "types": "--type"}
# flags beside the settings of methods
_FLAGS = (
    *(
        "columns",
        "confidential",
        "dataset",
        "domain_from_data",
        "domains",
        "engine",
        "epsilon",
        "evaluate",
        "fast",
    ),
    *(
        "format",
        "internal",
        "k",
        "ledger",
        "max_risk",
        "method",
        "missing",
        "na",
        "original",
        "out",
        "outside",
    ),
    *("private", "quasi", "schema", "secret", "seed", "statistics", "target", "tuned", "types"),
)
_QUOTED = re.compile(r"('[^']*')")
_WORD = r"(?:\"(?P<quoted>\w[\w-]*)\"|(?P<bare>\w[\w-]*))"
_NAMED = re.compile(rf"(?<![\w-])(?P<name>[a-z]\w*)={_WORD}?")


def flag(option: str) -> str | None:
    """The flag of an option of the library, None where the command line has none."""
    from shoal.method.method import OPTIONS

    if option not in _FLAGS and option not in OPTIONS:
        return None
    return _OTHER_NAMES.get(option, f"--{option.replace('_', '-')}")


def in_flags(error: ShoalError) -> str:
    """The sentence of an error with flags in the place of the library's options; what is quoted stays as it is.

    >>> from shoal.errors import InputError, OptionError
    >>> in_flags(InputError('3 values are outside: clip them with outside="clip" or name others (columns=).'))
    '3 values are outside: clip them with --outside clip or name others (--columns).'
    >>> in_flags(OptionError("epsilon is missing: give the privacy budget, for example 1."))
    'epsilon is missing: give the privacy budget, for example 1. (--epsilon)'
    """
    parts = _QUOTED.split(str(error))
    text = "".join(part if place % 2 else _NAMED.sub(_flagged, part) for place, part in enumerate(parts))
    own = None if error.option is None else flag(error.option)
    return text if own is None or own in text else f"{text} ({own})"


def _flagged(found: re.Match[str]) -> str:
    name, value = found["name"], found["quoted"] or found["bare"] or ""
    own = flag(name)
    if own is None:
        return found[0]
    if value in ("True", "False"):
        return own if value == "True" else f"--no-{own[2:]}"
    return f"{own} {value}".rstrip()
