"""Picture of the README: original and released table of the demo, with guarantee and verdict.

python -m benchmarks.picture [--out docs/figures/release-and-report.png]

It needs Chromium and playwright, which `make test-system` installs.
"""

from __future__ import annotations

import argparse
import json
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
from shoal.evaluation.assessment import verdict
from shoal.io import read
from shoal.look import tokens
from shoal.report.words import explanation

PICTURE = Path(__file__).parents[1] / "docs" / "figures" / "release-and-report.png"
WIDTH = 1350
COLUMNS = ("income", "rent")
# what the axes show, and how far apart their ticks are; the few above are left out of the picture
ENDS = (80_000, 16_000)
TICKS = (20_000, 4_000)
FRAME = (360, 300)
MOST_DOTS = 1500
_LEFT, _BELOW = 36, 34
_STYLE = """
body { margin: 0; padding: 22px; display: grid; grid-template-columns: auto auto 1fr; gap: 18px;
  font: 15px/1.45 var(--font); color: var(--ink); background: var(--ground); }
section { background: var(--paper); border: 1px solid var(--line); border-radius: var(--radius); padding: 16px 18px; }
h2 { font-size: 17px; margin: 0; } p { margin: 0 0 8px; } .soft { color: var(--soft); font-size: 14px; }
svg { display: block; } text { font-size: 12px; fill: var(--soft); } path { fill: none; stroke: var(--edge); }
.original { fill: var(--original); } .released { fill: var(--published); }
aside { display: grid; gap: 18px; align-content: stretch; }
.verdict { border-left: 7px solid; } .verdict h2 { font-size: 24px; } .guarantee { font-size: 16px; font-weight: 650; }
small { color: var(--soft); font-size: 13px; }
"""
_LAMPS = {
    "publish": "--lamp-good",
    "publish with these limits": "--lamp-warn",
    "do not publish": "--lamp-bad",
}


def dots(table: pa.Table) -> NDArray[np.float64]:
    """The distinct points of two columns with their frequencies."""
    pairs = Counter(zip(*(table[name].to_pylist() for name in COLUMNS), strict=True))
    return np.array([(*pair, count) for pair, count in pairs.items()], dtype=np.float64)


def scatter(points: NDArray[np.float64], kind: str) -> str:
    """A scatter plot; the area of a dot is proportional to its number of rows."""
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
        f'<path d="M0 0V{height}H{width}"/>'
        f'<g class="{kind}" fill-opacity=".55">{circles}</g>{below}{beside}{names}</svg>'
    )


def _text(x: float, y: float, anchor: str, words: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(words)}</text>'


def poster(original: pa.Table, released: pa.Table, statement: dict[str, Any]) -> str:
    """The page that is photographed: both tables, the guarantee and the verdict, as the statement has them."""
    explained, found = explanation(statement), verdict(statement)
    tables = "".join(
        f"<section><h2>{title}</h2><p class=soft>{escape(words)}</p>{scatter(dots(table), kind)}</section>"
        for title, words, kind, table in (
            ("Before", f"survey.csv: {original.num_rows:,} synthetic people", "original", original),
            ("After", f"release/data.csv, by {statement['method']}", "released", released),
        )
    )
    reasons = "".join(f"<p class=soft>{escape(reason.text)}</p>" for reason in found.public.reasons[:1])
    return (
        f"<!doctype html><html data-theme=light><meta charset=utf-8><style>{tokens()}{_STYLE}</style>{tables}<aside>"
        f'<section class=verdict style="border-left-color: var({_LAMPS[found.decision]})"><small>Verdict</small>'
        f"<h2>{escape(found.decision[0].upper() + found.decision[1:])}</h2>{reasons}</section>"
        f"<section><small>Guarantee</small><p class=guarantee>{escape(explained.sentence)}</p>"
        f"<p class=soft>{escape(statement['sentence'])}</p></section></aside>"
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
    """Run the demo and write the picture."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        demo = Path(folder) / "demo"
        if run(["demo", "--people", f"{people}", "--out", f"{demo}"]) != 0:
            raise RuntimeError("the demo failed: run 'shoal demo' to see why.")
        statement = json.loads((demo / "release" / "statement.json").read_text("utf-8"))
        before, after = (read(demo / name).frame.to_arrow() for name in ("survey.csv", "release/data.csv"))
        out.parent.mkdir(parents=True, exist_ok=True)
        sheet = browser.new_page(viewport={"width": WIDTH, "height": 300})
        sheet.set_content(poster(before, after, statement))
        sheet.screenshot(path=out, full_page=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=PICTURE)
    arguments = parser.parse_args()
    draw(arguments.out)
    print(f"Written to {arguments.out}.")


if __name__ == "__main__":
    main()
