"""What becomes of the survey weight: dropped, masked or raked, and the public totals that it is raked to.

Totals are typed one value in a line and kept as the schema keeps them; what they cannot be is said by the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shoal.columns.attribute import MISSING_VALUE, WEIGHT_RELEASES, Attribute
from shoal.columns.schema import Margin, weight_words
from shoal.decimals import decimal_text
from shoal.errors import OptionError, ShoalError
from shoal.studio.desk import Desk
from shoal.studio.editing import Draft
from shoal.studio.recipe import RAKED, Recipe, with_attribute

# in the words of the page
RELEASES: Mapping[str, str] = {
    "dropped": "Dropped: not released",
    "masked": "Masked like the columns",
    "raked": "Raked to public totals",
}
assert set(RELEASES) == set(WEIGHT_RELEASES)


@dataclass(frozen=True, slots=True)
class Totals:
    """The public totals of one column as a form shows them.

    Attributes:
        text: one line for each value, with a number of people once somebody gave it.
        count: of how many values a total is given; 0 as long as there is no margin.
    """

    column: str
    text: str
    source: str = ""
    count: int = 0
    open: bool = False


def margin_of(column: str, text: str, source: str) -> Margin:
    """A margin as it was typed; a value without a number has no total.

    >>> margin_of("sex", "f = 510\\nm = 490\\nother =", "law").to_dict()["totals"]
    {'f': Fraction(510, 1), 'm': Fraction(490, 1)}

    Raises:
        OptionError: it cannot be; the line names the column.
    """
    totals: dict[str, str] = {}
    for line in filter(str.strip, text.splitlines()):
        name, sign, total = (part.strip() for part in line.rpartition("="))
        if not sign:
            raise OptionError("margin-line-malformed", column=column, found=total)
        if name in totals:
            raise OptionError("margin-value-twice", column=column, name=name)
        if total:
            totals[name] = total
    return Margin.from_dict({"column": column, "totals": totals, "source": source})


def totals_of(recipe: Recipe, draft: Draft | None) -> list[Totals]:
    """What can be typed: the totals of each column of names that is released, or that has some already."""
    given = {margin.column: margin for margin in recipe.schema.margins}
    typed = {} if draft is None else draft.typed
    found = []
    for attribute in recipe.schema.stepped.attributes:
        margin = given.get(attribute.name)
        named = recipe.publishes(attribute) and not attribute.kind_facts.ranged
        if typed.get("column") == attribute.name:
            text, source = typed["totals"], typed["source"]
            found.append(
                Totals(attribute.name, text, source, 0 if margin is None else len(margin.totals), True)
            )
        elif margin is not None:
            lines = "\n".join(f"{name} = {decimal_text(total)}" for name, total in margin.totals)
            found.append(Totals(attribute.name, lines, margin.source, len(margin.totals)))
        elif named:
            found.append(Totals(attribute.name, "\n".join(f"{name} = " for name in _names(attribute))))
    return found


def _names(attribute: Attribute) -> tuple[str, ...]:
    values = attribute.ordered or (() if attribute.tree is None else attribute.tree.values)
    return tuple(value for value in values if value != MISSING_VALUE)


def words(recipe: Recipe, attribute: Attribute) -> str:
    """What the statement will say about a weight; empty where that is not settled, or about another one."""
    weight = recipe.schema.weight
    if weight is None or weight.name != attribute.name or recipe.raking == attribute.name:
        return ""
    return str(weight_words(recipe.schema) or "")


def release(desk: Desk, number: int, value: str) -> None:
    """What becomes of a weight. One that is to be raked and has no totals yet is waited for."""
    attribute = desk.column(number)
    waiting = desk.recipe.raking
    recipe = replace(desk.recipe, raking="" if waiting == attribute.name else waiting)
    if value == RAKED and not recipe.schema.margins:
        _wait(desk, attribute, recipe)
        return
    try:
        made = with_attribute(recipe.schema, attribute, replace(attribute, release=value or None))
    except ShoalError as error:
        desk.drafts[attribute.name] = Draft({}, error, "check this")
        return
    _settle(desk, attribute, replace(recipe, schema=made))


def give(desk: Desk, number: int, form: Mapping[str, str]) -> None:
    """Public totals of one column, instead of those that it had."""
    attribute, recipe = desk.column(number), desk.recipe
    column, text, source = (form.get(name, "") for name in ("column", "totals", "source"))
    try:
        made = margin_of(column, text, source)
        margins = [margin for margin in recipe.schema.margins if margin.column != column]
        schema = replace(recipe.schema, margins=(*margins, made))
        if recipe.raking == attribute.name:
            schema = with_attribute(schema, attribute, replace(attribute, release=RAKED))
    except ShoalError as error:
        kept = {"column": column, "totals": text, "source": source}
        desk.drafts[attribute.name] = Draft(kept, error, "check the totals")
        return
    raking = "" if recipe.raking == attribute.name else recipe.raking
    _settle(desk, attribute, replace(recipe, schema=schema, raking=raking))


def take_away(desk: Desk, number: int, column: str) -> None:
    """A column has no totals any more; a weight that loses the last of them waits for others."""
    attribute, recipe = desk.column(number), desk.recipe
    margins = tuple(margin for margin in recipe.schema.margins if margin.column != column)
    if margins or attribute.release != RAKED:
        _settle(desk, attribute, replace(recipe, schema=replace(recipe.schema, margins=margins)))
        return
    _wait(desk, attribute, recipe)


def _wait(desk: Desk, attribute: Attribute, recipe: Recipe) -> None:
    """A weight that is to be raked is dropped until there are totals."""
    dropped = with_attribute(recipe.schema, attribute, replace(attribute, release=None))
    schema = replace(dropped, margins=())
    _settle(desk, attribute, replace(recipe, schema=schema, raking=attribute.name))


def _settle(desk: Desk, attribute: Attribute, recipe: Recipe) -> None:
    desk.drafts.pop(attribute.name, None)
    desk.settle(recipe)
    desk.promise()
