"""The stylesheet of tokens: text can be read on every surface in both themes, and pages take their colours from it."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from shoal.look import tokens

PACKAGE = Path(__file__).parents[2] / "src" / "shoal"
COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", tokens()
    )
}
SURFACES = ("ground", "paper", "sunk")
WORDS = ("ink", "soft", "accent", "accent-strong", "published", "person", "good", "warn", "bad")
# words on the tint of their own meaning, and on what can be clicked
ON_TINTS = (
    ("good", "good-tint"),
    ("warn", "warn-tint"),
    ("bad", "bad-tint"),
    ("ink", "good-tint"),
    ("ink", "warn-tint"),
    ("ink", "bad-tint"),
    ("ink", "accent-tint"),
    ("soft", "accent-tint"),
    ("accent", "accent-tint"),
    ("on-accent", "accent"),
)


def brightness(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted((brightness(first), brightness(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_words_stand_out_from_every_surface_and_lines_of_controls_too(theme: int) -> None:
    pairs = [*product(WORDS, SURFACES), *ON_TINTS]
    pale = {pair: contrast(*(COLOURS[name][theme] for name in pair)) for pair in pairs}
    assert {pair: ratio for pair, ratio in pale.items() if ratio < 4.5} == {}
    for name in ("edge", "original", "published", "person"):
        assert contrast(COLOURS[name][theme], COLOURS["paper"][theme]) >= 3
    assert contrast("#777777", "#888888") < 1.3


def test_pages_take_their_colours_from_the_tokens() -> None:
    sheets = {
        "report": (PACKAGE / "templates" / "style.css.j2").read_text("utf-8"),
        "server": (PACKAGE / "query" / "server" / "app.py").read_text("utf-8"),
    }
    for name, sheet in sheets.items():
        used = set(re.findall(r"var\((--[a-z0-9-]+)\)", sheet))
        assert used, name
        own = set(re.findall(r"(--[a-z0-9-]+):", sheet))
        assert {one for one in used - own if f"{one}:" not in tokens()} == set(), name
