"""A simulated user of the studio in a real browser: the steps of a walk, and what must never appear."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shoal.cli import run as command
from shoal.io import write
from shoal.mechanisms.registry import load_recipe
from shoal.survey import survey
from tests.support.browser import axe_source
from tools.served_studio import Studio

PHONE, DESKTOP = (390, 844), (1280, 800)
PATIENCE = 240_000
# of the survey: what settles it in a few clicks
FEW = ["age", "sex", "hours per week", "income"]


class Walk:
    """A tab that is open, with everything it complained about and every host it asked."""

    def __init__(self, page: Any, studio: Studio) -> None:
        self.page, self.studio = page, studio
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))

    @property
    def session(self) -> Any:
        return self.studio.sessions.find(self.page.evaluate("() => sessionStorage.getItem('shoal-session')"))

    def begin(self) -> None:
        self.page.goto(self.studio.address)
        self.page.locator("#survey, #show-rows").first.wait_for()

    def survey(self) -> None:
        self.page.locator("#survey").click()
        self.page.locator("#show-rows").wait_for()

    def choose(self, file: Path) -> None:
        self.page.locator("#file").set_input_files(file)
        self.page.locator("#show-rows").or_(self.page.locator("#drop [role=alert]")).first.wait_for()

    def rows(self) -> None:
        """Ask for the rows of the table."""
        self.page.locator("#show-rows").click()
        self.page.locator("#grid tbody tr").first.wait_for()

    def go(self, step: str) -> None:
        self.page.locator(f"#step-{step}").click()
        self.page.locator(f"#step-{step}[aria-current=step]").wait_for()

    def card(self, name: str) -> None:
        box = self.page.locator(f"#card-{name}")
        if not box.is_visible():
            self.page.locator(".folded summary").click()
        if box.is_checked():
            return
        with self.page.expect_response("**/guarantee"):
            box.check()

    def type(self, place: str, value: str) -> None:
        """Type a value and leave the field."""
        # what a page asks for by itself answers to nothing that was typed
        with self.page.expect_response(lambda found: not found.url.endswith(("/expect", "/events"))):
            self.page.locator(place).fill(value)
            self.page.locator(place).press("Tab")

    def run(self, kind: str) -> None:
        """Rehearse or protect, and wait for the end."""
        # how an earlier run ended is not how this one does
        self.page.evaluate("() => document.getElementById('strip').replaceChildren()")
        if kind == "protect":
            self.protect()
        else:
            self.page.locator(f"#{kind}").click()
        self.page.locator("#judge-it").or_(self.page.locator(".strip.bad")).first.wait_for(timeout=PATIENCE)

    def protect(self) -> None:
        """The real run, with what it costs confirmed."""
        self.page.locator("#protect").click()
        self.page.locator("#confirm-run").click()

    def judge(self) -> None:
        self.go("judge")
        self.page.locator("#part > *").first.wait_for(timeout=PATIENCE)

    def download(self, folder: Path) -> Path:
        """The bundle, unpacked."""
        with self.page.expect_download() as found:
            self.page.locator("#download").click()
        archive = folder / "bundle.zip"
        found.value.save_as(archive)
        shutil.unpack_archive(archive, folder)
        return next(path for path in folder.iterdir() if path.is_dir())

    def again(self, folder: Path, name: str) -> tuple[Path, list[dict[str, Any]]]:
        """What Publish offers to copy, run elsewhere: the release, and the recipes of bundle, command and script."""
        told = {one: self.page.locator(f"#text-{one}").inner_text() for one in ("command", "script")}
        bundle = self.download(folder / "found")
        shutil.copy(self.session.source.path, folder / name)
        shutil.copy(bundle / "method.toml", folder)
        recipes = [load_recipe(bundle / "method.toml")]
        with contextlib.chdir(folder):
            assert command(shlex.split(told["command"])[1:]) == 0
            recipes.append(load_recipe(folder / "release" / "method.toml"))
            shutil.rmtree(folder / "release")
            subprocess.run([sys.executable, "-c", told["script"]], check=True)
            recipes.append(load_recipe(folder / "release" / "method.toml"))
        return folder / "release", recipes

    def clean(self) -> None:
        """No error in the console, and nobody else was asked."""
        assert not self.complaints, self.complaints
        assert self.hosts == {f"127.0.0.1:{self.studio.access.port}"}


@contextmanager
def walking(
    browser: Any,
    studio: Studio,
    size: tuple[int, int] = DESKTOP,
    scheme: str = "light",
    *,
    axe: bool = False,
) -> Iterator[Walk]:
    """A tab of its own; `axe` lets the page be looked at by a script that its policy would refuse."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,
        reduced_motion="reduce",
        bypass_csp=axe,
        is_mobile=size == PHONE,
        has_touch=size == PHONE,
    )
    context.set_default_timeout(PATIENCE)
    try:
        walk = Walk(context.new_page(), studio)
        walk.begin()
        yield walk
    finally:
        context.close()


def shut_out(page: Any) -> list[str]:
    """What keeps people out of a screen, as axe-core finds it: serious and critical findings only."""
    page.evaluate(axe_source())
    found = page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:160]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


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
    walk.page.locator("#inspector summary", has_text="The list").click()
    walk.type("#values-1", "female\nmale")
    vouch(walk, range(4))
    walk.page.get_by_text("all complete").wait_for()


def vouch(walk: Walk, numbers: Iterable[int], source: str = "questionnaire") -> None:
    """Say of one column after the other where it is known from."""
    for number in numbers:
        with walk.page.expect_response("**/column/**"):
            walk.page.locator(f"#from-{number}").select_option(source)
