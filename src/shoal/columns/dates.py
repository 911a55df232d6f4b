"""Dates as day numbers: a date or its text comes in, days since 1970-01-01 go on, and back."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from shoal.decimals import exact, named
from shoal.errors import OptionError
from shoal.text import Message

_EPOCH = date(1970, 1, 1)
ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}$")


def day_number(value: object, what: str | Message) -> Fraction:
    """Days since 1970-01-01 of a date, or of text such as 1984-05-31; a number is a number of days already.

    >>> day_number("1970-02-01", "a bound")
    Fraction(31, 1)
    """
    if isinstance(value, Fraction | int | Decimal) and not isinstance(value, bool):
        return exact(value, what)
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, str) and ISO_DAY.match(value.strip()):
        try:
            value = date.fromisoformat(value.strip())
        except ValueError:
            raise OptionError("option-date-calendar", **named(what), found=value) from None
    if not isinstance(value, date):
        raise OptionError("option-date-such-1984-05-31", **named(what), found=value)
    return Fraction((value - _EPOCH).days)


def day_text(number: Fraction | int) -> str:
    """The date of a day number.

    >>> day_text(31)
    '1970-02-01'
    """
    return (_EPOCH + timedelta(days=round(number))).isoformat()


def is_day(number: Fraction) -> bool:
    """A whole day of the calendar, which `day_text` writes and `day_number` reads back."""
    first, last = ((end - _EPOCH).days for end in (date.min, date.max))
    return number.denominator == 1 and first <= number <= last
