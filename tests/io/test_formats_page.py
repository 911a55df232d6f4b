"""docs/guide/files.md lists every format with its endings and what it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.io import FORMATS

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "files.md").read_text("utf-8")
TABLE = [line for line in PAGE.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("name", FORMATS)
def test_the_guide_has_every_format(name: str) -> None:
    format = FORMATS[name]
    row = next(line for line in TABLE if format.title in line.split("|")[1])
    for suffix in format.suffixes:
        packing = next((end for end in (".gz", ".zst") if suffix.endswith(end)), "")
        assert f"`{suffix.removesuffix(packing)}`" in row
        assert not packing or f"`{packing}`" in row
    assert (f"`{format.extra}`" in row) == (format.extra is not None)
