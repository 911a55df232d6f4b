"""Sessions: the state of one browser tab, and all tabs of a server.

A session changes only through its methods, one at a time; pages are rendered from it (`shoal.studio.views`).

The folder is removed when the studio ends. A killed studio leaves its folder behind; the next start removes it.

All of it is private, and shown on request only, which the journal of use records (`StudioSession.show`).

The rehearsal views show nothing of the table. The journal records that the other file was rehearsed on, and asks
about it when that file is opened as a table.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import os
import re
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from shoal.columns import RECORDS, Attribute, Schema, common_range, read_declared
from shoal.errors import OptionError, ProblemsError, ShoalError
from shoal.io import Conventions, Table, content_digest, fingerprint
from shoal.journal import Journal
from shoal.release import Uses, domains_of, people_of, prepare
from shoal.studio import facts
from shoal.studio.edit import Draft, with_column, with_guarantee, with_setting, with_settings_of
from shoal.studio.guarantee import SLIDERS, Recipe, SliderScale, around
from shoal.studio.preview import Expecting, Memory, Preview, preview
from shoal.studio.runs import StudioRun
from shoal.text import Message
from shoal.tuning import METHOD

SURVEY = "survey.csv"
PEOPLE = 5_000
_PREFIX = "shoal-studio-"
_LOCK = ".lock"
_NAME = re.compile(r"[A-Za-z0-9_-]{8,64}")
LIMIT = 2 * 10**9
NEW_RULE = Draft({"kind": "order"})


def named(error: ShoalError, path: Path | None, name: str) -> ShoalError:
    """The error about the same file under another name.

    >>> from shoal.errors import InputError
    >>> str(named(InputError("there-no-file", file=Path("copies/1.csv")), Path("copies/1.csv"), "people.csv"))
    "there is no file 'people.csv'."
    """
    if path is None:
        return error
    if len(error.problems) > 1:
        return ProblemsError([named(problem, path, name) for problem in error.problems])
    found = copy.copy(error)
    found.facts = _renamed(error.facts, path, name)
    return found


def _renamed(facts: Mapping[str, Any], path: Path, name: str) -> dict[str, Any]:
    return {fact: _fact(value, path, name) for fact, value in facts.items()}


def _fact(value: Any, path: Path, name: str) -> Any:
    if isinstance(value, ShoalError):
        return named(value, path, name)
    if isinstance(value, Message):
        return Message(value.code, _renamed(value.facts, path, name))
    # messages of other libraries and the system may contain it
    return str(value).replace(str(path), name) if isinstance(value, (str, Path, Exception)) else value


class Another:
    """Another table with the same columns, to rehearse on.

    Attributes:
        mark: digest of its records.
        rows: its number of rows.
    """

    def __init__(self, path: Path, name: str, mark: str, rows: int) -> None:
        self.path, self.name, self.mark, self.rows = path, name, mark, rows
        self._memory = Memory()
        self._read: tuple[object, tuple[Table, Schema | None]] | None = None
        self._known: tuple[Recipe, tuple[Message, ...]] | None = None

    def problems(self, recipe: Recipe) -> tuple[Message, ...]:
        """What prevents a rehearsal on it with these settings; computed once."""
        if self._known is None or self._known[0] != recipe:
            self._known = recipe, self._problems(recipe)
        return self._known[1]

    def _problems(self, recipe: Recipe) -> tuple[Message, ...]:
        asked = recipe.request
        key = recipe.schema, asked["columns"]
        try:
            if self._read is None or self._read[0] != key:
                found = people_of(self.path, recipe.schema, recipe.method, None, None, 0, columns=key[1])
                self._read = key, found
            table, schema = self._read[1]
            prepare(table, look=self._memory.look, **{**asked, "schema": schema})
        except ShoalError as error:
            wrong = (named(one, self.path, self.name) for one in error.problems)
            return tuple(Message.of("in-another-table", name=self.name, reason=one) for one in wrong)
        return ()


def choose(session: StudioSession, path: Path | None = None, name: str = "") -> None:
    """Choose a file to rehearse on; without one, synthetic records.

    An unusable file leaves the choice unchanged, and the session gives the reason.
    """
    try:
        found = None if path is None else _opened(session, path, name)
        with session.lock:
            if session.running is not None:
                # it may be reading the file that would be removed
                raise OptionError("a-run-is-on-its-way")
            made_up(session)
            session.another = found
    except ShoalError as error:
        session.another_problem = named(error, path, name)
        _remove_copy(session, path)


def _opened(session: StudioSession, path: Path, name: str) -> Another:
    table = read_declared(path, file=session.recipe.schema.file)
    mark = content_digest(table)
    if mark == session.content:
        raise OptionError("holds-records-table-itself", name=name)
    return Another(path, name, mark, table.n)


def made_up(session: StudioSession) -> None:
    """Rehearse on synthetic records; a copy of another file is removed."""
    if session.another is not None:
        _remove_copy(session, session.another.path)
    session.another = session.another_problem = None


def _remove_copy(session: StudioSession, path: Path | None) -> None:
    if path is not None and session.folder in path.parents:
        path.unlink(missing_ok=True)


class Seen:
    """The facts about the columns of one table that were shown.

    Attributes:
        viewed: the columns whose values the user asked to see.
    """

    def __init__(self, table: Table, viewed: AbstractSet[str]) -> None:
        self.table, self.viewed = table, viewed
        self._gaps: dict[str, int] = {}
        self._listed: dict[Attribute, dict[str, Any]] = {}
        self._pictures: dict[Any, dict[str, Any]] = {}
        self._scales: dict[str, tuple[bool, SliderScale]] = {}

    def gaps(self, attribute: Attribute) -> int:
        """Number of missing cells of a column."""
        if attribute.name not in self._gaps:
            self._gaps[attribute.name] = facts.gaps(self.table, attribute)
        return self._gaps[attribute.name]

    def listed(self, attribute: Attribute) -> dict[str, Any]:
        """The values of a nominal column."""
        if attribute not in self._listed:
            self._listed[attribute] = facts.listed(self.table, attribute)
        return self._listed[attribute]

    def picture(self, attribute: Attribute) -> dict[str, Any]:
        """The values of a column with a range, drawn on its scale."""
        key = attribute, self.scale(attribute)
        if key not in self._pictures:
            self._pictures[key] = facts.histogram(self.table, *key)
        return self._pictures[key]

    def scale(self, attribute: Attribute) -> SliderScale | None:
        """The scale of a column with a range; it is fixed while a slider on it is moved."""
        viewed = attribute.name in self.viewed
        declared = attribute.lo is not None and attribute.hi is not None
        ends = (float(attribute.lo or 0), float(attribute.hi or 0)) if declared else None
        kept, scale = self._scales.get(attribute.name, (None, None))
        if scale is not None and kept == viewed and (ends is None or scale.holds(*ends)):
            return scale
        known = (
            [ends, facts.reach(self.table, attribute)] if viewed else [ends or common_range(attribute.name)]
        )
        found = [float(end) for pair in known if pair is not None for end in pair]
        if not found:
            return None
        days, whole = attribute.kind_facts.days, attribute.type == "integer"
        made = around((min(found), max(found)), shown=viewed, whole=whole, days=days)
        self._scales[attribute.name] = viewed, made
        return made


@dataclass(frozen=True, slots=True)
class SessionFile:
    """The file of a session; one named on the command line is read in place."""

    path: Path
    name: str
    size: int


class StudioSession:
    """The state of one tab."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.lock = threading.RLock()
        self.source: SessionFile | None = None
        self.table: Table | None = None
        self.problem: Message | ShoalError | None = None
        self.told = ""
        self.reading = False
        self.drafts: dict[str, Draft] = {}
        self.rule = NEW_RULE
        self.open_column = ""
        self.runs: list[StudioRun] = []
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
        """Read a file and start over with it; an unreadable file leaves the session unchanged and sets the reason."""
        told = file or Conventions()
        self.problem, self.reading = None, True
        try:
            # taken first: if the file changes meanwhile, what is shown no longer matches, and that must be detected
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
                made_up(self)
            if self.mark != mark:
                self._remove_runs()
                self.viewed, self.rows_shown = set(), False
            if self.source is None or self.source.name != name:
                # a proposal: a name declared later replaces it
                self.dataset = drafted.publication.name or Path(name).stem
            self.source = SessionFile(path, name, path.stat().st_size)
            self.table, self.mark, self.drafts, self.open_column = table, mark, {}, ""
            self.rule = NEW_RULE
            self.content = content_digest(table)
            self._memory = Memory()
            self._history, self._place = [Recipe(drafted)], 0
            self.guarantee()

    def open_survey(self) -> None:
        """Open the synthetic survey, with the declarations of its questionnaire."""
        from shoal.io import write
        from shoal.survey import survey, survey_schema

        path = self.folder / SURVEY
        write(survey(PEOPLE), path)
        self.open(path, SURVEY, schema=survey_schema())
        # some savings are missing; their treatment is decided later
        self.settle(replace(self.recipe, left_out=frozenset({"savings"})))

    def reread(self, file: Conventions | None = None) -> None:
        """Reread the same file: with another text format, or with its declarations after it was changed."""
        if self.source is None:
            return
        if file is not None:
            self.open(self.source.path, self.source.name, file)
            return
        kept = self.recipe
        # rules are about columns as they are after the steps
        bare = replace(kept.schema, rules=(), steps=())
        self.open(self.source.path, self.source.name, kept.schema.file, bare)
        if not self.problem:
            self.settle(kept)

    def close(self) -> None:
        """Close the file and forget everything about it."""
        with self.lock:
            self._remove_runs()
            self._remove_copy()
            made_up(self)
            self.source, self.table, self._history, self._place = None, None, [], -1
            self.problem, self.told = None, ""

    @property
    def copied(self) -> bool:
        """Whether the file is a copy that belongs to this session, rather than read in place."""
        return self.source is not None and self.folder in self.source.path.parents

    def _remove_copy(self) -> None:
        if self.source is not None and self.copied:
            self.source.path.unlink(missing_ok=True)

    @property
    def sheet(self) -> Table:
        """The table; raises an error if there is none."""
        if self.table is None:
            raise OptionError("there-no-table-session")
        return self.table

    @property
    def seen(self) -> Seen:
        """The facts about the table's columns that were shown."""
        if self._seen is None or self._seen.table is not self.sheet:
            self._seen = Seen(self.sheet, self.viewed)
        return self._seen

    # what is settled

    @property
    def recipe(self) -> Recipe:
        if self._place < 0:
            raise OptionError("there-no-table-session")
        return self._history[self._place]

    def settle(self, recipe: Recipe, merge: str = "") -> None:
        """Apply a change; changes undone before are discarded.

        Args:
            merge: consecutive changes with the same key, such as those of one slider, are undone together.
        """
        if recipe == self.recipe:
            return
        if not merge or merge != self.merged:
            self._place += 1
        self._history = [*self._history[: self._place], recipe]
        self.merged = merge

    def undo(self) -> None:
        self._place, self.merged, self.rule = max(self._place - 1, 0), "", NEW_RULE

    # the journal of use

    @property
    def uses(self) -> Uses:
        """The journal for this table under its declared name."""
        return Uses(Journal.open(ledger=self.ledger or None), self.dataset, self.content)

    def show(self, names: Iterable[str], *views: str) -> None:
        """Record in the journal that facts about columns are about to be shown, after the declarations so far."""
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
        """The declarations about columns as a statement would hold them, where complete."""
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

    def note_run(self, run: StudioRun, kind: Literal["measured", "downloaded"]) -> None:
        """Record that results of a run on these records are about to be shown or downloaded; nobody has them before."""
        uses = Uses(Journal.open(ledger=run.ledger or None), run.dataset, run.content)
        known = run.facts["use"]
        if not run.use:
            run.use = uses.note("released", known["domains"], by="studio", **known)
        if kind not in run.noted:
            run.noted |= {kind}
            # distributions and single rows of the original are shown beside those of the release
            views = {"views": ["histogram", "rows"]} if kind == "measured" else {}
            uses.note(kind, known["domains"], by="studio", release=run.use, **views)
            self.unrecorded = str(uses.problem or "")

    @property
    def measured(self) -> bool:
        """Whether the loss or the risk of a release under this name was shown."""
        entries = self.uses.journal.entries(self.dataset)
        return any(entry.kind == "measured" or entry.facts.get("measured") for entry in entries)

    @property
    def first_measured(self) -> StudioRun | None:
        """The first run of this tab whose measures were shown; its settings were fixed before them."""
        return next((run for run in self.releases if not run.rehearsed and run.seen), None)

    def back_to_first(self) -> None:
        """Restore the settings of the first run that was measured."""
        if self.first_measured is not None:
            self.settle(self.first_measured.recipe)

    def column(self, number: int) -> Attribute:
        attributes = self.recipe.schema.attributes
        if not 0 <= number < len(attributes):
            raise OptionError("session-there-no-column", number=number + 1)
        return attributes[number]

    # the guarantee

    def guarantee(self, card: str | None = None, method: str | None = None) -> None:
        """Choose a guarantee or a method, or update them after a change of columns."""
        self.settle(with_guarantee(self.recipe, self.sheet.n, card, method))

    def set(self, name: str, value: str, merge: str = "") -> None:
        """Change a setting to the value typed."""
        self.settle(with_setting(self.recipe, name, value), merge)

    def choose_column(self, name: str, column: str, *, on: bool) -> None:
        """Add a column to a setting that lists columns, or remove it."""
        self.settle(with_column(self.recipe, name, self.recipe.schema[column].name, on=on))

    def slide(self, name: str, place: int) -> None:
        """Change a setting by its position on the slider."""
        self.set(name, SLIDERS[name].value(place, self.sheet.n), merge=name)

    def take(self, settings: Mapping[str, Any]) -> None:
        """Use the settings of a run or of a compared point; a data-dependent choice is detected automatically."""
        self.settle(with_settings_of(self.recipe, settings))

    def look_ahead(self) -> Preview:
        """The guarantee of a release with the current choices; computed once."""
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
        """Whether k can be chosen privately: the claim must compose with its cost."""
        found = self.look_ahead()
        if found.prepared is None or self.recipe.method != METHOD:
            return False
        return found.prepared.statement.model == "dp"

    # runs

    @property
    def releases(self) -> list[StudioRun]:
        """The runs with results to show."""
        return [run for run in self.runs if run.kind in ("release", "rehearse") and run.state == "done"]

    @property
    def shown_runs(self) -> list[StudioRun]:
        """The runs that may be drawn beside another: one on these records only after it was opened."""
        return [run for run in self.releases if run.rehearsed or run.seen]

    @property
    def running(self) -> StudioRun | None:
        return next((run for run in self.runs if run.state == "running"), None)

    def run_of(self, letter: str) -> StudioRun:
        found = next((run for run in self.runs if run.letter == letter), None)
        if found is None:
            raise OptionError("there-no-run", letter=letter)
        return found

    @property
    def rehearses_first(self) -> bool:
        """Whether a rehearsal comes before the first real run: the claim requires settings fixed beforehand."""
        if any(run.rehearsed for run in self.releases):
            return False
        return self.recipe.fixed_beforehand and not self.measured

    @property
    def expected(self) -> str | None:
        """The expected time of a run, as text; None until requested."""
        return self.expecting.words(self.recipe, self.sheet.n)

    def drop(self, run: StudioRun) -> None:
        run.remove()
        self.runs.remove(run)

    def cancel(self) -> None:
        run = self.running
        if run is not None:
            self.told = run.cancel()
            self.runs.remove(run)
            self.version += 1

    def judge(self, letter: str = "") -> StudioRun | None:
        """The run shown by the Judge page; the journal records it where it is about these records."""
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
    def to_publish(self) -> StudioRun | None:
        """The run to publish: the last one shown by the Judge page, or the only one."""
        real = [run for run in self.releases if not run.rehearsed]
        return next((run for run in real if run.letter == self.shown), real[-1] if real else None)

    def _remove_runs(self) -> None:
        self.expecting.stop()
        for run in self.runs:
            run.cancel()
            run.remove()
        self.runs, self.shown = [], ""

    def remove(self) -> None:
        """Remove the session with its runs and files."""
        self._remove_runs()
        shutil.rmtree(self.folder, ignore_errors=True)


