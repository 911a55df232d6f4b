"""A release and the journal of use: record uses under the data set's name, and ask about possible matches."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.arguments import as_names
from shoal.display import internal
from shoal.engines import LocalRunner
from shoal.errors import JournalWarning, OptionError
from shoal.io import Frozen, Table, content_digest
from shoal.journal import Journal, Kind, Match
from shoal.privacy import step_key
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns import Schema
    from shoal.engines import Runner
    from shoal.privacy import PrivacyStatement
    from shoal.release.protection import Preparation


def declared_name(dataset: str | None, schema: Schema | None = None) -> str | None:
    """The name of a data set that the custodian declares: by option, or in the schema's [publication]."""
    if dataset is not None and not (isinstance(dataset, str) and dataset.strip()):
        raise OptionError("dataset-name-data-set", option="dataset", found=dataset)
    publication = getattr(schema, "publication", None)
    named = dataset or getattr(publication, "name", None)
    return named or None


def names_of(answer: str | Sequence[str] | None, option: str) -> tuple[str, ...]:
    """One name, or several."""
    names = as_names(answer or ())
    if not all(isinstance(name, str) and name for name in names):
        raise OptionError("option-names-data-sets", option=option, found=answer)
    return names


@internal()
@dataclass(frozen=True, slots=True)
class Uses:
    """The journal, as far as it concerns one table.

    Attributes:
        dataset: the declared name, None without one.
        table: digest of the records, empty where a cluster holds them; used for questions only.
        same: names declared to have the same records; `other` names declared not to.
    """

    journal: Journal
    dataset: str | None = None
    table: str = ""
    same: tuple[str, ...] = ()
    other: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        records: Table | Frozen | None,
        dataset: str | None = None,
        *,
        ledger: str | Path | None = None,
        same_records: str | Sequence[str] | None = None,
        not_same_records: str | Sequence[str] | None = None,
    ) -> Uses:
        """The uses of a table's records; without them if they are held elsewhere.

        Raises:
            OptionError: what is declared about other names cannot be recorded.
        """
        journal = Journal.open(ledger=ledger)
        same = names_of(same_records, "same_records")
        other = names_of(not_same_records, "not_same_records")
        journal.check_answers(dataset, (*same, *other))
        return cls(journal, dataset, "" if records is None else content_digest(records), same, other)

    @property
    def matches(self) -> tuple[Match, ...]:
        """Entries with the same content under other names, for the custodian."""
        return self.journal.matches(self.table, self.dataset, self.same, self.other)

    @property
    def problem(self) -> Message | None:
        """Why a use could not be recorded; None where all were."""
        reason = self.journal.problem
        return None if reason is None else Message.of("use-not-recorded", reason=reason)

    def stated(self, prepared: Preparation, charges: Mapping[str, bool] | None = None) -> Preparation:
        """The same release, with what is recorded under the name of its data set."""
        found = self.journal.recorded(
            self.dataset,
            columns=prepared.statement.attributes,
            settings=settings_of(prepared.statement),
            domains=domains_of(prepared.statement),
            same_records=self.same,
            charges=charges,
        )
        if not found:
            return prepared
        described = prepared.described
        provenance = replace(described.provenance, recorded=found)
        return prepared.stated(replace(described, provenance=provenance))

    def note_release(self, statement: PrivacyStatement, **facts: Any) -> str:
        """Record a release, and before it the declarations about other names; return the entry's id."""
        self.journal.declare_same(self.dataset, self.same)
        self.journal.declare_same(self.dataset, self.other, same=False)
        return self._note_settings("released", statement, **facts)

    def note_declared(self, statement: PrivacyStatement) -> None:
        """Record settings and ranges under a name: they were declared no later than now."""
        if self.dataset is not None:
            self._note_settings("declared", statement)

    def note(self, kind: Kind, columns: Iterable[str], **facts: Any) -> str:
        return self.journal.note(kind, dataset=self.dataset, table=self.table, columns=columns, **facts)

    def _note_settings(self, kind: Kind, statement: PrivacyStatement, **facts: Any) -> str:
        known = {"settings": settings_of(statement), "domains": domains_of(statement)}
        return self.note(kind, statement.attributes, **known, **facts)

    def questions(self, *, released: bool = True, unnamed: bool = False) -> tuple[Message, ...]:
        """Questions to the custodian.

        Two unnamed uses raise no question unless requested, and unless facts about the records
        were shown: a notebook often protects one table repeatedly.

        Args:
            released: the records are to be released, which requires an answer.
            unnamed: also report unnamed uses where this one has no name either.
        """
        found = []
        for match in self.matches:
            if self.dataset is not None:
                found.append(match.question if released else Message.of("use-one-name", known=match.words))
            elif match.dataset is not None or (unnamed and set(match.counts) != {"released"}):
                found.append(Message.of("name-the-records", known=match.words))
        return tuple(found)


