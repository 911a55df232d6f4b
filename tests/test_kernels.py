"""Compiled loops equal uncompiled ones, with a fallback where numba does not work, and no stale code."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal import kernels
from shoal.errors import ShoalWarning

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "shoal"


def compiled_functions() -> Iterator[str]:
    """Every function of the package that is compiled, as `folder/file:name`."""
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text("utf-8")
        if "from shoal.kernels import compiled" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef):
                continue
            for one in node.decorator_list:
                name = one.func if isinstance(one, ast.Call) else one
                if isinstance(name, ast.Name) and name.id == "compiled":
                    yield f"{path.parent.name}/{path.name}:{node.name}"


def recorded(**variables: str) -> dict[str, Any]:
    """What `tests.support.kernel_results` prints in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.kernel_results"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."]), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_uncompiled_kernels_and_releases_are_the_same_to_the_last_bit() -> None:
    usual, other = recorded(SHOAL_KERNELS="compiled"), recorded(SHOAL_KERNELS="plain")
    assert (usual["plain"], other["plain"]) == (False, True)
    assert not other["numba"]
    assert len(usual["results"]) > 40
    assert other["results"] == usual["results"]
    # one function is said in other words when it is not compiled
    missed = set(compiled_functions()) - set(other["called"])
    assert missed == {"pairs/_kernels.py:products_of"}
    assert "pairs/_kernels.py:_products_by_blas" in other["called"]


def test_only_one_module_compiles() -> None:
    places = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if {"numba", "llvmlite"}
        & {
            (node.module or "").partition(".")[0]
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ImportFrom)
        }
    }
    assert places == {"kernels.py", "partition/_kernels_llvm.py"}


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is settled about how loops run; afterwards all is as it was."""
    monkeypatch.delenv(kernels.SWITCH, raising=False)
    kernels.plain.cache_clear()
    kernels._not_kept.cache_clear()
    yield
    monkeypatch.undo()
    kernels.plain.cache_clear()
    kernels._not_kept.cache_clear()


def twice(number: int) -> int:
    return 2 * number


@pytest.mark.usefixtures("undecided")
def test_the_variable_asks_for_plain_loops_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.SWITCH, "plain")
    assert kernels.plain()
    monkeypatch.setenv(kernels.SWITCH, "fast")
    kernels.plain.cache_clear()
    with pytest.raises(shoal.OptionError, match="SHOAL_KERNELS 'fast' is not one of compiled, plain"):
        kernels.plain()
    monkeypatch.setenv(kernels.SWITCH, "")
    kernels.plain.cache_clear()
    assert not kernels.plain()
    assert kernels.compiled(twice)(21) == 42


class NoNumba:
    """An installation in which numba cannot be imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == "numba":
            raise ImportError("numba was built for another numpy\nand more lines")


@pytest.mark.usefixtures("undecided")
def test_without_numba_loops_run_uncompiled_and_one_warning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "numba"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NoNumba(), *sys.meta_path])
    with pytest.warns(ShoalWarning) as noticed:
        functions = [kernels.compiled(twice), kernels.compiled(inline=True)(twice)]
    assert [function(4) for function in functions] == [8, 8]
    assert [one.message.code for one in noticed] == ["kernels-plain"]  # type: ignore[union-attr]
    assert str(noticed[0].message).endswith(
        "(numba was built for another numpy): results are the same, large tables take much longer."
    )


@pytest.mark.usefixtures("undecided")
def test_where_nothing_compiles_loops_run_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(function: Any, options: Any, *, keep: bool = True) -> Any:
        raise OSError("LLVM ERROR: no memory that can be executed")

    monkeypatch.setattr(kernels, "_numba_function", fails)
    with pytest.warns(ShoalWarning, match="no memory that can be executed"):
        assert kernels.compiled(twice)(4) == 8
    assert kernels.plain()


