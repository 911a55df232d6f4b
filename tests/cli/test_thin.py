"""Commands only parse, call and print: their functions are short and have few names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import shoal.cli

MODULES = sorted(Path(shoal.cli.__file__).parent.glob("*.py"))
MOST_LINES, MOST_PARAMETERS = 80, 12


def functions(source: str) -> Iterator[tuple[str, int, int]]:
    """Name, lines and parameters of every function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            extra = [part for part in (arguments.vararg, arguments.kwarg) if part is not None]
            yield node.name, (node.end_lineno or 0) - node.lineno + 1, len(named) + len(extra)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_no_function_of_a_command_is_long_or_takes_much(module: Path) -> None:
    for name, lines, parameters in functions(module.read_text("utf-8")):
        assert lines <= MOST_LINES, f"{name} has {lines} lines"
        assert parameters <= MOST_PARAMETERS, f"{name} has {parameters} parameters"


def test_the_check_sees_what_it_looks_for() -> None:
    source = "def f(a, *b, c=1, **d):\n" + "    pass\n" * 90
    assert list(functions(source)) == [("f", 91, 4)]
