"""`import shoal` stays light: heavy libraries are loaded when a function needs them, not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "numba",
    "scipy",
    "pyarrow",
    "pandas",
    "polars",
    "sklearn",
    "rich",
    "typer",
    "jinja2",
    "opendp",
    "rdflib",
    "sqlalchemy",
    "fastapi",
    "pydantic",
)


def loaded_after(statement: str) -> set[str]:
    """Top-level packages that a fresh interpreter holds after one statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_shoal_loads_no_heavy_library() -> None:
    loaded = loaded_after("import shoal; shoal.protect, shoal.Schema, shoal.methods()")
    assert {"shoal", "numpy", "narwhals"} <= loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        ("--help", {*HEAVY, "numpy", "narwhals"} - {"typer"}),
        ("methods", {*HEAVY, "narwhals"} - {"typer", "pydantic"}),
    ],
)
def test_what_only_lists_loads_little(words: str, unneeded: set[str]) -> None:
    """Less than 0.4 seconds of a processor, most of it numpy and typer (which loads pydantic to check options)."""
    code = f"from shoal.cli import run; run(['{words}'])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "shoal" in loaded
    assert loaded.isdisjoint(unneeded)


def test_the_check_sees_a_heavy_library() -> None:
    assert "jinja2" in loaded_after("import shoal, jinja2")


@pytest.mark.parametrize(
    "name", ["Schema", "protect", "evaluate", "methods", "Release", "partition", "noise"]
)
def test_public_names_are_there(name: str) -> None:
    import shoal

    assert name in shoal.__all__
    assert hasattr(shoal, name)
