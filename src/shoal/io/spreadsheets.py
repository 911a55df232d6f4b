"""Texts that a spreadsheet would run: a text comes in, whether a spreadsheet takes it for a formula leaves."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FORMULA = re.compile(r"^[=+\-@\t\r]")
# what `harmless` writes
MARKED = r"^'([=+\-@\t\r])"
_NUMBER = re.compile(r"[+-]?[\d.,'\s]*\d[\d.,'\s]*([eE][+-]?\d+)?%?")


def runs_as_formula(text: str) -> bool:
    """Whether a spreadsheet that opens a file of text would run this.

    >>> runs_as_formula("=cmd|' /C calc'!A0"), runs_as_formula("-5"), runs_as_formula("clerk")
    (True, False, False)
    """
    return bool(_FORMULA.match(text)) and _NUMBER.fullmatch(text) is None


def harmless(text: str) -> str:
    """The text with an apostrophe in front, which spreadsheets take for "this is text".

    >>> harmless("=1+1"), harmless("clerk")
    ("'=1+1", 'clerk')
    """
    return f"'{text}" if runs_as_formula(text) else text


def first_formula(texts: Iterable[str | None]) -> str | None:
    """The first text that a spreadsheet would run."""
    return next((text for text in texts if text is not None and runs_as_formula(text)), None)
