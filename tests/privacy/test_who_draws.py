"""Noise that protects records is drawn only where an account is charged for it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import shoal

SRC = Path(shoal.__file__).parent
SAMPLERS = {
    "block_noise",
    "categorical_centroids",
    "discrete_box",
    "discrete_gaussian",
    "discrete_laplace",
    "discrete_staircase",
    "elliptope_noise",
    "exponential_choice",
    "randomised_response",
    "through_matrix",
}
# these spend through an accountant; an engine draws what the method of the same name draws in memory
ROOMS = ("noise", "mechanisms", "query", "tuning", "release/in_parts")
# the insensitive method as it was published, whose claim is `none`: there is nothing to pay from
WITHOUT_GUARANTEE = ("mechanisms/insensitive_published.py",)


def imported(tree: ast.Module) -> set[str]:
    """Samplers that a module imports from the package's noise, whatever it calls them."""
    return {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shoal.noise")
        for name in node.names
        if name.name in SAMPLERS
    }


@cache
def by_module() -> dict[str, set[str]]:
    """The samplers of every module; only those that name the package's noise at all are parsed."""
    texts = {path: path.read_text("utf-8") for path in sorted(SRC.rglob("*.py"))}
    return {
        path.relative_to(SRC).as_posix(): imported(ast.parse(text)) if "shoal.noise" in text else set()
        for path, text in texts.items()
    }


def test_samplers_are_imported_where_an_account_pays() -> None:
    found = by_module()
    drawing = {place for place, names in found.items() if names}
    assert drawing
    assert {place for place in drawing if not place.startswith(ROOMS)} == set()


def drawers() -> list[Path]:
    """Modules that import a sampler, those of noise itself aside."""
    return [
        SRC / place
        for place, names in by_module().items()
        if names and not place.startswith("noise/") and place not in WITHOUT_GUARANTEE
    ]


@pytest.mark.parametrize("path", drawers(), ids=lambda path: path.relative_to(SRC).as_posix())
def test_a_module_that_draws_knows_what_was_paid(path: Path) -> None:
    """It takes a spend or an account."""
    words = {node.id for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Name)}
    assert words & {"Spend", "Accountant", "account", "spend"}, path


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("from shoal.noise import discrete_laplace", {"discrete_laplace"}),
        ("from shoal.noise.discrete import discrete_laplace as noise", {"discrete_laplace"}),
        ("from shoal.noise import round_up_scale", set()),
    ],
)
def test_the_check_sees_imports(line: str, names: set[str]) -> None:
    assert imported(ast.parse(line)) == names
