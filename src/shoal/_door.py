"""Doors of rooms: the names that other rooms may use, each imported when it is first asked for.

The names stand once, in the stub `__init__.pyi` beside a room's `__init__.py`, which type checkers read too. Where the
stub has `__all__`, these names are for users of the package too, and documented; the others are for its own rooms.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def door(room: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a room whose `__init__.py` is `file`.

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
        # a room is found as a module of the package
        return import_module(f"{room}.{found}") if module == room else getattr(import_module(module), found)

    names = sorted(places)
    return load, lambda: names, documented or names
