"""Bundles: write the publishable files of a release to one folder, all or none, and load them; internal reports."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from shoal import display
from shoal.columns import MISSING_VALUE, Attribute, Schema
from shoal.display import displayed, internal
from shoal.engines import LocalRunner, Runner, TaskStage, batch_of, blobs_in
from shoal.errors import CancelledError, ClaimError, InputError, OptionError, ShoalError
from shoal.evaluation import (
    MOST_ROWS,
    SAMPLE,
    BatchReading,
    CountedColumn,
    CountingPlan,
    Cut,
    DomainParts,
    Evaluation,
    Grouping,
    Numbers,
    RiskFigures,
    Side,
    Standardisation,
    TextCounts,
    Values,
    check_in_parts,
    count_groups,
    count_together,
    count_values,
    evaluate_in_parts,
    some_rows,
    unmatched,
)
from shoal.io import (
    ROW,
    Codebook,
    Conventions,
    Table,
    check_output,
    check_writable,
    frozen,
    known_format,
    new_parents,
    private_file,
    read,
    staged,
    unless_done,
    write,
)
from shoal.mechanisms import LOG, Method, configured, load_recipe, log_text, parameters, recipe_text
from shoal.numbers import Floats, Integers
from shoal.privacy import (
    MODELS,
    Measurements,
    PrivacyStatement,
    computed_values,
    declaration,
    domain_words,
    recorded_words,
)
from shoal.progress import Progress, silent
from shoal.release.measure import Corrected, corrected, evaluated
from shoal.report import (
    ColumnRange,
    CountedTable,
    Findings,
    OrderedMarginal,
    Subject,
    attacked,
    bundle_page,
    check_original,
    comparison,
    disclosed,
    of_bundle,
    of_release,
    sampled,
)
from shoal.text import Message, capital

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.release.protection import Release
    from shoal.report import Findings


# the noisy numbers that the rows were drawn from
MEASUREMENTS = "measurements.json"


def save_bundle(
    release: Release,
    folder: Path,
    internal: str | Path | None,
    format: str,
    evaluation: Any = None,
    original: Any = None,
    *,
    statistics: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write data, statement, recipe, log and public report to `folder`; the internal report to its own path.

    With `statistics` the masked statistics of the clusters are written beside the data.
    """
    kind = known_format(format)
    check_writable(release.columns, kind)
    if statistics and release.statistics is None:
        raise OptionError("method-keeps-no-statistics-clusters", method=release.method.name)
    internal_path = None if internal is None else Path(internal)
    check_output(folder, internal_path)
    tell = progress or silent
    with contextlib.ExitStack() as undo, staged(folder) as aside:
        tell("writing the tables", 0, 1)
        manner = (
            release.conventions if kind.title == known_format(release.format).title else no_separator(release)
        )
        dates = {a.name: a.format for a in release.schema.attributes if a.format is not None}
        for name, frame in {"data": release.data, **release.linked}.items():
            write(frame, aside / f"{name}{kind.ending}", public_codebook(release, frame), manner, dates)
        if statistics:
            # Stata and SPSS do not allow names such as "covariance of income and tax"
            ending = kind.ending if kind.typed else ".csv"
            write(release.statistics, aside / f"statistics{ending}", None, manner)
        if release.verify is not None:
            tell("reading the tables back", 0, 1)
            # check the data as readers will read them
            types = release.schema.types
            # a linked table may hold labels for groups of values, which have no declared type
            further = {
                name: read(
                    aside / f"{name}{kind.ending}", conventions=manner.of_release(), dates=dates, strict=False
                )
                for name in release.linked
            }
            written = read(
                aside / f"data{kind.ending}",
                types=types,
                conventions=manner.of_release(),
                dates=dates,
                strict=False,
            )
            release.verify(written, further)
        write_documents(release, aside, undo, internal_path, evaluation, original, tell)
    return folder


def no_separator(release: Release) -> Conventions:
    """The conventions of the input for a file of another format, which has its own separator."""
    return replace(release.conventions, separator=None)


