"""The documentation is whole: its table of methods is the library's, its links lead somewhere, no name is left out."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest
from doc_blocks import PAGES, ROOT, name_of
from doc_blocks import prose as without_blocks

import shoal


def readme_rows() -> list[list[str]]:
    section = (
        (ROOT / "README.md").read_text("utf-8").split("## Methods and their claims")[1].split("\n## ")[0]
    )
    return [
        [cell.strip(" `") for cell in line.strip("|").split(" | ")]
        for line in section.splitlines()
        if line.startswith("| `")
    ]


def covered(cell: str) -> list[str]:
    """The names of a grouped row: `xm-1` to `xm-13` stands for thirteen methods."""
    ends = re.fullmatch(r"(\D+)(\d+)` to `\1(\d+)", cell)
    return (
        [cell] if ends is None else [f"{ends[1]}{number}" for number in range(int(ends[2]), int(ends[3]) + 1)]
    )


def test_the_table_of_methods_in_the_readme_is_that_of_the_library() -> None:
    known = [info for info in shoal.methods() if not info.name.startswith("xm-")]
    rows = [row for row in readme_rows() if not row[0].startswith("xm-")]
    assert rows == [[info.name, info.about, info.claim, info.paper] for info in known]


def test_the_grouped_rows_of_the_readme_have_the_claims_of_all_their_methods() -> None:
    rows = [row for row in readme_rows() if row[0].startswith("xm-")]
    claims = {info.name: info.claim for info in shoal.methods() if info.name.startswith("xm-")}
    assert [(name, row[2]) for row in rows for name in covered(row[0])] == list(claims.items())


def test_every_method_is_explained() -> None:
    text = (ROOT / "docs" / "methods.md").read_text("utf-8")
    for info in shoal.methods():
        explained = f"### `{info.name}`" in text or f"\n| `{info.name}` |" in text
        assert explained, f"docs/methods.md has no section on {info.name}"


def slug(heading: str) -> str:
    """The anchor that the documentation builder gives a heading."""
    plain = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading)
    ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


def prose(page: Path) -> str:
    return without_blocks(page.read_text("utf-8"), name_of(page))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), f"{page.name} links to {target}, which does not exist"
        if anchor:
            anchors = {slug(h) for h in re.findall(r"^#+ (.+)$", prose(linked), re.MULTILINE)}
            assert anchor in anchors, f"{page.name} links to {target}, but there is no such heading"


def test_every_page_is_in_the_navigation_and_the_navigation_in_the_folder() -> None:
    listed = set(re.findall(r":\s+(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    present = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert listed == present, "every page in docs/ belongs into the nav of mkdocs.yml, and only those"
