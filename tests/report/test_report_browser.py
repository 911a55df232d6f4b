"""The pages in a real browser: every figure drawn, nothing asked of the network, and fit for phones and paper."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import data_file
from samples import ODD_NAMES

import shoal
from shoal.report import bundle_report, internal_report, public_report

pytestmark = pytest.mark.system

PHONE, DESKTOP = (390, 844), (1280, 800)
MOST_BYTES = 8_000_000

# drawn: its library said so, it has an area, and there is at least one mark in it
UNDRAWN = """() => [...document.querySelectorAll('.plot')].filter(place => {
    const box = place.getBoundingClientRect();
    const marks = place.querySelectorAll(
        '.scatterlayer .js-line, .scatterlayer .point, .barlayer .point path, .heatmaplayer image');
    return !place.dataset.drawn || box.width < 150 || box.height < 150 || marks.length === 0;
}).map(place => place.id)"""
# elements that stick out of the window; what scrolls by itself may
STICKING_OUT = """() => [...document.querySelectorAll('body *')].filter(part =>
    !part.closest('.wide') && part.getBoundingClientRect().right > innerWidth + 1
    && getComputedStyle(part).position !== 'absolute' && !part.closest('svg')
).map(part => part.tagName + '.' + part.className)"""
SMALL_TEXT = """() => [...document.querySelectorAll('body *')].filter(part =>
    [...part.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())
    && part.tagName !== 'SCRIPT' && parseFloat(getComputedStyle(part).fontSize) < 9.5
).map(part => part.tagName + ' ' + part.textContent.slice(0, 20))"""

# text whose contrast with what lies behind it is below the 4.5 of WCAG AA
PALE_TEXT = """() => {
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = part => {
        for (; part; part = part.parentElement) {
            const found = numbers(getComputedStyle(part).backgroundColor);
            if (found.length < 4 || found[3] > 0) { return found; }
        }
        return [255, 255, 255];
    };
    return [...document.querySelectorAll('body *')].filter(part =>
        [...part.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())
        && !['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(part.tagName)
    ).filter(part => {
        const style = getComputedStyle(part);
        const ink = part.closest('svg') ? style.fill : style.color;
        const [a, b] = [light(numbers(ink)), light(behind(part.closest('svg') ? part.closest('div') : part))];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5 && !part.closest('.heatmaplayer');
    }).map(part => part.tagName + ' ' + part.textContent.slice(0, 30));
}"""


def chromium_path() -> str:
    found = shutil.which("chromium")
    if found is None:
        message = "Chromium is not installed: 'make test-system' does that with root's rights"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = chromium_path()
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=options)
        yield opened
        opened.close()


class Visit:
    """A page that is open, with everything it complained about and asked for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def wait(self) -> None:
        from playwright.sync_api import expect

        expect(self.page.locator(".plot:not([data-drawn])")).to_have_count(0, timeout=120_000)

    def undrawn(self) -> list[str]:
        return list(self.page.evaluate(UNDRAWN))


@contextmanager
def visit(browser: Any, file: Path, size: tuple[int, int] = DESKTOP) -> Iterator[Visit]:
    """Open a page without a network; requests other than for the file itself are noted and refused."""
    phone = size == PHONE
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, offline=True, is_mobile=phone, has_touch=phone
    )
    opened = Visit(context.new_page())

    def note(route: Any) -> None:
        if route.request.url == file.as_uri():
            route.continue_()
            return
        opened.requests.append(route.request.url)
        route.abort()

    context.route("**/*", note)
    opened.page.on("console", lambda message: opened.complaints.append(f"{message.type}: {message.text}"))
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.goto(file.as_uri())
    try:
        yield opened
    finally:
        context.close()


def people(n: int = 400) -> pa.Table:
    """Every kind of column, names with markup, long labels, and a gap or two."""
    rng = np.random.default_rng(8)
    age = rng.integers(18, 90, n)
    towns = [f"a town with the rather long name number {code}" for code in rng.integers(0, 25, n)]
    return pa.table(
        {
            ODD_NAMES[2]: age,
            "pay </script> in euros per month, before taxes": (age * 90 + rng.normal(0, 800, n)).clip(
                0, 12_000
            ),
            "level": rng.choice(["none", "school", "degree"], n),
            "birth": pa.array([date(2000, 1, 1) - timedelta(days=int(years) * 365) for years in age]),
            "town": pa.array([None if number % 50 == 0 else town for number, town in enumerate(towns)]),
        }
    )


