"""A name means one thing in the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "shoal"
# the arrays that numbers.py names
ARRAYS = {"NDArray[np.float64]": "Floats", "NDArray[np.int64]": "Integers", "NDArray[np.bool_]": "Bools"}


@cache
def statements() -> tuple[tuple[Path, ast.stmt], ...]:
    """All statements of all modules, which take a second to read."""
    return tuple(_statements())


def _statements() -> Iterator[tuple[Path, ast.stmt]]:
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            yield path, node
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                yield from ((path, inner) for inner in node.body)


def test_a_class_name_stands_once() -> None:
    places: dict[str, list[Path]] = defaultdict(list)
    for path, node in statements():
        if isinstance(node, ast.ClassDef):
            places[node.name].append(path)
    assert len(places) > 300
    assert not {name: found for name, found in places.items() if len(found) > 1}


@pytest.mark.parametrize(("array", "name"), ARRAYS.items())
def test_an_array_type_has_one_alias(array: str, name: str) -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path, node in statements()
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and node.value is not None
        and ast.unparse(node.value) == array
        and name in SOURCE.joinpath("numbers.py").read_text("utf-8")
    }
    assert found == {"numbers.py"}


def test_no_module_hides_a_name_that_its_package_exports() -> None:
    hidden = {}
    for stub in SOURCE.rglob("__init__.pyi"):
        here = stub.parent
        exported = {
            alias.asname or alias.name: node.module
            for node in ast.parse(stub.read_text("utf-8")).body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        modules = {path.stem for path in here.glob("*.py")} | {
            path.parent.name for path in here.glob("*/__init__.py")
        }
        package = ".".join(("shoal", *here.relative_to(SOURCE).parts))
        hidden[package] = {name for name in modules & set(exported) if exported[name] != package}
    assert len(hidden) > 15
    assert not {package: names for package, names in hidden.items() if names}
