"""The survey weight: a schema comes in, what becomes of its weight leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns.schema import Schema


def weight_words(schema: Schema) -> Message | None:
    """What a statement says about the weight; None without one.

    >>> from shoal import Attribute, Schema
    >>> print(weight_words(Schema((Attribute("age"), Attribute("w", role="weight")))))
    The survey weight w was not released.
    """
    weight = schema.weight
    if weight is None:
        return None
    if weight.release == "masked":
        return Message.of("weight-masked", column=weight.name)
    if weight.release == "raked":
        margins = tuple(
            Message.of("margin-with-source", column=margin.column, source=margin.source)
            for margin in schema.margins
        )
        return Message.of("weight-raked", column=weight.name, margins=margins)
    return Message.of("weight-dropped", column=weight.name)
