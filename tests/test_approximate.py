"""Claims with a δ: what statement, recipe, report and words say, who refuses a δ, and when the custodian is warned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import gaussian_method
import pyarrow as pa
import pytest

import shoal
from shoal.errors import InputError, OptionError
from shoal.mechanisms.promises import claims
from shoal.method.presets import PRESETS, configured
from shoal.method.recipe import load_recipe, recipe_text
from shoal.method.tuned import Choice, Tuned
from shoal.noise import epsilon_from, rho_from
from shoal.report.words import epsilon_words, explanation

DELTA = Fraction(1, 10**6)
AGE = {"name": "age", "type": "integer", "source": "questionnaire", "lo": 0, "hi": 120}


@pytest.fixture(autouse=True)
def method() -> Iterator[None]:
    with gaussian_method.registered():
        yield


def people(rows: int = 40) -> pa.Table:
    return pa.table({"age": [20 + i % 60 for i in range(rows)], "who": [f"p{i // 3}" for i in range(rows)]})


def released(rows: int = 40, persons: bool = False, **options: Any) -> shoal.Release:
    who = [{"name": "who", "kind": "nominal", "role": "unit", "max_rows": 3}] if persons else []
    schema = shoal.Schema.from_dict({"attribute": [AGE, *who]})
    wanted = {"epsilon": "0.5", "delta": "1e-6", **options}
    return shoal.protect(people(rows), schema, gaussian_method.NAME, columns=["age"], **wanted)


def test_the_statement_has_epsilon_delta_rho_and_neighbours() -> None:
    found = released().statement
    assert (found.model, found.epsilon, found.delta) == ("approximate-dp", Fraction(1, 2), DELTA)
    assert found.rho == rho_from(Fraction(1, 2), DELTA)
    assert found.publishable
    assert "replace-one" in (found.neighbours or "")
    assert "except with probability δ = 1e-06, with ε = 0.5 per row (replace-one" in found.sentence
    assert any("not pure differential privacy" in line for line in found.not_promised)
    assert "- Privacy budget: ε = 0.5, δ = 1e-06, ρ = 0.006" in found.to_markdown()
    assert sum(found.spending.values()) == found.rho  # type: ignore[arg-type]


def test_columns_by_themselves_are_stated_in_epsilon() -> None:
    found = released().statement
    assert found.epsilon_per_attribute["age"] == epsilon_from(found.rho or Fraction(0), DELTA)
    assert found.stated_share("age") == "0.5"
    assert released(delta=0).statement.epsilon_per_attribute == {"age": Fraction(1, 2)}


def test_the_verdict_says_it_too() -> None:
    (reason,) = [r for r in released().statement.verdict.reasons if "original records" in r.text]
    assert reason.text.endswith("whatever else an attacker knows, except with probability 1e-06.")
    assert not any("probability" in r.text for r in released(delta=0).statement.verdict.reasons)


def test_without_a_delta_it_is_zero_and_the_claim_pure() -> None:
    for options in ({"delta": None}, {"delta": 0}, {"delta": "0"}):
        found = released(**options).statement
        assert (found.model, found.delta, found.rho) == ("dp", 0, None)
        assert "probability" not in found.sentence
        assert not {"delta", "rho"} & found.to_dict().keys()


def test_a_statement_is_read_back() -> None:
    found = released().statement
    plain = json.loads(json.dumps(found.to_dict()))
    assert (plain["delta"], plain["rho"]) == (1e-6, float(found.rho or 0))
    again = shoal.PrivacyStatement.from_dict(plain)
    assert (again.delta, again.sentence) == (found.delta, found.sentence)
    assert float(again.rho or 0) == float(found.rho or 0)
    del plain["rho"]
    with pytest.raises(InputError, match="delta and rho belong together"):
        shoal.PrivacyStatement.from_dict(plain)


def test_a_person_with_several_rows_costs_the_square_and_is_converted_once() -> None:
    found = released(persons=True).statement
    row = rho_from(Fraction(1, 2), DELTA)
    assert found.rho == 9 * row
    assert found.epsilon == epsilon_from(9 * row, DELTA)
    # more than three times the row's ε: that would be the rule for a pure claim
    assert found.epsilon > 3 * Fraction(1, 2)
    assert found.delta == DELTA
    assert "at most 3 rows" in found.unit
    assert any("square of that number" in line for line in found.conditions)
    assert sum(found.spending.values()) == found.rho  # type: ignore[arg-type]


PURE = [
    name
    for name, method in PRESETS.items()
    if "epsilon" in method.adjustable and "delta" not in method.adjustable
]


@pytest.mark.parametrize("name", PURE)
def test_a_method_that_is_pure_only_refuses_a_delta(name: str) -> None:
    settings = {"epsilon": "1"} | ({"k": 5} if "k" in PRESETS[name].adjustable else {})
    with pytest.raises(OptionError, match=f"method '{name}' makes a pure claim, without a delta"):
        configured(name, **settings, delta="1e-6")
    assert configured(name, **settings, delta=0).pure


def test_a_method_without_epsilon_has_no_delta_either() -> None:
    with pytest.raises(OptionError, match="has no option 'delta'"):
        configured("k-anonymity", k=5, delta="1e-6")


@pytest.mark.parametrize("value", ["1", "-1e-6", "x", 2, True])
def test_a_delta_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(OptionError, match="delta must be 0 or a decimal number"):
        released(delta=value)


def test_the_custodian_is_warned_where_delta_times_rows_is_large() -> None:
    def warned(found: shoal.Release) -> list[str]:
        return [note for note in found.notes if note.startswith("delta")]

    (note,) = warned(released(rows=101, delta="0.001"))
    assert "delta 0.001 times the number of rows is above 0.1" in note
    assert "101" not in note
    assert not warned(released(rows=100, delta="0.001"))
    assert not warned(released(rows=101))


def test_a_recipe_keeps_the_delta(tmp_path: Path) -> None:
    first = released(seed=1)
    path = tmp_path / "method.toml"
    path.write_text(recipe_text(first), "utf-8")
    again = shoal.protect(people(), **{**load_recipe(path), "seed": 1})
    assert again.statement.sentence == first.statement.sentence
    assert (again.statement.delta, again.statement.rho) == (DELTA, first.statement.rho)
    assert again.data["age"].to_pylist() == first.data["age"].to_pylist()


def test_words_say_except_with_probability() -> None:
    plain = released().statement.to_dict()
    words = explanation(plain)
    assert words.sentence.endswith("sure by this table, not surer, except with probability 1e-06.")
    assert "except with probability 1e-06" in words.plain
    assert words.bound.endswith("sure at most, except with probability 1e-06")
    assert "except with probability 1e-06 (δ)" in epsilon_words(plain)[1]
    pure = explanation(released(delta=0).statement.to_dict())
    assert "probability" not in pure.sentence + pure.plain + pure.bound


def test_the_report_of_a_release_says_it(tmp_path: Path) -> None:
    released().save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "except with probability 1e-06" in page
    assert "approximate-dp" in page


def test_the_list_of_methods_names_both_claims() -> None:
    assert claims(gaussian_method.METHOD) == "dp; approximate-dp with delta"


def test_a_private_choice_is_not_added_to_a_claim_with_a_delta() -> None:
    with pytest.raises(shoal.ShoalError, match="cannot be added to the claim"):
        released(tuned=Tuned(("split",), Fraction(1, 10), (Choice("split", "equal", ("equal", "optimal")),)))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_pairs_take_a_delta(neighbours: str) -> None:
    schema = shoal.Schema.from_dict({"attribute": [AGE]})
    settings = {"epsilon": "2", "neighbours": neighbours, "columns": ["age"]}
    found = shoal.protect(people(), schema, "pairs-dp", delta="1e-6", **settings).statement
    assert (found.model, found.delta, found.publishable) == ("approximate-dp", DELTA, True)
    assert found.rho == rho_from(Fraction(2), DELTA)
    spent = sum(found.spending.values())  # type: ignore[arg-type]
    assert Fraction(99, 100) * found.rho <= spent <= found.rho
    assert shoal.protect(people(), schema, "pairs-dp", **settings).statement.model == "dp"
