"""The accountant: no draw without a reservation, none twice, and shares never add up to more than the whole."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.noise import source
from shoal.privacy import Accountant, Adjacency, Currency, OverspendError

AMOUNTS = st.fractions(min_value=Fraction(1, 50), max_value=2, max_denominator=50)


def account(total: Fraction = Fraction(1), **reserved: Fraction) -> Accountant:
    return Accountant.of(reserved or {"counts": total}, total, source(1))


def test_a_plan_cannot_reserve_more_than_the_budget() -> None:
    with pytest.raises(OverspendError):
        account(Fraction(1), counts=Fraction(2, 3), sums=Fraction(1, 2))
    with pytest.raises(OverspendError):
        Accountant.of({"counts": Fraction(1)}, None, source(1))


@given(st.lists(st.tuples(st.sampled_from(["counts", "sums"]), AMOUNTS, st.integers(1, 3)), max_size=12))
def test_no_sequence_of_spends_exceeds_what_is_reserved(wishes: list[tuple[str, Fraction, int]]) -> None:
    reserved = {"counts": Fraction(2, 3), "sums": Fraction(1, 3)}
    book = account(Fraction(1), **reserved)
    granted = dict.fromkeys(reserved, Fraction(0))
    for purpose, amount, touched in wishes:
        fits = granted[purpose] + amount * touched <= reserved[purpose]
        if fits:
            assert book.spend(purpose, amount, touched=touched).amount == amount
            granted[purpose] += amount * touched
        else:
            with pytest.raises(OverspendError):
                book.spend(purpose, amount, touched=touched)
    assert {purpose: book.spent(purpose) for purpose in reserved} == granted
    assert book.spent() <= 1
    assert book.unspent() == {
        purpose: left for purpose in reserved if (left := reserved[purpose] - granted[purpose])
    }


def test_a_refused_spend_leaves_the_source_where_it_was() -> None:
    # what is drawn after a refusal is what would have been drawn without it: nothing was drawn for the refused one
    plain, refused = account(), account()
    with pytest.raises(OverspendError):
        refused.spend("counts", Fraction(2))
    drawn = [
        shoal.noise.discrete_laplace(9, 50, book.spend("counts", Fraction(1)).take()[1]).tolist()
        for book in (plain, refused)
    ]
    assert drawn[0] == drawn[1]


def test_a_spend_is_drawn_once() -> None:
    spend = account().spend("counts", Fraction(1, 2))
    assert spend.take()[0] == Fraction(1, 2)
    with pytest.raises(OverspendError):
        spend.take()


@pytest.mark.parametrize("amount", [Fraction(0), Fraction(-1, 2)])
def test_an_amount_that_costs_nothing_is_no_spend(amount: Fraction) -> None:
    with pytest.raises(OverspendError):
        account().spend("counts", amount)


def test_nothing_is_spent_without_a_reservation() -> None:
    with pytest.raises(OverspendError, match="nothing is reserved for 'sums'"):
        account().spend("sums", Fraction(1, 10))


@given(st.lists(AMOUNTS, min_size=1, max_size=5))
def test_a_division_never_makes_more(parts: list[Fraction]) -> None:
    book, wanted = account(), {f"part {number}": part for number, part in enumerate(parts)}
    if sum(parts) <= 1:
        book.divide("counts", wanted)
        assert book.reserved == wanted
    else:
        with pytest.raises(OverspendError):
            book.divide("counts", wanted)
        assert book.reserved == {"counts": Fraction(1)}


def test_what_was_spent_in_part_is_not_divided() -> None:
    book = account()
    book.spend("counts", Fraction(1, 4))
    with pytest.raises(OverspendError):
        book.divide("counts", {"rest": Fraction(3, 4)})


def test_a_division_does_not_overwrite_another_reservation() -> None:
    book = account(Fraction(1), counts=Fraction(1, 2), sums=Fraction(1, 2))
    with pytest.raises(OverspendError):
        book.divide("counts", {"sums": Fraction(1, 2)})


def test_disjoint_parts_are_charged_once() -> None:
    book = account()
    parts = book.parallel("batches of records")
    for _ in range(5):
        part = parts.part()
        assert part.reserved == {"counts": Fraction(1)}
        part.spend("counts", Fraction(1)).take()
        with pytest.raises(OverspendError):
            part.spend("counts", Fraction(1, 100))
    assert book.spent() == 1
    with pytest.raises(OverspendError):
        book.parallel("batches again", {"counts": Fraction(1)})


def test_a_part_elsewhere_brings_its_own_source() -> None:
    parts = account().parallel("batches of records").elsewhere()
    with pytest.raises(OverspendError, match="has no source"):
        parts.part()
    assert parts.part(source(2)).spend("counts", Fraction(1)).take()[0] == 1


def test_all_that_one_record_can_change_is_charged() -> None:
    book = account()
    spend = book.spend("counts", Fraction(1, 4), "sums of clusters", over="clusters", touched=4)
    assert spend.take()[0] == Fraction(1, 4)
    assert book.spent("counts") == 1


def test_what_costs_nothing_is_named() -> None:
    book = account()
    book.free("order of the released rows")
    assert book.uses == ["order of the released rows"]
    assert book.spent() == 0


def test_currency_adjacency_and_unit_are_values_of_an_account_and_its_parts() -> None:
    book = Accountant.of(
        {"counts": Fraction(1, 50)},
        Fraction(1, 50),
        source(1),
        currency=Currency.RHO,
        adjacency=Adjacency.ADD_REMOVE,
        unit="household",
    )
    part = book.parallel("batches of records").part()
    for one in (book, part):
        assert (one.currency, one.adjacency, one.unit) == (Currency.RHO, Adjacency.ADD_REMOVE, "household")


def test_no_text_of_an_account_shows_its_source() -> None:
    book = account()
    assert "Source" not in repr(book)
    assert "Source" not in repr(book.parallel("batches of records"))


@pytest.mark.parametrize(("currency", "factor"), [(Currency.EPSILON, 2), (Currency.RHO, 4)])
def test_parts_of_private_size_cost_what_a_replaced_record_can_do(currency: Currency, factor: int) -> None:
    """Inside its part it is one less and one more; in two parts one less in one and one more in the other."""
    budget, part = Fraction(1), Fraction(1, factor)
    account = Accountant.of({"strata": budget}, budget, source(1), currency=currency)
    parts = account.parallel("strata", {"strata": part}, Adjacency.ADD_REMOVE)
    assert account.unspent() == {}
    assert (parts.adjacency, parts.part().adjacency) == (Adjacency.ADD_REMOVE, Adjacency.ADD_REMOVE)
    assert parts.part().reserved == {"strata": part}
    again = Accountant.of({"strata": budget}, budget, source(1), currency=currency)
    with pytest.raises(OverspendError):
        again.parallel("strata", {"strata": part * 2}, Adjacency.ADD_REMOVE)


def test_parts_of_a_table_of_private_size_cannot_have_public_ones() -> None:
    account = Accountant.of({"strata": Fraction(1)}, Fraction(1), source(1), adjacency=Adjacency.ADD_REMOVE)
    with pytest.raises(OverspendError, match="private sizes"):
        account.parallel("strata", inside=Adjacency.REPLACE_ONE)