def public_codebook(release: Release, frame: Any) -> Codebook | None:
    """Codes and labels that may be released with a table: only those in the table or its schema."""
    if release.codebook is None:
        return None
    declared = {a.name: _listed(a, release.method.output.generalise) for a in release.schema.attributes}
    return release.codebook.public(frame, declared)


def _listed(attribute: Attribute, generalise: bool) -> list[str]:
    """The values that a nominal column may hold when it is released."""
    if attribute.tree is None:
        return list(attribute.ordered)
    names = attribute.tree.labels if generalise else attribute.tree.values
    return [name for name in names if name != MISSING_VALUE]


def write_documents(
    release: Release,
    aside: Path,
    undo: contextlib.ExitStack,
    internal: Path | None = None,
    evaluation: Any = None,
    original: Any = None,
    progress: Progress = silent,
    found: Findings | None = None,
) -> None:
    """Statement, recipe, log and public report beside the data; the internal report last, at its own path.

    `undo` outlives the bundle's own folder: if that cannot be put in place, the internal report is removed too.
    """
    from shoal.report import internal_report, public_report

    progress("writing the statement and the report", 0, 1)
    statement = json.dumps(release.statement.to_dict(), indent=2, ensure_ascii=False)
    (aside / "statement.json").write_text(statement + "\n", "utf-8")
    if release.measurements is not None:
        numbers = json.dumps(release.measurements.to_dict(), ensure_ascii=False)
        (aside / MEASUREMENTS).write_text(numbers + "\n", "utf-8")
    (aside / "method.toml").write_text(recipe_text(release), "utf-8")
    (aside / LOG).write_text(log_text(release), "utf-8")
    (aside / "report.html").write_text(public_report(release), "utf-8")
    if internal is None:
        return
    page = internal_report(release, evaluation, original, progress, found)
    undo.enter_context(new_parents(internal, private=True))
    private_file(internal, new=True)
    undo.push(unless_done(internal))
    internal.write_text(page, "utf-8")


@displayed(display.of_bundle)
@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """A release on disk, with everything public about it.

    Attributes:
        folder: its location.
        data: the released table, a pyarrow table.
        statement: the privacy statement, with the claim.
        method: the configured method.
        schema: the public facts about the released columns.
        recipe: arguments of `shoal.protect` and `shoal.publish` that repeat the release on another table.
        report: the public report.
        linked: further released tables by name.
        statistics: masked statistics of the clusters, None where none were published.
        measurements: the noisy numbers behind the rows, None where none were published.
    """

    folder: Path
    data: Any
    statement: PrivacyStatement
    method: Method
    schema: Schema
    recipe: Mapping[str, Any]
    report: Path
    linked: Mapping[str, Any]
    statistics: Any
    measurements: Measurements | None = None

    @classmethod
    def load(cls, folder: str | Path) -> Bundle:
        """Read the folder that `shoal.publish`, `Release.save` or `shoal protect` wrote.

        Raises:
            InputError: it is not a bundle, a file is missing or damaged, or the files do not belong together.
            OptionError: its recipe cannot be used.
        """
        folder = Path(folder)
        subject = of_bundle(folder)
        statement = PrivacyStatement.from_dict(subject.statement, f"'{folder / 'statement.json'}'")
        recipe = load_recipe(folder / "method.toml")
        settled = ("method", *parameters())
        method = configured(
            **{"name" if key == "method" else key: recipe[key] for key in recipe if key in settled}
        )
        if subject.schema.unit is not None:
            method = method.for_units(subject.schema.unit.unit_rows)
        if method.name != statement.method:
            raise InputError(
                "damaged-statement-about-recipe-about",
                folder=folder,
                method=statement.method,
                method_2=method.name,
            )
        tables = {name: table.frame.to_native() for name, table in subject.linked.items()}
        held = {name for table in (subject.table, *subject.linked.values()) for name in table.names}
        for name in statement.attributes:
            if name not in held:
                raise InputError("damaged-column-statement-none-tables", column=name, folder=folder)
        report = folder / "report.html"
        if not report.is_file():
            raise InputError("holds-no-report-html", folder=folder)
        statistics = tables.pop("statistics", None)
        data = subject.table.frame.to_native()
        return cls(
            folder,
            data,
            statement,
            method,
            subject.schema,
            recipe,
            report,
            tables,
            statistics,
            load_measurements(folder / MEASUREMENTS, statement, subject.schema),
        )

    def corrected(self, column: str) -> Corrected:
        """The frequencies of a column corrected for the matrix that its values passed, with standard errors.

        Raises:
            OptionError: the column is not released, or the method uses no matrix that has an inverse.
        """
        return corrected(self.data, self.method, self.schema, tuple(self.statement.attributes), column)


