"""Changes of what is declared about columns: each settles the next recipe, or keeps what was typed with the reason.

A range or list that is changed after the values were shown has no source any more: somebody has to name it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.columns.attribute import RECORDS, Attribute
from shoal.columns.declaration import read_declared
from shoal.errors import OptionError, ShoalError
from shoal.io.common import private_text
from shoal.studio.desk import Desk
from shoal.studio.editing import Draft, changed, range_words, short_problem, step_of
from shoal.studio.named import named
from shoal.studio.recipe import with_attribute
from shoal.taxonomy import Taxonomy

# what a look at the values could have suggested
_SEEN = ("range", "values", "ordered", "taxonomy", "rename", "step")


def change(desk: Desk, number: int, what: str, value: Any, merge: str = "") -> None:
    """Change one fact about a column; what cannot be is kept beside it, with the reason.

    Args:
        merge: changes with the same word in a row are one for undoing.
    """
    attribute = desk.column(number)
    if what == "publish":
        left_out = set(desk.recipe.left_out) ^ {attribute.name}
        desk.settle(replace(desk.recipe, left_out=frozenset(left_out)))
        return
    found: Sequence[str] = ()
    if what in ("values", "ordered") and value is None:
        look(desk, attribute.name)
        found = sorted(entry["value"] for entry in desk.seen.listed(attribute)["values"])
    try:
        made = changed(attribute, what, value, found)
        # other columns may be in its way, such as a weight that is raked to its values
        _ = with_attribute(desk.recipe.schema, attribute, made)
    except ShoalError as error:
        ends = dict(zip(("lo", "hi"), map(str, value), strict=True)) if what == "range" else {}
        desk.drafts[attribute.name] = Draft(ends, error, short_problem(what, value, error))
        if what != "range":
            return
        # the old range is not what was meant
        made = replace(attribute, lo=None, hi=None)
    else:
        desk.drafts.pop(attribute.name, None)
    if found:
        made = replace(made, source={**made.source, "domain": RECORDS})
    elif what in _SEEN and attribute.name in desk.viewed:
        made = replace(made, source={fact: one for fact, one in made.source.items() if fact != "domain"})
    _replace(desk, attribute, made, merge)
    if what == "type" and desk.source is not None:
        desk.table = read_declared(desk.source.path, desk.recipe.schema)
    if what in ("kind", "role"):
        desk.promise()


def slide(desk: Desk, number: int, end: str, place: int) -> None:
    """One end of a range by its place on the slider; an end that nobody named yet is where its slider stands."""
    attribute = desk.column(number)
    scale = desk.seen.scale(attribute)
    if scale is None or end not in ("lo", "hi"):
        raise OptionError("column-no-slider", column=attribute.name, end=end)
    draft = desk.drafts.get(attribute.name)
    lo, hi = range_words(attribute)
    if draft is not None and draft.typed:
        lo, hi = draft.typed.get("lo", lo), draft.typed.get("hi", hi)
    ends = {"lo": lo or scale.text(0), "hi": hi or scale.text(1000), end: scale.text(place)}
    change(desk, number, "range", [ends["lo"], ends["hi"]], merge=f"{end} of {attribute.name}")


def _replace(desk: Desk, old: Attribute, new: Attribute, merge: str) -> None:
    recipe = desk.recipe
    schema = with_attribute(recipe.schema, old, new)
    # what is no weight is not raked
    raking = recipe.raking if recipe.raking != new.name or new.role == "weight" else ""
    desk.settle(replace(recipe, schema=schema, raking=raking), merge)


def recode(desk: Desk, number: int, form: Mapping[str, str]) -> None:
    """One more step before protection: bands, new names, a level, or values cut at the top or at the bottom."""
    attribute = desk.column(number)
    told = dict(form)
    if not told.get("source") and attribute.name in desk.viewed:
        told["source"] = RECORDS
    try:
        made = desk.recipe.schema.with_steps(step_of(attribute, told))
        _ = made.stepped
    except ShoalError as error:
        desk.drafts[attribute.name] = Draft({}, error, "check this")
        return
    desk.drafts.pop(attribute.name, None)
    desk.settle(replace(desk.recipe, schema=made))
    desk.promise()


def take_back(desk: Desk, place: int) -> None:
    """A step before protection is not taken."""
    schema = desk.recipe.schema
    steps = tuple(step for number, step in enumerate(schema.steps) if number != place)
    desk.settle(replace(desk.recipe, schema=replace(schema, steps=steps)))
    desk.promise()


def give_taxonomy(desk: Desk, number: int, text: str, name: str = "") -> None:
    """A taxonomy that was pasted, or the text of a file of one."""
    if not name:
        change(desk, number, "taxonomy", text)
        return
    path = desk.folder / f"taxonomy-{number}{Path(name).suffix}"
    private_text(path, text)
    try:
        change(desk, number, "taxonomy", Taxonomy.load(path))
    except ShoalError as error:
        desk.drafts[desk.column(number).name] = Draft({}, named(error, path, name), "check this")
    finally:
        path.unlink(missing_ok=True)


def look(desk: Desk, name: str) -> None:
    """Show the values of a column, or those of all of them, with their counts; the journal notes it."""
    chosen = [a for a in desk.recipe.schema.attributes if name in ("*", a.name)]
    for ranged, view in ((True, "histogram"), (False, "values")):
        desk.show([a.name for a in chosen if a.kind_facts.ranged == ranged], view, "counts")
    desk.viewed.update(a.name for a in chosen)
    # what was moved before and after it are two changes
    desk.merged = ""
