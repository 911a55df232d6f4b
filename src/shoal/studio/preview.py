"""Preview a release before it runs: statement, expected noise and time.

The page requests a preview once it is idle. A change of settings cancels it; no budget is used and no record is read.
"""

from __future__ import annotations

import json
import math
import secrets
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from shoal.columns import POLICIES, RECORDS, SOURCES, Declaration, Described
from shoal.errors import CodeAndFacts, ShoalError
from shoal.io import Table
from shoal.journal import Match
from shoal.mechanisms import method_class, settled_text
from shoal.privacy import (
    CANNOT_CHECK,
    DECISIONS,
    MOST_RANGE_ERROR,
    NOTHING_RECORDED,
    PublicVerdict,
    three_parts,
)
from shoal.release import (
    CALM,
    Angle,
    BoundForecast,
    DeltaComparison,
    ExpectedNoise,
    Preparation,
    Uses,
    compared_with_delta,
    describe_table,
    drowned,
    noise_by_bound,
    noise_of,
    prepare,
    public_schema,
    rule_effects,
)
from shoal.report import Explanation, explanation
from shoal.studio import runs
from shoal.studio.edit import KINDS, ROLES, TYPES
from shoal.studio.guarantee import OFF, ON, RAKED, Recipe, with_attribute
from shoal.studio.runs import StudioRun
from shoal.text import Message
from shoal.text import capital as begun

HERE = Path(__file__).parent
LIGHTS: Mapping[str, str] = {"green": "good", "amber": "warn", "red": "bad"}
# 95% of draws of Laplace noise lie within this many standard deviations, and about as many of other noise
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
_TRIALS_KEPT = 20


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)
    made.filters["cap"] = capital
    made.filters["light"] = lambda level: LIGHTS[level]
    made.filters["three_parts"] = three_parts
    made.globals.update(
        ROLES=ROLES, KINDS=KINDS, TYPES=TYPES, SOURCES=SOURCES, POLICIES=POLICIES, ON=ON, OFF=OFF
    )
    made.globals.update(DECISIONS=DECISIONS, RECORDS=RECORDS)
    made.globals.update(CANNOT_CHECK=CANNOT_CHECK, NOTHING_RECORDED=NOTHING_RECORDED)
    return made


def capital(said: object) -> str:
    """Capitalise a sentence, unless it begins with the symbol of a setting.

    >>> capital("values move"), capital("k was chosen"), capital("a row")
    ('Values move', 'k was chosen', 'A row')
    """
    text = said.rendered(_SIGNS.get) if isinstance(said, (Message, CodeAndFacts)) else str(said)
    first = text.partition(" ")[0]
    return text if len(first) == 1 and first in "klt" else begun(text)


# options that the page shows by their sign
_SIGNS: Mapping[str, str] = {"delta": "δ", "epsilon": "ε"}


def render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


def fragment(into: str, html: str) -> str:
    """A part of a page and the element that it replaces."""
    return f'<template data-into="{into}">{html}</template>'


class Memory:
    """A cache for one table: the same declarations are not read twice."""

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
            self._seen[key] = describe_table(table, declared, angle)
        return self._seen[key]


@dataclass(frozen=True, slots=True)
class PreviewProblem:
    """A problem that prevents the release, and a button that resolves it.

    Attributes:
        column: the column concerned, empty for none.
        fixes: by button text, the request that each sends.
    """

    message: Message
    column: str = ""
    fixes: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    @property
    def code(self) -> str:
        return self.message.code

    @property
    def sentence(self) -> str:
        return capital(self.message)


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of one column as the page draws it."""

    column: str
    words: str
    share: float | None
    loud: bool


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """The statement that readers will get, or the problems that prevent it.

    Attributes:
        statement: as plain values; None where there are problems.
        noise_note: the meaning of the widths, or why there are none.
        compared: the expected error without and with a δ, for methods that take one.
        rules: what the rules between columns change.
        bounds: the expected error for several bounds on the rows of a unit.
        fix_k: a k that brings noise to a tenth of the ranges; None where there is none.
        recipe: the text of `method.toml`.
    """

    problems: tuple[PreviewProblem, ...]
    statement: Mapping[str, Any] | None = None
    explained: Explanation | None = None
    verdict: PublicVerdict | None = None
    noise: tuple[Noise, ...] = ()
    noise_note: str = ""
    advice: tuple[Message, ...] = ()
    fix_k: int | None = None
    recipe: str = ""
    prepared: Preparation | None = None
    compared: DeltaComparison | None = None
    rules: tuple[Message, ...] = ()
    bounds: tuple[BoundForecast, ...] = ()

    @property
    def ready(self) -> bool:
        return not self.problems


def preview(table: Table, recipe: Recipe, uses: Uses, memory: Memory | None = None) -> Preview:
    """The statement of a release with this recipe; no budget is spent.

    Args:
        uses: the entries of the journal under the name of the data set, and its questions.
    """
    if not recipe.wanted:
        return Preview((PreviewProblem(Message("no-column-ticked"), "*"),))
    problems = (*waiting(recipe), *map(_question, uses.matches))
    try:
        prepared = prepare(table, look=(memory or Memory()).look, **recipe.request)
    except ShoalError as error:
        problems += tuple(_problem(one, table, recipe) for one in error.problems)
    if problems:
        return Preview(problems)
    prepared = uses.stated(prepared)
    # with the table's own number of rows: the preview stays with the custodian
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
        compared_with_delta(prepared.method, prepared.described),
        rule_effects(prepared.method, prepared.described, prepared.plan),
        noise_by_bound(prepared.method, prepared.described),
    )


def _question(match: Match) -> PreviewProblem:
    """A question about records known under another name; the custodian's answer is recorded as a declaration."""
    return PreviewProblem(
        Message.of("same-records-question", question=match.words),
        fixes=(
            ("Yes, the same records", {"what": "same", "value": match.answer}),
            ("No, different records", {"what": "not same", "value": match.answer}),
        ),
    )


