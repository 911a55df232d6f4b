"""What a release would state, before anything is run: its statement, problems, noise to expect and recipe."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shoal.columns.declaration import Declaration
from shoal.columns.describe import Described
from shoal.errors import ShoalError
from shoal.io import Table
from shoal.journal import Match
from shoal.method.recipe import settled_text
from shoal.method.verdict import MOST_RANGE_ERROR, PublicVerdict
from shoal.release.expected_noise import CALM, ExpectedNoise, drowned, noise_of
from shoal.release.leaving import public_schema
from shoal.release.protect import Angle, Preparation, look_at, prepare
from shoal.release.uses import Uses
from shoal.report.words import Explanation, explanation
from shoal.studio.recipe import RAKED, Recipe, with_attribute
from shoal.studio.rendering import capital
from shoal.text import Message

# 95 of 100 draws of Laplace noise are nearer than so many standard deviations, and about as many of other noise
_WIDTH = math.log(20) / math.sqrt(2)
_KEPT = 8
# problems with missing values, and with values that may have to become missing
_ABOUT_GAPS = (
    "missing-values",
    "column-declared-missing-category-takes-method",
    "column-group-taxonomy-name-missing-values",
    "unit-column-missing-values",
)
_ABOUT_VALUES = (
    "not-a-number",
    "not-a-number-with-signs",
    "half-numbers",
    "half-dates",
    "column-row-lies-none-bands-recoding",
)


class Memory:
    """What was seen of one table: the same declaration needs no second look."""

    def __init__(self) -> None:
        self._seen: dict[Any, tuple[Described, tuple[ShoalError, ...]]] = {}

    def look(
        self, table: Table, declared: Declaration, angle: Angle
    ) -> tuple[Described, tuple[ShoalError, ...]]:
        sources = (
            ()
            if declared.schema is None
            else tuple(tuple(attribute.source.items()) for attribute in declared.schema.attributes)
        )
        key = (
            id(table),
            declared.schema,
            sources,
            declared.columns,
            declared.outside,
            declared.missing,
            declared.na,
            angle,
        )
        if key not in self._seen:
            while len(self._seen) >= _KEPT:
                del self._seen[next(iter(self._seen))]
            self._seen[key] = look_at(table, declared, angle)
        return self._seen[key]


@dataclass(frozen=True, slots=True)
class Problem:
    """What stands in the way, and the way out as a button.

    Attributes:
        column: the column to go to, empty for none.
        fixes: by their words, what each sends to the desk.
    """

    message: Message
    column: str = ""
    fixes: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    @property
    def code(self) -> str:
        return self.message.code

    @property
    def sentence(self) -> str:
        return capital(str(self.message))


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of one column as the page draws it."""

    column: str
    words: str
    share: float | None
    loud: bool


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """What readers will read, or what is in the way.

    Attributes:
        statement: as plain values; None where there are problems.
        noise_note: what the widths are, or why there are none.
        fix_k: a k that brings noise to a tenth of the ranges; None where that is no way out.
        recipe: the text of `method.toml`.
    """

    problems: tuple[Problem, ...]
    statement: Mapping[str, Any] | None = None
    explained: Explanation | None = None
    verdict: PublicVerdict | None = None
    noise: tuple[Noise, ...] = ()
    noise_note: str = ""
    advice: tuple[Message, ...] = ()
    fix_k: int | None = None
    recipe: str = ""
    prepared: Preparation | None = None

    @property
    def ready(self) -> bool:
        return not self.problems


def preview(table: Table, recipe: Recipe, uses: Uses, memory: Memory | None = None) -> Preview:
    """What a release with this recipe would say about itself; no budget is spent.

    Args:
        uses: what the journal of use records under the name of the data set, and what it asks.
    """
    if not recipe.wanted:
        return Preview((Problem(Message("no-column-ticked"), "*"),))
    problems = (*waiting(recipe), *map(_question, uses.matches))
    try:
        prepared = prepare(table, look=(memory or Memory()).look, **recipe.request)
    except ShoalError as error:
        problems += tuple(_problem(one, table, recipe) for one in error.problems)
    if problems:
        return Preview(problems)
    prepared = uses.stated(prepared)
    # with the table's own number of rows: what is shown here stays with the custodian
    foreseen = prepared.foreseen
    statement = foreseen.to_dict()
    noise = noise_of(prepared.method, prepared.described, prepared.plan)
    loud = drowned(noise, prepared.method, prepared.described.n)
    return Preview(
        (),
        statement,
        explanation(statement),
        foreseen.verdict,
        tuple(map(_drawn, noise)),
        _noise_note(noise, prepared),
        tuple(said for said in (loud, *_careful(prepared)) if said is not None),
        _enough(noise, prepared),
        recipe_text(prepared),
        prepared,
    )


