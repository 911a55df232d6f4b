"""docs/guarantee.md is written by a command: it keeps the prose and lists every preset and every row of the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import shoal
from shoal.auditing.auditor import Attack, Audit
from tools import guarantee_page as guarantee
from tools.audit_table import ROWS, Row

PAGE = Path(__file__).parents[2] / "docs" / "guarantee.md"


def pretended(row: Row) -> Audit:
    bound = 3.456 if row.refuted else 0.789
    return Audit(
        method=row.method,
        settings={},
        model="dp",
        view=row.view,
        epsilon=1.0,
        claimed=row.flaw is not None or not row.refuted,
        bound=bound,
        confidence=0.99,
        runs=row.runs,
        search_runs=row.runs,
        pairs=3,
        neighbours="record 1",
        attacks=(Attack("sum", 9, 10, 1, 10, bound),),
    )


def test_the_tables_hold_every_row_and_what_its_statement_says() -> None:
    text = guarantee.guarantee_tables(
        [guarantee.Result(row, pretended(row), 12.0, "today") for row in ROWS], "2 cores"
    )
    for row in ROWS:
        assert f"| {row.name} |" in text
    # said once for all methods under a model, and one short line for each of them
    for model in ("dp", "dp-given-partition", "idp-given-partition"):
        assert text.count(f"### `{model}`") == 1
    section = text.split("### `dp-given-partition`")[1].split("###")[0]
    assert section.count("given the partition, with ε per row (replace-one") == 1
    assert "| `mdav-dp` | 1 | **refuted**, 3.45: not claimed |" in section
    assert "| `ranking-dp`, several linked columns | 1 |" in section
    assert "| `ranking-dp`, one column | 1 | 0.78 |" in text.split("### `dp`")[1].split("###")[0]
    assert "\n1. It does not hide that a person took part" in text
    assert max(len(line) for line in text.splitlines() if line.startswith("| `")) < 160
    assert "| no noise | `ranking-dp` | original | **refuted**: at least 3.45 |" in text
    assert "verified" not in text


def test_only_what_stands_between_the_markers_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{guarantee.BEGIN}\nold\n{guarantee.END}\nafter\n")
    guarantee.write_between_markers(page, "new")
    assert page.read_text() == f"before\n{guarantee.BEGIN}\n\nnew\n\n{guarantee.END}\nafter\n"
    page.write_text("no markers")
    with pytest.raises(ValueError, match="must contain"):
        guarantee.write_between_markers(page, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]


def test_an_unexpected_outcome_is_written_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{guarantee.BEGIN}{guarantee.END}")
    monkeypatch.setattr(guarantee, "run_row", lambda row, **_: pretended(row))
    assert guarantee.main([str(page)]) == 1  # laplace stays below the bound it must reach
    assert "NOT AS EXPECTED: laplace: not refuted" in capsys.readouterr().err
    monkeypatch.setattr(
        guarantee, "run_row", lambda row, **_: replace(pretended(row), bound=0.9 + 9 * row.refuted)
    )
    assert guarantee.main([str(page)]) == 0
    assert "| 0.90" in page.read_text("utf-8")


def test_only_rows_without_a_record_are_carried_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{guarantee.BEGIN}{guarantee.END}")
    carried_out: list[str] = []

    def pretend(row: Row, **_: object) -> Audit:
        carried_out.append(row.name)
        return pretended(row)

    monkeypatch.setattr(guarantee, "run_row", pretend)
    guarantee.main([str(page)])
    assert carried_out == [row.name for row in ROWS]
    first = page.read_text("utf-8")
    carried_out.clear()
    guarantee.main([str(page), "--missing"])
    assert carried_out == []
    assert page.read_text("utf-8") == first
    changed = (replace(ROWS[0], runs=77), *ROWS[1:-1])
    monkeypatch.setattr(guarantee, "ROWS", changed)
    guarantee.main([str(page), "--missing"])
    assert carried_out == [ROWS[0].name]


def test_the_page_of_the_project_has_every_preset_and_every_row() -> None:
    text = PAGE.read_text("utf-8")
    tables = text.split(guarantee.BEGIN)[1].split(guarantee.END)[0]
    audited = {row.method for row in ROWS}
    for info in shoal.methods():
        # claims about the released table itself have no ε to audit
        if info.name not in audited:
            assert "epsilon" not in info.parameters
            continue
        assert f"| `{info.name}`" in tables, (
            f"docs/guarantee.md lacks {info.name}: run tools.guarantee_page again"
        )
    for row in ROWS:
        assert f"| {row.name} |" in tables, (
            f"docs/guarantee.md lacks '{row.name}': run tools.guarantee_page again"
        )
    assert "NOT AS EXPECTED" not in tables
    assert "verified" not in text
