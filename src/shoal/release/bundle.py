"""Bundles: the publishable files of a release in one folder, written together or not at all, and loaded again."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal import summaries
from shoal.columns.attribute import MISSING_VALUE, Attribute
from shoal.columns.schema import Schema
from shoal.display import displayed
from shoal.errors import InputError, OptionError
from shoal.io import Codebook, Conventions, check_writable, known_format, read, write
from shoal.io.common import private_file
from shoal.io.folders import check_output, new_parents, staged, unless_done
from shoal.mechanisms.method import Method
from shoal.mechanisms.recipe import LOG, load_recipe, log_text, recipe_text
from shoal.mechanisms.registry import configured, parameters
from shoal.privacy.statement import PrivacyStatement
from shoal.progress import Progress, silent
from shoal.report.findings import of_bundle

if TYPE_CHECKING:
    from shoal.release.protect import Release
    from shoal.report.findings import Findings


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

    With `statistics` the masked statistics of the clusters go beside the data.
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
            # Stata and SPSS have no room for names such as "covariance of income and tax"
            ending = kind.ending if kind.typed else ".csv"
            write(release.statistics, aside / f"statistics{ending}", None, manner)
        if release.verify is not None:
            tell("reading the tables back", 0, 1)
            # what counts is what others will read
            types = release.schema.types
            # a linked table may hold words for groups of values, which have no declared type
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
    """Codes and labels that may go with a released table: none that neither it nor the schema holds."""
    if release.codebook is None:
        return None
    declared = {a.name: _listed(a, release.method.output.generalise) for a in release.schema.attributes}
    return release.codebook.public(frame, declared)


def _listed(attribute: Attribute, generalise: bool) -> list[str]:
    """The names that a column may hold when it is released."""
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

    `undo` outlives the bundle's own folder: if that cannot be put in place, the internal report goes too.
    """
    from shoal.report import internal_report, public_report

    progress("writing the statement and the report", 0, 1)
    statement = json.dumps(release.statement.to_dict(), indent=2, ensure_ascii=False)
    (aside / "statement.json").write_text(statement + "\n", "utf-8")
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


@displayed(summaries.of_bundle)
@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """A release on disk, with everything public about it.

    Attributes:
        folder: where it lies.
        data: the released table, a pyarrow table.
        statement: what is promised.
        method: the configured method.
        schema: the public facts about the released columns.
        recipe: arguments of `shoal.protect` and `shoal.publish` that repeat the release on another table.
        report: the page for readers.
        linked: further released tables by name.
        statistics: masked statistics of the clusters, None where none were published.
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

    @classmethod
    def load(cls, folder: str | Path) -> Bundle:
        """Read the folder that `shoal.publish`, `Release.save` or `shoal protect` wrote.

        Raises:
            InputError: it is no bundle, a file is missing or damaged, or the files do not belong together.
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
        return cls(folder, data, statement, method, subject.schema, recipe, report, tables, statistics)
