"""The documentation is true: its code runs, its table of methods is the library's, its links lead somewhere."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import shoal
from shoal.cli import run
from shoal.io import write
from shoal.survey import survey, survey_schema

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = "<!-- not run -->"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, its text, and the line it starts at."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """A shell command of a console block and the output shown after it."""

    text: str
    shown: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(match[1], match[2], text[: match.start()].count("\n") + 1)
        for match in _FENCE.finditer(text)
        if not text[: match.start()].rstrip().endswith(_NOT_RUN)
    ]


def commands(text: str) -> Iterator[Command]:
    """Lines after `$ ` with their continuations and here-documents; everything else is output."""
    lines = text.splitlines()
    command: list[str] = []
    shown: list[str] = []
    while lines:
        line = lines.pop(0)
        if not line.startswith("$ "):
            shown.append(line)
            continue
        if command:
            yield Command("\n".join(command), "\n".join(shown))
        command, shown = [line[2:]], []
        while command[-1].endswith("\\"):
            command.append(lines.pop(0))
        if here := re.search(r"<<'?(\w+)'?", line):
            while command[-1] != here[1]:
                command.append(lines.pop(0))
    if command:
        yield Command("\n".join(command), "\n".join(shown))


def run_shoal(words: list[str]) -> tuple[int, str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = run(words)
    return status, printed.getvalue()


def check_command(command: Command, where: str) -> None:
    """`shoal` runs in this process, `cat` in a shell; setting up (make, pip, activate) is left to the reader."""
    words = shlex.split(command.text.replace("\\\n", " "))
    if words[0] == "cat":
        subprocess.run(["sh", "-c", command.text], check=True)
    if words[0] != "shoal":
        return
    status, printed = run_shoal(words[1:])
    expected = 2 if command.shown.startswith("shoal: ") else 0
    assert status == expected, f"{where}: '{command.text}' ended with {status}: {printed}"
    if command.shown.strip():
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        matches = doctest.OutputChecker().check_output(command.shown + "\n", printed, flags)
        assert matches, f"{where}: '{command.text}' is said to print\n{command.shown}\nbut prints\n{printed}"


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The input that `shoal demo` leaves behind."""
    folder = tmp_path_factory.mktemp("docs") / "shoal-demo"
    folder.mkdir()
    write(survey(), folder / "survey.csv")
    survey_schema().save(folder / "survey.toml")
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_of_the_page_runs_and_prints_what_it_shows(
    page: Path, demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(demo_folder, tmp_path / "shoal-demo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "COLUMNS", "200")
    namespace: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        where = f"{page.relative_to(ROOT)}, line {block.line}"
        if block.language == "python":
            exec(compile(block.text, where, "exec"), namespace)
        elif block.language in ("console", "sh"):
            for command in commands(block.text):
                check_command(command, where)


def test_a_page_that_shows_the_wrong_output_or_fails_is_caught() -> None:
    with pytest.raises(AssertionError, match="is said to print"):
        check_command(Command("shoal --version", "shoal 999"), "here")
    with pytest.raises(AssertionError, match="ended with 2"):
        check_command(Command("shoal protect nowhere.csv", ""), "here")


def test_every_page_with_commands_has_them_found() -> None:
    text = "$ cat > a <<'END'\n$ not a command\nEND\n$ shoal protect a \\\n  --k 3\nprinted\n$ shoal demo\n"
    assert list(commands(text)) == [
        Command("cat > a <<'END'\n$ not a command\nEND", ""),
        Command("shoal protect a \\\n  --k 3", "printed"),
        Command("shoal demo", ""),
    ]
    runnable = [b for page in PAGES for b in blocks(page) if b.language in ("python", "console", "sh")]
    assert len(runnable) >= 20


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
    return _FENCE.sub("", page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
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
