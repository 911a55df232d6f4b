"""The journal of use: which records were viewed, released, measured, downloaded or rehearsed on, by data set name.

One file of the custodian, shared by command line, library and Studio, across tabs, processes and restarts. What a
statement takes from it is looked up by the declared name of the data set alone. A keyed hash of the content of a table
only serves to ask the custodian whether records are known under another name; the answer is a declaration.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from shoal.arguments import as_names
from shoal.columns import Recorded
from shoal.display import internal
from shoal.errors import OptionError
from shoal.text import Message

Kind = Literal[
    "viewed", "released", "measured", "downloaded", "rehearsed", "declared", "same-records", "cleared"
]
# what is done with records; the other kinds concern names and settings
USES: tuple[Kind, ...] = ("viewed", "released", "measured", "downloaded", "rehearsed")
PLACE = "SHOAL_JOURNAL"
_KEY_BYTES = 32
_USE = re.compile(r"use-[0-9a-f]{8}")
# how often each was done
_TIMES = {1: "done-once", 2: "done-twice"}


@internal()
@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One use, or one declaration.

    Attributes:
        id: unique, such as "use-3f9a21c4".
        at: time, in UTC.
        kind: one of `Kind`.
        dataset: the declared name of the data set, None if undeclared.
        marks: keyed hashes of the content of the table.
        columns: those concerned.
        facts: other facts, as plain values: `by`, `folder`, `release`, `views`, `settings`, `domains`.
    """

    id: str
    at: str
    kind: str
    dataset: str | None
    marks: frozenset[str]
    columns: tuple[str, ...]
    facts: Mapping[str, Any]

    @property
    def words(self) -> str:
        """One line for the custodian."""
        return str(Message.of("all-of", parts=tuple(self._parts())))

    def _parts(self) -> Iterator[Message]:
        facts = self.facts
        yield Message.of("entry", at=self.at[:16].replace("T", " "), id=self.id, kind=self.kind)
        if self.dataset is None:
            yield Message("entry-without-name")
        else:
            yield Message.of("entry-of-data-set", dataset=self.dataset)
        if facts.get("by"):
            yield Message.of("entry-by", by=facts["by"])
        if facts.get("settings"):
            yield Message.of("entry-with", method=facts["settings"]["method"])
        if facts.get("views"):
            yield Message.of("entry-shown", views=facts["views"])
        if facts.get("measured"):
            yield Message("entry-measured")
        if "datasets" in facts:
            yield Message.of("entry-same" if facts.get("same") else "entry-other", datasets=facts["datasets"])
        if "entries" in facts:
            yield Message.of("entry-entries", count=facts["entries"])
        if self.columns:
            yield Message.of("entry-columns", columns=self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without content hashes."""
        return {
            "id": self.id,
            "at": self.at,
            "kind": self.kind,
            "dataset": self.dataset,
            "columns": list(self.columns),
            **self.facts,
        }


@internal()
@dataclass(frozen=True, slots=True)
class Match:
    """Records known under another name, or used without one: a question to the custodian.

    Attributes:
        dataset: the other name; None for uses without one.
        use: the id of one of these uses, to refer to uses without a name.
        counts: how often the records were used, by kind.
    """

    dataset: str | None
    use: str
    counts: Mapping[str, int]

    @property
    def answer(self) -> str:
        """The value to pass to `same_records` or `not_same_records`."""
        return self.use if self.dataset is None else self.dataset

    @property
    def words(self) -> Message:
        """The known facts."""
        uses = tuple(
            Message.of(_TIMES.get(count, "done-times"), kind=kind, count=count)
            for kind in USES
            if (count := self.counts.get(kind))
        )
        code = "content-known-without-name" if self.dataset is None else "content-known"
        return Message.of(code, dataset=self.dataset, uses=uses)

    @property
    def question(self) -> Message:
        """The known facts and how to answer, for a named data set."""
        return Message.of("whether-same-records", known=self.words, answer=self.answer)


class Journal:
    """An append-only journal file that only its owner can read.

    Reading and writing never raise: journal failures do not stop a release. `problem` describes them.

    Attributes:
        places: the journal files: the user's own, and one beside the ledger, shared by everyone who uses that ledger.
        problem: why something could not be read or written, or None.
    """

    def __init__(self, places: Sequence[Path], problem: Message | None = None) -> None:
        self.places = tuple(places)
        self.problem = problem

    @classmethod
    def open(cls, place: str | Path | None = None, *, ledger: str | Path | None = None) -> Journal:
        """The journal of the current user.

        Args:
            place: the file; by default that of SHOAL_JOURNAL, or `journal.jsonl` in the user's state folder.
            ledger: ledger file of a release; the journal beside it is then read and written as well.
        """
        try:
            own = Path(place or os.environ.get(PLACE) or _state_folder() / "journal.jsonl")
        except RuntimeError as error:
            return cls((), Message.of("no-place-for-journal", reason=str(error)))
        beside = [] if ledger is None or "://" in str(ledger) else [Path(f"{ledger}.journal")]
        return cls([own, *beside])

    def note(
        self,
        kind: Kind,
        *,
        dataset: str | None = None,
        table: str = "",
        columns: str | Iterable[str] = (),
        **facts: Any,
    ) -> str:
        """Append one line.

        Args:
            kind: what was done.
            dataset: the declared name of the data set. With a fact `release`, the id of a recorded release, its name.
            table: `shoal.io.table.content_digest` of the records; only a keyed hash of it is kept.
            columns: those concerned.
            facts: plain values for JSON.

        Returns:
            The id of the entry.
        """
        id = f"use-{os.urandom(4).hex()}"
        dataset = dataset or self.dataset_of(facts.get("release"))
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        line = {
            "id": id,
            "at": at,
            "kind": kind,
            "dataset": dataset,
            "columns": list(as_names(columns)),
            "facts": facts,
        }
        for place in self.places:
            try:
                with _locked(place) as file:
                    mark = {"table": _mark(_key(place, make=True), table)} if table else {}
                    _append(file, {**line, **mark})
            except OSError as error:
                self.problem = _failed("journal-not-written", place, error)
        return id

    def dataset_of(self, use: str | None) -> str | None:
        """The name under which a use was recorded."""
        return next((entry.dataset for entry in self.entries() if entry.id == use), None) if use else None

    def entries(self, dataset: str | None = None) -> tuple[JournalEntry, ...]:
        """All entries in chronological order, or those of one data set."""
        there = [self._entries_in(place) for place in self.places]
        found = there[0] if len(there) == 1 else _together(there)
        return tuple(entry for entry in found if dataset is None or entry.dataset == dataset)

    def _entries_in(self, place: Path) -> tuple[JournalEntry, ...]:
        try:
            return _read(place)
        except OSError as error:
            self.problem = _failed("journal-not-read", place, error)
            return ()

    def recorded(
        self,
        dataset: str | None,
        *,
        columns: str | Iterable[str] = (),
        settings: Mapping[str, Any] | None = None,
        domains: Mapping[str, Any] | None = None,
        same_records: str | Sequence[str] = (),
        charges: Mapping[str, bool] | None = None,
    ) -> tuple[Recorded, ...]:
        """The public facts about the uses of a data set, independent of the content of any table.

        Args:
            dataset: the declared name; without one, nothing is known.
            columns: to be released.
            settings: of the release, method included, as plain values.
            domains: the declarations for each column, as plain values.
            same_records: names and ids of uses declared to concern the same records, besides those in the journal.
            charges: hashes of the releases a ledger holds under this name, and whether each was measured.
        """
        if not dataset:
            return ()
        entries = self.entries()
        known = _known_as(entries, dataset, as_names(same_records))
        uses = [entry for entry in entries if known.holds(entry)]
        found = [
            _earlier_releases(uses, charges or {}),
            _records_measured(uses),
            None if settings is None else _settings_changed(uses, settings, domains or {}),
            *(_column_viewed(uses, column, (domains or {}).get(column)) for column in as_names(columns)),
        ]
        if rehearsed := sum(entry.kind == "rehearsed" for entry in uses):
            found.append(Recorded("rehearsed-on-records", {"count": rehearsed}))
        if others := sorted(known.names - {dataset}):
            found.append(Recorded("same-records", {"datasets": others}))
        return tuple(fact for fact in found if fact is not None)

    def matches(
        self,
        table: str,
        dataset: str | None,
        same_records: str | Sequence[str] = (),
        not_same: str | Sequence[str] = (),
    ) -> tuple[Match, ...]:
        """Uses of the same content under other names, or without one: for the custodian, never for a statement.

        Questions that have been answered, before or in this call, are not repeated.
        """
        entries = self.entries()
        own = (
            {_mark(key, table) for place in self.places if (key := _key(place)) is not None}
            if table
            else set()
        )
        known = _known_as(entries, dataset, as_names(same_records))
        refused = _known_as(entries, dataset, as_names(not_same), same=False)
        groups: dict[str | None, list[JournalEntry]] = {}
        for entry in entries:
            asked = entry.kind in USES and not own.isdisjoint(entry.marks)
            if asked and not known.holds(entry) and not refused.holds(entry):
                groups.setdefault(entry.dataset, []).append(entry)
        return tuple(
            Match(name, uses[0].id, {kind: count for kind in USES if (count := _count(uses, kind))})
            for name, uses in groups.items()
        )

    def declare_same(self, dataset: str | None, names: str | Sequence[str], *, same: bool = True) -> None:
        """Record the custodian's answer about names, or ids of uses without one."""
        if names:
            self.note("same-records", dataset=dataset, same=same, datasets=sorted(as_names(names)))

    def check_answers(self, dataset: str | None, names: str | Sequence[str]) -> None:
        """Refuse answers that cannot be recorded.

        Raises:
            OptionError: the data set is undeclared, or there is no such use.
        """
        if names and not dataset:
            raise OptionError("same-records-about-named-data-set", option="dataset")
        for name in as_names(names):
            if _USE.fullmatch(name) and all(entry.id != name for entry in self.entries()):
                raise OptionError("journal-no-use", option="same_records", name=name)

    def clear(self, dataset: str | None = None) -> int:
        """Delete all entries, or those of one data set; one line remains with the number deleted.

        Raises:
            OSError: the journal cannot be written.
        """
        gone: set[str] = set()
        for place in self.places:
            if not place.exists():
                continue
            with _locked(place):
                there = list(_lines(place.read_bytes()))
                kept = [line for line in there if dataset is not None and line["dataset"] != dataset]
                gone |= {line["id"] for line in there} - {line["id"] for line in kept}
                aside = place.with_name(f"{place.name}.part")
                aside.unlink(missing_ok=True)
                number = os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
                with os.fdopen(number, "wb") as file:
                    file.writelines(_encoded(line) for line in kept)
                os.replace(aside, place)
        self.note("cleared", entries=len(gone))
        return len(gone)


def _together(files: Iterable[Iterable[JournalEntry]]) -> list[JournalEntry]:
    """The entries of several files without duplicates: an entry in two files keeps the marks of both."""
    found: dict[str, JournalEntry] = {}
    for entry in (entry for entries in files for entry in entries):
        twin = found.get(entry.id)
        found[entry.id] = entry if twin is None else replace(twin, marks=twin.marks | entry.marks)
    return sorted(found.values(), key=lambda entry: entry.at)


@dataclass(frozen=True, slots=True)
class _Names:
    """Names that stand for the same records, and uses without a name that belong to them."""

    names: frozenset[str]
    marks: frozenset[str] = frozenset()
    ids: frozenset[str] = field(default_factory=frozenset)

    def holds(self, entry: JournalEntry) -> bool:
        if entry.dataset is not None:
            return entry.dataset in self.names
        return entry.id in self.ids or not self.marks.isdisjoint(entry.marks)


def _known_as(
    entries: Sequence[JournalEntry], dataset: str | None, more: Sequence[str], *, same: bool = True
) -> _Names:
    """Names declared to concern the same records as a data set, or not to.

    A use without a name stands for all uses of the table it concerned. The current table plays no part.
    """
    if dataset is None:
        return _Names(frozenset())
    pairs = [
        (entry.dataset, name)
        for entry in entries
        if entry.kind == "same-records" and entry.facts.get("same", True) == same
        for name in entry.facts.get("datasets", ())
    ]
    pairs += [(dataset, name) for name in more]
    found = {dataset}
    grown = True
    # "same" is transitive; "not the same" as one of them says nothing about the others
    while grown:
        named = {b for a, b in pairs if a in found} | {a for a, b in pairs if b in found and a is not None}
        grown = same and not named <= found
        found |= named
    ids = frozenset(name for name in found if _USE.fullmatch(name))
    marks = frozenset(mark for entry in entries if entry.id in ids for mark in entry.marks)
    return _Names(frozenset(found) - ids - (frozenset() if same else {dataset}), marks, ids)


def _earlier_releases(uses: Sequence[JournalEntry], charges: Mapping[str, bool]) -> Recorded | None:
    releases = {entry.id: entry for entry in uses if entry.kind == "released"}
    charged = {str(entry.facts.get("charge")) for entry in releases.values()}
    others = {head: measured for head, measured in charges.items() if head not in charged}
    counts = {
        "count": len(releases) + len(others),
        "measured": len(releases.keys() & _shown(uses, "measured")) + sum(others.values()),
        "downloaded": len(releases.keys() & _shown(uses, "downloaded")),
    }
    return Recorded("earlier-releases", counts) if counts["count"] else None


def _records_measured(uses: Sequence[JournalEntry]) -> Recorded | None:
    """Measurements other than of a release under this name: of settings, or of another tool's output."""
    releases = {entry.id for entry in uses if entry.kind == "released"}
    others = _shown(uses, "measured") - releases
    return Recorded("records-measured", {"count": len(others)}) if others else None


def _shown(uses: Sequence[JournalEntry], kind: str) -> set[str]:
    """What was measured or downloaded, without duplicates: release ids or folders."""
    made = {
        str(entry.facts["folder"]): entry.id
        for entry in uses
        if entry.kind == "released" and "folder" in entry.facts
    }
    found = {entry.id for entry in uses if entry.kind == "released" and entry.facts.get(kind)}
    for entry in uses:
        if entry.kind == kind:
            folder = str(entry.facts.get("folder") or entry.id)
            found.add(str(entry.facts.get("release") or made.get(folder, folder)))
    return found


def _settings_changed(
    uses: Sequence[JournalEntry], settings: Mapping[str, Any], domains: Mapping[str, Any]
) -> Recorded | None:
    """How the settings differ from all settings fixed before the first measurement or download."""
    fixed: list[JournalEntry] = []
    for entry in uses:
        if entry.facts.get("settings") is not None:
            fixed.append(entry)
        if entry.kind in ("measured", "downloaded") or entry.facts.get("measured"):
            break
    else:
        return None
    differences = [_differences(entry.facts, _plain(settings), _plain(domains)) for entry in fixed]
    least = min(differences, key=len, default=[])
    return Recorded("settings-changed", {"settings": least}) if least else None


def _differences(
    fixed: Mapping[str, Any], settings: Mapping[str, Any], domains: Mapping[str, Any]
) -> list[str]:
    before, declared = fixed["settings"], fixed.get("domains") or {}
    if before.get("method") != settings.get("method"):
        found = ["method"]
    else:
        found = [name for name in settings if name in before and before[name] != settings[name]]
    if set(declared) != set(domains):
        found.append("columns")
    found += [f"domain:{name}" for name in domains if name in declared and declared[name] != domains[name]]
    return found


def _column_viewed(uses: Sequence[JournalEntry], column: str, domain: Any) -> Recorded | None:
    """How a column was viewed before its declarations were first made."""
    wanted, views = _plain(domain), set[str]()
    for entry in uses:
        declared = entry.facts.get("domains") or {}
        if domain is not None and declared.get(column) == wanted:
            break
        if "*" in entry.columns or column in entry.columns:
            views.update(entry.facts.get("views") or ())
    return Recorded("column-viewed", {"column": column, "views": sorted(views)}) if views else None


def _count(uses: Sequence[JournalEntry], kind: str) -> int:
    """How often something was done; showing the measures of a release counts as measuring it."""
    return sum(entry.kind == kind or bool(entry.facts.get(kind)) for entry in uses)


def _failed(code: str, place: Path, error: OSError) -> Message:
    return Message.of(code, place=place, reason=error.strerror or str(error))


def _plain(value: Any) -> Any:
    """A value as it is read back from a file."""
    return json.loads(json.dumps(value, default=str))


def _state_folder() -> Path:
    """The platform's folder for persistent program state."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else Path.home() / "AppData" / "Local") / "shoal"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "shoal"
    base = os.environ.get("XDG_STATE_HOME")
    # the XDG specification says to ignore relative paths
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".local" / "state") / "shoal"


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[int]:
    """The file opened for appending, with an exclusive lock."""
    if not place.parent.is_dir():
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        file = os.open(place, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            _lock(file)
            held, there = os.fstat(file), os.stat(place)
            # the file was cleared, and so replaced, while this process waited
            if (held.st_dev, held.st_ino) != (there.st_dev, there.st_ino):
                continue
            if held.st_mode & 0o077 and sys.platform != "win32":
                os.fchmod(file, 0o600)
            yield file
            return
        finally:
            os.close(file)


def _lock(file: int) -> None:
    """Wait for an exclusive lock on the file; closing the file releases it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def _append(file: int, line: Mapping[str, Any]) -> None:
    size = os.lseek(file, 0, os.SEEK_END)
    if size:
        os.lseek(file, size - 1, os.SEEK_SET)
    # a line cut off by a crash must not corrupt the next one
    torn = size > 0 and os.read(file, 1) != b"\n"
    content = (b"\n" if torn else b"") + _encoded(line)
    while content:
        content = content[os.write(file, content) :]


def _encoded(line: Mapping[str, Any]) -> bytes:
    return (json.dumps(line, ensure_ascii=False, default=str, separators=(",", ":")) + "\n").encode()


def _lines(content: bytes) -> Iterator[dict[str, Any]]:
    """The complete lines of a journal; truncated or malformed ones are skipped."""
    for text in content.splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and {"id", "at", "kind", "dataset", "columns", "facts"} <= line.keys():
            yield line


@dataclass(slots=True)
class _Known:
    """What has been read of a file so far."""

    identity: tuple[int, int]
    read: int = 0
    entries: list[JournalEntry] = field(default_factory=list)


# so that a process that makes many releases reads every line once
_KNOWN: dict[Path, _Known] = {}
_READING = threading.Lock()


def _read(place: Path) -> tuple[JournalEntry, ...]:
    try:
        with _READING, place.open("rb") as file:
            status = os.fstat(file.fileno())
            identity = status.st_dev, status.st_ino
            known = _KNOWN.get(place)
            if known is None or known.identity != identity or status.st_size < known.read:
                known = _KNOWN[place] = _Known(identity)
            file.seek(known.read)
            content = file.read()
            # another process may still be writing the last line
            whole = content[: content.rfind(b"\n") + 1]
            known.entries.extend(map(_entry, _lines(whole)))
            known.read += len(whole)
            return tuple(known.entries)
    except FileNotFoundError:
        return ()


def _entry(line: Mapping[str, Any]) -> JournalEntry:
    marks = frozenset([line["table"]] if line.get("table") else [])
    return JournalEntry(
        line["id"], line["at"], line["kind"], line["dataset"], marks, tuple(line["columns"]), line["facts"]
    )


def _key(place: Path, *, make: bool = False) -> bytes | None:
    """The secret key beside a journal, without which tables cannot be tested against it."""
    path = place.with_name(f"{place.name}.key")
    try:
        key = path.read_bytes()
    except OSError:
        key = b""
    if len(key) == _KEY_BYTES:
        return key
    if not make:
        return None
    path.unlink(missing_ok=True)
    key = os.urandom(_KEY_BYTES)
    number = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(number, "wb") as file:
        file.write(key)
    return key


def _mark(key: bytes | None, table: str) -> str:
    assert key is not None
    return hmac.new(key, table.encode(), hashlib.sha256).hexdigest()