def load_measurements(path: Path, statement: PrivacyStatement, schema: Schema) -> Measurements | None:
    """The measurements of a bundle, checked against its statement.

    Columns of rules can be missing: derived ones, and those that are measured together with another one.
    """
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise InputError("measurements-damaged", file=path, reason=str(error)) from None
    made = Measurements.from_dict(found, str(path))
    measured, released = {one["column"] for one in made.attributes}, set(statement.attributes)
    of_rules = {name for rule in schema.stepped.rules for name in rule.named}
    if not measured <= released or not released - measured <= of_rules:
        raise InputError("measurements-damaged", file=path, reason="columns")
    return made


# mechanisms that draw synthetic records
_SYNTHETIC = ("pairs", "tree")
_VARIANTS = {"dp": "Pure DP", "approximate-dp": "Approximate DP"}
# what the registry requires, by key of [publication]
_REQUIRED = ("name", "curators", "description", "purpose", "region", "date", "authors")
_WANTED = (
    "sector",
    "releases",
    "data_source",
    "actors",
    "security",
    "justification",
    "other_releases",
    "sources",
)
_RELEASES = ("one", "many")


@displayed(display.of_registry_record)
@dataclass(frozen=True, slots=True)
class RegistryRecord:
    """A release as the registry describes deployments.

    Attributes:
        record: as plain values.
        required: keys of [publication] that the registry requires and the schema does not give.
        missing: further keys that the registry asks for.
    """

    record: dict[str, Any]
    required: tuple[str, ...]
    missing: tuple[str, ...]

    def to_yaml(self) -> str:
        """The record as a YAML document."""
        return "\n".join(_yaml(self.record)) + "\n"


def registry_record(bundle: Bundle | str | Path) -> RegistryRecord:
    """The record of a release for the registry of differential privacy deployments.

    Args:
        bundle: a release on disk, or its folder.

    Raises:
        InputError: it is not a bundle.
        ClaimError: its claim is not differential privacy, or its verdict is "do not publish".
    """
    statement = (bundle if isinstance(bundle, Bundle) else Bundle.load(bundle)).statement
    if not MODELS[statement.model].budgeted:
        raise ClaimError("registry-about-differential-privacy-release-claims", model=statement.model)
    if not statement.publishable:
        raise ClaimError(
            "verdict-release-do-not-publish", not_publishable_because=statement.not_publishable_because[0]
        )
    told = statement.publication
    required = tuple(key for key in _REQUIRED if not told.get(key))
    missing = tuple(key for key in _WANTED if not told.get(key))
    record = {
        "url_slug": told.get("slug") or _slug(told),
        "status": "Draft",
        "tier": 2 if required or missing else 3,
        "deployment": _without_gaps(_deployment(statement, told)),
    }
    return RegistryRecord(record, required, missing)


