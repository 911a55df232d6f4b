"""Survey weights, rules, and changes of declared columns.

Totals are typed one value per line and kept as in the schema; the library reports invalid ones.

A range or list changed after the values were shown has no source any more: it must be declared again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.columns import (
    MISSING_VALUE,
    RECORDS,
    WEIGHT_RELEASES,
    Attribute,
    Margin,
    read_declared,
    weight_words,
)
from shoal.errors import OptionError, ShoalError
from shoal.io import private_text
from shoal.numbers import decimal_text
from shoal.studio.edit import (
    RULE_KINDS,
    Draft,
    changed,
    range_words,
    rule_fields,
    rule_of,
    short_problem,
    step_of,
)
from shoal.studio.guarantee import RAKED, Recipe, with_attribute
from shoal.studio.session import StudioSession, named
from shoal.taxonomy import Taxonomy

# labels on the page
RELEASES: Mapping[str, str] = {
    "dropped": "Dropped: not released",
    "masked": "Masked like the other columns",
    "raked": "Raked to public totals",
}
# parts of a declaration that the values could have suggested
_SEEN = ("range", "values", "ordered", "taxonomy", "rename", "step")


assert set(RELEASES) == set(WEIGHT_RELEASES)


@dataclass(frozen=True, slots=True)
class Totals:
    """The public totals of one column as a form shows them.

    Attributes:
        text: one line per value, with a number of people if given.
        count: number of values with a total; 0 without a margin.
    """

    column: str
    text: str
    source: str = ""
    count: int = 0
    open: bool = False


def margin_of(column: str, text: str, source: str) -> Margin:
    """A margin as typed; a value without a number has no total.

    >>> margin_of("sex", "f = 510\\nm = 490\\nother =", "law").to_dict()["totals"]
    {'f': Fraction(510, 1), 'm': Fraction(490, 1)}

    Raises:
        OptionError: it is not valid; the line names the column.
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
    """The totals that can be typed: of each nominal column that is released, or that already has some."""
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
    """The statement's text about a weight; empty where that is undecided, or for another weight."""
    weight = recipe.schema.weight
    if weight is None or weight.name != attribute.name or recipe.raking == attribute.name:
        return ""
    return str(weight_words(recipe.schema) or "")


def release(session: StudioSession, number: int, value: str) -> None:
    """Choose the treatment of a weight. One that is to be raked and has no totals yet waits for them."""
    attribute = session.column(number)
    waiting = session.recipe.raking
    recipe = replace(session.recipe, raking="" if waiting == attribute.name else waiting)
    if value == RAKED and not recipe.schema.margins:
        _wait(session, attribute, recipe)
        return
    try:
        made = with_attribute(recipe.schema, attribute, replace(attribute, release=value or None))
    except ShoalError as error:
        session.drafts[attribute.name] = Draft({}, error, "check this")
        return
    _settle(session, attribute, replace(recipe, schema=made))


def give(session: StudioSession, number: int, form: Mapping[str, str]) -> None:
    """Set the public totals of one column, replacing the earlier ones."""
    attribute, recipe = session.column(number), session.recipe
    column, text, source = (form.get(name, "") for name in ("column", "totals", "source"))
    try:
        made = margin_of(column, text, source)
        margins = [margin for margin in recipe.schema.margins if margin.column != column]
        schema = replace(recipe.schema, margins=(*margins, made))
        if recipe.raking == attribute.name:
            schema = with_attribute(schema, attribute, replace(attribute, release=RAKED))
    except ShoalError as error:
        kept = {"column": column, "totals": text, "source": source}
        session.drafts[attribute.name] = Draft(kept, error, "check the totals")
        return
    raking = "" if recipe.raking == attribute.name else recipe.raking
    _settle(session, attribute, replace(recipe, schema=schema, raking=raking))


