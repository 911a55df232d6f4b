"""Picture of the README: present, small, near the top of the page, and drawn by its command."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shoal
from benchmarks import picture
from tests.support.browser import chromium_path

ROOT = Path(__file__).parents[2]
MOST_BYTES = 300_000


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_picture_is_small_and_shown_near_the_top(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    shown = re.findall(r"!\[[^\]]{20,}\]\(([^)]*release-and-report\.png)\)", text)
    assert len(shown) == 1
    assert ((ROOT / page).parent / shown[0]).resolve() == picture.PICTURE.resolve()
    assert text.index(shown[0]) < 1500
    assert "python -m benchmarks.picture" in text
    content = picture.PICTURE.read_bytes()
    assert len(content) < MOST_BYTES
    assert size_of(content)[0] == picture.WIDTH


def test_equal_rows_are_one_dot_and_dots_outside_are_left_out() -> None:
    table = pa.table({"income": [10_000, 10_000, 20_000, 90_000], "rent": [4_000, 4_000, 8_000, 4_000]})
    found = picture.dots(table)
    assert sorted(map(tuple, found.tolist())) == [
        (10_000.0, 4_000.0, 2.0),
        (20_000.0, 8_000.0, 1.0),
        (90_000.0, 4_000.0, 1.0),
    ]
    drawn = picture.scatter(found, "original")
    width, height = picture.FRAME
    assert drawn.count("<circle") == 2
    assert f'<circle cx="{width / 4:.1f}" cy="{height / 2:.1f}"' in drawn


def test_the_poster_holds_both_tables_the_guarantee_and_the_verdict() -> None:
    table = pa.table({"income": np.arange(50) * 1000, "rent": np.arange(50) * 100})
    domains = {"income": (0, 100_000), "rent": (0, 20_000)}
    made = shoal.protect(table, method="ranking-dp", epsilon=1, k=5, domains=domains)
    page = picture.poster(table, made.data, made.statement.to_dict())
    assert "50 synthetic people" in page
    assert page.count("<svg") == 2
    assert "Publish with these limits" in page
    assert made.statement.sentence in page
    assert "http" not in page


@pytest.mark.system
def test_the_command_draws_the_picture(tmp_path: Path) -> None:
    chromium_path()
    out = tmp_path / "figures" / "picture.png"
    picture.draw(out, people=500)
    content = out.read_bytes()
    width, height = size_of(content)
    assert width == picture.WIDTH
    # the drawings are on it as a whole
    assert height > picture.FRAME[1]
    assert len(content) > 30_000
