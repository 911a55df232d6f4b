"""Claims as data: every method has its own, and all code that needs a claim reads that."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

import shoal
from shoal.mechanisms.cluster_methods import IdpLS, Laplace, MdavDP
from shoal.mechanisms.kanonymity.methods import Anatomy
from shoal.mechanisms.method import Method
from shoal.mechanisms.partition_stage import PARTITIONS
from shoal.mechanisms.registry import method_class, names
from shoal.privacy.verdict import MODELS, Case, Claim, Model

ROOT = Path(__file__).parents[2]
CLASSES = {name: method_class(name) for name in names()}
every_method = pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)


@cache
def proofs() -> set[str]:
    """The parts of the pages in docs/proofs, as links name them."""
    pages = (ROOT / "docs" / "proofs").glob("*.md")
    titles = [title for page in pages for title in re.findall(r"^## (.+)$", page.read_text("utf-8"), re.M)]
    return {title.lower().replace(" ", "-") for title in titles}


@every_method
def test_a_claim_always_has_an_answer_and_says_why(cls: type[Method]) -> None:
    assert cls.claims.cases[-1].when == {}
    assert all(case.when for case in cls.claims.cases[:-1])
    for case in cls.claims.cases:
        assert case.model in MODELS
        assert case.because
    assert set(cls.claims.proofs) <= proofs()


@every_method
def test_conditions_are_about_facts_that_a_method_has(cls: type[Method]) -> None:
    known = {"linked", "nominal"} | set(dir(cls.example()))
    assert {name for case in cls.claims.cases for name in case.when} <= known


def test_every_method_has_a_claim_of_its_own_and_code() -> None:
    # a claim of the base class would be that of somebody who said nothing
    assert all(cls.claims is not Method.claims for cls in CLASSES.values())
    assert all(cls.work for cls in CLASSES.values())
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
    stability: Any, linked: bool, nominal: bool, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = next(name for name, stage in PARTITIONS.items() if stage.stability == stability)
    monkeypatch.setattr(MdavDP, "partitions", (partition,))
    method = MdavDP(epsilon=1, partition=partition, k=5)
    assert method.stability == stability
    assert method.model(2 if linked else 1, 1 if nominal else 0) == model
    assert method.applied_claim(2 if linked else 1, 1 if nominal else 0).model == model
    monkeypatch.setattr(IdpLS, "partitions", (partition,))
    assert IdpLS(epsilon=1, partition=partition, k=5).model(1) == "idp-given-partition"


def test_the_first_case_that_holds_settles_the_model() -> None:
    claim = Claim((Case("dp", "no δ", {"t": (None,)}), Case("none", "else")))
    assert claim.case(Anatomy(), linked=False, nominal=False).model == "dp"
    assert claim.case(Anatomy(t=2), linked=False, nominal=False).model == "none"


def test_a_changed_claim_changes_the_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else knows what a method promises."""
    import pyarrow as pa

    monkeypatch.setattr(Laplace, "claims", Claim((Case("none", "a test"),)))
    found = shoal.protect(
        pa.table({"a": [1, 2, 3, 4]}), method="laplace", epsilon=1, domains={"a": (0, 9)}
    ).statement
    assert (found.model, found.publishable) == ("none", False)
    assert next(info for info in shoal.methods() if info.name == "laplace").claim == "none"


def test_no_module_asks_for_a_mechanism_by_its_name() -> None:
    mechanisms = {cls.mechanism for cls in CLASSES.values()}
    for path in sorted((ROOT / "src" / "shoal").rglob("*.py")):
        text = path.read_text("utf-8")
        # reading the code of all of them takes seconds
        for node in ast.walk(ast.parse(text)) if ".mechanism" in text else ():
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                assert not (
                    any(isinstance(side, ast.Attribute) and side.attr == "mechanism" for side in sides)
                    and any(isinstance(side, ast.Constant) and side.value in mechanisms for side in sides)
                ), f"{path}, line {node.lineno}"
