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
from shoal.privacy.claims import MODELS
from shoal.privacy.statement import (
    PrivacyStatement,
    computed_values,
    declaration,
    domain_words,
    recorded_words,
)
from shoal.release.bundle import Bundle
from shoal.text import Message, capital

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
_RELEASES = ("one", "many")


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
    """What the publisher says, in its own words and under its keys."""
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
