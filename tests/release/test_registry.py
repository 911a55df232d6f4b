"""Records for the registry of deployments: of the registry's shape, from the statement and [publication] alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
import yaml

import shoal
from shoal.cli import run

PUBLICATION = {
    "name": "Rents of 2027",
    "description": "What people pay for their homes: a synthetic table.",
    "purpose": "Research on housing",
    "curators": ["Office of Statistics"],
    "region": "Exampleland",
    "sector": "Government",
    "date": "2027-03-01",
    "recipients": "the public",
    "contact": "office@example.org",
    "other_releases": "None are planned.",
    "releases": "one",
    "data_source": "static",
    "review_by": "2029-03-01",
    "actors": "The office sees the original records; everybody else sees the release.",
    "security": "The records stay in the office's own network.",
    "justification": "ε = 1 keeps averages within two percent.",
    "sources": "https://example.org/rents",
    "notes": "A test.",
    "authors": ["A. Author"],
}
TEXT: dict[str, Any] = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT, "minItems": 1}


def shape(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    found = {"type": "object", "additionalProperties": False, "required": list(required)}
    return {**found, "properties": properties}


def one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


# names, types and choices of the registry's fields as of July 2026, written down by ourselves
REGISTRY = shape(
    ("url_slug", "status", "tier", "deployment"),
    url_slug=TEXT,
    status=one_of("Draft", "Pending"),
    tier={"type": "integer", "enum": [1, 2, 3]},
    deployment=shape(
        ("basic",),
        basic=shape(
            (
                "name",
                "data_curators",
                "description",
                "intended_use",
                "data_product_type",
                "data_product_region",
                "publication_date",
            ),
            name=TEXT,
            data_curators=TEXTS,
            intended_use=TEXT,
            data_product_type=one_of(
                "Summary statistics",
                "Machine learning model",
                "Dataset",
                "Synthetic data",
                "Interactive API",
                "SQL queries",
            ),
            data_product_region=TEXT,
            description=TEXT,
            publication_date={"type": "string", "format": "date"},
            data_product_sector=one_of(
                "Technology", "Healthcare", "Education", "Government", "Energy", "Finance"
            ),
        ),
        dp_variant=shape(
            variant_name=one_of("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"),
            data_domain=TEXT,
            unprotected_quantities=TEXT,
        ),
        privacy_loss=shape(
            privacy_unit=TEXT,
            privacy_unit_details=TEXT,
            privacy_parameters=shape(
                epsilon={"type": "number"}, delta={"type": ["number", "string"]}, rho={"type": "number"}
            ),
            privacy_parameters_details=TEXT,
        ),
        deployment_model=shape(
            model_name=one_of("Local", "Central", "Shuffle", "Federated", "Varies"),
            model_name_details=TEXT,
            actors=TEXT,
            release_type=one_of("One release", "Many releases"),
            release_type_details=TEXT,
            data_source_type=one_of("Static", "Dynamic"),
            data_source_type_details=TEXT,
            access_type=one_of("Interactive", "Non-interactive"),
            access_type_details=TEXT,
        ),
        accounting=shape(post_processing=TEXT, composition=TEXT),
        implementation=shape(
            preprocessing_and_hyperparameter_tuning=TEXT, mechanisms=TEXT, justification=TEXT
        ),
        administrative=shape(("registry_authors",), sources=TEXT, notes=TEXT, registry_authors=TEXTS),
    ),
)


def released(
    folder: Path, method: str = "pairs-dp", publication: dict[str, Any] | None = None, **options: Any
) -> Path:
    rng = np.random.default_rng(4)
    data = pa.table({"age": rng.integers(18, 90, 400), "rent": rng.integers(0, 2000, 400)})
    schema = shoal.Schema.from_dict(
        {
            "publication": PUBLICATION if publication is None else publication,
            "attribute": [
                {"name": "age", "role": "quasi-identifier", "lo": 0, "hi": 120, "type": "integer"},
                {"name": "rent", "lo": 0, "hi": 2000, "type": "integer", "source": "questionnaire"},
            ],
        }
    )
    budget = {} if method == "k-anonymity" else {"epsilon": "1"}
    return shoal.protect(data, schema, method, **budget, **options).save(folder / "release")


def check(record: Any) -> None:
    jsonschema.validate(record, REGISTRY, format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize(
    ("method", "options", "variant", "product"),
    [
        ("pairs-dp", {}, "Pure DP", "Synthetic data"),
        ("pairs-dp", {"delta": "0.000001"}, "Approximate DP", "Synthetic data"),
        ("tree-dp", {}, "Pure DP", "Synthetic data"),
        ("mdav-dp", {"k": 20}, "Custom", "Dataset"),
        ("idp-ls", {"k": 20}, "Custom", "Dataset"),
    ],
)
def test_a_record_passes_the_schema_of_the_registry(
    method: str, options: dict[str, Any], variant: str, product: str, tmp_path: Path
) -> None:
    found = shoal.registry_record(released(tmp_path, method, **options))
    assert found.required == found.missing == ()
    record = yaml.safe_load(found.to_yaml())
    assert record == found.record
    check(record)
    deployment = record["deployment"]
    assert deployment["dp_variant"]["variant_name"] == variant
    assert deployment["basic"]["data_product_type"] == product
    assert deployment["privacy_loss"]["privacy_parameters"]["epsilon"] == 1.0
    assert ("delta" in deployment["privacy_loss"]["privacy_parameters"]) is ("delta" in options)
    assert ("adjacent if one of them has all records of the other" in str(deployment)) is (
        method == "pairs-dp"
    )


def test_the_validator_refuses_what_the_registry_does_not_know(tmp_path: Path) -> None:
    record = shoal.registry_record(released(tmp_path)).record
    for damaged in (
        {**record, "colour": "blue"},
        {**record, "status": "Finished"},
        {**record, "deployment": {}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            check(damaged)


def test_what_is_not_declared_is_listed_and_not_made_up(tmp_path: Path, capsys: Any) -> None:
    folder = released(tmp_path, publication={"name": "Rents", "curators": ["Office"]})
    found = shoal.registry_record(folder)
    assert found.required == ("description", "purpose", "region", "date", "authors")
    assert "sector" in found.missing
    assert "publication_date" not in found.record["deployment"]["basic"]
    with pytest.raises(jsonschema.ValidationError):
        check(found.record)
    assert run(["registry", str(folder)]) == 1
    output = capsys.readouterr()
    assert yaml.safe_load(output.out) == found.record
    assert (
        "required by the registry and not declared: description, purpose, region, date, authors" in output.err
    )


def test_the_command_writes_a_new_file(tmp_path: Path, capsys: Any) -> None:
    folder, out = released(tmp_path), tmp_path / "deployment.yaml"
    assert run(["registry", str(folder), "--out", str(out)]) == 0
    check(yaml.safe_load(out.read_text("utf-8")))
    before = out.read_bytes()
    assert run(["registry", str(folder), "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert out.read_bytes() == before


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("k-anonymity", {"k": 5}, "this release claims k-anonymity"),
        ("pairs-dp", {"seed": 1}, "the verdict on this release is 'do not publish'"),
    ],
)
def test_what_is_no_differential_privacy_has_no_record(
    method: str, options: dict[str, Any], words: str, tmp_path: Path, capsys: Any
) -> None:
    folder = released(tmp_path, method, **options)
    assert run(["registry", str(folder)]) == 2
    output = capsys.readouterr()
    assert words in output.err
    assert output.out == ""


def test_odd_texts_survive_the_yaml(tmp_path: Path) -> None:
    odd = {**PUBLICATION, "name": 'a: "b" # c\u2028\u0085 é 😀 - \\n', "notes": "yes", "sources": "1e5"}
    found = shoal.registry_record(released(tmp_path, publication=odd))
    assert yaml.safe_load(found.to_yaml()) == found.record
