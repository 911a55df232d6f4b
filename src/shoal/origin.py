"""Origin of a stage: Shoal itself, or a third party that registered it (`shoal.extend`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outside:
    """A third-party stage.

    Attributes:
        who: who vouches for it.
        pairs: number of pairs of neighbouring tables on which its accounting passed; 0 without an accounting,
            and then it has no claim.
    """

    who: str
    pairs: int = 0

    @property
    def accounted(self) -> bool:
        return self.pairs > 0