def _deployment(statement: PrivacyStatement, told: Mapping[str, Any]) -> dict[str, Any]:
    plain = statement.to_dict()
    values = computed_values(plain)
    rho = None if statement.rho is None else float(statement.rho)
    return {
        "basic": {
            "name": told.get("name"),
            "data_curators": told.get("curators"),
            "intended_use": told.get("purpose"),
            "data_product_type": "Synthetic data" if statement.mechanism in _SYNTHETIC else "Dataset",
            "data_product_region": told.get("region"),
            "description": told.get("description"),
            "publication_date": told.get("date"),
            "data_product_sector": told.get("sector"),
        },
        "dp_variant": {
            "variant_name": _VARIANTS.get(statement.model, "Custom"),
            "data_domain": _domain(statement),
            "unprotected_quantities": str(values["invariants"]).capitalize(),
        },
        "privacy_loss": {
            "privacy_unit": f"one {statement.unit}",
            "privacy_unit_details": _adjacent(statement),
            "privacy_parameters": {
                "epsilon": None if statement.epsilon is None else float(statement.epsilon),
                "delta": float(statement.delta) if statement.delta else None,
                "rho": rho,
            },
            "privacy_parameters_details": _joined(
                statement.sentence,
                Message.of("registry-spent", parts=values["spending"])
                if "spending" in values
                else Message("registry-spent-as-a-whole"),
                Message("registry-in-rho") if rho is not None else None,
            ),
        },
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": str(Message("registry-central")),
            "actors": _told(told, "actors", "recipients"),
            "release_type": _releases(told.get("releases")),
            "release_type_details": told.get("other_releases"),
            "data_source_type": told.get("data_source", "").capitalize(),
            "access_type": "Non-interactive",
        },
        "accounting": {
            "composition": str(
                Message("registry-composition" if rho is None else "registry-composition-in-rho")
            ),
            "post_processing": _joined(
                Message("registry-drawn" if statement.mechanism in _SYNTHETIC else "registry-put-back"),
                Message("registry-post-processing"),
            ),
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": " ".join(_preprocessing(plain)),
            "mechanisms": _joined(
                Message("registry-mechanisms", values),
                Message.of("registry-security", security=told["security"]) if told.get("security") else None,
            ),
            "justification": told.get("justification"),
        },
        "administrative": {
            "sources": told.get("sources"),
            "notes": _told(told, "notes", "contact"),
            "registry_authors": told.get("authors"),
        },
    }


def _domain(statement: PrivacyStatement) -> str:
    columns = tuple(
        Message.of("registry-column", column=name, domain=domain_words(facts))
        for name, facts in statement.attributes.items()
    )
    return str(Message.of("registry-domain", columns=columns))


def _adjacent(statement: PrivacyStatement) -> str:
    given = MODELS[statement.model].given_partition
    return _joined(
        Message(f"registry-{statement.adjacency}"),
        Message("registry-clusters-public") if given else None,
        Message.of("registry-unit", unit=statement.unit),
    )


def _preprocessing(plain: Mapping[str, Any]) -> Iterator[str]:
    yield from plain.get("steps", ())
    if not plain.get("steps"):
        yield str(Message("registry-no-steps"))
    for one in plain["declared"]["facts"]:
        if one["code"] == "choices":
            yield capital(declaration(one["code"], one["facts"]))
    yield from (recorded_words(one["code"], one["facts"]) for one in plain["recorded"])
    yield str(Message("registry-viewing-not-counted"))


def _joined(*said: Message | str | None) -> str:
    return " ".join(str(one) for one in said if one is not None)


def _releases(told: str | None) -> str | None:
    return str(Message(f"registry-releases-{told}")) if told in _RELEASES else None


def _told(told: Mapping[str, Any], *keys: str) -> str:
    """The publisher's own texts under their keys."""
    found = [f"{key.capitalize()}: {str(told[key]).removesuffix('.')}." for key in keys if told.get(key)]
    return " ".join(found)


def _slug(told: Mapping[str, Any]) -> str:
    words = [told.get("name", "release"), *told.get("curators", ())[:1], told.get("date", "")[:4]]
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-") or "release"


def _without_gaps(value: Mapping[str, Any]) -> dict[str, Any]:
    """Drop keys without a value."""
    found = {key: _without_gaps(item) if isinstance(item, Mapping) else item for key, item in value.items()}
    return {key: item for key, item in found.items() if item not in (None, "", [], {})}


