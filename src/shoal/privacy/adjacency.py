"""Adjacency: which two tables a differential privacy guarantee compares."""

from __future__ import annotations

from enum import StrEnum

from shoal.text import Message


class Adjacency(StrEnum):
    """The neighbouring relation; the value is what parameters, recipes and ledgers hold."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    @property
    def words(self) -> str:
        return str(Message(f"adjacency-{self}"))

    @property
    def hides_size(self) -> bool:
        """Whether the number of records is private."""
        return self is Adjacency.ADD_REMOVE

    @property
    def factor(self) -> int:
        """Replacing a record is removing one and adding one."""
        return 1 if self.hides_size else 2
