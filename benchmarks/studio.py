"""Response times of the studio in a browser, on a table of 200,000 rows and 12 columns.

    python -m benchmarks.studio

writes results/studio-speed.md. The table is chosen as a CSV file; the clock stops when its rows are painted. A setting
is moved on the guarantee page; the clock runs until the answer arrives, and until the change is painted, including the
pause in which the page waits for the next move. Meanwhile, and during a release, another client checks repeatedly
whether the studio responds. It needs Chromium and playwright, which `make test-system` installs.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from shoal.io import write
from shoal.journal import PLACE
from shoal.survey import survey
from shoal.workers import machine_words
from tools.results import RESULTS, put
from tools.served_studio import Studio, chromium, served

PAGE = RESULTS / "studio-speed.md"
ROWS = 200_000
# what was asked for, at most, in seconds
TABLE, PREVIEW, HEARTBEAT = 3.0, 0.15, 1.0
_MOVES = 12
_OPENED = 3
_RUN = 600_000
_RANGES = {"hours per week": ("0", "168"), "age": ("0", "120")}
_PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))"
# from the move of a slider until its answer is there, and until what it changed was painted
_MOVE = """([name, place]) => new Promise(done => {
    const slider = document.getElementById(`range-${name}`);
    const began = performance.now();
    document.addEventListener('shoal:swapped', () => requestAnimationFrame(() => requestAnimationFrame(() => {
        const asked = performance.getEntriesByType('resource').filter(one => one.name.endsWith('/guarantee')).at(-1);
        done([asked.responseEnd - asked.startTime, performance.now() - began]);
    })), { once: true });
    slider.value = place;
    slider.dispatchEvent(new Event('input', { bubbles: true }));
})"""


@dataclass(frozen=True, slots=True)
class Line:
    """One figure; a limit of None is none that was asked for.

    Attributes:
        used: seconds of a processor that the studio used for it; None where it does more at that time.
    """

    what: str
    seconds: float
    limit: float | None = None
    used: float | None = None

    def __str__(self) -> str:
        limit = "" if self.limit is None else _milliseconds(self.limit)
        held = "" if self.limit is None else "yes" if self.seconds <= self.limit else "no"
        used = "" if self.used is None else _milliseconds(self.used)
        return f"| {self.what} | {_milliseconds(self.seconds)} | {limit} | {held} | {used} |"


@contextmanager
def heartbeats(studio: Studio) -> Iterator[list[float]]:
    """How long the studio takes to answer, asked over and over by somebody else."""
    found: list[float] = []
    over = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=studio.origin, timeout=60) as client:
            client.cookies.set(studio.access.cookie_name, studio.access.cookie)
            while not over.is_set():
                began = time.perf_counter()
                client.get("/ping").raise_for_status()
                found.append(time.perf_counter() - began)
                time.sleep(0.02)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def settle(page: Any, studio: Studio) -> None:
    """Everything that a guarantee needs; how long that takes a person is not measured."""
    name = page.evaluate("() => sessionStorage.getItem('shoal-session')")
    session = studio.sessions.find(name)
    with httpx.Client(base_url=studio.origin, headers={"x-shoal": studio.access.key}, timeout=600) as client:
        client.cookies.set(studio.access.cookie_name, studio.access.cookie)

        def post(path: str, **body: object) -> None:
            client.post(f"/session/{name}/{path}", json=body).raise_for_status()

        for number, attribute in enumerate(session.recipe.schema.attributes):
            if attribute.kind_facts.ranged:
                ends = _RANGES.get(attribute.name, ("0", "400000"))
                post(f"column/{number}", what="range", value=ends)
            else:
                post(f"column/{number}", what="values", value=None)
            post(f"column/{number}", what="source", value="questionnaire")


def opened(page: Any, path: Path) -> tuple[float, float]:
    """Seconds until the rows of a file were painted, and seconds of a processor that the studio used for it."""
    page.locator("#another").click()
    page.locator("#file").wait_for(state="attached")
    began, used = time.perf_counter(), time.process_time()
    page.locator("#file").set_input_files(path)
    page.get_by_role("heading", name=path.name).wait_for(timeout=_RUN)
    page.locator("#show-rows").click()
    page.locator("#grid tbody tr").first.wait_for()
    page.evaluate(_PAINTED)
    return time.perf_counter() - began, time.process_time() - used


def to_the_end(page: Any, rows: int) -> float:
    """Seconds until the last row was painted."""
    began = time.perf_counter()
    page.locator("#grid").evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
    page.locator("#grid tbody th", has_text=f"{rows:,}").wait_for()
    page.evaluate(_PAINTED)
    return time.perf_counter() - began


def moved(page: Any, card: str) -> Iterator[Line]:
    """A slider of a card is moved to and fro."""
    if not page.locator(f"#card-{card}").is_checked():
        with page.expect_response("**/guarantee"):
            page.locator(f"#card-{card}").check()
    name = "k" if card == "k-anonymity" else "epsilon"
    page.locator(f"#range-{name}").wait_for()
    page.evaluate(_PAINTED)
    times = [page.evaluate(_MOVE, [name, 300 + 37 * move]) for move in range(_MOVES)]
    answers, painted = ([pair[side] / 1000 for pair in times] for side in (0, 1))
    yield Line(
        f"preview of a setting, {card}: median of {_MOVES} answers", statistics.median(answers), PREVIEW
    )
    yield Line(f"preview of a setting, {card}: the slowest answer", max(answers), PREVIEW)
    yield Line(
        f"preview of a setting, {card}: painted, with the page's pause of 60 ms", statistics.median(painted)
    )


def measure(rows: int) -> Iterator[Line]:
    path = shutil.which("chromium")
    if path is None:
        sys.exit("Chromium is not installed: 'make test-system' does that with root's rights.")
    with tempfile.TemporaryDirectory() as aside, served() as studio, chromium(path) as browser:
        os.environ[PLACE] = str(Path(aside) / "journal.jsonl")
        file = Path(aside) / "people.csv"
        table = survey(rows).drop_columns(["savings"])
        write(table.append_column("rent2", table["rent"]).append_column("tax2", table["tax"]), file)
        page = browser.new_page(viewport={"width": 1360, "height": 860})
        page.goto(studio.address)
        # what is loaded once, with the first table of a day, is not what is measured
        page.locator("#survey").click()
        page.locator("#show-rows").click()
        page.locator("#grid tbody tr").first.wait_for()
        with heartbeats(studio) as beats:
            times = [opened(page, file) for _ in range(_OPENED)]
        seconds, used = min(times)
        what = f"table visible, painted in the browser: quickest of {_OPENED} ({_megabytes(file)})"
        yield Line(what, seconds, TABLE, used)
        yield Line(f"table visible: slowest of {_OPENED}", *max(times)[:1])
        yield Line("worst heartbeat while the table is copied and read", max(beats), HEARTBEAT)
        yield Line("scrolled to the last row, painted", to_the_end(page, rows))
        settle(page, studio)
        page.locator("#step-guarantee").click()
        page.locator("#card-dp").wait_for()
        for card in ("dp", "given-partition", "k-anonymity"):
            yield from moved(page, card)
        with page.expect_response("**/guarantee"):
            page.locator("#card-given-partition").check()
        page.locator("#method").wait_for()
        with page.expect_response("**/guarantee"):
            page.locator("#method").select_option("ranking-dp")
        page.locator("#protect:enabled").wait_for()
        with heartbeats(studio) as beats:
            began = time.perf_counter()
            page.locator("#protect").click()
            page.locator("#confirm-run").click()
            page.locator("#judge-it").or_(page.locator(".strip.bad")).first.wait_for(timeout=_RUN)
            took = time.perf_counter() - began
        assert page.locator(".strip.bad").count() == 0, page.locator(".strip.bad").inner_text()
        yield Line(
            f"worst of {len(beats):,} heartbeats while a release is made ({took:.0f} s)",
            max(beats),
            HEARTBEAT,
        )


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms"


def _megabytes(file: Path) -> str:
    return f"{file.stat().st_size / 1e6:.0f} MB of CSV"


def report(rows: int) -> str:
    lines = []
    for line in measure(rows):
        print(line, flush=True)
        lines.append(str(line))
    return "\n".join(
        [
            "# Speed of the studio",
            "",
            f"A table of {rows:,} rows and 12 columns in headless Chromium. Written by `python -m benchmarks.studio` "
            f"on {datetime.date.today()}, {machine_words()}. Times are those of a clock, and depend on what else the "
            f"machine does: meanwhile {os.getloadavg()[0]:.0f} processes wanted one of its processors. Beside them is "
            "what the studio used of a processor.",
            "",
            "| what | measured | at most | held | of a processor |",
            "| --- | ---: | ---: | --- | ---: |",
            *lines,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--out", type=Path, default=PAGE)
    arguments = parser.parse_args()
    put(arguments.out, report(arguments.rows))


if __name__ == "__main__":
    main()