def take_away(session: StudioSession, number: int, column: str) -> None:
    """Remove the totals of a column; a weight that loses the last of them waits for others."""
    attribute, recipe = session.column(number), session.recipe
    margins = tuple(margin for margin in recipe.schema.margins if margin.column != column)
    if margins or attribute.release != RAKED:
        _settle(session, attribute, replace(recipe, schema=replace(recipe.schema, margins=margins)))
        return
    _wait(session, attribute, recipe)


def _wait(session: StudioSession, attribute: Attribute, recipe: Recipe) -> None:
    """Drop a weight that is to be raked until there are totals."""
    dropped = with_attribute(recipe.schema, attribute, replace(attribute, release=None))
    schema = replace(dropped, margins=())
    _settle(session, attribute, replace(recipe, schema=schema, raking=attribute.name))


def _settle(session: StudioSession, attribute: Attribute, recipe: Recipe) -> None:
    session.drafts.pop(attribute.name, None)
    session.settle(recipe)
    session.guarantee()


def change(session: StudioSession, number: int, what: str, value: Any, merge: str = "") -> None:
    """Change one fact about a column; invalid input is kept beside it, with the reason.

    Args:
        merge: consecutive changes with the same key are undone together.
    """
    attribute = session.column(number)
    if what == "publish":
        left_out = set(session.recipe.left_out) ^ {attribute.name}
        session.settle(replace(session.recipe, left_out=frozenset(left_out)))
        return
    found: Sequence[str] = ()
    if what in ("values", "ordered") and value is None:
        look(session, attribute.name)
        found = sorted(entry["value"] for entry in session.seen.listed(attribute)["values"])
    try:
        made = changed(attribute, what, value, found)
        # other columns may prevent it, such as a weight that is raked to its values
        _ = with_attribute(session.recipe.schema, attribute, made)
    except ShoalError as error:
        ends = dict(zip(("lo", "hi"), map(str, value), strict=True)) if what == "range" else {}
        session.drafts[attribute.name] = Draft(ends, error, short_problem(what, value, error))
        if what != "range":
            return
        # the old range was not meant
        made = replace(attribute, lo=None, hi=None)
    else:
        session.drafts.pop(attribute.name, None)
    if found:
        made = replace(made, source={**made.source, "domain": RECORDS})
    elif what in _SEEN and attribute.name in session.viewed:
        made = replace(made, source={fact: one for fact, one in made.source.items() if fact != "domain"})
    _replace(session, attribute, made, merge)
    if what == "type" and session.source is not None:
        session.table = read_declared(session.source.path, session.recipe.schema)
    if what in ("kind", "role"):
        session.guarantee()


def change_unit(session: StudioSession, what: str, value: str) -> None:
    """Change a fact about the unit of protection, such as the bound on its rows.

    Raises:
        OptionError: no column has the role of the unit.
    """
    unit = session.recipe.schema.unit
    if unit is None:
        raise OptionError("bound-needs-unit", option="bound")
    change(session, session.recipe.schema.names.index(unit.name), what, value)


def slide(session: StudioSession, number: int, end: str, place: int) -> None:
    """Move one end of a range by its position on the slider; an undeclared end starts where its slider is."""
    attribute = session.column(number)
    scale = session.seen.scale(attribute)
    if scale is None or end not in ("lo", "hi"):
        raise OptionError("column-no-slider", column=attribute.name, end=end)
    draft = session.drafts.get(attribute.name)
    lo, hi = range_words(attribute)
    if draft is not None and draft.typed:
        lo, hi = draft.typed.get("lo", lo), draft.typed.get("hi", hi)
    ends = {"lo": lo or scale.text(0), "hi": hi or scale.text(1000), end: scale.text(place)}
    change(session, number, "range", [ends["lo"], ends["hi"]], merge=f"{end} of {attribute.name}")


def _replace(session: StudioSession, old: Attribute, new: Attribute, merge: str) -> None:
    recipe = session.recipe
    schema = with_attribute(recipe.schema, old, new)
    # a column that is not a weight is not raked
    raking = recipe.raking if recipe.raking != new.name or new.role == "weight" else ""
    session.settle(replace(recipe, schema=schema, raking=raking), merge)


