"""Looking costs: what was settled before the first look, and what differs from it now.

Settings that were fixed before anything was measured carry a promise. Whoever changes them after Judge was opened has
chosen by looking at the records, and the statement of the next release says so. Rehearsals show nobody's records.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from shoal.columns.attribute import RECORDS, Attribute
from shoal.method.models import MODELS
from shoal.method.presets import PRESETS
from shoal.studio.recipe import RAKED, Recipe

# facts about a column that a look at the records could have suggested
_FACTS = ("kind", "lo", "hi", "step", "ordered", "values", "taxonomy", "type", "decimals", "missing")


@dataclass
class Looks:
    """What one table has shown so far, in whichever tab.

    Attributes:
        columns: whose values were looked at.
        sealed: the settings that were fixed before the first look; None as long as nobody looked at a result, and where
            nothing was fixed before.
        judged: the measurements of a release of these records, or of a rehearsal on them, were shown.
    """

    columns: set[str] = field(default_factory=set)
    sealed: Recipe | None = None
    judged: bool = False

    def judge(self, recipe: Recipe) -> None:
        """The measurements of a release with this recipe are shown; the first look seals it."""
        if not self.judged:
            self.sealed = recipe
        self.judged = True

    def rehearse(self) -> None:
        """These people were rehearsed on for another table, and that is shown: nothing was fixed before such a look."""
        self.judged = True

    def tuned(self, recipe: Recipe) -> tuple[str, ...]:
        """What was chosen by looking at the records, by the names that a statement takes."""
        if not self.judged or self.sealed is None:
            return ()
        return differences(self.sealed, recipe)


def differences(fixed: Recipe, now: Recipe) -> tuple[str, ...]:
    """What was changed, by the names that `tuned` takes: method, settings, columns and domains.

    A setting that was bought by a private choice is not counted: its price is in the statement.
    """
    found = [] if fixed.method == now.method else ["method"]
    bought = {choice["setting"] for choice in now.bought.get("tuned_choice", ())}
    found += [
        name
        for name in PRESETS[now.method].adjustable
        if name not in bought and _setting(fixed, name) != _setting(now, name)
    ]
    if _released(fixed) != _released(now):
        found.append("columns")
    if (fixed.missing, fixed.outside) != (now.missing, now.outside):
        found.append("domains")
    before = {attribute.name: attribute for attribute in fixed.schema.stepped.attributes}
    found += [
        f"domain:{attribute.name}"
        for attribute in now.wanted
        if attribute.name not in before
        or _steps(fixed, attribute.name) != _steps(now, attribute.name)
        or (_facts(attribute) != _facts(before[attribute.name]) and not _told_before(attribute))
    ]
    return tuple(found)


def after_a_look(attribute: Attribute, changed: Attribute) -> Attribute:
    """A column that was changed after its values were looked at: the range is then known from these records."""
    if _facts(attribute) == _facts(changed):
        return changed
    return replace(changed, source={**changed.source, "domain": RECORDS})


def spoiled(recipe: Recipe) -> bool:
    """Whether choosing by looking leaves nothing of the promise."""
    return any(MODELS[model].guarantee and not MODELS[model].of_the_table for model in recipe.promise.models)


def _told_before(attribute: Attribute) -> bool:
    """A domain with this source taints a statement by itself."""
    return attribute.source.get("domain") == RECORDS


def _setting(recipe: Recipe, name: str) -> object:
    preset = PRESETS[recipe.method]
    if name not in preset.adjustable:
        return None
    return recipe.asked.get(name, getattr(preset, name))


def _facts(attribute: Attribute) -> tuple[object, ...]:
    return tuple(getattr(attribute, name) for name in _FACTS)


def _steps(recipe: Recipe, name: str) -> list[object]:
    return [step for step in recipe.schema.steps if step.column == name]


def _released(recipe: Recipe) -> list[object]:
    """The columns that are released, with their roles, and the weights that are made for them."""
    schema = recipe.schema
    raked = [a.name for a in schema.attributes if a.release == RAKED]
    return [*((a.name, a.role) for a in recipe.wanted), *((name, schema.margins) for name in raked)]
