"""The tutorial of docs/server.md is true: its commands run against a server and print what the page shows."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.cli import run
from shoal.query.server.folder import Settings
from shoal.toml import load

PAGE = Path(__file__).parents[3] / "docs" / "server.md"
SECTION = (
    PAGE.read_text("utf-8").split("## A tutorial that ends with a refusal")[1].split("\n## The folder")[0]
)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The server of the page's first line, on a port of its own."""
    monkeypatch.chdir(tmp_path)
    words = [sys.executable, "-m", "shoal", "serve", "--data", "shoal-served", "--demo", "--port", "0"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    process.stderr.readline()
    url = process.stderr.readline().partition(" on ")[2].partition(" ")[0]
    threading.Thread(target=process.stderr.read, daemon=True).start()
    monkeypatch.setenv("SHOAL_URL", url)
    monkeypatch.setenv("SHOAL_TOKEN", Path("shoal-served/analyst.token").read_text())
    yield url
    process.terminate()
    process.wait()


def commands() -> Iterator[tuple[str, str]]:
    """Commands of the tutorial with what is shown after them."""
    for block in re.findall(r"^```console\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def test_the_tutorial_runs_and_ends_with_a_refusal(served: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    printed = shown = ""
    keyed = []
    for command, shown in commands():
        words = shlex.split(command)
        if words[0] != "shoal":
            continue
        status = run(words[1:])
        captured = capsys.readouterr()
        printed = captured.out + captured.err
        assert status == (2 if shown.startswith("shoal: ") else 0), printed
        assert doctest.OutputChecker().check_output(shown, printed, flags), f"{command} printed\n{printed}"
        if "--key" in words:
            keyed.append(captured.out)
    assert keyed[0] == keyed[1]
    assert shown.startswith("shoal: The budget does not allow this question.")
    # the rest of the budget can still be spent, by the example in Python to begin with, and then it is over
    (code,) = re.findall(r"^```python\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    exec(compile(code.replace("http://127.0.0.1:8200", served), "docs/server.md", "exec"), {})
    assert "{'ceiling': '2/1', 'spent': '37/20', 'remaining': '3/20'}" in capsys.readouterr().out
    assert run(["ask", "survey", "mean", "--column", "rent", "--epsilon", "0.15"]) == 0
    assert run(["ask", "survey", "mean", "--column", "rent", "--epsilon", "0.01"]) == 2


def test_the_terms_of_the_page_are_read(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "dataset.toml").write_text(text, "utf-8")
    assert Settings.from_dict(load(tmp_path / "dataset.toml", "data set file")).ceiling == 3
