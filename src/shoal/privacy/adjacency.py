"""Adjacency: which two tables a differential privacy guarantee compares."""

from __future__ import annotations

from enum import StrEnum

from shoal.errors import OptionError, closest
from shoal.text import Message


class Adjacency(StrEnum):
    """The neighbouring relation; the value is what parameters, recipes and ledgers hold."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    @classmethod
    def named(cls, value: str) -> Adjacency:
        """The relation of this name.

        Raises:
            OptionError: there is none.
        """
        known = tuple(str(one) for one in cls)
        if value not in known:
            raise OptionError(
                "unknown-option",
                option="neighbours",
                found=value,
                allowed=known,
                hint=closest(str(value), known),
            )
        return cls(value)

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
