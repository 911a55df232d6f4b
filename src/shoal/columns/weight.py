"""The survey weight: a schema comes in, what becomes of its weight leaves, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.columns.schema import Schema


def weight_words(schema: Schema) -> str:
    """What a statement says about the weight; empty without one.

    >>> from shoal import Attribute, Schema
    >>> weight_words(Schema((Attribute("age"), Attribute("w", role="weight"))))
    'The survey weight w was not released.'
    """
    weight = schema.weight
    if weight is None:
        return ""
    if weight.release == "masked":
        return f"The survey weight {weight.name} is one more column: protected, and covered, like the others."
    if weight.release == "raked":
        margins = "; ".join(f"{margin.column} ({margin.source})" for margin in schema.margins)
        return (
            f"The weight {weight.name} in the release was computed from the released rows and public totals alone "
            f"(raking to the margins of {margins}): the original weights had no part in it."
        )
    return f"The survey weight {weight.name} was not released."
