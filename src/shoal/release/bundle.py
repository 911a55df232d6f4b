"""Bundles: write the publishable files of a release to one folder, all or none, and load them again."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal import display
from shoal.columns import MISSING_VALUE, Attribute, Schema
from shoal.display import displayed
from shoal.errors import ClaimError, InputError, OptionError
from shoal.io import (
    Codebook,
    Conventions,
    check_output,
    check_writable,
    known_format,
    new_parents,
    private_file,
    read,
    staged,
    unless_done,
    write,
)
from shoal.mechanisms import LOG, Method, configured, load_recipe, log_text, parameters, recipe_text
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
from shoal.release.correction import Corrected, corrected
from shoal.report import of_bundle
from shoal.text import Message, capital

if TYPE_CHECKING:
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
