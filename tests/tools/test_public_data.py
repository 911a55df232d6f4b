"""The public data sets: part of the repository, with their licences, and unpacked as they were."""

from __future__ import annotations

import csv
import re
import subprocess
from pathlib import Path

import pytest

from tools import public_data

ROOT = Path(__file__).parents[2]
# rows and columns that datasets/README.md states
SIZES = {
    "census.csv": (1080, 13),
    "eia.csv": (4092, 15),
    "adult.csv": (32_561, 15),
    "wine_white.csv": (4898, 12),
    "nist/national2019.csv": (27_253, 24),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_table_has_the_size_that_its_page_states(name: str) -> None:
    with (public_data.data_folder() / name).open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert (len(rows), len(header)) == SIZES[name]
    page = (ROOT / "datasets" / "README.md").read_text("utf-8")
    assert f"| `{name}.gz` | {len(rows):,} x {len(header)} |" in page


def test_every_file_has_an_origin_and_terms() -> None:
    terms = (ROOT / "datasets" / "LICENSES.md").read_text("utf-8")
    for entry in (ROOT / "datasets").iterdir():
        if entry.name in ("README.md", "LICENSES.md", "unpacked"):
            continue
        assert f"`{entry.name}{'/' if entry.is_dir() else ''}`" in terms


def test_unpacking_follows_a_changed_file_and_leaves_nothing_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_data, "PACKED", tmp_path)
    monkeypatch.setattr(public_data, "UNPACKED", tmp_path / "unpacked")
    unpack = public_data.data_folder.__wrapped__
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "plain.csv").write_text("a\n1\n")
    assert (unpack() / "below" / "plain.csv").read_text() == "a\n1\n"
    (tmp_path / "below" / "plain.csv").write_text("a\n2\n")
    assert (unpack() / "below" / "plain.csv").read_text() == "a\n2\n"
    assert [path.name for path in (tmp_path / "unpacked").rglob("*") if path.is_file()] == ["plain.csv"]


def test_nothing_names_a_folder_beside_the_clone() -> None:
    """Neither a path out of the checkout nor a variable that would have to name one."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    outside = re.compile(r"SHOAL_(DATA|OFFICES)\b|\.\./shared|parents\[\d\] / \"\.\.\"")
    found = []
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if (
            path.suffix not in (".py", ".md", ".toml", ".ipynb", "")
            or not path.is_file()
            or path == Path(__file__)
        ):
            continue
        found += [
            name for line in path.read_text("utf-8", errors="ignore").splitlines() if outside.search(line)
        ]
    assert found == []
