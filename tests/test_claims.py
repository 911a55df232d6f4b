"""Claims as data: every mechanism brings its own, and whoever asks for a promise asks that."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

import shoal
from shoal.mechanisms.promises import privacy_model, promise_of
from shoal.mechanisms.table import ENTRIES, MECHANISMS, Entry
from shoal.method.claims import Case, Claim
from shoal.method.models import MODELS, Model
from shoal.method.presets import PRESETS, preset
from shoal.method.stages import PARTITIONS

ROOT = Path(__file__).parents[1]
every_mechanism = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)


@every_mechanism
def test_a_claim_always_has_an_answer_and_says_why(entry: Entry) -> None:
    assert entry.claim.cases[-1].when == {}
    assert all(case.when for case in entry.claim.cases[:-1])
    for case in entry.claim.cases:
        assert case.model in MODELS
        assert case.because
    for proof in entry.claim.proofs:
        assert (ROOT / "docs" / "proofs" / f"{proof}.md").exists(), proof


@every_mechanism
def test_conditions_are_about_facts_that_a_method_has(entry: Entry) -> None:
    known = {"linked", "nominal"} | set(dir(preset("laplace")))
    assert {name for case in entry.claim.cases for name in case.when} <= known


def test_every_preset_has_a_mechanism_with_a_claim_and_code() -> None:
    assert {method.mechanism for method in PRESETS.values()} == set(ENTRIES) == set(MECHANISMS)
    assert set(MODELS) == set(get_args(Model))


@pytest.mark.parametrize(
    ("stability", "linked", "nominal", "model"),
    [
        ("record", True, True, "dp"),
        ("private", True, True, "dp"),
        ("rank", False, False, "dp"),
        ("rank", True, False, "dp-given-partition"),
        ("rank", False, True, "dp-given-partition"),
        ("data", False, False, "dp-given-partition"),
        ("caller", False, False, "dp-given-partition"),
    ],
)
def test_what_a_replaced_record_does_to_clusters_settles_the_claim(
    stability: Any, linked: bool, nominal: bool, model: str
) -> None:
    partition = next(name for name, stage in PARTITIONS.items() if stage.stability == stability)
    method = replace(preset("mdav-dp"), partition=partition, k=5)
    assert privacy_model(method, 2 if linked else 1, 1 if nominal else 0) == model
    assert promise_of(method, 2 if linked else 1, 1 if nominal else 0).model == model
    individual = replace(method, sensitivity="local")
    assert privacy_model(individual, 1) == "idp-given-partition"


def test_the_first_case_that_holds_settles_the_model() -> None:
    claim = Claim((Case("dp", "no δ", {"t": (None,)}), Case("none", "else")))
    assert claim.case(preset("laplace"), 1).model == "dp"
    assert claim.case(replace(preset("laplace"), t=2), 1).model == "none"


def test_a_changed_claim_changes_the_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else knows what a mechanism promises."""
    import pyarrow as pa

    monkeypatch.setitem(
        ENTRIES, "clusters", replace(ENTRIES["clusters"], claim=Claim((Case("none", "a test"),)))
    )
    found = shoal.protect(
        pa.table({"a": [1, 2, 3, 4]}), method="laplace", epsilon=1, domains={"a": (0, 9)}
    ).statement
    assert (found.model, found.publishable) == ("none", False)
    assert next(info for info in shoal.methods() if info.name == "laplace").claim == "none"


def test_no_module_asks_for_a_mechanism_by_its_name() -> None:
    for path in sorted((ROOT / "src" / "shoal").rglob("*.py")):
        text = path.read_text("utf-8")
        # reading the code of all of them takes seconds
        for node in ast.walk(ast.parse(text)) if ".mechanism" in text else ():
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                assert not (
                    any(isinstance(side, ast.Attribute) and side.attr == "mechanism" for side in sides)
                    and any(isinstance(side, ast.Constant) and side.value in ENTRIES for side in sides)
                ), f"{path}, line {node.lineno}"
