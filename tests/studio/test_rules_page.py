"""Rules between columns on the page: adding, changing, contradictions, and their effect in a run."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.columns import Rule
from shoal.errors import OptionError
from shoal.io import write
from shoal.mechanisms.registry import load_recipe
from shoal.release import prepare
from shoal.studio.edit import RULE_KINDS, rule_fields, rule_of
from shoal.studio.guarantee import Recipe
from shoal.studio.preview import capital
from shoal.studio.session import StudioSessions

from .studio_client import Tab, finished

LAW = {"source": "law"}
STAY = {"kind": "order", "low": "admission", "sign": "<=", "high": "discharge", **LAW}
CHILDREN = {"kind": "implication", "if": "age < 16", "then": 'marital = "never"', **LAW}


@pytest.fixture(scope="session")
def stays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stays in a hospital; some discharges are before admission, and some children are married."""
    random = np.random.default_rng(5)
    days = np.datetime64("2024-01-01")
    first = days + random.integers(0, 300, 300)
    last = first + random.integers(-2, 30, 300)
    path = tmp_path_factory.mktemp("tables") / "stays.csv"
    made = {
        "patient": np.repeat(np.arange(100), 3),
        "admission": first.astype(str),
        "discharge": last.astype(str),
        "age": random.integers(0, 90, 300),
        "marital": random.choice(["never", "married"], 300),
    }
    write(pa.table(made), path)
    return path


@pytest.fixture(scope="session")
def hospital_recipe(stays: Path, tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """Everything about the stays is settled, and there are no rules."""
    sessions = StudioSessions(place=tmp_path_factory.mktemp("place"))
    tab = Tab(sessions)
    tab.upload(stays)
    for name in ("admission", "discharge"):
        tab.column(name, "range", ["2023-12-01", "2024-12-31"])
    tab.column("age", "suggestion")
    tab.column("marital", "values", "never\nmarried")
    tab.column("patient", "role", "identifier")
    tab.vouch("questionnaire")
    tab.guarantee("card", "dp")
    tab.guarantee("setting", "10", "epsilon")
    found = tab.session.recipe
    sessions.close()
    return found


@pytest.fixture
def hospital(tab: Tab, stays: Path, hospital_recipe: Recipe) -> Tab:
    tab.upload(stays)
    tab.session.settle(hospital_recipe)
    return tab


def add(tab: Tab, told: dict[str, str], **more: str) -> str:
    return tab.post("rules", what="add", **told, **more)


def kept(tab: Tab) -> list[str]:
    return [rule.words for rule in tab.session.recipe.schema.rules]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (STAY, "admission <= discharge"),
        ({**STAY, "sign": "<", "least": "1", "most": "365"}, "admission + 1 < discharge <= admission + 365"),
        ({**STAY, "sign": "", "most": "30"}, "discharge - admission <= 30"),
        (CHILDREN, 'age < 16 -> marital = "never"'),
        (
            {"kind": "derived", "column": "hours per week", "expression": "a + b", **LAW},
            "`hours per week` = a + b",
        ),
        ({"kind": "missing-if", "column": "spouse", "if": "age < 16", **LAW}, "spouse missing if age < 16"),
        (
            {"kind": "combinations", "table": 'a;b\n\nx, y;"1;2"\nz;3\n', **LAW},
            "a, b take one of 2 allowed combinations",
        ),
    ],
)
def test_every_kind_of_rule_is_made_of_its_fields_and_back(told: dict[str, str], words: str) -> None:
    made = rule_of(told)
    assert (made.words, made.kind) == (words, told["kind"])
    assert rule_of(rule_fields(made)) == made
    assert rule_fields(made)["source"] == "law"


