"""Bounds of steps: numbers, open ends and dates come in, what is compared and what is written leave."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from shoal.columns.dates import ISO_DAY, day_number
from shoal.decimals import decimal_text, exact
from shoal.text import Message

# a number, an open end, or the text of a date
Bound = Fraction | float | str


def as_number(bound: Bound) -> float:
    """A bound as a number; a date as days since 1970-01-01."""
    return float(day_number(bound, Message("a-date"))) if isinstance(bound, str) else float(bound)


def bound_text(bound: Any) -> str:
    """A bound as people write it."""
    return decimal_text(bound) if isinstance(bound, Fraction) else str(bound)


def bound_of(value: object, what: Message) -> Bound:
    """A bound as a schema has it; an error names the step and the key."""
    if isinstance(value, date):
        value = value.isoformat()[:10]
    if isinstance(value, str) and ISO_DAY.match(value.strip()):
        day_number(value, what)
        return value.strip()
    if isinstance(value, (float, Decimal)) and math.isinf(value):
        return float(value)
    return exact(value, what)
