"""The picture of the README: the demo comes in, a picture of its release and of its report leaves.

python -m benchmarks.picture [--out docs/figures/release-and-report.png]

It needs Chromium and playwright, which `make test-system` installs.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.cli import run
from shoal.io import read

PICTURE = Path(__file__).parents[1] / "docs" / "figures" / "release-and-report.png"
WIDTH = 1350
PAGE = (860, 622)
COLUMNS = ("income", "rent")
# what the axes show, and how far apart their ticks are; the few above are left out of the picture
ENDS = (80_000, 16_000)
TICKS = (20_000, 4_000)
FRAME = (380, 250)
MOST_DOTS = 1500
_LEFT, _BELOW = 36, 34
_STYLE = """
body { margin: 0; padding: 14px; display: flex; gap: 18px; font: 13px "DejaVu Sans", sans-serif; color: #1b2733; }
h2 { font-size: 15px; margin: 4px 0 10px; } svg { display: block; margin-bottom: 12px; }
text { font-size: 12px; fill: #556472; } figure { margin: 0; }
img { display: block; border: 1px solid #9aa7b3; border-radius: 6px; }
"""


def dots(table: pa.Table) -> NDArray[np.float64]:
    """The different points of two columns, and how often each one comes."""
    pairs = Counter(zip(*(table[name].to_pylist() for name in COLUMNS), strict=True))
    return np.array([(*pair, count) for pair, count in pairs.items()], dtype=np.float64)


def scatter(points: NDArray[np.float64], colour: str) -> str:
    """Points as a drawing; the area of a dot says how many rows it stands for."""
    width, height = FRAME
    shown = points[: min(len(points), MOST_DOTS)]
    across, up = width * shown[:, 0] / ENDS[0], height * shown[:, 1] / ENDS[1]
    sizes = np.maximum(1.2, 0.62 * np.sqrt(shown[:, 2]))
    circles = "".join(
        f'<circle cx="{x:.1f}" cy="{height - y:.1f}" r="{size:.1f}"/>'
        for x, y, size in zip(across, up, sizes, strict=True)
        if x <= width and y <= height
    )
    below = "".join(
        _text(width * value / ENDS[0], height + 16, "middle", f"{value // 1000}k")
        for value in range(0, ENDS[0] + 1, TICKS[0])
    )
    beside = "".join(
        _text(-8, height - height * value / ENDS[1] + 4, "end", f"{value // 1000}k")
        for value in range(0, ENDS[1] + 1, TICKS[1])
    )
    names = _text(width, height - 8, "end", COLUMNS[0]) + _text(8, 10, "start", COLUMNS[1])
    size = (width + _LEFT + 14, height + _BELOW)
    return (
        f'<svg width="{size[0]}" height="{size[1]}" viewBox="{-_LEFT} -6 {size[0]} {size[1]}">'
        f'<path d="M0 0V{height}H{width}" fill="none" stroke="#9aa7b3"/>'
        f'<g fill="{colour}" fill-opacity=".5">{circles}</g>{below}{beside}{names}</svg>'
    )


def _text(x: float, y: float, anchor: str, words: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(words)}</text>'


def poster(original: pa.Table, released: pa.Table, report: bytes) -> str:
    """The page that is photographed: both tables beside the first screen of the report."""
    left = "".join(
        f"<h2>{escape(title)}</h2>{scatter(dots(table), colour)}"
        for title, colour, table in (
            (f"survey.csv: {original.num_rows:,} people, made up", "#b4682b", original),
            ("release/data.csv: what is published", "#16697a", released),
        )
    )
    image = base64.b64encode(report).decode()
    return (
        f"<!doctype html><meta charset=utf-8><style>{_STYLE}</style><div>{left}</div>"
        "<figure><h2>release/report.html: what is promised</h2>"
        f'<img alt="" src="data:image/png;base64,{image}"></figure>'
    )


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        try:
            yield browser
        finally:
            browser.close()


def draw(out: Path, people: int = 5000) -> None:
    """Run the demo, look at its report, and write the picture."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        demo = Path(folder) / "demo"
        if run(["demo", "--people", f"{people}", "--out", f"{demo}"]) != 0:
            raise RuntimeError("the demo failed: run 'shoal demo' to see why.")
        page = browser.new_page(viewport={"width": PAGE[0], "height": PAGE[1]})
        page.goto((demo / "release" / "report.html").as_uri())
        report = page.screenshot()
        tables = [read(demo / name).frame.to_arrow() for name in ("survey.csv", "release/data.csv")]
        out.parent.mkdir(parents=True, exist_ok=True)
        # a page of its own: the report forbids pictures
        sheet = browser.new_page(viewport={"width": WIDTH, "height": 400})
        sheet.set_content(poster(*tables, report))
        sheet.screenshot(path=out, full_page=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=PICTURE)
    arguments = parser.parse_args()
    draw(arguments.out)
    print(f"Written to {arguments.out}.")


if __name__ == "__main__":
    main()
