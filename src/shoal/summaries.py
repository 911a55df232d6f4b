"""The summaries of the values that callers hold: a release, its statement, schema and method, and what was measured.

They are apart from the values, so that what is shown can be read, and judged, in one place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.display import Summary, counted, internal_summary, names_in_words

if TYPE_CHECKING:
    from shoal.auditing import Audit
    from shoal.columns.attribute import Attribute
    from shoal.columns.publication import Publication
    from shoal.columns.schema import Margin, Schema
    from shoal.columns.steps import Step
    from shoal.evaluation import Evaluation
    from shoal.evaluation.survey import Estimates
    from shoal.evaluation.verdict import Verdict
    from shoal.mechanisms.method import Method
    from shoal.privacy.statement import PrivacyStatement
    from shoal.release.bundle import Bundle
    from shoal.release.expected_noise import ExpectedNoise
    from shoal.release.protect import Preparation, Release
    from shoal.release.publish import Planned, Published
    from shoal.release.registry import RegistryRecord
    from shoal.taxonomy import Taxonomy
    from shoal.tuning import Tuning

_REASONS = 3


def of_release(release: Release) -> Summary:
    """Its promise and shape. Values of the released table are shown in HTML, and only if it may be published."""
    statement = release.statement
    shape = f"{counted(len(release.columns), 'column')} ({names_in_words(release.columns)})"
    if not statement.publishable:
        return Summary(f"Release with {release.method.name}", (*_verdict(statement), f"{shape}."))
    # a table that was too large for memory is a file
    table = release.data if hasattr(release.data, "__len__") else None
    rows = "" if table is None else f"{counted(len(table), 'row')}, "
    return Summary(
        f"Release with {release.method.name}",
        (*_verdict(statement), f"{rows}{shape}; see .data, .statement, .save(folder)."),
        table,
    )


def of_preparation(prepared: Preparation) -> Summary:
    return Summary(
        f"Preparation of a release with {prepared.method.name}, nothing is spent yet",
        _verdict(prepared.statement),
    )


def of_published(published: Published) -> Summary:
    """The release and where it lies; what was measured and charged is not for everybody."""
    inner = of_release(published.release)
    lines = (*inner.lines, f"Written to {published.folder}.")
    return Summary(inner.title.replace("Release", "Published release", 1), lines, inner.table)


def of_bundle(bundle: Bundle) -> Summary:
    """A bundle may be published or not: what it holds is shown by the rule of a release."""
    columns = tuple(bundle.statement.attributes)
    shape = f"{counted(len(columns), 'column')} ({names_in_words(columns)})"
    table = bundle.data if bundle.statement.publishable else None
    rows = "" if table is None else f"{counted(len(table), 'row')}, "
    lines = (*_verdict(bundle.statement), f"{rows}{shape}; see .data, .statement, .recipe.")
    return Summary(f"Bundle '{bundle.folder.name}' with {bundle.method.name}", lines, table)


def of_planned(planned: Planned) -> Summary:
    return of_preparation(planned.prepared)


def of_statement(statement: PrivacyStatement) -> Summary:
    return Summary(
        f"PrivacyStatement ({statement.model}, {statement.method})",
        (*_verdict(statement), "See .to_markdown()."),
    )


def of_verdict(verdict: Verdict) -> Summary:
    """The decision; what was measured stays behind `.lines`."""
    return Summary(f"Verdict: {verdict.decision}", ("See .lines.",))


def of_expected_noise(noise: ExpectedNoise) -> Summary:
    """All of it: nothing but public quantities went in."""
    if noise.share_of_rows is not None:
        shares = f"shares of the rows off by {noise.share_of_rows:.3g} of them"
        return Summary(
            f"ExpectedNoise of '{noise.column}'",
            (f"{shares}; {counted(len(noise.pairs), 'measured pair')}, see .pairs.",),
        )
    if noise.standard_deviation is None or noise.share_of_range is None:
        return Summary(f"ExpectedNoise of '{noise.column}'", (f"not known: {noise.why}.",))
    size = f"standard deviation {noise.standard_deviation:.4g}, {noise.share_of_range:.3g} of the range"
    return Summary(f"ExpectedNoise of '{noise.column}'", (f"{size}.",))


def of_schema(schema: Schema) -> Summary:
    """Names, kinds and roles; bounds and values only on request, because a draft may have them from the records."""
    words = [f"{a.name} ({a.kind}, {a.role})" for a in schema.attributes]
    return Summary(
        f"Schema of {counted(len(words), 'column')}", (f"{names_in_words(words)}; see .to_dict().",)
    )


def of_attribute(attribute: Attribute) -> Summary:
    return Summary(f"Attribute '{attribute.name}'", (f"{attribute.kind}, {attribute.role}.",))


def of_step(step: Step) -> Summary:
    """What is done and to which column; parameters can come from the records, and are shown on request."""
    return Summary(f"Step {step.do} of '{step.column}'", ("see .words and .to_dict().",))


def of_margin(margin: Margin) -> Summary:
    return Summary(
        f"Margin of '{margin.column}'", (f"{counted(len(margin.totals), 'total')}, from {margin.source}.",)
    )


def of_publication(publication: Publication) -> Summary:
    return Summary(f"Publication '{publication.name}'", (f"{names_in_words(list(publication.to_dict()))}.",))


def of_registry_record(record: RegistryRecord) -> Summary:
    left = counted(len(record.required), "required field")
    return Summary("RegistryRecord", (f"{left} not declared; see .to_yaml(), .required, .missing.",))


def of_taxonomy(taxonomy: Taxonomy) -> Summary:
    """No names and no counts: of a column without declared values, both are those of the records."""
    return Summary("Taxonomy", ("see .labels and .domain.",))


def of_method(method: Method) -> Summary:
    settings = [f"{name} = {value}" for name, value in method.settings().items()]
    return Summary(f"Method {method.name}", (f"{names_in_words(settings)}; see .settings().",))


def of_evaluation(found: Evaluation) -> Summary:
    measures = sum(value is not None for part in (found.utility, found.risk) for value in part.values())
    return internal_summary(
        f"Evaluation of {counted(len(found.columns), 'column')}, {counted(measures, 'measure')}",
        ".to_dict() or .table()",
    )


def of_estimates(found: Estimates) -> Summary:
    """How much there is: the figures are those of the table that they were made from."""
    columns = counted(len(found.numbers) + len(found.tables), "column")
    return internal_summary(f"Estimates of {columns}", ".numbers, .tables or .to_dict()")


def of_tuning(found: Tuning) -> Summary:
    """A private choice was paid for and may be shown; a comparison and what came out best may not."""
    if found.private:
        return Summary("Tuning, a private choice", (found.why,))
    settings = counted(len(found.rows) + len(found.refused), "setting")
    return internal_summary(f"Tuning of {settings}", ".best, .table() or .to_dict()")


def of_audit(found: Audit) -> Summary:
    return internal_summary(
        f"Audit of {found.method}, {found.view} view, {counted(found.runs, 'run')}", ".sentence or .to_dict()"
    )


def _verdict(statement: PrivacyStatement) -> tuple[str, ...]:
    return (statement.sentence, statement.verdict.lines[0], *statement.not_publishable_because[:_REASONS])
