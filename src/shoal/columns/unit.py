"""The unit of a claim in words: whose protection ε is about."""

from __future__ import annotations

ROW = "row"


def unit_words(column: str | None, rows: int = 1) -> str:
    """One row, or all rows of a person, who is a value of a column.

    >>> unit_words(None), unit_words("person", 3)
    ('row', "value of 'person' (at most 3 rows)")
    """
    return ROW if column is None else f"value of '{column}' (at most {rows} row{'s' if rows > 1 else ''})"