def waiting(recipe: Recipe) -> tuple[PreviewProblem, ...]:
    """A weight that is to be raked but has no totals yet: the problem that its schema would have."""
    schema = recipe.schema
    if not recipe.raking:
        return ()
    try:
        with_attribute(schema, schema[recipe.raking], replace(schema[recipe.raking], release=RAKED))
    except ShoalError as error:
        return (PreviewProblem(error.message, recipe.raking),)
    return ()


def recipe_text(prepared: Preparation) -> str:
    """The recipe of a release not made yet, as its bundle would hold it."""
    schema = public_schema(prepared.described, prepared.declared)
    return settled_text(prepared.method, schema, prepared.declared, prepared.described.columns)


def command_text(name: str, dataset: str) -> str:
    """The same release on the command line. Settings come from the recipe: flags cannot give the sources."""
    file, data_set = map(shlex.quote, (name, dataset))
    return f"shoal protect {file} --config method.toml --dataset {data_set} --out release"


def script_text(name: str, dataset: str) -> str:
    """The same release as a script."""
    asked = f'**load_recipe("method.toml"), dataset={json.dumps(dataset, ensure_ascii=False)}, out="release"'
    return (
        "import shoal\n"
        "from shoal.mechanisms.registry import load_recipe\n\n"
        f"shoal.publish({json.dumps(name, ensure_ascii=False)}, {asked})\n"
    )


def _careful(prepared: Preparation) -> tuple[Message, ...]:
    """Advice, without the parts about columns that were left out on purpose."""
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


def _problem(error: ShoalError, table: Table, recipe: Recipe) -> PreviewProblem:
    """A problem of the library with its possible fixes on a page."""
    fixes: list[tuple[str, Mapping[str, Any]]] = []
    if error.option == "outside":
        fixes.append(("Clip values to the range", {"what": "outside", "value": "clip"}))
    if error.code == "bound-needs-add-remove" and "neighbours" in method_class(recipe.method).parameters():
        sent = {"what": "setting", "name": "neighbours", "value": "add-remove"}
        fixes.append(("Use add-remove adjacency", sent))
    if error.option == "k":
        fixes.append(
            ("Use a smaller k", {"what": "setting", "name": "k", "value": str(max(table.n // 10, 2))})
        )
    if error.code in (*_ABOUT_GAPS, *_ABOUT_VALUES) and error.column:
        facts = recipe.schema[error.column].kind_facts
        if error.code in _ABOUT_GAPS and not facts.ordered:
            fixes.append(("Treat missing as a separate value", {"what": "missing", "value": "category"}))
        fixes.append(("Leave the column out", {"what": "leave", "value": error.column}))
    # rules are on the page of columns
    about_rules = error.code.startswith("rule")
    return PreviewProblem(error.message, error.column or ("*" if about_rules else ""), tuple(fixes))


class Expecting:
    """The known estimates of running times, by settings."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Any, str] = {}
        self._trial: StudioRun | None = None

    def words(self, recipe: Recipe, rows: int) -> str | None:
        """The time of a run as text; None until requested, empty where it cannot be estimated."""
        return self._known.get(_key(recipe, rows))

    def ask(
        self, recipe: Recipe, rows: int, job: Mapping[str, Any], told: Callable[[StudioRun], None]
    ) -> None:
        """Start an estimate, unless it is known or in progress; an estimate for other settings is cancelled."""
        key = _key(recipe, rows)
        if key in self._known:
            return
        if self._trial is not None and self._trial.state == "running":
            if _key(self._trial.recipe, rows) == key:
                return
            self.stop()
        run = StudioRun("", "expect", recipe, self._folder / f"expected-{secrets.token_hex(4)}")

        def heard(trial: StudioRun) -> None:
            if trial.state in ("done", "failed"):
                while len(self._known) >= _TRIALS_KEPT:
                    del self._known[next(iter(self._known))]
                self._known[key] = trial.expected
                trial.remove()
                told(trial)

        self._trial = run
        runs.start(run, job, heard)

    def stop(self) -> None:
        """Cancel the estimate, because it is no longer needed or a run needs the processor."""
        if self._trial is not None:
            self._trial.cancel()
            self._trial.remove()
            self._trial = None


def _key(recipe: Recipe, rows: int) -> tuple[Any, ...]:
    return recipe.method, tuple(sorted(recipe.settings.items())), recipe.schema, recipe.left_out, rows
