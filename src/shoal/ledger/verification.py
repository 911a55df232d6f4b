"""Verify a ledger against its own hash chain and known checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from shoal.ledger.account import Account, LedgerEntry, LedgerError, Standing
from shoal.ledger.ledger import Ledger
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.ledger.store import EntryStore

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class ChainFinding:
    """A data set with an intact chain, and the known heads it contains."""

    standing: Standing
    heads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Examination:
    """Findings of an examination: what is in order, and all problems."""

    findings: list[ChainFinding] = field(default_factory=list)
    problems: list[Message] = field(default_factory=list)


def verify(ledger: Ledger, heads: Sequence[str] = ()) -> list[ChainFinding]:
    """Check the database, then verify every chain from its start: every hash, every amount, every ceiling.

    Args:
        ledger: opened with `check=False` if it may be broken.
        heads: hashes of entries that must be present, kept from an earlier check or taken from answers.

    Guarantee:
        An altered, removed or inserted entry breaks the chain, unless all later entries were recomputed. That,
        and a restored old backup, is detected by any head from a later time: a known head that is in no chain is an
        error.

    Raises:
        LedgerError: the first problem.
    """
    found = _examined(ledger.store, heads)
    if found.problems:
        raise LedgerError.saying(found.problems[0])
    return found.findings


def examine(address: str | Path, heads: Sequence[str] = (), digest: str | None = None) -> Examination:
    """The same for a ledger with any kind of damage: opened read-only, and all problems are reported.

    Args:
        address: address of the ledger, see `open_ledger`.
        heads: hashes of entries that must be present.
        digest: hash of the whole file when it was last closed, stored with `heads` as the newest; it detects
            damage outside entries.

    Raises:
        InputError: the ledger does not exist.
    """
    from shoal.ledger.store import EntryStore, digest_of

    store = EntryStore(address, create=False, looking=True)
    path = Path(store.url.database or "") if store.sqlite else None
    # before the database opens its file, which might repair it
    now = None if path is None or digest is None else digest_of(path)
    try:
        found = _examined(store, heads)
    finally:
        store.close()
    newest = {finding.standing.head for finding in found.findings}
    if (
        not found.problems
        and now is not None
        and newest == {_plain(head) for head in heads}
        and now != digest
    ):
        found.problems.append(Message("ledger-file-changed"))
    return found


def _examined(store: EntryStore, heads: Sequence[str]) -> Examination:
    found, wanted = Examination(), {_plain(head) for head in heads}
    for problem in _attempt(found, Message("look-database"), lambda: _damage(store)) or ():
        found.problems.append(Message.of("ledger-damaged", reason=problem))
    names = _attempt(found, Message("look-data-sets"), lambda: _names(store)) or []
    for name in names:
        what = Message.of("look-data-set", dataset=name)
        finding = _attempt(found, what, lambda name=name: _follow(store, name, wanted))  # type: ignore[misc]
        if finding is not None:
            found.findings.append(finding)
    if not names and not found.problems:
        found.problems.append(Message("ledger-without-entries"))
    missing = wanted.difference(*(finding.heads for finding in found.findings))
    if missing:
        found.problems.append(Message.of("head-not-in-ledger", head=min(missing)))
    return found


def _attempt(found: Examination, what: Message, look: Callable[[], _Found]) -> _Found | None:
    """The result of a check; any failure becomes a problem."""
    try:
        return look()
    except LedgerError as error:
        found.problems.append(error.message)
    except Exception as error:
        # a damaged file can make any reader fail, in any way
        found.problems.append(Message.of("ledger-unreadable", what=what, reason=type(error).__name__))
    return None


def _damage(store: EntryStore) -> list[Message]:
    with store.reading() as connection:
        return store.damage(connection)


def _names(store: EntryStore) -> list[str]:
    with store.reading() as connection:
        return sorted({*store.datasets(connection), *store.registered(connection)})


def _follow(store: EntryStore, dataset: str, wanted: set[str]) -> ChainFinding:
    account = Account(dataset)
    seen = tuple(entry.hash for entry in _followed(account, store) if entry.hash in wanted)
    if not account.number:
        raise LedgerError("data-set-lost-all-entries-restore", dataset=dataset)
    return ChainFinding(account.standing(), seen)


def _followed(account: Account, store: EntryStore) -> Iterator[LedgerEntry]:
    with store.reading() as connection:
        for entry in store.entries(connection, account.dataset):
            account.follow(entry)
            yield entry


def _plain(head: str) -> str:
    return head.strip().lower()