def test_the_form_offers_every_kind_that_the_library_has() -> None:
    known = ["a <= b", "a = 1 -> b = 2", "a missing if b = 1", "a = b + 1"]
    kinds = {Rule(one, "law").kind for one in known} | {Rule("", "law", ("a", "b"), (("1", "2"),)).kind}
    assert kinds == set(RULE_KINDS)
    for name, one in RULE_KINDS.items():
        if name != "combinations":
            assert Rule(one.example, "law").kind == name


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ({**STAY, "kind": "weather"}, "rule-kind-unknown"),
        ({**STAY, "high": ""}, "rule-field-empty"),
        ({**STAY, "source": ""}, "rule-needs-source"),
        ({**STAY, "source": "the director"}, "rule-needs-source"),
        ({**STAY, "sign": ""}, "rule-order-without-sign"),
        ({**STAY, "least": "soon"}, "rule-order-form"),
        ({**CHILDREN, "if": "age < 16 -> age < 17"}, "rule-expected"),
        ({"kind": "derived", "column": "age", "expression": "a -> b", **LAW}, "rule-expected"),
        ({"kind": "combinations", "table": "a, b", **LAW}, "rule-combinations"),
        ({"kind": "combinations", "table": "a, b\n1", **LAW}, "rule-combination-size"),
        ({"kind": "missing-if", "column": "a", "if": "b = 1 -> c = 2", **LAW}, "rule-expected"),
    ],
)
def test_a_rule_that_is_none_is_refused(told: dict[str, str], code: str) -> None:
    with pytest.raises(OptionError) as caught:
        rule_of(told)
    assert caught.value.code == code


def test_a_rule_is_added_changed_and_removed_with_its_source(hospital: Tab) -> None:
    assert "No rules yet." in hospital.post("step/columns")
    page = add(hospital, STAY)
    assert "Order of two columns. Source: law." in page
    page = hospital.post("rules", what="change", place="0")
    assert "Change rule 1" in page
    assert "<option selected>admission</option>" in page
    page = add(hospital, {**STAY, "most": "90", "place": "0"})
    assert kept(hospital) == ["admission <= discharge <= admission + 90"]
    assert "Add a rule" in page
    hospital.guarantee("undo", "")
    assert kept(hospital) == ["admission <= discharge"]
    hospital.post("rules", what="remove", place="0")
    assert kept(hospital) == []
    assert "There is no rule at place '0'" in hospital.post("rules", what="remove", place="0")


def test_each_kind_has_its_own_fields_and_help(hospital: Tab) -> None:
    for kind, about in RULE_KINDS.items():
        page = hospital.post("rules", what="kind", value=kind)
        assert about.about in page
        assert all(f'name="{name}"' in page for name in about.needs)
    assert "unknown" not in page
    assert (
        "there is no kind of rule 'weather'" in hospital.post("rules", what="kind", value="weather").lower()
    )


def test_what_was_typed_stays_with_the_reason(hospital: Tab) -> None:
    page = add(hospital, {**CHILDREN, "then": 'marital = "nevr"'})
    assert "did you mean 'never'" in page.lower()
    assert 'value="marital = "nevr""' in page
    assert kept(hospital) == []
    assert "rule-problem" not in add(hospital, CHILDREN)


def test_contradictions_are_shown_at_once_with_both_rules_and_nothing_is_released(hospital: Tab) -> None:
    add(hospital, CHILDREN)
    assert "rules-problem" not in add(hospital, STAY)
    page = add(hospital, {**STAY, "low": "discharge", "sign": "<", "high": "admission"})
    assert "Rules 2 and 3 contradict each other" in page
    assert "Rule 2: <code>admission <= discharge</code>" in page
    assert "Rule 3: <code>discharge < admission</code>" in page
    assert [one.code for one in hospital.session.look_ahead().problems] == ["rules-contradict"]
    assert "Go to the columns" in hospital.post("step/guarantee")
    assert "contradict" in hospital.run()
    assert hospital.session.runs == []
    assert "rules-problem" not in hospital.post("rules", what="remove", place="2")
    assert hospital.session.look_ahead().ready


def test_orders_contradict_each_other_before_there_are_ranges(tab: Tab, stays: Path) -> None:
    tab.upload(stays)
    add(tab, CHILDREN)
    add(tab, STAY)
    page = add(tab, {**STAY, "low": "discharge", "high": "admission"})
    assert "Rules 2 and 3 contradict each other" in page
    assert "once admission and discharge have a range or list" in page