def _without_domains(schema: Schema) -> Schema:
    """Never fill in ranges and rows per person from the data; common knowledge must be confirmed by a person."""
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


class StudioSessions:
    """The sessions of a running studio.

    Attributes:
        file: the file named on the command line: every new session starts with it, read in place.
        limit: the most bytes of a file that is copied.
        leaving: whether the studio is shutting down; streams of events never end by themselves.
    """

    leaving: Callable[[], bool]

    def __init__(self, file: Path | None = None, limit: int = LIMIT, place: Path | None = None) -> None:
        self.file, self.limit = file, limit
        self.leaving = lambda: False
        parent = Path(tempfile.gettempdir()) if place is None else place
        sweep(parent)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        # held as long as the process lives, however it ends
        self._held = os.open(self.folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._held, fcntl.LOCK_EX)
        self._sessions: dict[str, StudioSession] = {}
        self._lock = threading.Lock()

    def new(self) -> StudioSession:
        name = secrets.token_urlsafe(12)
        folder = self.folder / name
        folder.mkdir(mode=0o700)
        session = StudioSession(name, folder)
        with self._lock:
            self._sessions[name] = session
        if self.file is not None:
            session.open(self.file, self.file.name)
        return session

    def find(self, name: str) -> StudioSession:
        """A session by its name.

        Raises:
            OptionError: it does not exist, because the studio was restarted.
        """
        found = self._sessions.get(name) if _NAME.fullmatch(name) else None
        if found is None:
            raise OptionError("gone")
        return found

    def close(self) -> None:
        """End all runs and remove all files."""
        with self._lock:
            for session in self._sessions.values():
                session.remove()
            self._sessions = {}
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._held)


def sweep(parent: Path) -> list[Path]:
    """Remove the folders of killed studios; those of running ones are locked."""
    gone = []
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            held = os.open(folder / _LOCK, os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            shutil.rmtree(folder, ignore_errors=True)
            gone.append(folder)
        finally:
            os.close(held)
    return gone
