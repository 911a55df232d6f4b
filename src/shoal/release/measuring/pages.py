"""Reports about tables of any size: a bundle or a release that an engine wrote comes in, the same pages leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.columns.schema import Schema
from shoal.errors import CancelledError, InputError, ShoalError
from shoal.evaluation import Evaluation
from shoal.evaluation.disclosure import RiskFigures
from shoal.evaluation.pair import unmatched
from shoal.io import Table
from shoal.io.binary_files import frozen
from shoal.progress import Progress, silent
from shoal.release.engines.local import LocalRunner
from shoal.release.engines.stages import Runner
from shoal.release.measuring.calls import evaluated
from shoal.release.measuring.check import check_in_parts
from shoal.release.measuring.evaluate import evaluate_in_parts
from shoal.release.measuring.groups import Grouping, count_groups
from shoal.release.measuring.side import Reading, Side
from shoal.release.measuring.sources import Shown, shown
from shoal.report.findings import Findings, Subject, attacked, disclosed, of_release
from shoal.report.pages import bundle_page, check_original, comparison
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.release.protect import Release

_NO_LEVELS: dict[str, float | None] = {"k": None, "l": None, "t_emd": None, "t_ratio": None}


def beside(runner: Runner, path: Path | None = None) -> Runner:
    """A runner of the same kind for other files, or another one for the same."""
    files: Any = runner.files if path is None else frozen(path)  # type: ignore[attr-defined]
    session = getattr(runner, "session", None)
    if session is None:
        return LocalRunner(files)
    from shoal.release.engines.spark import SparkRunner

    return SparkRunner(session, files, log=getattr(runner, "_log", None))


def report_in_parts(
    subject: Subject,
    folder: Path,
    runners: Sequence[Runner],
    progress: Progress | None = None,
) -> str:
    """The page of `shoal.report.bundle_report` about a bundle whose data, and whose original, runners have.

    Args:
        folder: of the bundle, as errors name it.
        runners: of the original, where there is one, and of the released table.
    """
    tell = progress or silent
    after = Side(runners[-1], Reading(_after_steps(subject.schema), subject.na))
    if len(runners) == 1:
        found = shown(after, _of(subject), tell, together=True)
        ((_, groups),) = count_groups(after, [Grouping(subject.columns)], tell)
        source = replace(found.table.records, different=int(groups.sum()))
        found = replace(found, table=replace(found.table, records=source))
        return bundle_page(_with(subject, found))
    before = Side(runners[0], Reading(subject.schema, subject.na))
    check_original(subject, before.table(), folder)
    measured = evaluated(runners, subject, na=subject.na, progress=tell)
    return comparison(_findings(subject, before, after, measured, subject.schema, tell))


def _after_steps(schema: Schema) -> Schema:
    """What is declared about a table that its steps were run on."""
    return replace(schema, steps=(), before=None)


def _of(subject: Subject) -> list[Any]:
    return [subject.attribute(name) for name in subject.columns]


def _with(subject: Subject, found: Shown, but: Sequence[str] = ()) -> Subject:
    kept = tuple(name for name in subject.columns if name not in (*found.left_out, *but))
    return replace(subject, table=found.table, columns=kept)


def _findings(
    subject: Subject,
    before: Side,
    after: Side,
    measured: Evaluation,
    schema: Schema,
    tell: Progress,
) -> Findings:
    """Everything that both tables show together."""
    first, second = (shown(side, _of(subject), tell, together=True) for side in (before, after))
    both = _with(subject, second, first.left_out)
    sides = {"original": before, "released": after}
    of = first.table.n, second.table.n
    assert first.attacked is not None
    assert second.attacked is not None
    risks = attacked(first.attacked, second.attacked, both.columns, progress=tell, of=of)

    def measure(table: Table, keys: Sequence[str], known: Schema, sensitive: Sequence[str]) -> RiskFigures:
        side = sides["original" if table is first.table else "released"]
        try:
            checked = check_in_parts(side, keys, sensitive, known, _NO_LEVELS, tell)
            if checked.disclosure is None:
                raise InputError.saying(checked.told[0])
        except CancelledError:
            raise
        except ShoalError as error:
            # the section is left out, as in memory; here the page says why
            refused.append(Message.of("risk-section-refused", reason=error))
            raise
        return checked.disclosure

    refused: list[Message] = []
    disclosure = disclosed(first.table, both, schema, tell, measure)
    left_out = sorted({*first.left_out, *second.left_out})
    if left_out:
        refused.append(Message.of("names-not-counted-in-parts", columns=left_out))
    told = (*measured.told, *refused)
    return Findings(both, first.table, measured.to_dict(), risks, told, disclosure)


@dataclass(eq=False)
class Look:
    """What is looked at once an engine has written a release: what its pages show, and what was lost.

    Attributes:
        runner: of the original records.
        evaluate: measures are asked for.
        internal: the internal report is.
        evaluation: what was measured.
    """

    runner: Runner
    evaluate: bool
    internal: bool
    tell: Progress
    evaluation: Evaluation | None = None

    def __call__(self, release: Release, written: Path) -> tuple[Release, Findings | None]:
        """The release with a table that pages can show, and what the internal report needs."""
        after = Side(beside(self.runner, written), Reading(_after_steps(release.schema)))
        attributes = [release.schema[name] for name in release.columns]
        if not (self.evaluate or self.internal):
            return replace(release, data=shown(after, attributes, self.tell, together=False).table), None
        declared = release.declared
        dropping = tuple(
            attribute for attribute in attributes if (attribute.missing or declared.missing) == "drop"
        )
        reading = Reading(release.schema, declared.na, declared.types, declared.file, dropping)
        before = Side(beside(self.runner), reading)
        pair = unmatched(before.table(), after.table(), release)
        measured = evaluate_in_parts(before, after, pair, None, self.tell)
        self.evaluation = replace(measured, told=(*measured.told, Message("rows-not-kept-in-parts")))
        if not self.internal:
            return replace(release, data=shown(after, attributes, self.tell, together=False).table), None
        subject = of_release(release)
        found = _findings(
            subject, before, after, self.evaluation, release.declared.schema or subject.schema, self.tell
        )
        return replace(release, data=found.subject.table), found
