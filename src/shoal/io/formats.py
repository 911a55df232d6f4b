"""File formats: a path's ending comes in, the format leaves, with the column names it can hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from shoal.errors import InputError, OptionError, did_you_mean

Format = Literal["csv", "parquet", "stata", "spss"]
FORMATS: tuple[Format, ...] = get_args(Format)
SUFFIXES: Mapping[str, Format] = {
    ".csv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".dta": "stata",
    ".sav": "spss",
    ".zsav": "spss",
}
# what a file of each format is called when nobody chose a name
ENDINGS: Mapping[Format, str] = {"csv": ".csv", "parquet": ".parquet", "stata": ".dta", "spss": ".sav"}
TITLES: Mapping[Format, str] = {"csv": "CSV", "parquet": "PARQUET", "stata": "Stata", "spss": "SPSS"}

_STATA_WORDS = {
    *("_all", "_b", "_coef", "_cons", "_n", "_N", "_pi", "_pred", "_rc", "_skip", "byte", "double", "float"),
    *("if", "in", "int", "long", "strL", "using", "with"),
}
_SPSS_WORDS = {"ALL", "AND", "BY", "EQ", "GE", "GT", "LE", "LT", "NE", "NOT", "OR", "TO", "WITH"}
_RULES: Mapping[Format, str] = {
    "stata": "a name there is at most 32 letters, digits and underscores, does not begin with a digit and is no word "
    "of Stata's language",
    "spss": "a name there begins with a letter, goes on with letters, digits, '.', '_', '$', '#' or '@', takes at most "
    "64 bytes and is no word of SPSS's language",
}


def format_of(path: Path) -> Format:
    """The file format by the name's ending."""
    try:
        return SUFFIXES[path.suffix.lower()]
    except KeyError:
        endings = ", ".join(SUFFIXES)
        raise InputError(f"'{path.name}' has an unknown ending: use one of {endings}.") from None


def known_format(word: str) -> Format:
    """The word itself, or an error that lists the formats."""
    for name in FORMATS:
        if word == name:
            return name
    raise OptionError(
        f"format '{word}' is not one of {', '.join(FORMATS)}.{did_you_mean(str(word), FORMATS)}"
    )


def check_column_names(names: Sequence[str], format: Format) -> None:
    """Refuse, before any work is done, names that a file of the format cannot hold.

    >>> check_column_names(["net_income"], "stata")
    """
    rule = {"stata": _stata_name, "spss": _spss_name}.get(format)
    if rule is None:
        return
    for name in names:
        if not rule(name):
            raise InputError(
                f"column '{name}' cannot be written to a {TITLES[format]} file: {_RULES[format]}; rename it, or choose "
                "another format (format=csv)."
            )
    if format == "spss":
        seen: dict[str, str] = {}
        for name in names:
            other = seen.setdefault(name.lower(), name)
            if other != name:
                raise InputError(
                    f"columns '{other}' and '{name}' have one name in an SPSS file, where capitals do not count: "
                    "rename one, or choose another format (format=csv)."
                )


def _stata_name(name: str) -> bool:
    return (
        len(name) <= 32
        and name.isidentifier()
        and name not in _STATA_WORDS
        and not re.fullmatch(r"str\d+", name)
    )


def _spss_name(name: str) -> bool:
    return (
        len(name.encode()) <= 64
        and re.fullmatch(r"[^\W\d_][\w.$#@]*", name) is not None
        and not name.endswith(".")
        and name.upper() not in _SPSS_WORDS
    )
