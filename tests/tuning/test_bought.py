"""The charge for a private choice is bound to the values chosen, and every other data-dependent choice taints."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.cli import run
from shoal.errors import OptionError
from shoal.io import write
from shoal.mechanisms.registry import load_recipe, recipe_text
from shoal.survey import survey, survey_schema

BOUGHT = [{"setting": "k", "chosen": 20, "candidates": [10, 20, 50]}]
PRICE = {"tuned": "k", "tuned_epsilon": "0.1"}


def statement(k: int = 20, **options: Any) -> shoal.PrivacyStatement:
    arguments = {"columns": ["age", "income"], "link": False, **options}
    return shoal.protect(survey(100), survey_schema(), "ranking-dp", "1", k, **arguments).statement


def test_the_values_the_candidates_and_the_price_stand_in_the_statement() -> None:
    found = statement(**PRICE, tuned_choice=BOUGHT)
    assert found.publishable
    assert found.epsilon == Fraction(11, 10)
    said = (
        "k = 20 was chosen from the candidates 10, 20, 50, by the exponential mechanism with ε = 0.1 per row"
    )
    assert any(said in condition for condition in found.conditions)


def test_another_k_after_a_private_choice_taints() -> None:
    found = statement(k=50, **PRICE, tuned_choice=BOUGHT)
    assert not found.publishable
    assert found.sentence.startswith("No guarantee as it stands")
    assert found.data_dependent[0].startswith("k was chosen privately as 20, but 50 is used")
    assert found.epsilon == 1
    assert "choice of k" not in found.spending
    assert not any("exponential mechanism" in condition for condition in found.conditions)


def test_one_of_two_bought_settings_changed_voids_the_price_of_both() -> None:
    both = [*BOUGHT, {"setting": "split", "chosen": "equal", "candidates": ["equal", "optimal"]}]
    price = {"tuned": "k, split", "tuned_epsilon": "0.1", "tuned_choice": both}
    assert statement(split="equal", **price).epsilon == Fraction(11, 10)
    for changed in ({"split": "optimal"}, {"split": {"age": 2, "income": 1}}):
        found = statement(**changed, **price)
        assert "split was chosen privately as equal, but" in found.data_dependent[0]
        assert "paid for 20 and equal only, and is not counted" in found.data_dependent[0]
        assert (found.epsilon, found.publishable) == (1, False)


def test_a_price_typed_by_hand_buys_nothing() -> None:
    found = statement(tuned="k", tuned_epsilon="1e-9")
    assert not found.publishable
    assert found.epsilon == 1
    assert "without the values that it paid for" in found.data_dependent[0]


def test_a_bought_k_does_not_pay_for_domains() -> None:
    found = statement(tuned="k, domains", tuned_epsilon="0.1", tuned_choice=BOUGHT)
    assert found.data_dependent == ("the domains were chosen based on the records.",)
    assert found.spending["choice of k"] == Fraction(1, 10)
    assert not found.publishable


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tuned_epsilon": "0.1", "tuned_choice": "k"}, "must be a list of private choices"),
        ({"tuned_epsilon": "0.1", "tuned_choice": [{"k": 20}]}, "must have setting, chosen and candidates"),
        ({"tuned_epsilon": "0.1", "tuned_choice": BOUGHT * 2}, "names a setting more than once"),
        ({"tuned_choice": BOUGHT}, "give their cost in tuned_epsilon"),
        ({"tuned_epsilon": "0.1", "tuned_choice": [{**BOUGHT[0], "chosen": 30}]}, "k = 30 must be one of"),
        (
            {"tuned_epsilon": "0.1", "tuned_choice": [{**BOUGHT[0], "candidates": [20]}]},
            "at least two different",
        ),
        ({"tuned_epsilon": "0.1", "tuned_choice": [{**BOUGHT[0], "candidates": [20, "x"]}]}, "must be sizes"),
        (
            {"tuned_epsilon": "0.1", "tuned_choice": [{**BOUGHT[0], "setting": "noise"}]},
            "cannot be chosen privately",
        ),
        ({"tuned": "domain:age"}, None),
        ({"tuned": "domain:incom"}, "not a released column. Did you mean 'income'"),
        ({"tuned": "domain:"}, "which is neither a setting"),
    ],
)
def test_what_contradicts_itself_is_refused(options: dict[str, Any], words: str | None) -> None:
    if words is None:
        assert not statement(**options).publishable
        return
    with pytest.raises(OptionError, match=words.replace("?", r"\?")):
        statement(**options)


def test_what_tune_returns_is_what_protect_takes() -> None:
    found = shoal.tune(
        survey(100), survey_schema(), "1", ks=[5, 20], columns=["age", "income"], link=False, private="0.5"
    )
    assert found.best is not None
    assert found.tuned is not None
    assert statement(k=found.best.k or 0, tuned=found.tuned).epsilon == Fraction(3, 2)
    assert not statement(k=21, tuned=found.tuned).publishable
    with pytest.raises(OptionError, match="leave tuned_epsilon out"):
        statement(tuned=found.tuned, tuned_epsilon="0.1")


def test_a_recipe_keeps_what_was_bought(tmp_path: Path) -> None:
    options = {"columns": ["age"], **PRICE, "tuned_choice": BOUGHT}
    first = shoal.protect(survey(100), survey_schema(), "ranking-dp", "1", 20, **options)
    path = tmp_path / "method.toml"
    path.write_text(recipe_text(first), "utf-8")
    recipe = load_recipe(path)
    assert (recipe["tuned"], recipe["tuned_choice"]) == ("k", BOUGHT)
    again = shoal.protect(survey(50), **recipe)
    assert again.statement == first.statement
    assert recipe_text(again) == recipe_text(first)
    assert not shoal.protect(survey(50), **{**recipe, "k": 10}).statement.publishable


@pytest.mark.parametrize(
    ("tuned", "words"),
    [
        ("domains", "the domains were chosen"),
        (("columns", "domains"), "the columns and the domains were chosen"),
        ("domain:age", "the domain of column 'age' was chosen"),
        ("k, domain:income", "the domain of column 'income' was chosen"),
    ],
)
def test_domains_that_were_read_off_the_records_taint_and_are_not_stated(tuned: Any, words: str) -> None:
    found = statement(tuned=tuned)
    assert f"{words} based on the records." in found.data_dependent
    assert not found.publishable
    for column, facts in found.attributes.items():
        hidden = "domains" in tuned or f"domain:{column}" in tuned
        assert (facts["hi"] == "taken from the data") is hidden


def test_a_tuned_domain_is_not_in_the_recipe() -> None:
    release = shoal.protect(
        survey(60), survey_schema(), "laplace", "1", columns=["age", "income"], tuned="domain:income"
    )
    text = recipe_text(release)
    assert 'tuned = "domain:income"' in text
    assert "300000" not in text


def test_names_with_commas_go_through_a_recipe(tmp_path: Path) -> None:
    table = survey(60).select(["age"]).rename_columns(["age, in years"])
    options = {"domains": {"age, in years": (18, 99)}, "tuned": ["domain:age, in years", "k"]}
    release = shoal.protect(table, method="ranking-dp", epsilon=1, k=5, **options)
    path = tmp_path / "method.toml"
    path.write_text(recipe_text(release), "utf-8")
    assert load_recipe(path)["tuned"] == ["domain:age, in years", "k"]


WORDS = ["people.csv", "--schema", "people.toml", "--epsilon", "1", "--columns", "age,income"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(survey(120), tmp_path / "people.csv")
    survey_schema().save(tmp_path / "people.toml")
    return tmp_path


def stated(*words: str) -> dict[str, Any]:
    """The statement of a release from the command line."""
    assert run(["protect", "people.csv", *words, "--out", "release"]) == 0
    found: dict[str, Any] = json.loads(Path("release/statement.json").read_text("utf-8"))
    return found


def test_an_option_that_overrides_a_bought_setting_taints(here: Path) -> None:
    assert run(["tune", *WORDS, "--no-link", "--ks", "5,20", "--private", "0.5", "--out", "out"]) == 0
    assert "[[tuned_choice]]" in (here / "out" / "method.toml").read_text("utf-8")
    found = stated("--config", "out/method.toml", "--k", "7")
    assert "but 7 is used" in found["data_dependent"][0]
    assert (found["publishable"], found["epsilon"]) == (False, 1)


def test_tuned_on_the_command_line_adds_to_what_the_recipe_says(here: Path) -> None:
    assert run(["tune", *WORDS, "--no-link", "--ks", "5,20", "--private", "0.5", "--out", "out"]) == 0
    found = stated("--config", "out/method.toml", "--tuned", "domains")
    assert found["data_dependent"] == ["the domains were chosen based on the records."]
    assert found["spending"]["choice of k"] == 0.5


def test_tuned_on_the_command_line_taints(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["protect", *WORDS, "--method", "ranking-dp", "--k", "5", "--no-link"]
    assert run([*words, "--dry-run", "--json", "--tuned", "k,split", "--tuned", "domain:age"]) == 0
    found = json.loads(capsys.readouterr().out)["statement"]
    assert found["data_dependent"] == [
        "k and split were chosen based on the records (shoal tune).",
        "the domain of column 'age' was chosen based on the records.",
    ]
    assert run([*words, "--out", "no", "--tuned", "domain:agee"]) == 2
    assert "not a released column. Did you mean 'age'?" in capsys.readouterr().err
    assert not Path("no").exists()


def test_an_audit_takes_tuned_too(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.auditing.auditor._FEWEST_PAIRS", 1)
    monkeypatch.setattr("shoal.auditing.auditor._FINALISTS", 1)
    words = [
        "audit",
        *WORDS[:-1],
        "age",
        "--method",
        "laplace",
        "--runs",
        "100",
        "--seed",
        "1",
        "--workers",
        "1",
    ]
    assert run([*words, "--tuned", "domains", "--json"]) == 0
    capsys.readouterr()
    assert run([*words, "--tuned", "domans"]) == 2
    assert "tuned names 'domans'" in capsys.readouterr().err


def test_a_tuning_with_domains_from_the_records_says_so_and_is_not_private(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["tune", *WORDS, "--tuned", "domains", "--ks", "5,20"]
    assert run([*words, "--methods", "ranking-dp", "--fast", "--out", "out"]) == 0
    assert load_recipe(here / "out" / "method.toml")["tuned"] == "domains, k"
    capsys.readouterr()
    assert run([*words, "--no-link", "--private", "0.5"]) == 2
    assert "without using the records: the domains were chosen" in capsys.readouterr().err
