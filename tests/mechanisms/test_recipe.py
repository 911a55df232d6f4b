"""A recipe file holds all that repeats a release on another table, and nothing private."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.errors import InputError, OptionError
from shoal.mechanisms.registry import load_recipe, recipe_text
from shoal.noise import epsilon_from, rho_from
from tests.support.samples import ODD_NAMES

N = 40
DOMAINS = {ODD_NAMES[1]: ("0", "100.125"), "b": ("-0.1", "50")}
TYPES = {ODD_NAMES[1]: "decimal", "b": "decimal"}


def table(seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({ODD_NAMES[1]: rng.uniform(0, 100, N), "b": rng.uniform(0, 50, N), "id": np.arange(N)})


def protect(**options: Any) -> shoal.Release:
    return shoal.protect(
        table(), **{"method": "ranking-dp", "epsilon": "0.3", "domains": DOMAINS, "types": TYPES, **options}
    )


@pytest.mark.parametrize(
    "options",
    [
        {"method": "laplace"},
        {"method": "laplace", "split": {ODD_NAMES[1]: "0.1", "b": 3}},
        {"method": "laplace", "epsilon": "0.12345678901234567890123"},
        {"method": "mdav-dp", "k": 4, "groups": [["b"], [ODD_NAMES[1]]], "normalise": "zscore"},
        {"method": "ranking-dp", "k": 3, "remainder": "first", "link": False, "split": "optimal"},
        {"method": "ranking-dp", "k": 3, "clip": False, "outside": "clip", "missing": "drop"},
        {"method": "mdav-dp", "k": 3, "domains": None, "domain_from_data": 1.5},
        {"method": "mdav-dp", "k": 3, "columns": ["b"], "domains": {"b": (0, 50)}},
    ],
)
def test_a_recipe_repeats_statement_and_recipe(options: dict[str, Any], tmp_path: Path) -> None:
    first = protect(**options)
    path = tmp_path / "method.toml"
    path.write_text(recipe_text(first), "utf-8")
    again = shoal.protect(table(seed=1), **load_recipe(path))
    assert again.statement == first.statement
    assert recipe_text(again) == recipe_text(first)


def test_a_recipe_with_the_same_seed_repeats_the_release(tmp_path: Path) -> None:
    first = protect(method="ranking-dp", k=4, seed=5)
    path = tmp_path / "method.toml"
    path.write_text(recipe_text(first), "utf-8")
    assert "seed" not in recipe_text(first)
    assert shoal.protect(table(), seed=5, **load_recipe(path)).data.equals(first.data)


def test_a_recipe_keeps_schema_facts_and_the_unit(tmp_path: Path) -> None:
    entries = [
        {"name": "b", "lo": "-0.1", "hi": 50, "step": "0.3", "role": "quasi-identifier", "type": "decimal"},
        {"name": "id", "role": "unit", "max_rows": 3},
    ]
    schema = shoal.Schema.from_dict({"attribute": entries})
    first = shoal.protect(table(), schema, "laplace", epsilon=1)
    path = tmp_path / "method.toml"
    path.write_text(recipe_text(first), "utf-8")
    arguments = load_recipe(path)
    assert arguments["schema"] == schema
    again = shoal.protect(table(), **arguments)
    assert again.statement == first.statement
    assert again.statement.epsilon == 1
    assert 'epsilon_per = "unit"' in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("method", "epsilon", "delta"),
    [("laplace", 3, ""), ("pairs-dp", 3, ""), ("pairs-dp", None, 'delta = "1e-6"\n')],
)
def test_a_recipe_of_version_0_1_keeps_its_guarantee(
    method: str, epsilon: int | None, delta: str, tmp_path: Path
) -> None:
    """It states the budget of a row: the release it repeats has the noise and the guarantee of the first."""
    path = tmp_path / "method.toml"
    path.write_text(
        f'shoal = "0.1.0"\nmethod = "{method}"\nepsilon = 1\n{delta}'
        '[[attribute]]\nname = "b"\nlo = -0.1\nhi = 50.0\nstep = 0.3\ntype = "decimal"\n'
        '[[attribute]]\nname = "id"\nrole = "unit"\nmax_rows = 3\n',
        "utf-8",
    )
    found = shoal.protect(table(), **load_recipe(path))
    if epsilon is not None:
        assert (found.statement.epsilon, found.method.epsilon) == (epsilon, 1)
    else:
        of_row = rho_from(Fraction(1), Fraction("1e-6"))
        assert found.statement.epsilon == epsilon_from(9 * of_row, Fraction("1e-6"))
        assert found.method.rho == pytest.approx(of_row, rel=1e-9)
    # written by hand, without a version, it states the unit's budget like a call
    path.write_text(path.read_text("utf-8").replace('shoal = "0.1.0"\n', ""), "utf-8")
    assert shoal.protect(table(), **load_recipe(path)).statement.epsilon == 1


def test_a_fraction_is_exact_in_recipes_statements_and_bundles(tmp_path: Path) -> None:
    first = protect(method="laplace", epsilon="1/6")
    assert first.statement.epsilon == Fraction(1, 6)
    assert "ε = 1/6 per row" in first.statement.sentence
    first.save(tmp_path / "out")
    assert load_recipe(tmp_path / "out" / "method.toml")["epsilon"] == "1/6"
    again = shoal.Bundle.load(tmp_path / "out")
    assert (again.method.epsilon, again.statement.epsilon) == (Fraction(1, 6), Fraction(1, 6))


def test_domains_taken_from_the_data_are_not_in_it() -> None:
    text = recipe_text(protect(method="laplace", domains=None, domain_from_data=1.5))
    assert "domain_from_data = 1.5" in text
    assert "lo =" not in text
    assert "hi =" not in text


@pytest.mark.parametrize(
    ("text", "error", "word"),
    [
        ("method = ", InputError, "not valid TOML"),
        ("epsilon = 1", OptionError, "does not name a method"),
        ('method = "laplace"\nsed = 1', OptionError, "unknown key 'sed'"),
        ("method = 1", OptionError, "must name its method in method, got 1"),
        ('method = "laplace"\n[[attribute]]\nlo = 1', OptionError, "needs a name"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(
    text: str, error: type[Exception], word: str, tmp_path: Path
) -> None:
    (tmp_path / "m.toml").write_text(text, "utf-8")
    with pytest.raises(error, match=word):
        load_recipe(tmp_path / "m.toml")


def test_recipes_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no recipe"):
        load_recipe(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        load_recipe(tmp_path)
