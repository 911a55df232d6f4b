"""The notebooks in examples/ run from the first cell to the last, and print what they show."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from .doc_blocks import ROOT
from .doc_runner import same

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def run(cell: dict[str, Any], namespace: dict[str, Any], where: str) -> str:
    """What a cell prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("".join(cell["source"]), where, "exec"), namespace)
    return printed.getvalue()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_prints_what_it_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text("utf-8"))
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["language"]) == (4, "python")
    namespace: dict[str, Any] = {"__name__": "notebook"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        printed = run(cell, namespace, f"{path.name}, cell {number}")
        shown = "".join(text for output in cell["outputs"] for text in output["text"])
        assert same(shown, printed), f"{path.name}, cell {number} shows\n{shown}\nbut prints\n{printed}"


def test_there_is_a_notebook_and_a_wrong_one_is_seen() -> None:
    assert [path.name for path in NOTEBOOKS] == ["publish.ipynb"]
    cell = {"source": ["print(1 + 1)\n"]}
    assert run(cell, {}, "here") == "2\n"
    assert not same("3\n", "2\n")
