"""Findings of a report: public facts of a release, and measures and risks for internal pages.

Tables of any size are measured in seconds: large ones are sampled, which the page states.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.arguments import renamed_attributes
from shoal.columns import TAKEN_FROM_DATA, Attribute, Schema, read_declared
from shoal.display import internal
from shoal.errors import CancelledError, InputError, OptionError, ShoalError
from shoal.evaluation import (
    ATTEMPTS,
    BEYOND,
    MOST_ROWS,
    ONE_COLUMN,
    SAMPLE,
    SEVERAL_COLUMNS,
    AttackReport,
    RiskFigures,
    RiskLine,
    excerpt,
    linkage_line,
    released_rows,
    risk,
    some_rows,
)
from shoal.io import Table, parquet_files, read, read_columnwise, table_name
from shoal.mechanisms import LOG, done_in, load_recipe, log_entries, recipe_text
from shoal.numbers import Integers
from shoal.privacy import PrivacyStatement
from shoal.progress import Progress, silent
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.evaluation import Evaluation
    from shoal.release import Release


# a table, its keys, its declared schema, and its sensitive columns
Measure = Callable[[Table, Sequence[str], Schema, Sequence[str]], RiskFigures]
_FEWEST_ROWS = 10
_SEED = 1

# a sample has equivalence classes of its own
_OF_ALL_ROWS = ("actual_k", "groups", "unique_share", "actual_k_per_attribute")


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A released table with everything public about it.

    Attributes:
        statement: the privacy statement as plain values, as in `statement.json`.
        table: the released table.
        schema: the public facts about its columns.
        columns: the released columns that the schema describes, in the order of the table.
        recipe: the text of `method.toml`.
        na: texts that stood for a missing value.
        linked: further released tables by name.
        log: the steps of processing, one entry each.
    """

    statement: Mapping[str, Any]
    table: Table
    schema: Schema
    columns: tuple[str, ...]
    recipe: str
    na: tuple[str, ...] = ()
    linked: Mapping[str, Table] = field(default_factory=dict)
    log: tuple[Mapping[str, str], ...] = ()

    def attribute(self, name: str) -> Attribute:
        return self.schema[name]

    def share(self, name: str) -> str:
        """ε of a column as text; empty where it has none."""
        shares = self.statement["epsilon_per_attribute"]
        if name not in shares:
            return ""
        return TAKEN_FROM_DATA if shares[name] is None else f"{shares[name]:.6g}"

    def domain(self, name: str, values: NDArray[np.float64]) -> tuple[float, float]:
        """The declared domain of an ordered column; a domain taken from the data is not shown."""
        attribute = self.schema[name]
        if attribute.kind_facts.listed:
            return 0.0, float(max(len(attribute.ordered) - 1, 1))
        if attribute.lo is None or attribute.hi is None:
            return (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
        return float(attribute.lo), float(attribute.hi)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Measurable:
    """A bundle as input of the measures: without rows in input order, which a bundle never holds."""

    data: Table
    schema: Schema
    columns: tuple[str, ...]
    domains: dict[str, tuple[float, float]]
    aligned: None = None
    kept: None = None


def of_release(release: Release) -> Subject:
    """The public facts about a release in memory."""
    table = read(release.data)
    return Subject(
        statement=release.statement.to_dict(),
        table=table,
        schema=release.schema,
        columns=tuple(name for name in table.names if name in release.domains),
        recipe=recipe_text(release),
        na=tuple(release.declared.na),
        linked={name: read(frame) for name, frame in release.linked.items()},
        log=tuple(log_entries(release)),
    )


def of_bundle(folder: str | Path, *, on_disk: bool = False) -> Subject:
    """The public facts about a release on disk.

    Args:
        on_disk: leave a Parquet file on disk, as is always done with a folder of them.

    Raises:
        InputError: the folder is not a bundle, or one of its files cannot be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError("subject-there-no-folder", folder=folder)
    statement = _statement(folder / "statement.json")
    recipe_file = folder / "method.toml"
    if not recipe_file.exists():
        raise InputError("holds-no-method-toml", folder=folder)
    recipe = load_recipe(recipe_file)
    tables = {name: path for path in sorted(folder.iterdir()) if (name := table_name(path)) is not None}
    if (folder / "data").is_dir():
        tables["data"] = folder / "data"
    if "data" not in tables:
        raise InputError("holds-no-data-file", folder=folder)
    if "schema" not in recipe:
        raise OptionError("recipe-describes-no-column", recipe_file=recipe_file)
    schema = recipe["schema"].stepped
    dates = {a.name: a.format for a in schema.attributes if a.format is not None}
    na = tuple(recipe.get("na", ()))
    data = tables.pop("data")
    # an engine writes a folder of files, which is read one column at a time
    table = (
        read_columnwise(data)
        if data.is_dir() or (on_disk and data.suffix == ".parquet")
        else read(data, na, schema.types, schema.file.of_release(), dates, strict=False)
    )
    released = set(recipe.get("columns", schema.names))
    return Subject(
        statement=statement,
        table=table,
        schema=schema,
        columns=tuple(name for name in table.names if name in released and name in schema),
        recipe=recipe_file.read_text("utf-8"),
        na=na,
        linked={
            name: read(path, na, conventions=schema.file.of_release(), strict=False)
            for name, path in tables.items()
        },
        log=done_in(folder / LOG),
    )


def bundle_of(path: str | Path, *, on_disk: bool = False) -> Subject | None:
    """The bundle that a path identifies, by its folder or its data file; None for any other table.

    Args:
        on_disk: as for `of_bundle`.

    Raises:
        InputError: it is a bundle, or a folder, and one of its files cannot be read.
    """
    path = Path(path)
    if path.stem == "data" and path.exists() and (path.parent / "statement.json").is_file():
        return of_bundle(path.parent, on_disk=on_disk)
    if not path.is_dir():
        return None
    # a folder of Parquet files written by any tool is a table
    plain = not (path / "statement.json").exists() and bool(parquet_files(path))
    return None if plain else of_bundle(path, on_disk=on_disk)


def published(subject: Subject) -> Measurable:
    """The bundle as input of `shoal.evaluate`, with the kinds, domains and taxonomies of the schema."""
    domains = {}
    for name in subject.columns:
        attribute = subject.attribute(name)
        if attribute.kind_facts.listed or attribute.lo is not None:
            domains[name] = subject.domain(name, np.empty(0))
    return Measurable(subject.table, subject.schema, subject.columns, domains)


def _statement(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise InputError("holds-no-statement-json", parent=path.parent)
    try:
        found = json.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError("is-not-json", path=path, reason=error) from None
    # a bundle of an earlier version is converted to the current format
    return PrivacyStatement.from_dict(found, f"'{path}'").to_dict()


@renamed_attributes(keys="quasi_identifiers")
@internal()
@dataclass(frozen=True, slots=True)
class Disclosure:
    """Risk figures of both tables by the same keys.

    Attributes:
        quasi_identifiers: those that both tables have.
        titles: the headings of the value columns.
        lines: name, one value for each title, meaning.
        conditions: the assumptions behind the figures.
    """

    quasi_identifiers: tuple[str, ...]
    titles: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...], str], ...]
    conditions: tuple[str, ...]


def disclosed(
    before: Table,
    subject: Subject,
    schema: Schema | None = None,
    progress: Progress = silent,
    measure: Measure | None = None,
) -> Disclosure | None:
    """The risk of both tables by the quasi-identifiers; None where there are none, or it cannot be measured.

    A missing value is a separate value, as in the claim of k-anonymity. Both tables are taken as the population and
    their rows are counted, unless both have weights; an original whose weights were not released is measured with
    them too, and one in which a column identifies the person, by persons.

    Args:
        before: the original rows.
        subject: the released table and what is public about it.
        schema: what was declared about the original, with the roles of columns that were not released.
        measure: how the figures of a table are measured; by default in memory.
    """
    keys = tuple(
        name
        for name in subject.columns
        if subject.attribute(name).role == "quasi-identifier" and name in before.names
    )
    if not keys:
        return None
    sensitive = [
        name
        for name in subject.columns
        if subject.attribute(name).role == "confidential"
        and not subject.attribute(name).kind_facts.measured
        and name in before.names
    ]
    progress("measuring the disclosure risk", 0, 1)
    whole = schema or subject.schema
    # the public facts name the weight and the unit, which the original has and the released table does not
    gone = {
        role
        for role in ("weight", "unit")
        for a in whole.attributes
        if a.role == role and a.name in before.names and a.name not in subject.table.names
    }
    alike = _without(subject.schema, gone)
    tables = {"original": (before, alike), "released": (subject.table, subject.schema)}
    if "weight" in gone:
        tables = {"original, weighted": (before, _without(whole, {"unit"})), **tables}
    if "unit" in gone and measure is None:
        tables = {"original, units": (before, _without(whole, {"weight"})), **tables}
    try:
        found = {
            title: (measure or _in_memory)(table, keys, known, sensitive)
            for title, (table, known) in tables.items()
        }
    except CancelledError:
        raise
    except ShoalError:
        # such as a missing weight: a page without this section is better than none
        return None
    return Disclosure(keys, tuple(found), _side_by_side(found), _conditions(found))


def _without(schema: Schema, roles: Collection[str]) -> Schema:
    return replace(schema, attributes=tuple(a for a in schema.attributes if a.role not in roles))


def _in_memory(table: Table, keys: Sequence[str], schema: Schema, sensitive: Sequence[str]) -> RiskFigures:
    return risk(table, keys, schema=schema, sensitive=sensitive, missing="category").figures


def _side_by_side(found: Mapping[str, RiskFigures]) -> tuple[tuple[str, tuple[str, ...], str], ...]:
    """Figures by name; a table without weights or households has fewer of them."""
    values = {title: {name: value for name, value, _ in one.lines()} for title, one in found.items()}
    meanings = {name: meaning for one in found.values() for name, _, meaning in one.lines()}
    return tuple(
        (name, tuple(own.get(name, "-") for own in values.values()), meaning)
        for name, meaning in meanings.items()
    )


def _conditions(found: Mapping[str, RiskFigures]) -> tuple[str, ...]:
    words = [one.conditions for one in found.values()]
    if len(set(words)) == 1:
        return (words[0],)
    return tuple(f"{title.capitalize()}: {told}" for title, told in zip(found, words, strict=True))


@dataclass(frozen=True, slots=True)
class Risks:
    """The measured risks, and what was not measured, or not on all rows; `remarks` has that as text."""

    lines: tuple[RiskLine, ...] = ()
    told: tuple[Message, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        return tuple(map(str, self.told))


def attacked(
    original: Table,
    released: Table,
    columns: Sequence[str],
    released_rows: Callable[[Integers], Table] | None = None,
    progress: Progress = silent,
    of: tuple[int, int] | None = None,
) -> Risks:
    """Linkability, singling out and inference on the released table and on the original.

    The targets are chosen with a fixed seed: the same tables give the same page.

    Args:
        original: the table that was protected.
        released: the released table.
        columns: the released columns.
        released_rows: the released rows of given records, where known. A sample of a large table then consists of
            records with their rows; otherwise both tables are sampled separately, which the page states.
        of: the numbers of rows of the full tables, if these are samples, drawn separately.

    Cost:
        Twice that of `shoal.attack` with 300 attempts, on at most 50,000 rows.
    """
    from shoal.evaluation import attack

    names = [name for name in columns if name in original.names and name in released.names]
    if not names:
        return Risks(told=(Message("no-column-to-attack"),))
    whole = of or (original.n, released.n)
    large = max(whole) > MOST_ROWS
    told = []
    if large and released_rows is not None:
        records = some_rows(original.n, SAMPLE)
        told.append(Message.of("attacked-sample-of-records", rows=records.size, of=original.n))
        original, released = excerpt(original, records, names), released_rows(records)
    parted = large and released_rows is None
    tables = []
    for table, which in ((original, "original"), (released, "released")):
        usable = _complete(table, names)
        if usable.size < _FEWEST_ROWS:
            return Risks(told=(Message.of("too-few-rows-to-attack", which=which, rows=usable.size),))
        if usable.size < table.n:
            told.append(Message.of("rows-with-gaps-left-out", rows=table.n - usable.size, which=which))
        chosen = some_rows(usable, SAMPLE) if usable.size > MOST_ROWS else usable
        tables.append(excerpt(table, chosen, names) if chosen.size < table.n else table)
    if parted:
        rows = {
            "original": tables[0].n,
            "of_original": whole[0],
            "released": tables[1].n,
            "of_released": whole[1],
        }
        told.append(Message("attacked-samples-apart", rows))
    try:
        how: dict[str, Any] = {"columns": names, "attempts": ATTEMPTS, "seed": _SEED, "progress": progress}
        found = attack(*tables, **how)
        bare = attack(tables[0], tables[0], **how)
    except CancelledError:
        raise
    except ShoalError as error:
        return Risks(told=(Message.of("attacks-refused", reason=error),))
    told += [Message.of("attack-not-possible", name=name, reason=why) for name, why in found.skipped.items()]
    lines = tuple(_line(found, bare, place, parted=parted) for place in range(len(found.risks)))
    return Risks(lines, tuple(told))


def _line(found: AttackReport, bare: AttackReport, place: int, *, parted: bool) -> RiskLine:
    risk = found.risks[place]
    inferred = risk.sensitive is not None
    same = next((other for other in bare.risks if other.attack == risk.attack), None)
    return RiskLine(
        name=risk.attack,
        # the list of all other columns would fill the page
        known=Message.of("knows-other-columns") if inferred else risk.known,
        success=risk.success.value,
        interval=risk.success.interval,
        chance=risk.baseline.value,
        chance_high=risk.baseline.interval[1],
        unprotected=None if same is None else same.success.value,
        unprotected_interval=None if same is None else same.success.interval,
        identity=not inferred,
        parted=parted,
        attempts=risk.success.attempts,
        singles_out=risk.attack in (ONE_COLUMN, SEVERAL_COLUMNS),
    )


def _complete(table: Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Numbers of the rows without a missing value."""
    gaps = np.zeros(table.n, dtype=bool)
    for name in names:
        if table.is_numeric(name):
            gaps |= ~np.isfinite(table.numeric(name))
        else:
            gaps |= np.asarray(table.series(name).is_null().to_numpy(), dtype=bool)
    return np.flatnonzero(~gaps)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """Facts about the original data.

    Attributes:
        subject: what is compared.
        before: the original rows compared with it; None where no original was given.
        measured: measures as `Evaluation.to_dict` has them.
        risks: the measured risks.
        told: what was compared on a sample or not at all; `remarks` has it as text.
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
    """Collect everything that release and original show together, and what was already measured.

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
    """Measures of loss and record linkage, and the records they are based on."""
    from shoal.evaluation import evaluate

    total = before.n
    before, release = _measurable(release, before, published)
    told = (Message.of("measured-sample", rows=before.n, of=total),) if before.n < total else ()
    try:
        found = evaluate(before, release, progress=progress).to_dict()
    except CancelledError:
        raise
    except ShoalError as error:
        # the budget is already used: a page without measures is better than none
        return None, before, (Message.of("measures-refused", reason=error),)
    if max(total, published.n) > MOST_ROWS:
        found["risk"] = {name: value for name, value in found["risk"].items() if name not in _OF_ALL_ROWS}
    return found, before, told


def _measurable(release: Release, before: Table, published: Table) -> tuple[Table, Release]:
    """Original records and a release of theirs; large tables are sampled."""
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
    """Linkage by the quasi-identifiers only, as k-anonymity assumes."""
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
        # the page gives the reason with the other measures
        return ()
    known = Message.of("knows-quasi-identifiers")
    return tuple(linkage_line(measured, compared, quasi, "record linkage, quasi-identifiers", known))


def measure_lines(found: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Every defined measure; those of a column are named after it.

    >>> measure_lines({"sse": 1234567.891, "sae": None, "attributes": {"age": {"sse": 0.25, "kind": "numeric"}}})
    [('sse', '1.23457e+06'), ('age, sse', '0.25')]
    """
    lines: list[tuple[str, str]] = []
    for key, value in found.items():
        if value is None or key == "kind":
            continue
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            lines += measure_lines(value, before if key == "attributes" else f"{name}, ")
        else:
            lines.append((name, _words(value)))
    return lines


def _words(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return (
            " to ".join(_words(part) for part in value)
            if _interval(value)
            else ", ".join(map(str, value)) or "none"
        )
    return str(value)


def _interval(value: Sequence[Any]) -> bool:
    return len(value) == 2 and all(isinstance(part, float) for part in value)
