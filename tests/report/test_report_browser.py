"""The pages in a real browser: all figures drawn, no network requests, usable on phones, on paper and in dark mode."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.report import bundle_report, internal_report, public_report
from tests.conftest import data_file
from tests.support.browser import DESKTOP, PHONE, STICKING_OUT, Size, Theme, Visit, chromium, visit
from tests.support.samples import ODD_NAMES

pytestmark = pytest.mark.system

MOST_BYTES = 5_000_000
# how much a figure is of its page: it has an area, and at least one mark in it
UNDRAWN = """() => [...document.querySelectorAll('svg.plot')].filter(place => {
    const box = place.getBoundingClientRect();
    const folded = !place.checkVisibility();
    return place.querySelectorAll('path').length === 0 || (!folded && (box.width < 150 || box.height < 40));
}).map(place => place.getAttribute('aria-label'))"""
SMALL_TEXT = """() => [...document.querySelectorAll('body *')].filter(part =>
    [...part.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())
    && part.checkVisibility() && part.tagName !== 'STYLE'
    && parseFloat(getComputedStyle(part).fontSize)
       * (part.closest('svg') ? part.closest('svg').getBoundingClientRect().width / 360 : 1) < 8
).map(part => part.tagName + ' ' + part.textContent.slice(0, 20))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


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
                {"name": names[1], "lo": 0.0, "hi": 12_000.0},
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
Open = Callable[[str, Size, Theme], Visit]


@pytest.fixture(scope="module")
def look(browser: Any, pages: dict[str, Path]) -> Iterator[Open]:
    """Pages that stay open, to be looked at again."""
    seen: dict[tuple[str, Size, Theme], Visit] = {}
    with ExitStack() as stack:

        def find(sort: str, size: Size = DESKTOP, theme: Theme = "light") -> Visit:
            if (sort, size, theme) not in seen:
                opened = stack.enter_context(visit(browser, pages[sort].as_uri(), size, theme))
                seen[sort, size, theme] = opened
            return seen[sort, size, theme]

        yield find


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("sort", SORTS)
def test_every_figure_is_drawn_without_error_and_without_a_network(sort: str, size: Size, look: Open) -> None:
    opened = look(sort, size, "light")
    assert opened.page.evaluate(UNDRAWN) == []
    assert opened.complaints == []
    assert opened.requests == []
    figures = opened.page.locator("svg.plot").count()
    assert figures >= {"public": 5, "internal": 20, "bundle": 12}[sort]


@pytest.mark.parametrize("sort", SORTS)
def test_a_phone_shows_the_page_without_scrolling_sideways(sort: str, look: Open) -> None:
    page = look(sort, PHONE, "light").page
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE[0]
    assert page.evaluate(STICKING_OUT) == []
    assert page.evaluate(SMALL_TEXT) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sort", SORTS)
def test_nobody_is_kept_out_in_either_theme(sort: str, theme: Theme, look: Open) -> None:
    opened = look(sort, DESKTOP, theme)
    # what is folded counts, too
    opened.page.evaluate("() => document.querySelectorAll('details').forEach(part => { part.open = true; })")
    assert opened.barriers() == []
    ground = opened.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(244, 247, 247)", "dark": "rgb(11, 20, 24)"}[theme]
    paint = "colour => { document.querySelector('.cards span').style.color = colour; }"
    opened.page.evaluate(paint, {"light": "#8a979c", "dark": "#4a5a60"}[theme])
    assert [found.split(":")[0] for found in opened.barriers()] == ["color-contrast"]
    opened.page.evaluate(paint, "")


@pytest.mark.parametrize("sort", SORTS)
def test_first_screen_holds_verdict_guarantee_and_what_is_not_guaranteed(sort: str, look: Open) -> None:
    page = look(sort, DESKTOP, "light").page
    places = [
        page.locator("#verdict"),
        page.locator(".guarantee"),
        page.get_by_role("heading", name="What is not guaranteed"),
        page.locator(".cards"),
    ]
    tops = [place.bounding_box()["y"] for place in places]
    assert max(tops) < DESKTOP[1]
    assert tops[0] == min(tops)
    assert tops[3] == max(tops)


