"""Run or read the blocks of a page in the page's own folder; a block that fails is an AssertionError.

    python           runs in one namespace for the whole page
    pycon            a session: runs, and its output is compared
    console          lines after `$ ` go to one bash for the whole page; what follows them is compared
    bash, sh         a script of its own
    text             what the code block before it printed
    toml, json, csv  read, by the part of Shoal that the file is for

A title (```toml title="people.toml") writes the block into the page's folder first. Output is compared with `...` for
anything and without regard to white space.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import shoal
from shoal.io import read
from shoal.io.common import load
from shoal.mechanisms.registry import PLUGINS, load_recipe, method_class
from shoal.query.server.folder import DatasetSettings

from .doc_blocks import Block, PageError, commands
from .doc_shell import Shell

_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass
class PageRun:
    """What the blocks of a page share."""

    folder: Path
    shell: Shell
    name: str
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    printed: str | None = None

    def run(self, block: Block) -> None:
        where = f"{self.name}, line {block.line}"
        if block.language not in LANGUAGES:
            raise PageError(
                f"{where}: no test knows what to do with a block of '{block.language}'; "
                f"known: {', '.join(LANGUAGES)}"
            )
        if block.title is not None:
            path = self.folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, "utf-8")
        LANGUAGES[block.language](self, block, where)


def same(shown: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(shown.strip() + "\n", printed.strip() + "\n", _FLAGS)


def _python(page: PageRun, block: Block, where: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.text, where, "exec", dont_inherit=True), page.namespace)
    page.printed = printed.getvalue()


def _session(page: PageRun, block: Block, where: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, {}, where, page.name, block.line)
    if not test.examples:
        raise PageError(f"{where}: a session has lines after '>>> '")
    test.globs = page.namespace
    said = io.StringIO()
    failed, _ = doctest.DocTestRunner(optionflags=_FLAGS).run(test, out=said.write, clear_globs=False)
    assert not failed, f"{where}: {said.getvalue()}"


def _console(page: PageRun, block: Block, where: str) -> None:
    try:
        listed = list(commands(block.text))
    except PageError as error:
        raise PageError(f"{where}: {error}") from None
    for command, after in zip(listed, [*listed[1:], None], strict=True):
        status, printed = page.shell.run(command.text)
        # a page that speaks of the status shows it, and then it is compared like any other output
        if after is None or after.text != "echo $?":
            expected = 2 if command.shown.startswith("shoal: ") else 0
            assert status == expected, f"{where}: '{command.text}' ended with {status}: {printed}"
        if command.shown.strip():
            assert same(command.shown, printed), (
                f"{where}: '{command.text}' is said to print\n{command.shown}\nbut prints\n{printed}"
            )
        page.printed = printed


def _script(page: PageRun, block: Block, where: str) -> None:
    script = page.folder.with_name(f"{page.folder.name}-script.sh")
    script.write_text(block.text, "utf-8")
    status, page.printed = page.shell.run(f"bash -e '{script}'")
    assert status == 0, f"{where}: the script ended with {status}: {page.printed}"


def _text(page: PageRun, block: Block, where: str) -> None:
    if page.printed is None:
        raise PageError(f"{where}: a block of text shows what the code before it prints, and there is none")
    assert same(block.text, page.printed), (
        f"{where}: the code before is said to print\n{block.text}\nbut prints\n{page.printed}"
    )
    page.printed = None


def _file(page: PageRun, block: Block) -> Path:
    path = page.folder / (block.title or f".block-{block.line}.{block.language}")
    path.write_text(block.text, "utf-8")
    return path


# what a TOML file is for, told by a key that only this kind of file has
_TOML_FILES: dict[str, Callable[[Path], object]] = {
    "method": lambda path: method_class(load_recipe(path)["method"]),
    "attribute": shoal.Schema.load,
    "project": lambda path: tomllib.loads(path.read_text("utf-8"))["project"]["entry-points"][PLUGINS],
    "ceiling": lambda path: DatasetSettings.from_dict(load(path, "toml-data-set")),
}


def _toml(page: PageRun, block: Block, where: str) -> None:
    path = _file(page, block)
    try:
        document = tomllib.loads(block.text)
    except tomllib.TOMLDecodeError as error:
        raise PageError(f"{where}: not TOML: {error}") from None
    readers = [reader for key, reader in _TOML_FILES.items() if key in document]
    if not readers:
        raise PageError(f"{where}: no reader is known for a file with the keys {', '.join(document)}")
    readers[0](path)


def _json(page: PageRun, block: Block, where: str) -> None:
    try:
        json.loads(_file(page, block).read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise PageError(f"{where}: not JSON: {error}") from None


def _csv(page: PageRun, block: Block, where: str) -> None:
    table = read(_file(page, block))
    assert table.names, f"{where}: a table without columns"


LANGUAGES: dict[str, Callable[[PageRun, Block, str], None]] = {
    "python": _python,
    "pycon": _session,
    "console": _console,
    "bash": _script,
    "sh": _script,
    "text": _text,
    "toml": _toml,
    "json": _json,
    "csv": _csv,
}
