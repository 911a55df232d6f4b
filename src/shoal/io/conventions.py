"""How a text file writes things: encoding, separator, decimal sign and so on, as facts that travel with a table.

None of them is read off the records: they are told (an option, the `[file]` table of a schema), stand in the header, or
are what most files do. Released files are written as the input was.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from shoal.errors import OptionError, closest
from shoal.io.date_formats import DateFormat

_SEPARATOR_WORDS = {
    "tab": "\t",
    "\\t": "\t",
    "comma": ",",
    "semicolon": ";",
    "bar": "|",
    "pipe": "|",
    "space": " ",
    "blank": " ",
}
_THOUSANDS_WORDS = {"space": " ", "blank": " ", "none": "", "\u00a0": " ", "\u202f": " ", "’": "'"}
# what stands for a blank between thousands
BLANKS = " \u00a0\u202f"
_DECIMALS = (".", ",")
_THOUSANDS = ("", ".", ",", " ", "'")
NO_QUOTE = ""


@dataclass(frozen=True, slots=True)
class Conventions:
    """What is told about a file; None where nothing is.

    Attributes:
        encoding: of a text file, by one of Python's names for it.
        separator: the character between two fields.
        decimal: the sign before decimals, a point or a comma.
        thousands: the sign between thousands; empty for none.
        quote: the character around a field that holds separators; empty where quotes are part of the text.
        na: texts that stand for a missing value.
        date_format: how dates are written, such as DD.MM.YYYY, in columns that name no format of their own.
        sheet: of a spreadsheet.
        header_row: number of the row that holds the column names, counted from 1; rows above it are not read.
        range: the cells of a sheet that hold the table, such as B4:F200, names included.
        newline: how lines end.
        spreadsheet_safe: texts that a spreadsheet would run as a formula are written with an apostrophe in front.

    >>> Conventions(separator="tab", decimal=",").separator
    '\\t'
    """

    encoding: str | None = None
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    quote: str | None = None
    na: tuple[str, ...] = ()
    date_format: str | None = None
    sheet: str | None = None
    header_row: int | None = None
    range: str | None = None
    newline: str | None = None
    spreadsheet_safe: bool = False

    def __post_init__(self) -> None:
        def settle(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        for name in (
            "encoding",
            "separator",
            "decimal",
            "thousands",
            "quote",
            "date_format",
            "sheet",
            "range",
            "newline",
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise OptionError("option-not-text", option=name, found=value)
        if self.encoding is not None:
            settle("encoding", _known_encoding(self.encoding))
        if self.separator is not None:
            settle("separator", _SEPARATOR_WORDS.get(self.separator.lower(), self.separator))
            _one_character("separator", self.separator)
        if self.quote is not None:
            settle("quote", NO_QUOTE if self.quote.lower() == "none" else self.quote)
            if self.quote:
                _one_character("quote", self.quote)
        if self.decimal is not None:
            settle("decimal", {"comma": ",", "point": "."}.get(self.decimal.lower(), self.decimal))
            if self.decimal not in _DECIMALS:
                raise OptionError("decimal-not-point-comma", option="decimal", found=self.decimal)
        if self.thousands is not None:
            settle("thousands", _THOUSANDS_WORDS.get(self.thousands.lower(), self.thousands))
            if self.thousands not in _THOUSANDS:
                raise OptionError(
                    "thousands-not-point-comma-blank-apostrophe", option="thousands", found=self.thousands
                )
        if self.thousands == "," and self.decimal is None:
            settle("decimal", ".")
        if self.thousands == "." and self.decimal is None:
            settle("decimal", ",")
        if self.thousands and self.thousands == self.decimal:
            raise OptionError("cannot-both-decimal-thousands-sign", decimal=self.decimal)
        if self.separator is not None and self.separator == self.quote:
            raise OptionError("cannot-both-separator-quote", separator=self.separator)
        if isinstance(self.na, str) or not all(isinstance(text, str) for text in self.na):
            raise OptionError("na-list-texts-such", option="na", found=self.na)
        settle("na", tuple(text.strip() for text in self.na))
        if self.date_format is not None:
            DateFormat.of(self.date_format)
        if isinstance(self.header_row, str) and self.header_row.isdigit():
            settle("header_row", int(self.header_row))
        if self.header_row is not None and (type(self.header_row) is not int or self.header_row < 1):
            raise OptionError("header-row-whole-number-least-1", option="header_row", found=self.header_row)
        if self.range is not None:
            settle("range", cells_of(self.range).text)
            if self.header_row is not None:
                raise OptionError("range-begins-row-names")
        if self.newline not in (None, "\n", "\r\n", "\r"):
            raise OptionError("newline-not-n-r-n-r", found=self.newline)
        if not isinstance(self.spreadsheet_safe, bool):
            raise OptionError(
                "spreadsheet-safe-true-false", option="spreadsheet_safe", found=self.spreadsheet_safe
            )

    @classmethod
    def of(cls, told: Conventions | Mapping[str, Any] | None) -> Conventions:
        """Conventions from a mapping, such as the `[file]` table of a schema."""
        if told is None:
            return cls()
        if isinstance(told, Conventions):
            return told
        if not isinstance(told, Mapping):
            raise OptionError("file-table-facts-such-encoding-separator", found=told)
        known = [field.name for field in fields(cls)]
        for key in told:
            if key not in known:
                raise OptionError("file-unknown-key", key=key, hint=closest(str(key), known))
        texts = told.get("na", ())
        return cls(
            **{
                **told,
                "na": tuple(texts) if isinstance(texts, Iterable) and not isinstance(texts, str) else texts,
            }
        )

    def with_told(self, told: Conventions | Mapping[str, Any] | None) -> Conventions:
        """The same, with what is told on top; texts for missing values add up."""
        more = Conventions.of(told)
        changes = {key: value for key, value in more.to_dict().items() if key != "na"}
        return replace(self, **changes, na=tuple(dict.fromkeys((*self.na, *more.na))))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without what nobody told."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            key: list(value) if key == "na" else value
            for key, value in found.items()
            if value not in (None, (), False)
        }

    def of_release(self) -> Conventions:
        """The same for a release that is written like this file: its names stand in the first row."""
        return replace(self, header_row=None, range=None)

    @property
    def signs_told(self) -> bool:
        """Whether somebody said how numbers are written."""
        return self.decimal is not None or self.thousands is not None

    @property
    def decimal_sign(self) -> str:
        return self.decimal or "."

    @property
    def thousands_sign(self) -> str:
        return self.thousands or ""


@dataclass(frozen=True, slots=True)
class Cells:
    """A rectangle of a sheet: first and last row and column, counted from 0; None where it is open."""

    top: int
    left: int
    bottom: int | None
    right: int | None
    text: str


def cells_of(text: str) -> Cells:
    """The cells that a range such as B4:F200, or B4: for all from B4 on, names.

    >>> cells_of("b4:F200")
    Cells(top=3, left=1, bottom=199, right=5, text='B4:F200')
    """
    found = re.fullmatch(
        r"\s*([A-Za-z]{1,3})([1-9]\d{0,6})\s*:\s*(?:([A-Za-z]{1,3})([1-9]\d{0,6}))?\s*", text
    )
    if found is None:
        raise OptionError("range-not-form-b4-f200-b4", option="range", found=text)
    top, left = int(found[2]) - 1, _column_number(found[1])
    bottom, right = (None, None) if found[3] is None else (int(found[4]) - 1, _column_number(found[3]))
    if bottom is not None and right is not None and (bottom < top or right < left):
        raise OptionError("range-ends-before-begins", found=text)
    return Cells(top, left, bottom, right, "".join(text.split()).upper())


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def python_codec(encoding: str | None) -> str:
    """The codec that reads and writes an encoding."""
    return encoding or "utf-8"


def _known_encoding(name: str) -> str:
    try:
        codec = codecs.lookup(name)
        "é".encode(codec.name, "replace").decode(codec.name)
    except (LookupError, ValueError, TypeError, AttributeError):
        raise OptionError(
            "encoding-not-known",
            option="encoding",
            found=name,
            hint=closest(name, ("utf-8", "latin-1", "windows-1252", "utf-16", "iso-8859-15", "mac-roman")),
        ) from None
    if not getattr(codec, "_is_text_encoding", True):
        raise OptionError("encoding-not-encoding-text", option="encoding", found=name)
    # the custodian's own word for it, where it has several
    return codec.name if codec.name.startswith("utf-8") else name.strip().lower()


def _one_character(name: str, value: str) -> None:
    if len(value) != 1 or not value.isascii() or value in "\r\n\0":
        raise OptionError("option-not-plain-character-such-tab", option=name, found=value)
