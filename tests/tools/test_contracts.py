"""The import contracts detect what they forbid."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("importlinter")

from grimp import ImportGraph

from tools.contracts import deep_imports, imported_names


def graph(*imports: tuple[str, str]) -> ImportGraph:
    made = ImportGraph()
    for importer, imported in imports:
        for module in (importer, imported):
            made.add_module(module)
        made.add_import(importer=importer, imported=imported)
    return made


def test_a_deep_import_is_found() -> None:
    found = graph(
        ("shoal.report.pages", "shoal.columns.schema"),
        ("shoal.report.pages", "shoal.columns"),
        ("shoal.report.pages", "shoal.report.words"),
        ("shoal.report.pages", "shoal.errors"),
        ("shoal.mechanisms.tree.method", "shoal.mechanisms.method"),
    )
    assert deep_imports(found) == [("shoal.report.pages", "shoal.columns.schema")]


def test_names_are_those_imported_under_any_other(tmp_path: Path) -> None:
    place = tmp_path / "one.py"
    place.write_text(
        "from shoal.noise import discrete_laplace as noise\n"
        "def f():\n    from shoal.noise.families import discrete_box\n"
    )
    assert imported_names(place, "shoal.noise") == {"discrete_laplace", "discrete_box"}
