"""Claims with a δ: statement, recipe, report and texts, methods that refuse a δ, and warnings to the custodian."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.errors import InputError, OptionError
from shoal.mechanisms.registry import (
    Choice,
    Tuned,
    claim_words,
    configured,
    load_recipe,
    method_class,
    names,
    recipe_text,
)
from shoal.noise import epsilon_from, rho_from
from shoal.privacy import statement
from shoal.report.words import epsilon_words, explanation
from tests.support import gaussian_method

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
    assert "replace-one" in found.adjacency.words
    assert "with ε = 0.5 per row, except with probability δ = 1e-06 (replace-one" in found.sentence
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
    assert reason.text.endswith("whatever else an attacker knows, except with probability δ = 1e-06.")
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
    with pytest.raises(InputError, match="must have both delta and rho, or neither"):
        shoal.PrivacyStatement.from_dict(plain)


def test_a_person_with_several_rows_costs_the_square_and_is_converted_once() -> None:
    found = released(persons=True).statement
    # the ρ of (ε, δ), of which a row gets a ninth
    assert found.rho == rho_from(Fraction(1, 2), DELTA)
    assert found.epsilon == Fraction(1, 2)
    row = released(persons=True).method.rho
    assert row == found.rho / 9
    # less than a third of the ε: that would be the rule for a pure claim
    assert epsilon_from(row, DELTA) < Fraction(1, 6)
    assert found.delta == DELTA
    assert "at most 3 rows" in found.unit
    assert any("9 times that, the square of the number of rows" in line for line in found.conditions)
    assert sum(found.spending.values()) == found.rho  # type: ignore[arg-type]


PURE = [
    name for name in names() if "epsilon" in (own := method_class(name).parameters()) and "delta" not in own
]


@pytest.mark.parametrize("name", PURE)
def test_a_method_that_is_pure_only_refuses_a_delta(name: str) -> None:
    settings = {"epsilon": "1"} | ({"k": 5} if "k" in method_class(name).parameters() else {})
    with pytest.raises(
        OptionError, match=f"method '{name}' provides pure differential privacy, without delta"
    ):
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
    assert words.sentence.endswith("after seeing this table, except with probability 1e-06.")
    assert "except with probability 1e-06" in words.plain
    assert re.fullmatch(r"at most [\d.]+%, except with probability 1e-06", words.bound)
    assert "except with probability 1e-06 (δ)" in epsilon_words(plain)[1]
    pure = explanation(released(delta=0).statement.to_dict())
    assert "except with probability" not in pure.sentence + pure.plain + pure.bound


def test_the_report_of_a_release_says_it(tmp_path: Path) -> None:
    released().save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "except with probability 1e-06" in page
    assert "approximate-dp" in page


def test_the_list_of_methods_names_both_claims() -> None:
    assert claim_words(gaussian_method.METHOD) == "dp; approximate-dp with delta"


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


@pytest.mark.parametrize("delta", ["0.0010001", "0.5", "0.9999"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_no_reason_makes_a_delta_above_one_in_a_thousand_publishable(delta: str, neighbours: str) -> None:
    schema = shoal.Schema.from_dict({"attribute": [AGE]})
    data = people().select(["age"])
    wanted = {"method": "pairs-dp", "epsilon": 1, "delta": delta, "neighbours": neighbours}
    found = shoal.protect(data, schema, **wanted).statement
    assert not found.publishable
    (reason,) = found.not_publishable_because
    assert reason.startswith(f"δ = {delta} is above 0.001")
    assert found.verdict.decision == "do not publish"
    assert found.verdict.next_step == "release again with a smaller δ, such as 1e-6"
    assert shoal.PrivacyStatement.from_dict(found.to_dict()).to_dict() == found.to_dict()
    overridden = shoal.protect(
        data, schema, **(wanted | {"epsilon": 11, "override": "only for an experiment here"})
    ).statement
    assert overridden.not_publishable_because == (reason,)
    with pytest.raises(OptionError, match="override gives the reason for publishing an ε"):
        shoal.protect(data, schema, **wanted, override="only for an experiment here")


def test_a_delta_of_one_in_a_thousand_is_publishable_with_a_limit() -> None:
    found = released(delta="0.001").statement
    assert found.publishable
    assert [line for line in found.verdict.limits if line.startswith("δ = 0.001 is large (above 1e-05)")]


@pytest.mark.parametrize(
    ("rows", "delta", "limit"),
    [
        (9_999, "1e-5", ""),
        (20_000, "1e-5", "above 5e-06"),
        (20_000, "5e-6", ""),
        (100_000, "1.1e-6", "above 1e-06"),
    ],
)
def test_a_delta_is_judged_by_the_public_number_of_rows(rows: int, delta: str, limit: str) -> None:
    def limits(found: shoal.PrivacyStatement) -> list[str]:
        return [line for line in found.verdict.limits if line.startswith("δ")]

    schema = shoal.Schema.from_dict({"attribute": [AGE]})
    data = people().select(["age"])
    declared = shoal.protect(data, schema, "pairs-dp", epsilon=1, delta=delta, rows=rows).statement
    known = released(rows=rows, delta=delta).statement
    for found in (declared, known):
        assert found.public_rows == rows
        assert bool(limits(found)) is bool(limit)
        assert all(limit in line for line in limits(found))
        assert shoal.PrivacyStatement.from_dict(found.to_dict()).to_dict() == found.to_dict()


def test_the_private_number_of_rows_does_not_judge_a_delta() -> None:
    schema = shoal.Schema.from_dict({"attribute": [AGE]})
    few, many = (
        shoal.protect(people(rows).select(["age"]), schema, "pairs-dp", epsilon=1, delta="1e-5").statement
        for rows in (40, 20_000)
    )
    # 1e-5 is above 1/(10 · 20,000), and nobody may see that there are so many
    for found in (few, many):
        assert not any(reason.code.startswith("delta") for reason in found.verdict.reasons)
    assert few.settings == many.settings
    assert few.public_rows is None
    assert "public_rows" not in few.to_dict()


@pytest.mark.parametrize(
    ("columns", "delta"),
    [
        (columns, delta)
        if columns < 40 or delta == "1e-5"
        else pytest.param(columns, delta, marks=pytest.mark.slow)
        for columns in (1, 2, 7, 40)
        for delta in ("1e-3", "1e-5", "1e-9")
    ],
)
@pytest.mark.parametrize("epsilon", ["0.00001", "0.001", "0.1", "0.3333333333333333", "1", "10"])
def test_what_columns_cost_alone_is_consistent_with_rho(delta: str, epsilon: str, columns: int) -> None:
    """At least its part of ε, at most all of it, more for more ρ, and a true bound: ρ of the column implies it."""
    total, failure = Fraction(epsilon), Fraction(delta)
    rho = rho_from(total, failure)
    weights = [Fraction(weight + 1) for weight in range(columns)]
    shares = {f"c{number}": rho * weight / sum(weights) for number, weight in enumerate(weights)}
    found = statement._in_epsilon(dict(shares), failure, rho, total)
    stated = [found[name] for name in shares]
    assert all(one is not None for one in stated)
    costs = [one for one in stated if one is not None]
    assert all(0 < cost <= total for cost in costs)
    assert costs == sorted(costs)
    assert sum(costs) >= total
    for share, cost in zip(shares.values(), costs, strict=True):
        assert cost * rho >= total * share
        # rounded up to twelve digits
        assert cost == total or epsilon_from(share, failure) <= cost
    assert statement._in_epsilon({"none": Fraction(0)}, failure, rho, total) == {"none": Fraction(0)}


def test_a_column_with_a_small_share_is_not_stated_to_cost_nothing() -> None:
    names = [f"c{number}" for number in range(30)]
    data = pa.table(
        {name: [row % 2 for row in range(60)] for name in names} | {"x": [row % 50 for row in range(60)]}
    )
    domains: dict[str, Any] = dict.fromkeys(names, (0, 1)) | {"x": (0, 49)}
    found = shoal.protect(
        data, method="pairs-dp", epsilon="0.001", delta="0.001", domains=domains, neighbours="replace-one"
    ).statement
    assert found.rho is not None
    assert found.epsilon is not None
    assert all(
        cost is not None and 0 < cost <= found.epsilon for cost in found.epsilon_per_attribute.values()
    )