def recode(session: StudioSession, number: int, form: Mapping[str, str]) -> None:
    """Add a preprocessing step: bands, new names, a level, or values cut at the top or at the bottom."""
    attribute = session.column(number)
    told = dict(form)
    if not told.get("source") and attribute.name in session.viewed:
        told["source"] = RECORDS
    try:
        made = session.recipe.schema.with_steps(step_of(attribute, told))
        _ = made.stepped
    except ShoalError as error:
        session.drafts[attribute.name] = Draft({}, error, "check this")
        return
    session.drafts.pop(attribute.name, None)
    session.settle(replace(session.recipe, schema=made))
    session.guarantee()


def take_back(session: StudioSession, place: int) -> None:
    """Remove a preprocessing step."""
    schema = session.recipe.schema
    steps = tuple(step for number, step in enumerate(schema.steps) if number != place)
    session.settle(replace(session.recipe, schema=replace(schema, steps=steps)))
    session.guarantee()


def give_taxonomy(session: StudioSession, number: int, text: str, name: str = "") -> None:
    """Set a taxonomy from pasted text, or from the text of a file."""
    if not name:
        change(session, number, "taxonomy", text)
        return
    path = session.folder / f"taxonomy-{number}{Path(name).suffix}"
    private_text(path, text)
    try:
        change(session, number, "taxonomy", Taxonomy.load(path))
    except ShoalError as error:
        session.drafts[session.column(number).name] = Draft({}, named(error, path, name), "check this")
    finally:
        path.unlink(missing_ok=True)


def look(session: StudioSession, name: str) -> None:
    """Show the values of one column or of all, with their counts; the journal records it."""
    chosen = [a for a in session.recipe.schema.attributes if name in ("*", a.name)]
    for ranged, view in ((True, "histogram"), (False, "values")):
        session.show([a.name for a in chosen if a.kind_facts.ranged == ranged], view, "counts")
    session.viewed.update(a.name for a in chosen)
    # slider moves before and after it are two changes
    session.merged = ""


def set_rule(session: StudioSession, form: Mapping[str, str]) -> None:
    """Add a rule, or replace the one at a `place`; one that is not valid stays in its form, with the reason."""
    recipe = session.recipe
    rules = list(recipe.schema.rules)
    place = _place(session, form.get("place", ""))
    try:
        made = rule_of(form)
        if place is None:
            rules.append(made)
        else:
            rules[place] = made
        schema = replace(recipe.schema, rules=tuple(rules))
    except ShoalError as error:
        session.rule = Draft(dict(form), error)
        return
    session.rule = Draft({"kind": made.kind})
    session.settle(replace(recipe, schema=schema))


def choose_kind(session: StudioSession, kind: str) -> None:
    """Offer the fields of another kind of rule."""
    if kind not in RULE_KINDS:
        raise OptionError("rule-kind-unknown", found=kind, allowed=tuple(RULE_KINDS))
    typed = session.rule.typed
    session.rule = Draft({"kind": kind, "place": typed.get("place", ""), "source": typed.get("source", "")})


def change_rule(session: StudioSession, place: str) -> None:
    """Put a rule into the form, to be changed."""
    chosen = _place(session, place)
    if chosen is not None:
        session.rule = Draft({**rule_fields(session.recipe.schema.rules[chosen]), "place": str(chosen)})


def remove_rule(session: StudioSession, place: str) -> None:
    """Remove a rule; the form no longer changes it."""
    chosen, recipe = _place(session, place), session.recipe
    rules = tuple(rule for number, rule in enumerate(recipe.schema.rules) if number != chosen)
    session.rule = Draft({"kind": session.rule.typed["kind"]})
    session.settle(replace(recipe, schema=replace(recipe.schema, rules=rules)))


def _place(session: StudioSession, text: str) -> int | None:
    """The place of a rule in the schema; None for a new one."""
    if not text:
        return None
    if not text.isdigit() or int(text) >= len(session.recipe.schema.rules):
        raise OptionError("there-no-rule", found=text)
    return int(text)
