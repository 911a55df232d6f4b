"""Every fenced block of README, CONTRIBUTING and docs runs, and prints what the page shows."""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.support.registries import forgotten_afterwards

from .doc_blocks import PAGES, ROOT, Block, Command, PageError, blocks, blocks_of, commands, name_of, prose
from .doc_runner import LANGUAGES, PageRun
from .doc_shell import Shell
from .warm_program import warm_program

# pages that run with the slow tests only, and what takes long there
LONG_PAGES = {
    "docs/attacks.md": "an audit runs its method thousands of times",
    "docs/first-hour.md": "a rehearsal, and a release with all attacks on the original",
    "docs/guide/files.md": "several releases",
    "docs/guide/report.md": "pages with all attacks on the original",
    "docs/guide/tuning.md": "tuning runs a grid of settings",
    "docs/k-anonymity.md": "several releases, each read back and measured",
    "docs/ledger.md": "a dozen starts of the program",
    "docs/server.md": "a dozen starts of the program, one of them a server",
    "docs/taxonomies.md": "several releases and their evaluations",
    "docs/tutorials/query-server.md": "a dozen starts of the program, one of them a server",
    "docs/tutorials/survey.md": "an internal report with all attacks, and its release again",
}

# blocks that cannot run in a test: each says why, and there are few of them
MOST_NOT_RUN = 8


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `shoal demo` leaves behind."""
    folder = tmp_path_factory.mktemp("demo")
    shoal = Path(sys.executable).with_name("shoal")
    subprocess.run([shoal, "demo"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "shoal-demo"


@pytest.fixture(scope="session")
def warm_programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with warm_program(tmp_path_factory.mktemp("warm")) as programs:
        yield programs


@contextmanager
def port_to_itself() -> Iterator[None]:
    """Pages start their server on the port that a reader would get: one page at a time."""
    with (Path(tempfile.gettempdir()) / "shoal-docs-server.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def provide(page: Path, code: str, folder: Path, request: pytest.FixtureRequest) -> None:
    """Puts there what the page may expect: the demo's folder, the repository's examples, the public data sets."""
    if "shoal-demo/" in code and not re.search(r"^\$ shoal demo\b", code, re.MULTILINE):
        said = prose(page.read_text("utf-8"))
        assert "shoal demo" in said, (
            f"{name_of(page)} uses shoal-demo/ and does not say that shoal demo makes it"
        )
        shutil.copytree(request.getfixturevalue("demo_folder"), folder / "shoal-demo")
    if "examples/" in code:
        (folder / "examples").symlink_to(ROOT / "examples")
    if "datasets/" in code:
        (folder / "datasets").symlink_to(ROOT / "datasets")


def pages_by_length() -> list[object]:
    return [
        pytest.param(page, id=name_of(page), marks=[pytest.mark.slow] if name_of(page) in LONG_PAGES else [])
        for page in PAGES
    ]


@pytest.mark.parametrize("page", pages_by_length())
def test_the_blocks_of_the_page_run_and_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    to_run = [block for block in blocks(page) if block.not_run is None]
    code = "".join(block.text for block in to_run)
    folder = tmp_path / "page"
    folder.mkdir()
    provide(page, code, folder, request)
    monkeypatch.chdir(folder)
    alone = port_to_itself() if "shoal serve" in code else nullcontext()
    starts = "shoal " in code and name_of(page) not in LONG_PAGES
    programs = request.getfixturevalue("warm_programs") if starts else None
    with alone, forgotten_afterwards(), Shell(folder, {}, programs=programs) as shell:
        run = PageRun(folder, shell, name_of(page))
        for block in to_run:
            run.run(block)


def test_long_pages_exist_and_say_what_takes_long() -> None:
    assert LONG_PAGES.keys() <= {name_of(page) for page in PAGES}
    assert all(LONG_PAGES.values())


def test_few_blocks_are_not_run() -> None:
    left_out = [
        f"{name_of(page)}, line {block.line}: {block.not_run}"
        for page in PAGES
        for block in blocks(page)
        if block.not_run is not None
    ]
    assert len(left_out) <= MOST_NOT_RUN, "\n".join(left_out)


def test_every_fence_of_every_page_belongs_to_a_block() -> None:
    for page in PAGES:
        text = page.read_text("utf-8")
        fences = len(re.findall(r"^[ \t>]*(?:```|~~~)", text, re.MULTILINE))
        assert fences == 2 * len(blocks(page)), f"{name_of(page)}: a fence inside a block, or one left open"
    assert sum(len(blocks(page)) for page in PAGES) >= 90


def test_no_page_hides_commands_in_an_indented_block() -> None:
    for page in PAGES:
        hidden = re.findall(
            r"^(?: {4}|\t)(?:\$ |>>> |import |from \w+ import ).*$",
            prose(page.read_text("utf-8")),
            re.MULTILINE,
        )
        assert not hidden, f"{name_of(page)}: {hidden[0].strip()} would never run: fence it"


# --- the instrument itself ---


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PageRun]:
    folder = tmp_path / "page"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with Shell(folder, {}) as shell:
        yield PageRun(folder, shell, "page.md")


def run_all(run: PageRun, text: str) -> None:
    for block in blocks_of(text, run.name):
        run.run(block)


GOOD = """
```csv title="people.csv"
age
30
40
```