def _yaml(value: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """A mapping as lines of YAML: double-quoted texts, which mean the same in every YAML version."""
    space = "  " * depth
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield f"{space}{key}:"
            yield from _yaml(item, depth + 1)
        elif isinstance(item, list):
            yield f"{space}{key}:"
            yield from (f"{space}  - {_scalar(one)}" for one in item)
        else:
            yield f"{space}{key}: {_scalar(item)}"


def _scalar(value: Any) -> str:
    """A text or a number; a number needs a point before its exponent.

    >>> _scalar(1e-06), _scalar("a: \\x85")
    ('1.0e-06', '"a: \\\\u0085"')
    """
    if isinstance(value, float):
        digits, sign, exponent = repr(value).partition("e")
        return f"{digits if '.' in digits or not sign else f'{digits}.0'}{sign}{exponent}"
    if not isinstance(value, str):
        return json.dumps(value)
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in quoted)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A table as the report pages need it.

    Attributes:
        table: its columns, without records; answers come from the counts.
        attacked: the rows for the attacks, None where these were not requested.
        left_out: columns with more distinct values than are counted.
    """

    table: Table
    attacked: Table | None
    left_out: tuple[str, ...]


def shown(side: Side, attributes: Sequence[Attribute], tell: Progress, *, together: bool) -> Shown:
    """Count what pages show of some columns.

    Args:
        together: also correlations, and a sample of rows for joint figures; two passes more.
    """
    asked = [
        CountedColumn(one.name, one, one.kind_facts.ordered, not one.kind_facts.ordered) for one in attributes
    ]
    values = count_values(side, asked, tell)
    left_out = tuple(
        name
        for name, found in values.columns.items()
        if isinstance(found, TextCounts) and found.counts is None
    )
    asked = [one for one in asked if one.name not in left_out]
    ordered = [one for one in asked if one.ordered]
    empty = side.table()
    rows, attacked = empty, None
    related = np.empty((0, 0))
    if together:
        related = _correlations(side, ordered, values, tell)
        rows, attacked = _samples(side, [one.name for one in asked], tell)
    marginals, names = {}, {}
    for one in asked:
        found = values.columns[one.name]
        if isinstance(found, Numbers):
            marginals[one.name] = _marginal(found)
        else:
            counts = Counter(found.counts or {})
            if found.missing:
                counts[MISSING_VALUE] += found.missing
            names[one.name] = counts
    source = CountedTable(values.n, marginals, names, (tuple(one.name for one in ordered), related), rows)
    return Shown(replace(empty, records=source), attacked, left_out)


def _marginal(found: Numbers) -> OrderedMarginal:
    facts = found.facts
    ends = (
        None if facts.low is None or facts.high is None else ColumnRange(facts.low, facts.high, facts.whole)
    )
    return OrderedMarginal(found.distribution, facts.moments, ends, facts.missing)


def _correlations(side: Side, ordered: Sequence[CountedColumn], values: Values, tell: Progress) -> Floats:
    if len(ordered) < 2:
        return np.full((len(ordered), len(ordered)), np.nan)
    scales = {}
    for place, one in enumerate(ordered):
        found = values.columns[one.name]
        assert isinstance(found, Numbers)
        scales[place] = Standardisation.of(found)
    # categories are not needed: one part is enough
    cuts = tuple(Cut(one, DomainParts(0.0, 1.0, 1)) for one in ordered)
    plan = CountingPlan(cuts, scales, {}, pairs=False)
    return count_together(side, plan, tell).products.correlations()


def picked_rows(
    batches: Iterator[pa.RecordBatch], reading: BatchReading, names: Sequence[str], wanted: Integers
) -> Iterator[pa.RecordBatch]:
    """The rows with the given numbers, as they are read."""
    import pyarrow as pa

    for table, rows in reading.parts(batches):
        places = np.searchsorted(wanted, rows)
        mine = np.flatnonzero(wanted[np.minimum(places, wanted.size - 1)] == rows)
        if mine.size:
            few: pa.Table = table.rows(mine).frame.select(list(names)).to_arrow()
            few = few.append_column(ROW, pa.array(rows[mine]))
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, few.schema) as writer:
                writer.write_table(few)
            yield batch_of([(0, 0, sink.getvalue().to_pybytes())])


def _samples(side: Side, names: Sequence[str], tell: Progress) -> tuple[Table, Table]:
    """The sample of rows for joint figures, and the rows for the attacks."""
    import pyarrow as pa

    n = side.runner.rows
    together, attacked = sampled(n), some_rows(n, SAMPLE) if n > MOST_ROWS else np.arange(n)
    wanted = np.union1d(together, attacked)
    task = partial(picked_rows, reading=side.reading, names=tuple(names), wanted=wanted)
    pieces = [
        pa.ipc.open_stream(blob).read_all()
        for _, _, blob in blobs_in(side.collect("taking a sample of rows", names, tell, TaskStage(task)))
    ]
    whole = pa.concat_tables(pieces).sort_by(ROW)
    rows, frame = whole[ROW].to_numpy(), whole.drop_columns([ROW])
    few = [frame.take(pa.array(np.flatnonzero(np.isin(rows, some)))) for some in (together, attacked)]
    first, second = (Table(nw.from_native(one, eager_only=True), "parquet") for one in few)
    return first, second


_NO_LEVELS: dict[str, float | None] = {"k": None, "l": None, "t_emd": None, "t_ratio": None}


def beside(runner: Runner, path: Path | None = None) -> Runner:
    """A runner of the same kind for other files, or another one for the same files."""
    files: Any = runner.files if path is None else frozen(path)  # type: ignore[attr-defined]
    session = getattr(runner, "session", None)
    if session is None:
        return LocalRunner(files)
    from shoal.engines import SparkRunner

    return SparkRunner(session, files, log=getattr(runner, "_log", None))


def report_in_parts(
    subject: Subject,
    folder: Path,
    runners: Sequence[Runner],
    progress: Progress | None = None,
) -> str:
    """The page of `shoal.report.bundle_report`, for a bundle and an original that runners read.

    Args:
        folder: of the bundle, as errors name it.
        runners: of the original, if any, and of the released table.
    """
    tell = progress or silent
    after = Side(runners[-1], BatchReading(_after_steps(subject.schema), subject.na))
    if len(runners) == 1:
        found = shown(after, _of(subject), tell, together=True)
        ((_, groups),) = count_groups(after, [Grouping(subject.columns)], tell)
        source = replace(found.table.records, different=int(groups.sum()))
        found = replace(found, table=replace(found.table, records=source))
        return bundle_page(_with(subject, found))
    before = Side(runners[0], BatchReading(subject.schema, subject.na))
    check_original(subject, before.table(), folder)
    measured = evaluated(runners, subject, na=subject.na, progress=tell)
    return comparison(_findings(subject, before, after, measured, subject.schema, tell))


def _after_steps(schema: Schema) -> Schema:
    """The declarations about a table after its preprocessing steps."""
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
    """The findings from both tables together."""
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
            # the section is left out, as in memory; here the page gives the reason
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
class ReleaseReview:
    """What is computed once an engine has written a release: the content of its pages, and the measures.

    Attributes:
        runner: of the original records.
        evaluate: measures are requested.
        internal: the internal report is requested.
        evaluation: the measures.
    """

    runner: Runner
    evaluate: bool
    internal: bool
    tell: Progress
    evaluation: Evaluation | None = None

    def __call__(self, release: Release, written: Path) -> tuple[Release, Findings | None]:
        """The release with a table that pages can show, and what the internal report needs."""
        after = Side(beside(self.runner, written), BatchReading(_after_steps(release.schema)))
        attributes = [release.schema[name] for name in release.columns]
        if not (self.evaluate or self.internal):
            return replace(release, data=shown(after, attributes, self.tell, together=False).table), None
        declared = release.declared
        dropping = tuple(
            attribute for attribute in attributes if (attribute.missing or declared.missing) == "drop"
        )
        reading = BatchReading(release.schema, declared.na, declared.types, declared.file, dropping)
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
