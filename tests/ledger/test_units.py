"""A budget is per row or per person: charges for the other unit are refused, and choices are charged."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.cli import run
from shoal.errors import ClaimError, OptionError
from shoal.io import write
from shoal.ledger import (
    Charge,
    Ledger,
    LedgerError,
    OverdrawnError,
    Register,
    Terms,
    open_ledger,
    verify,
)
from shoal.ledger import store as ledger_migrations
from shoal.ledger.releases import account_of, charge_choice, declare_unit, keep_choice, record_release
from shoal.mechanisms.registry import Choice, Tuned
from shoal.query.server.folder import DatasetSettings, load_dataset, write_dataset

Spend = Callable[..., Charge]
PER_PERSON = "value of 'who' (at most 2 rows)"
AGE = {"name": "age", "type": "integer", "source": "questionnaire", "lo": 0, "hi": 120}
WHO = {"name": "who", "kind": "nominal", "role": "unit", "max_rows": 2}
ROWS = shoal.Schema.from_dict({"attribute": [AGE]})
PERSONS = shoal.Schema.from_dict({"attribute": [AGE, WHO]})


def people() -> pa.Table:
    return pa.table({"age": [20 + i for i in range(40)], "who": [f"p{i // 2}" for i in range(40)]})


def statement(schema: shoal.Schema, method: str = "laplace", **options: Any) -> shoal.PrivacyStatement:
    return shoal.protect(people(), schema, method, "0.25", columns=["age"], **options).statement


def released(ledger: Ledger, found: shoal.PrivacyStatement, dataset: str = "people") -> Fraction:
    """What a release added to what is spent."""
    before = ledger.standing(dataset).spent if dataset in ledger.datasets() else Fraction(0)
    record_release(ledger, dataset, found, "replace-one", "0" * 64)
    return ledger.standing(dataset).spent - before


def test_a_release_per_row_is_refused_against_a_budget_per_person(ledger: Ledger) -> None:
    ledger.register(Register("persons", "replace-one", Fraction(2), unit=PER_PERSON))
    with pytest.raises(ClaimError) as refused:
        released(ledger, statement(ROWS), "persons")
    assert f"'persons' is per {PER_PERSON}, but this release claims ε per row" in str(refused.value)
    assert "or name another dataset" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert ledger.standing("persons").spent == 0
    assert released(ledger, statement(PERSONS), "persons") == Fraction(1, 4)


def test_a_release_per_person_is_refused_against_a_budget_per_row(ledger: Ledger) -> None:
    with pytest.raises(
        ClaimError, match=re.escape(f"is per row, but this release claims ε per {PER_PERSON}")
    ):
        released(ledger, statement(PERSONS))
    assert released(ledger, statement(ROWS)) == Fraction(1, 4)


def test_another_number_of_rows_is_another_unit(ledger: Ledger) -> None:
    ledger.register(Register("persons", "replace-one", None, unit="value of 'who' (at most 3 rows)"))
    with pytest.raises(
        ClaimError, match=r"at most 3 rows\), but this release claims ε per value of 'who' \(at most 2"
    ):
        released(ledger, statement(PERSONS), "persons")


def test_a_bounded_unit_is_that_with_any_number_of_rows(ledger: Ledger) -> None:
    bounded = PERSONS.to_dict()
    bounded["attribute"][1] |= {"bound": {"rows": 1}}
    bounded_schema = shoal.Schema.from_dict(bounded)
    found = shoal.protect(people(), bounded_schema, "tree-dp", "0.25", neighbours="add-remove").statement
    assert found.unit == "value of 'who'"
    ledger.register(Register("persons", "add-remove", Fraction(2), unit=PER_PERSON))
    record_release(ledger, "persons", found, "add-remove", "0" * 64)
    # a server with the bound keeps the unit of the budget
    ledger.register(Register("persons", "add-remove", Fraction(2), unit="value of 'who'"))
    assert (ledger.standing("persons").spent, ledger.standing("persons").terms.unit) == (
        Fraction(1, 4),
        PER_PERSON,
    )
    with pytest.raises(OptionError, match="cannot be changed to one per household"):
        ledger.register(Register("persons", "add-remove", Fraction(2), unit="household"))


def test_a_budget_is_opened_for_a_word(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "ledger",
        "open",
        "ledger.sqlite",
        "homes",
        "--epsilon",
        "1/6",
        "--unit",
        "hid",
        "--called",
        "household",
    ]
    assert run(words) == 0
    assert "per household" in capsys.readouterr().out


def test_the_first_release_that_counts_fixes_the_unit(ledger: Ledger) -> None:
    assert released(ledger, statement(ROWS, "mdav-dp", k=5), "new") == 0
    assert ledger.standing("new").terms.unit is None
    assert released(ledger, statement(PERSONS), "new") == Fraction(1, 4)
    assert ledger.standing("new").terms.unit == PER_PERSON
    assert released(ledger, statement(ROWS, "mdav-dp", k=5), "new") == 0
    with pytest.raises(ClaimError, match="this release claims ε per row"):
        released(ledger, statement(ROWS), "new")


def test_the_unit_of_a_budget_cannot_change(ledger: Ledger) -> None:
    with pytest.raises(
        OptionError, match="a privacy budget per row, which cannot be changed to one per value of"
    ):
        ledger.register(Register("people", "replace-one", Fraction(1), unit=PER_PERSON))
    ledger.register(Register("people", "replace-one", Fraction(2), unit=None))
    assert (ledger.standing("people").terms.unit, ledger.standing("people").terms.ceiling) == ("row", 2)


def test_a_chain_that_changes_the_unit_is_found(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Terms.to_dict
    monkeypatch.setattr(Terms, "to_dict", lambda self: stored(self) | {"unit": PER_PERSON})
    ledger.register(Register("people", "replace-one", Fraction(2)))
    with pytest.raises(LedgerError, match="changes the privacy unit"):
        verify(ledger)


@pytest.fixture
def older(address: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A ledger as it was written before terms had a unit: 'people' with a ceiling, 'free' without, one spent."""
    stored = Terms.to_dict

    def without(self: Terms) -> dict[str, Any]:
        return {key: value for key, value in stored(self).items() if key != "unit"}

    with monkeypatch.context() as then:
        then.setattr(Terms, "to_dict", without)
        then.setattr(ledger_migrations, "MIGRATIONS", ledger_migrations.MIGRATIONS[:1])
        ledger = open_ledger(address)
        ledger.register(Register("people", "replace-one", Fraction(2)))
        ledger.register(Register("free", "replace-one", None))
        ledger.register(Register("spent", "replace-one", None))
        content = '{"claimed":"1/2","model":"dp","release":"laplace","table":"1"}'
        ledger.charge(Charge("spent", "", content, Fraction(1, 2), kind="release"))
        ledger.close()
    return address


