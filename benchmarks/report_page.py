"""Size of the internal report of Adult, and the time until a browser can show and scroll it.

python -m benchmarks.report_page [--method NAME]

It needs Chromium and playwright, which `make test-system` installs.
Nothing is asserted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import shoal
from benchmarks.picture import chromium
from tools.public_data import data_folder

ROOT = Path(__file__).parents[1]
# from the start of the navigation until the page is laid out, and until a second frame was painted after scrolling
_READY = """() => new Promise(done => {
    window.scrollTo(0, document.documentElement.scrollHeight);
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
})"""


def measure(file: Path, times: int = 5) -> tuple[float, float]:
    """Milliseconds until the page is loaded and until it answers to scrolling: the medians."""
    loaded, ready = [], []
    with chromium() as browser:
        for _ in range(times):
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            page.goto(file.as_uri())
            loaded.append(
                page.evaluate("() => performance.timing.loadEventEnd - performance.timing.navigationStart")
            )
            ready.append(page.evaluate(_READY))
            page.close()
    return sorted(loaded)[times // 2], sorted(ready)[times // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="tree-dp")
    asked = parser.parse_args()
    data = data_folder() / "adult.csv"
    schema = shoal.Schema.load(ROOT / "examples" / "adult.toml")
    made = shoal.protect(data, schema, asked.method, epsilon=1, missing="category")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "adult.html"
        start = time.perf_counter()
        made.save(Path(folder) / "bundle", file, original=data)
        drawn = time.perf_counter() - start
        loaded, ready = measure(file)
        print(f"| page | MB | written in s | loaded in ms | answers in ms |\n{'| --- ' * 5}|")
        print(
            f"| internal report of Adult | {file.stat().st_size / 1e6:.2f} | {drawn:.1f} | {loaded:.0f} | {ready:.0f} |"
        )


if __name__ == "__main__":
    main()
