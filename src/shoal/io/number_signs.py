"""How numbers are written: texts such as 1.234,5 and their signs come in, texts with a decimal point leave."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from shoal.io.conventions import BLANKS, Conventions
from shoal.text import Message


@dataclass(frozen=True, slots=True)
class Signs:
    """How numbers are written: the decimal sign, and the one between thousands, if any.

    >>> Signs(",", ".").plain("1.234,5"), Signs(",", ".").plain("1234.5")
    ('1234.5', None)
    """

    decimal: str = "."
    thousands: str = ""

    @property
    def pattern(self) -> str:
        """What a number looks like."""
        whole = r"\d+"
        if self.thousands:
            between = (
                f"[{BLANKS}]"
                if self.thousands == " "
                else "['’]"
                if self.thousands == "'"
                else rf"\{self.thousands}"
            )
            whole = rf"(?:\d+|\d{{1,3}}(?:{between}\d{{3}})+)"
        number = rf"(?:{whole}(?:\{self.decimal}\d*)?|\{self.decimal}\d+)(?:[eE][+-]?\d+)?"
        # an infinite number is none that could be released, and is complained about with its row
        return f"[+-]?(?:{number}|[iI]nf|[iI]nfinity)"

    def plain(self, text: str) -> str | None:
        """The number with a decimal point and nothing else, None for what is no number."""
        if re.fullmatch(self.pattern, text) is None:
            return None
        for sign in self.marks:
            text = text.replace(sign, "")
        return text.replace(self.decimal, ".")

    @property
    def marks(self) -> str:
        """What can stand between thousands."""
        return BLANKS if self.thousands == " " else "'’" if self.thousands == "'" else self.thousands

    @property
    def words(self) -> Message:
        """The options that say so."""
        if not self.thousands:
            return Message.of("decimal-sign", decimal=self.decimal)
        code = "thousands-sign" if self.decimal == "." else "decimal-and-thousands-sign"
        return Message.of(code, decimal=self.decimal, thousands=self.thousands)


USUAL_SIGNS = (
    *(Signs(".", ""), Signs(",", ""), Signs(",", "."), Signs(".", ","), Signs(".", " "), Signs(",", " ")),
    *(Signs(".", "'"), Signs(",", "'")),
)


def signs_of(conventions: Conventions) -> Signs:
    return Signs(conventions.decimal_sign, conventions.thousands_sign)


def plain_numbers(values: Any, signs: Signs) -> Any:
    """Texts of numbers with a decimal point and no other sign; what is no number becomes a text that is none.

    >>> import pyarrow as pa
    >>> plain_numbers(pa.array(["1.234,5", "7", "x"]), Signs(",", ".")).to_pylist()
    ['1234.5', '7', 'no number']
    """
    import pyarrow as pa
    from pyarrow import compute

    if signs == USUAL_SIGNS[0]:
        return values
    fits = compute.match_substring_regex(values, f"^(?:{signs.pattern})$")
    found = values
    for mark in signs.marks:
        found = compute.replace_substring(found, mark, "")
    if signs.decimal != ".":
        found = compute.replace_substring(found, signs.decimal, ".")
    return compute.if_else(fits, found, pa.scalar("no number", found.type))
