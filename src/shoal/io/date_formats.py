"""Dates as offices write them: a format such as DD.MM.YYYY comes in, a reader and a writer of such dates leave."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import lru_cache

from shoal.errors import OptionError
from shoal.text import Message

# one or two digits where a letter stands alone, otherwise as many as there are letters
_TOKENS = {
    "YYYY": (r"(?P<year>\d{4})", "{0.year:04d}"),
    "MM": (r"(?P<month>\d{2})", "{0.month:02d}"),
    "DD": (r"(?P<day>\d{2})", "{0.day:02d}"),
    "HH": (r"(?P<hour>\d{2})", "{0.hour:02d}"),
    "mm": (r"(?P<minute>\d{2})", "{0.minute:02d}"),
    "ss": (r"(?P<second>\d{2})", "{0.second:02d}"),
    "M": (r"(?P<month>\d{1,2})", "{0.month}"),
    "D": (r"(?P<day>\d{1,2})", "{0.day}"),
}
_TOKEN = re.compile("|".join(_TOKENS) + r"|[A-Za-z]+|.", re.DOTALL)
# what a column of such texts could be, tried in this order
USUAL = (
    "DD.MM.YYYY",
    "D.M.YYYY",
    "DD/MM/YYYY",
    "MM/DD/YYYY",
    "D/M/YYYY",
    "M/D/YYYY",
    "DD-MM-YYYY",
    "MM-DD-YYYY",
    "YYYY/MM/DD",
    "YYYY.MM.DD",
)


@dataclass(frozen=True, slots=True)
class DateFormat:
    """A way to write dates.

    >>> DateFormat.of("DD.MM.YYYY").read("31.05.1984").isoformat()
    '1984-05-31T00:00:00'
    >>> DateFormat.of("D/M/YYYY").write(date(1984, 5, 31))
    '31/5/1984'
    """

    text: str
    pattern: re.Pattern[str]
    template: str

    @staticmethod
    @lru_cache(maxsize=64)
    def of(text: str) -> DateFormat:
        """The format, or an error that says what one is made of."""
        pattern, template, found = "", "", []
        for token in _TOKEN.findall(text):
            if token in _TOKENS:
                pattern += _TOKENS[token][0]
                template += _TOKENS[token][1]
                found.append(token[0])
            elif token.isalpha() and token != "T":
                why = Message("century-not-told") if token == "YY" else ""
                raise OptionError("unknown-date-token", found=text, token=token, why=why)
            else:
                pattern += re.escape(token)
                template += token.replace("{", "{{").replace("}", "}}")
        if sorted(set("YMD")) != sorted(set(found) & set("YMD")) or len(found) != len(set(found)):
            raise OptionError("date-format-needs-yyyy-mm-m", found=text)
        return DateFormat(text, re.compile(pattern), template)

    @property
    def has_time(self) -> bool:
        return "HH" in self.text

    def read(self, text: str) -> datetime:
        """The moment that a text stands for.

        Raises:
            ValueError: it is no date of this format, or none of the calendar.
        """
        found = self.pattern.fullmatch(text) if text.isascii() else None
        if found is None:
            raise ValueError(f"not of the form {self.text}")
        parts = {part: int(digits) for part, digits in found.groupdict().items()}
        day = date(parts["year"], parts["month"], parts["day"])
        return datetime.combine(
            day, time(parts.get("hour", 0), parts.get("minute", 0), parts.get("second", 0))
        )

    def reads(self, text: str) -> bool:
        try:
            self.read(text)
        except ValueError:
            return False
        return True

    def write(self, value: date) -> str:
        """A date or time stamp as text; a date has no time."""
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        return self.template.format(moment)
