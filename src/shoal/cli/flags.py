"""The flags of the library's options, in which the command line has its sentences spelled."""

from __future__ import annotations

# options of the library whose flag is not their own name
_OTHER_NAMES = {"domains": "--domain", "types": "--type"}
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


def flag(option: str) -> str | None:
    """The flag of an option of the library, None where the command line has none.

    >>> flag("spreadsheet_safe"), flag("domains"), flag("work")
    ('--spreadsheet-safe', '--domain', None)
    """
    from shoal.method.settings import DECLARATIONS, SETTINGS

    if option not in {*_FLAGS, *DECLARATIONS, *SETTINGS}:
        return None
    return _OTHER_NAMES.get(option, f"--{option.replace('_', '-')}")
