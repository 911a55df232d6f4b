"""The unit of a claim in words: whose protection ε is about."""

from __future__ import annotations

ROW = "row"


def unit_words(column: str | None, rows: int | None = 1) -> str:
    """One row, or all rows of a person, who is a value of a column; as many as there are where `rows` is None.

    >>> unit_words(None), unit_words("person", 3), unit_words("person", None)
    ('row', "value of 'person' (at most 3 rows)", "value of 'person'")
    """
    if column is None:
        return ROW
    return f"value of '{column}'" + (
        "" if rows is None else f" (at most {rows} row{'s' if rows > 1 else ''})"
    )
