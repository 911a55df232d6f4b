"""What a report is about: a release, or the folder of a bundle, comes in; its public facts in one value leave."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.circumstances import TAKEN_FROM_DATA
from shoal.columns.schema import Attribute, Schema
from shoal.display import internal
from shoal.errors import InputError, OptionError
from shoal.io import Table, read, read_columnwise, table_name
from shoal.io.binary_files import parquet_files
from shoal.method.log import LOG, done_in, log_entries
from shoal.method.recipe import load_recipe, recipe_text
from shoal.method.statement import PrivacyStatement

if TYPE_CHECKING:
    from shoal.release.protect import Release


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
        log: what was done, one entry each.
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
        """ε of a column in words; empty where it has none."""
        shares = self.statement["epsilon_per_attribute"]
        if name not in shares:
            return ""
        return TAKEN_FROM_DATA if shares[name] is None else f"{shares[name]:.6g}"

    def domain(self, name: str, values: NDArray[np.float64]) -> tuple[float, float]:
        """The declared domain of a column with an order; a domain taken from the data stays out of the picture."""
        attribute = self.schema[name]
        if attribute.kind_facts.listed:
            return 0.0, float(max(len(attribute.ordered) - 1, 1))
        if attribute.lo is None or attribute.hi is None:
            return (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
        return float(attribute.lo), float(attribute.hi)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Measurable:
    """A bundle as measures take a release: without rows in input order, which a bundle never holds."""

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
        on_disk: a Parquet file stays where it is, as a folder of them always does.

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
    # what an engine wrote is a folder of files, of which one column is read at a time
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
    """The bundle that a path names: its folder, or the data in it; None for any other table.

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
    # a folder of Parquet files from any tool is a table
    plain = not (path / "statement.json").exists() and bool(parquet_files(path))
    return None if plain else of_bundle(path, on_disk=on_disk)


def published(subject: Subject) -> Measurable:
    """The bundle as `shoal.evaluate` takes it, so that kinds, domains and taxonomies are those of the schema."""
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
    # one of an earlier version is brought into today's form
    return PrivacyStatement.from_dict(found, f"'{path}'").to_dict()