def test_the_contents_stay_in_sight(look: Open) -> None:
    for size in (DESKTOP, PHONE):
        page = look("internal", size, "light").page
        page.evaluate("() => window.scrollTo(0, 2000)")
        box = page.get_by_role("navigation", name="Contents").bounding_box()
        assert -1 <= box["y"] < 100
        page.evaluate("() => window.scrollTo(0, 0)")


@pytest.mark.parametrize("sort", SORTS)
def test_figures_have_names_and_headings_are_in_order(sort: str, look: Open) -> None:
    page = look(sort, DESKTOP, "light").page
    assert page.locator("svg.plot:not([aria-label])").count() == 0
    assert page.locator("h1").count() == 1
    levels = page.evaluate("() => [...document.querySelectorAll('h1, h2, h3')].map(part => +part.tagName[1])")
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    # colour is not the only carrier
    assert page.locator(".light").first.inner_text().lower().startswith(("green", "amber", "red"))


def test_names_with_markup_are_shown_as_text(look: Open) -> None:
    page = look("internal", DESKTOP, "light").page
    assert page.get_by_role("heading", name=ODD_NAMES[2], exact=True).count() == 1
    assert page.locator("svg b, svg a").count() == 0
    assert page.locator("svg text", has_text="<b>net</b>").count() > 0


def test_paper_holds_what_is_folded_and_no_page_is_wide(browser: Any, pages: dict[str, Path]) -> None:
    with visit(browser, pages["internal"].as_uri(), (688, 900), "dark") as opened:
        folded = opened.page.locator("details:not([open]) svg.plot").first
        assert not folded.is_visible()
        opened.page.emulate_media(media="print")
        assert folded.is_visible()
        assert folded.bounding_box()["height"] > 40
        # paper is light, whatever the screen is
        assert opened.page.evaluate("() => getComputedStyle(document.body).color") == "rgb(13, 39, 48)"
        assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= 688
        assert opened.page.pdf(format="A4").startswith(b"%PDF")
        assert opened.complaints == []


def test_a_figure_that_fails_or_asks_the_network_is_caught(
    browser: Any, pages: dict[str, Path], tmp_path: Path
) -> None:
    page = pages["public"].read_text("utf-8")
    outside = page.replace("<body>", '<body><img src="https://example.org/x.png" alt="">', 1)
    changed = {
        "empty": page.replace('<svg class="plot"', '<svg class="plot"></svg><svg class="gone"', 1),
        "outside": outside,
        "free": outside.replace("default-src 'none'", "default-src *", 1),
    }
    found = {}
    for name, text in changed.items():
        assert text != page
        file = tmp_path / f"{name}.html"
        file.write_text(text, "utf-8")
        with visit(browser, file.as_uri()) as opened:
            found[name] = (opened.page.evaluate(UNDRAWN), bool(opened.complaints), opened.requests)
    assert len(found["empty"][0]) == 1
    assert found["outside"][1]
    assert found["free"][2] == ["https://example.org/x.png"]


@pytest.mark.slow
def test_the_internal_page_of_the_adult_release(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = data_file("adult.csv")
    schema_file = Path(__file__).parents[2] / "examples" / "adult.toml"
    made = shoal.protect(
        data, shoal.Schema.load(schema_file), "tree-dp", epsilon=1, missing="category", seed=1
    )
    measured = shoal.evaluate(data, made, target="income", runs=2, trees=10)
    file = tmp_path / "adult.html"
    made.save(tmp_path / "bundle", file, evaluation=measured, original=data)
    assert file.stat().st_size < MOST_BYTES
    for size, theme in ((DESKTOP, "light"), (PHONE, "dark")):
        with visit(browser, file.as_uri(), size, theme) as opened:
            assert opened.page.evaluate(UNDRAWN) == []
            assert opened.complaints == []
            assert opened.requests == []
            assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= size[0]
            assert opened.page.evaluate(STICKING_OUT) == []
            assert opened.page.evaluate(SMALL_TEXT) == []
            assert opened.barriers() == []
            assert opened.page.get_by_role("heading", name="Predicting income").count() == 1
            assert opened.page.get_by_role("heading", name="Preserved relations").count() == 1
