"""How a text file writes things: encoding, separator, decimal sign and so on, as facts that travel with a table.

None of them is read off the records: they are told (an option, the `[file]` table of a schema), stand in the header, or
are what most files do. Released files are written as the input was.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from shoal.errors import OptionError, did_you_mean
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
            "newline",
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise OptionError(f"{name} must be text, got {value!r}.")
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
                raise OptionError(f"decimal '{self.decimal}' is not a point or a comma.")
        if self.thousands is not None:
            settle("thousands", _THOUSANDS_WORDS.get(self.thousands.lower(), self.thousands))
            if self.thousands not in _THOUSANDS:
                raise OptionError(
                    f"thousands '{self.thousands}' is not a point, a comma, a blank, an apostrophe or none."
                )
        if self.thousands == "," and self.decimal is None:
            settle("decimal", ".")
        if self.thousands == "." and self.decimal is None:
            settle("decimal", ",")
        if self.thousands and self.thousands == self.decimal:
            raise OptionError(f"'{self.decimal}' cannot be both the decimal and the thousands sign.")
        if self.separator is not None and self.separator == self.quote:
            raise OptionError(f"'{self.separator}' cannot be both the separator and the quote.")
        if isinstance(self.na, str) or not all(isinstance(text, str) for text in self.na):
            raise OptionError(f'na must be a list of texts, such as ["?"], got {self.na!r}.')
        settle("na", tuple(text.strip() for text in self.na))
        if self.date_format is not None:
            DateFormat.of(self.date_format)
        if self.newline not in (None, "\n", "\r\n", "\r"):
            raise OptionError(f"newline {self.newline!r} is not one of '\\n', '\\r\\n', '\\r'.")
        if not isinstance(self.spreadsheet_safe, bool):
            raise OptionError(f"spreadsheet_safe must be true or false, got {self.spreadsheet_safe!r}.")

    @classmethod
    def of(cls, told: Conventions | Mapping[str, Any] | None) -> Conventions:
        """Conventions from a mapping, such as the `[file]` table of a schema."""
        if told is None:
            return cls()
        if isinstance(told, Conventions):
            return told
        if not isinstance(told, Mapping):
            raise OptionError(f"file must be a table of facts such as encoding and separator, got {told!r}.")
        known = [field.name for field in fields(cls)]
        for key in told:
            if key not in known:
                raise OptionError(f"file has an unknown key '{key}'.{did_you_mean(str(key), known)}")
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


def python_codec(encoding: str | None) -> str:
    """The codec that reads and writes an encoding."""
    return encoding or "utf-8"


def _known_encoding(name: str) -> str:
    try:
        codec = codecs.lookup(name)
        "é".encode(codec.name, "replace").decode(codec.name)
    except (LookupError, ValueError, TypeError, AttributeError):
        raise OptionError(
            f"encoding '{name}' is not known: utf-8, latin-1, windows-1252 and utf-16 are usual ones."
            f"{did_you_mean(name, ('utf-8', 'latin-1', 'windows-1252', 'utf-16', 'iso-8859-15', 'mac-roman'))}"
        ) from None
    if not getattr(codec, "_is_text_encoding", True):
        raise OptionError(f"encoding '{name}' is not an encoding of text.")
    # the custodian's own word for it, where it has several
    return codec.name if codec.name.startswith("utf-8") else name.strip().lower()


def _one_character(name: str, value: str) -> None:
    if len(value) != 1 or not value.isascii() or value in "\r\n\0":
        raise OptionError(f"{name} '{value}' is not one plain character, such as ';' or tab.")
