"""Texts and verdict never claim more than the model, and bounds are rounded to the safe side."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.evaluation.assessment import MATTERS, MOST_LINKED, RiskLine, verdict
from shoal.evaluation.learning import wilson
from shoal.noise import MOST_EPSILON
from shoal.privacy.verdict import (
    DECISIONS,
    LEVELS,
    MODELS,
    STRONG_EPSILON,
    Level,
    belief_words,
    budget_words,
    factor_words,
    too_much,
)
from shoal.report.words import epsilon_words, explanation, k_words


def statement(model: str, **more: Any) -> dict[str, Any]:
    facts = MODELS[model]  # type: ignore[index]
    found = {
        "model": model,
        "epsilon": 1.0 if facts.budgeted else None,
        "adjacency": "replace-one" if facts.budgeted else None,
        **({"delta": 1e-6, "rho": 0.024} if model == "approximate-dp" else {}),
        "unit": "row",
        "target": facts.target,
        "data_dependent": [],
        "settings": {"k": 5, "t": 2.0},
        "publishable": facts.guarantee,
        "obstacles": [] if facts.guarantee else [{"code": "no-guarantee", "facts": {}}],
    }
    return found | more


@pytest.mark.parametrize("model", MODELS)
def test_only_claim_one_is_explained_as_differential_privacy_of_the_records(model: str) -> None:
    words = explanation(statement(model))
    bounds_a_person = "%" in words.bound
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
    # what a belief can become leads; where the claim is not about a person there is none, and the factor stands
    told = "73.2%" if facts.of_records else "2.72"
    number = told if facts.budgeted else {"t-closeness": "2", "none": "No guarantee"}.get(model, "5")
    assert number in sentence
    # what limits the promise is part of it
    assert ("groups of records" in sentence) is facts.given_partition


def test_the_two_relations_answer_two_questions() -> None:
    swapped = explanation(statement("dp"))
    added = explanation(statement("dp", adjacency="add-remove"))
    assert (
        "gives a fact about one row a probability of 50% can raise that to at most 73.2%" in swapped.sentence
    )
    assert "Changing one row" in swapped.plain
    assert "gives one row a 50% chance of being in the data can raise that to at most 73.2%" in added.sentence
    # from one value of a record to another are two steps
    assert "for a fact about it, to at most 88.1%" in added.sentence
    assert "Adding or removing one row" in added.plain


@pytest.mark.parametrize("model", [model for model, facts in MODELS.items() if facts.guarantee])
def test_a_choice_that_looked_at_the_records_leaves_no_promise(model: str) -> None:
    words = explanation(statement(model, data_dependent=["a bound"]))
    if MODELS[model].of_the_table:
        assert words == explanation(statement(model))
    else:
        assert words.sentence == "No guarantee holds as it stands."
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
    assert "part of the guarantee" in k_words(statement("k-anonymity"))[1]
    assert "not a guarantee" in k_words(statement("dp-given-partition"))[1]
    assert k_words(statement("dp", settings={}))[0] == "none"
    assert epsilon_words(statement("k-anonymity"))[0] == "none"
    assert epsilon_words(statement("dp"))[0] == "1"


def excessive(facts: dict[str, Any]) -> dict[str, Any]:
    """As a statement of this budget has it."""
    excess = too_much(facts, MOST_EPSILON)
    assert excess is not None
    return facts | {"publishable": False, "obstacles": [excess.to_dict()]}


DECIDED: dict[str, tuple[dict[str, Any], Level]] = {
    "dp, small budget": (statement("dp"), "green"),
    "dp, at the limit": (statement("dp", epsilon=STRONG_EPSILON), "green"),
    "dp, middling budget": (statement("dp", epsilon=2.0), "amber"),
    "dp, empty budget": (excessive(statement("dp", epsilon=11.0)), "red"),
    "dp, empty budget, accepted": (statement("dp", epsilon=11.0, override="the law asks for it."), "amber"),
    "approximate": (statement("approximate-dp"), "green"),
    "approximate, a large delta": (statement("approximate-dp", delta=0.001), "amber"),
    "given partition": (statement("dp-given-partition"), "amber"),
    "given partition, empty budget": (excessive(statement("dp-given-partition", epsilon=50.0)), "red"),
    "individual": (statement("idp-given-partition"), "amber"),
    "k-anonymity": (statement("k-anonymity"), "amber"),
    "k-anonymity, a crowd of two": (statement("k-anonymity", settings={"k": 2}), "amber"),
    "t-closeness": (statement("t-closeness"), "amber"),
    "none": (statement("none"), "red"),
    "a seed": (statement("dp", publishable=False, obstacles=[{"code": "seeded", "facts": {}}]), "red"),
}


@pytest.mark.parametrize("name", DECIDED)
def test_the_verdict_follows_from_the_statement(name: str) -> None:
    facts, level = DECIDED[name]
    found = verdict(facts)
    assert found.level == found.public.level == level
    assert found.decision == DECISIONS[level]
    assert all(reason.text.endswith(".") for reason in found.public.reasons)
    first, *reasons, last = found.lines
    assert first == f"Verdict: {DECISIONS[level]}."
    assert reasons
    assert all(line.startswith("- ") for line in reasons)
    assert last.startswith("Next: ")


@given(st.floats(0.01, 900))
def test_budgets_in_human_form_are_never_below_what_they_are(value: float) -> None:
    shown = float(budget_words(value).replace(",", ""))
    assert value * (1 - 1e-5) <= shown <= value * 1.1 + 0.011


def line(success: float, low: float, high: float, chance: float, **more: Any) -> RiskLine:
    return RiskLine("record linkage", "all", success, (low, high), chance, chance, identity=True, **more)


def measured_level(facts: dict[str, Any], *lines: RiskLine) -> Level | None:
    return verdict(facts, None, lines).measured.risk_level


def test_measured_risk_follows_from_linkage() -> None:
    private = statement("dp")
    linked = {"links_records": True}
    assert measured_level(private, line(0.001, 0.0, 0.01, 0.001, **linked)) == "green"
    assert measured_level(private, line(0.05, 0.04, 0.06, 0.001, **linked)) == "amber"
    assert measured_level(private, line(0.5, MOST_LINKED + 0.01, 0.6, 0.001, **linked)) == "red"
    # of a sampled attack, a few lucky attempts do not count
    assert measured_level(private, line(0.006, 0.002, 0.02, 0.001)) == "green"
    assert measured_level(private, line(0.2, 0.15, 0.25, 0.001)) == "amber"


@pytest.mark.parametrize("model", MODELS)
def test_what_was_measured_decides_for_the_family_of_k_anonymity_only(model: str) -> None:
    facts = statement(model)
    bad = line(0.6, 0.5, 0.7, 0.001, links_records=True)
    found = verdict(facts, None, [bad])
    assert found.measured.risk_level == "red"
    if MODELS[model].of_the_table:  # type: ignore[index]
        assert found.decision == "do not publish"
        assert "part of the verdict" in "".join(found.lines)
    else:
        assert found.decision == verdict(facts).decision
        # the public lines are the same to the letter
        assert found.lines[: len(verdict(facts).lines)] == verdict(facts).lines
        assert "advice only" in "".join(found.lines)


def test_a_crowd_of_k_is_allowed_what_it_promises() -> None:
    linked = line(0.19, 0.17, 0.2, 0.001, links_records=True)
    assert verdict(statement("k-anonymity"), None, [linked]).decision == "publish with these limits"
    assert LEVELS.index(verdict(statement("dp"), None, [linked]).measured.risk_level or "green") == 2


def test_one_lucky_attempt_of_three_does_not_change_the_verdict() -> None:
    lucky = line(1 / 3, *wilson(1 / 3, 3), 0.0, attempts=3)
    assert lucky.interval[0] > MATTERS
    assert measured_level(statement("dp"), lucky) == "green"
    # three of three are no luck, and the page says how few they were
    surely = verdict(statement("dp"), None, [line(1.0, *wilson(1.0, 3), 0.0, attempts=3)])
    assert surely.measured.risk_level == "amber"
    assert "of the 3 attempts" in surely.measured.risk[0].text


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
        0.9, 0.8, 0.95, 0.001, links_records=True, beyond="the guarantee is about confidential values"
    )
    found = verdict(statement("t-closeness"), None, [linked])
    assert found.decision == "publish with these limits"
    assert any("the guarantee is about confidential values" in reason.text for reason in found.measured.risk)


def test_a_budget_that_promises_nothing_is_not_called_strong() -> None:
    words = epsilon_words(statement("dp", data_dependent=["k was chosen."]))
    assert words[0] == "1"
    assert "no guarantee holds" in words[1]


def test_a_guess_that_comes_true_is_no_risk() -> None:
    told = RiskLine("inference of pay", "all but the secret", 0.9, (0.8, 0.95), 0.1, 0.1)
    assert measured_level(statement("dp"), told) is None
