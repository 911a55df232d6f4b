"""Pages in a real browser without a network: their errors, their requests, and accessibility problems."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

import pytest

Size = tuple[int, int]
Theme = Literal["light", "dark"]
PHONE, DESKTOP = (390, 844), (1400, 900)
PATIENCE = 240_000
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]

# elements that stick out of the window; what scrolls by itself may
STICKING_OUT = """() => [...document.querySelectorAll('body *')].filter(part => {
    const box = part.getBoundingClientRect();
    if (box.right <= innerWidth + 1 || !box.width || part.closest('svg')) { return false; }
    for (let around = part; around; around = around.parentElement) {
        const style = getComputedStyle(around);
        if (['auto', 'scroll', 'hidden'].includes(style.overflowX) || style.position === 'absolute') { return false; }
    }
    return true;
}).map(part => part.tagName + '.' + part.className)"""


def chromium_path() -> str:
    found = shutil.which("chromium")
    if found is None:
        message = "Chromium is not installed: 'make test-system' does that with root's rights"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = chromium_path()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        try:
            yield opened
        finally:
            opened.close()


class Visit:
    """A page that is open, with everything it complained about and asked for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def barriers(self) -> list[str]:
        """Serious and critical findings of axe-core: the rule, and the first place."""
        self.page.evaluate(axe_source())
        # axe would fetch stylesheets again, which a page from a disk may not
        found = self.page.evaluate("() => axe.run(document, {resultTypes: ['violations'], preload: false})")
        return [
            f"{rule['id']}: {rule['nodes'][0]['html'][:120]}"
            for rule in found["violations"]
            if rule["impact"] in ("serious", "critical")
        ]


@lru_cache(maxsize=1)
def axe_source() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


@contextmanager
def visit(
    browser: Any,
    address: str,
    size: Size = DESKTOP,
    theme: Theme = "light",
    own: Callable[[str], bool] | None = None,
) -> Iterator[Visit]:
    """Open a page without a network; requests other than for what is its own are noted and refused."""
    mine = own or (lambda url: url == address)
    phone = size == PHONE
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=theme,
        offline=True,
        is_mobile=phone,
        has_touch=phone,
    )
    # a machine with other work may take its time
    context.set_default_timeout(PATIENCE)
    opened = Visit(context.new_page())

    def note(route: Any) -> None:
        if mine(route.request.url):
            route.continue_()
            return
        opened.requests.append(route.request.url)
        route.abort()

    context.route("**/*", note)
    opened.page.on("console", lambda message: opened.complaints.append(f"{message.type}: {message.text}"))
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.goto(address)
    try:
        yield opened
    finally:
        context.close()