def test_an_older_ledger_is_read_and_asks_for_its_unit(older: str) -> None:
    ledger = open_ledger(older)
    assert [finding.standing.terms.unit for finding in verify(ledger)] == [None, None, None]
    for name in ("people", "spent"):
        with pytest.raises(ClaimError, match="declare once which of the two it is, with 'shoal ledger unit'"):
            released(ledger, statement(ROWS), name)
    # nothing was ever counted and nothing was agreed: there is nothing that could be mixed up
    assert released(ledger, statement(PERSONS), "free") == Fraction(1, 4)
    declare_unit(ledger, "spent", "row")
    assert released(ledger, statement(ROWS), "spent") == Fraction(1, 4)
    with pytest.raises(OptionError, match="cannot be changed"):
        declare_unit(ledger, "spent", PER_PERSON)
    ledger.close()
    again = open_ledger(older)
    assert again.standing("spent").spent == Fraction(3, 4)
    again.close()


def test_a_server_says_its_unit_to_an_older_ledger(older: str, tmp_path: Path) -> None:
    place = tmp_path / "people"
    write_dataset(place, DatasetSettings(Fraction(2)), PERSONS, people())
    ledger = open_ledger(older)
    ledger.register(load_dataset(place).register())
    assert ledger.standing("people").terms.unit == PER_PERSON
    ledger.close()


