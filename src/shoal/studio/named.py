"""Errors about a file, by the name that its owner knows: the studio reads copies under names of its own."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.errors import ProblemsError, ShoalError
from shoal.text import Message


def named(error: ShoalError, path: Path | None, name: str) -> ShoalError:
    """The error about the same file under another name.

    >>> from shoal.errors import InputError
    >>> str(named(InputError("there-no-file", file=Path("copies/1.csv")), Path("copies/1.csv"), "people.csv"))
    "there is no file 'people.csv'."
    """
    if path is None:
        return error
    if len(error.problems) > 1:
        return ProblemsError([named(problem, path, name) for problem in error.problems])
    found = copy.copy(error)
    found.facts = _renamed(error.facts, path, name)
    return found


def _renamed(facts: Mapping[str, Any], path: Path, name: str) -> dict[str, Any]:
    return {fact: _fact(value, path, name) for fact, value in facts.items()}


def _fact(value: Any, path: Path, name: str) -> Any:
    if isinstance(value, ShoalError):
        return named(value, path, name)
    if isinstance(value, Message):
        return Message(value.code, _renamed(value.facts, path, name))
    # what other libraries and the system say may have it inside
    return str(value).replace(str(path), name) if isinstance(value, (str, Path, Exception)) else value
