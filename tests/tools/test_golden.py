"""The comparison of two checkouts reports every difference, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import shoal
from shoal.text import Message, catalogue, sentences
from tools.golden import as_codes, cases, checkout, differences, record, unreleased, without_words


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def test_a_byte_that_differs_is_found_and_so_is_a_file_that_is_gone(tmp_path: Path) -> None:
    same = {"a/out/data.csv": b"x\n1\n", "a/out/part.parquet": b"\xff\x00"}
    before = write(tmp_path / "before", {**same, "b/terminal.txt": b"exit 0\n"})
    after = write(tmp_path / "after", same)
    assert [(one.name, one.lines) for one in differences(before, after)] == [
        ("b/terminal.txt", ("only before",))
    ]
    write(after, {"b/terminal.txt": b"exit 2\n", "a/out/part.parquet": b"\xff\x01"})
    found = {one.name: one.lines for one in differences(before, after)}
    assert list(found) == ["a/out/part.parquet", "b/terminal.txt"]
    assert found["b/terminal.txt"][-2:] == ("-exit 0", "+exit 2")


def test_a_statement_may_gain_the_keys_that_are_named_and_no_others(tmp_path: Path) -> None:
    before = write(tmp_path / "before", {"a/out/statement.json": b'{"model": "dp"}'})
    after = write(tmp_path / "after", {"a/out/statement.json": b'{"model": "dp", "terms": {}}'})
    assert differences(before, after, ["terms"]) == []
    assert [one.name for one in differences(before, after, ["other"])] == ["a/out/statement.json"]


def test_a_method_of_which_nothing_is_released_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"preset_laplace/out/statement.json": b"{}", "preset_suppress/terminal.txt": b"exit 2"})
    assert unreleased(tmp_path, ["laplace", "suppress"]) == ["suppress"]


def test_every_method_has_a_case_and_more_than_sixty_are_variants() -> None:
    names = [method.name for method in shoal.methods()]
    found = cases(names)
    assert all(f"preset {name}" in found for name in names)
    assert sum(not name.startswith(("preset", "wrong", "shown")) for name in found) > 60


def test_two_recordings_of_one_state_are_the_same_and_another_seed_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = ["mixed laplace", "wrong epsilon zero"]
    for name in ("one", "two"):
        record(tmp_path / name, only)
    assert differences(tmp_path / "one", tmp_path / "two") == []
    assert unreleased(tmp_path / "one", ["laplace"]) == []
    assert (tmp_path / "one" / "wrong_epsilon_zero" / "terminal.txt").read_text().startswith("exit 2")
    monkeypatch.setattr("tools.golden.SEED", ("--seed", "8"))
    record(tmp_path / "three", only)
    found = [one.name for one in differences(tmp_path / "one", tmp_path / "three")]
    assert "mixed_laplace/out/data.csv" in found


def test_a_commit_that_is_none_is_refused_in_one_line() -> None:
    with pytest.raises(SystemExit, match="neither a folder nor a commit"), checkout("no-such-commit"):
        pass


WORDED = [
    "mixed laplace",
    "shown json evaluated",
    "shown risk",
    "wrong epsilon zero",
    "wrong gaps",
    "help risk",
]


def _both(root: Path, change: Callable[[], None]) -> list[list[str]]:
    """What differs after a change: when words count, and when they do not."""
    for name, words in (("strict", False), ("words", True)):
        record(root / name / "before", [*WORDED, "library errors"], words=words)
    change()
    found = []
    for name, words in (("strict", False), ("words", True)):
        record(root / name / "after", [*WORDED, "library errors"], words=words)
        before, after = (root / name / side for side in ("before", "after"))
        found.append([one.name for one in differences(before, after, words=words)])
    return found


@pytest.mark.slow
def test_other_words_are_found_unless_words_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reworded = {code: tuple(f"Reworded, {part}" for part in parts) for code, parts in catalogue().items()}
    strict, words = _both(tmp_path, lambda: monkeypatch.setattr(sentences, "catalogue", lambda: reworded))
    assert words == []
    for file in ("statement.json", "report.html", "log.toml"):
        assert f"mixed_laplace/out/{file}" in strict
    assert {"wrong_gaps/terminal.txt", "library_sentences.json"} <= set(strict)
    assert not {"mixed_laplace/out/data.csv", "mixed_laplace/out/method.toml"} & set(strict)


def test_another_fact_is_found_whether_words_count_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict, words = _both(tmp_path, lambda: monkeypatch.setattr("shoal.privacy.statement.TIMING", "covered"))
    assert "mixed_laplace/out/statement.json" in strict
    assert "mixed_laplace/out/statement.json" in words


def test_what_is_compared_without_words() -> None:
    with as_codes():
        said = str(Message.of("k-least-1", option="k", found=0))
    assert "k-least-1 found=0 option=k" in said
    one = f"exit 2\n\nTotal: 3\n\n-- errors --\nshoal: {said}\n"
    other = f"exit 2\n\nSum: 3\n\n-- errors --\nShoal says: {said} Sorry.\n"
    compared = [without_words("wrong/terminal.txt", text.encode()) for text in (one, other)]
    assert compared[0] == compared[1] == b"exit 2\nk-least-1 found=0 option=k"
    assert without_words("wrong/terminal.txt", one.replace("found=0", "found=1").encode()) != compared[0]
    assert without_words("wrong/terminal.txt", one.replace("exit 2", "exit 1").encode()) != compared[0]
    helps = [
        f"exit 0\n\n{text}\n\n-- errors --\n".encode()
        for text in ("  --k  How many", "--k  Size", "--l  Size")
    ]
    found = [without_words("help_protect/terminal.txt", text) for text in helps]
    assert found[0] == found[1] != found[2]
    json_printed = [f'exit 0\n\n{{"k": {k}}}\n\n-- errors --\n'.encode() for k in (2, 3)]
    assert len({without_words("shown/terminal.txt", text) for text in json_printed}) == 2
    pages = [
        f"<h1>{title}</h1><td>mean <b>{mean}</b></td>".encode()
        for title, mean in (("A", 1), ("B", 1), ("A", 2))
    ]
    found = [without_words("a/report.html", page) for page in pages]
    assert found[0] == found[1] != found[2]
    recipes = [f"# {words}\nk = {k}\n".encode() for words, k in (("One", 1), ("Two", 1), ("One", 2))]
    found = [without_words("a/method.toml", recipe) for recipe in recipes]
    assert found[0] == found[1] != found[2]
    assert without_words("a/data.csv", b"# a\n") == b"# a\n"
