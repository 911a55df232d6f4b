"""The studio in a real browser: from a file to a bundle, including errors on the way."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cli import run as command
from shoal.io import write
from shoal.ledger import open_ledger
from shoal.studio.app import hand_over
from shoal.studio.guarantee import CARDS
from shoal.studio.session import PEOPLE
from shoal.survey import survey
from tests.conftest import data_file
from tools.served_studio import Studio

from .studio_walker import DESKTOP, FEW, PATIENCE, PHONE, Walk, people, settle, shut_out, vouch, walking

pytestmark = pytest.mark.system
# on a phone some controls are folded away
CHANGED = """([name, value]) => {
    const field = document.getElementById(name);
    field.value = value;
    field.dispatchEvent(new Event("change", { bubbles: true }));
}"""
slow = pytest.mark.slow


def checked(bundle: Path, original: Path, tmp_path: Path) -> None:
    """The downloaded bundle is one for the other commands, too."""
    assert shoal.Bundle.load(bundle).statement.to_dict()
    data = next(path for path in bundle.iterdir() if path.stem == "data")
    assert command(["check", str(data), "--quasi", "age"]) == 0
    assert command(["evaluate", str(original), str(data)]) == 0


def test_a_browser_that_is_given_the_file_arrives_and_the_file_works_once(
    browser: Any, studio: Studio, tmp_path: Path
) -> None:
    path = hand_over(studio.access, tmp_path)
    for allowed in (True, False):
        context = browser.new_context()
        page = context.new_page()
        page.goto(path.as_uri())
        if allowed:
            page.locator("#survey").wait_for()
            assert page.url == f"{studio.origin}/"
            page.reload()
            page.locator("#survey").wait_for()
        else:
            page.get_by_text("each address works once").wait_for()
        context.close()


def test_from_a_file_to_a_bundle_with_a_rehearsal_first(walk: Walk, tmp_path: Path) -> None:
    original = people(tmp_path)
    walk.choose(original)
    walk.page.get_by_role("heading", name="people.csv").wait_for()
    settle(walk)
    walk.go("guarantee")
    walk.card("given-partition")
    walk.type("#value-k", "20")
    assert "Rehearse" in walk.page.locator("#statement .button.primary").inner_text()
    walk.run("rehearse")
    walk.judge()
    walk.page.get_by_text("no facts about these records are shown").first.wait_for()
    walk.go("guarantee")
    walk.type("#value-k", "30")
    assert walk.page.locator("#recorded").count() == 0
    walk.run("protect")
    walk.judge()
    walk.page.get_by_role("heading", name="Could someone re-identify row 17?").wait_for()
    walk.go("publish")
    walk.page.get_by_role("heading", name="Ready to publish").wait_for()
    checked(walk.download(tmp_path / "found"), original, tmp_path)
    walk.clean()


def hospital(folder: Path) -> Path:
    """Stays of patients, each of whom has three."""
    random = np.random.default_rng(5)
    first = np.datetime64("2024-01-01") + random.integers(0, 300, 300)
    path = folder / "stays.csv"
    made = {
        "patient": np.repeat(np.arange(100), 3),
        "admission": first.astype(str),
        "discharge": (first + random.integers(0, 30, 300)).astype(str),
        "age": random.integers(0, 90, 300),
    }
    write(pa.table(made), path)
    return path


def order(walk: Walk, low: str, high: str) -> None:
    """Add the rule that one column is never above another."""
    walk.page.locator("#rule-low").select_option(low)
    walk.page.locator("#rule-high").select_option(high)
    walk.page.locator("#rule-source").select_option("law")
    with walk.page.expect_response("**/rules"):
        walk.page.locator("#rule-take").click()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_rule_a_unit_with_a_bound_and_a_release_that_keeps_both(
    browser: Any, studio: Studio, size: tuple[int, int], tmp_path: Path
) -> None:
    found: dict[str, list[str]] = {}
    with walking(browser, studio, size, axe=True) as walk:
        page = walk.page

        def look(name: str) -> None:
            found[name] = shut_out(page)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= size[0], name
            if folder := os.environ.get("SHOAL_SCREENS"):
                page.screenshot(path=f"{folder}/{name}-{size[0]}.png", full_page=True)

        walk.choose(hospital(tmp_path))
        walk.go("columns")
        for number in (1, 2):
            page.locator(f"#name-{number}").click()
            page.locator(f"#lo-{number}").fill("2023-12-01")
            walk.type(f"#hi-{number}", "2025-01-31")
        page.locator("#name-3").click()
        with page.expect_response("**/column/**"):
            page.locator("#suggest-3").click()
        for number in (0, 1, 2, 3):
            page.locator(f"#name-{number}").click()
            vouch(walk, [number])
        order(walk, "admission", "discharge")
        page.locator("#rule-1", has_text="admission <= discharge").wait_for()
        with page.expect_response("**/rules"):
            page.locator("#rule-sign").select_option("<")
            order(walk, "discharge", "admission")
        page.locator("#rules-problem", has_text="Rules 1 and 2 contradict each other").wait_for()
        look("contradiction")
        with page.expect_response("**/rules"):
            page.locator("#remove-rule-2").click()
        page.locator("#rules-problem").wait_for(state="detached")
        with page.expect_response("**/rules"):
            page.locator("#rule-kind").select_option("implication")
        page.locator("#rule-if").fill("age < ")
        page.locator("#rule-source").select_option("law")
        page.locator("#rule-take").click()
        page.locator("#rule-problem").wait_for()
        look("rules")
        walk.go("guarantee")
        walk.card("dp")
        walk.type("#unit-called", "patient")
        walk.type("#unit-bound", "2")
        page.locator("#price", has_text="ε = 1 per patient, so ε = 0.5 for each of its rows").wait_for()
        with page.expect_response("**/guarantee"):
            page.locator("#bound-to-3").click()
        page.locator("#price", has_text="so ε = 1/3 for each of its rows").wait_for()
        look("bounds")
        walk.run("protect")
        walk.judge()
        page.locator("#judged-rules", has_text="released rows break it").wait_for()
        look("judge")
        walk.go("publish")
        page.locator("#analysts", has_text="shoal intervals release-A").wait_for()
        look("publish")
        bundle = shoal.Bundle.load(walk.download(tmp_path / "found"))
        assert bundle.statement.unit == "patient"
        rows = bundle.data.to_pandas() if hasattr(bundle.data, "to_pandas") else bundle.data
        assert (rows["admission"] <= rows["discharge"]).all()
        walk.clean()
    assert {name: one for name, one in found.items() if one} == {}


@slow
@pytest.mark.parametrize("card", [card.name for card in CARDS])
def test_the_demo_survey_through_all_steps_for_every_promise(walk: Walk, tmp_path: Path, card: str) -> None:
    walk.survey()
    walk.go("columns")
    walk.page.get_by_text("all complete").wait_for()
    walk.go("guarantee")
    walk.card(card)
    walk.run("protect")
    walk.judge()
    for tab in ("relations", "groups", "learning", "distributions"):
        with walk.page.expect_response("**/judge"):
            walk.page.locator(f"#tab-{tab}").click()
    walk.go("publish")
    heading = walk.page.locator("main h1")
    if card == "experiments":
        assert heading.inner_text() == "Not ready to publish"
        assert walk.page.locator("#download").count() == 0
    else:
        assert heading.inner_text() == "Ready to publish"
        bundle = walk.download(tmp_path / "found")
        assert shoal.Bundle.load(bundle).statement.model in next(c for c in CARDS if c.name == card).models
    walk.clean()


@slow
@pytest.mark.parametrize("card", [card.name for card in CARDS if not card.folded])
def test_adult_with_a_taxonomy_through_all_steps(
    walk: Walk, studio: Studio, tmp_path: Path, card: str
) -> None:
    original = data_file("adult.csv")
    walk.choose(original)
    walk.rows()
    with walk.page.expect_response("**/written"):
        walk.page.locator("#written-na").fill("?")
        walk.page.locator("#written-na").press("Tab")
    walk.page.get_by_text("Missing values in workclass").wait_for()
    walk.go("columns")
    names = list(walk.session.recipe.schema.names)
    kept = {"age", "sex", "marital_status", "income", "hours_per_week"}
    for number, name in enumerate(names):
        box = walk.page.locator(f"#publish-{number}")
        if name not in kept and box.is_enabled() and box.is_checked():
            with walk.page.expect_response("**/column/**"):
                box.uncheck()
    for name in ("age", "hours_per_week"):
        with walk.page.expect_response("**/column/**"):
            walk.page.locator(f"#suggest-{names.index(name)}").click()
    for name in ("sex", "income"):
        walk.page.locator(f"#list-{names.index(name)}").click()
        walk.page.locator("#inspector-title", has_text=name).wait_for()
        with walk.page.expect_response("**/column/**"):
            walk.page.locator("#confirm").click()
    married = names.index("marital_status")
    tree = tmp_path / "marital.csv"
    married_ones = ("Married-civ-spouse", "Married-spouse-absent", "Married-AF-spouse")
    lone_ones = ("Never-married", "Divorced", "Widowed", "Separated")
    lines = ["child,parent", *(f"{value},married" for value in married_ones)]
    lines += [*(f"{value},alone" for value in lone_ones), "married,*", "alone,*"]
    tree.write_text("\n".join(lines) + "\n", "utf-8")
    walk.page.locator(f"#list-{married}").click()
    walk.page.locator("#inspector-title", has_text="marital_status").wait_for()
    walk.page.locator("summary", has_text="A taxonomy").click()
    with walk.page.expect_response("**/column/**"):
        walk.page.locator(f"#taxonomy-file-{married}").set_input_files(tree)
    vouch(walk, [names.index(name) for name in sorted(kept)])
    walk.page.get_by_text("all complete").wait_for()
    walk.go("guarantee")
    walk.card(card)
    if walk.page.locator("#value-k").count():
        walk.type("#value-k", "200")
    walk.run("protect")
    walk.judge()
    walk.go("publish")
    walk.page.get_by_role("heading", name="Ready to publish").wait_for(timeout=60_000)
    assert shoal.Bundle.load(walk.download(tmp_path / "found")).statement.publishable
    walk.clean()


@slow
def test_a_stata_file(walk: Walk, tmp_path: Path) -> None:
    original = tmp_path / "people.dta"
    table = survey(300).select(FEW).rename_columns(["age", "sex", "hours", "income"])
    write(table, original)
    walk.choose(original)
    walk.page.get_by_role("heading", name="people.dta").wait_for()
    walk.go("guarantee")
    walk.card("k-anonymity")
    walk.run("protect")
    walk.judge()
    walk.go("publish")
    bundle = walk.download(tmp_path / "found")
    assert (bundle / "data.dta").is_file()
    walk.clean()


@slow
def test_two_tabs_do_not_mix_and_a_reload_keeps_its_own(browser: Any, studio: Studio, tmp_path: Path) -> None:
    with walking(browser, studio) as first, walking(browser, studio) as second:
        first.survey()
        second.choose(people(tmp_path))
        first.go("guarantee")
        first.card("k-anonymity")
        second.page.reload()
        second.page.get_by_role("heading", name="people.csv").wait_for()
        first.page.reload()
        first.page.get_by_role("heading", name="Which guarantee do you want to give?").wait_for()
        assert first.page.locator("#card-k-anonymity").is_checked()
        first.clean()
        second.clean()


@slow
def test_what_was_measured_is_recorded_and_a_reload_does_not_change_that(walk: Walk, tmp_path: Path) -> None:
    page = walk.page
    walk.survey()
    walk.go("guarantee")
    walk.card("given-partition")
    walk.type("#value-k", "250")
    walk.run("protect")
    walk.judge()
    walk.go("guarantee")
    walk.type("#value-k", "100")
    changed = page.locator("#recorded", has_text="was measured: k.")
    changed.wait_for()
    page.reload()
    changed.wait_for()
    walk.run("protect")
    walk.judge()
    walk.go("publish")
    page.get_by_role("heading", name="Ready to publish").wait_for()
    bundle = walk.download(tmp_path / "found")
    statement = shoal.Bundle.load(bundle).statement
    assert [one.code for one in statement.recorded] == ["earlier-releases", "settings-changed"]
    assert statement.verdict.code == "publish-with-limits"
    # the way back to what was fixed first
    walk.go("guarantee")
    page.locator("#first-settings").click()
    changed.wait_for(state="detached")
    assert page.locator("#value-k").input_value() == "250"
    walk.clean()


@slow
def test_a_range_taken_from_the_records_blocks_the_download(walk: Walk, tmp_path: Path) -> None:
    page = walk.page
    walk.choose(people(tmp_path))
    settle(walk)
    vouch(walk, [3], "these records")
    walk.go("guarantee")
    walk.card("given-partition")
    walk.type("#value-k", "20")
    walk.run("protect")
    walk.go("publish")
    assert page.locator("main h1").inner_text() == "Not ready to publish"
    assert page.locator("#download").count() == 0
    page.locator("#anyway").click()
    page.locator("#reason").fill("the council decided so on Monday")
    page.locator("#folder-name").fill("release-A")
    page.locator("#override").click()
    bundle = walk.download(tmp_path / "found")
    assert "the council decided so on Monday" in (bundle / "override.json").read_text("utf-8")
    walk.clean()


@slow
def test_copied_command_and_script_give_the_same_recipe(walk: Walk, tmp_path: Path) -> None:
    walk.survey()
    walk.go("guarantee")
    walk.card("given-partition")
    walk.type("#value-k", "250")
    walk.run("protect")
    walk.go("publish")
    _, (published, by_command, by_script) = walk.again(tmp_path, "survey.csv")
    assert published == by_command == by_script
    walk.clean()


@slow
@pytest.mark.parametrize(
    ("size", "scheme"),
    [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")],
    ids=["session light", "session dark", "phone light", "phone dark"],
)
def test_nobody_is_shut_out_of_any_screen(
    browser: Any, studio: Studio, size: tuple[int, int], scheme: str, tmp_path: Path
) -> None:
    found: dict[str, list[str]] = {}
    with walking(browser, studio, size, scheme, axe=True) as walk:
        page = walk.page

        def look(name: str) -> None:
            found[name] = shut_out(page)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= size[0], name

        look("start")
        bad = tmp_path / "bad.csv"
        bad.write_text("a,b\n1,2\n3\n", "utf-8")
        walk.choose(bad)
        look("bad file")
        large = tmp_path / "large.csv"
        large.write_text("a,b\n" + "1,2\n" * 1_500_000, "utf-8")
        page.locator("#file").set_input_files(large)
        page.locator("#drop [role=alert]", has_text="large.csv").wait_for()
        look("too large")
        walk.choose(people(tmp_path))
        look("data")
        walk.rows()
        look("rows")
        walk.go("columns")
        look("columns, unsettled")
        page.locator("#lo-0").fill("9")
        walk.type("#hi-0", "1")
        look("columns, low above high")
        walk.go("guarantee")
        look("guarantee with problems")
        walk.go("columns")
        page.locator("#look").click()
        page.locator("#look").wait_for(state="detached")
        page.locator("#lo-0").fill("30")
        walk.type("#hi-0", "60")
        page.locator("#name-0").click()
        page.locator("#slide-hi").wait_for()
        page.locator("summary", has_text="Recode before protection").click()
        look("columns, looked at, values outside")
        page.locator("#list-1").click()
        with page.expect_response("**/column/**"):
            page.locator("#confirm").click()
        with page.expect_response("**/column/**"):
            page.evaluate(CHANGED, ["role-3", "weight"])
        with page.expect_response("**/column/**"):
            page.locator("#name-3").click()
        page.locator("#release-3").select_option("raked")
        page.locator("#weight-waits").wait_for()
        page.locator("summary", has_text="By sex").click()
        page.locator("#totals-0").fill("female = many")
        page.locator("#totals-take-0").click()
        page.locator("#inspector-problem [role=alert]").wait_for()
        look("a weight with totals that are none")
        walk.go("data")
        page.locator("#another").click()
        page.locator("#survey").wait_for()
        walk.survey()
        walk.go("columns")
        page.locator("#name-4").click()
        page.locator("#inspector-title", has_text="education").wait_for()
        look("an order")
        walk.go("guarantee")
        page.locator("#advanced summary").click()
        look("guarantee")
        walk.card("given-partition")
        walk.type("#value-k", "250")
        if size == PHONE:
            page.locator(".sheet a").click()
            assert page.evaluate("() => document.activeElement.id") == "statement"
        page.get_by_role("link", name="on another file").click()
        page.locator("#people-file").set_input_files(people(tmp_path))
        page.locator("#people-problem [role=alert]").wait_for()
        look("another file without some columns")
        page.locator("#made-up").click()
        page.locator("#made-up").wait_for(state="detached")
        page.locator("#protect").click()
        page.locator("#confirm-run:enabled").wait_for()
        look("what a run costs")
        page.locator("#confirm-run").click()
        page.locator("#cancel").wait_for()
        look("running")
        page.locator("#judge-it").wait_for(timeout=240_000)
        walk.judge()
        look("judge")
        page.locator(".dot.run").click()
        page.locator("#take").wait_for()
        page.locator("#frontier summary").click()
        look("a run among the others")
        for tab in ("relations", "groups", "learning"):
            with page.expect_response("**/judge"):
                page.locator(f"#tab-{tab}").click()
            look(tab)
        walk.go("guarantee")
        walk.type("#value-k", "100")
        page.locator("#recorded").wait_for()
        look("recorded")
        walk.protect()
        page.locator("#cancel").wait_for()
        os.killpg(walk.session.running._process.pid, signal.SIGKILL)
        page.locator(".strip.bad").wait_for()
        look("a killed worker")
        walk.go("publish")
        look("publish")
        walk.go("columns")
        with page.expect_response("**/column/**"):
            page.evaluate(CHANGED, ["from-2", "these records"])
        walk.go("guarantee")
        walk.run("protect")
        walk.judge()
        walk.go("publish")
        look("not ready to publish")
        page.locator("#anyway").click()
        look("publish anyway")
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        look("keys")
        walk.clean()
    assert {name: lines for name, lines in found.items() if lines} == {}


@slow
def test_a_keyboard_is_enough(walk: Walk) -> None:
    page = walk.page

    def reach(target: str, most: int = 120) -> None:
        for _ in range(most):
            if page.evaluate(f"() => document.activeElement?.matches({target!r})"):
                return
            page.keyboard.press("Tab")
        pytest.fail(f"{target} cannot be reached by Tab")

    reach("#survey")
    page.keyboard.press("Enter")
    page.locator("#show-rows").wait_for()
    reach("#show-rows")
    page.keyboard.press("Enter")
    page.locator("#grid tbody tr").first.wait_for()
    reach("#grid")
    page.keyboard.press("End")
    page.get_by_text(f"{PEOPLE:,}", exact=True).wait_for()
    page.keyboard.press("Alt+2")
    page.get_by_role("heading", name="What is in each column?").wait_for()
    assert page.evaluate("() => document.activeElement.tagName") == "H1"
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("() => document.activeElement.id") == "name-1"
    page.keyboard.press("Enter")
    page.locator("#inspector-title", has_text="age").wait_for()
    for _ in range(3):
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("#inspector-title", has_text="education").wait_for()
    order = walk.session.recipe.schema["education"].ordered
    reach("li[data-order]")
    with page.expect_response("**/column/**"):
        page.keyboard.press("Alt+ArrowDown")
    assert walk.session.recipe.schema["education"].ordered == (order[1], order[0], *order[2:])
    page.locator("li[data-order]:focus", has_text=order[0]).wait_for()
    with page.expect_response("**/column/**"):
        page.keyboard.press("Alt+ArrowUp")
    page.keyboard.press("Alt+3")
    page.get_by_role("heading", name="Which guarantee do you want to give?").wait_for()
    # a place on the page is no step
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("() => [document.activeElement.id, location.hash]") == ["main", "#guarantee"]
    reach("input[name=card]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.locator("#card-given-partition:checked").wait_for()
    page.locator('#method option[value="mdav-dp"]:checked').wait_for(state="attached")
    reach("#range-k")
    before = walk.session.recipe.settings["k"]
    with page.expect_response("**/guarantee"):
        page.keyboard.press("PageUp")
    assert int(walk.session.recipe.settings["k"]) > int(before)
    assert page.evaluate("() => document.activeElement.id") == "range-k"
    page.keyboard.press("Control+Enter")
    page.locator("#judge-it").wait_for(timeout=240_000)
    page.keyboard.press("Alt+4")
    page.get_by_role("heading", name="Is it still useful, and is it safe?").wait_for()
    page.keyboard.press("Alt+3")
    # Enter again and again never starts the real run
    reach("#protect")
    page.keyboard.press("Enter")
    page.locator("#confirm-run:enabled").wait_for()
    page.keyboard.press("Enter")
    page.locator("#cost[open]").wait_for(state="detached")
    assert page.evaluate("() => document.activeElement.id") == "protect"
    assert walk.session.running is None
    page.keyboard.press("Enter")
    page.locator("#confirm-run:enabled").wait_for()
    reach("#confirm-run")
    page.keyboard.press("Enter")
    page.locator("#judge-it").wait_for(timeout=240_000)
    page.keyboard.press("Alt+5")
    page.get_by_role("heading", name="Ready to publish").wait_for()
    reach("#download")
    walk.clean()


@slow
def test_a_double_click_never_starts_the_real_run(walk: Walk, tmp_path: Path) -> None:
    page = walk.page
    walk.choose(people(tmp_path))
    settle(walk)
    walk.go("guarantee")
    walk.card("given-partition")
    walk.type("#value-k", "20")
    box = page.locator("#protect").bounding_box()
    place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    # the question comes between the two presses, wherever it stands
    page.add_style_tag(
        content="#cost, #confirm-run { position: fixed; inset: 0; width: 100vw; height: 100vh; }"
    )
    page.mouse.click(*place)
    page.locator("#cost[open]").wait_for()
    page.mouse.click(*place)
    assert page.locator("#confirm-run:enabled").count() == 0
    page.locator("#confirm-run:enabled").wait_for()
    assert walk.session.runs == []
    page.mouse.click(*place)
    page.locator("#judge-it").wait_for(timeout=PATIENCE)
    # a rehearsal's place is never taken by the real run: the same key and the same place rehearse again
    before = page.locator("#rehearse").bounding_box()
    walk.run("rehearse")
    assert page.locator("#rehearse").bounding_box() == before
    page.keyboard.press("Control+Enter")
    page.locator("#strip .stage", has_text="Rehearsal").first.wait_for()
    walk.clean()


def slid(walk: Walk, slider: str, key: str, times: int) -> None:
    """Move a slider by its keys, and wait for what that changes each time."""
    walk.page.locator(slider).focus()
    for _ in range(times):
        with walk.page.expect_response("**/column/**"):
            walk.page.keyboard.press(key)


@slow
def test_a_range_is_moved_on_sliders_and_looking_at_it_is_remembered(walk: Walk, tmp_path: Path) -> None:
    page = walk.page
    walk.choose(people(tmp_path))
    walk.go("columns")
    page.locator("#name-0").click()
    page.locator("#inspector-title", has_text="age").wait_for()
    # nothing is read off the records: the scale surrounds what is common knowledge
    assert page.locator("#slid-lo").inner_text() == page.locator("#slid-hi").inner_text() == "not set"
    page.locator("#suggest-0").click()
    page.locator("#slid-hi", has_text="120").wait_for()
    slid(walk, "#slide-hi", "PageDown", 1)
    age = walk.session.recipe.schema["age"]
    assert (int(age.lo), int(age.hi)) < (0, 120)
    assert page.locator("#hi-0").input_value() == page.locator("#slid-hi").inner_text() == str(age.hi)
    assert age.source["domain"] == "common knowledge"
    assert page.evaluate("() => document.activeElement.id") == "slide-hi"
    with page.expect_response("**/column/**"):
        page.locator("#show-values").click()
    page.locator(".histogram").wait_for()
    slid(walk, "#slide-hi", "PageDown", 5)
    page.locator("#status-0", has_text="outside").wait_for()
    # who vouched for the range before did not vouch for this one
    assert "domain" not in walk.session.recipe.schema["age"].source
    # all steps of one slider are undone at once
    page.keyboard.press("Control+z")
    page.locator("#status-0", has_text="from the data").wait_for()
    assert walk.session.recipe.schema["age"].source["domain"] == "common knowledge"
    assert walk.session.recipe.schema["age"].hi == age.hi
    walk.clean()


@slow
def test_what_is_moved_while_an_answer_is_on_its_way_stays_where_it_is(walk: Walk, tmp_path: Path) -> None:
    page = walk.page
    walk.choose(people(tmp_path))
    walk.go("columns")
    page.locator("#name-0").click()
    page.locator("#slide-hi").wait_for()
    held: list[Any] = []
    page.route("**/column/**", lambda route: route.continue_() if held else held.append(route))
    page.locator("#suggest-0").click()
    page.locator("#slide-hi").focus()
    page.keyboard.press("PageDown")
    place = page.locator("#slide-hi").input_value()
    while not held:
        page.wait_for_timeout(10)
    with page.expect_response(lambda found: "slide" in (found.request.post_data or "")):
        held[0].continue_()
    # the answer to the button drew both sliders anew
    page.locator("#slid-lo", has_text="0").wait_for()
    hi = walk.session.recipe.schema["age"].hi
    page.locator("#slid-hi", has_text=str(hi)).wait_for()
    assert page.locator("#slide-hi").input_value() == place
    assert page.locator("#hi-0").input_value() == str(hi)
    walk.clean()


@slow
def test_a_column_is_recoded_with_a_look_at_what_it_becomes(walk: Walk, tmp_path: Path) -> None:
    page = walk.page
    walk.choose(people(tmp_path))
    settle(walk)
    page.locator("#name-0").click()
    page.locator("#inspector-title", has_text="age").wait_for()
    page.locator("summary", has_text="Recode before protection").click()
    page.locator("#breaks-0").fill("0, 40, 120")
    page.locator("#recode-0").click()
    taken = page.locator("#steps-taken li")
    taken.wait_for()
    assert taken.inner_text() == (
        "Column age is recoded into 2 bands: (0,40], (40,120]; source: questionnaire. Undo this step"
    )
    with page.expect_response("**/column/**"):
        page.locator("#show-values").click()
    page.locator("#steps-taken", has_text="400 of 400 cells changed; now (0,40] ").wait_for()
    walk.go("guarantee")
    walk.card("k-anonymity")
    walk.run("protect")
    walk.judge()
    walk.go("publish")
    bundle = walk.download(tmp_path / "found")
    assert "(40,120]" in (bundle / "data.csv").read_text("utf-8")
    walk.clean()


@slow
def test_time_is_told_before_a_run_and_people_can_be_looked_for_after_it(walk: Walk, tmp_path: Path) -> None:
    page = walk.page
    walk.choose(people(tmp_path))
    settle(walk)
    walk.go("guarantee")
    walk.card("given-partition")
    walk.type("#value-k", "20")
    expected = page.locator("#expected")
    expected.filter(has_text=re.compile(r"^Expected: about .* of memory \(from a probe of .*\)\.$")).wait_for(
        timeout=60_000
    )
    assert not list(walk.session.folder.glob("expected-*"))
    walk.run("protect")
    walk.judge()
    page.get_by_role("heading", name="Could someone re-identify row 17?").wait_for()
    with page.expect_response("**/judge"):
        page.locator("#exposed").click()
    row = walk.session.run_of("A").facts["exposed"]["row"]
    page.get_by_role("heading", name=f"Could someone re-identify row {row}?").wait_for()
    page.get_by_text("The most exposed of all 400 people").wait_for()
    walk.type("#person-row", "3")
    page.get_by_role("heading", name="Could someone re-identify row 3?").wait_for()
    with page.expect_response("**/judge"):
        page.locator("#anybody").click()
    walk.clean()


@slow
def test_settings_are_compared_live_shown_by_a_click_and_taken_by_a_double_click(
    walk: Walk, tmp_path: Path
) -> None:
    page = walk.page
    walk.choose(people(tmp_path))
    settle(walk)
    walk.go("guarantee")
    walk.card("given-partition")
    walk.type("#value-k", "20")
    walk.run("rehearse")
    walk.judge()
    page.locator("#compare").click()
    dots = page.locator(".dot:not(.run)")
    dots.nth(1).wait_for(timeout=PATIENCE)
    # while the others are still on their way
    assert page.locator("#cancel").count() == 1
    page.locator("#cancel").wait_for(state="detached", timeout=PATIENCE)
    assert dots.count() >= 4
    dots.nth(0).focus()
    page.keyboard.press("Enter")
    page.locator("#dot", has_text="Use these settings").wait_for()
    page.locator("#dot", has_text="loss").wait_for()
    assert page.get_by_role("heading", name="Is it still useful, and is it safe?").count() == 1
    words = dots.nth(1).get_attribute("aria-label") or ""
    dots.nth(1).dblclick()
    page.get_by_role("heading", name="Which guarantee do you want to give?").wait_for()
    recipe = walk.session.recipe
    assert words.startswith(f"{recipe.method}, ")
    assert f"k = {recipe.settings['k']}" in words
    # compared on made-up people: nothing is recorded
    assert page.locator("#recorded").count() == 0
    walk.clean()


@slow
def test_a_ledger_is_charged_before_the_run_and_says_what_is_left(walk: Walk, tmp_path: Path) -> None:
    page = walk.page
    ledger = tmp_path / "ledger.sqlite"
    line = ["ledger", "open", str(ledger), "people", "--epsilon", "2.5", "--neighbours", "add-remove"]
    assert command(line) == 0
    walk.choose(people(tmp_path))
    settle(walk)
    walk.go("guarantee")
    walk.card("dp")
    page.locator("#advanced summary").click()
    walk.type("#ledger", str(ledger))
    walk.run("protect")
    walk.go("publish")
    page.get_by_text("Charged to the ledger: ε 1 spent, of 2.5, 1.5 left.").wait_for()
    # what is left does not pay for this one
    walk.go("guarantee")
    # typed and run at once: the run takes what the page shows
    page.evaluate(
        """() => {
            const field = document.getElementById("value-epsilon");
            field.value = "2";
            field.dispatchEvent(new Event("input", { bubbles: true }));
            document.getElementById("protect").click();
        }"""
    )
    page.locator("#cost-words", has_text="ε = 2 per row of the data set people").wait_for()
    page.locator("#confirm-run").click()
    bad = page.locator(".strip.bad .stage")
    bad.wait_for(timeout=PATIENCE)
    assert bad.inner_text() == (
        "The privacy budget of the data set does not allow this: epsilon 2 was requested, but only 1.5 remains "
        "(short by 0.5)."
    )
    with contextlib.closing(open_ledger(str(ledger), create=False)) as opened:
        assert opened.standing("people").words == "ε 1 spent, of 2.5, 1.5 left"
    walk.clean()
