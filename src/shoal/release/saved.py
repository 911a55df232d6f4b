"""A bundle read back: the folder of a release comes in, its public facts as values leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal import summaries
from shoal.columns.schema import Schema
from shoal.display import displayed
from shoal.errors import InputError
from shoal.mechanisms.method import Method
from shoal.mechanisms.recipe import load_recipe
from shoal.mechanisms.registry import configured, parameters
from shoal.privacy.statement import PrivacyStatement
from shoal.report.findings import of_bundle


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
