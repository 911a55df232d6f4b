"""Rehearsals on another file, such as last year's: whether it can be used, and what is wrong with it.

Nothing of the table is shown by them. The journal notes that the other file was rehearsed on, so it is asked about when
somebody opens that file as a table.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.columns.declaration import read_declared
from shoal.errors import OptionError, ShoalError
from shoal.io import Table
from shoal.io.table import content_digest
from shoal.release.protect import prepare
from shoal.release.rehearse import people_of
from shoal.studio.named import named
from shoal.studio.preview import Memory
from shoal.studio.recipe import Recipe
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns.schema import Schema
    from shoal.studio.desk import Desk


class Another:
    """Another table with the same columns, whose people are rehearsed on.

    Attributes:
        mark: digest of its records.
        rows: how many people it has.
    """

    def __init__(self, path: Path, name: str, mark: str, rows: int) -> None:
        self.path, self.name, self.mark, self.rows = path, name, mark, rows
        self._memory = Memory()
        self._read: tuple[object, tuple[Table, Schema | None]] | None = None
        self._known: tuple[Recipe, tuple[Message, ...]] | None = None

    def problems(self, recipe: Recipe) -> tuple[Message, ...]:
        """What keeps a rehearsal with these settings from using it; asked often, computed once."""
        if self._known is None or self._known[0] != recipe:
            self._known = recipe, self._problems(recipe)
        return self._known[1]

    def _problems(self, recipe: Recipe) -> tuple[Message, ...]:
        asked = recipe.request
        key = recipe.schema, asked["columns"]
        try:
            if self._read is None or self._read[0] != key:
                found = people_of(self.path, recipe.schema, recipe.method, None, None, 0, columns=key[1])
                self._read = key, found
            table, schema = self._read[1]
            prepare(table, look=self._memory.look, **{**asked, "schema": schema})
        except ShoalError as error:
            wrong = (named(one, self.path, self.name) for one in error.problems)
            return tuple(Message.of("in-another-table", name=self.name, reason=one) for one in wrong)
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
                raise OptionError("a-run-is-on-its-way")
            made_up(desk)
            desk.another = found
    except ShoalError as error:
        desk.another_problem = named(error, path, name)
        _remove_copy(desk, path)


def _opened(desk: Desk, path: Path, name: str) -> Another:
    table = read_declared(path, file=desk.recipe.schema.file)
    mark = content_digest(table)
    if mark == desk.content:
        raise OptionError("holds-records-table-itself", name=name)
    return Another(path, name, mark, table.n)


def made_up(desk: Desk) -> None:
    """Rehearse on people who do not exist; a copy of another file is removed."""
    if desk.another is not None:
        _remove_copy(desk, desk.another.path)
    desk.another = desk.another_problem = None


def _remove_copy(desk: Desk, path: Path | None) -> None:
    if path is not None and desk.folder in path.parents:
        path.unlink(missing_ok=True)