```python
import shoal
print(open("people.csv").read().split())
```

```text
['age', '30', ...]
```

> ```console
> $ AGES=$(tail -n +2 people.csv | wc -l)
> $ echo $AGES
> 2
> ```

1. In a list:

    ```console
    $ echo $AGES people; false
    2 people
    $ echo $?
    1
    ```

~~~sh
test "$(head -1 people.csv)" = age
~~~

```pycon
>>> shoal.Attribute("age").name
'age'
```

```toml title="people.toml"
[[attribute]]
name = "age"
lo = 0
hi = 120
```

```toml
method = "laplace"
epsilon = 1
```

```json
{"kind": "count"}
```
"""


def test_a_page_in_every_language_runs_from_the_first_block_to_the_last(run: PageRun) -> None:
    assert {block.language for block in blocks_of(GOOD, "page.md")} | {"bash"} == LANGUAGES.keys()
    run_all(run, GOOD)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```console\n$ echo one\ntwo\n```", "is said to print"),
        ("```console\n$ false\n```", "ended with 1"),
        ("```console\n$ false | cat\n```", "ended with 1"),
        ("```console\n$ shoal --version\nshoal: 1\n```", "ended with 0"),
        ("```console\n$ shoal protect nowhere.csv\n```", "ended with 2"),
        ("```console\necho one\n```", "needs at least one command"),
        ("```console\none\n$ echo one\n```", "begins with a command"),
        ("```console\n$ exit 3\n```", "the shell ended"),
        ("```bash\nfalse\ntrue\n```", "ended with 1"),
        ("```python\nprint(1)\n```\n```text\n2\n```", "is said to print"),
        ("```python\nprint(1)\n```\n```text\n1\n```\n```text\n1\n```", "there is none"),
        ("```python\nassert 1 == 2, 'so it is'\n```", "so it is"),
        ("```pycon\n>>> 1 + 1\n3\n```", "Expected"),
        ("```pycon\n1 + 1\n```", "has lines after"),
        ("```toml\na =\n```", "not TOML"),
        ("```toml\na = 1\n```", "no reader is known"),
        ("```json\n{\n```", "not JSON"),
        ("```\nanything\n```", "no test knows"),
        ("```yaml\na: 1\n```", "no test knows"),
        ("```python\n1\n", "never closed"),
        ("<!-- not run -->\n```console\n$ make\n```", "says why"),
        ("<!-- not run: no -->\n```console\n$ make\n```", "says why"),
        ("<!-- not run: it would install packages -->\n\n```console\n$ make\n```", "directly before"),
    ],
)
def test_what_is_wrong_with_a_page_is_found(run: PageRun, text: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        run_all(run, text)


@pytest.mark.parametrize(
    "text",
    [
        '```toml\n[[attribute]]\nname = "age"\nlow = 0\n```',
        '```toml\nmethod = "lapace"\n```',
        '```toml\nceiling = "much"\n```',
        "```python\n1 / 0\n```",
    ],
)
def test_what_shoal_or_python_refuses_fails_the_page(run: PageRun, text: str) -> None:
    with pytest.raises((ValueError, LookupError, ArithmeticError)):
        run_all(run, text)


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    with Shell(tmp_path, {}, patience=0.2) as shell, pytest.raises(AssertionError, match="or was ended"):
        shell.run("echo begun; sleep 60")


def test_a_job_in_the_background_lasts_and_ends_with_the_page(tmp_path: Path) -> None:
    with Shell(tmp_path, {}) as shell:
        shell.run("sleep 600 & JOB=$!")
        assert shell.run("kill -0 $JOB")[0] == 0
        assert shell.run("kill %1; wait; kill -0 $JOB")[0] == 1
        shell.run("mkfifo said; (sleep 120; echo still here) > said &")
        said = (tmp_path / "said").open()
    # the other end is closed when the job is gone, and not before
    with said:
        assert said.read() == ""


def test_blocks_commands_and_prose_are_told_apart() -> None:
    text = "<!-- not run: it installs packages -->\n```console\n$ make\n```\n[link](a.md)\n"
    assert blocks_of(text, "page.md") == [Block("console", None, "$ make\n", 2, "it installs packages")]
    assert prose(text) == "<!-- not run: it installs packages -->\n\n\n\n[link](a.md)"
    text = "$ cat > a <<'END'\n$ not a command\nEND\n$ shoal protect a \\\n  --k 3\nprinted\n$ shoal demo\n"
    assert list(commands(text)) == [
        Command("cat > a <<'END'\n$ not a command\nEND", ""),
        Command("shoal protect a \\\n  --k 3", "printed"),
        Command("shoal demo", ""),
    ]
    with pytest.raises(PageError):
        list(commands("nothing\n"))
