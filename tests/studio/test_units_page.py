"""Units of several rows on the page: their price, the bound on their rows, strata and attributes of a unit."""

from __future__ import annotations

from pathlib import Path

import pytest

import shoal
from shoal.mechanisms.registry import load_recipe
from shoal.release import noise_by_bound, prepare
from shoal.studio.guarantee import Recipe

from .studio_client import Tab, finished
from .test_rules_page import hospital_recipe as hospital_recipe
from .test_rules_page import stays as stays


@pytest.fixture
def patients(tab: Tab, stays: Path, hospital_recipe: Recipe) -> Tab:
    """The stays, whose patients have three each; nothing is declared about how many."""
    tab.upload(stays)
    tab.session.settle(hospital_recipe)
    tab.column("patient", "role", "unit")
    return tab


def unit(tab: Tab) -> shoal.Attribute:
    found = tab.session.recipe.schema.unit
    assert found is not None
    return found


def test_a_unit_needs_a_number_of_rows_or_a_bound(patients: Tab) -> None:
    assert "needs a number of rows" in patients.post("step/columns")
    assert not patients.session.look_ahead().ready
    page = patients.column("patient", "bound", "3")
    assert "needs a number of rows" not in page
    assert unit(patients).bound == 3
    assert patients.session.look_ahead().ready
    # its kind and type are declared too: what was guessed from the records is no declaration
    assert "from the data" in patients.column("patient", "source", shoal.columns.RECORDS)
    assert "needs a source" in patients.column("patient", "source", "")
    assert "1 to complete" in patients.post("step/columns")
    assert 'id="from-0"' in patients.post("step/columns")
    assert "all complete" in patients.column("patient", "source", "law")
    # another role has none of it
    patients.column("patient", "called", "patient")
    patients.column("patient", "role", "identifier")
    made = patients.session.recipe.schema["patient"]
    assert (made.bound, made.called, made.max_rows) == (None, None, None)


def test_the_price_is_that_of_one_unit_in_the_words_of_the_statement(patients: Tab) -> None:
    patients.guarantee("setting", "1", "epsilon")
    patients.post("guarantee", what="called", value="patient")
    page = patients.post("guarantee", what="bound", value="3")
    assert "<b>ε = 1 per patient</b>, so ε = 1/3 for each of its rows." in page
    assert patients.session.look_ahead().statement["unit"] == "patient"
    assert "<b>ε = 1</b> per patient" in patients.post("run/release")
    page = patients.guarantee("card", "approximate-dp")
    assert "<b>ε = 1, δ = " in page
    assert "for each of its rows" not in page
    # without a unit every row is one
    patients.column("patient", "role", "identifier")
    patients.guarantee("card", "dp")
    assert "<b>ε = 1 per row</b>" in patients.post("step/guarantee")
    assert "per row" not in patients.guarantee("card", "k-anonymity")


def test_bounds_are_compared_as_a_dry_run_does_and_one_click_takes_one(patients: Tab) -> None:
    page = patients.post("guarantee", what="bound", value="3")
    prepared = prepare(patients.session.sheet, **patients.session.recipe.request)
    known = noise_by_bound(prepared.method, prepared.described)
    assert patients.session.look_ahead().bounds == known
    for one in known:
        assert (
            f'<th scope="row">{one.rows}</th><td>± {100 * one.share_of_rows:.2g} percentage points</td>'
            in page
        )
    assert "at least" not in page[page.index("Bounds compared") : page.index("</table>")]
    page = patients.post("guarantee", what="max_rows", value="10")
    assert "<td>30%</td>" in page
    assert 'id="bound-to-20"' not in page
    patients.post("guarantee", what="bound", value="5")
    assert unit(patients).bound == 5
    patients.post("guarantee", what="bound", value="")
    assert unit(patients).bound is None


@pytest.mark.parametrize("bound", ["0", "-1", "many", "2.5"])
def test_a_bound_that_is_none_is_refused_with_the_reason(patients: Tab, bound: str) -> None:
    patients.post("guarantee", what="bound", value="3")
    page = patients.post("guarantee", what="bound", value=bound)
    assert (
        f"Column 'patient': bound must give a positive integer of rows, such as rows = 3, got {bound}" in page
    )
    assert unit(patients).bound == 3


def test_a_bound_needs_a_unit_and_an_adjacency_that_hides_the_number_of_rows(patients: Tab) -> None:
    patients.post("guarantee", what="bound", value="3")
    patients.guarantee("method", "tree-dp")
    assert [one.code for one in patients.session.look_ahead().problems] == ["bound-needs-add-remove"]
    assert "Use add-remove adjacency" in patients.post("step/guarantee")
    patients.guarantee("setting", "add-remove", "neighbours")
    assert patients.session.look_ahead().ready
    patients.column("patient", "role", "identifier")
    assert "no unit column" in patients.post("guarantee", what="bound", value="3")


def test_strata_are_chosen_among_listed_columns_with_public_membership_as_a_choice(patients: Tab) -> None:
    patients.column("patient", "role", "identifier")
    page = patients.post("guarantee", what="setting", name="neighbours", value="replace-one")
    assert 'data-column="age"' not in page
    assert "set-membership" not in page
    page = patients.post("guarantee", what="column", name="strata", column="marital", value=True)
    assert 'data-column="marital" checked' in page
    assert "Stratum of a record" in page
    patients.guarantee("setting", "public", "membership")
    ahead = patients.session.look_ahead()
    assert ahead.ready, ahead.problems
    assert ahead.statement["settings"]["strata"] == ["marital"]
    assert ahead.statement["settings"]["membership"] == "public"
    # the same check as everywhere: without strata there is no membership
    patients.post("guarantee", what="column", name="strata", column="marital", value=False)
    assert [one.code for one in patients.session.look_ahead().problems] == [
        "membership-needs-strata-under-replace-one"
    ]
    page = patients.guarantee("setting", "", "membership")
    assert "set-membership" not in page
    assert patients.session.look_ahead().ready
    assert "no column" in patients.post(
        "guarantee", what="column", name="strata", column="weather", value=True
    )


def test_attributes_of_a_unit_are_chosen_where_the_method_keeps_units_together(patients: Tab) -> None:
    patients.post("guarantee", what="bound", value="")
    page = patients.guarantee("card", "k-anonymity")
    assert "Attributes of the unit" in page
    patients.post("guarantee", what="column", name="unit_columns", column="marital", value=True)
    page = patients.post("guarantee", what="column", name="unit_columns", column="age", value=True)
    assert patients.session.recipe.asked["unit_columns"] == ["marital", "age"]
    # ages differ within patients: the library says so, with the column and without a value
    assert not patients.session.look_ahead().ready
    patients.guarantee("card", "dp")
    assert "Attributes of the unit" not in patients.guarantee("method", "laplace")


def test_a_release_of_bounded_units_is_that_of_the_page(patients: Tab) -> None:
    patients.post("guarantee", what="called", value="patient")
    patients.post("guarantee", what="bound", value="2")
    run = finished(patients.session)
    assert run.facts["statement"]["unit"] == "patient"
    bundled = load_recipe(run.bundle / "method.toml")["schema"].unit
    assert (bundled.bound, bundled.called) == (2, "patient")
    patients.post("step/judge")
    patients.post("guarantee", what="bound", value="1")
    recorded = patients.session.look_ahead().statement["recorded"]
    assert {"code": "settings-changed", "facts": {"settings": ["bound"]}} in recorded
