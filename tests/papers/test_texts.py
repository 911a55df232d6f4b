"""Rows of text and the code that fills them belong together: no row without code, no gap without a value."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from papers import texts

FOLDER = Path(texts.__file__).parent
FILES = sorted(
    path.relative_to(FOLDER).with_suffix("").as_posix()
    for path in FOLDER.rglob("*.toml")
    if "printed" not in path.stem
)


def code_of(file: str) -> str:
    """The modules that take their words from a file."""
    sources = [path.read_text("utf-8") for path in sorted(FOLDER.rglob("*.py"))]
    return "\n".join(source for source in sources if f'"{file}"' in source)


@pytest.mark.parametrize("file", FILES)
def test_every_row_is_used_and_every_use_has_a_row(file: str) -> None:
    rows, code = texts.rows(file), code_of(file)
    for table, call in (("claims", "judge"), ("numbers", "number"), ("sections", "heading")):
        used = set(re.findall(rf'\b{call}\(\s*"([^"]+)"', code))
        assert set(rows.get(table, {})) == used, table


@pytest.mark.parametrize("file", FILES)
def test_rows_are_whole(file: str) -> None:
    rows = texts.rows(file)
    assert rows.keys() <= {"sections", "numbers", "claims", "errata", "summaries", "untested"}
    assert all(row.keys() <= {"where", "said", "found"} for row in rows.get("claims", {}).values())
    assert all(row["said"] for row in rows.get("claims", {}).values())


def test_a_statement_counts_its_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"where": "section {}", "said": "more is better", "found": "{hits} cases, {:.1f} at most"}
    monkeypatch.setattr(texts, "rows", lambda file: {"claims": {"more": row}})
    claim = texts.judge("any", "more", (size > 1 for size in (1, 2, 3)), 4, 2.5)
    assert (claim.where, claim.found) == ("section 4", "2 of 3 cases, 2.5 at most")
    assert claim.verdict == "holds partly"
    assert texts.judge("any", "more", False, 4, 2.5).verdict == "fails"
    for values in ((4,), (4, 2.5, 1)):
        with pytest.raises(IndexError):
            texts.judge("any", "more", True, *values)
