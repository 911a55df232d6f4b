"""What a ledger grants, refuses and remembers; every test runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from shoal.errors import InputError, OptionError, ShoalError
from shoal.ledger import (
    Charge,
    Deposit,
    KeyReusedError,
    Ledger,
    LedgerError,
    OverdrawnError,
    Register,
    open_ledger,
    verify,
)
from shoal.ledger.account import UnpricedError

Spend = Callable[..., Charge]


def test_charges_add_up_to_the_ceiling_and_no_further(ledger: Ledger, spend: Spend) -> None:
    assert ledger.charge(spend("0.3")).added == Fraction(3, 10)
    ledger.charge(spend("0.7", analyst="ben"))
    with pytest.raises(OverdrawnError, match="epsilon 1e-09 was requested, but only 0 remains"):
        ledger.charge(spend("1e-9"))
    standing = ledger.standing("people")
    assert standing.spent == 1
    assert standing.analysts == {"ada": Fraction(3, 10), "ben": Fraction(7, 10)}
    assert standing.remaining() == standing.remaining("ada") == 0


def test_a_tenth_ten_times_is_exactly_one(ledger: Ledger, spend: Spend) -> None:
    for _ in range(10):
        ledger.charge(spend("0.1"))
    assert ledger.standing("people").spent == 1
    with pytest.raises(OverdrawnError):
        ledger.charge(spend("1/1000000000"))


def test_a_refusal_spends_nothing_and_writes_nothing(ledger: Ledger, spend: Spend) -> None:
    ledger.charge(spend("0.75"))
    before = ledger.standing("people")
    with pytest.raises(OverdrawnError) as refused:
        ledger.charge(spend("0.5", key="k"))
    assert (refused.value.of, refused.value.what) == ("the data set", "epsilon")
    assert (refused.value.requested, refused.value.remaining) == (Fraction(1, 2), Fraction(1, 4))
    assert ledger.standing("people") == before
    # the key was not used up by the refusal
    assert not ledger.charge(spend("0.25", key="k")).repeated


def test_free_charges_are_granted_when_nothing_is_left(ledger: Ledger, spend: Spend) -> None:
    ledger.charge(spend("1"))
    assert ledger.charge(spend("0")).added == 0


def test_an_analyst_can_have_a_lower_ceiling(ledger: Ledger, spend: Spend) -> None:
    ledger.register(
        Register(
            "people",
            "replace-one",
            Fraction(1),
            analysts={"ada": Fraction(1, 2)},
            every_analyst=Fraction(1, 4),
        )
    )
    ledger.charge(spend("0.5"))
    with pytest.raises(OverdrawnError, match="of the analyst"):
        ledger.charge(spend("0.01"))
    ledger.charge(spend("0.25", analyst="ben"))
    with pytest.raises(OverdrawnError, match="of the analyst"):
        ledger.charge(spend("0.01", analyst="ben"))
    standing = ledger.standing("people")
    assert standing.remaining() == Fraction(1, 4)
    assert standing.remaining("ada") == 0
    assert standing.remaining("cleo") == Fraction(1, 4)


def test_delta_has_a_ceiling_of_its_own(ledger: Ledger, spend: Spend) -> None:
    with pytest.raises(OverdrawnError, match="delta"):
        ledger.charge(spend("0.1", delta=Fraction(1, 10**6)))
    ledger.register(Register("people", "replace-one", Fraction(1), delta_ceiling=Fraction(1, 10**6)))
    ledger.charge(spend("0.1", delta=Fraction(1, 10**6)))
    with pytest.raises(OverdrawnError, match="delta"):
        ledger.charge(spend("0.1", delta=Fraction(1, 10**9)))
    assert ledger.standing("people").delta_spent == Fraction(1, 10**6)


def test_disjoint_individuals_cost_the_maximum(ledger: Ledger, spend: Spend) -> None:
    """The thesis, Proposition 4: the total is that of the individual who was asked about most."""
    assert ledger.charge(spend("0.4", person=("id", "1"))).added == Fraction(2, 5)
    assert ledger.charge(spend("0.4", person=("id", "2"))).added == 0
    assert ledger.charge(spend("0.3", person=("id", "2"))).added == Fraction(3, 10)
    assert ledger.charge(spend("0.3", person=("id", "1"), analyst="ben")).added == 0
    # another key column may name the same people by other values
    assert ledger.charge(spend("0.1", person=("phone", "1"))).added == Fraction(1, 10)
    assert ledger.charge(spend("0.2")).added == Fraction(1, 5)
    assert ledger.standing("people").spent == 1
    with pytest.raises(OverdrawnError):
        ledger.charge(spend("0.01", person=("id", "1")))
    ledger.charge(spend("0.7", person=("id", "3")))


def test_a_family_costs_its_joint_price(ledger: Ledger, spend: Spend) -> None:
    def joint(contents: object) -> Fraction:
        # as for counts of disjoint groups: any number of them costs as much as one
        return Fraction(1, 2)

    assert ledger.charge(spend("0.5", family="p", joint=joint)).added == Fraction(1, 2)
    for _ in range(5):
        assert ledger.charge(spend("0.5", family="p", joint=joint)).added == 0
    # for an analyst who did not ask the earlier ones, it is all new
    ledger.charge(spend("0.5", analyst="ben", family="p", joint=joint))
    standing = ledger.standing("people")
    assert standing.spent == Fraction(1, 2)
    assert standing.analysts == {"ada": Fraction(1, 2), "ben": Fraction(1, 2)}


def test_a_price_that_cannot_be_found_refuses_its_own_charge_only(ledger: Ledger, spend: Spend) -> None:
    def broken(contents: object) -> Fraction:
        raise TypeError("no price")

    with pytest.raises(TypeError, match="no price"):
        ledger.charge(spend("0.1", family="p", joint=broken))
    results = ledger.commit([spend("0.1"), spend("0.1", family="p", joint=broken), spend("0.2")])
    assert isinstance(results[1], UnpricedError)
    assert ledger.standing("people").spent == Fraction(3, 10)


def test_a_family_never_costs_more_than_its_members(ledger: Ledger, spend: Spend) -> None:
    assert ledger.charge(spend("0.25", family="p", joint=lambda contents: Fraction(7))).added == Fraction(
        1, 4
    )


def test_a_family_that_is_full_starts_anew(
    ledger: Ledger, spend: Spend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.ledger.account.FAMILY_SIZE", 3)
    seen: list[int] = []

    def joint(contents: object) -> Fraction:
        seen.append(len(contents))  # type: ignore[arg-type]
        return Fraction(1, 10)

    added = [ledger.charge(spend("0.1", family="p", joint=joint)).added for _ in range(7)]
    assert [float(a) for a in added] == [0.1, 0, 0, 0.1, 0, 0, 0.1]
    assert max(seen) == 3


def test_the_same_key_pays_once_and_gets_the_same_answer(ledger: Ledger, spend: Spend) -> None:
    first = ledger.charge(spend("0.5", key="k"))
    assert (first.repeated, first.answer) == (False, None)
    again = ledger.charge(spend("0.5", key="k"))
    assert (again.repeated, again.answer, again.charge) == (True, None, first.charge)
    ledger.deposit(Deposit("people", first.charge, "ada", '{"value":1}'))
    once_more = ledger.charge(spend("0.5", key="k"))
    assert (once_more.repeated, once_more.answer) == (True, '{"value":1}')
    assert ledger.standing("people").spent == Fraction(1, 2)
    # even when nothing is left
    ledger.charge(spend("0.5"))
    assert ledger.charge(spend("0.5", key="k")).answer == '{"value":1}'


def test_a_key_stands_for_one_request_of_one_analyst(ledger: Ledger, spend: Spend) -> None:
    ledger.charge(spend("0.1", key="k"))
    with pytest.raises(KeyReusedError):
        ledger.charge(spend("0.1", key="k", ask="sum"))
    assert not ledger.charge(spend("0.1", key="k", ask="sum", analyst="ben")).repeated
    assert ledger.standing("people").spent == Fraction(1, 5)


def test_the_first_stored_answer_is_the_answer(ledger: Ledger, spend: Spend) -> None:
    charge = ledger.charge(spend("0.5")).charge
    first = ledger.deposit(Deposit("people", charge, "ada", '{"value":1}'))
    second = ledger.deposit(Deposit("people", charge, "ada", '{"value":2}'))
    assert first.answer == second.answer == '{"value":1}'
    assert first.head == second.head


def test_no_answer_without_a_charge(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="without its charge"):
        ledger.deposit(Deposit("people", 99, "ada", "{}"))
    # entry 1 is there, but it holds the terms
    with pytest.raises(LedgerError, match="without its charge"):
        ledger.deposit(Deposit("people", 1, "ada", "{}"))


def test_a_group_is_decided_in_order_and_written_together(ledger: Ledger, spend: Spend) -> None:
    results = ledger.commit(
        [
            spend("0.6", key="a"),
            spend("0.6", key="b"),
            spend("0.6", key="a"),
            spend("0.4", key="a", ask="sum"),
            spend("0.4", key="c"),
            Deposit("people", 2, "ada", "{}"),
        ]
    )
    assert [getattr(result, "repeated", type(result)) for result in results[:5]] == [
        False,
        OverdrawnError,
        True,
        KeyReusedError,
        False,
    ]
    assert ledger.standing("people").spent == 1
    assert ledger.standing("people").unanswered == 1


def test_terms_can_change_but_not_the_neighbours(ledger: Ledger, spend: Spend) -> None:
    ledger.charge(spend("1"))
    ledger.register(Register("people", "replace-one", Fraction(2)))
    ledger.charge(spend("1"))
    with pytest.raises(OptionError, match="'replace-one', which cannot be changed to 'add-remove'"):
        ledger.register(Register("people", "add-remove", Fraction(2)))
    # a ceiling below what is spent refuses everything, and gives nothing back
    ledger.register(Register("people", "replace-one", Fraction(1)))
    with pytest.raises(OverdrawnError, match=r"but only 0 remains \(short by 0\.1\)"):
        ledger.charge(spend("0.1"))
    assert ledger.standing("people").spent == 2
    assert len(verify(ledger)) == 1


def test_the_same_terms_again_write_nothing(ledger: Ledger) -> None:
    before = ledger.standing("people").number
    ledger.register(Register("people", "replace-one", Fraction(1)))
    assert ledger.standing("people").number == before


def test_data_sets_have_budgets_of_their_own(ledger: Ledger, spend: Spend) -> None:
    ledger.register(Register("others", "add-remove", Fraction(1, 2)))
    results = ledger.commit([spend("1"), Charge("others", "ada", "{}", Fraction(1, 2))])
    assert [result.added for result in results] == [1, Fraction(1, 2)]  # type: ignore[union-attr]
    assert ledger.datasets() == ["others", "people"]


def test_without_a_ceiling_the_ledger_only_counts(ledger: Ledger) -> None:
    ledger.register(Register("free", "replace-one", None))
    ledger.charge(Charge("free", "ada", "{}", Fraction(1000)))
    standing = ledger.standing("free")
    assert (standing.spent, standing.remaining()) == (1000, None)


def test_an_unknown_data_set_and_a_negative_charge_are_refused(ledger: Ledger, spend: Spend) -> None:
    with pytest.raises(LedgerError, match="'nobody' is not registered"):
        ledger.charge(Charge("nobody", "ada", "{}", Fraction(1)))
    with pytest.raises(ShoalError, match="negative"):
        ledger.charge(spend("-0.5"))
    with pytest.raises(ShoalError, match="negative"):
        ledger.charge(spend("0", delta=Fraction(-1)))


def test_everything_is_there_after_a_restart(ledger: Ledger, address: str, spend: Spend) -> None:
    charge = ledger.charge(spend("0.4", person=("id", "ü\u0000")))
    ledger.charge(spend("0.2", family="p", joint=lambda contents: Fraction(1, 5)))
    ledger.deposit(Deposit("people", charge.charge, "ada", '{"value":1}'))
    ledger.charge(spend("0.1", key="k"))
    before = ledger.standing("people")
    ledger.close()
    reopened = open_ledger(address)
    try:
        assert reopened.standing("people") == before
        assert before.unanswered == 2
        assert reopened.charge(spend("0.4", person=("id", "other"))).added == 0
        assert reopened.charge(spend("0.1", key="k")).repeated
        assert (
            reopened.charge(
                spend("0.2", family="p", joint=lambda contents: Fraction(len(contents), 10))
            ).added
            == 0
        )
    finally:
        reopened.close()


def test_two_open_ledgers_see_each_other(ledger: Ledger, address: str, spend: Spend) -> None:
    other = open_ledger(address)
    try:
        ledger.charge(spend("0.6"))
        with pytest.raises(OverdrawnError):
            other.charge(spend("0.6"))
        other.charge(spend("0.4"))
        with pytest.raises(OverdrawnError, match="0 remains"):
            ledger.charge(spend("0.1"))
    finally:
        other.close()


def test_an_analyst_lists_own_charges_and_answers(ledger: Ledger, spend: Spend) -> None:
    numbers = [ledger.charge(spend("0.1", ask=f"q{i}")).charge for i in range(4)]
    ledger.charge(spend("0.1", analyst="ben"))
    ledger.deposit(Deposit("people", numbers[1], "ada", '{"value":1}'))
    listed = ledger.answers("people", "ada")
    assert [charge.number for charge, _ in listed] == numbers
    assert [answer.content if answer else None for _, answer in listed] == [None, '{"value":1}', None, None]
    page = ledger.answers("people", "ada", after=numbers[0], limit=2)
    assert [charge.number for charge, _ in page] == numbers[1:3]


@pytest.mark.parametrize("bad", [":memory:", "sqlite://", "mysql://x/y", "://"])
def test_addresses_that_keep_nothing_are_refused(bad: str) -> None:
    with pytest.raises(InputError, match="ledger"):
        open_ledger(bad)


def test_a_database_that_does_not_answer_is_one_sentence() -> None:
    with pytest.raises(InputError, match="the ledger cannot be opened"):
        open_ledger("postgresql://nobody@/none?host=/nonexistent")
