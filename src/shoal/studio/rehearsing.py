"""Who is rehearsed on: a file such as last year's comes in; whether a rehearsal can use it leaves, or what is wrong.

Nobody of the table is looked at then. The people of the other file are, and that is remembered: whoever opens it as a
table later has looked at it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.columns.declaration import read_declared
from shoal.errors import OptionError, ShoalError
from shoal.io import Table
from shoal.io.fingerprint import fingerprint
from shoal.release.protect import prepare
from shoal.release.rehearse import people_of
from shoal.studio.preview import Memory
from shoal.studio.recipe import Recipe

if TYPE_CHECKING:
    from shoal.columns.schema import Schema
    from shoal.studio.desk import Desk


class Another:
    """Another table with the same columns, whose people are rehearsed on.

    Attributes:
        mark: by which the same file is recognised.
        rows: how many people it has.
    """

    def __init__(self, path: Path, name: str, mark: str, rows: int) -> None:
        self.path, self.name, self.mark, self.rows = path, name, mark, rows
        self._memory = Memory()
        self._read: tuple[object, tuple[Table, Schema | None]] | None = None
        self._known: tuple[Recipe, tuple[str, ...]] | None = None

    def problems(self, recipe: Recipe) -> tuple[str, ...]:
        """What keeps a rehearsal with these settings from using it; asked often, computed once."""
        if self._known is None or self._known[0] != recipe:
            self._known = recipe, self._problems(recipe)
        return self._known[1]

    def _problems(self, recipe: Recipe) -> tuple[str, ...]:
        asked = recipe.request()
        key = recipe.schema, asked["columns"]
        try:
            if self._read is None or self._read[0] != key:
                found = people_of(self.path, recipe.schema, recipe.method, None, None, 0, columns=key[1])
                self._read = key, found
            table, schema = self._read[1]
            prepare(table, look=self._memory.look, **{**asked, "schema": schema})
        except ShoalError as error:
            words = (str(one).replace(str(self.path), self.name) for one in error.problems)
            return tuple(f"In {self.name}: {line}" for line in words)
        return ()


def choose(desk: Desk, path: Path | None = None, name: str = "") -> None:
    """Rehearse on the people of a file, or on made-up ones without it.

    One that cannot be used leaves the choice as it was, and the desk says why.
    """
    try:
        found = None if path is None else _opened(desk, path, name)
        with desk.lock:
            if desk.running is not None:
                # it may be reading what would be removed
                raise OptionError("a run is on its way: wait for it, or cancel it.")
            made_up(desk)
            desk.another = found
    except ShoalError as error:
        desk.another_problem = str(error).replace(str(path), name)
        _remove_copy(desk, path)


def _opened(desk: Desk, path: Path, name: str) -> Another:
    told = desk.recipe.schema.file
    table, mark = read_declared(path, file=told), fingerprint(path)
    if mark == desk.mark or (
        table.n == desk.sheet.n
        and desk.source is not None
        and _alike(table, read_declared(desk.source.path, file=told))
    ):
        raise OptionError(
            f"'{name}' holds the records of the table itself: to rehearse on them is to look at them. Take the file "
            "of another year, or made-up people."
        )
    return Another(path, name, mark, table.n)


def made_up(desk: Desk) -> None:
    """Rehearse on people who do not exist; a copy of another file is removed."""
    if desk.another is not None:
        _remove_copy(desk, desk.another.path)
    desk.another, desk.another_problem = None, ""


def _remove_copy(desk: Desk, path: Path | None) -> None:
    if path is not None and desk.folder in path.parents:
        path.unlink(missing_ok=True)


def _alike(one: Table, other: Table) -> bool:
    """Whether two tables of one length hold the same records, however they are written and their rows ordered."""
    shared = [name for name in other.names if name in one.names]
    return bool(shared) and all(_cells(one, name) == _cells(other, name) for name in shared)


def _cells(table: Table, name: str) -> list[str]:
    return sorted(map(str, table.series(name).to_list()))