def files_of(records: Table | Runner) -> Table | Frozen | None:
    """Records by which a table can be recognised; None where a cluster holds them and would have to be queried."""
    if isinstance(records, Table):
        return records
    return records.files if isinstance(records, LocalRunner) else None


def folder_of(released: Any) -> str | None:
    """Which release was measured, if it is on disk: its folder, or the file that another tool wrote."""
    if not isinstance(released, (str, Path)):
        return None
    path = Path(released).absolute()
    return str(path.parent if (path.parent / "statement.json").is_file() else path)


def settings_of(statement: PrivacyStatement) -> dict[str, Any]:
    """Method and settings as plain values: public facts, for comparison with a later release."""
    bounds = [
        said.facts["rows"] for said in statement.terms.conditions if said.code == "rows-of-units-bounded"
    ]
    return {
        "method": statement.method,
        **statement.settings,
        "steps": list(map(step_key, statement.terms.steps)),
        "rules": [one.facts["rule"] for one in statement.declared if one.code == "rule"],
        "bound": bounds[0] if bounds else None,
    }


def domains_of(statement: PrivacyStatement) -> dict[str, dict[str, str]]:
    """The declarations about each column, without the source."""
    return {
        name: {key: value for key, value in facts.items() if key != "source"}
        for name, facts in statement.attributes.items()
    }


def noted(
    kind: Kind,
    records: Table | Runner,
    columns: Iterable[str],
    by: str,
    dataset: str | None = None,
    *,
    ledger: str | Path | None = None,
    **facts: Any,
) -> tuple[Message, ...]:
    """Record that facts about the records are about to be shown; return what to tell the custodian.

    Args:
        by: the command or function that shows them.
        ledger: if it is a file, the use is recorded in the journal beside it too.
        facts: such as `folder` or `release`, which release was measured, and `views`, what else is shown.
    """
    name = declared_name(dataset) or Journal.open(ledger=ledger).dataset_of(facts.get("release"))
    uses = Uses.of(files_of(records), name, ledger=ledger)
    questions = uses.questions(released=False)
    uses.note(kind, columns, by=by, **facts)
    return questions if uses.problem is None else (*questions, uses.problem)


def note_use(
    kind: Kind,
    records: Table | Runner,
    columns: Iterable[str],
    by: str,
    dataset: str | None = None,
    **facts: Any,
) -> None:
    """Record what a library function is about to show of the records; warn its caller."""
    warn(noted(kind, records, columns, by, dataset, **facts))


def shows_records(table: Any, dataset: str | None) -> bool:
    """Whether measuring a table shows facts about records: measuring a bundle does so only with a data set name."""
    named = isinstance(table, (str, Path)) and (Path(table) / "statement.json").is_file()
    return dataset is not None or not named


def warn(messages: Iterable[Message | None]) -> None:
    """Warn a caller of the library about records under two names, or about a journal that cannot be written."""
    for message in messages:
        if message is not None:
            warnings.warn(JournalWarning(message.code, **message.facts), stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """Stack level of the first code outside the package, above the calling function."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("shoal."):
        frame, level = frame.f_back, level + 1
    return level
