"""Names of columns that statistics packages can hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from shoal.errors import InputError
from shoal.text import Message

TITLES: Mapping[str, str] = {"stata": "Stata", "spss": "SPSS"}

_STATA_WORDS = {
    *("_all", "_b", "_coef", "_cons", "_n", "_N", "_pi", "_pred", "_rc", "_skip", "byte", "double", "float"),
    *("if", "in", "int", "long", "strL", "using", "with"),
}
_SPSS_WORDS = {"ALL", "AND", "BY", "EQ", "GE", "GT", "LE", "LT", "NE", "NOT", "OR", "TO", "WITH"}
_RULES = {"stata": Message("names-of-stata"), "spss": Message("names-of-spss")}


def check_column_names(names: Sequence[str], format: str) -> None:
    """Refuse, before any work is done, names that a file of the format cannot hold.

    >>> check_column_names(["net_income"], "stata")
    """
    rule = {"stata": _stata_name, "spss": _spss_name}.get(format)
    if rule is None:
        return
    for name in names:
        if not rule(name):
            raise InputError(
                "column-cannot-written-file", column=name, titles=TITLES[format], rules=_RULES[format]
            )
    if format == "spss":
        seen: dict[str, str] = {}
        for name in names:
            other = seen.setdefault(name.lower(), name)
            if other != name:
                raise InputError("columns-have-name-spss-file-where", other=other, name=name)


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
