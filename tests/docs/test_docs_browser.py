"""The documentation in a real browser, from a disk: accessible, without network requests, with a working search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import DESKTOP, PHONE, STICKING_OUT, Theme, chromium, visit

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
PAGES = (
    "index",
    "tutorials/command-line",
    "guarantee",
    "analyst",
    "director",
    "coming-from",
    "first-hour",
    "guide/report",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages, built as `make docs` does."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    out = tmp_path_factory.mktemp("site")
    # the reference takes longer than all other pages together, and looks like them
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(out), plugins=[])
    build(config)
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def from_disk(url: str) -> bool:
    return url.startswith(("file:", "data:"))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_nobody_is_kept_out_and_nothing_is_asked_of_the_network(
    page: str, theme: Theme, browser: Any, site: Path
) -> None:
    size = DESKTOP if theme == "light" else PHONE
    with visit(browser, (site / f"{page}.html").as_uri(), size, theme, from_disk) as opened:
        assert opened.barriers() == []
        assert opened.complaints == []
        assert opened.requests == []
        assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= size[0]
        assert opened.page.evaluate(STICKING_OUT) == []


def test_the_instrument_sees_pale_text(browser: Any, site: Path) -> None:
    with visit(browser, (site / "index.html").as_uri(), own=from_disk) as opened:
        opened.page.evaluate("() => { document.querySelector('main p').style.color = '#b0bcc0'; }")
        assert [found.split(":")[0] for found in opened.barriers()] == ["color-contrast"]


def test_search_works_from_a_disk_and_leads_to_the_section(browser: Any, site: Path) -> None:
    from playwright.sync_api import expect

    with visit(browser, (site / "tutorials" / "command-line.html").as_uri(), own=from_disk) as opened:
        opened.page.keyboard.press("/")
        opened.page.keyboard.type("hardly ever used word")
        expect(opened.page.get_by_text("Nothing found.")).to_be_visible()
        opened.page.get_by_role("searchbox").fill("threats query server")
        hit = opened.page.locator("#hits a").first
        expect(hit).to_contain_text("Threats to the query server")
        hit.click()
        expect(opened.page.get_by_role("heading", name="Threats to the query server")).to_be_in_viewport()
        assert opened.complaints == []


def test_the_theme_can_be_chosen(browser: Any, site: Path) -> None:
    with visit(browser, (site / "index.html").as_uri(), own=from_disk) as opened:
        ground = "() => getComputedStyle(document.body).backgroundColor"
        assert opened.page.evaluate(ground) == "rgb(244, 247, 247)"
        opened.page.get_by_role("button", name="Light or dark").click()
        assert opened.page.evaluate(ground) == "rgb(11, 20, 24)"


def test_the_page_for_whoever_signs_is_one_sheet(browser: Any, site: Path) -> None:
    with visit(browser, (site / "director.html").as_uri(), own=from_disk) as opened:
        assert opened.page.pdf(format="A4").count(b"/Type /Page\n") == 1
