"""What an internal page knows: a release and its original come in, measures and risks leave.

Tables of any size are measured in seconds: large ones on a sample, and the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from shoal.columns.declaration import read_declared
from shoal.display import internal
from shoal.errors import CancelledError, InputError, ShoalError
from shoal.evaluation.verdict import BEYOND, linkage_line
from shoal.io import Table, read
from shoal.progress import Progress, silent
from shoal.report.disclosure import Disclosure
from shoal.report.excerpt import released_rows, some_rows
from shoal.report.risks import MOST_ROWS, Risks, attacked
from shoal.report.subject import Subject
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.evaluation import Evaluation
    from shoal.release.protect import Release

# a sample has groups of its own
_OF_ALL_ROWS = ("actual_k", "groups", "unique_share", "actual_k_per_attribute")


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """Facts about the original data.

    Attributes:
        subject: what is compared.
        before: the original rows that it is compared with; None where no original was given.
        measured: measures as `Evaluation.to_dict` has them.
        risks: measured ones.
        told: what was compared on a sample or not at all, as `remarks` has it in words.
        disclosure: the risk by the quasi-identifiers, before and after.
    """

    subject: Subject
    before: Table | None = None
    measured: Mapping[str, Any] | None = None
    risks: Risks = field(default_factory=Risks)
    told: tuple[Message, ...] = ()
    disclosure: Disclosure | None = None

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(map(str, self.told))


def find(
    subject: Subject,
    release: Release,
    evaluation: Evaluation | None,
    original: Any,
    progress: Progress = silent,
) -> Findings:
    """Everything that release and original show together, and what was measured before.

    Raises:
        InputError: the original cannot be read, or it is not the table that was protected.
    """
    measured = None if evaluation is None else evaluation.to_dict()
    if original is None:
        return Findings(subject, None, measured, Risks(_linkage(measured, None, subject)))
    before = _rows(release, read_declared(original, subject.schema, na=subject.na))
    compared = before
    told: tuple[Message, ...] = ()
    if measured is None:
        measured, compared, told = _measure(release, before, subject.table, progress)
    lines = (*_quasi_linkage(release, before, subject, progress), *_linkage(measured, compared, subject))
    known = release.aligned is not None
    found = attacked(
        before,
        subject.table,
        subject.columns,
        (lambda records: released_rows(release, records)) if known else None,
        progress,
    )
    return Findings(subject, before, measured, Risks((*lines, *found.lines), found.told), told)


def _rows(release: Release, original: Table) -> Table:
    """The original rows that took part."""
    read_then = release.internal.get("rows_read", original.n)
    if original.n != read_then:
        raise InputError("table-protected-rows-original", read_then=read_then, n=original.n)
    return original if release.kept is None else original.rows(release.kept)


def _measure(
    release: Release, before: Table, published: Table, progress: Progress
) -> tuple[dict[str, Any] | None, Table, tuple[Message, ...]]:
    """Measures of loss and record linkage, and the records they were taken on."""
    from shoal.evaluation import evaluate

    total = before.n
    before, release = _measurable(release, before, published)
    told = (Message.of("measured-sample", rows=before.n, of=total),) if before.n < total else ()
    try:
        found = evaluate(before, release, progress=progress).to_dict()
    except CancelledError:
        raise
    except ShoalError as error:
        # the budget is spent: a page without measures is better than none
        return None, before, (Message.of("measures-refused", reason=error),)
    if max(total, published.n) > MOST_ROWS:
        found["risk"] = {name: value for name, value in found["risk"].items() if name not in _OF_ALL_ROWS}
    return found, before, told


def _measurable(release: Release, before: Table, published: Table) -> tuple[Table, Release]:
    """Original records and a release of theirs, of large tables a sample."""
    if max(before.n, published.n) <= MOST_ROWS:
        return before, replace(release, data=published, kept=None)
    rows = some_rows(before.n, MOST_ROWS)
    aligned = None if release.aligned is None else read(release.aligned).rows(rows)
    published = published.rows(some_rows(published.n, MOST_ROWS))
    return before.rows(rows), replace(release, data=published, aligned=aligned, kept=None)


def _linkage(measured: Mapping[str, Any] | None, original: Table | None, subject: Subject) -> tuple[Any, ...]:
    if measured is None:
        return ()
    beyond = BEYOND.get(subject.statement["model"])
    return tuple(linkage_line(measured, original, subject.columns, beyond=beyond))


def _quasi_linkage(release: Release, before: Table, subject: Subject, progress: Progress) -> tuple[Any, ...]:
    """Linkage by what k-anonymity assumes to be known, and no more."""
    if subject.statement["model"] != "k-anonymity" or release.aligned is None:
        return ()
    quasi = [
        name
        for name in subject.columns
        if subject.attribute(name).role == "quasi-identifier" and name in before.names
    ]
    from shoal.evaluation import evaluate

    compared, release = _measurable(release, before, subject.table)
    try:
        measured = evaluate(compared, release, columns=quasi, progress=progress).to_dict()
    except CancelledError:
        raise
    except ShoalError:
        # the page says why with the other measures
        return ()
    known = Message.of("knows-quasi-identifiers")
    return tuple(linkage_line(measured, compared, quasi, "record linkage, quasi-identifiers", known))