def schema() -> shoal.Schema:
    names = people(2).column_names
    towns = [f"a town with the rather long name number {code}" for code in range(25)]
    return shoal.Schema.from_dict(
        {
            "attribute": [
                {"name": names[0], "lo": 0, "hi": 120},
                {"name": names[1], "lo": 0, "hi": 12_000},
                {"name": "level", "kind": "ordinal", "ordered": ["none", "school", "degree"]},
                {"name": "birth", "kind": "date", "lo": "1900-01-01", "hi": "2010-01-01"},
                {"name": "town", "kind": "nominal", "values": towns, "missing": "category"},
            ]
        }
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One page of each sort."""
    folder = tmp_path_factory.mktemp("pages")
    table = people()
    made = shoal.protect(table, schema(), "mdav-dp", epsilon=1, k=20, split="equal", seed=2)
    measured = shoal.evaluate(table, made, target="level", runs=2, trees=5)
    made.save(folder / "bundle")
    texts = {
        "public": public_report(made),
        "internal": internal_report(made, measured, table),
        "bundle": bundle_report(folder / "bundle"),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
    return {name: folder / f"{name}.html" for name in texts}


SORTS = ("public", "internal", "bundle")
Open = Callable[[str, tuple[int, int]], Visit]


@pytest.fixture(scope="module")
def look(browser: Any, pages: dict[str, Path]) -> Iterator[Open]:
    """Pages that stay open: drawing them is the slow part, looking is not."""
    seen: dict[tuple[str, tuple[int, int]], Visit] = {}
    with ExitStack() as stack:

        def find(sort: str, size: tuple[int, int]) -> Visit:
            if (sort, size) not in seen:
                seen[sort, size] = stack.enter_context(visit(browser, pages[sort], size))
                seen[sort, size].wait()
            return seen[sort, size]

        yield find


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("sort", SORTS)
def test_every_figure_is_drawn_without_error_and_without_a_network(
    sort: str, size: tuple[int, int], look: Open
) -> None:
    opened = look(sort, size)
    assert opened.undrawn() == []
    assert opened.complaints == []
    assert opened.requests == []
    figures = opened.page.locator(".plot, svg.bars").count()
    assert figures >= {"public": 5, "internal": 25, "bundle": 12}[sort]


@pytest.mark.parametrize("sort", SORTS)
def test_a_phone_shows_the_page_without_scrolling_sideways(sort: str, look: Open) -> None:
    page = look(sort, PHONE).page
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE[0]
    assert page.evaluate(STICKING_OUT) == []
    assert page.evaluate(SMALL_TEXT) == []


@pytest.mark.parametrize("sort", SORTS)
def test_text_stands_out_from_what_is_behind_it(sort: str, look: Open) -> None:
    page = look(sort, DESKTOP).page
    assert page.evaluate(PALE_TEXT) == []
    page.evaluate("() => { document.querySelector('.cards small').style.color = '#c0c8d0'; }")
    assert page.evaluate(PALE_TEXT) == ["SMALL ε"]
    page.evaluate("() => { document.querySelector('.cards small').style.color = ''; }")


@pytest.mark.parametrize("sort", SORTS)
def test_first_screen_holds_promise_light_budget_and_what_is_not_promised(sort: str, look: Open) -> None:
    page = look(sort, DESKTOP).page
    heading = page.get_by_role("heading", name="What is not promised")
    for place in (page.locator(".promise"), page.locator(".light").first, page.locator(".cards"), heading):
        assert place.bounding_box()["y"] < DESKTOP[1]


@pytest.mark.parametrize("sort", SORTS)
def test_figures_have_names_and_headings_are_in_order(sort: str, look: Open) -> None:
    page = look(sort, DESKTOP).page
    assert page.locator(".plot:not([aria-label]), svg.bars:not([aria-label])").count() == 0
    assert page.locator("h1").count() == 1
    levels = page.evaluate("() => [...document.querySelectorAll('h1, h2, h3')].map(part => +part.tagName[1])")
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    # colour is not the only carrier
    assert page.locator(".light").first.inner_text().lower().startswith(("green", "amber", "red"))


def test_names_with_markup_are_shown_as_text(look: Open) -> None:
    page = look("internal", DESKTOP).page
    assert page.get_by_role("heading", name=ODD_NAMES[2], exact=True).count() == 1
    assert page.locator(".plot b, .plot a").count() == 0
    assert page.locator(".plot text", has_text="<b>net</b>").count() > 0


def test_paper_holds_whole_figures_and_open_details(browser: Any, pages: dict[str, Path]) -> None:
    with visit(browser, pages["internal"]) as opened:
        # printed at once: what is not drawn yet has to be drawn then
        opened.page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
        opened.page.emulate_media(media="print")
        assert opened.undrawn() == []
        widths = opened.page.evaluate(
            "() => [...document.querySelectorAll('.plot .main-svg')].map(part => part.getBoundingClientRect().width)"
        )
        # the width of A4 between its margins
        assert max(widths) <= 688
        assert opened.page.locator("details:not([open])").count() == 0
        paper = opened.page.pdf(format="A4")
        assert paper.startswith(b"%PDF")
        assert opened.complaints == []


def test_after_printing_the_screen_is_as_before(browser: Any, pages: dict[str, Path]) -> None:
    sizes = """() => [...document.querySelectorAll('.plot .main-svg')].map(part => {
        const box = part.getBoundingClientRect(); return [Math.round(box.width), Math.round(box.height)]; })"""
    with visit(browser, pages["bundle"]) as opened:
        opened.wait()
        before = opened.page.evaluate(sizes)
        opened.page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
        assert opened.page.evaluate(sizes) != before
        opened.page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
        opened.page.wait_for_function(
            f"before => JSON.stringify(({sizes})()) === JSON.stringify(before)", arg=before
        )


def test_a_figure_that_fails_or_asks_the_network_is_caught(
    browser: Any, pages: dict[str, Path], tmp_path: Path
) -> None:
    drawn, still = pages["bundle"].read_text("utf-8"), pages["public"].read_text("utf-8")
    outside = still.replace("<body>", '<body><img src="https://example.org/x.png" alt="">', 1)
    changed = {
        "empty": drawn.replace('"figure-1":{"data":[', '"figure-1":{"data":[],"gone":[', 1),
        "broken": drawn.replace('"use strict";', '"use strict"; nothing();', 1),
        "outside": outside,
        "free": outside.replace("default-src 'none'", "default-src *", 1),
    }
    found = {}
    for name, text in changed.items():
        assert text not in (drawn, still)
        file = tmp_path / f"{name}.html"
        file.write_text(text, "utf-8")
        with visit(browser, file) as opened:
            if name == "empty":
                opened.wait()
            found[name] = (opened.undrawn(), bool(opened.complaints), opened.requests)
    assert found["empty"][0] == ["figure-1"]
    assert found["broken"][1]
    assert found["outside"][1]
    assert found["free"][2] == ["https://example.org/x.png"]


@pytest.mark.slow
def test_the_internal_page_of_the_adult_release(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = data_file("adult.csv")
    monkeypatch.setenv("SHOAL_DATA", str(data.parent))
    schema_file = Path(__file__).parents[2] / "examples" / "adult.toml"
    made = shoal.protect(
        data, shoal.Schema.load(schema_file), "tree-dp", epsilon=1, missing="category", seed=1
    )
    measured = shoal.evaluate(data, made, target="income", runs=2, trees=10)
    file = tmp_path / "adult.html"
    made.save(tmp_path / "bundle", file, evaluation=measured, original=data)
    assert file.stat().st_size < MOST_BYTES
    for size in (DESKTOP, PHONE):
        with visit(browser, file, size) as opened:
            opened.wait()
            assert opened.undrawn() == []
            assert opened.complaints == []
            assert opened.requests == []
            assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= size[0]
            assert opened.page.evaluate(STICKING_OUT) == []
            assert opened.page.evaluate(SMALL_TEXT) == []
            assert opened.page.evaluate(PALE_TEXT) == []
            assert opened.page.get_by_role("heading", name="Learning income").count() == 1
