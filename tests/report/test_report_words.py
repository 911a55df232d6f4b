"""Plain words and the light: they never say more than the model, and bounds are rounded to the safe side."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.evaluation.interval import wilson
from shoal.method.models import MODELS
from shoal.report.risks import MATTERS, RiskLine
from shoal.report.traffic_light import EMPTY_EPSILON, MOST_LINKED, STRONG_EPSILON, light
from shoal.report.words import belief_words, epsilon_words, explanation, factor_words, k_words


def statement(model: str, **more: Any) -> dict[str, Any]:
    facts = MODELS[model]  # type: ignore[index]
    found = {
        "model": model,
        "epsilon": 1.0 if facts.budgeted else None,
        "neighbours": "replace-one, the number of records is public" if facts.budgeted else None,
        **({"delta": 1e-6, "rho": 0.024} if model == "approximate-dp" else {}),
        "unit": "row",
        "target": facts.target,
        "data_dependent": [],
        "settings": {"k": 5, "t": 2.0},
        "publishable": facts.guarantee,
        "not_publishable_because": [] if facts.guarantee else ["The method gives no privacy guarantee."],
    }
    return found | more


@pytest.mark.parametrize("model", MODELS)
def test_only_claim_one_is_explained_as_differential_privacy_of_the_records(model: str) -> None:
    words = explanation(statement(model))
    bounds_a_person = "sure at most" in words.bound
    assert bounds_a_person is MODELS[model].of_records  # type: ignore[index]
    assert ("except with probability 1e-06" in words.bound) is (model == "approximate-dp")
    if model in ("dp-given-partition", "idp-given-partition"):
        assert "not covered" in words.plain
        assert words.bound == "no bound for a person"
    if model == "dp-given-partition":
        assert "not differential privacy of the original records" in words.plain
    if model == "idp-given-partition":
        assert "weaker than differential privacy" in words.plain
    if MODELS[model].of_the_table:  # type: ignore[index]
        assert "ε" not in words.plain
        assert "differential privacy" not in words.plain.replace("not differential privacy", "")


@pytest.mark.parametrize("model", MODELS)
def test_the_promise_is_one_sentence_with_its_number(model: str) -> None:
    facts = MODELS[model]  # type: ignore[index]
    sentence = explanation(statement(model)).sentence
    assert sentence.endswith(".")
    assert sentence.count(". ") == 0
    for word in ("ε", "epsilon", "neighbour", "replace-one"):
        assert word not in sentence
    number = "2.72" if facts.budgeted else {"t-closeness": "2", "none": "Nothing"}.get(model, "5")
    assert number in sentence
    # what limits the promise is part of it
    assert ("groups of records" in sentence) is facts.given_partition


def test_the_two_relations_answer_two_questions() -> None:
    swapped = explanation(statement("dp"))
    added = explanation(
        statement("dp", neighbours="one record added or removed, the number of records is private")
    )
    assert "been another" in swapped.sentence
    assert "added or left out" in added.sentence
    assert "whether one more took part" in added.plain


@pytest.mark.parametrize("model", [model for model, facts in MODELS.items() if facts.guarantee])
def test_a_choice_that_looked_at_the_records_leaves_no_promise(model: str) -> None:
    words = explanation(statement(model, data_dependent=["a bound"]))
    if MODELS[model].of_the_table:
        assert words == explanation(statement(model))
    else:
        assert words.sentence == "As it stands nothing is promised."
        assert words.bound == "no bound"


@given(st.floats(1e-3, 13.8))
def test_factors_are_rounded_up_and_by_little(epsilon: float) -> None:
    shown = float(factor_words(epsilon).replace(",", ""))
    assert math.exp(epsilon) * (1 - 1e-9) <= shown <= math.exp(epsilon) * 1.0101


@given(st.floats(0, 6.9))
def test_beliefs_are_rounded_up_and_by_little(epsilon: float) -> None:
    exact = 100 / (1 + math.exp(-epsilon))
    assert exact - 1e-6 <= float(belief_words(epsilon).rstrip("%")) <= exact + 0.1 + 1e-6


def test_huge_budgets_have_words() -> None:
    assert factor_words(1e6) == "more than 1,000,000"
    assert belief_words(1e6) == "more than 99.9%"


def test_k_is_a_promise_in_the_k_anonymity_family_only() -> None:
    assert "part of the promise" in k_words(statement("k-anonymity"))[1]
    assert "not a promise" in k_words(statement("dp-given-partition"))[1]
    assert k_words(statement("dp", settings={}))[0] == "none"
    assert epsilon_words(statement("k-anonymity"))[0] == "none"
    assert epsilon_words(statement("dp"))[0] == "1"


LIGHTS = {
    "dp, small budget": (statement("dp"), "green"),
    "dp, at the limit": (statement("dp", epsilon=STRONG_EPSILON), "green"),
    "dp, middling budget": (statement("dp", epsilon=2.0), "amber"),
    "dp, empty budget": (statement("dp", epsilon=EMPTY_EPSILON + 1), "red"),
    "given partition": (statement("dp-given-partition"), "amber"),
    "given partition, empty budget": (statement("dp-given-partition", epsilon=50.0), "red"),
    "individual": (statement("idp-given-partition"), "amber"),
    "k-anonymity": (statement("k-anonymity"), "amber"),
    "t-closeness": (statement("t-closeness"), "amber"),
    "none": (statement("none"), "red"),
    "a seed": (statement("dp", publishable=False, not_publishable_because=["A seed was given."]), "red"),
}


@pytest.mark.parametrize("name", LIGHTS)
def test_light_follows_from_the_statement(name: str) -> None:
    facts, level = LIGHTS[name]
    found = light(facts)
    assert found.level == level
    assert found.level == found.reasons[0].level
    assert all(reason.text.endswith(".") for reason in found.reasons)


def line(success: float, low: float, high: float, chance: float, **more: Any) -> RiskLine:
    return RiskLine("record linkage", "all", success, (low, high), chance, chance, identity=True, **more)


def test_light_follows_from_measured_linkage() -> None:
    private = statement("dp")
    linked = {"links_records": True}
    assert light(private, [line(0.001, 0.0, 0.01, 0.001, **linked)]).level == "green"
    assert light(private, [line(0.05, 0.04, 0.06, 0.001, **linked)]).level == "amber"
    assert light(private, [line(0.5, MOST_LINKED + 0.01, 0.6, 0.001, **linked)]).level == "red"
    # of a sampled attack, a few lucky attempts do not count
    assert light(private, [line(0.006, 0.002, 0.02, 0.001)]).level == "green"
    assert light(private, [line(0.2, 0.15, 0.25, 0.001)]).level == "amber"


def test_one_lucky_attempt_of_three_does_not_change_the_light() -> None:
    lucky = line(1 / 3, *wilson(1 / 3, 3), 0.0, attempts=3)
    assert lucky.interval[0] > MATTERS
    assert light(statement("dp"), [lucky]).level == "green"
    # three of three are no luck, and the page says how few they were
    surely = light(statement("dp"), [line(1.0, *wilson(1.0, 3), 0.0, attempts=3)])
    assert surely.level == "amber"
    assert "of the 3 attempts" in surely.reasons[0].text


@pytest.mark.parametrize("attempts", [3, 20, 300])
def test_luck_is_told_by_the_binomial_distribution(attempts: int) -> None:
    from scipy.stats import binom

    for wins in range(attempts + 1):
        rate = wins / attempts
        found = line(rate, *wilson(rate, attempts), 0.1, attempts=attempts)
        surely = bool(binom.sf(wins - 1, attempts, 0.1 + MATTERS) <= 0.025)
        assert found.above_chance is (surely and found.interval[0] > 0.1 + MATTERS)


def test_what_a_promise_is_not_about_does_not_make_a_release_unfit() -> None:
    linked = line(
        0.9, 0.8, 0.95, 0.001, links_records=True, beyond="the promise is about confidential values"
    )
    found = light(statement("t-closeness"), [linked])
    assert found.level == "amber"
    assert any("the promise is about confidential values" in reason.text for reason in found.reasons)


def test_a_budget_that_promises_nothing_is_not_called_strong() -> None:
    words = epsilon_words(statement("dp", data_dependent=["k was chosen."]))
    assert words[0] == "1"
    assert "promises nothing" in words[1]


def test_a_guess_that_comes_true_does_not_change_the_light() -> None:
    told = RiskLine("inference of pay", "all but the secret", 0.9, (0.8, 0.95), 0.1, 0.1)
    assert light(statement("dp"), [told]).level == "green"
