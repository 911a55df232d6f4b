"""Budgets in ε and in (ρ, δ): how charges convert between them, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.cli import run
from shoal.errors import ClaimError, OptionError
from shoal.ledger import Charge, Ledger, OverdrawnError, Register, open_ledger, verify
from shoal.ledger.account import rounded_up
from shoal.ledger.releases import charge_choice, opened_budget, record_release
from shoal.noise import epsilon_from, pure_rho, rho_from
from tests.support import gaussian_method

Spend = Callable[..., Charge]
DELTA = Fraction(1, 10**6)
AGE = {"name": "age", "type": "integer", "source": "questionnaire", "lo": 0, "hi": 120}
ROWS = shoal.Schema.from_dict({"attribute": [AGE]})


def rho_charge(rho: str, **more: Any) -> Charge:
    return Charge("rich", "", '{"kind":"table"}', Fraction(0), rho=Fraction(rho), **more)


def pure_charge(epsilon: str, **more: Any) -> Charge:
    return Charge("rich", "ada", '{"kind":"count"}', Fraction(epsilon), **more)


def opened(ledger: Ledger, ceiling: str | None = "1/10") -> Ledger:
    most = None if ceiling is None else Fraction(ceiling)
    ledger.register(Register("rich", "replace-one", most, DELTA, currency="rho"))
    return ledger


def statement(**options: Any) -> shoal.PrivacyStatement:
    table = pa.table({"age": [20 + i for i in range(40)]})
    with gaussian_method.registered():
        return shoal.protect(table, ROWS, gaussian_method.NAME, "0.25", **options).statement


def test_pure_charges_count_half_their_square_and_all_is_converted_once(ledger: Ledger) -> None:
    opened(ledger)
    assert ledger.charge(pure_charge("1/5")).added == Fraction(1, 50)
    assert ledger.charge(rho_charge("3/100")).added == Fraction(3, 100)
    found = ledger.standing("rich")
    assert (found.spent, found.delta_spent, found.remaining()) == (Fraction(1, 20), 0, Fraction(1, 20))
    assert found.epsilon == epsilon_from(Fraction(1, 20), DELTA)
    # parts that were converted one by one would have cost more, and twice the δ
    apart = Fraction(1, 5) + epsilon_from(Fraction(3, 100), DELTA)
    assert found.epsilon < apart + 1
    assert found.analysts == {"ada": Fraction(1, 50), "": Fraction(3, 100)}
    (checked,) = [f for f in verify(ledger) if f.standing.dataset == "rich"]
    assert checked.standing.spent == Fraction(1, 20)


def test_many_small_pure_releases_cost_less_in_rho() -> None:
    """A hundred releases of ε = 0.1: 10 by addition."""
    rho = 100 * pure_rho(Fraction(1, 10))
    assert epsilon_from(rho, DELTA) < 6


def test_a_pure_budget_refuses_charges_in_rho(ledger: Ledger) -> None:
    for budget in ("people", "free"):
        ledger.register(Register(budget, "replace-one", Fraction(1) if budget == "people" else None))
        with pytest.raises(ClaimError, match=f"budget of data set '{budget}' is in ε.*shoal ledger open"):
            ledger.charge(Charge(budget, "", "{}", Fraction(0), rho=Fraction(1, 100)))
        assert ledger.standing(budget).spent == 0
    with pytest.raises(ClaimError, match="is in ε"):
        ledger.quote(Charge("people", "", "{}", Fraction(0), rho=Fraction(1, 100)))


def test_a_budget_in_rho_refuses_a_delta_of_its_own(ledger: Ledger) -> None:
    opened(ledger)
    with pytest.raises(ClaimError, match="has its own δ"):
        ledger.charge(pure_charge("1/10", delta=DELTA))


def test_a_ceiling_in_rho_holds(ledger: Ledger) -> None:
    opened(ledger)
    ledger.charge(rho_charge("9/100"))
    with pytest.raises(
        OverdrawnError, match=r"rho 0.02 was requested, but only 0.01 remains \(short by 0.01\)"
    ):
        ledger.charge(pure_charge("1/5"))
    with pytest.raises(OverdrawnError, match=r"rho 0.011 was requested"):
        ledger.quote(rho_charge("11/1000"))
    assert ledger.charge(rho_charge("1/100")).added == Fraction(1, 100)
    assert ledger.standing("rich").remaining() == 0


def test_persons_and_families_count_in_rho_as_they_do_in_epsilon(ledger: Ledger) -> None:
    opened(ledger, None)
    for who in ("a", "b", "a"):
        ledger.charge(pure_charge("1/5", person=("id", who)))
    assert ledger.standing("rich").spent == 2 * pure_rho(Fraction(1, 5))

    def joint(contents: Any) -> Fraction:
        return Fraction(3, 10) if len(contents) > 1 else Fraction(1, 5)

    before = ledger.standing("rich").spent
    for ask in ("one", "two"):
        ledger.charge(Charge("rich", "ada", f'{{"kind":"{ask}"}}', Fraction(1, 5), family="f", joint=joint))
    # two members at the price of the joint query: 0.3, not 0.4, as one pure mechanism
    assert ledger.standing("rich").spent - before == min(
        pure_rho(Fraction(3, 10)), 2 * pure_rho(Fraction(1, 5))
    )
    verify(ledger)


def test_amounts_are_rounded_up_after_the_square(ledger: Ledger) -> None:
    opened(ledger)
    third = Fraction(1, 3)
    assert (
        ledger.charge(pure_charge("1/3")).added == rounded_up(pure_rho(rounded_up(third))) >= pure_rho(third)
    )


def test_the_currency_of_a_budget_cannot_change(ledger: Ledger) -> None:
    opened(ledger)
    with pytest.raises(OptionError, match="in rho, which cannot be changed to epsilon"):
        ledger.register(Register("rich", "replace-one", Fraction(1)))
    with pytest.raises(OptionError, match="in epsilon, which cannot be changed to rho"):
        ledger.register(Register("people", "replace-one", Fraction(1), DELTA, currency="rho"))
    # ceilings and the δ of the conversion may
    ledger.register(Register("rich", "replace-one", Fraction(2), 2 * DELTA, currency="rho"))
    assert ledger.standing("rich").terms.ceiling == 2


def test_a_budget_in_rho_needs_a_delta() -> None:
    for delta in (Fraction(0), Fraction(1)):
        with pytest.raises(OptionError, match="needs a delta above 0 and below 1"):
            Register("rich", "replace-one", Fraction(1), delta, currency="rho")


def test_a_release_is_charged_in_rho(ledger: Ledger) -> None:
    found = statement(delta="1e-6")
    opened(ledger)
    recorded = record_release(ledger, "rich", found, "replace-one", "0" * 64)
    assert recorded.added == rounded_up(found.rho or Fraction(0))
    assert recorded.cost.startswith("ρ = 0.00")
    (entry,) = [entry for entry in ledger.entries("rich") if entry.kind == "release"]
    content = json.loads(entry.content)
    assert (content["model"], content["delta"], content["rho"]) == (
        "approximate-dp",
        "1/1000000",
        str(found.rho),
    )
    # a pure one in the same budget, and the other way round
    assert record_release(ledger, "rich", statement(), "replace-one", "1" * 64).added == Fraction(1, 32)
    with pytest.raises(ClaimError, match="is in ε"):
        record_release(ledger, "people", found, "replace-one", "0" * 64)
    (warning,) = [w for w in record_release(ledger, "rich", found, "replace-one", "0" * 64).warnings]
    assert warning.code == "released-before"
    assert "ε = 0.25, δ = 1e-06" in str(warning)


def test_the_first_release_with_a_delta_opens_a_budget_in_rho(ledger: Ledger) -> None:
    record_release(ledger, "new", statement(delta="1e-6"), "replace-one", "0" * 64)
    terms = ledger.standing("new").terms
    assert (terms.currency, terms.ceiling, terms.delta_ceiling, terms.unit) == ("rho", None, DELTA, "row")
    record_release(ledger, "pure", statement(), "replace-one", "0" * 64)
    assert ledger.standing("pure").terms.currency == "epsilon"


def test_a_private_choice_counts_in_rho(ledger: Ledger) -> None:
    opened(ledger)
    charge_choice(ledger, "rich", {"k": [5, 9]}, Fraction(1, 5), "replace-one", "row")
    assert ledger.standing("rich").spent == Fraction(1, 50)


def test_terms_in_epsilon_are_written_as_before(ledger: Ledger) -> None:
    assert "currency" not in ledger.standing("people").terms.to_dict()
    opened(ledger)
    plain = ledger.standing("rich").to_dict()
    assert plain["terms"]["currency"] == "rho"
    assert plain["epsilon"] == "0/1"
    assert plain["decimal"]["epsilon"] == "0"


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho", "currency", "ceiling"),
    [
        ("2", "0", None, "epsilon", Fraction(2)),
        ("2", "1e-6", None, "rho", rho_from(Fraction(2), DELTA)),
        (None, "1e-6", "0.5", "rho", Fraction(1, 2)),
    ],
)
def test_a_budget_is_opened_in_either(
    epsilon: str | None, delta: str, rho: str | None, currency: str, ceiling: Fraction
) -> None:
    terms = opened_budget("d", "add-remove", epsilon, delta, rho, "who", 3)
    assert (terms.currency, terms.ceiling, terms.adjacency) == (currency, ceiling, "add-remove")
    assert terms.unit == "value of 'who' (at most 3 rows)"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("d", "replace-one", None, "0", None), "give exactly one of the two"),
        (("d", "replace-one", "1", "1e-6", "0.5"), "give exactly one of the two"),
        (("d", "replace-one", None, "0", "0.5"), "needs a delta"),
        (("d", "replace-one", None, "1e-6", "-1"), "rho must be above 0"),
        (("d", "both", "1", "0", None), "neighbours 'both'"),
        (("d", "replace-one", "1", "0", None, None, 3), "name that column"),
    ],
)
def test_a_budget_that_is_none_is_refused(arguments: Any, hint: str) -> None:
    with pytest.raises(OptionError, match=hint):
        opened_budget(*arguments)


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{20 + i}\n" for i in range(40))
    (tmp_path / "people.csv").write_text(f"age\n{rows}")
    assert run(["ledger", "open", "l.sqlite", "people", "--epsilon", "1", "--delta", "1e-6"]) == 0
    assert (
        "in ρ, at most 0.0243559703595, converted at δ = 1e-06; replace-one, per row"
        in capsys.readouterr().out
    )
    common = ["people.csv", "--domain", "age=0:120", "--type", "age=integer", "--method"]
    charged = ["--epsilon", "0.25", "--ledger", "l.sqlite", "--dataset", "people"]
    with gaussian_method.registered():
        words = ["protect", *common, "values", *charged, "--delta", "1e-6", "--out", "a"]
        assert run(words) == 0, capsys.readouterr().err
        assert "except with probability δ = 1e-06" in capsys.readouterr().out
        assert run([*words[:-1], "b", "--delta", "0.001"]) == 0
    assert run(["protect", *common, "laplace", *charged, "--epsilon", "0.1", "--out", "c"]) == 0
    capsys.readouterr()
    assert run(["ledger", "show", "l.sqlite"]) == 0
    said = capsys.readouterr().out
    assert "people (replace-one): ρ 0.0" in said
    assert "together ε 0." in said
    assert "at δ 1e-06" in said
    assert "with values (approximate-dp, ρ 0.00" in said
    assert run(["protect", *common, "laplace", *charged, "--delta", "1e-6", "--out", "d"]) == 2
    assert "provides pure differential privacy, without delta" in capsys.readouterr().err
    assert run(["ledger", "open", "l.sqlite", "other", "--rho", "0.5"]) == 2
    assert "needs a delta" in capsys.readouterr().err
    opened_again = open_ledger("l.sqlite")
    assert opened_again.standing("people").epsilon < 1
    opened_again.close()