def test_the_unit_is_said_from_the_command_line(
    older: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["ledger", "show", older]) == 0
    assert "unit: not noted" in capsys.readouterr().out
    assert run(["ledger", "unit", older, "spent", "row", "--max-rows", "2"]) == 2
    assert "name that column instead of 'row'" in capsys.readouterr().err
    assert run(["ledger", "unit", older, "spent", "who", "--max-rows", "2"]) == 0
    assert f"The budget of spent is per {PER_PERSON}." in capsys.readouterr().out
    assert run(["ledger", "unit", older, "spent", "row"]) == 2
    assert "cannot be changed to one per row" in capsys.readouterr().err
    assert run(["ledger", "unit", older, "nobody", "row"]) == 2
    assert "is not registered" in capsys.readouterr().err


CHOICE = Tuned(("k",), Fraction(1, 8), (Choice("k", 5, (5, 9)),))


def test_a_choice_that_was_charged_is_not_charged_with_the_release(ledger: Ledger) -> None:
    number = charge_choice(ledger, "people", {"k": [5, 9]}, Fraction(1, 8), "replace-one", "row")
    found = statement(ROWS, "ranking-dp", k=5, tuned=CHOICE)
    assert found.epsilon == Fraction(3, 8)

    def added(bought: Tuned) -> Fraction:
        before = ledger.standing("people").spent
        record_release(ledger, "people", found, "replace-one", "0" * 64, bought)
        return ledger.standing("people").spent - before

    # what was charged has not been drawn yet, so it has not bought this value
    assert added(CHOICE) == Fraction(3, 8)
    keep_choice(ledger, "people", number, {"k": 5})
    assert added(CHOICE) == Fraction(1, 4)
    for other in (
        dataclasses.replace(CHOICE, epsilon=Fraction(1, 9)),
        dataclasses.replace(CHOICE, choice=(Choice("k", 5, (5, 9, 10)),)),
        dataclasses.replace(CHOICE, choice=(Choice("k", 9, (5, 9)),)),
    ):
        ledger.register(Register("people", "replace-one", ledger.standing("people").spent + 1))
        assert added(other) == Fraction(3, 8)
    assert ledger.standing("people").unanswered == 0


def test_a_choice_is_refused_like_any_other_charge(ledger: Ledger) -> None:
    for dataset, unit, cost, error in (
        ("people", PER_PERSON, Fraction(1, 8), ClaimError),
        ("people", "row", Fraction(2), OverdrawnError),
    ):
        with pytest.raises(error):
            charge_choice(ledger, dataset, {"k": [5, 9]}, cost, "replace-one", unit)
    with pytest.raises(ClaimError, match="is charged under adjacency"):
        account_of(ledger, "people", "add-remove", "row")
    assert ledger.standing("people").spent == 0


def test_a_choice_charged_by_an_earlier_version_stays_charged(ledger: Ledger) -> None:
    """It wrote the budget of a row into the request, and charged that of the unit."""
    content = '{"choice":{"k":[5,9]},"epsilon":"1/16"}'
    number = ledger.charge(Charge("people", "", content, Fraction(1, 8))).charge
    keep_choice(ledger, "people", number, {"k": 5})
    found = statement(ROWS, "ranking-dp", k=5, tuned=CHOICE)
    before = ledger.standing("people").spent
    record_release(ledger, "people", found, "replace-one", "0" * 64, CHOICE)
    assert ledger.standing("people").spent - before == Fraction(1, 4)


