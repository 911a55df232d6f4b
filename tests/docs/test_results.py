"""Numbers on summary pages are those of the files in results/, and pages of results lead somewhere."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tools import results
from tools.results import DOCS, RESULTS, SUMMARIES, between, filled, put, rows, section

PAGES = sorted({page for page, _, _ in SUMMARIES.values()})


@pytest.mark.parametrize("page", PAGES)
def test_summaries_state_what_the_results_say(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    assert filled(page, text) == text, f"docs/{page} is not what results/ say: run python -m tools.results"


@pytest.mark.parametrize("name", SUMMARIES)
def test_every_summary_has_five_numbers_and_names_its_source(name: str) -> None:
    page, sources, numbers = SUMMARIES[name]
    found = numbers()
    assert len(found) == 5
    assert all(re.search(r"\d", value) for _, value in found)
    for source in sources:
        assert (RESULTS / source).exists()
        assert f"`results/{source}`" in (DOCS / page).read_text("utf-8")


def test_a_changed_result_changes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RESULTS, tmp_path / "results", ignore=shutil.ignore_patterns("*.png", "*.jpg", "*.svg"))
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("*.png", "*.svg"))
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(results, "DOCS", tmp_path / "docs")
    page = tmp_path / "results" / "tuning-quality.md"
    put(page, page.read_text("utf-8").replace("**4.4%**", "**77.7%**"))
    assert "| 77.7% |" in (tmp_path / "docs" / "quality.md").read_text("utf-8")
    # a page that is written elsewhere leaves the summaries alone
    before = (tmp_path / "docs" / "quality.md").read_text("utf-8")
    put(tmp_path / "elsewhere.md", "nothing")
    assert (tmp_path / "docs" / "quality.md").read_text("utf-8") == before


def test_tables_are_read_by_heading_and_column() -> None:
    page = (RESULTS / "tree-quality.md").read_text("utf-8")
    assert section("tree-quality.md", "Speed").strip() in page
    assert rows("tree-quality.md")[0]["table, ε"] == "Census, 0.01"


def test_text_without_its_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="once each"):
        between("no markers", "speed", "new")


@pytest.mark.parametrize("page", sorted(RESULTS.rglob("*.md")), ids=lambda page: page.name)
def test_links_of_results_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        name = target.partition("#")[0]
        if name and not target.startswith("http"):
            assert (page.parent / name).exists(), f"{page.name} links to {target}, which does not exist"
