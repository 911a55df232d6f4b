"""Lazy exports of packages: each public name is imported on first access.

The names are listed once, in the stub `__init__.pyi` beside a package's `__init__.py`, which type checkers read as
well. Where the stub defines `__all__`, those names are public and documented; the others are for Shoal's own packages.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def door(room: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of the package whose `__init__.py` is `file`.

    >>> import shoal.noise
    >>> "discrete_laplace" in dir(shoal.noise)
    True
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8")).body
    places = {
        name.asname or name.name: (str(node.module), name.name)
        for node in stub
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    documented = [
        name for node in stub if isinstance(node, ast.Assign) for name in ast.literal_eval(node.value)
    ]

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module, found = places[name]
        # a subpackage is found as a module of its parent
        return import_module(f"{room}.{found}") if module == room else getattr(import_module(module), found)

    names = sorted(places)
    return load, lambda: names, documented or names