WORDS = ["people.csv", "--schema", "people.toml", "--columns", "age", "--epsilon", "0.5"]
LEDGER = ["--ledger", "ledger.sqlite", "--dataset", "people"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(people(), tmp_path / "people.csv")
    PERSONS.save(tmp_path / "people.toml")
    return tmp_path


def spent() -> Fraction:
    ledger = open_ledger("ledger.sqlite")
    found = ledger.standing("people").spent
    ledger.close()
    return found


@pytest.mark.parametrize("command", [["protect", "--method", "laplace"], ["tune", "--private", "0.1"]])
def test_a_ledger_asks_for_the_name_of_the_data_set(
    here: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    words = [command[0], *WORDS, *command[1:], "--out", "out"]
    assert run([*words, *LEDGER[:2]]) == 2
    assert "--ledger needs --dataset: name the data set whose" in capsys.readouterr().err
    assert not Path("out").exists()
    assert not Path("ledger.sqlite").exists()
    # a name by itself is for the journal
    assert run([*words, *LEDGER[2:]]) == 0
    assert not Path("ledger.sqlite").exists()


def test_a_private_choice_is_charged_per_person_before_it_is_made(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tuning = ["tune", *WORDS, "--ks", "5,9", "--private", "0.1", *LEDGER]
    assert run([*tuning, "--out", "tuning"]) == 0
    assert spent() == Fraction(1, 10)
    assert run(["protect", "people.csv", "--config", "tuning/method.toml", *LEDGER, "--out", "one"]) == 0
    stated = json.loads(Path("one/statement.json").read_text("utf-8"))
    # 0.1 for the choice and 0.5 for the release; the choice was charged by tune
    assert (stated["epsilon"], stated["publishable"]) == (0.6, True)
    assert spent() == Fraction(6, 10)
    capsys.readouterr()
    assert run(["ledger", "show", "ledger.sqlite"]) == 0
    shown = capsys.readouterr().out
    assert f"unit: {PER_PERSON}" in shown
    assert re.search(r"chosen \d{4}-\d\d-\d\d privately: k = [59] of 5, 9 \(ε 0.1\)", shown)


def test_a_choice_without_a_ledger_is_charged_with_the_release(here: Path) -> None:
    assert run(["tune", *WORDS, "--ks", "5,9", "--private", "0.1", "--out", "tuning"]) == 0
    assert run(["protect", "people.csv", "--config", "tuning/method.toml", *LEDGER, "--out", "one"]) == 0
    assert spent() == Fraction(6, 10)


def test_a_choice_that_the_budget_does_not_allow_is_not_made(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from shoal.tuning import private

    def looked(*_: object) -> None:
        raise AssertionError("the choice was made")

    ledger = open_ledger("ledger.sqlite")
    ledger.register(Register("people", "replace-one", Fraction(1, 20), unit=PER_PERSON))
    ledger.close()
    monkeypatch.setattr(private, "choose_privately", looked)
    assert run(["tune", *WORDS, "--ks", "5,9", "--private", "0.1", *LEDGER, "--out", "tuning"]) == 2
    assert "epsilon 0.1 was requested, but only 0.05 remains" in capsys.readouterr().err
    assert not Path("tuning").exists()


def test_bad_records_are_found_before_the_choice_is_charged(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("people.csv").write_text(Path("people.csv").read_text("utf-8") + "999,p77\n", "utf-8")
    assert run(["tune", *WORDS, "--ks", "5,9", "--private", "0.1", *LEDGER]) == 2
    assert "lie outside" in capsys.readouterr().err
    assert not Path("ledger.sqlite").exists()


def test_a_comparison_cannot_be_charged(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tune", *WORDS, "--fast", *LEDGER]) == 2
    assert "--ledger applies to private choices: give --private too" in capsys.readouterr().err
    with pytest.raises(OptionError, match="ledger= needs dataset="):
        shoal.tune(people(), ROWS, "1", private="0.1", ledger=here / "ledger.sqlite")


def test_the_command_line_refuses_the_other_unit(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    laplace = ["protect", *WORDS, "--method", "laplace", *LEDGER]
    assert run([*laplace, "--out", "one"]) == 0
    ROWS.save(here / "rows.toml")
    capsys.readouterr()
    assert run([*laplace, "--schema", "rows.toml", "--out", "two"]) == 2
    assert "but this release claims ε per row: the two cannot be added" in capsys.readouterr().err
    assert not Path("two").exists()
    assert spent() == Fraction(1, 2)
