"""Take screenshots of every kind of page, from releases and the documentation, in results/screens/.

    python -m tools.screens [--out results/screens] [--only NAME ...]

It needs Chromium and playwright, which `make test-system` installs, and `site/`, which `make docs` builds. Pages are
shown at desktop and phone widths, light and dark.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Theme = Literal["light", "dark"]
ROOT = Path(__file__).parents[1]
SCREENS = ROOT / "results" / "screens"
DESK, PHONE = 1400, 390
# a screenshot shows the look of a page, not all of its text
_TALLEST = {DESK: 1500, PHONE: 2400}
_SCALE = {DESK: 0.6, PHONE: 0.8}
_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


@dataclass(frozen=True, slots=True)
class Screen:
    """A screenshot of a page.

    Attributes:
        page: the kind of page.
        width: of the window.
        start: where the screenshot begins, as the id of an element; empty for the top.
    """

    page: str
    width: int
    theme: Theme
    start: str = ""

    @property
    def name(self) -> str:
        part = f"-{self.start}" if self.start else ""
        return f"{self.page}{part}-{'desk' if self.width == DESK else 'phone'}-{self.theme}.jpg"


PAGES = {
    "public-report": "The public report: part of every release",
    "internal-report": "The internal report: for the custodian, never published",
    "comparison": "The comparison of a bundle with its original: never published",
    "server": "The page of the query server",
    "docs-index": "The first page of the documentation",
    "docs-tutorial": "A tutorial",
    "docs-guarantee": "The guarantee",
    "docs-director": "What may be said in public",
}
_LOOKS: tuple[tuple[int, Theme], ...] = ((DESK, "light"), (DESK, "dark"), (PHONE, "light"), (PHONE, "dark"))
SCREENS_OF_PAGES = (
    *(
        Screen(page, width, theme)
        for page in PAGES
        for width, theme in _LOOKS
        if width == DESK or theme == "light" or page == "internal-report"
    ),
    Screen("internal-report", DESK, "light", "columns"),
    Screen("internal-report", DESK, "light", "together"),
)


def pages_in(folder: Path) -> dict[str, Path]:
    """Every kind of page as a file: reports of the demo, the server's page, and pages of `site/`."""
    from shoal.cli import run
    from shoal.query.server.app import create_app, html_page
    from shoal.query.server.state import Config
    from shoal.report import bundle_report

    demo = folder / "demo"
    if run(["demo", "--people", "2000", "--out", f"{demo}"]) != 0:
        raise RuntimeError("the demo failed: run 'shoal demo' to see why.")
    made = {
        "comparison": bundle_report(demo / "release", demo / "survey.csv"),
        "server": html_page(create_app(Config(folder)).openapi()),
    }
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
    site = ROOT / "site"
    return {
        "public-report": demo / "release" / "report.html",
        "internal-report": demo / "internal.html",
        "comparison": folder / "comparison.html",
        "server": folder / "server.html",
        "docs-index": site / "index.html",
        "docs-tutorial": site / "tutorials" / "command-line.html",
        "docs-guarantee": site / "guarantee.html",
        "docs-director": site / "director.html",
    }


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=_OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


def photograph(browser: Any, screen: Screen, file: Path, out: Path) -> None:
    """The upper part of a page, or the part that begins at one of its elements."""
    context = browser.new_context(
        viewport={"width": screen.width, "height": 900},
        color_scheme=screen.theme,
        is_mobile=screen.width == PHONE,
        device_scale_factor=_SCALE[screen.width],
    )
    page = context.new_page()
    page.goto(file.as_uri())
    top = 0.0
    if screen.start:
        top = page.locator(f"#{screen.start}").bounding_box()["y"] - 20
    whole = page.evaluate("() => document.documentElement.scrollHeight")
    height = min(whole - top, _TALLEST[screen.width])
    page.screenshot(
        path=out / screen.name,
        type="jpeg",
        quality=68,
        full_page=True,
        clip={"x": 0, "y": top, "width": screen.width, "height": height},
    )
    context.close()


def list_page() -> str:
    """The page that shows all screenshots."""
    lines = [
        "# Screens",
        "",
        "Every kind of page, as a browser shows it: at the width of a desk and of a phone, light and dark. Written by",
        "`python -m tools.screens`; the people in them do not exist.",
    ]
    for page, words in PAGES.items():
        lines += ["", f"## {words}", ""]
        for screen in SCREENS_OF_PAGES:
            if screen.page == page:
                what = f"{words}, {'desk' if screen.width == DESK else 'phone'}, {screen.theme}"
                part = f", from {screen.start}" if screen.start else ""
                width = 640 if screen.width == DESK else 240
                lines.append(f'<img src="{screen.name}" alt="{what}{part}" width="{width}" loading="lazy">')
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Take the screenshots, and write the page that shows them."""
    parser = argparse.ArgumentParser(prog="python -m tools.screens", description=__doc__)
    parser.add_argument("--out", type=Path, default=SCREENS)
    parser.add_argument("--only", nargs="*", choices=list(PAGES), help="only these kinds of page")
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        files = pages_in(Path(folder))
        for screen in SCREENS_OF_PAGES:
            if not asked.only or screen.page in asked.only:
                photograph(browser, screen, files[screen.page], asked.out)
    (asked.out / "index.md").write_text(list_page(), "utf-8")
    size = sum(file.stat().st_size for file in asked.out.iterdir())
    print(f"Written to {asked.out}: {len(list(asked.out.glob('*.jpg')))} pictures, {size / 1e6:.1f} MB.")


if __name__ == "__main__":
    main()
