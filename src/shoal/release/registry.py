"""Registry records: a release as an entry of the OpenDP registry of differential privacy deployments, in its YAML.

Technical fields come from the statement, administrative ones from the table [publication] of the schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal import summaries
from shoal.display import displayed
from shoal.errors import ClaimError
from shoal.method.models import MODELS, Adjacency
from shoal.method.parts import declaration, recorded_words, three_parts
from shoal.method.statement import PrivacyStatement, domain_words
from shoal.release.saved import Bundle

# mechanisms whose rows belong to nobody
_SYNTHETIC = ("pairs", "tree")
_VARIANTS = {"dp": "Pure DP", "approximate-dp": "Approximate DP"}
# what the registry cannot do without, by key of [publication]
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
_RELEASES = {"one": "One release", "many": "Many releases"}
_ADJACENT: Mapping[Adjacency, str] = {
    Adjacency.REPLACE_ONE: "Two tables are adjacent if they have the same number of records and differ in one of them.",
    Adjacency.ADD_REMOVE: "Two tables are adjacent if one has all records of the other and one more.",
}


@displayed(summaries.of_registry_record)
@dataclass(frozen=True, slots=True)
class RegistryRecord:
    """A release as the registry describes deployments.

    Attributes:
        record: as plain values.
        required: keys of [publication] that the registry requires and the schema does not give.
        missing: further ones that it asks for.
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
        InputError: it is no bundle.
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
    words = dict(three_parts(plain).computed)
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
            "unprotected_quantities": words["Released exactly or taken as public"].capitalize(),
        },
        "privacy_loss": {
            "privacy_unit": f"one {statement.unit}",
            "privacy_unit_details": _adjacent(statement),
            "privacy_parameters": {
                "epsilon": None if statement.epsilon is None else float(statement.epsilon),
                "delta": float(statement.delta) if statement.delta else None,
                "rho": rho,
            },
            "privacy_parameters_details": " ".join(
                [
                    f"{statement.sentence} Spent on {words.get('Spent on', 'the release as a whole')}.",
                    *_accounted(rho),
                ]
            ),
        },
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": "The curator holds the original records and runs Shoal on them.",
            "actors": _joined(told, "actors", "recipients"),
            "release_type": _RELEASES.get(told.get("releases", "")),
            "release_type_details": told.get("other_releases"),
            "data_source_type": told.get("data_source", "").capitalize(),
            "access_type": "Non-interactive",
        },
        "accounting": {
            "composition": "Sequential composition of all measurements of this release"
            + (", in zero-concentrated differential privacy" if rho is not None else "")
            + "; other releases about the same people are not included.",
            "post_processing": " ".join(
                [
                    "Rows are drawn from the noisy measurements."
                    if statement.mechanism in _SYNTHETIC
                    else "Noisy values are put back into rows.",
                    "Values are rounded to their types and kept inside their domains; rows are in random order.",
                ]
            ),
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": " ".join(_preprocessing(plain)),
            "mechanisms": f"Method {words['Method']}. Mechanism {words['Mechanism']}. Noise: {words['Noise']}. "
            f"Expected error: {words['Expected error']}."
            + (f" Security of the original records: {told['security']}" if told.get("security") else ""),
            "justification": told.get("justification"),
        },
        "administrative": {
            "sources": told.get("sources"),
            "notes": _joined(told, "notes", "contact"),
            "registry_authors": told.get("authors"),
        },
    }


def _domain(statement: PrivacyStatement) -> str:
    columns = (f"{name}: {domain_words(facts)}" for name, facts in statement.attributes.items())
    return f"Tables with any values in the declared domains of their columns ({'; '.join(columns)})."


def _adjacent(statement: PrivacyStatement) -> str:
    assert statement.adjacency is not None
    given = (
        " The clusters of records are the same in both, and taken as public."
        if MODELS[statement.model].given_partition
        else ""
    )
    return f"{_ADJACENT[statement.adjacency]}{given} The unit is one {statement.unit}."


def _accounted(rho: float | None) -> Iterator[str]:
    if rho is not None:
        yield "The noise is accounted for in ρ; ε follows from it and δ."


def _preprocessing(plain: Mapping[str, Any]) -> Iterator[str]:
    yield from plain.get("steps", ())
    if not plain.get("steps"):
        yield "No steps before protection."
    for one in plain["declared"]["facts"]:
        if one["code"] == "choices":
            words = declaration(one["code"], one["facts"])
            yield f"{words[0].upper()}{words[1:]}"
    yield from (recorded_words(one["code"], one["facts"]) for one in plain["recorded"])
    yield "Viewing the records before the release, where it happened, is not accounted for in ε."


def _joined(told: Mapping[str, Any], *keys: str) -> str:
    found = [f"{key.capitalize()}: {str(told[key]).removesuffix('.')}." for key in keys if told.get(key)]
    return " ".join(found)


def _slug(told: Mapping[str, Any]) -> str:
    words = [told.get("name", "release"), *told.get("curators", ())[:1], told.get("date", "")[:4]]
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-") or "release"


def _without_gaps(value: Mapping[str, Any]) -> dict[str, Any]:
    """Without keys that nothing is known for."""
    found = {key: _without_gaps(item) if isinstance(item, Mapping) else item for key, item in value.items()}
    return {key: item for key, item in found.items() if item not in (None, "", [], {})}


def _yaml(value: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """A mapping as lines of YAML: texts in double quotes, which mean the same in every version of it."""
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
