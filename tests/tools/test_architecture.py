"""results/architecture.md is written by a command: what it says about the cost of a change is true of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import architecture

PAGE = Path(__file__).parents[2] / "results" / "architecture.md"


def test_the_page_says_what_a_change_costs() -> None:
    assert "\n".join(architecture.cost_lines()) in PAGE.read_text("utf-8"), (
        "run: python -m tools.architecture"
    )


def test_comparisons_with_names_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.py").write_text(
        'if a.kind == "nominal" or kind in ("date", "x") or a.role == "date":\n    pass\n'
    )
    (tmp_path / "two.py").write_text('"""kind == "date" """\nkind = "date"\n')
    monkeypatch.setattr(architecture, "PACKAGE", tmp_path)
    assert architecture.comparisons(("kind",), ("nominal", "date")) == {"one.py": 2}


@pytest.mark.parametrize("change", ["a method", "a mechanism", "a kind of column"])
def test_nobody_asks_for_these_by_name(change: str) -> None:
    (cost,) = [cost for cost in architecture.costs() if cost.change == change]
    found = architecture.comparisons(cost.compared, cost.words)
    assert set(found) <= {cost.table}, found


def test_every_entry_has_its_table() -> None:
    for cost in architecture.costs():
        assert not cost.table or (architecture.PACKAGE / cost.table).exists()
