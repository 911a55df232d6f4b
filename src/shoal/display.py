"""Representations in notebooks, logs and tracebacks, and summaries of releases and measures."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from shoal.auditing import Audit
    from shoal.columns import Attribute, Margin, Publication, Rule, Schema, Step
    from shoal.evaluation import Estimates, Evaluation, Verdict
    from shoal.mechanisms import Method
    from shoal.privacy import PrivacyStatement
    from shoal.release import (
        Bundle,
        Corrected,
        ExpectedNoise,
        Planned,
        Preparation,
        Published,
        RegistryRecord,
        Release,
        SyntheticModel,
    )
    from shoal.taxonomy import Taxonomy
    from shoal.tuning import Tuning


Value = TypeVar("Value")
# limits: length of a summary line, of a table cell, names in a list, rows and columns of a table
_LINE, _CELL, _NAMES, _ROWS, _COLUMNS = 300, 40, 8, 5, 12


@dataclass(frozen=True, slots=True)
class DisplaySummary:
    """What a representation may show.

    Attributes:
        title: the kind of object.
        lines: a few facts.
        table: a released table; HTML shows its first rows.
    """

    title: str
    lines: tuple[str, ...] = ()
    table: Any = field(default=None, repr=False)


def displayed(summarise: Callable[[Any], DisplaySummary]) -> Callable[[type[Value]], type[Value]]:
    """Give a class the `repr` and the HTML of its summary."""

    def decorate(cls: type[Value]) -> type[Value]:
        cls.__repr__ = lambda self: as_text(summarise(self))  # type: ignore[method-assign]
        cls._repr_html_ = lambda self: as_html(summarise(self))  # type: ignore[attr-defined]
        return cls

    return decorate


def internal(where: str = "its attributes") -> Callable[[type[Value]], type[Value]]:
    """Make a class show only its name and where its content can be read.

    >>> @internal(".figures")
    ... @dataclass(frozen=True)
    ... class Counts:
    ...     figures: tuple[int, ...]
    >>> Counts((17, 4))
    <Counts: internal, it holds facts about the original records; see .figures>
    """
    return displayed(lambda value: internal_summary(type(value).__name__, where))


def internal_summary(title: str, where: str) -> DisplaySummary:
    return DisplaySummary(f"{title}: internal, it holds facts about the original records; see {where}")


def as_text(summary: DisplaySummary) -> str:
    """The summary in angle brackets, because it is not an expression that recreates the value.

    >>> as_text(DisplaySummary("Schema of 1 column", ("age (numeric)",)))
    '<Schema of 1 column: age (numeric)>'
    """
    lines = " ".join(shortened(line) for line in summary.lines)
    return f"<{shortened(summary.title)}{': ' if lines else ''}{lines}>"


def as_html(summary: DisplaySummary) -> str:
    """
    >>> as_html(DisplaySummary("Schema", ("<b> (numeric)",)))
    '<div><p><strong>Schema</strong></p><p>&lt;b&gt; (numeric)</p></div>'
    """
    lines = "".join(f"<p>{_escaped(line)}</p>" for line in summary.lines)
    return f"<div><p><strong>{_escaped(summary.title)}</strong></p>{lines}{_table(summary.table)}</div>"


def shortened(text: str, length: int = _LINE) -> str:
    """
    >>> shortened("a long text", 6)
    'a lon…'
    """
    return text if len(text) <= length else f"{text[: length - 1]}…"


def names_in_words(names: Sequence[str]) -> str:
    """The first few names, and the number of the others.

    >>> names_in_words([f"c{number}" for number in range(10)])
    'c0, c1, c2, c3, c4, c5, c6, c7 and 2 more'
    """
    shown = ", ".join(shortened(name, _CELL) for name in names[:_NAMES])
    return shown if len(names) <= _NAMES else f"{shown} and {len(names) - _NAMES} more"


def counted(number: int, what: str) -> str:
    """
    >>> counted(1, "column"), counted(3, "column")
    ('1 column', '3 columns')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def _head(frame: Any) -> tuple[tuple[str, ...], ...]:
    """Column names and first rows of a table, as text."""
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    names = table.columns[:_COLUMNS]
    rows = table.select(names).head(_ROWS).rows()
    return (tuple(names), *(tuple("" if cell is None else str(cell) for cell in row) for row in rows))


