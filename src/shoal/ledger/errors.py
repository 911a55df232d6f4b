"""Why a ledger says no: the reasons a request is refused, and what is said of a ledger that cannot be trusted."""

from __future__ import annotations

from fractions import Fraction

from shoal.decimals import decimal_text
from shoal.errors import ShoalError


class LedgerError(ShoalError):
    """The ledger cannot be used: a broken chain, an old backup, a file of a newer version."""

    kind = "ledger"


class OverdrawnError(ShoalError):
    """A charge was refused because it would exceed a ceiling. Nothing was spent and nothing was looked at.

    Attributes:
        of: whose ceiling, "the data set" or "the analyst".
        what: "epsilon" or "delta".
    """

    kind = "overdrawn"

    def __init__(self, of: str, what: str, requested: Fraction, remaining: Fraction) -> None:
        self.of, self.what, self.requested, self.remaining = of, what, requested, remaining
        amounts = {"requested": requested, "remaining": remaining, "missing": requested - remaining}
        super().__init__(
            "overdrawn", of=of, what=what, **{name: decimal_text(amount) for name, amount in amounts.items()}
        )


class QuotaError(ShoalError):
    """A charge was refused because the entries of its analyst take all the room they may. Nothing was spent."""

    kind = "quota"

    def __init__(self, room: int) -> None:
        self.room = room
        super().__init__("quota", room=room)


class UnpricedError(ShoalError):
    """A charge that is priced together with others met more of them than it was priced with: price it again."""

    kind = "unpriced"

    def __init__(self) -> None:
        super().__init__("unpriced")


class KeyReusedError(ShoalError):
    """An idempotency key came with another request than the first time."""

    kind = "key-reused"

    def __init__(self) -> None:
        super().__init__("key-reused")
