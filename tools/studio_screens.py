"""Take screenshots of Shoal Studio: every step, at desktop and phone widths, light and dark.

python -m tools.studio_screens
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shoal.journal import PLACE
from tools.results import DOCS, RESULTS
from tools.served_studio import Studio, chromium, served

SCREENS, SHOWN = RESULTS / "studio", DOCS / "figures" / "studio"
# format of the tutorial's screenshots: large, light
_TUTORIAL = "desk-light-"
_IN_TUTORIAL = ("1-start", "2-columns", "3-guarantee", "4-judge", "4-person", "5-publish")
SIZES = {"desk": (1280, 800), "phone": (390, 844)}
LOOKS = ("light", "dark")
_PATIENCE = 180_000
# the subject of a screenshot, where that is not the top of its page
_PLACES = {"4-person": "#person"}


def walk(page: Any) -> Iterator[str]:
    """The demo survey through all five steps; yields a name wherever a screenshot is useful."""
    from playwright.sync_api import expect

    page.get_by_role("heading", name="Publish the table.").wait_for()
    yield "1-start"
    page.locator("#survey").click()
    page.locator("#show-rows").click()
    page.locator("#grid tbody tr").first.wait_for()
    yield "1-data"
    page.locator("#continue").click()
    page.get_by_role("heading", name="What is in each column?").wait_for()
    page.locator("#look").click()
    page.locator("#look").wait_for(state="detached")
    page.locator("#name-7").click()
    page.get_by_role("heading", name="income").wait_for()
    yield "2-columns"
    page.locator("#continue").click()
    page.get_by_role("heading", name="Which guarantee do you want to give?").wait_for()
    page.locator("#card-given-partition").check()
    page.locator("#fix-k").click()
    expect(page.locator("#fix-k")).to_have_count(0)
    expect(page.locator("#expected")).to_contain_text("Expected", timeout=_PATIENCE)
    yield "3-guarantee"
    page.locator("#rehearse").click()
    page.locator("#cancel").wait_for(timeout=_PATIENCE)
    page.locator("#judge-it").wait_for(timeout=_PATIENCE)
    page.locator("#protect").click()
    page.locator("#confirm-run").click()
    page.locator("#cancel").wait_for(timeout=_PATIENCE)
    page.locator("#judge-it").click(timeout=_PATIENCE)
    page.locator("#part .plot, #part .pairs").first.wait_for()
    yield "4-judge"
    page.locator("#exposed").click()
    page.get_by_text("The most exposed of").wait_for()
    yield "4-person"
    page.locator("#step-guarantee").click()
    page.locator("#range-epsilon").focus()
    for _ in range(3):
        page.keyboard.press("PageUp")
    page.locator("#first-settings").wait_for()
    yield "3-tainted"
    page.locator("#first-settings").click()
    page.locator("#first-settings").wait_for(state="detached")
    page.locator("#step-publish").click()
    page.get_by_role("heading", name="Ready to publish").wait_for()
    yield "5-publish"


def shots(
    studio: Studio, browser: Any, folder: Path, size: str, look: str, *, whole: bool = False
) -> list[Path]:
    """All screens of one size in one theme; with `whole` down to the end of each page."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=look, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(studio.address)
    made = []
    for name in walk(page):
        path = folder / f"{size}-{look}-{name}.png"
        page.mouse.move(0, 0)
        page.evaluate("() => { document.activeElement?.blur(); scrollTo(0, 0); }")
        if name in _PLACES:
            page.locator(_PLACES[name]).evaluate("place => place.scrollIntoView()")
        page.screenshot(path=path, full_page=whole)
        made.append(path)
    context.close()
    return made


def main() -> None:
    path = shutil.which("chromium")
    if path is None:
        sys.exit("Chromium is not installed: 'make test-system' does that with root's rights.")
    with tempfile.TemporaryDirectory() as aside:
        with chromium(path) as browser:
            for size in SIZES:
                for look in LOOKS:
                    # a journal remembers what was shown, so every walk has a separate one
                    os.environ[PLACE] = str(Path(aside) / size / look / "journal.jsonl")
                    with served() as studio:
                        shots(studio, browser, Path(aside), size, look)
        for folder in (SCREENS, SHOWN):
            folder.mkdir(parents=True, exist_ok=True)
            for old in folder.glob("*.png"):
                old.unlink()
        for made in sorted(Path(aside).glob("*.png")):
            step = made.stem.removeprefix(_TUTORIAL)
            shutil.copy(made, SHOWN / f"{step}.png" if step in _IN_TUTORIAL else SCREENS / made.name)
    total = sum(file.stat().st_size for folder in (SCREENS, SHOWN) for file in folder.glob("*.png"))
    print(f"{total / 1e6:.1f} MB in {SCREENS} and {SHOWN}")


if __name__ == "__main__":
    main()
