"""The studio in a real browser: from a file to a bundle, with what goes wrong on the way."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import data_file

import shoal
from shoal.cli import run as command
from shoal.io import write
from shoal.method.recipe import load_recipe
from shoal.studio.promises import CARDS
from shoal.survey import survey
from tests.browser import chromium_path
from tools.served_studio import Studio, chromium, served

from .studio_walker import DESKTOP, PHONE, Walk, shut_out, walking

pytestmark = pytest.mark.system
slow = pytest.mark.slow

# of the survey: what settles it in a few clicks
FEW = ["age", "sex", "hours per week", "income"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium(chromium_path()) as opened:
        yield opened


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with served(limit=5_000_000, place=tmp_path) as found:
        yield found


@pytest.fixture
def walk(browser: Any, studio: Studio) -> Iterator[Walk]:
    with walking(browser, studio) as found:
        yield found


def people(folder: Path, rows: int = 400, name: str = "people.csv") -> Path:
    path = folder / name
    write(survey(rows).select(FEW), path)
    return path


def settle(walk: Walk) -> None:
    """Everything that an ε-promise needs, by hand."""
    walk.go("columns")
    for number in (0, 2):
        with walk.page.expect_response("**/column/**"):
            walk.page.locator(f"#suggest-{number}").click()
    walk.page.locator("#lo-3").fill("0")
    walk.type("#hi-3", "300000")
    walk.page.locator("#list-1").click()
    with walk.page.expect_response("**/column/**"):
        walk.page.locator("#confirm").click()
    with walk.page.expect_response("**/vouch"):
        walk.page.locator("#vouch").select_option("questionnaire")
    walk.page.get_by_text("all settled").wait_for()


def checked(bundle: Path, original: Path, tmp_path: Path) -> None:
    """The downloaded bundle is one for the other commands, too."""
    assert shoal.Bundle.load(bundle).statement.to_dict()
    data = next(path for path in bundle.iterdir() if path.stem == "data")
    assert command(["check", str(data), "--quasi", "age"]) == 0
    assert command(["evaluate", str(original), str(data)]) == 0


def test_from_a_file_to_a_bundle_with_a_rehearsal_first(walk: Walk, tmp_path: Path) -> None:
    original = people(tmp_path)
    walk.choose(original)
    walk.page.get_by_role("heading", name="people.csv").wait_for()
    settle(walk)
    walk.go("promise")
    walk.card("given-partition")
    walk.type("#value-k", "20")
    assert "Rehearse" in walk.page.locator("#statement .button.primary").inner_text()
    walk.run("rehearse")
    walk.judge()
    walk.page.get_by_text("settings that you choose from this stay clean").wait_for()
    walk.go("promise")
    walk.type("#value-k", "30")
    assert walk.page.locator("#tainted").count() == 0
    walk.run("protect")
    walk.judge()
    walk.page.get_by_role("heading", name="Could someone find row 17?").wait_for()
    walk.go("publish")
    walk.page.get_by_role("heading", name="Ready to publish").wait_for()
    checked(walk.download(tmp_path / "found"), original, tmp_path)
    walk.clean()


@slow
@pytest.mark.parametrize("card", [card.name for card in CARDS])
def test_the_demo_survey_through_all_steps_for_every_promise(walk: Walk, tmp_path: Path, card: str) -> None:
    walk.survey()
    walk.go("columns")
    walk.page.get_by_text("all settled").wait_for()
    walk.go("promise")
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
    with walk.page.expect_response("**/written"):
        walk.page.locator("#written-na").fill("?")
        walk.page.locator("#written-na").press("Tab")
    walk.page.get_by_text("Missing values in workclass").wait_for()
    walk.go("columns")
    names = list(walk.desk.recipe.schema.names)
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
    with walk.page.expect_response("**/vouch"):
        walk.page.locator("#vouch").select_option("questionnaire")
    walk.page.get_by_text("all settled").wait_for()
    walk.go("promise")
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
    walk.go("promise")
    walk.card("k-anonymity")
    walk.run("protect")
    walk.judge()
    walk.go("publish")
    bundle = walk.download(tmp_path / "found")
    assert (bundle / "data.dta").is_file()
    walk.clean()


@slow
def test_what_goes_wrong_is_said_in_one_clear_line(walk: Walk, tmp_path: Path) -> None:
    page = walk.page
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n3\n", "utf-8")
    walk.choose(bad)
    words = page.locator("#drop [role=alert]").inner_text()
    assert "'bad.csv'" in words
    assert "row" in words
    large = tmp_path / "large.csv"
    large.write_text("a,b\n" + "1,2\n" * 1_500_000, "utf-8")
    page.locator("#file").set_input_files(large)
    page.get_by_text("start with 'shoal studio FILE' to read it in place.").wait_for()
    odd = tmp_path / "odd.csv"
    odd.write_text("pay,n\n" + "12,1\n" * 20 + "much,2\n", "utf-8")
    walk.choose(odd)
    walk.go("columns")
    with page.expect_response("**/column/**"):
        page.locator("#kind-0").select_option("numeric")
    page.locator("#lo-0").fill("100")
    walk.type("#hi-0", "0")
    page.locator("#status-0", has_text="low above high").wait_for()
    page.locator("#lo-0").fill("0")
    walk.type("#hi-0", "100")
    page.locator("#lo-1").fill("0")
    walk.type("#hi-1", "1")
    walk.go("promise")
    page.get_by_text("'much'").first.wait_for()
    with page.expect_response("**/step/columns"):
        page.get_by_role("button", name="Go to pay").first.click()
    with page.expect_response("**/column/**"):
        page.locator("#publish-0").uncheck()
    walk.go("promise")
    page.get_by_text("outside the domain 0:1").first.wait_for()
    page.get_by_role("button", name="Cut values at the ends").first.click()
    page.get_by_text("outside the domain 0:1").first.wait_for(state="detached")
    walk.card("k-anonymity")
    walk.go("columns")
    with page.expect_response("**/column/**"):
        page.locator("#role-1").select_option("quasi-identifier")
    walk.go("promise")
    walk.type("#value-k", "40")
    page.get_by_role("button", name="Take a smaller k").wait_for()
    walk.clean()


@slow
def test_a_killed_worker_is_said_and_leaves_nothing(walk: Walk) -> None:
    walk.survey()
    walk.go("promise")
    walk.card("dp")
    walk.page.locator("#protect").click()
    walk.page.locator("#cancel").wait_for()
    run = walk.desk.running
    os.killpg(run._process.pid, signal.SIGKILL)
    walk.page.get_by_text("The process of this run ended before it was done").first.wait_for()
    assert not run.folder.exists()
    walk.clean()


@slow
@pytest.mark.parametrize("stage", ["starting", "reading the table", "measuring", ""])
def test_cancel_at_each_stage_leaves_no_process_and_no_folder(walk: Walk, stage: str) -> None:
    walk.survey()
    walk.go("promise")
    walk.card("given-partition")
    walk.page.locator("#protect").click()
    walk.page.locator("#cancel").wait_for()
    run = walk.desk.running
    until = time.monotonic() + 60
    while stage and run.state == "running" and stage not in run.what and time.monotonic() < until:
        time.sleep(0.01)
    walk.page.locator("#cancel").click()
    walk.page.get_by_text("Cancelled. Nothing was written.").or_(
        walk.page.locator("#judge-it")
    ).first.wait_for()
    if run.state == "cancelled":
        assert not run.folder.exists()
        with pytest.raises(ProcessLookupError):
            os.killpg(run._process.pid, 0)
    walk.clean()


@slow
def test_strangers_are_refused_by_the_real_server(studio: Studio) -> None:
    cookies = {studio.access.cookie_name: studio.access.cookie}
    with httpx.Client(base_url=studio.origin) as client:
        assert client.get("/").status_code == 403
    with httpx.Client(base_url=studio.origin, cookies=cookies) as client:
        assert client.get("/").status_code == 200
        for headers in (
            {"host": "evil.example"},
            {"origin": "http://evil.example"},
            {"sec-fetch-site": "cross-site"},
        ):
            assert client.get("/", headers=headers).status_code == 403
        assert client.post("/desk").status_code == 403
        for path in ("/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/....//app.py"):
            assert client.get(path).status_code == 404


@slow
def test_two_tabs_do_not_mix_and_a_reload_keeps_its_own(browser: Any, studio: Studio, tmp_path: Path) -> None:
    with walking(browser, studio) as first, walking(browser, studio) as second:
        first.survey()
        second.choose(people(tmp_path))
        first.go("promise")
        first.card("k-anonymity")
        second.page.reload()
        second.page.get_by_role("heading", name="people.csv").wait_for()
        first.page.reload()
        first.page.get_by_role("heading", name="What do you want to promise?").wait_for()
        assert first.page.locator("#card-k-anonymity").is_checked()
        first.clean()
        second.clean()


@slow
def test_looking_costs_and_a_reload_does_not_launder_it(walk: Walk, tmp_path: Path) -> None:
    page = walk.page
    walk.survey()
    walk.go("promise")
    walk.card("given-partition")
    walk.type("#value-k", "250")
    walk.run("protect")
    walk.judge()
    walk.go("promise")
    walk.type("#value-k", "100")
    page.locator("#tainted").wait_for()
    page.reload()
    page.locator("#tainted").wait_for()
    page.locator("#same summary").click()
    assert 'tuned = "k"' in page.locator("#same pre").last.inner_text()
    walk.run("protect")
    walk.judge()
    walk.go("publish")
    assert page.locator("main h1").inner_text() == "Not ready to publish"
    assert page.locator("#download").count() == 0
    page.locator("#anyway").click()
    page.locator("#reason").fill("the council decided so on Monday")
    page.locator("#folder-name").fill("release-B")
    page.locator("#override").click()
    bundle = walk.download(tmp_path / "found")
    assert "the council decided so on Monday" in (bundle / "override.json").read_text("utf-8")
    assert 'tuned = "k"' in (bundle / "method.toml").read_text("utf-8")
    # the way back: the first run is still clean
    walk.go("promise")
    page.locator("#sealed").click()
    page.locator("#to-sealed").wait_for()
    walk.go("judge")
    with page.expect_response("**/judge"):
        page.locator("#run-A").click()
    walk.go("publish")
    page.get_by_role("heading", name="Ready to publish").wait_for()
    walk.clean()


@slow
def test_copied_command_and_script_give_the_same_recipe(
    walk: Walk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk.survey()
    walk.go("promise")
    walk.card("given-partition")
    walk.type("#value-k", "250")
    walk.run("protect")
    walk.go("publish")
    line = walk.page.locator("#text-command").inner_text()
    script = walk.page.locator("#text-script").inner_text()
    folder = tmp_path / "again"
    bundle = walk.download(folder / "found")
    assert walk.desk.source is not None
    shutil.copy(walk.desk.source.path, folder / "survey.csv")
    shutil.copy(bundle / "method.toml", folder)
    monkeypatch.chdir(folder)
    assert command(line.split()[1:]) == 0
    first = load_recipe(folder / "release" / "method.toml")
    shutil.rmtree(folder / "release")
    subprocess.run([sys.executable, "-c", script], check=True, cwd=folder)
    assert load_recipe(folder / "release" / "method.toml") == first == load_recipe(bundle / "method.toml")
    walk.clean()


@slow
@pytest.mark.parametrize(
    ("size", "scheme"),
    [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")],
    ids=["desk light", "desk dark", "phone light", "phone dark"],
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
        walk.choose(people(tmp_path))
        look("data")
        walk.go("columns")
        look("columns, unsettled")
        page.locator("#lo-0").fill("9")
        walk.type("#hi-0", "1")
        look("columns, low above high")
        walk.go("promise")
        look("promise with problems")
        walk.go("columns")
        page.locator("#look").click()
        page.locator("#look").wait_for(state="detached")
        look("columns, looked at")
        walk.go("data")
        page.locator("#another").click()
        page.locator("#survey").wait_for()
        walk.survey()
        walk.go("columns")
        page.locator("#name-4").click()
        page.locator("#inspector-title", has_text="education").wait_for()
        look("an order")
        walk.go("promise")
        page.locator("#advanced summary").click()
        look("promise")
        walk.card("given-partition")
        walk.type("#value-k", "250")
        page.locator("#protect").click()
        page.locator("#cancel").wait_for()
        look("running")
        page.locator("#judge-it").wait_for(timeout=240_000)
        walk.judge()
        look("judge")
        for tab in ("relations", "groups", "learning"):
            with page.expect_response("**/judge"):
                page.locator(f"#tab-{tab}").click()
            look(tab)
        walk.go("promise")
        walk.type("#value-k", "100")
        page.locator("#tainted").wait_for()
        look("tainted")
        walk.go("publish")
        look("publish")
        page.keyboard.press("?")
        look("keys")
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
    page.locator("#grid tbody tr").first.wait_for()
    reach("#grid")
    page.keyboard.press("End")
    page.get_by_text("5,000", exact=True).wait_for()
    page.keyboard.press("Alt+2")
    page.get_by_role("heading", name="What is in each column?").wait_for()
    assert page.evaluate("() => document.activeElement.tagName") == "H1"
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("() => document.activeElement.id") == "name-1"
    page.keyboard.press("Enter")
    page.locator("#inspector-title", has_text="age").wait_for()
    page.keyboard.press("Alt+3")
    page.get_by_role("heading", name="What do you want to promise?").wait_for()
    reach("input[name=card]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.locator("#card-given-partition:checked").wait_for()
    page.locator('#method option[value="mdav-dp"]:checked').wait_for(state="attached")
    reach("#range-k")
    before = walk.desk.recipe.settings["k"]
    with page.expect_response("**/promise"):
        page.keyboard.press("PageUp")
    assert int(walk.desk.recipe.settings["k"]) > int(before)
    assert page.evaluate("() => document.activeElement.id") == "range-k"
    page.keyboard.press("Control+Enter")
    page.locator("#judge-it").wait_for(timeout=240_000)
    page.keyboard.press("Alt+4")
    page.get_by_role("heading", name="Is it still useful, and is it safe?").wait_for()
    page.keyboard.press("Alt+3")
    reach("#protect")
    page.keyboard.press("Enter")
    page.locator("#judge-it").wait_for(timeout=240_000)
    page.keyboard.press("Alt+5")
    page.get_by_role("heading", name="Ready to publish").wait_for()
    reach("#download")
    walk.clean()


def started(place: Path, *words: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from shoal.cli import main; main()",
            "studio",
            "--no-browser",
            "--port",
            "0",
            *words,
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place), "COLUMNS": "200"},
    )
    assert process.stderr is not None
    words_found = ""
    for line in process.stderr:
        words_found += line
        if "Stop with" in line:
            break
    found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", words_found)
    assert found is not None, words_found
    return process, found[0]


@slow
def test_the_command_leaves_nothing_behind(tmp_path: Path) -> None:
    original = people(tmp_path)
    place = tmp_path / "place"
    place.mkdir()
    process, address = started(place, str(original))
    with httpx.Client(follow_redirects=True, headers={"x-shoal": "1"}, timeout=60) as client:
        for _ in range(100):
            try:
                assert client.get(address).status_code == 200
                break
            except httpx.ConnectError:
                time.sleep(0.1)
        base = address.split("/?")[0]
        name = client.post(f"{base}/desk").json()["desk"]
        assert "people.csv" in client.post(f"{base}/desk/{name}/step/data", json={}).text
        client.post(f"{base}/desk/{name}/survey", json={})
        assert list(place.glob("shoal-studio-*/*/survey.csv"))
        # a tab that listens is no reason to stay
        with (
            contextlib.suppress(httpx.HTTPError),
            client.stream("GET", f"{base}/desk/{name}/events") as events,
        ):
            assert next(events.iter_lines())
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    assert not list(place.glob("shoal-studio-*"))
    process, address = started(place)
    process.kill()
    process.wait(30)
    assert len(list(place.glob("shoal-studio-*"))) == 1
    process, address = started(place)
    assert len(list(place.glob("shoal-studio-*"))) == 1
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    assert not list(place.glob("shoal-studio-*"))