@pytest.mark.usefixtures("undecided")
def test_where_nothing_can_be_kept_loops_are_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba
    from numba.core.caching import FunctionCache

    assert not kernels.plain()
    monkeypatch.setattr(FunctionCache._impl_class, "_locator_classes", [])
    with pytest.warns(ShoalWarning) as noticed:
        functions = [kernels.compiled(twice), kernels.compiled(twice)]
    assert [one.message.code for one in noticed] == ["kernels-not-kept"]  # type: ignore[union-attr]
    assert all(isinstance(function, numba.core.dispatcher.Dispatcher) for function in functions)
    assert functions[0](4) == 8


@pytest.mark.usefixtures("undecided")
def test_a_full_disk_is_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from numba.core.caching import IndexDataCacheFile

    def full(self: Any, *arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    source = tmp_path / "loops.py"
    source.write_text("def thrice(number):\n    return 3 * number\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import loops  # type: ignore[import-not-found]

    function = kernels.compiled(loops.thrice)
    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    with pytest.warns(ShoalWarning, match="No space left on device"):
        assert function(4) == 12
    del sys.modules["loops"]


def stamps() -> dict[str, str]:
    kernels.stamp.cache_clear()
    return {name: kernels.stamp(name) for name in KERNELS}


KERNELS = (
    "shoal.partition._kernels",
    "shoal.partition._kernels",
    "shoal.partition._kernels",
    "shoal.partition._kernels_tree",
    "shoal.mechanisms.pairs._kernels",
    "shoal.mechanisms.suppression.bound",
    "shoal.mechanisms.suppression.wildcard",
    "shoal.evaluation._kernels",
    "shoal.evaluation._kernels",
    "shoal.evaluation._kernels",
)
# what is compiled into kernels of other files
INLINED = {
    "shoal.partition._kernels": {"shoal.partition._kernels_tree"},
    "shoal.partition._kernels_llvm": {"shoal.partition._kernels_tree"},
    "shoal.kernels": set(KERNELS),
}


@pytest.fixture
def loaded() -> Iterator[None]:
    """All modules with kernels, compiled."""
    import importlib

    for name in KERNELS:
        importlib.import_module(name)
    yield
    kernels.stamp.cache_clear()


def test_the_list_of_kernels_is_whole() -> None:
    found = {name.partition(":")[0] for name in compiled_functions()}
    assert found == {"/".join(name.split(".")[-2:]) + ".py" for name in KERNELS}


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("changed", sorted({*KERNELS, *INLINED}))
def test_code_is_stale_when_a_source_changes_that_is_compiled_into_it(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stamps()
    assert stamps() == before
    module = sys.modules[changed]
    copy = tmp_path / "changed.py"
    copy.write_bytes(Path(str(module.__file__)).read_bytes() + b"\n")
    monkeypatch.setattr(module, "__file__", str(copy))
    after = stamps()
    stale = {name for name in KERNELS if after[name] != before[name]}
    assert stale == {changed, *INLINED.get(changed, ())} & set(KERNELS)


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize(
    ("module", "constant", "stale"),
    [
        ("shoal.partition._kernels", "MISSING", {"kernels", "tree"}),
        ("shoal.partition._kernels_tree", "LEAF", {"tree"}),
        ("shoal.partition._kernels", "NO_INDEX", {"kernels", "tree"}),
    ],
)
def test_code_is_stale_when_a_constant_changes_that_it_holds(
    module: str, constant: str, stale: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stamps()
    monkeypatch.setattr(sys.modules[module], constant, 7)
    after = stamps()
    found = {name.rpartition("_")[2] for name in KERNELS if after[name] != before[name]}
    assert found == stale


@pytest.mark.usefixtures("loaded")
def test_what_is_kept_bears_the_stamp_and_helpers_are_kept_with_their_callers() -> None:
    from shoal.partition import _kernels_tree as tree

    if kernels.plain():
        pytest.skip("loops run uncompiled")
    file = tree.rounds._cache._cache_file
    assert file._source_stamp == kernels.stamp("shoal.partition._kernels_tree")
    assert type(tree.nearest._cache).__name__ == "NullCache"