def _table(frame: Any) -> str:
    if frame is None:
        return ""
    head = _head(frame)
    lines = [
        "<tr>" + "".join(f"<{tag}>{_escaped(shortened(cell, _CELL))}</{tag}>" for cell in row) + "</tr>"
        for tag, row in zip(["th", *["td"] * (len(head) - 1)], head, strict=True)
    ]
    return f"<table>{''.join(lines)}</table>"


def _escaped(text: str) -> str:
    return html.escape(shortened(text))


_REASONS = 3


def of_release(release: Release) -> DisplaySummary:
    """Claim and shape. HTML shows values of the released table, and only if it may be published."""
    statement = release.statement
    shape = f"{counted(len(release.columns), 'column')} ({names_in_words(release.columns)})"
    if not statement.publishable:
        return DisplaySummary(f"Release with {release.method.name}", (*_verdict(statement), f"{shape}."))
    # a release too large for memory is a file
    table = release.data if hasattr(release.data, "__len__") else None
    rows = "" if table is None else f"{counted(len(table), 'row')}, "
    return DisplaySummary(
        f"Release with {release.method.name}",
        (*_verdict(statement), f"{rows}{shape}; see .data, .statement, .save(folder)."),
        table,
    )


def of_preparation(prepared: Preparation) -> DisplaySummary:
    return DisplaySummary(
        f"Preparation of a release with {prepared.method.name}, nothing is spent yet",
        _verdict(prepared.statement),
    )


def of_published(published: Published) -> DisplaySummary:
    """The release and its location; measures and charges are not public."""
    inner = of_release(published.release)
    lines = (*inner.lines, f"Written to {published.folder}.")
    return DisplaySummary(inner.title.replace("Release", "Published release", 1), lines, inner.table)


def of_model(model: SyntheticModel) -> DisplaySummary:
    """A fitted synthesiser holds noisy quantities only."""
    columns = tuple(model.statement.attributes)
    shape = f"{counted(len(columns), 'column')} ({names_in_words(columns)})"
    lines = (*_verdict(model.statement), f"{shape}; see .sample, .save, .statement.")
    return DisplaySummary(f"Model with {model.method.name}", lines)


def of_bundle(bundle: Bundle) -> DisplaySummary:
    """A bundle may be publishable or not: its content is shown by the same rule as a release."""
    columns = tuple(bundle.statement.attributes)
    shape = f"{counted(len(columns), 'column')} ({names_in_words(columns)})"
    table = bundle.data if bundle.statement.publishable else None
    rows = "" if table is None else f"{counted(len(table), 'row')}, "
    lines = (*_verdict(bundle.statement), f"{rows}{shape}; see .data, .statement, .recipe.")
    return DisplaySummary(f"Bundle '{bundle.folder.name}' with {bundle.method.name}", lines, table)


def of_planned(planned: Planned) -> DisplaySummary:
    return of_preparation(planned.prepared)


def of_statement(statement: PrivacyStatement) -> DisplaySummary:
    return DisplaySummary(
        f"PrivacyStatement ({statement.model}, {statement.method})",
        (*_verdict(statement), "See .to_markdown()."),
    )


def of_verdict(verdict: Verdict) -> DisplaySummary:
    """The decision only; measured figures are in `.lines`."""
    return DisplaySummary(f"Verdict: {verdict.decision}", ("See .lines.",))


def of_expected_noise(noise: ExpectedNoise) -> DisplaySummary:
    """Everything: expected noise is computed from public quantities only."""
    if noise.share_of_rows is not None:
        shares = f"shares of the rows off by {noise.share_of_rows:.3g} of them"
        return DisplaySummary(
            f"ExpectedNoise of '{noise.column}'",
            (f"{shares}; {counted(len(noise.pairs), 'measured pair')}, see .pairs.",),
        )
    if noise.standard_deviation is None or noise.share_of_range is None:
        return DisplaySummary(f"ExpectedNoise of '{noise.column}'", (f"not known: {noise.why}.",))
    size = f"standard deviation {noise.standard_deviation:.4g}, {noise.share_of_range:.3g} of the range"
    return DisplaySummary(f"ExpectedNoise of '{noise.column}'", (f"{size}.",))