def _question(match: Match) -> Problem:
    """Records that are known under another name: what the custodian answers is a declaration, and is kept."""
    return Problem(
        Message.of("same-records-question", question=match.words),
        fixes=(
            ("Yes, the same records", {"what": "same", "value": match.answer}),
            ("No, other records", {"what": "not same", "value": match.answer}),
        ),
    )


def waiting(recipe: Recipe) -> tuple[Problem, ...]:
    """A weight that is to be raked, and to nothing yet: the problem that its schema would have."""
    schema = recipe.schema
    if not recipe.raking:
        return ()
    try:
        with_attribute(schema, schema[recipe.raking], replace(schema[recipe.raking], release=RAKED))
    except ShoalError as error:
        return (Problem(error.message, recipe.raking),)
    return ()


def recipe_text(prepared: Preparation) -> str:
    """The recipe of a release that was not made yet, as its bundle would hold it."""
    schema = public_schema(prepared.described, prepared.declared)
    return settled_text(prepared.method, schema, prepared.declared, prepared.described.columns)


def command_text(name: str, dataset: str) -> str:
    """The same release on the command line. Settings come from the recipe: no flag carries the sources."""
    file, data_set = map(shlex.quote, (name, dataset))
    return f"shoal protect {file} --config method.toml --dataset {data_set} --out release"


def script_text(name: str, dataset: str) -> str:
    """The same release as a script."""
    asked = f'**load_recipe("method.toml"), dataset={json.dumps(dataset, ensure_ascii=False)}, out="release"'
    return (
        "import shoal\n"
        "from shoal.method.recipe import load_recipe\n\n"
        f"shoal.publish({json.dumps(name, ensure_ascii=False)}, {asked})\n"
    )


def _careful(prepared: Preparation) -> tuple[Message, ...]:
    """What a careful colleague would say, without what is said about columns that were left out on purpose."""
    return tuple(note for note in prepared.described.notes if note.code != "column-not-released")


def _drawn(found: ExpectedNoise) -> Noise:
    if found.standard_deviation is None or found.share_of_range is None:
        return Noise(found.column, found.why, None, False)
    width = _WIDTH * found.standard_deviation
    shown = f"{width:,.3g}" if width < 1000 else f"{width:,.0f}"
    return Noise(
        found.column,
        f"± {shown}",
        min(_WIDTH * found.share_of_range, 1.0),
        found.share_of_range >= MOST_RANGE_ERROR,
    )


def _noise_note(noise: tuple[ExpectedNoise, ...], prepared: Preparation) -> str:
    if not any(found.standard_deviation is not None for found in noise):
        why = next((found.reason for found in noise if found.reason is not None), None)
        return "" if why is None else capital(str(Message.of("noise-not-foreseen", reason=why)))
    return str(Message("width-of-values" if prepared.method.size == 1 else "width-of-averages"))


def _enough(noise: tuple[ExpectedNoise, ...], prepared: Preparation) -> int | None:
    shares = [found.share_of_range or 0.0 for found in noise]
    if not shares or max(shares) < MOST_RANGE_ERROR or "k" not in prepared.method.parameters():
        return None
    enough = math.ceil(prepared.method.size * max(shares) / CALM)
    return enough if enough <= prepared.described.n // 4 else None


def _problem(error: ShoalError, table: Table, recipe: Recipe) -> Problem:
    """A problem of the library with what can be done about it on a page."""
    fixes: list[tuple[str, Mapping[str, Any]]] = []
    if error.option == "outside":
        fixes.append(("Cut values at the ends of the range", {"what": "outside", "value": "clip"}))
    if error.option == "k":
        fixes.append(
            ("Take a smaller k", {"what": "setting", "name": "k", "value": str(max(table.n // 10, 2))})
        )
    if error.code in (*_ABOUT_GAPS, *_ABOUT_VALUES) and error.column:
        facts = recipe.schema[error.column].kind_facts
        if error.code in _ABOUT_GAPS and not facts.ordered:
            fixes.append(("Count missing as one more value", {"what": "missing", "value": "category"}))
        fixes.append(("Leave the column out", {"what": "leave", "value": error.column}))
    return Problem(error.message, error.column or "", tuple(fixes))
