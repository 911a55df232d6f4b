"""Whether a ledger can be trusted: a ledger and heads known from elsewhere come in, findings leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shoal.query.ledger.account import Account, Standing
from shoal.query.ledger.entry import Entry
from shoal.query.ledger.errors import LedgerError
from shoal.query.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Finding:
    """A data set whose chain is whole, and which of the known heads it contains."""

    standing: Standing
    heads: tuple[str, ...]


def verify(ledger: Ledger, heads: Sequence[str] = ()) -> list[Finding]:
    """Follow every chain from its origin: every hash, every amount, every ceiling.

    Args:
        ledger: opened with `check=False` if it may be broken.
        heads: hashes of entries that must be there, kept from an earlier look or taken from answers.

    Guarantee:
        An entry that was altered, removed or put in breaks the chain, unless all later entries were made anew. That,
        and a restored old backup, is found out by any head from a later time: a known head that is in no chain is an
        error.

    Raises:
        LedgerError: the first thing that is wrong.
    """
    wanted = {head.strip().lower() for head in heads}
    findings = [_follow(ledger, name, wanted) for name in ledger.datasets()]
    missing = wanted.difference(*(finding.heads for finding in findings))
    if missing:
        raise LedgerError(
            f"the head {min(missing)} is not in this ledger: entries that existed when it was noted are gone (an old "
            "backup was restored, or this is another ledger), so more may have been spent than it says."
        )
    return findings


def _follow(ledger: Ledger, dataset: str, wanted: set[str]) -> Finding:
    account = Account(dataset)
    seen = tuple(entry.hash for entry in _followed(account, ledger) if entry.hash in wanted)
    return Finding(account.standing(), seen)


def _followed(account: Account, ledger: Ledger) -> Iterator[Entry]:
    for entry in ledger.entries(account.dataset):
        account.follow(entry)
        yield entry
