"""A release and the journal of use: what is recorded under its data set name, what to ask, and what to note."""

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
    """The journal, seen from one table.

    Attributes:
        dataset: the declared name, None without one.
        table: digest of the records, empty where they are elsewhere; it serves questions only.
        same: what is declared to be of the same records; `other` what is declared not to be.
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
        """The uses of records, which are elsewhere where there are none.

        Raises:
            OptionError: what is declared about other names cannot be kept.
        """
        journal = Journal.open(ledger=ledger)
        same = names_of(same_records, "same_records")
        other = names_of(not_same_records, "not_same_records")
        journal.check_answers(dataset, (*same, *other))
        return cls(journal, dataset, "" if records is None else content_digest(records), same, other)

    @property
    def matches(self) -> tuple[Match, ...]:
        """The same content under other names, for the custodian."""
        return self.journal.matches(self.table, self.dataset, self.same, self.other)

    @property
    def problem(self) -> Message | None:
        """Why a use could not be noted; None where all were."""
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
        """Note a release, and before it what is declared about other names; the id of the entry."""
        self.journal.declare_same(self.dataset, self.same)
        self.journal.declare_same(self.dataset, self.other, same=False)
        return self._note_settings("released", statement, **facts)

    def note_declared(self, statement: PrivacyStatement) -> None:
        """Note settings and ranges under a name: they were declared no later than now."""
        if self.dataset is not None:
            self._note_settings("declared", statement)

    def note(self, kind: Kind, columns: Iterable[str], **facts: Any) -> str:
        return self.journal.note(kind, dataset=self.dataset, table=self.table, columns=columns, **facts)

    def _note_settings(self, kind: Kind, statement: PrivacyStatement, **facts: Any) -> str:
        known = {"settings": settings_of(statement), "domains": domains_of(statement)}
        return self.note(kind, statement.attributes, **known, **facts)

    def questions(self, *, released: bool = True, unnamed: bool = False) -> tuple[Message, ...]:
        """What to ask the custodian.

        Two uses without a name are nothing to ask about, unless they are asked for and something was shown of the
        records: a notebook protects one table often.

        Args:
            released: they are to be released, which takes an answer.
            unnamed: also tell of uses without a name where this one has none either.
        """
        found = []
        for match in self.matches:
            if self.dataset is not None:
                found.append(match.question if released else Message.of("use-one-name", known=match.words))
            elif match.dataset is not None or (unnamed and set(match.counts) != {"released"}):
                found.append(Message.of("name-the-records", known=match.words))
        return tuple(found)


def files_of(records: Table | Runner) -> Table | Frozen | None:
    """Records by which a table can be recognised; None where a cluster has them, which would have to be asked."""
    if isinstance(records, Table):
        return records
    return records.files if isinstance(records, LocalRunner) else None


def folder_of(released: Any) -> str | None:
    """Which release was measured, where it is on disk: its folder, or the file that another tool made."""
    if not isinstance(released, (str, Path)):
        return None
    path = Path(released).absolute()
    return str(path.parent if (path.parent / "statement.json").is_file() else path)


def settings_of(statement: PrivacyStatement) -> dict[str, Any]:
    """Method and settings as plain values: public facts, by which a later release is compared."""
    return {
        "method": statement.method,
        **statement.settings,
        "steps": list(map(step_key, statement.terms.steps)),
    }


def domains_of(statement: PrivacyStatement) -> dict[str, dict[str, str]]:
    """What is declared about each column, without the source."""
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
    """Note what is about to be shown of records; what the custodian should be told of it.

    Args:
        by: which command or function shows it.
        ledger: with a file, it is noted in the journal beside it, too.
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
    """Note what a function of the library is about to show of records; its caller is warned."""
    warn(noted(kind, records, columns, by, dataset, **facts))


def shows_records(table: Any, dataset: str | None) -> bool:
    """Whether measuring a table shows something about records: that of a bundle does not, unless it is named so."""
    named = isinstance(table, (str, Path)) and (Path(table) / "statement.json").is_file()
    return dataset is not None or not named


def warn(messages: Iterable[Message | None]) -> None:
    """Tell a caller of the library of records under two names, and of a journal that cannot be written."""
    for message in messages:
        if message is not None:
            warnings.warn(JournalWarning(message.code, **message.facts), stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """How far above the function that asks the first code outside the package is."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("shoal."):
        frame, level = frame.f_back, level + 1
    return level