def test_a_range_that_no_row_can_have_under_a_rule_is_said_beside_the_rules(hospital: Tab) -> None:
    add(hospital, CHILDREN)
    page = hospital.column("age", "range", ["20", "90"])
    assert 'Rule 1 (age < 16 -> marital = "never") never applies' in page
    # what a rule is about cannot be taken from under it
    page = hospital.column("age", "kind", "nominal")
    assert "rule 1" in page.lower()
    assert hospital.session.recipe.schema["age"].kind == "numeric"


@pytest.mark.parametrize(
    "told",
    [
        [STAY, {**STAY, "low": "discharge", "sign": "<", "high": "admission"}],
        [{**STAY, "least": "5000"}],
        [{**CHILDREN, "if": "age < 0"}],
        [CHILDREN, {**CHILDREN, "then": 'marital = "married"'}],
        [{"kind": "missing-if", "column": "marital", "if": "age < 16", **LAW}],
        [{"kind": "derived", "column": "age", "expression": "years(admission, discharge)", **LAW}],
    ],
)
def test_what_is_said_beside_the_rules_is_what_the_library_refuses(
    hospital: Tab, told: list[dict[str, str]]
) -> None:
    for one in told:
        add(hospital, one)
    assert len(kept(hospital)) == len(told)
    page = hospital.post("step/columns")
    with contextlib.suppress(OptionError):
        prepare(hospital.session.sheet, **hospital.session.recipe.request)
        assert "rules-problem" not in page
        return
    with pytest.raises(OptionError) as caught:
        prepare(hospital.session.sheet, **hospital.session.recipe.request)
    assert f"<p>{capital(caught.value)}</p>" in page


def test_a_method_that_keeps_no_rules_says_so_and_rows_are_counted_in_a_rehearsal(hospital: Tab) -> None:
    add(hospital, STAY)
    hospital.guarantee("method", "laplace")
    assert "does not keep the rules between columns" in hospital.post("step/columns")
    run = finished(hospital.session, "rehearse")
    (found,) = run.facts["rules"]
    assert not found["released"].startswith("0 of")
    assert (
        f"In the last rehearsal on synthetic records, {found['released']} released rows break it."
        in hospital.post("step/columns")
    )


def test_a_release_keeps_every_rule_and_counts_of_records_stay_internal(hospital: Tab) -> None:
    add(hospital, STAY)
    add(hospital, CHILDREN)
    page = hospital.post("step/guarantee")
    assert "bounds admission and discharge together" in page
    run = finished(hospital.session)
    first, second = run.facts["rules"]
    assert first["released"].startswith("0 of")
    assert second["released"].startswith("0 of")
    assert first["records"] == f"{run.kept[1].internal['rules_broken']['admission <= discharge']} of 300"
    # before anything was measured, no count of records is on a page
    assert first["records"] not in hospital.post("step/columns")
    page = hospital.post("step/judge")
    assert f"of the records (internal), {first['records']}" in page
    assert "Check after drawing: of " in page
    assert first["records"] not in hospital.post("step/columns")
    assert load_recipe(run.bundle / "method.toml")["schema"].rules == hospital.session.recipe.schema.rules
    for path in run.bundle.iterdir():
        assert first["records"].encode() not in path.read_bytes()
    # what is changed after that is recorded
    hospital.post("rules", what="remove", place="1")
    recorded: list[Any] = hospital.session.look_ahead().statement["recorded"]
    assert {"code": "settings-changed", "facts": {"settings": ["rules"]}} in recorded


def test_a_file_read_again_keeps_its_rules(hospital: Tab) -> None:
    number = hospital.session.recipe.schema.names.index("marital")
    hospital.post(f"column/{number}", what="recode", mapping="married -> wed", source="law")
    add(hospital, {**CHILDREN, "then": 'marital != "wed"'})
    hospital.post("reread")
    assert kept(hospital) == ['age < 16 -> marital != "wed"']
    assert len(hospital.session.recipe.schema.steps) == 1


def test_a_rule_from_the_records_voids_the_guarantee(hospital: Tab) -> None:
    add(hospital, {**STAY, "source": shoal.columns.RECORDS})
    ahead = hospital.session.look_ahead()
    assert ahead.verdict is not None
    assert ahead.verdict.level == "red"
    assert ahead.statement["data_dependent"]
