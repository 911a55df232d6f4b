"""Where a stage comes from: the package itself, or somebody who registered it (`shoal.extend`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outside:
    """A stage that is no part of the package.

    Attributes:
        who: whose it is, in words.
        pairs: on how many pairs of neighbouring tables the accounting that came with it passed; 0 without one, and
            then nothing is promised with it.
    """

    who: str
    pairs: int = 0

    @property
    def accounted(self) -> bool:
        return self.pairs > 0
