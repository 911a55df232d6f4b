"""The session of one tab: its table, what is settled, what is shown, and the runs. Everything else is computed.

A desk changes by its methods only, one at a time; pages are rendered from it (`shoal.studio.views`).
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from shoal.columns.attribute import RECORDS, Attribute
from shoal.columns.declaration import read_declared
from shoal.columns.schema import Schema
from shoal.errors import OptionError, ShoalError
from shoal.io import Conventions, Table
from shoal.io.table import content_digest, fingerprint
from shoal.journal import Journal
from shoal.release.protect import prepare
from shoal.release.uses import Uses, domains_of
from shoal.studio import rehearsing
from shoal.studio.choosing import with_promise, with_setting, with_settings_of
from shoal.studio.editing import Draft
from shoal.studio.expecting import Expecting
from shoal.studio.named import named
from shoal.studio.preview import Memory, Preview, preview
from shoal.studio.promises import SLIDERS
from shoal.studio.recipe import Recipe
from shoal.studio.rehearsing import Another
from shoal.studio.runs import Run
from shoal.studio.seen import Seen
from shoal.text import Message
from shoal.tuning.private import METHOD

SURVEY = "survey.csv"
PEOPLE = 5_000


@dataclass(frozen=True, slots=True)
class Source:
    """The file a desk is about; one that was named on the command line stays where it is."""

    path: Path
    name: str
    size: int


class Desk:
    """The work of one tab."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.lock = threading.RLock()
        self.source: Source | None = None
        self.table: Table | None = None
        self.problem: Message | ShoalError | None = None
        self.told = ""
        self.reading = False
        self.drafts: dict[str, Draft] = {}
        self.open_column = ""
        self.runs: list[Run] = []
        self.shown = ""
        self.dot = ""
        self.ledger = ""
        self.dataset = ""
        self.another: Another | None = None
        self.another_problem: Message | ShoalError | None = None
        self.version = 0
        self._history: list[Recipe] = []
        self._place = -1
        self.mark = self.content = ""
        self.viewed: set[str] = set()
        self.rows_shown = False
        self.unrecorded = ""
        self._noted: set[Any] = set()
        self._memory = Memory()
        self._preview: tuple[Any, Preview] | None = None
        self._seen: Seen | None = None
        self.expecting = Expecting(folder)
        self.merged = ""

    # the table

    def open(
        self, path: Path, name: str, file: Conventions | None = None, schema: Schema | None = None
    ) -> None:
        """Read a file and begin anew with it; one that cannot be read leaves the desk as it was, and says why."""
        told = file or Conventions()
        self.problem, self.reading = None, True
        try:
            # taken first: of a file that changes meanwhile, something else is shown than will be compared
            mark = fingerprint(path)
            table = read_declared(path, schema, file=told)
            drafted = schema or _without_domains(Schema.draft(table, told))
        except ShoalError as error:
            self.problem = named(error, path, name)
            return
        finally:
            self.reading = False
        with self.lock:
            if self.source is not None and self.source.path != path:
                self._remove_copy()
                rehearsing.made_up(self)
            if self.mark != mark:
                self._remove_runs()
                self.viewed, self.rows_shown = set(), False
            if self.source is None or self.source.name != name:
                # proposed: a name that is declared later takes its place
                self.dataset = drafted.publication.name or Path(name).stem
            self.source = Source(path, name, path.stat().st_size)
            self.table, self.mark, self.drafts, self.open_column = table, mark, {}, ""
            self.content = content_digest(table)
            self._memory = Memory()
            self._history, self._place = [Recipe(drafted)], 0
            self.promise()

    def open_survey(self) -> None:
        """The made-up survey, with what its questionnaire says."""
        from shoal.io import write
        from shoal.survey import survey, survey_schema

        path = self.folder / SURVEY
        write(survey(PEOPLE), path)
        self.open(path, SURVEY, schema=survey_schema())
        # some savings are missing, and what becomes of them is a question for later
        self.settle(replace(self.recipe, left_out=frozenset({"savings"})))

    def reread(self, file: Conventions | None = None) -> None:
        """The same file: written in another way than was thought, or with what is declared, after it was changed."""
        if self.source is None:
            return
        if file is not None:
            self.open(self.source.path, self.source.name, file)
            return
        kept = self.recipe
        self.open(self.source.path, self.source.name, kept.schema.file, replace(kept.schema, steps=()))
        if not self.problem:
            self.settle(kept)

    def close(self) -> None:
        """The file is put away, and everything about it."""
        with self.lock:
            self._remove_runs()
            self._remove_copy()
            rehearsing.made_up(self)
            self.source, self.table, self._history, self._place = None, None, [], -1
            self.problem, self.told = None, ""

    @property
    def copied(self) -> bool:
        """Whether the file is a copy that belongs to this session, and not read where it lies."""
        return self.source is not None and self.folder in self.source.path.parents

    def _remove_copy(self) -> None:
        if self.source is not None and self.copied:
            self.source.path.unlink(missing_ok=True)

    @property
    def sheet(self) -> Table:
        """The table, where there has to be one."""
        if self.table is None:
            raise OptionError("there-no-table-desk")
        return self.table

    @property
    def seen(self) -> Seen:
        """What the table shows of its columns."""
        if self._seen is None or self._seen.table is not self.sheet:
            self._seen = Seen(self.sheet, self.viewed)
        return self._seen

    # what is settled

    @property
    def recipe(self) -> Recipe:
        if self._place < 0:
            raise OptionError("there-no-table-desk")
        return self._history[self._place]

    def settle(self, recipe: Recipe, merge: str = "") -> None:
        """One step on; what was undone before is gone.

        Args:
            merge: steps with the same word in a row, such as those of one slider, are undone together.
        """
        if recipe == self.recipe:
            return
        if not merge or merge != self.merged:
            self._place += 1
        self._history = [*self._history[: self._place], recipe]
        self.merged = merge

    def undo(self) -> None:
        self._place, self.merged = max(self._place - 1, 0), ""

    # the journal of use

    @property
    def uses(self) -> Uses:
        """The journal, seen from this table under the name that is declared for it."""
        return Uses(Journal.open(ledger=self.ledger or None), self.dataset, self.content)

    def show(self, names: Iterable[str], *views: str) -> None:
        """Facts about columns are about to be shown; the journal notes it, and before it what is declared by now."""
        uses, shown = self.uses, tuple(names)
        new = [name for name in shown if (self.dataset, name, views) not in self._noted]
        if not new:
            return
        self._noted |= {(self.dataset, name, views) for name in new}
        if domains := self._declared():
            uses.note("declared", domains, by="studio", domains=domains)
        uses.note("viewed", new, by="studio", views=list(views))
        self.unrecorded = str(uses.problem or "")

    def _declared(self) -> dict[str, dict[str, str]]:
        """What is declared about columns as a statement would hold it, as far as that is settled."""
        ahead = self.look_ahead()
        if ahead.prepared is not None:
            return domains_of(ahead.prepared.statement)
        broken = {problem.column for problem in ahead.problems}
        names = [a.name for a in self.recipe.taken if a.name not in broken]
        try:
            request = {**self.recipe.request, "columns": names}
            return domains_of(prepare(self.sheet, look=self._memory.look, **request).statement)
        except ShoalError:
            return {}

    def note_run(self, run: Run, kind: Literal["measured", "downloaded"]) -> None:
        """What a run made of these records is about to be shown or handed out; until then nobody has it."""
        uses = Uses(Journal.open(ledger=run.ledger or None), run.dataset, run.content)
        known = run.facts["use"]
        if not run.use:
            run.use = uses.note("released", known["domains"], by="studio", **known)
        if kind not in run.noted:
            run.noted |= {kind}
            # distributions and single rows of the original stand beside those of the release
            views = {"views": ["histogram", "rows"]} if kind == "measured" else {}
            uses.note(kind, known["domains"], by="studio", release=run.use, **views)
            self.unrecorded = str(uses.problem or "")

    @property
    def measured(self) -> bool:
        """Whether what a release under this name lost or risked was shown."""
        entries = self.uses.journal.entries(self.dataset)
        return any(entry.kind == "measured" or entry.facts.get("measured") for entry in entries)

    @property
    def first_measured(self) -> Run | None:
        """The first run of this tab whose measurements were shown; its settings were fixed before them."""
        return next((run for run in self.releases if not run.rehearsed and run.seen), None)

    def back_to_first(self) -> None:
        """The settings of the first run that was measured."""
        if self.first_measured is not None:
            self.settle(self.first_measured.recipe)

    def column(self, number: int) -> Attribute:
        attributes = self.recipe.schema.attributes
        if not 0 <= number < len(attributes):
            raise OptionError("desk-there-no-column", number=number + 1)
        return attributes[number]

    # the promise

    def promise(self, card: str | None = None, method: str | None = None) -> None:
        """A promise or a method is chosen, or the columns that they depend on were changed."""
        self.settle(with_promise(self.recipe, self.sheet.n, card, method))

    def set(self, name: str, value: str, merge: str = "") -> None:
        """A setting as it was typed."""
        self.settle(with_setting(self.recipe, name, value), merge)

    def slide(self, name: str, place: int) -> None:
        """A setting by its place on the slider."""
        self.set(name, SLIDERS[name].value(place, self.sheet.n), merge=name)

    def take(self, settings: Mapping[str, Any]) -> None:
        """The settings of a run or of a dot; whether that was a look at the records is known by itself."""
        self.settle(with_settings_of(self.recipe, settings))

    def look_ahead(self) -> Preview:
        """What a release would promise as things stand; asked often, computed once."""
        uses = self.uses
        entries = uses.journal.entries()
        noted = len(entries), entries[-1].id if entries else ""
        key = (self.recipe, self._sources(), self.dataset, noted, id(self.table))
        if self._preview is None or self._preview[0] != key:
            self._preview = key, preview(self.sheet, self.recipe, uses, self._memory)
        return self._preview[1]

    def _sources(self) -> tuple[Any, ...]:
        return tuple(tuple(a.source.items()) for a in self.recipe.schema.attributes)

    @property
    def can_buy(self) -> bool:
        """Whether k can be chosen privately: the claim must add up with the price."""
        found = self.look_ahead()
        if found.prepared is None or self.recipe.method != METHOD:
            return False
        return found.prepared.statement.model == "dp"

    # runs

    @property
    def releases(self) -> list[Run]:
        """The runs that there is something to see of."""
        return [run for run in self.runs if run.kind in ("release", "rehearse") and run.state == "done"]

    @property
    def shown_runs(self) -> list[Run]:
        """Those of them that may be drawn beside another: one of these records is shown by opening it, and only so."""
        return [run for run in self.releases if run.rehearsed or run.seen]

    @property
    def running(self) -> Run | None:
        return next((run for run in self.runs if run.state == "running"), None)

    def run_of(self, letter: str) -> Run:
        found = next((run for run in self.runs if run.letter == letter), None)
        if found is None:
            raise OptionError("there-no-run", letter=letter)
        return found

    @property
    def rehearses_first(self) -> bool:
        """Whether a rehearsal comes before the first real run: the claim rests on settings fixed beforehand."""
        if any(run.rehearsed for run in self.releases):
            return False
        return self.recipe.fixed_beforehand and not self.measured

    @property
    def expected(self) -> str | None:
        """How long a run would take, in words; None as long as nobody asked."""
        return self.expecting.words(self.recipe, self.sheet.n)

    def drop(self, run: Run) -> None:
        run.remove()
        self.runs.remove(run)

    def cancel(self) -> None:
        run = self.running
        if run is not None:
            self.told = run.cancel()
            self.runs.remove(run)
            self.version += 1

    def judge(self, letter: str = "") -> Run | None:
        """The run that Judge shows; the journal notes it where it is about these records."""
        if not self.releases:
            return None
        wanted = letter or self.shown
        run = next((one for one in self.releases if one.letter == wanted), self.releases[-1])
        self.shown = run.letter
        run.seen = True
        if not run.rehearsed:
            self.note_run(run, "measured")
        return run

    @property
    def to_publish(self) -> Run | None:
        """The run to publish: the one that was judged last, or the only one."""
        real = [run for run in self.releases if not run.rehearsed]
        return next((run for run in real if run.letter == self.shown), real[-1] if real else None)

    def _remove_runs(self) -> None:
        self.expecting.stop()
        for run in self.runs:
            run.cancel()
            run.remove()
        self.runs, self.shown = [], ""

    def remove(self) -> None:
        """The tab is gone, with its runs and files."""
        self._remove_runs()
        shutil.rmtree(self.folder, ignore_errors=True)


def _without_domains(schema: Schema) -> Schema:
    """Ranges and rows per person are never filled in from the data; common knowledge is for a person to confirm."""
    made = tuple(
        replace(
            a,
            lo=None,
            hi=None,
            max_rows=None,
            source={fact: origin for fact, origin in a.source.items() if fact != "max_rows"}
            | ({"domain": RECORDS} if a.source and a.lo is not None else {}),
        )
        for a in schema.attributes
    )
    return replace(schema, attributes=made)
