"""The mutants of the committed list are found in the code, again after a move, and change one line each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tools.mutants import LIST, NUMBER, ROOMS, Room, draw, place, redraw
from tools.mutations import Mutant, mutants


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "shoal"
    package.mkdir(parents=True)
    (package / "count.py").write_text(
        "class Box:\n    def size(self, n: int | None = 3) -> int:\n        return 0 if not n else n - 1\n"
    )
    return tmp_path


def test_every_change_is_of_one_line_and_of_what_the_code_does(folder: Path) -> None:
    found = mutants("mask", folder, "src/shoal/count.py")
    assert {one.changed for one in found} == {
        "return 1 if not n else n - 1",
        "return 0 if n else n - 1",
        "return 0 if not n else n + 1",
        "return 0 if not n else n - 2",
        "return 0 if not n else n - 0",
    }
    assert {one.function for one in found} == {"Box.size"}


@pytest.mark.slow
def test_a_mutant_is_found_after_its_module_moved(folder: Path) -> None:
    one = mutants("mask", folder, "src/shoal/count.py")[0]
    package = folder / "src" / "shoal"
    shutil.move(package / "count.py", package / "boxes.py")
    for moves in ({}, {"src/shoal/count.py": "src/shoal/boxes.py"}):
        found = place(folder, one, moves)
        assert found is not None
        assert found[0] == package / "boxes.py"
        assert one.changed in found[1]


def test_a_mutant_that_fits_two_places_is_lost_unless_the_move_is_named(folder: Path) -> None:
    one = mutants("mask", folder, "src/shoal/count.py")[0]
    package = folder / "src" / "shoal"
    for name in ("boxes.py", "crates.py"):
        shutil.copy(package / "count.py", package / name)
    (package / "count.py").unlink()
    assert place(folder, one, {}) is None
    assert place(folder, one, {"src/shoal/count.py": "src/shoal/crates.py"}) is not None


def test_a_lost_mutant_is_replaced_by_one_of_its_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "src/shoal/count.py"
    monkeypatch.setattr("tools.mutants.ROOMS", {"mask": Room((path,), ())})
    (known,) = draw(folder, 1, 1)
    assert redraw(folder, 1, [known]) == [known]
    (folder / path).write_text("def size(n):\n    return n * 2\n")
    (new,) = redraw(folder, 1, [known])
    assert new.text == "return n * 2"


def test_the_committed_list_covers_every_room() -> None:
    drawn = [Mutant(**row) for row in json.loads(LIST.read_text("utf-8"))]
    assert len(drawn) == NUMBER
    assert {one.room for one in drawn} == set(ROOMS)
