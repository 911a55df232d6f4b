"""The server does what its OpenAPI description says, whatever it is sent, with a token and without."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from shoal.query.server.app import create_app
from shoal.query.server.guard import REASONS
from shoal.query.server.state import Config
from tests.conftest import amount

load_all_checks()
SCHEMA = schemathesis.openapi.from_dict(create_app(Config(Path("nowhere"))).openapi())
OPERATIONS = {result.ok().label: result.ok() for result in SCHEMA.get_all_operations()}
# what is not asked: whether every question of the right shape can be answered, since that depends on the columns
CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from .conftest import make_place, running

    place = make_place(
        tmp_path_factory.mktemp("served") / "s", ceiling=Fraction(5), delta_ceiling=Fraction(1, 1000)
    )
    with running(place) as served:
        yield served


def explore(server: Any, label: str, token: bool, mode: GenerationMode, examples: int) -> set[int]:
    """Send generated requests to one operation, and return the statuses that came back."""
    statuses: set[int] = set()
    operation = OPERATIONS[label]
    headers = {"Authorization": f"Bearer {server.place.tokens['hilda']}"} if token else {}

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Case) -> None:
        # names are mostly those that exist, so that more than the router is tried
        if "name" in (case.path_parameters or {}) and mode is GenerationMode.POSITIVE:
            case.path_parameters["name"] = "survey"
        case.headers = {
            name: value for name, value in (case.headers or {}).items() if name != "Authorization"
        }
        response = case.call(base_url=server.url, headers=headers, timeout=300)
        statuses.add(response.status_code)
        refused = [negative_data_rejection] if mode is GenerationMode.NEGATIVE else []
        case.validate_response(response, checks=CHECKS + refused, headers=headers)

    check()
    return statuses


@pytest.mark.parametrize("label", OPERATIONS)
def test_operations_keep_to_the_description(server: Any, label: str) -> None:
    met = explore(server, label, True, GenerationMode.POSITIVE, 12)
    met |= explore(server, label, True, GenerationMode.NEGATIVE, 12) if OPERATIONS[label].body else set()
    assert met
    assert max(met) < 500


@pytest.mark.parametrize("label", OPERATIONS)
def test_operations_keep_to_the_description_without_a_token(server: Any, label: str) -> None:
    met = explore(server, label, False, GenerationMode.POSITIVE, 4)
    assert met == ({200} if label == "GET /v1/health" else {401})


@pytest.mark.slow
@pytest.mark.parametrize("token", [True, False])
@pytest.mark.parametrize("label", OPERATIONS)
def test_operations_keep_to_the_description_for_long(server: Any, label: str, token: bool) -> None:
    met = explore(server, label, token, GenerationMode.POSITIVE, amount(75, 300))
    if OPERATIONS[label].body or "{name}" in label:
        met |= explore(server, label, token, GenerationMode.NEGATIVE, amount(75, 300))
    assert max(met) < 500


def test_questions_of_every_kind_are_described() -> None:
    body = SCHEMA.raw_schema["paths"]["/v1/datasets/{name}/answers"]["post"]["requestBody"]
    kinds = [
        one["properties"]["kind"]["const"] for one in body["content"]["application/json"]["schema"]["oneOf"]
    ]
    assert {
        "count",
        "mean",
        "histogram",
        "quantile",
        "individual",
        "statistical",
        "protocol-1",
        "protocol-2",
    } <= set(kinds)


def test_every_refusal_is_described() -> None:
    described = SCHEMA.raw_schema["components"]["schemas"]["ProblemBody"]["properties"]["error"]["enum"]
    assert described == list(REASONS)
    statuses = set(SCHEMA.raw_schema["paths"]["/v1/datasets/{name}/answers"]["post"]["responses"])
    assert {str(reason.status) for reason in REASONS.values()} - {"405"} <= statuses


def test_the_check_sees_an_undescribed_response(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The instrument is alive: a description that is wrong about one operation is found out."""
    label = "GET /v1/datasets"
    wrong = create_app(Config(Path("nowhere"))).openapi()
    wrong["components"]["schemas"]["DatasetNames"]["properties"]["datasets"]["items"]["type"] = "integer"
    schema = schemathesis.openapi.from_dict(wrong)
    monkeypatch.setitem(
        OPERATIONS, label, next(r.ok() for r in schema.get_all_operations() if r.ok().label == label)
    )
    with pytest.raises(BaseExceptionGroup, match="1 distinct failure"):
        explore(server, label, True, GenerationMode.POSITIVE, 3)