def of_corrected(found: Corrected) -> DisplaySummary:
    """Everything: corrected frequencies are computed from the released table only."""
    words = [
        f"{value} {count:.0f} ± {error:.0f}"
        for value, count, error in zip(found.values, found.counts, found.standard_errors, strict=True)
    ]
    return DisplaySummary(f"Corrected frequencies of '{found.column}'", (f"{names_in_words(words)}.",))


def of_schema(schema: Schema) -> DisplaySummary:
    """Names, kinds and roles only; bounds and values of a draft may come from the records."""
    words = [f"{a.name} ({a.kind}, {a.role})" for a in schema.attributes]
    return DisplaySummary(
        f"Schema of {counted(len(words), 'column')}", (f"{names_in_words(words)}; see .to_dict().",)
    )


def of_attribute(attribute: Attribute) -> DisplaySummary:
    return DisplaySummary(f"Attribute '{attribute.name}'", (f"{attribute.kind}, {attribute.role}.",))


def of_step(step: Step) -> DisplaySummary:
    """The operation and its column only; parameters may come from the records."""
    return DisplaySummary(f"Step {step.do} of '{step.column}'", ("see .words and .to_dict().",))


def of_margin(margin: Margin) -> DisplaySummary:
    return DisplaySummary(
        f"Margin of '{margin.column}'", (f"{counted(len(margin.totals), 'total')}, from {margin.source}.",)
    )


def of_rule(rule: Rule) -> DisplaySummary:
    return DisplaySummary(f"Rule of kind {rule.kind}", ("see .words and .to_dict().",))


def of_publication(publication: Publication) -> DisplaySummary:
    return DisplaySummary(
        f"Publication '{publication.name}'", (f"{names_in_words(list(publication.to_dict()))}.",)
    )


def of_registry_record(record: RegistryRecord) -> DisplaySummary:
    left = counted(len(record.required), "required field")
    return DisplaySummary("RegistryRecord", (f"{left} not declared; see .to_yaml(), .required, .missing.",))


def of_taxonomy(taxonomy: Taxonomy) -> DisplaySummary:
    """Neither names nor counts: for a column without declared values, both come from the records."""
    return DisplaySummary("Taxonomy", ("see .labels and .domain.",))


def of_method(method: Method) -> DisplaySummary:
    settings = [f"{name} = {value}" for name, value in method.settings().items()]
    return DisplaySummary(f"Method {method.name}", (f"{names_in_words(settings)}; see .settings().",))


def of_evaluation(found: Evaluation) -> DisplaySummary:
    measures = sum(value is not None for part in (found.utility, found.risk) for value in part.values())
    return internal_summary(
        f"Evaluation of {counted(len(found.columns), 'column')}, {counted(measures, 'measure')}",
        ".to_dict() or .table()",
    )


def of_estimates(found: Estimates) -> DisplaySummary:
    """How many estimates there are; the figures describe the table they were computed from."""
    columns = counted(len(found.numbers) + len(found.tables), "column")
    return internal_summary(f"Estimates of {columns}", ".numbers, .tables or .to_dict()")


def of_tuning(found: Tuning) -> DisplaySummary:
    """A private choice was charged to the budget and may be shown; a comparison and its best result may not."""
    if found.private:
        return DisplaySummary("Tuning, a private choice", (found.why,))
    settings = counted(len(found.rows) + len(found.refused), "setting")
    return internal_summary(f"Tuning of {settings}", ".best, .table() or .to_dict()")


def of_audit(found: Audit) -> DisplaySummary:
    return internal_summary(
        f"Audit of {found.method}, {found.view} view, {counted(found.runs, 'run')}", ".sentence or .to_dict()"
    )


def _verdict(statement: PrivacyStatement) -> tuple[str, ...]:
    return (statement.sentence, statement.verdict.lines[0], *statement.not_publishable_because[:_REASONS])
